// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runstepview.h"

#include "ui/diff/view/diffview.h"
#include "ui/runs/answerpage.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runstore.h"
#include "ui/runs/stepcardspage.h"
#include "ui/runs/verdicttext.h"
#include "ui/style/chip.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QStackedWidget>
#include <QTabBar>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

QPlainTextEdit *readOnlyText(const QString &name)
{
    auto *text = new QPlainTextEdit;
    text->setReadOnly(true);
    text->setFont(codeFont());
    text->setFrameShape(QFrame::NoFrame);
    text->setAccessibleName(name);
    text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    return text;
}

/// Keeps what a person scrolled to when the text only grew or stayed.
void setTextCalmly(QPlainTextEdit *edit, const QString &text)
{
    if (edit->toPlainText() != text)
        edit->setPlainText(text);
}

} // namespace

RunStepView::RunStepView(RunStore *store, RunController *controller, WorkspaceModel *workspace,
                         QWidget *parent)
    : QWidget(parent)
    , m_store(store)
    , m_controller(controller)
    , m_chip(new ChipLabel)
    , m_title(new QLabel)
    , m_reason(new QLabel)
    , m_tabs(new QTabBar)
    , m_sides(new QLabel)
    , m_pages(new QStackedWidget)
    , m_diff(new DiffView)
    , m_prompt(readOnlyText(tr("Prompt")))
    , m_cards(new StepCardsPage(workspace))
    , m_reply(readOnlyText(tr("Reply")))
    , m_verdict(readOnlyText(tr("Verdict")))
    , m_live(readOnlyText(tr("What is being written")))
    , m_answer(new AnswerPage(controller))
{
    m_title->setFont(strongFont());
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_reason->setForegroundRole(QPalette::PlaceholderText);
    m_reason->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_sides->setToolTip(tr("sha-256 of the text that the candidate was made from, and of its own"));
    m_sides->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_sides->setForegroundRole(QPalette::PlaceholderText);
    m_sides->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_diff->setAccessibleName(tr("Candidate of the step beside the one it was made from"));
    m_diff->nameCommands(QStringLiteral("run"));
    m_tabs->setAccessibleName(tr("Parts of the step"));
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    for (const QString &tab : {tr("Candidate"), tr("Prompt"), tr("Cards"), tr("Reply"), tr("Verdict"),
                               tr("Now"), tr("Your answer")})
        m_tabs->addTab(tab);
    m_tabs->setTabVisible(Live, false);
    m_tabs->setTabVisible(Answer, false);
    const QWidgetList pages{m_diff, m_prompt, m_cards, m_reply, m_verdict, m_live, m_answer};
    for (QWidget *page : pages)
        m_pages->addWidget(page);

    auto *head = new QHBoxLayout;
    head->setContentsMargins(10, 6, 10, 0);
    head->setSpacing(8);
    head->addWidget(m_chip);
    head->addWidget(m_title);
    head->addWidget(m_reason, 1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(head);
    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(0, 0, 10, 0);
    bar->addWidget(m_tabs);
    bar->addWidget(m_sides, 1);
    layout->addLayout(bar);
    layout->addWidget(m_pages, 1);

    connect(m_tabs, &QTabBar::currentChanged, this, [this](int tab) {
        m_pages->setCurrentIndex(tab);
        m_sides->setVisible(tab == Candidate);
    });
    connect(&m_loader, &DiffLoader::loaded, this, [this](const QString &key, const DocumentPtr &document) {
        if (key != m_wantedKey)
            return;
        m_shownKey = key;
        m_diff->setDocument(document, false);
    });
    connect(store, &RunStore::stepChanged, this, &RunStepView::refresh);
    connect(store, &RunStore::changed, this, &RunStepView::refresh);
    connect(store, &RunStore::currentChanged, this, &RunStepView::showLive);
    connect(controller, &RunController::progressed, this, &RunStepView::showLive);
    connect(controller, &RunController::questionChanged, this, &RunStepView::showQuestion);
    connect(m_answer, &AnswerPage::message, this, &RunStepView::message);
    connect(m_cards, &StepCardsPage::cardRequested, this, &RunStepView::cardRequested);
    makeCommands();
    refresh();
    showLive();
}

void RunStepView::makeCommands()
{
    const auto add = [this](const char *name, const QString &text, const QKeySequence &key,
                            const std::function<void()> &act) {
        auto *action = new QAction(text, this);
        action->setObjectName(QStringLiteral("run.") + QLatin1String(name));
        action->setShortcut(key);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        connect(action, &QAction::triggered, this, act);
        addAction(action);
        return action;
    };
    add("nextTab", tr("Next part of the step"), QKeySequence(Qt::CTRL | Qt::Key_PageDown),
        [this] { stepTab(1); });
    add("previousTab", tr("Previous part of the step"), QKeySequence(Qt::CTRL | Qt::Key_PageUp),
        [this] { stepTab(-1); });
    m_answerCommand = add("answer", tr("Answer the run's question"),
                          QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_J), [this] {
                              emit questionArrived(); // it may be looked at elsewhere
                              setTab(Answer);
                              m_answer->setFocus(Qt::ShortcutFocusReason);
                          });
    m_answerCommand->setShortcutContext(Qt::WindowShortcut);
    m_answerCommand->setEnabled(false);
}

/// Round past the last one; the focus goes along, so that the next key is meant for what is seen.
void RunStepView::stepTab(int by)
{
    int tab = m_tabs->currentIndex();
    do
        tab = (tab + by + m_tabs->count()) % m_tabs->count();
    while (!m_tabs->isTabVisible(tab));
    m_tabs->setCurrentIndex(tab);
    m_pages->currentWidget()->setFocus(Qt::ShortcutFocusReason);
}

void RunStepView::setTab(Tab tab)
{
    m_tabs->setCurrentIndex(tab);
}

RunStepView::Tab RunStepView::tab() const
{
    return static_cast<Tab>(m_tabs->currentIndex());
}

bool RunStepView::hasTab(Tab tab) const
{
    return m_tabs->isTabVisible(tab);
}

QPlainTextEdit *RunStepView::textOf(Tab tab) const
{
    return qobject_cast<QPlainTextEdit *>(m_pages->widget(tab)); // of the others not
}

void RunStepView::refresh()
{
    showHeader();
    const RunEntryPtr run = m_store->current();
    const run::StepRecord *step = run ? run->step(m_store->step()) : nullptr;
    const QString shown = step ? QStringLiteral("%1/%2").arg(run->id()).arg(step->number) : QString();
    if (!shown.isEmpty() && shown == m_shownStep)
        return; // a step that was written is never changed
    m_shownStep = shown;
    if (!step) {
        m_reader.cancel();
        m_isReading = false;
        showMessage(run ? tr("The run has made no step yet.")
                        : tr("Choose a run and one of its steps in the panel Runs, or start a run there."));
        showTexts({});
        m_verdict->clear();
        return;
    }
    showCandidate(*run, *step);
    const gate::Trial *trial = run->trialOf(*step);
    m_verdict->setPlainText(
        trial ? verdictText(*trial)
              : tr("The gate was not asked in this step.\n%1").arg(QString::fromStdString(step->reason)));
    m_isReading = true;
    m_reader.start(interactivePool(), [this, run, step](const std::stop_token &, const JobSlot::Post &post) {
        const StepTexts texts = readStepTexts(*run, *step);
        post([this, texts] {
            m_isReading = false;
            showTexts(texts);
        });
    });
}

void RunStepView::showHeader()
{
    const RunEntryPtr run = m_store->current();
    const run::StepRecord *step = run ? run->step(m_store->step()) : nullptr;
    m_chip->setChip(step ? chipOf(outcomeStyle(step->outcome)) : Chip{});
    m_title->setText(step ? tr("Step %1 · %2").arg(step->number).arg(QString::fromStdString(step->action))
                          : QString());
    QStringList parts;
    if (step && !step->title.empty())
        parts << QString::fromStdString(step->title);
    if (step && !step->reason.empty() && step->reason != step->title)
        parts << QString::fromStdString(step->reason);
    if (step && step->speedup > 0)
        parts.prepend(
            tr("%1 over %2")
                .arg(formatSpeedup(step->speedup), QString::fromStdString(run->summary.reference.name)));
    m_reason->setText(parts.join(QStringLiteral(" · ")));
    m_reason->setToolTip(parts.join(QLatin1Char('\n')));
}

void RunStepView::showCandidate(const RunEntry &run, const run::StepRecord &step)
{
    if (step.candidate.empty()) {
        showMessage(tr("The step made no candidate. %1").arg(QString::fromStdString(step.reason)));
        return;
    }
    DiffSpec spec;
    spec.right.file = run.candidateFile(step.candidate);
    spec.right.label = QString::fromStdString(step.candidate.substr(0, 12));
    if (!step.parent.empty() && step.parent != step.candidate) {
        spec.left = SideSpec{};
        spec.left->file = run.candidateFile(step.parent);
        spec.left->label = QString::fromStdString(step.parent.substr(0, 12));
    }
    m_sides->setText(spec.left ? tr("%1 → %2").arg(spec.left->label, spec.right.label) : spec.right.label);
    m_wantedKey = spec.key();
    if (const DocumentPtr document = m_loader.load(spec)) {
        m_shownKey = m_wantedKey;
        m_diff->setDocument(document, false);
    }
}

void RunStepView::showMessage(const QString &text)
{
    m_sides->clear();
    m_loader.cancel();
    m_wantedKey.clear();
    m_shownKey.clear();
    m_diff->setDocument(makeDocument(nullptr, makeSideMessage(text), {}), false);
}

void RunStepView::showTexts(const StepTexts &texts)
{
    setTextCalmly(m_prompt, texts.prompt);
    setTextCalmly(m_reply, texts.reply);
    m_cards->setCards(texts.cards);
}

void RunStepView::showLive()
{
    const bool live = m_controller->isRunning() && m_controller->progress().id == m_store->currentId();
    m_tabs->setTabVisible(Live, live);
    if (!live) {
        m_live->clear();
        return;
    }
    const RunProgress &progress = m_controller->progress();
    const QString text = progress.written.isEmpty()
                             ? progress.busy
                             : progress.busy + QStringLiteral("\n\n") + progress.written;
    const QString before = m_live->toPlainText();
    if (text == before)
        return;
    QScrollBar *bar = m_live->verticalScrollBar();
    const bool atEnd = bar->value() >= bar->maximum();
    if (!before.isEmpty() && text.startsWith(before)) {
        QTextCursor end(m_live->document());
        end.movePosition(QTextCursor::End);
        end.insertText(text.mid(before.size()));
    } else {
        m_live->setPlainText(text);
    }
    if (atEnd)
        bar->setValue(bar->maximum());
}

void RunStepView::showQuestion()
{
    const auto question = m_controller->question();
    m_answer->setQuestion(question);
    m_tabs->setTabVisible(Answer, question.has_value());
    m_answerCommand->setEnabled(question.has_value());
    if (!question)
        return;
    m_store->setCurrent(m_controller->progress().id);
    setTab(Answer);
    emit questionArrived();
}

} // namespace klineage::ui
