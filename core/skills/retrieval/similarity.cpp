// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval/similarity.h"

#include "core/kernel/surfaces/surface.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <optional>

namespace klineage::skills {

namespace {

constexpr double sameMajor = 0.8;
constexpr double differentWorkload = 0.9;
constexpr double extraWeight = 0.25;

/// The place of a major number in the order in which NVIDIA's generations came: there is no 4 and no 11 for discrete GPUs.
int generation(int major)
{
    constexpr std::array majors{5, 6, 7, 8, 9, 10, 12};
    return static_cast<int>(
        std::distance(majors.begin(), std::lower_bound(majors.begin(), majors.end(), major)));
}

bool isBlank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

} // namespace

std::string normalized(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (isBlank(c)) {
            if (!out.empty() && out.back() != ' ')
                out.push_back(' ');
        } else {
            out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
        }
    }
    if (!out.empty() && out.back() == ' ')
        out.pop_back();
    return out;
}

std::string_view languageOfPlatform(std::string_view platform)
{
    const auto device = kernel::deviceOfPlatform(platform);
    return device ? kernel::surfaceOn(*device).language().word : "";
}

double platformSimilarity(std::string_view a, std::string_view b)
{
    if (a == b)
        return a.empty() ? 0 : 1;
    // A compile target ("sm90a") is no platform.
    const auto isPlatform = [](std::string_view text) {
        return !text.empty() && text.back() >= '0' && text.back() <= '9';
    };
    if (!isPlatform(a) || !isPlatform(b))
        return 0;
    const std::optional<int> first = kernel::computeCapability(a);
    const std::optional<int> second = kernel::computeCapability(b);
    if (!first || !second)
        return 0;
    const int majorA = *first / 10;
    const int majorB = *second / 10;
    if (majorA == majorB)
        return sameMajor;
    return 1.0 / (1 + std::max(1, std::abs(generation(majorA) - generation(majorB))));
}

double priorSimilarity(std::size_t shared, std::size_t missing, std::size_t extra)
{
    const double common = 1 + static_cast<double>(shared);
    return common / (common + static_cast<double>(missing) + extraWeight * static_cast<double>(extra));
}

double tagSimilarity(std::size_t shared, std::size_t all)
{
    return all == 0 ? 0 : differentWorkload * static_cast<double>(shared) / static_cast<double>(all);
}

} // namespace klineage::skills
