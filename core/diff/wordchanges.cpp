// SPDX-License-Identifier: GPL-3.0-or-later
//
// Word-level changes of a line: the heaviest common subsequence of tokens, where long words weigh more than punctuation, so that an
// identifier is never given up for a comma. Afterwards changes that only blanks and punctuation keep apart are joined: one marked
// stretch reads better than three.
#include "core/diff/diff.h"

#include "core/diff/pairing.h"
#include "core/diff/tokens.h"

#include <algorithm>

namespace klineage::diff {

namespace {

constexpr std::size_t longestLine = 20000;
constexpr std::size_t largestTable = 4'000'000; // cells
constexpr double unlike = 0.3;                  // below this, single words in common are chance

using Tokens = std::vector<Token>;
using Flags = std::vector<bool>; // by token: changed

bool same(std::string_view left, const Token &a, std::string_view right, const Token &b)
{
    return a.hash == b.hash && a.length == b.length
           && left.substr(static_cast<std::size_t>(a.begin), static_cast<std::size_t>(a.length))
                  == right.substr(static_cast<std::size_t>(b.begin), static_cast<std::size_t>(b.length));
}

LineChanges whole(std::string_view left, std::string_view right)
{
    LineChanges changes;
    if (!left.empty())
        changes.left.push_back({0, static_cast<std::int32_t>(left.size())});
    if (!right.empty())
        changes.right.push_back({0, static_cast<std::int32_t>(right.size())});
    return changes;
}

/// A line with its tokens; [first, last) is what differs once the common beginning and end are left out.
struct Side {
    std::string_view text;
    Tokens tokens;
    Flags changed;
    std::size_t first = 0;
    std::size_t last = 0;

    explicit Side(std::string_view line)
        : text(line)
        , tokens(tokenize(line))
        , changed(tokens.size())
        , last(tokens.size())
    {}
    std::size_t size() const { return last - first; }
};

void trimCommonEnds(Side &left, Side &right)
{
    while (left.size() > 0 && right.size() > 0
           && same(left.text, left.tokens[left.first], right.text, right.tokens[right.first])) {
        ++left.first;
        ++right.first;
    }
    while (left.size() > 0 && right.size() > 0
           && same(left.text, left.tokens[left.last - 1], right.text, right.tokens[right.last - 1])) {
        --left.last;
        --right.last;
    }
}

void markUncommon(Side &left, Side &right)
{
    std::fill(left.changed.begin() + static_cast<std::ptrdiff_t>(left.first),
              left.changed.begin() + static_cast<std::ptrdiff_t>(left.last), true);
    std::fill(right.changed.begin() + static_cast<std::ptrdiff_t>(right.first),
              right.changed.begin() + static_cast<std::ptrdiff_t>(right.last), true);
    const std::size_t rows = left.size();
    const std::size_t columns = right.size();
    if (rows == 0 || columns == 0 || rows * columns > largestTable)
        return;

    // best[i][j]: weight in common of left[i…] and right[j…]
    const std::size_t width = columns + 1;
    std::vector<std::int32_t> best((rows + 1) * width, 0);
    const auto weight = [&](std::size_t i) { return 2 * tokenWeight(left.tokens[left.first + i]) + 1; };
    const auto equal = [&](std::size_t i, std::size_t j) {
        return same(left.text, left.tokens[left.first + i], right.text, right.tokens[right.first + j]);
    };
    for (std::size_t i = rows; i-- > 0;) {
        for (std::size_t j = columns; j-- > 0;) {
            std::int32_t value = std::max(best[(i + 1) * width + j], best[i * width + j + 1]);
            if (equal(i, j))
                value = std::max(value, best[(i + 1) * width + j + 1] + weight(i));
            best[i * width + j] = value;
        }
    }
    for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
        if (equal(i, j) && best[i * width + j] == best[(i + 1) * width + j + 1] + weight(i)) {
            left.changed[left.first + i++] = false;
            right.changed[right.first + j++] = false;
        } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) {
            ++i;
        } else {
            ++j;
        }
    }
}

/// Whether tokens [first, end) are too little to keep two changes apart: blanks and punctuation only.
bool bridged(const Tokens &tokens, std::size_t first, std::size_t end)
{
    if (end - first > 3)
        return false;
    return std::none_of(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                        tokens.begin() + static_cast<std::ptrdiff_t>(end),
                        [](const Token &token) { return token.kind == TokenKind::Word; });
}

std::vector<Span> spansOf(const Side &side)
{
    std::vector<Span> spans;
    std::size_t lastChanged = 0;
    for (std::size_t i = 0; i < side.tokens.size(); ++i) {
        if (!side.changed[i])
            continue;
        const Token &token = side.tokens[i];
        if (!spans.empty() && bridged(side.tokens, lastChanged + 1, i))
            spans.back().length = token.begin + token.length - spans.back().begin;
        else
            spans.push_back({token.begin, token.length});
        lastChanged = i;
    }
    return spans;
}

std::size_t commonIndent(std::string_view left, std::string_view right)
{
    std::size_t length = 0;
    while (length < left.size() && length < right.size() && left[length] == right[length]
           && (left[length] == ' ' || left[length] == '\t'))
        ++length;
    return length;
}

std::vector<Span> shifted(std::vector<Span> spans, std::size_t by)
{
    for (Span &span : spans)
        span.begin += static_cast<std::int32_t>(by);
    return spans;
}

} // namespace

LineChanges compareLines(std::string_view left, std::string_view right)
{
    if (left == right)
        return {};
    if (left.size() > longestLine || right.size() > longestLine)
        return whole(left, right);
    if (trimmed(left) != trimmed(right) && lineSimilarity(left, right) < unlike)
        return whole(left, right);
    // Of a deeper indentation only what was added is marked: the common beginning of both is left out of the comparison.
    const std::size_t indent = commonIndent(left, right);
    left.remove_prefix(indent);
    right.remove_prefix(indent);
    Side leftSide(left);
    Side rightSide(right);
    trimCommonEnds(leftSide, rightSide);
    markUncommon(leftSide, rightSide);
    return {shifted(spansOf(leftSide), indent), shifted(spansOf(rightSide), indent)};
}

} // namespace klineage::diff
