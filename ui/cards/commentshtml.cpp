// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/commentshtml.h"

#include "ui/cards/cardmarkup.h"
#include "ui/diff/chain.h"
#include "ui/diff/render/comments.h"

namespace klineage::ui {

namespace {

using markup::coloured;
using markup::escaped;
using markup::label;
using markup::paragraph;
using markup::tr;

QString commentLink(const char *scheme, const std::string &id, const QString &text)
{
    return QStringLiteral("<a href='%1:%2' style='color:%3'>%4</a>")
        .arg(QLatin1String(scheme), escaped(id), Theme::current().accent.name(), text.toHtmlEscaped());
}

QString saidHtml(const lineage::CommentEvent &event)
{
    return coloured(tr("%1 · %2").arg(escaped(event.author), escaped(event.time.substr(0, 16))),
                    Theme::current().dim)
           + QStringLiteral("<br>") + escaped(event.text);
}

QString threadHtml(const lineage::CommentThread &thread, const lineage::Step &step)
{
    const lineage::CommentPlace &place = thread.comment.place;
    const bool isBefore = place.side == lineage::StepSide::Before && step.left;
    const QString where =
        tr("%1 of %2")
            .arg(linesInWords(place.firstLine, place.lastLine), rowLabel(isBefore ? *step.left : step.right));
    const std::string &id = thread.comment.id;
    QString html = paragraph(commentLink("comment", id, where) + QStringLiteral(" <code>")
                             + escaped(place.excerpt.substr(0, place.excerpt.find('\n'))).trimmed()
                             + QStringLiteral("</code>"))
                   + paragraph(saidHtml(thread.comment));
    for (const lineage::CommentEvent &reply : thread.replies)
        html += QStringLiteral("<p style='margin:0 0 3px 14px'>%1</p>").arg(saidHtml(reply));
    const QString state =
        thread.isResolved
            ? coloured(tr("✓ resolved by %1").arg(escaped(thread.resolvedBy)), Theme::current().good)
                  + QStringLiteral(" · ") + commentLink("reopen", id, tr("Reopen"))
            : commentLink("resolve", id, tr("Resolve"));
    return html
           + QStringLiteral("<p style='margin:0 0 9px 0'>%1 · %2</p>")
                 .arg(commentLink("reply", id, tr("Reply…")), state);
}

} // namespace

QString commentsHtml(const lineage::Lineage &lineage, const lineage::Step &step)
{
    QString html =
        label(step.left ? tr("On the code of %1 → %2").arg(rowLabel(*step.left), rowLabel(step.right))
                        : tr("On the code of %1").arg(rowLabel(step.right)));
    const auto threads =
        lineage::threadsOn(lineage.comments, step.left ? step.left->id : std::string(), step.right.id);
    for (const lineage::CommentThread &thread : threads)
        html += threadHtml(thread, step);
    if (threads.empty())
        html += paragraph(
            coloured(tr("Nobody has said anything about it. C in the diff comments on the selected lines."),
                     Theme::current().dim));
    return html;
}

} // namespace klineage::ui
