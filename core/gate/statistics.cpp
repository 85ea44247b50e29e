// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/statistics.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr double leastChange = 0.003;
constexpr std::size_t fewestRounds = 5;

double medianInPlace(std::span<double> values)
{
    const std::size_t middle = values.size() / 2;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
    const double upper = values[middle];
    if (values.size() % 2 == 1)
        return upper;
    const double lower =
        *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle));
    return 0.5 * (lower + upper);
}

/// SplitMix64: a small generator with a fixed definition; the standard's distributions differ between libraries.
class Resampler
{
public:
    explicit Resampler(std::uint64_t seed)
        : m_state(seed)
    {}
    std::size_t below(std::size_t bound)
    {
        m_state += 0x9e3779b97f4a7c15ull;
        std::uint64_t z = m_state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        return static_cast<std::size_t>(((z >> 32) * bound) >> 32);
    }

private:
    std::uint64_t m_state;
};

} // namespace

double median(std::span<const double> values)
{
    if (values.empty())
        return 0;
    std::vector<double> copy(values.begin(), values.end());
    return medianInPlace(copy);
}

Interval bootstrapMedian(std::span<const double> values, std::uint64_t seed, int resamples)
{
    if (values.empty())
        return {};
    Interval interval;
    interval.value = median(values);
    if (values.size() < fewestRounds) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        interval.low = *low;
        interval.high = *high;
        return interval;
    }
    Resampler random(seed);
    std::vector<double> medians(static_cast<std::size_t>(std::max(resamples, 100)));
    std::vector<double> sample(values.size());
    for (double &result : medians) {
        for (double &value : sample)
            value = values[random.below(values.size())];
        result = medianInPlace(sample);
    }
    std::sort(medians.begin(), medians.end());
    const auto last = static_cast<double>(medians.size() - 1);
    interval.low = std::min(interval.value, medians[static_cast<std::size_t>(std::floor(0.025 * last))]);
    interval.high = std::max(interval.value, medians[static_cast<std::size_t>(std::ceil(0.975 * last))]);
    return interval;
}

double noiseFloor(const Interval &ratioOfCopies)
{
    return std::max(std::abs(ratioOfCopies.value - 1.0), halfWidth(ratioOfCopies));
}

double significantChange(std::optional<double> copySpread)
{
    return std::max(leastChange, 2.0 * copySpread.value_or(0.0));
}

Change decide(const Interval &speedup, std::size_t rounds, std::optional<double> copySpread)
{
    if (rounds < fewestRounds)
        return Change::Undecided;
    const double threshold = significantChange(copySpread);
    if (speedup.low > 1.0 + threshold)
        return Change::Gain;
    if (speedup.high < 1.0 - threshold)
        return Change::Loss;
    return speedup.high <= 1.0 + leastChange ? Change::NoGain : Change::Undecided;
}

std::vector<double> pairedRatios(std::span<const double> other, std::span<const double> candidate)
{
    std::vector<double> ratios;
    ratios.reserve(candidate.size());
    for (std::size_t i = 0; i < std::min(other.size(), candidate.size()); ++i)
        ratios.push_back(other[i] / candidate[i]);
    return ratios;
}

} // namespace klineage::gate
