// SPDX-License-Identifier: GPL-3.0-or-later
//
// What people say about lines of a lineage's code: comments.jsonl beside lineage.toml. Append-only: replies, resolving and undoing are
// events of their own. Format: core/lineage/README.md, "comments.jsonl".
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::lineage {

/// A text of a step: the one that it begins with, or the one that it leads to.
enum class StepSide { Before, After };
[[nodiscard]] const char *toString(StepSide side); ///< before after

/// Lines of a text of a step, as they were when something was said about them. Empty in events that are no comment.
struct CommentPlace {
    std::string from; ///< row at the left of the step; empty: `to` was compared with nothing
    std::string to;   ///< row at the right: "K05", "R07a", "trial:<id>"
    StepSide side = StepSide::After;
    std::string sha;     ///< sha-256 of the whole text
    int firstLine = 0;   ///< 1-based
    int lastLine = 0;    ///< the last of them
    std::string textSha; ///< sha-256 of these lines, each with a newline
    std::string excerpt; ///< how they begin, for people: at most maxExcerptBytes
    friend bool operator==(const CommentPlace &, const CommentPlace &) = default;
};
inline constexpr std::size_t maxExcerptBytes = 400;
inline constexpr int maxCommentedLines = 10'000;

enum class CommentKind { Comment, Reply, Resolve, Reopen, Revert };
[[nodiscard]] const char *toString(CommentKind kind); ///< comment reply resolve reopen revert

/// A line of comments.jsonl.
struct CommentEvent {
    std::string id;   ///< 16 hex digits
    std::string time; ///< UTC, ISO 8601
    std::string author;
    CommentKind kind = CommentKind::Comment;
    std::string about; ///< id of the comment; of a Revert the event that it takes back; empty for a Comment
    std::string text;  ///< Comment and Reply
    CommentPlace place;
    friend bool operator==(const CommentEvent &, const CommentEvent &) = default;
};

inline constexpr std::size_t maxCommentBytes = std::size_t{16} << 10;
inline constexpr std::size_t maxCommentEvents = 20'000; ///< of a lineage; later ones are said in the notices

[[nodiscard]] std::string writeComment(const CommentEvent &event); ///< one line, no newline
/// Strict; where is "file:line".
[[nodiscard]] Result<CommentEvent> parseComment(std::string_view line, const std::string &where);

/// The lines [firstLine, lastLine] of a text, with what finds them again. The rows and the side are the caller's. InvalidInput where the
/// text has no such lines, or they are more than maxCommentedLines.
[[nodiscard]] Result<CommentPlace> placeInText(std::string_view text, int firstLine, int lastLine);

/// Where a place is in a text that may have changed since.
struct CommentSpot {
    enum class Kind { Same, Moved, Changed }; ///< Changed: the lines are no more; where they were
    Kind kind = Kind::Same;
    int firstLine = 1; ///< of lines that the text has, unless it has none
    int lastLine = 1;
};
/// sha: of the text, where it is known. The lines are looked for by their hash, those nearest to where they were first.
[[nodiscard]] CommentSpot findSpot(const CommentPlace &place, std::string_view text,
                                   std::string_view sha = {});

/// A comment that stands, with what was said to it.
struct CommentThread {
    CommentEvent comment;
    std::vector<CommentEvent> replies; ///< oldest first; those that were taken back left out
    bool isResolved = false;
    std::string resolvedBy; ///< empty unless it is
};
/// In the order in which they were made; what was taken back, and answers to nothing that stands, left out.
[[nodiscard]] std::vector<CommentThread> threadsOf(const std::vector<CommentEvent> &events);
/// Those of one step.
[[nodiscard]] std::vector<CommentThread> threadsOn(const std::vector<CommentEvent> &events,
                                                   std::string_view from, std::string_view to);

/// All events of a lineage's folder, in file order. What cannot be read is left out and said in notices; no file is no comment.
[[nodiscard]] std::vector<CommentEvent> readComments(const std::filesystem::path &lineageDirectory,
                                                     std::vector<std::string> &notices);
/// Appends an event, whose id and time are filled in, and returns it. InvalidInput without an author, text or place where the kind
/// needs one; NotFound when what it is about is not there; Conflict when that was taken back already.
[[nodiscard]] Result<CommentEvent> appendComment(const std::filesystem::path &lineageDirectory,
                                                 CommentEvent event);

} // namespace klineage::lineage
