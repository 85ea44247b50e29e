// SPDX-License-Identifier: GPL-3.0-or-later
// Comments on the code in DiffPanel: marks beside the lines, and the question for a new one.
#include "ui/diff/commentbar.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/reviewername.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/keyscope.h"

#include <algorithm>
#include <utility>

namespace klineage::ui {

std::optional<lineage::Step> DiffPanel::shownStep() const
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    return lineage ? lineage::findStep(*lineage, m_selection->row().toStdString(),
                                       m_selection->baseline().toStdString())
                   : std::nullopt;
}

void DiffPanel::refreshComments(const Document &shown)
{
    m_comments.reset();
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    if (const auto step = shownStep(); step && tab() == DiffTab::Source && !lineage->comments.empty())
        m_comments =
            makeComments(lineage::threadsOn(lineage->comments, step->left ? step->left->id : std::string(),
                                            step->right.id),
                         shown);
    m_view->setComments(m_comments);
    if (!m_commentWanted.isEmpty())
        showComment(std::exchange(m_commentWanted, QString()));
}

void DiffPanel::comment()
{
    const auto step = shownStep();
    if (!step || !isUpToDate()) {
        emit message(tr("Choose a step of a lineage, then a line of its code, to say something about it."));
        return;
    }
    if (tab() != DiffTab::Source) {
        emit message(tr("Comments go to lines of the source: choose the Source tab."));
        return;
    }
    const std::optional<DiffView::ChosenLines> lines = m_view->chosenLines();
    const DocumentPtr &document = m_view->document();
    if (!lines || document->side(lines->side).sha.empty()) {
        emit message(tr("No line is chosen: click one, or go to it with the arrow keys, and say it again."));
        return;
    }
    const SideText &text = document->side(lines->side);
    auto place = lineage::placeInText(text.text.bytes(), lines->first + 1, lines->last + 1);
    if (!place) {
        emit message(QString::fromStdString(place.error().message));
        return;
    }
    const bool isLeft = lines->side == Side::Left;
    place->from = step->left ? step->left->id : std::string();
    place->to = step->right.id;
    place->side = isLeft ? lineage::StepSide::Before : lineage::StepSide::After;
    place->sha = text.sha;
    const QString where = tr("%1 of %2")
                              .arg(linesInWords(place->firstLine, place->lastLine),
                                   rowLabel(isLeft ? *step->left : step->right));
    askComment(m_selection->lineageKey(), *place,
               tr("Comment on %1 (Enter keeps it, Esc cancels)").arg(where));
}

/// With the name that is asked for once, before anything is typed that calling it off would lose.
void DiffPanel::askComment(const QString &lineage, const lineage::CommentPlace &place,
                           const QString &question)
{
    if (!isReviewerNameSet()) {
        m_commentBar->ask(tr("Your name, for the history (asked once; Enter goes on)"), tr("Go on"),
                          reviewerName(), [=, this](const QString &name) {
                              setReviewerName(name);
                              askComment(lineage, place, question);
                          });
        return;
    }
    m_commentBar->ask(question, tr("Comment"), {}, [this, lineage, place](const QString &words) {
        lineage::CommentEvent event;
        event.text = words.toStdString();
        event.place = place;
        emit commentGiven(lineage, event);
    });
}

void DiffPanel::showComment(const QString &id)
{
    setTab(DiffTab::Source);
    if (!isUpToDate()) { // it is on its way
        m_commentWanted = id;
        return;
    }
    const CommentMark *mark = m_comments ? m_comments->find(id) : nullptr;
    if (!mark) {
        emit message(tr("The step that is shown has no such comment."));
        return;
    }
    m_view->showLine(mark->side, mark->lines.first - 1);
    m_view->setFocus(Qt::OtherFocusReason);
    emit message(mark->words);
}

/// From comment to comment, down the left text and then down the right one.
void DiffPanel::goToComment(int step)
{
    std::vector<const CommentMark *> marks;
    for (const Side side : {Side::Left, Side::Right}) {
        if (!m_comments)
            break;
        for (const CommentMark &mark : m_comments->side(side))
            marks.push_back(&mark);
    }
    if (marks.empty()) {
        emit message(tr("No comment is on the code of this step. One is made with: %1")
                         .arg(textWithKey(m_commentAction->text(), m_commentAction)));
        return;
    }
    const auto last = std::find_if(marks.begin(), marks.end(),
                                   [this](const CommentMark *mark) { return mark->id == m_commentShown; });
    const int count = static_cast<int>(marks.size());
    const int next = last == marks.end() ? (step > 0 ? 0 : count - 1)
                                         : (static_cast<int>(last - marks.begin()) + step + count) % count;
    m_commentShown = marks[static_cast<std::size_t>(next)]->id;
    showComment(m_commentShown);
}

/// What was said of a line that somebody went to.
void DiffPanel::sayComments(Side side)
{
    const QString words = m_view->commentsOfRow(m_view->currentRow(), side);
    if (!words.isEmpty())
        emit message(words);
}

} // namespace klineage::ui
