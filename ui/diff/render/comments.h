// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/comments.h"
#include "core/trial/analysis/linesamples.h"
#include "ui/diff/render/document.h"

#include <array>
#include <memory>
#include <vector>

namespace klineage::ui {

/// A comment beside the lines of a document that it is about.
struct CommentMark {
    QString id;
    Side side = Side::Right;
    gate::LineSpan lines; ///< 1-based; of lines that the text has
    bool isResolved = false;
    bool isChanged = false; ///< the lines that it was made on are no more
    QString words;          ///< who said what, what was answered, and how it stands: whole sentences
};

/// The comments on a step, by side and first line. Immutable.
struct CommentMarks {
    std::array<std::vector<CommentMark>, 2> sides;

    [[nodiscard]] const std::vector<CommentMark> &side(Side which) const
    {
        return sides[static_cast<std::size_t>(which)];
    }
    [[nodiscard]] int count() const { return static_cast<int>(sides[0].size() + sides[1].size()); }
    [[nodiscard]] const CommentMark *find(const QString &id) const;
    /// Those that have a line among these.
    [[nodiscard]] std::vector<const CommentMark *> on(Side which, const gate::LineSpan &lines) const;
};
using CommentsPtr = std::shared_ptr<const CommentMarks>;

/// Comments of sides that the document does not show, or that have no lines, are left out.
[[nodiscard]] CommentsPtr makeComments(const std::vector<lineage::CommentThread> &threads,
                                       const Document &document);

/// "lines 81–84", "line 81".
[[nodiscard]] QString linesInWords(int firstLine, int lastLine);

} // namespace klineage::ui
