// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

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

namespace {

/// 97.5 % point of Student's t with n degrees of freedom: exact to four digits up to ten, then by the expansion of Abramowitz and
/// Stegun 26.7.5.
double studentT(std::size_t n)
{
    constexpr double table[] = {12.706, 4.3027, 3.1824, 2.7764, 2.5706,
                                2.4469, 2.3646, 2.3060, 2.2622, 2.2281};
    if (n <= std::size(table))
        return table[n - 1];
    constexpr double z = 1.959964;
    const auto freedom = static_cast<double>(n);
    return z + (z * z * z + z) / (4 * freedom)
           + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * freedom * freedom);
}

} // namespace

Interval blockedMedian(std::span<const double> values, std::span<const std::size_t> blockEnds,
                       std::uint64_t seed, int resamples)
{
    if (values.empty())
        return {};
    Interval interval;
    interval.value = median(values);
    const std::size_t blocks = blockEnds.size();
    if (blocks < 2 || values.size() < fewestRounds) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        interval.low = *low;
        interval.high = *high;
        return interval;
    }
    Resampler random(seed);
    std::vector<double> medians(static_cast<std::size_t>(std::max(resamples, 100)));
    std::vector<double> sample;
    for (double &result : medians) {
        sample.clear();
        for (std::size_t i = 0; i < blocks; ++i) {
            const std::size_t block = random.below(blocks);
            const std::size_t begin = block == 0 ? 0 : blockEnds[block - 1];
            const std::size_t count = blockEnds[block] - begin;
            for (std::size_t j = 0; j < count; ++j)
                sample.push_back(values[begin + random.below(count)]);
        }
        result = medianInPlace(sample);
    }
    std::sort(medians.begin(), medians.end());
    const auto last = static_cast<double>(medians.size() - 1);
    const double low = medians[static_cast<std::size_t>(std::floor(0.025 * last))];
    const double high = medians[static_cast<std::size_t>(std::ceil(0.975 * last))];
    const auto count = static_cast<double>(blocks);
    const double wider = studentT(blocks - 1) / 1.959964 * std::sqrt(count / (count - 1));
    interval.low = std::min(interval.value, interval.value - wider * (interval.value - low));
    interval.high = std::max(interval.value, interval.value + wider * (high - interval.value));
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
