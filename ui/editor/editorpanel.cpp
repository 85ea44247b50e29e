// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/editor/editorpanel.h"

#include "core/files/sha256.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/step.h"
#include "ui/editor/codeedit.h"
#include "ui/editor/verdictstrip.h"
#include "ui/highlight/documenthighlighter.h"
#include "ui/highlight/findbar.h"
#include "ui/models/selection.h"
#include "ui/models/workspaceid.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/icons.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/theme.h"

#include <QLabel>
#include <QMessageBox>
#include <QPlainTextDocumentLayout>
#include <QPushButton>
#include <QStackedWidget>
#include <QTabBar>
#include <QTextDocument>
#include <QThreadPool>
#include <QTimer>
#include <QToolButton>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr double longerSeconds = 30; ///< of timing, where the usual ones left the answer open

/// What a recorded trial knows about the device, for expressions of the plan; what it does not, the platform's name may.
kernel::Bindings factsOf(const gate::Trial *trial, const std::string &platform)
{
    kernel::Bindings facts;
    if (const std::int64_t shared = sharedLimitOf(platform); shared > 0)
        facts["max_shared"] = shared;
    if (!trial)
        return facts;
    for (const char *name : {"sm_count", "warp_size", "max_shared"}) {
        const auto found = trial->environment.facts.find(name);
        bool isNumber = false;
        const qlonglong value = found == trial->environment.facts.end()
                                    ? 0
                                    : QString::fromStdString(found->second).toLongLong(&isNumber);
        if (isNumber && value > 0)
            facts[name] = std::int64_t{value};
    }
    return facts;
}

/// As a document keeps it.
QString asShown(QString text)
{
    return text.replace(QLatin1String("\r\n"), QLatin1String("\n"))
        .replace(QLatin1Char('\r'), QLatin1Char('\n'))
        .replace(QChar::Nbsp, QLatin1Char(' '));
}

} // namespace

/// A draft with its document, so that each keeps its own undo history.
struct EditorPanel::OpenDraft {
    Draft draft;
    std::unique_ptr<QTextDocument> document;
    std::unique_ptr<DocumentHighlighter> highlighter;
    std::optional<gate::Trial> trial;
    QString judged; ///< the text that the trial is of
    std::vector<Diagnostic> fromLog;
    bool isDirty = false; ///< not saved as it is
};

EditorPanel::EditorPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : EditorPanel(workspace, selection, std::filesystem::path(), parent)
{
    m_draftsOfAll = defaultDraftDirectory();
    openDraftsOfWorkspace();
}

EditorPanel::EditorPanel(WorkspaceModel *workspace, Selection *selection,
                         const std::filesystem::path &draftDirectory, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_store(std::make_shared<DraftStore>(draftDirectory))
    , m_checkTimer(new QTimer(this))
    , m_saveTimer(new QTimer(this))
    , m_tabs(new QTabBar(this))
    , m_pages(new QStackedWidget(this))
    , m_edit(new CodeEdit(this))
    , m_find(new FindBar(this, m_edit, QStringLiteral("editor"), tr("Find in the draft")))
    , m_elsewhere(new QWidget(this))
    , m_elsewhereText(new ElidedLabel(m_elsewhere))
    , m_elsewhereShow(new QToolButton(m_elsewhere))
    , m_empty(new QLabel(this))
    , m_checkLine(new ElidedLabel(this))
    , m_verdict(new VerdictStrip(this))
    , m_gate(new QPushButton(tr("Run through the gate"), this))
    , m_openButton(new QPushButton(this))
    , m_emptyButton(new QPushButton(this))
{
    makeCommands();
    layOut();
    m_checkTimer->setSingleShot(true);
    m_checkTimer->setInterval(200);
    m_saveTimer->setSingleShot(true);
    m_saveTimer->setInterval(400);
    connect(m_checkTimer, &QTimer::timeout, this, &EditorPanel::check);
    connect(m_saveTimer, &QTimer::timeout, this, [this] {
        for (const auto &open : m_open)
            save(*open, false);
    });
    connect(m_tabs, &QTabBar::currentChanged, this, &EditorPanel::showDraft);
    connect(m_tabs, &QTabBar::tabMoved, this, [this](int from, int to) {
        std::swap(m_open[static_cast<std::size_t>(from)], m_open[static_cast<std::size_t>(to)]);
    });
    connect(m_gate, &QPushButton::clicked, this, &EditorPanel::requestGate);
    connect(m_verdict->again(), &QToolButton::clicked, this, &EditorPanel::requestGate);
    connect(m_openButton, &QPushButton::clicked, this, &EditorPanel::openSelected);
    connect(m_emptyButton, &QPushButton::clicked, this, &EditorPanel::openSelected);
    connect(m_selection, &Selection::rowChanged, this, &EditorPanel::updateCommands);
    connect(m_selection, &Selection::lineageChanged, this, [this] {
        updateCommands();
        markElsewhere();
    });
    connect(m_elsewhereShow, &QToolButton::clicked, this, &EditorPanel::showDraftsRow);
    connect(m_workspace, &WorkspaceModel::loaded, this, [this] {
        openDraftsOfWorkspace();
        updateCommands();
        markElsewhere();
        m_checkTimer->start();
    });
    if (!draftDirectory.empty())
        restoreDrafts();
    showDraft(m_tabs->currentIndex());
}

EditorPanel::~EditorPanel()
{
    for (const auto &open : m_open)
        save(*open, true);
    m_edit->setSource(nullptr, nullptr);
}

/// Drafts belong to the workspace that they were begun in: each has a folder of its own.
void EditorPanel::openDraftsOfWorkspace()
{
    if (m_draftsOfAll.empty() || !m_workspace->isLoaded())
        return;
    const QString id = workspaceId(QString::fromStdString(m_workspace->workspace().root.string()));
    if (id == m_draftsOf)
        return;
    for (const auto &open : m_open)
        save(*open, true);
    m_edit->setSource(nullptr, nullptr);
    m_open.clear();
    {
        const QSignalBlocker quiet(m_tabs);
        while (m_tabs->count() > 0)
            m_tabs->removeTab(0);
    }
    m_draftsOf = id;
    m_store = std::make_shared<DraftStore>(m_draftsOfAll / id.toStdString());
    restoreDrafts();
    showDraft(m_tabs->currentIndex());
}

void EditorPanel::restoreDrafts()
{
    std::vector<QString> problems;
    for (const Draft &draft : m_store->readAll(&problems))
        add(draft);
    for (const QString &problem : problems)
        QMetaObject::invokeMethod(
            this, [this, problem] { emit message(problem); }, Qt::QueuedConnection);
}

EditorPanel::OpenDraft *EditorPanel::current() const
{
    const int index = m_tabs->currentIndex();
    return index < 0 || index >= draftCount() ? nullptr : m_open[static_cast<std::size_t>(index)].get();
}

void EditorPanel::add(const Draft &draft)
{
    auto open = std::make_unique<OpenDraft>();
    open->draft = draft;
    open->document = std::make_unique<QTextDocument>();
    open->document->setDocumentLayout(new QPlainTextDocumentLayout(open->document.get()));
    open->document->setPlainText(draft.text);
    open->document->setModified(false);
    open->highlighter =
        std::make_unique<DocumentHighlighter>(open->document.get(), languageOfFile(draft.fileName));
    connect(open->document.get(), &QTextDocument::contentsChanged, this, &EditorPanel::onEdited);
    m_open.push_back(std::move(open));
    const int tab = m_tabs->addTab(QString());
    auto *close = new QToolButton(m_tabs);
    close->setIcon(icon(QStringLiteral("close")));
    close->setAutoRaise(true);
    close->setFocusPolicy(Qt::NoFocus);
    close->setFixedSize(20, 20);
    close->setToolTip(tr("Discard this draft"));
    close->setAccessibleName(close->toolTip());
    m_tabs->setTabButton(tab, QTabBar::RightSide, close);
    connect(close, &QToolButton::clicked, this, [this, id = draft.id] {
        for (int i = 0; i < draftCount(); ++i) {
            if (m_open[static_cast<std::size_t>(i)]->draft.id == id) {
                closeDraft(i);
                return;
            }
        }
    });
    updateTabText(draftCount() - 1);
    m_tabs->setCurrentIndex(draftCount() - 1);
}

void EditorPanel::updateTabText(int index)
{
    const Draft &draft = m_open[static_cast<std::size_t>(index)]->draft;
    const bool changed = draft.text != draft.parentText;
    const bool elsewhere = isElsewhere(draft);
    const QString text = changed ? tr("Draft of %1 · %2 •").arg(draft.parentRow, draft.lineageKey)
                                 : tr("Draft of %1 · %2").arg(draft.parentRow, draft.lineageKey);
    m_tabs->setTabText(index, elsewhere ? QStringLiteral("↗ ") + text : text);
    QString tip = changed ? tr("Changed. Saved as a draft; no file of the workspace is touched.")
                          : tr("The same as %1 so far.").arg(draft.parentRow);
    if (elsewhere)
        tip += QLatin1Char('\n')
               + tr("Of %1, another lineage than the one that is shown.").arg(draft.lineageKey);
    m_tabs->setTabToolTip(index, tip);
}

void EditorPanel::showDraft(int)
{
    OpenDraft *open = current();
    m_pages->setCurrentIndex(open ? 1 : 0);
    m_tabs->setVisible(open);
    setFocusProxy(open ? static_cast<QWidget *>(m_edit) : m_emptyButton);
    m_edit->setSource(open ? open->document.get() : nullptr, open ? open->highlighter.get() : nullptr);
    m_checkLine->setWhole({});
    if (open) {
        QTextCursor cursor(open->document.get());
        cursor.setPosition(std::clamp(open->draft.cursor, 0, open->document->characterCount() - 1));
        m_edit->setTextCursor(cursor);
    }
    markElsewhere();
    if (m_find->isVisible() && open) {
        (void)search();
        showMatchCount();
    }
    if (open && open->trial)
        showTrial(*open);
    else
        m_verdict->clear();
    updateCommands();
    m_checkTimer->start();
}

std::pair<QString, QString> EditorPanel::texts() const
{
    const OpenDraft *open = current();
    return open ? std::pair(asShown(open->draft.parentText), asShown(open->draft.text))
                : std::pair<QString, QString>();
}

QString EditorPanel::parentRow() const
{
    const OpenDraft *open = current();
    return open ? open->draft.parentRow : QString();
}

QString EditorPanel::parentLineage() const
{
    const OpenDraft *open = current();
    return open ? open->draft.lineageKey : QString();
}

const gate::Trial *EditorPanel::parentTrial() const
{
    const OpenDraft *open = current();
    const lineage::Lineage *lineage = open ? m_workspace->lineage(open->draft.lineageKey) : nullptr;
    const auto row = lineage ? lineage::findRow(*lineage, open->draft.parentRow.toStdString()) : std::nullopt;
    return row ? row->trial : nullptr;
}

bool EditorPanel::parentIsMeasured(const gate::Trial &trial) const
{
    const OpenDraft *open = current();
    return open && files::sha256Hex(open->draft.parentText.toStdString()) == trial.candidate;
}

/// Says so when the trial is of another text than the one that stands there.
void EditorPanel::showTrial(const OpenDraft &open)
{
    m_verdict->setTrial(*open.trial);
    m_verdict->setStale(asShown(open.draft.text) != asShown(open.judged));
}

bool EditorPanel::openSelected()
{
    return openRow(m_selection->lineageKey(), m_selection->row());
}

bool EditorPanel::openRow(const QString &lineageKey, const QString &row)
{
    const lineage::Lineage *lineage = m_workspace->lineage(lineageKey);
    const auto found = lineage ? lineage::findRow(*lineage, row.toStdString()) : std::nullopt;
    if (!found) {
        emit message(tr("Choose a state in the lineage first."));
        return false;
    }
    const auto bytes = kernel::readCandidateText(found->file);
    if (!bytes) {
        emit message(QString::fromStdString(bytes.error().message));
        return false;
    }
    const QString file = QString::fromStdString(found->file.filename().string());
    add(Draft::begin(lineageKey, row, file, QString::fromStdString(*bytes)));
    m_edit->setFocus();
    return true;
}

void EditorPanel::onEdited()
{
    OpenDraft *open = current();
    if (!open || sender() != open->document.get())
        return;
    const QString text = open->document->toPlainText();
    if (text == open->draft.text)
        return; // only its looks changed
    open->draft.text = text;
    open->draft.cursor = m_edit->textCursor().position();
    open->isDirty = true;
    if (!open->fromLog.empty()) {
        open->fromLog.clear(); // its lines are no longer those of the text
    }
    m_verdict->setStale(open->trial && asShown(open->draft.text) != asShown(open->judged));
    updateTabText(m_tabs->currentIndex());
    updateCommands();
    m_checkTimer->start();
    m_saveTimer->start();
    if (m_find->isVisible()) {
        (void)search();
        showMatchCount();
    }
}

void EditorPanel::save(OpenDraft &open, bool now)
{
    if (!open.isDirty)
        return;
    open.isDirty = false;
    const auto write = [store = m_store, draft = open.draft, sequence = m_store->nextSequence()] {
        return store->save(draft, sequence);
    };
    if (now) {
        const Status saved = write();
        if (!saved)
            qWarning("%s", saved.error().message.c_str());
        return;
    }
    // Not through a JobSlot: a save that was begun must not be dropped for that of another draft.
    backgroundPool()->start([write] {
        const Status saved = write();
        if (!saved)
            qWarning("%s", saved.error().message.c_str());
    });
}

void EditorPanel::closeDraft(int index)
{
    const Draft &draft = m_open[static_cast<std::size_t>(index)]->draft;
    m_tabs->setCurrentIndex(index);
    if (draft.text == draft.parentText) {
        discardDraft();
        return;
    }
    auto *question =
        new QMessageBox(QMessageBox::Question, tr("Discard the draft?"),
                        tr("The draft from %1 has changes that no trial has recorded.").arg(draft.parentRow),
                        QMessageBox::Discard | QMessageBox::Cancel, this);
    question->setAttribute(Qt::WA_DeleteOnClose);
    connect(question, &QMessageBox::finished, this, [this, id = draft.id](int button) {
        const OpenDraft *open = current();
        if (button == QMessageBox::Discard && open && open->draft.id == id)
            discardDraft();
    });
    question->open();
}

void EditorPanel::discardDraft()
{
    const int index = m_tabs->currentIndex();
    if (!current())
        return;
    const std::unique_ptr<OpenDraft> gone = std::move(m_open[static_cast<std::size_t>(index)]);
    m_edit->setSource(nullptr, nullptr);
    m_open.erase(m_open.begin() + index);
    {
        const QSignalBlocker quiet(m_tabs);
        m_tabs->removeTab(index);
    }
    const Status removed = m_store->remove(gone->draft.id);
    if (!removed)
        emit message(QString::fromStdString(removed.error().message));
    showDraft(m_tabs->currentIndex());
}

void EditorPanel::check()
{
    const OpenDraft *open = current();
    if (!open)
        return;
    const lineage::Lineage *lineage = m_workspace->lineage(open->draft.lineageKey);
    const workload::Workload *found =
        lineage ? m_workspace->workload(QString::fromStdString(lineage->workload)) : nullptr;
    const std::optional<workload::Workload> workload = found ? std::optional(*found) : std::nullopt;
    const auto parent =
        lineage ? lineage::findRow(*lineage, open->draft.parentRow.toStdString()) : std::nullopt;
    m_checking.start(
        interactivePool(),
        [this, text = open->draft.text.toStdString(), name = open->draft.fileName.toStdString(), workload,
         facts = factsOf(parent ? parent->trial : nullptr, lineage ? lineage->platform : std::string())](
            const std::stop_token &, const JobSlot::Post &post) {
            PlanCheck check = checkCandidate(text, name, workload ? &*workload : nullptr, facts);
            post([this, check = std::move(check)] { showCheck(check); });
        });
}

void EditorPanel::showCheck(const PlanCheck &check)
{
    OpenDraft *open = current();
    if (!open)
        return;
    std::vector<Diagnostic> all = check.diagnostics;
    all.insert(all.end(), open->fromLog.begin(), open->fromLog.end());
    m_edit->setDiagnostics(all);
    QPalette colors = palette();
    if (all.empty()) {
        m_checkLine->setWhole(check.summary.isEmpty() ? tr("✓ The launch plan is valid")
                                                      : tr("✓ Launch plan: %1").arg(check.summary));
        colors.setColor(QPalette::WindowText, Theme::current().dim);
    } else {
        const Diagnostic &first = all.front();
        const QString place = first.line == 0 ? QString()
                              : first.column == 0
                                  ? tr("line %1: ").arg(first.line)
                                  : QStringLiteral("%1:%2: ").arg(first.line).arg(first.column);
        m_checkLine->setWhole(tr("✕ %1%2").arg(place, first.message));
        colors.setColor(QPalette::WindowText, Theme::current().bad);
    }
    m_checkLine->setPalette(colors);
}

/// The text that stands there was gated, and is neither faster nor slower than its parent for certain.
bool EditorPanel::isLeftOpen(const OpenDraft &open) const
{
    const gate::Comparison *comparison = open.trial ? open.trial->comparison("parent") : nullptr;
    return comparison && comparison->change == gate::Change::Undecided
           && asShown(open.draft.text) == asShown(open.judged);
}

void EditorPanel::requestGate()
{
    const OpenDraft *open = current();
    if (!open)
        return;
    const lineage::Lineage *lineage = m_workspace->lineage(open->draft.lineageKey);
    const workload::Workload *workload =
        lineage ? m_workspace->workload(QString::fromStdString(lineage->workload)) : nullptr;
    if (!workload) {
        emit message(
            tr("Cannot gate the draft: the workspace has no lineage %1.").arg(open->draft.lineageKey));
        return;
    }
    gate::GateRequest request;
    request.workloadDirectory = workload->directory;
    request.candidateText = open->draft.text.toStdString();
    request.candidateName = open->draft.fileName.toStdString();
    request.parentText = open->draft.parentText.toStdString();
    request.quick = true; // one waits for it
    if (isLeftOpen(*open))
        request.profileSeconds = longerSeconds;
    m_gatedId = open->draft.id;
    m_gatedText = open->draft.text;
    emit gateRequested(request, open->draft.lineageKey, open->draft.parentRow);
}

EditorPanel::OpenDraft *EditorPanel::gated() const
{
    for (const auto &open : m_open) {
        if (open->draft.id == m_gatedId)
            return open.get();
    }
    return nullptr;
}

void EditorPanel::showRunning(const QString &doing, const QString &text)
{
    if (gated() && gated() == current())
        m_verdict->setRunning(doing, text);
}

void EditorPanel::showFailure(const QString &text)
{
    if (gated() && gated() == current())
        m_verdict->setFailure(text);
}

void EditorPanel::showVerdict(const gate::Trial &trial)
{
    OpenDraft *open = gated();
    if (!open)
        return;
    open->trial = trial;
    open->judged = m_gatedText;
    // The log's lines are those of the text that was sent.
    const bool fits = trial.verdict.stage == gate::Stage::Compile && open->draft.text == m_gatedText;
    open->fromLog =
        fits ? diagnosticsFromLog(QString::fromStdString(trial.verdict.log)) : std::vector<Diagnostic>{};
    if (open != current())
        return; // shown when its tab is
    showTrial(*open);
    check();
}

} // namespace klineage::ui
