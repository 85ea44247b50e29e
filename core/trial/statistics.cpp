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

/// What so few values say: their median between the smallest and the largest.
Interval extremesOf(std::span<const double> values)
{
    if (values.empty())
        return {};
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return {median(values), *low, *high};
}

/// The median of the values between the 2.5 % and the 97.5 % point of the medians of samples, each drawn into an empty list.
template <typename Draw>
Interval resampledMedian(std::span<const double> values, std::uint64_t seed, int resamples, const Draw &draw)
{
    Resampler random(seed);
    std::vector<double> medians(static_cast<std::size_t>(std::max(resamples, 100)));
    std::vector<double> sample;
    for (double &result : medians) {
        sample.clear();
        draw(random, sample);
        result = medianInPlace(sample);
    }
    std::sort(medians.begin(), medians.end());
    const auto last = static_cast<double>(medians.size() - 1);
    return {median(values), medians[static_cast<std::size_t>(std::floor(0.025 * last))],
            medians[static_cast<std::size_t>(std::ceil(0.975 * last))]};
}

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
    if (values.size() < fewestRounds)
        return extremesOf(values);
    Interval interval =
        resampledMedian(values, seed, resamples, [&](Resampler &random, std::vector<double> &sample) {
            for (std::size_t i = 0; i < values.size(); ++i)
                sample.push_back(values[random.below(values.size())]);
        });
    interval.low = std::min(interval.value, interval.low);
    interval.high = std::max(interval.value, interval.high);
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
    const std::size_t blocks = blockEnds.size();
    if (blocks < 2 || values.size() < fewestRounds)
        return extremesOf(values);
    Interval interval =
        resampledMedian(values, seed, resamples, [&](Resampler &random, std::vector<double> &sample) {
            for (std::size_t i = 0; i < blocks; ++i) {
                const std::size_t block = random.below(blocks);
                const std::size_t begin = block == 0 ? 0 : blockEnds[block - 1];
                const std::size_t count = blockEnds[block] - begin;
                for (std::size_t j = 0; j < count; ++j)
                    sample.push_back(values[begin + random.below(count)]);
            }
        });
    const auto count = static_cast<double>(blocks);
    const double wider = studentT(blocks - 1) / 1.959964 * std::sqrt(count / (count - 1));
    // Widened about the median it can reach below every value; where none is negative, the median is not either.
    const double least = std::min(0.0, *std::min_element(values.begin(), values.end()));
    interval.low =
        std::min(interval.value, std::max(least, interval.value - wider * (interval.value - interval.low)));
    interval.high = std::max(interval.value, interval.value + wider * (interval.high - interval.value));
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
