// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/reply.h"

#include "core/kernel/candidate.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

namespace klineage::policy {

namespace {

constexpr std::size_t longestReason = 500;

struct Fence {
    char mark = '`';
    std::size_t length = 0;
    std::string_view rest; ///< after the marks: the language of an opening fence
};

std::string_view unpadded(std::string_view text)
{
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// A line of up to three blanks and three or more marks; a fence of ` has none in its rest, as in CommonMark.
std::optional<Fence> fenceOf(std::string_view line)
{
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos || indent > 3 || (line[indent] != '`' && line[indent] != '~'))
        return std::nullopt;
    Fence fence;
    fence.mark = line[indent];
    const std::size_t end = std::min(line.find_first_not_of(fence.mark, indent), line.size());
    fence.length = end - indent;
    fence.rest = unpadded(line.substr(end));
    if (fence.length < 3 || (fence.mark == '`' && fence.rest.find('`') != std::string_view::npos))
        return std::nullopt;
    return fence;
}

std::string_view nextLine(std::string_view &text)
{
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (line.ends_with('\r'))
        line.remove_suffix(1);
    return line;
}

/// The reason after DONE; nothing when the line does not say so.
std::optional<std::string> doneReason(std::string_view line)
{
    constexpr std::string_view word = "DONE";
    line = unpadded(line);
    while (line.starts_with('*')) // **DONE**: emphasis is not meant
        line.remove_prefix(1);
    if (!line.starts_with(word))
        return std::nullopt;
    line.remove_prefix(word.size());
    if (!line.empty() && (std::isalnum(static_cast<unsigned char>(line[0])) != 0 || line[0] == '_'))
        return std::nullopt;
    const std::size_t begin = line.find_first_not_of(" \t*:.-");
    return std::string(begin == std::string_view::npos ? std::string_view()
                                                       : line.substr(begin, longestReason));
}

std::string withLineEnds(std::string_view text)
{
    std::string out;
    out.reserve(text.size() + 1);
    while (!text.empty())
        out.append(nextLine(text)) += '\n';
    return out;
}

/// The blocks of a reply and what its words say.
struct Blocks {
    std::vector<std::string> closed;
    bool open = false; ///< the last fence is not closed
    std::optional<std::string> done;
};

Blocks findBlocks(std::string_view reply)
{
    Blocks blocks;
    std::optional<Fence> inside;
    std::string current;
    while (!reply.empty()) {
        const std::string_view line = nextLine(reply);
        const std::optional<Fence> fence = fenceOf(line);
        if (inside) {
            if (fence && fence->mark == inside->mark && fence->length >= inside->length
                && fence->rest.empty()) {
                blocks.closed.push_back(std::move(current));
                current.clear();
                inside.reset();
            } else {
                current.append(line) += '\n';
            }
        } else if (fence) {
            inside = fence;
        } else if (!blocks.done) {
            blocks.done = doneReason(line);
        }
    }
    blocks.open = inside.has_value();
    return blocks;
}

tl::unexpected<Error> refused(std::string message)
{
    return fail(ErrorCode::InvalidInput, std::move(message));
}

} // namespace

Result<Reading> readReply(std::string_view reply)
{
    if (reply.size() > maxReplyBytes)
        return refused("The reply is longer than 8 MiB.");
    if (reply.find('\0') != std::string_view::npos)
        return refused("The reply holds a NUL byte, which no text has.");
    const Blocks blocks = findBlocks(reply);
    if (blocks.open)
        return refused(
            "The fenced block of the reply is not closed: it was cut short, or its closing fence is missing.");
    if (blocks.closed.size() > 1)
        return refused("The reply has " + std::to_string(blocks.closed.size())
                       + " fenced blocks; exactly one was expected.");
    if (blocks.closed.size() == 1)
        return Reading{Reading::Kind::Block, blocks.closed.front()};
    if (const std::string_view text = unpadded(reply); kernel::planCommentOf(text))
        return Reading{Reading::Kind::Block, withLineEnds(text)};
    if (blocks.done)
        return Reading{Reading::Kind::Done, *blocks.done};
    return refused("The reply has no fenced block and no line that begins with DONE.");
}

Result<Reading> readCandidateReply(std::string_view reply)
{
    Result<Reading> reading = readReply(reply);
    if (!reading || reading->kind == Reading::Kind::Done)
        return reading;
    std::string &text = reading->text;
    text.erase(0, std::min(text.find_first_not_of(" \t\n"), text.size()));
    if (!kernel::planCommentOf(text))
        return refused("The fenced block of the reply does not begin with " + kernel::planOpenings()
                       + ": it must hold the whole candidate file, launch plan first.");
    if (text.size() > kernel::maxCandidateBytes)
        return refused("The candidate in the reply is longer than 4 MiB.");
    return reading;
}

std::string normalizedCode(std::string_view text)
{
    // The plan lies in a comment of its own and counts; the comments after it do not.
    std::string out;
    std::size_t at = 0;
    if (const auto comment = kernel::planCommentOf(text)) {
        at = std::min(text.find(comment->closing, comment->opening.size()), text.size());
        std::string_view plan = text.substr(0, at);
        while (!plan.empty()) {
            const std::string_view line = unpadded(nextLine(plan));
            if (!line.empty() && line[0] != '#')
                out.append(line) += '\n';
        }
    }
    const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    bool blank = false;
    bool directive = false;
    while (at < text.size()) {
        const std::string_view rest = text.substr(at);
        if (rest.starts_with("//")) {
            at += std::min(rest.find('\n'), rest.size());
            blank = true;
        } else if (rest.starts_with("/*")) {
            const std::size_t end = rest.find("*/", 2);
            at += end == std::string_view::npos ? rest.size() : end + 2;
            blank = true;
        } else if (std::isspace(static_cast<unsigned char>(rest[0])) != 0) {
            if (rest[0] == '\n' && directive) { // the end of a line is a part of a directive
                out += '\n';
                directive = false;
            }
            blank = true;
            ++at;
        } else {
            const char c = rest[0];
            if (c == '#') {
                out += '\n';
                directive = true;
            }
            if (blank && !out.empty() && isWord(out.back()) && isWord(c))
                out += ' ';
            blank = false;
            out += c;
            ++at;
        }
    }
    return out;
}

} // namespace klineage::policy
