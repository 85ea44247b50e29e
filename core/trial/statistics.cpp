// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>

namespace klineage::gate {

namespace {

constexpr double leastChange = 0.003;
constexpr std::size_t fewestRounds = 5;
constexpr double lookGrowth = 1.2;

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

/// The point that Student's t with n degrees of freedom goes beyond, on either side, with this probability. With t = √n · tan(angle) it is
/// the integral of cosⁿ⁻¹ from the angle to π/2, over that from 0.
double studentT(std::size_t n, double level)
{
    const double to =
        std::min(0.5 * std::numbers::pi, 12 / std::sqrt(static_cast<double>(n))); // beyond it is nothing
    const auto integral = [n, to](double from) {
        constexpr int pieces = 64; // Simpson's rule
        const double step = (to - from) / pieces;
        double sum = 0;
        for (int i = 0; i <= pieces; ++i) {
            const double weight = i == 0 || i == pieces ? 1 : i % 2 == 0 ? 2 : 4;
            sum += weight * std::pow(std::cos(from + i * step), static_cast<double>(n - 1));
        }
        return sum * step / 3;
    };
    const double wanted = level * integral(0);
    double low = 0;
    double high = to;
    for (int i = 0; i < 40; ++i) {
        const double middle = 0.5 * (low + high);
        (integral(middle) > wanted ? low : high) = middle;
    }
    return std::sqrt(static_cast<double>(n)) * std::tan(0.5 * (low + high));
}

constexpr double usualLevel = 0.05;

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
    const double wider = studentT(blocks - 1, usualLevel) / 1.959964 * std::sqrt(count / (count - 1));
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

bool losesOnAverage(std::span<const double> other, std::span<const double> candidate, const FarSamples &far)
{
    constexpr double fewest = 3;
    constexpr std::size_t mostStretches = 10;
    constexpr double errors = 2;
    const auto farOf = [&far](std::span<const double> values) {
        const double limit = far.beyond * median(values);
        return static_cast<double>(
            std::count_if(values.begin(), values.end(), [&](double value) { return value > limit; }));
    };
    const auto meanOf = [](std::span<const double> values) {
        return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    };
    if (other.empty() || candidate.empty())
        return false;
    const double own = farOf(candidate);
    const double others = farOf(other);
    if (own < fewest || own - others <= far.deviations * std::sqrt(own + others))
        return false;
    // How many there are is chance, of which stretches of time have more than others: as rough as the means of these say.
    const std::size_t stretches = std::min(mostStretches, candidate.size());
    std::vector<double> means;
    for (std::size_t i = 0; i < stretches; ++i) {
        const std::size_t begin = i * candidate.size() / stretches;
        means.push_back(meanOf(candidate.subspan(begin, (i + 1) * candidate.size() / stretches - begin)));
    }
    const double mean = meanOf(means);
    double squares = 0;
    for (const double each : means)
        squares += (each - mean) * (each - mean);
    const auto count = static_cast<double>(stretches);
    const double error = stretches > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
    return meanOf(candidate) + errors * error >= meanOf(other);
}

double lookLevel(std::size_t look)
{
    const auto k = static_cast<double>(std::max<std::size_t>(look, 1));
    return usualLevel * 6 / (std::numbers::pi * std::numbers::pi * k * k);
}

Interval widenedTo(const Interval &interval, std::size_t blocks, double level)
{
    if (blocks < 2)
        return interval;
    const double wider = studentT(blocks - 1, level) / studentT(blocks - 1, usualLevel);
    return {interval.value, interval.value - wider * (interval.value - interval.low),
            interval.value + wider * (interval.high - interval.value)};
}

bool isOpen(const Interval &speedup, std::optional<double> copySpread)
{
    const Change change = decide(speedup, fewestRounds, copySpread);
    return change == Change::Undecided || (change == Change::NoGain && speedup.low < 1.0 - leastChange);
}

std::optional<std::size_t> lookAfter(std::size_t blocks, std::size_t fewest)
{
    std::size_t look = 1;
    for (std::size_t at = fewest; at <= blocks; ++look) {
        if (at == blocks)
            return look;
        at = std::max(at + 1, static_cast<std::size_t>(std::lround(lookGrowth * static_cast<double>(at))));
    }
    return std::nullopt;
}

bool settled(const Interval &speedup, std::size_t blocks, std::size_t look, std::optional<double> copySpread)
{
    if (!(speedup.value > 0))
        return false;
    const double known = std::max(0.01, 0.03 * std::abs(1 - 1 / speedup.value));
    return halfWidth(speedup) <= known * speedup.value
           && !isOpen(widenedTo(speedup, blocks, lookLevel(look)), copySpread);
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
