// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/suggest.h"

#include <algorithm>
#include <numeric>

namespace klineage {

namespace {

// Names come from files; a distance between longer ones is of no use and quadratic to compute.
constexpr std::size_t longestComparedName = 64;
constexpr std::size_t mostListedNames = 12;

} // namespace

std::size_t editDistance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> beforePrevious(b.size() + 1);
    std::vector<std::size_t> previous(b.size() + 1);
    std::vector<std::size_t> current(b.size() + 1);
    std::iota(previous.begin(), previous.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                current[j] = std::min(current[j], beforePrevious[j - 2] + 1);
        }
        std::swap(beforePrevious, previous);
        std::swap(previous, current);
    }
    return previous[b.size()];
}

std::string nearestName(std::string_view name, const std::vector<std::string> &known)
{
    if (name.empty() || name.size() > longestComparedName)
        return {};
    const std::size_t limit = std::clamp<std::size_t>(name.size() / 3, 1, 3);
    std::size_t bestDistance = limit + 1;
    std::string best;
    for (const std::string &candidate : known) {
        if (candidate.size() > longestComparedName)
            continue;
        const std::size_t distance = editDistance(name, candidate);
        if (distance < bestDistance) {
            bestDistance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string didYouMean(std::string_view name, const std::vector<std::string> &known)
{
    const std::string nearest = nearestName(name, known);
    return nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?";
}

std::string noSuchName(const std::string &what, const std::string &name,
                       const std::vector<std::string> &known)
{
    const std::string message = "There is no " + what + " '" + name + "'";
    if (const std::string near = didYouMean(name, known); !near.empty())
        return message + near;
    if (!known.empty() && known.size() <= mostListedNames)
        return message + "; there is " + quotedList(known) + '.';
    return message + '.';
}

std::string quotedList(const std::vector<std::string> &names)
{
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0)
            text += i + 1 == names.size() ? " or " : ", ";
        text += '\'' + names[i] + '\'';
    }
    return text;
}

} // namespace klineage
