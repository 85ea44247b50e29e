// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diff/diff.h"
#include "ui/highlight/linehighlighter.h"

#include <QString>

#include <memory>

namespace klineage::ui {

enum class Side : quint8 { Left, Right };
[[nodiscard]] inline Side other(Side side)
{
    return side == Side::Left ? Side::Right : Side::Left;
}

/// A line (0-based) of one side.
struct SideLine {
    Side side = Side::Right;
    int line = 0;

    friend bool operator==(const SideLine &, const SideLine &) = default;
};

/// One text of a diff, or the sentence that says why there is none. Immutable and shared between documents: the right side of a step
/// is the left side of the next.
struct SideText {
    TextLines text;
    Language language = Language::Plain;
    std::vector<LineRuns> runs; ///< by line; empty: not highlighted yet
    QString message;            ///< shown in place of the text
    std::string sha;            ///< sha-256 of the file that the text is; empty: it is none
};
using SideTextPtr = std::shared_ptr<const SideText>;

/// What a diff view shows. Immutable; made off the GUI thread.
struct Document {
    SideTextPtr left; ///< null: there is nothing to compare with, and the right text stands alone
    SideTextPtr right;
    diff::Diff diff; ///< of a text that stands alone: one Equal row a line, without left lines

    [[nodiscard]] bool isSingle() const { return !left; }
    [[nodiscard]] const SideText &side(Side which) const { return which == Side::Left ? *left : *right; }
    [[nodiscard]] bool has(Side which) const { return which == Side::Right || left; }
};
using DocumentPtr = std::shared_ptr<const Document>;

[[nodiscard]] inline int lineOf(const diff::Row &row, Side side)
{
    return side == Side::Left ? row.leftLine : row.rightLine;
}

/// Compares; a side with a message, or a null left side, faces nothing. Null when stopped.
[[nodiscard]] DocumentPtr makeDocument(SideTextPtr left, SideTextPtr right, const diff::Options &options,
                                       const std::stop_token &stop = {});

/// Texts up to this many lines are highlighted before they are shown, longer ones afterwards.
inline constexpr int highlightAtOnceLines = 3000;
[[nodiscard]] SideTextPtr makeSideText(std::string bytes, Language language, const std::stop_token &stop = {},
                                       std::string sha = {});
[[nodiscard]] SideTextPtr makeSideMessage(QString message);

} // namespace klineage::ui
