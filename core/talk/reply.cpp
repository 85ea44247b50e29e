// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/reply.h"

#include "core/kernel/candidate.h"

#include <algorithm>
#include <cctype>
#include <iterator>
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

/// Whether a line is in a fenced block, as lines are told one after the other.
class FenceState
{
public:
    enum class Is { Outside, Opening, Inside, Closing };
    Is take(std::string_view line)
    {
        const std::optional<Fence> fence = fenceOf(line);
        if (!m_inside) {
            m_inside = fence;
            return fence ? Is::Opening : Is::Outside;
        }
        if (!fence || fence->mark != m_inside->mark || fence->length < m_inside->length
            || !fence->rest.empty())
            return Is::Inside;
        m_inside.reset();
        return Is::Closing;
    }
    [[nodiscard]] bool isInside() const { return m_inside.has_value(); }

private:
    std::optional<Fence> m_inside;
};

struct ThoughtTag {
    std::string_view opens;
    std::string_view closes;
};
constexpr ThoughtTag thoughtTags[] = {{"<think>", "</think>"}, {"<thinking>", "</thinking>"}};

const ThoughtTag *thoughtOpenedBy(std::string_view line)
{
    const auto tag = std::find_if(std::begin(thoughtTags), std::end(thoughtTags),
                                  [&](const ThoughtTag &t) { return line.starts_with(t.opens); });
    return tag == std::end(thoughtTags) ? nullptr : tag;
}

/// Where a closing tag that nothing opened ends; npos when there is none. In a block, only one that begins the line is no part of it.
std::size_t endOfUnopened(std::string_view line, bool inBlock)
{
    std::size_t end = std::string_view::npos;
    for (const ThoughtTag &tag : thoughtTags) {
        const std::size_t at = line.rfind(tag.closes);
        const bool counts =
            at != std::string_view::npos && (!inBlock || unpadded(line).starts_with(tag.closes));
        if (counts && (end == std::string_view::npos || at + tag.closes.size() > end))
            end = at + tag.closes.size();
    }
    return end;
}

/// A reply without its thoughts.
struct Said {
    std::string text;
    bool inThought = false; ///< it ended before a thought did
};

Said said(std::string_view reply)
{
    const auto holds = [reply](const ThoughtTag &tag) {
        return reply.find(tag.opens) != std::string_view::npos
               || reply.find(tag.closes) != std::string_view::npos;
    };
    if (std::none_of(std::begin(thoughtTags), std::end(thoughtTags), holds))
        return {std::string(reply), false};
    Said result;
    FenceState fences;
    const ThoughtTag *thought = nullptr;
    while (!reply.empty()) {
        std::string_view line = nextLine(reply);
        while (true) {
            if (thought) {
                const std::size_t at = line.find(thought->closes);
                if (at == std::string_view::npos)
                    break;
                line.remove_prefix(at + thought->closes.size());
                thought = nullptr;
            }
            const std::string_view words = unpadded(line);
            thought = fences.isInside() ? nullptr : thoughtOpenedBy(words);
            if (!thought)
                break;
            line = words.substr(thought->opens.size());
        }
        if (thought)
            continue;
        if (const std::size_t end = endOfUnopened(line, fences.isInside()); end != std::string_view::npos) {
            result.text.clear();
            fences = {};
            line.remove_prefix(end);
        }
        fences.take(line);
        result.text.append(line) += '\n';
    }
    result.inThought = thought != nullptr;
    return result;
}

/// The blocks of a reply and what its words say.
struct Blocks {
    std::vector<std::string> closed;
    std::optional<std::string> open; ///< the last one, when its fence is not closed
    std::optional<std::string> done;
};

Blocks findBlocks(std::string_view reply)
{
    Blocks blocks;
    FenceState fences;
    std::string current;
    while (!reply.empty()) {
        const std::string_view line = nextLine(reply);
        switch (fences.take(line)) {
        case FenceState::Is::Opening:
            current.clear();
            break;
        case FenceState::Is::Inside:
            current.append(line) += '\n';
            break;
        case FenceState::Is::Closing:
            blocks.closed.push_back(std::move(current));
            break;
        case FenceState::Is::Outside:
            if (!blocks.done)
                blocks.done = doneReason(line);
            break;
        }
    }
    if (fences.isInside())
        blocks.open = std::move(current);
    return blocks;
}

tl::unexpected<Error> refused(std::string message)
{
    return fail(ErrorCode::InvalidInput, std::move(message));
}

constexpr std::string_view notClosed =
    "The fenced block of the reply is not closed: it was cut short, or its closing fence is missing.";

Result<Said> hear(std::string_view reply)
{
    if (reply.size() > maxReplyBytes)
        return refused("The reply is longer than 8 MiB.");
    if (reply.find('\0') != std::string_view::npos)
        return refused("The reply holds a NUL byte, which no text has.");
    Said heard = said(reply);
    if (heard.inThought)
        return refused(
            "The reply ends inside its thoughts: their closing tag is missing, or it was cut short.");
    return heard;
}

bool beginsWithPlan(const std::string &block)
{
    return kernel::planCommentOf(block).has_value();
}

/// Of several blocks the last one that is accepted, else the last one.
Result<Reading> choose(const Said &heard, const Blocks &blocks, const Accepts &accepts)
{
    if (!blocks.closed.empty()) {
        auto chosen = blocks.closed.rbegin();
        if (accepts && blocks.closed.size() > 1)
            chosen = std::find_if(blocks.closed.rbegin(), blocks.closed.rend(), accepts);
        return Reading{Reading::Kind::Block, chosen == blocks.closed.rend() ? blocks.closed.back() : *chosen};
    }
    if (const std::string_view text = unpadded(heard.text); kernel::planCommentOf(text))
        return Reading{Reading::Kind::Block, withLineEnds(text)};
    if (blocks.done)
        return Reading{Reading::Kind::Done, *blocks.done};
    return refused("The reply has no fenced block and no line that begins with DONE.");
}

} // namespace

std::string withoutThoughts(std::string_view reply)
{
    return said(reply).text;
}

Result<Reading> readReply(std::string_view reply, const Accepts &accepts)
{
    const Result<Said> heard = hear(reply);
    if (!heard)
        return tl::unexpected(heard.error());
    const Blocks blocks = findBlocks(heard->text);
    if (blocks.open)
        return refused(std::string(notClosed));
    return choose(*heard, blocks, accepts);
}

Result<Reading> readCandidateReply(std::string_view reply)
{
    const Result<Said> heard = hear(reply);
    if (!heard)
        return tl::unexpected(heard.error());
    Blocks blocks = findBlocks(heard->text);
    for (std::string &block : blocks.closed)
        block.erase(0, std::min(block.find_first_not_of(" \t\n"), block.size()));
    std::vector<std::string> candidates;
    std::copy_if(blocks.closed.begin(), blocks.closed.end(), std::back_inserter(candidates), beginsWithPlan);
    if (blocks.open && (candidates.empty() || beginsWithPlan(std::string(unpadded(*blocks.open)))))
        return refused(std::string(notClosed));
    if (!candidates.empty())
        blocks.closed = std::move(candidates);
    Result<Reading> reading = choose(*heard, blocks, [](const std::string &block) {
        return kernel::parseCandidate(block, "candidate").has_value();
    });
    if (!reading || reading->kind == Reading::Kind::Done)
        return reading;
    if (!beginsWithPlan(reading->text))
        return refused("The fenced block of the reply does not begin with " + kernel::planOpenings()
                       + ": it must hold the whole candidate file, launch plan first.");
    if (reading->text.size() > kernel::maxCandidateBytes)
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
