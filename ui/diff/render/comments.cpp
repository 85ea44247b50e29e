// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/comments.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>

namespace klineage::ui {

namespace {

QString commentText(const char *text)
{
    return QCoreApplication::translate("Comments", text);
}

/// "2026-11-27 18:40" of an ISO time; what is none, as it is.
QString shortTime(const std::string &time)
{
    QString text = QString::fromStdString(time);
    return text.size() >= 16 && text[10] == QLatin1Char('T') ? text.left(16).replace(10, 1, QLatin1Char(' '))
                                                             : text;
}

QString said(const lineage::CommentEvent &event)
{
    return commentText("%1, %2: %3")
        .arg(QString::fromStdString(event.author), shortTime(event.time), QString::fromStdString(event.text));
}

QString threadInWords(const lineage::CommentThread &thread, bool isChanged)
{
    QStringList parts{said(thread.comment)};
    for (const lineage::CommentEvent &reply : thread.replies)
        parts << said(reply);
    if (thread.isResolved)
        parts << commentText("Resolved by %1.").arg(QString::fromStdString(thread.resolvedBy));
    if (isChanged)
        parts << commentText("Its text has changed since; it was on: %1")
                     .arg(QString::fromStdString(thread.comment.place.excerpt));
    return parts.join(QLatin1Char('\n'));
}

} // namespace

QString linesInWords(int firstLine, int lastLine)
{
    return firstLine == lastLine ? commentText("line %1").arg(firstLine)
                                 : commentText("lines %1–%2").arg(firstLine).arg(lastLine);
}

const CommentMark *CommentMarks::find(const QString &id) const
{
    for (const std::vector<CommentMark> &marks : sides) {
        const auto found =
            std::find_if(marks.begin(), marks.end(), [&](const CommentMark &mark) { return mark.id == id; });
        if (found != marks.end())
            return &*found;
    }
    return nullptr;
}

std::vector<const CommentMark *> CommentMarks::on(Side which, const gate::LineSpan &lines) const
{
    std::vector<const CommentMark *> found;
    for (const CommentMark &mark : side(which)) {
        const bool overlaps = lines.count > 0 && mark.lines.first < lines.first + lines.count
                              && lines.first < mark.lines.first + mark.lines.count;
        if (overlaps)
            found.push_back(&mark);
    }
    return found;
}

CommentsPtr makeComments(const std::vector<lineage::CommentThread> &threads, const Document &document)
{
    auto made = std::make_shared<CommentMarks>();
    for (const lineage::CommentThread &thread : threads) {
        const lineage::CommentPlace &place = thread.comment.place;
        const Side side = place.side == lineage::StepSide::Before ? Side::Left : Side::Right;
        if (!document.has(side) || document.side(side).text.count() == 0)
            continue;
        const SideText &text = document.side(side);
        const lineage::CommentSpot spot = lineage::findSpot(place, text.text.bytes(), text.sha);
        const bool isChanged = spot.kind == lineage::CommentSpot::Kind::Changed;
        CommentMark mark;
        mark.id = QString::fromStdString(thread.comment.id);
        mark.side = side;
        mark.lines = {spot.firstLine, spot.lastLine - spot.firstLine + 1};
        mark.isResolved = thread.isResolved;
        mark.isChanged = isChanged;
        mark.words = threadInWords(thread, isChanged);
        made->sides[static_cast<std::size_t>(side)].push_back(std::move(mark));
    }
    for (std::vector<CommentMark> &marks : made->sides)
        std::stable_sort(marks.begin(), marks.end(), [](const CommentMark &a, const CommentMark &b) {
            return a.lines.first < b.lines.first;
        });
    return made;
}

} // namespace klineage::ui
