// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/revisioncompare.h"

#include "ui/diff/view/diffview.h"
#include "ui/style/keyedcommand.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

QString revisionText(const skills::Revision &revision)
{
    const QString text = RevisionCompare::tr("revision %1").arg(revision.number);
    return revision.author.empty() ? text
                                   : RevisionCompare::tr("%1 · %2 · %3")
                                         .arg(text, QString::fromStdString(revision.author),
                                              QString::fromStdString(revision.time).left(10));
}

QComboBox *makeChoice(const QString &name)
{
    auto *choice = new QComboBox;
    choice->setAccessibleName(name);
    choice->setToolTip(name);
    choice->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    return choice;
}

} // namespace

RevisionCompare::RevisionCompare(QWidget *parent)
    : QWidget(parent)
    , m_older(makeChoice(tr("Revision at the left")))
    , m_newer(makeChoice(tr("Revision at the right")))
    , m_note(new QLabel)
    , m_diff(new DiffView)
{
    m_note->setObjectName(QStringLiteral("revisionNote"));
    m_note->setWordWrap(true);
    m_note->setForegroundRole(QPalette::PlaceholderText);
    m_diff->setAccessibleName(tr("Two revisions of the card"));
    m_diff->setFolding(true);
    m_diff->setWrapping(true); // claims are long lines
    m_diff->nameCommands(QStringLiteral("revisions"));
    auto *close = new QPushButton(tr("Close"));
    close->setAutoDefault(false);

    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(8, 4, 8, 4);
    bar->addWidget(m_older, 1);
    bar->addWidget(m_newer, 1);
    bar->addWidget(close);
    auto *note = new QHBoxLayout;
    note->setContentsMargins(10, 0, 10, 4);
    note->addWidget(m_note);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addLayout(note);
    layout->addWidget(m_diff, 1);
    setFocusProxy(m_older);

    for (QComboBox *choice : {m_older, m_newer})
        connect(choice, &QComboBox::currentIndexChanged, this, &RevisionCompare::compare);
    connect(close, &QPushButton::clicked, this, &RevisionCompare::closed);
    QAction *leave = addKeyedCommand(this, QStringLiteral("revisions.close"),
                                     tr("Revisions: back to the history"), QKeySequence(Qt::Key_Escape));
    connect(leave, &QAction::triggered, this, &RevisionCompare::closed);
    setKeyedToolTip(close, tr("Back to the history"), leave);
}

void RevisionCompare::setRecord(const skills::CardRecord &record)
{
    m_card = QString::fromStdString(record.card.name);
    m_revisions = skills::revisionsOf(record);
    const QSignalBlocker older(m_older);
    const QSignalBlocker newer(m_newer);
    m_older->clear();
    m_newer->clear();
    for (const skills::Revision &revision : m_revisions) {
        m_older->addItem(revisionText(revision));
        m_newer->addItem(revisionText(revision));
    }
    const int last = m_newer->count() - 1;
    m_newer->setCurrentIndex(last);
    m_older->setCurrentIndex(std::max(0, last - 1));
    compare();
}

void RevisionCompare::compare()
{
    if (m_revisions.empty())
        return;
    const auto of = [this](const QComboBox *choice) {
        return m_revisions[static_cast<std::size_t>(std::max(0, choice->currentIndex()))];
    };
    const skills::Revision left = of(m_older);
    const skills::Revision right = of(m_newer);
    const QString reason = QString::fromStdString(right.reason);
    m_note->setText(m_revisions.size() == 1
                        ? tr("There is one revision of this card: a saved edit makes the next.")
                    : reason.isEmpty() ? tr("The event that made the right one gave no reason.")
                                       : tr("Why the right one was made: %1").arg(reason));
    m_diff->setDocument(makeDocument(nullptr, makeSideMessage(tr("Comparing…")), {}), false);
    m_job.start(
        interactivePool(), [this, left, right](const std::stop_token &stop, const JobSlot::Post &post) {
            const Language language = languageOfFile(u"card.toml");
            const DocumentPtr document = makeDocument(makeSideText(left.text, language, stop),
                                                      makeSideText(right.text, language, stop), {}, stop);
            if (document)
                post([this, document] { m_diff->setDocument(document, false); });
        });
}

} // namespace klineage::ui
