// SPDX-License-Identifier: GPL-3.0-or-later
//
// Pairing the lines of a replaced block.
//
// A line diff says "these 7 lines became those 11" and no more; a reader wants each changed line beside what it became. So every
// promising pair (i, j) gets a weight, its similarity times the information in the line, and the heaviest chain of pairs that rises
// on both sides is the answer. The chain is a weighted longest increasing subsequence: pairs are visited by i, and a Fenwick tree
// over j keeps the best chain that ends at or before j, so c candidate pairs cost O(c log n). Small blocks try all pairs; in large
// blocks a pair is a candidate only when the lines share one of their rarest tokens, which bounds c by a constant per line.
#include "core/diff/pairing.h"

#include "core/diff/tokens.h"

#include <algorithm>
#include <unordered_map>

namespace klineage::diff {

namespace {

constexpr std::int64_t allPairsLimit = 10000; // cells; about 2 ms
constexpr std::size_t tokensOfLine = 200;     // of longer lines only the beginning is weighed
constexpr std::size_t candidatesOfLine = 24;
constexpr std::size_t commonToken = 48; // a token on more lines than this is no clue in a large block
constexpr double threshold = 0.5;

/// The bag of a line's tokens, sorted by hash.
struct Bag {
    std::vector<std::pair<std::uint32_t, std::int32_t>> tokens; ///< hash, weight
    std::int32_t weight = 0;
};

Bag bagOf(std::string_view line)
{
    Bag bag;
    for (const Token &token : tokenize(line.substr(0, 4000))) {
        if (token.kind == TokenKind::Blank)
            continue;
        bag.tokens.emplace_back(token.hash, tokenWeight(token));
        bag.weight += tokenWeight(token);
        if (bag.tokens.size() == tokensOfLine)
            break;
    }
    std::sort(bag.tokens.begin(), bag.tokens.end());
    return bag;
}

double similarity(const Bag &a, const Bag &b)
{
    if (a.weight == 0 || b.weight == 0)
        return a.weight == b.weight ? 1.0 : 0.0;
    if (2 * std::min(a.weight, b.weight) < threshold * (a.weight + b.weight))
        return 0.0; // the best that could come out is below any threshold
    std::int32_t common = 0;
    for (std::size_t i = 0, j = 0; i < a.tokens.size() && j < b.tokens.size();) {
        if (a.tokens[i].first == b.tokens[j].first) {
            common += a.tokens[i].second;
            ++i;
            ++j;
        } else if (a.tokens[i].first < b.tokens[j].first) {
            ++i;
        } else {
            ++j;
        }
    }
    return 2.0 * common / (a.weight + b.weight);
}

struct Chain {
    std::int32_t left = 0;
    std::int32_t right = 0;
    std::int32_t previous = -1;
    double weight = 0;
};

/// Prefix maximum over right lines: the heaviest chain that ends before a line.
class BestBefore
{
public:
    explicit BestBefore(std::int32_t size)
        : m_best(static_cast<std::size_t>(size) + 1, -1)
    {}

    std::int32_t find(std::int32_t right, const std::vector<Chain> &chains) const
    {
        std::int32_t best = -1;
        for (std::int32_t at = right; at > 0; at -= at & -at)
            best = heavier(best, m_best[static_cast<std::size_t>(at)], chains);
        return best;
    }
    void insert(std::int32_t right, std::int32_t chain, const std::vector<Chain> &chains)
    {
        for (std::int32_t at = right + 1; at < static_cast<std::int32_t>(m_best.size()); at += at & -at)
            m_best[static_cast<std::size_t>(at)] =
                heavier(m_best[static_cast<std::size_t>(at)], chain, chains);
    }

private:
    static std::int32_t heavier(std::int32_t a, std::int32_t b, const std::vector<Chain> &chains)
    {
        if (a < 0 || b < 0)
            return std::max(a, b);
        return chains[static_cast<std::size_t>(b)].weight > chains[static_cast<std::size_t>(a)].weight ? b
                                                                                                       : a;
    }
    std::vector<std::int32_t> m_best;
};

std::vector<Bag> bagsOf(const std::vector<std::string_view> &lines, LineRange range)
{
    std::vector<Bag> bags;
    bags.reserve(static_cast<std::size_t>(range.count));
    for (std::int32_t i = range.first; i < range.end(); ++i)
        bags.push_back(bagOf(lines[static_cast<std::size_t>(i)]));
    return bags;
}

/// For each token hash the right lines that hold it, ascending.
using TokenIndex = std::unordered_map<std::uint32_t, std::vector<std::int32_t>>;

TokenIndex indexOf(const std::vector<Bag> &bags)
{
    TokenIndex index;
    for (std::size_t j = 0; j < bags.size(); ++j) {
        std::uint32_t last = 0;
        for (const auto &[hash, weight] : bags[j].tokens) {
            auto &lines = index[hash];
            if (lines.size() <= commonToken
                && (hash != last || lines.empty() || lines.back() != static_cast<std::int32_t>(j)))
                lines.push_back(static_cast<std::int32_t>(j));
            last = hash;
        }
    }
    return index;
}

/// Right lines that may face a left line, ascending, without repeats.
std::vector<std::int32_t> candidates(const Bag &bag, const TokenIndex &index)
{
    std::vector<const std::vector<std::int32_t> *> lists;
    for (const auto &[hash, weight] : bag.tokens) {
        const auto found = index.find(hash);
        if (weight > 2 && found != index.end() && found->second.size() <= commonToken)
            lists.push_back(&found->second);
    }
    std::sort(lists.begin(), lists.end(), [](const auto *a, const auto *b) { return a->size() < b->size(); });
    std::vector<std::int32_t> lines;
    for (const auto *list : lists) {
        if (lines.size() + list->size() > candidatesOfLine && !lines.empty())
            break;
        lines.insert(lines.end(), list->begin(), list->end());
    }
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return lines;
}

std::vector<LinePair> unwind(const std::vector<Chain> &chains)
{
    const auto best = std::max_element(chains.begin(), chains.end(),
                                       [](const Chain &a, const Chain &b) { return a.weight < b.weight; });
    std::vector<LinePair> pairs;
    for (std::int32_t at = best == chains.end() ? -1 : static_cast<std::int32_t>(best - chains.begin());
         at >= 0;) {
        const Chain &chain = chains[static_cast<std::size_t>(at)];
        pairs.emplace_back(chain.left, chain.right);
        at = chain.previous;
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
}

} // namespace

double lineSimilarity(std::string_view left, std::string_view right)
{
    return similarity(bagOf(left), bagOf(right));
}

std::vector<LinePair> pairSimilarLines(const std::vector<std::string_view> &leftLines, LineRange left,
                                       const std::vector<std::string_view> &rightLines, LineRange right,
                                       const std::stop_token &stop)
{
    const std::vector<Bag> leftBags = bagsOf(leftLines, left);
    const std::vector<Bag> rightBags = bagsOf(rightLines, right);
    const bool allPairs = std::int64_t{left.count} * right.count <= allPairsLimit;
    const TokenIndex index = allPairs ? TokenIndex{} : indexOf(rightBags);

    std::vector<Chain> chains;
    BestBefore best(right.count);
    std::vector<std::int32_t> facing(allPairs ? static_cast<std::size_t>(right.count) : 0);
    for (std::size_t j = 0; j < facing.size(); ++j)
        facing[j] = static_cast<std::int32_t>(j);

    for (std::int32_t i = 0; i < left.count; ++i) {
        if (stop.stop_requested())
            return {};
        const Bag &bag = leftBags[static_cast<std::size_t>(i)];
        if (!allPairs)
            facing = candidates(bag, index);
        const std::size_t firstOfLine = chains.size();
        for (const std::int32_t j : facing) {
            const double alike = similarity(bag, rightBags[static_cast<std::size_t>(j)]);
            if (alike < threshold)
                continue;
            const std::int32_t previous = best.find(j, chains);
            const double before = previous < 0 ? 0 : chains[static_cast<std::size_t>(previous)].weight;
            chains.push_back(
                {left.first + i, right.first + j, previous, before + alike * (1 + std::min(bag.weight, 60))});
        }
        // After the line is done: no chain may use a left line twice.
        for (std::size_t c = firstOfLine; c < chains.size(); ++c)
            best.insert(chains[c].right - right.first, static_cast<std::int32_t>(c), chains);
    }
    return unwind(chains);
}

} // namespace klineage::diff
