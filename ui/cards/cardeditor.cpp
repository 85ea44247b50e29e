// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardeditor.h"

#include "core/files/atomicfile.h"
#include "core/workspace/citations.h"
#include "ui/highlight/highlightededit.h"
#include "ui/models/workspaceid.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/keyedcommand.h"
#include "ui/style/theme.h"

#include <QDir>
#include <QFile>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStandardPaths>
#include <QTimer>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr int validateAfterMs = 150;

} // namespace

CardEditor::CardEditor(const WorkspaceModel *workspace, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_text(new HighlightedEdit)
    , m_findings(new QLabel)
    , m_save(new QPushButton(tr("Save revision")))
    , m_timer(new QTimer(this))
{
    m_text->setLanguage(languageOfFile(u"card.toml"));
    m_text->setAccessibleName(tr("Card fields"));
    m_findings->setWordWrap(true);
    m_findings->setTextFormat(Qt::PlainText);
    m_findings->setMargin(6);
    m_findings->setAccessibleName(tr("Findings"));
    auto *cancel = new QPushButton(tr("Cancel"));

    auto *buttons = new QHBoxLayout;
    buttons->setContentsMargins(8, 4, 8, 6);
    buttons->addWidget(m_save);
    buttons->addWidget(cancel);
    buttons->addStretch();
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_findings);
    layout->addLayout(buttons);

    m_timer->setSingleShot(true);
    m_timer->setInterval(validateAfterMs);
    connect(m_text, &QPlainTextEdit::textChanged, m_timer, qOverload<>(&QTimer::start));
    connect(m_timer, &QTimer::timeout, this, [this] {
        validate();
        writeDraft();
    });
    const auto save = [this] {
        validate();
        if (m_card && isModified())
            emit saveRequested(*m_card);
    };
    connect(m_save, &QPushButton::clicked, this, save);
    QAction *saving =
        addKeyedCommand(this, QStringLiteral("card.save"), tr("Save the edited card"), QKeySequence::Save);
    connect(saving, &QAction::triggered, this, save);
    setKeyedToolTip(m_save, tr("Save it as a new revision"), saving);
    connect(cancel, &QPushButton::clicked, this, [this] {
        discardDraft();
        emit cancelled();
    });
}

QString CardEditor::openWorkspace() const
{
    return QString::fromStdString(m_workspace->workspace().root.string());
}

QString CardEditor::draftPath(const QString &workspace, const QString &cardName)
{
    return QStringLiteral("%1/drafts/cards/%2/%3.toml")
        .arg(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation), workspaceId(workspace),
             cardName);
}

bool CardEditor::hasDraft(const QString &cardName) const
{
    return QFile::exists(draftPath(openWorkspace(), cardName));
}

void CardEditor::discardDraft()
{
    m_timer->stop();
    QFile::remove(draftPath(m_home, m_name));
}

bool CardEditor::leaveIfElsewhere()
{
    if (m_name.isEmpty() || m_home == openWorkspace())
        return false;
    if (m_timer->isActive()) {
        m_timer->stop();
        writeDraft();
    }
    m_name.clear();
    return true;
}

void CardEditor::open(const skills::CardRecord &record)
{
    m_home = openWorkspace();
    m_name = QString::fromStdString(record.card.name);
    m_revision = record.card.revision;
    m_carrier = record.carrier;
    m_buildingBlock = record.buildingBlock;
    m_original = QString::fromStdString(skills::writeCard(record.card));
    m_text->setPlainText(m_original);
    if (QFile draft(draftPath(m_home, m_name)); draft.open(QIODevice::ReadOnly)) {
        // Typed in as an edit, so that one undo leads back to what is saved.
        QTextCursor cursor(m_text->document());
        cursor.select(QTextCursor::Document);
        cursor.insertText(QString::fromUtf8(draft.readAll()));
    }
    validate();
}

QPlainTextEdit *CardEditor::text() const
{
    return m_text;
}

bool CardEditor::isModified() const
{
    return m_text->toPlainText() != m_original;
}

void CardEditor::validate()
{
    m_card.reset();
    const std::string text = m_text->toPlainText().toStdString();
    QStringList findings;
    bool hasError = false;
    if (auto parsed = skills::parseCard(text, "card.toml")) {
        parsed->revision = m_revision;
        if (parsed->name != m_name.toStdString()) {
            findings << tr("✗ name: the card's name is its folder; expected \"%1\".").arg(m_name);
            hasError = true;
        }
        std::vector<skills::LintFinding> lint = skills::lintCard(*parsed, m_carrier, m_buildingBlock);
        const auto dead = lintCitations(m_workspace->workspace(), *parsed);
        lint.insert(lint.begin(), dead.begin(), dead.end());
        for (const skills::LintFinding &finding : lint) {
            const bool error = finding.severity == skills::LintFinding::Severity::Error;
            hasError = hasError || error;
            findings << QStringLiteral("%1 %2: %3")
                            .arg(error ? QStringLiteral("✗") : QStringLiteral("!"),
                                 QString::fromStdString(finding.field),
                                 QString::fromStdString(finding.message));
        }
        if (!hasError)
            m_card = std::move(*parsed);
    } else {
        findings << QStringLiteral("✗ ") + QString::fromStdString(parsed.error().message);
        hasError = true;
    }
    const Theme &theme = Theme::current();
    QPalette colors = palette();
    colors.setColor(QPalette::WindowText, hasError             ? theme.bad
                                          : findings.isEmpty() ? theme.good
                                                               : theme.warn);
    m_findings->setPalette(colors);
    m_findings->setText(findings.isEmpty() ? tr("✓ No findings.")
                                           : findings.mid(0, 6).join(QLatin1Char('\n')));
    m_save->setEnabled(m_card && isModified());
}

void CardEditor::writeDraft()
{
    if (!isModified())
        return;
    const QString path = draftPath(m_home, m_name);
    QDir().mkpath(QFileInfo(path).path());
    // A draft that cannot be written costs only the crash safety; the text itself is still in the editor.
    if (const auto written = files::writeFileAtomic(path.toStdString(), m_text->toPlainText().toStdString());
        !written)
        m_findings->setText(
            tr("! The draft cannot be kept: %1").arg(QString::fromStdString(written.error().message)));
}

} // namespace klineage::ui
