// SPDX-License-Identifier: GPL-3.0-or-later
// The commands of CardPanel: verdicts on the card, or on all that are selected together; and answers to comments on the code.
#include "core/lineage/step.h"
#include "ui/cards/cardpanel.h"
#include "ui/cards/cardreviewer.h"
#include "ui/cards/commentshtml.h"
#include "ui/cards/verdictbar.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/keyscope.h"

#include <QAction>
#include <QScopedValueRollback>

namespace klineage::ui {

QAction *CardPanel::command(const QString &id, const QString &text, const QString &tip,
                            const QKeySequence &key, void (CardPanel::*slot)())
{
    auto *action = new QAction(text, this);
    action->setObjectName(id);
    action->setToolTip(tip);
    action->setShortcut(key);
    connect(action, &QAction::triggered, this, slot);
    return action;
}

void CardPanel::buildCommands()
{
    const auto key = [](Qt::Key letter) { return QKeySequence(letter); };
    QAction *approve = command(QStringLiteral("card.approve"), tr("Approve the card"),
                               tr("Approve this revision"), key(Qt::Key_A), &CardPanel::approve);
    QAction *reject = command(QStringLiteral("card.reject"), tr("Reject the card…"),
                              tr("Reject this revision with a reason"), key(Qt::Key_X), &CardPanel::reject);
    QAction *needs = command(QStringLiteral("card.needEvidence"), tr("Ask for evidence on the card…"),
                             tr("Say what evidence is missing"), key(Qt::Key_E), &CardPanel::needEvidence);
    QAction *comment = command(QStringLiteral("card.comment"), tr("Comment on the card…"),
                               tr("Say something that is no verdict; the history keeps it"), key(Qt::Key_C),
                               &CardPanel::comment);
    QAction *edit =
        command(QStringLiteral("card.edit"), tr("Edit the card's fields"),
                tr("Edit the fields as text; a saved edit is a new revision"), {}, &CardPanel::edit);
    QAction *compare =
        command(QStringLiteral("card.compare"), tr("Compare the card's revisions"),
                tr("Two revisions of the card side by side"), key(Qt::Key_D), &CardPanel::compareRevisions);
    m_verdictCommands = {approve, reject, needs, comment, edit, compare};
    for (QAction *letter : {approve, reject, needs, comment, compare})
        actInAllPanes(letter);
    m_undo =
        command(QStringLiteral("card.undo"), tr("Undo the last verdict, edit or comment here"),
                tr("Take back the last verdict, edit or comment of this session on this card or step. The "
                   "history keeps both"),
                QKeySequence::Undo, &CardPanel::undo);
    m_redo = command(QStringLiteral("card.redo"), tr("Redo the last verdict, edit or comment here"),
                     tr("Do again what the last undo on this card or step took back"),
                     QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), &CardPanel::redo);
    m_setAuthor =
        command(QStringLiteral("card.author"), tr("Set the reviewer's name…"),
                tr("The name that the history has beside your verdicts"), {}, &CardPanel::askAuthor);
    m_bar->setButtons({{{approve, tr("Approve"), tr("Approve"), true},
                        {reject, tr("Reject…"), tr("Reject…")},
                        {needs, tr("Needs evidence…"), tr("Evidence…")}},
                       {{comment, tr("Comment…"), tr("Comment…")},
                        {edit, tr("Edit"), tr("Edit")},
                        {m_undo, tr("Undo"), tr("Undo")},
                        {m_redo, tr("Redo"), tr("Redo")}}});
    connect(m_reviewer, &CardReviewer::historyChanged, this, &CardPanel::updateHistory);
    // Who goes elsewhere leaves the cards behind that verdicts went on from.
    const auto leave = [this] {
        if (!m_isGoingOn)
            m_wentOnFrom.clear();
        updateHistory();
    };
    connect(m_selection, &Selection::lineageChanged, this, leave);
    connect(m_selection, &Selection::rowChanged, this, leave);
    connect(m_selection, &Selection::cardChanged, this, leave);
    connect(m_selection, &Selection::markedCardsChanged, this, &CardPanel::updateHistory);
    updateHistory();
}

/// The card and the step that are looked at, and the cards that verdicts went on from to them.
CardReviewer::Place CardPanel::place() const
{
    return {judgedCards() + m_wentOnFrom, m_selection->lineageKey(), m_selection->row()};
}

void CardPanel::updateHistory()
{
    m_undo->setEnabled(m_reviewer->canUndo(place()));
    m_redo->setEnabled(m_reviewer->canRedo(place()));
}

void CardPanel::undo()
{
    const CardReviewer::Place here = place();
    const QScopedValueRollback<bool> goingOn(m_isGoingOn, true); // to the card that it is of
    m_wentOnFrom = here.cards;
    m_reviewer->undo(here);
}

void CardPanel::redo()
{
    const CardReviewer::Place here = place();
    const QScopedValueRollback<bool> goingOn(m_isGoingOn, true);
    m_wentOnFrom = here.cards;
    m_reviewer->redo(here);
}

/// What a verdict goes to: the cards that were selected together, else the one that is shown.
QStringList CardPanel::judgedCards() const
{
    QStringList cards = m_selection->markedCards();
    cards.removeIf([this](const QString &card) { return !m_workspace->card(card); });
    if (cards.isEmpty() && m_workspace->card(m_selection->card()))
        cards << m_selection->card();
    return cards;
}

/// With the name that is asked for once, before anything is typed that calling it off would lose.
void CardPanel::withAuthor(const std::function<void()> &act)
{
    if (CardReviewer::isAuthorSet()) {
        act();
        return;
    }
    m_bar->show(); // also where there is no card
    m_bar->ask(tr("Your name, for the history (asked once; Enter goes on)"), tr("Go on"),
               CardReviewer::author(), [act](const QString &name) {
                   CardReviewer::setAuthor(name);
                   act();
               });
}

void CardPanel::give(const QStringList &cards, skills::ReviewVerdict verdict, const QString &reason)
{
    m_reviewer->review(cards, verdict, reason);
    if (verdict == skills::ReviewVerdict::Comment)
        return;
    const QScopedValueRollback<bool> goingOn(m_isGoingOn, true);
    m_wentOnFrom << cards;
    emit judged(cards.back());
}

void CardPanel::approve()
{
    const QStringList cards = judgedCards();
    if (cards.size() == 1)
        withAuthor([this, cards] { give(cards, skills::ReviewVerdict::Approve, {}); });
    else if (!cards.isEmpty())
        withAuthor([this, cards] {
            m_bar->confirm(
                tr("Approve %1 cards? One undo takes all of it back. (Enter approves, Esc cancels)")
                    .arg(cards.size()),
                tr("Approve %1").arg(cards.size()),
                [this, cards] { give(cards, skills::ReviewVerdict::Approve, {}); });
        });
}

void CardPanel::reject()
{
    const qsizetype count = judgedCards().size();
    askReason(skills::ReviewVerdict::Reject,
              count > 1 ? tr("Why are these %1 cards rejected? (Enter rejects all, Esc cancels)").arg(count)
                        : tr("Why is it rejected? (Enter rejects, Esc cancels)"),
              count > 1 ? tr("Reject %1").arg(count) : tr("Reject"));
}

void CardPanel::needEvidence()
{
    const qsizetype count = judgedCards().size();
    askReason(skills::ReviewVerdict::NeedsEvidence,
              count > 1
                  ? tr("Which evidence is missing of these %1 cards? (Enter asks, Esc cancels)").arg(count)
                  : tr("Which evidence is missing? (Enter asks, Esc cancels)"),
              count > 1 ? tr("Ask of %1").arg(count) : tr("Ask"));
}

void CardPanel::comment()
{
    const qsizetype count = judgedCards().size();
    askReason(skills::ReviewVerdict::Comment,
              count > 1 ? tr("Your comment on these %1 cards (Enter keeps it, Esc cancels)").arg(count)
                        : tr("Your comment (Enter keeps it, Esc cancels)"),
              count > 1 ? tr("Comment on %1").arg(count) : tr("Comment"));
}

void CardPanel::askReason(skills::ReviewVerdict verdict, const QString &question, const QString &confirm)
{
    const QStringList cards = judgedCards();
    if (cards.isEmpty())
        return;
    withAuthor([=, this] {
        m_bar->ask(question, confirm, {},
                   [this, cards, verdict](const QString &reason) { give(cards, verdict, reason); });
    });
}

QString CardPanel::stepComments() const
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const auto step = lineage ? lineage::findStep(*lineage, m_selection->row().toStdString(),
                                                  m_selection->baseline().toStdString())
                              : std::nullopt;
    return step ? commentsHtml(*lineage, *step) : QString();
}

/// "comment:<id>", "reply:<id>", "resolve:<id>", "reopen:<id>"
void CardPanel::answerComment(const QString &link)
{
    const QString what = link.section(QLatin1Char(':'), 0, 0);
    const QString about = link.section(QLatin1Char(':'), 1);
    if (what == QLatin1String("comment")) {
        emit commentWanted(about);
    } else if (what == QLatin1String("resolve")) {
        withAuthor([this, about] { give(lineage::CommentKind::Resolve, about, {}); });
    } else if (what == QLatin1String("reopen")) {
        withAuthor([this, about] { give(lineage::CommentKind::Reopen, about, {}); });
    } else if (what == QLatin1String("reply")) {
        withAuthor([this, about] {
            m_bar->show();
            m_bar->ask(
                tr("Your reply (Enter keeps it, Esc cancels)"), tr("Reply"), {},
                [this, about](const QString &text) { give(lineage::CommentKind::Reply, about, text); });
        });
    }
}

void CardPanel::give(lineage::CommentKind kind, const QString &about, const QString &text)
{
    lineage::CommentEvent event;
    event.kind = kind;
    event.about = about.toStdString();
    event.text = text.toStdString();
    m_reviewer->comment(m_selection->lineageKey(), event);
}

void CardPanel::askAuthor()
{
    m_bar->show(); // also where there is no card
    m_bar->ask(tr("Your name, for the history"), tr("Set"), CardReviewer::author(),
               [this](const QString &name) {
                   CardReviewer::setAuthor(name);
                   refresh();
                   emit message(tr("Verdicts are signed %1 from now on.").arg(name));
               });
}

} // namespace klineage::ui
