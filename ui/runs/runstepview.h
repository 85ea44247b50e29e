// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/diffloader.h"
#include "ui/runs/steptexts.h"

#include <QWidget>

class QAction;
class QLabel;
class QPlainTextEdit;
class QStackedWidget;
class QTabBar;

namespace klineage::ui {

class AnswerPage;
class ChipLabel;
class DiffView;
class RunController;
class RunStore;
class StepCardsPage;
class WorkspaceModel;

/// The step of a run that is looked at: its candidate against the one it was made from, the prompt, the reply and the verdict. While
/// the run goes on here, what is being written; and where a person answers, the question and the field for the reply.
class RunStepView : public QWidget
{
    Q_OBJECT

public:
    enum Tab { Candidate, Prompt, Cards, Reply, Verdict, Live, Answer };

    /// workspace may be nullptr: cards are then no links.
    RunStepView(RunStore *store, RunController *controller, WorkspaceModel *workspace = nullptr,
                QWidget *parent = nullptr);

    void setTab(Tab tab);
    [[nodiscard]] Tab tab() const;
    [[nodiscard]] bool hasTab(Tab tab) const;
    [[nodiscard]] QPlainTextEdit *textOf(Tab tab) const; ///< nullptr for Candidate, Cards and Answer
    [[nodiscard]] AnswerPage *answerPage() const { return m_answer; }
    [[nodiscard]] StepCardsPage *cardsPage() const { return m_cards; }
    [[nodiscard]] DiffView *diff() const { return m_diff; }
    /// Whether what is on the screen belongs to the step that is selected.
    [[nodiscard]] bool isUpToDate() const { return !m_isReading && m_wantedKey == m_shownKey; }

    /// Goes to the question that waits for a person; the window adds it, so that its key acts anywhere.
    [[nodiscard]] QAction *answerCommand() const { return m_answerCommand; }

signals:
    void questionArrived(); ///< a person is asked, who may be looking elsewhere
    void message(const QString &text);
    void cardRequested(const QString &name); ///< one of the step's cards should be shown

private:
    void makeCommands();
    void stepTab(int by);
    void refresh();
    void showHeader();
    void showCandidate(const RunEntry &run, const run::StepRecord &step);
    void showMessage(const QString &text);
    void showTexts(const StepTexts &texts);
    void showLive();
    void showQuestion();

    RunStore *m_store;
    RunController *m_controller;
    DiffLoader m_loader;
    JobSlot m_reader;
    QString m_wantedKey;
    QString m_shownKey;
    QString m_shownStep; ///< "run/3": what the texts belong to
    bool m_isReading = false;
    ChipLabel *m_chip;
    QLabel *m_title;
    QLabel *m_reason;
    QTabBar *m_tabs;
    QLabel *m_sides; ///< what the two sides of the candidate are
    QStackedWidget *m_pages;
    DiffView *m_diff;
    QPlainTextEdit *m_prompt;
    StepCardsPage *m_cards;
    QPlainTextEdit *m_reply;
    QPlainTextEdit *m_verdict;
    QPlainTextEdit *m_live;
    AnswerPage *m_answer;
    QAction *m_answerCommand = nullptr;
};

} // namespace klineage::ui
