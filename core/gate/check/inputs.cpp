// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/inputs.h"

#include "core/base/cipherrandom.h"
#include "core/device/blend.h"
#include "core/gate/check/blendfor.h"
#include "core/gate/check/parallel.h"
#include "core/gate/check/randomorder.h"
#include "core/gate/check/standing.h"
#include "core/gate/check/stretch.h"
#include "core/gate/check/terms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

namespace klineage::gate {

namespace {

using workload::Distribution;
using workload::DistributionKind;

constexpr double maxCaseBytes = 64.0 * (1 << 30);

/// Box–Muller: elements 2i and 2i + 1 are the two results of one pair of uniforms. These have few bits, which could be found again in
/// a pair, and what is near zero lies on the steps of the mean; the contents of timed runs, which are made of two, have neither. So each
/// element is off by up to 2^-10 of itself, by bits of its own, as in theirs (core/device/blend.h); one of which the mean is most, of
/// its distance from that.
void fillNormal(std::span<float> out, std::uint64_t first, CipherRandom &random, float mean, float stddev)
{
    const bool far = std::abs(mean) > stddev;
    const auto element = [&](float distance, std::uint64_t byte) {
        const float off = 1.0f + (static_cast<float>(byte & 0xff) - 127.5f) * 0x1p-17f;
        return far ? mean + distance * off : (mean + distance) * off;
    };
    for (std::size_t i = 0; i < out.size(); i += 2) {
        const std::uint64_t bits = random.bits((first + i) / 2);
        const float u = static_cast<float>((bits >> 40) + 1) * 0x1p-24f; // (0, 1]
        const float v = static_cast<float>((bits >> 8) & 0xffffff) * 0x1p-24f;
        const float radius = stddev * std::sqrt(-2.0f * std::log(u));
        const float angle = 2.0f * std::numbers::pi_v<float> * v;
        out[i] = element(radius * std::cos(angle), bits >> 32);
        if (i + 1 < out.size())
            out[i + 1] = element(radius * std::sin(angle), bits);
    }
}

/// Element i of a row is kept finite when it is the row's own lucky one, so that no row is −inf throughout.
void maskRows(std::span<float> out, std::uint64_t first, std::uint64_t rowLength, std::uint64_t seed,
              std::uint64_t stream, double fraction)
{
    CipherRandom random(seed, stream);
    CipherRandom lucky(seed, stream);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t element = first + i;
        const std::uint64_t row = element / rowLength;
        const std::uint64_t kept = lucky.bits(~row) % rowLength;
        if (element % rowLength != kept && random.uniform(element) < fraction)
            out[i] = -std::numeric_limits<float>::infinity();
    }
}

/// `out` begins with a row and ends with one.
void normalizeRows(std::span<float> out, std::uint64_t rowLength, double epsilon)
{
    for (std::size_t row = 0; row < out.size(); row += rowLength) {
        double squares = epsilon;
        for (std::size_t i = 0; i < rowLength; ++i)
            squares += static_cast<double>(out[row + i]) * static_cast<double>(out[row + i]);
        for (std::size_t i = 0; i < rowLength; ++i)
            out[row + i] = static_cast<float>(static_cast<double>(out[row + i]) / std::sqrt(squares));
    }
}

/// The same columns for every piece of a tensor.
std::vector<bool> gatedColumns(std::uint64_t rowLength, double share, CipherRandom random)
{
    std::uint64_t drawn = 0;
    const auto order = randomOrder(rowLength, [&] { return random.bits(drawn++); });
    const auto count = static_cast<std::size_t>(std::ceil(share * static_cast<double>(rowLength)));
    std::vector<bool> gated(rowLength, false);
    for (std::size_t i = 0; i < std::min<std::size_t>(count, rowLength); ++i)
        gated[order[i]] = true;
    return gated;
}

void logGates(std::span<float> out, std::uint64_t first, const std::vector<bool> &gated, double divisor)
{
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double x = out[i];
        const double logSigmoid = std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x)));
        out[i] = gated[(first + i) % gated.size()] ? static_cast<float>(logSigmoid / divisor) : 0.0f;
    }
}

/// After fillNormal(). Rows and blocks have counters of their own streams, so that pieces agree on what they share. Outliers are in one row
/// of four. The first of several rows has neither outliers nor a tail: who looks there for what the others are like is wrong.
void mixScales(std::span<float> out, std::uint64_t first, std::uint64_t rows, std::uint64_t rowLength,
               const Distribution &d, std::uint64_t seed, std::uint64_t stream)
{
    constexpr std::uint64_t block = 32;
    constexpr double outlierRows = 0.25;
    constexpr std::uint64_t streams = std::uint64_t{1} << 32; // apart from those of whole tensors
    CipherRandom rowScales(seed, streams + 4 * stream);
    CipherRandom blocks(seed, streams + 4 * stream + 1);
    CipherRandom elements(seed, streams + 4 * stream + 2);
    CipherRandom ends(seed, streams + 4 * stream + 3);
    CipherRandom outliers(seed, 2 * streams + stream);
    const std::uint64_t blocksARow = (rowLength + block - 1) / block;
    std::uint64_t present = ~std::uint64_t{0};
    std::uint64_t end = rowLength;
    double rowScale = 1;
    double scale = 1;
    double outlierShare = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t row = (first + i) / rowLength;
        const std::uint64_t column = (first + i) % rowLength;
        if (i == 0 || column == 0) {
            rowScale = std::exp2(d.spread * (2 * rowScales.uniform(row) - 1));
            const bool plain = row == 0 && rows > 1;
            outlierShare = rows == 1 ? d.outliers : 0;
            if (row > 0 && outliers.uniform(row) < outlierRows)
                outlierShare = d.outliers / outlierRows;
            end = rowLength; // at least one element stays finite
            if (!plain && ends.uniform(2 * row) < d.tails)
                end = 1 + ends.bits(2 * row + 1) % rowLength;
        }
        if (const std::uint64_t now = row * blocksARow + column / block; now != present) {
            present = now;
            scale = rowScale * std::exp2(0.5 * d.spread * (2 * blocks.uniform(now) - 1));
        }
        const double outlier = outlierShare > 0 && elements.uniform(first + i) < outlierShare ? d.scale : 1.0;
        out[i] = column < end ? static_cast<float>(static_cast<double>(out[i]) * scale * outlier)
                              : -std::numeric_limits<float>::infinity();
    }
}

/// Of Integers.
double integerAt(const Distribution &d, CipherRandom &random, std::uint64_t index)
{
    return d.low + static_cast<double>(random.bits(index) % static_cast<std::uint64_t>(d.high - d.low + 1));
}

void fillPiece(std::span<float> out, std::uint64_t first, std::uint64_t rows, std::uint64_t rowLength,
               const Distribution &d, std::uint64_t seed, std::uint64_t stream)
{
    CipherRandom random(seed, 2 * stream);
    const auto mean = static_cast<float>(d.mean);
    const auto stddev = static_cast<float>(d.stddev);
    switch (d.kind) {
    case DistributionKind::Normal:
        fillNormal(out, first, random, mean, stddev);
        break;
    case DistributionKind::Large:
        fillNormal(out, first, random, mean * static_cast<float>(d.scale),
                   stddev * static_cast<float>(d.scale));
        break;
    case DistributionKind::NegInfinity:
        fillNormal(out, first, random, mean, stddev);
        maskRows(out, first, rowLength, seed, 2 * stream + 1, d.fraction);
        break;
    case DistributionKind::UnitRows:
        fillNormal(out, first, random, mean, stddev);
        normalizeRows(out, rowLength, d.epsilon);
        break;
    case DistributionKind::Sigmoid:
        fillNormal(out, first, random, mean, stddev);
        for (float &value : out)
            value = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(value))));
        break;
    case DistributionKind::Mixed:
        fillNormal(out, first, random, mean, stddev);
        mixScales(out, first, rows, rowLength, d, seed, stream);
        break;
    case DistributionKind::LogGates:
        fillNormal(out, first, random, mean, stddev);
        logGates(out, first, gatedColumns(rowLength, d.share, CipherRandom(seed, 2 * stream + 1)), d.divisor);
        break;
    case DistributionKind::Uniform:
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<float>(d.low + (d.high - d.low) * random.uniform(first + i));
        break;
    case DistributionKind::Bits:
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<float>(random.bits(first + i) >> 63);
        break;
    case DistributionKind::Integers:
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<float>(integerAt(d, random, first + i));
        break;
    case DistributionKind::Offsets: // fillOffsets()
        break;
    }
    if (d.factor != 1) {
        for (float &value : out)
            value *= static_cast<float>(d.factor);
    }
}

/// What an element is of which the pair has drawn these. mean: of equal elements; opposite ones have none. As large as others, whatever its share.
float paired(float own, float others, bool equal, bool isFirst, double share, float mean)
{
    if (isFirst)
        return own + (equal ? mean : 0.0f);
    const auto size = static_cast<float>(1 / std::sqrt(1 + share * share));
    const float mine = static_cast<float>(share) * own;
    // Nearly equal: equal bits would be seen at a glance.
    return equal ? mean + size * (others + mine) : size * (mine - others);
}

/// Rows [first, …) of matrices of `terms` rows, or of which each row has the terms. One row after the other, whatever piece they are in.
void fillPaired(std::span<float> out, std::uint64_t first, std::uint64_t rowLength, std::uint64_t terms,
                const Distribution &d, const Pairing &pairing, std::uint64_t seed, std::uint64_t stream)
{
    CipherRandom random(seed, 2 * stream);
    // So that all together have the usual mean, and their squares too.
    const auto mean = static_cast<float>(2 * d.mean);
    const auto deviation = static_cast<float>(std::sqrt(d.stddev * d.stddev - d.mean * d.mean));
    std::vector<float> own(rowLength);
    std::vector<float> others(rowLength);
    for (std::size_t begin = 0; begin < out.size(); begin += rowLength) {
        const std::uint64_t row = (first + begin) / rowLength;
        fillNormal(own, row * rowLength, random, 0, deviation);
        const std::size_t down = row % terms;
        if (d.sumsDown)
            fillNormal(others, (row - down + pairing.partner[down]) * rowLength, random, 0, deviation);
        for (std::size_t i = 0; i < rowLength; ++i) {
            const std::size_t term = d.sumsDown ? down : i;
            const float other = d.sumsDown ? others[i] : own[pairing.partner[i]];
            out[begin + i] = paired(own[i], other, pairing.equalInSecond[term] == d.isSecond,
                                    pairing.isFirst[term], d.cancels, mean);
        }
    }
}

constexpr std::uint64_t noRow = ~std::uint64_t{0};
constexpr std::uint64_t pairStream = ownerStream + 1; // no tensor's
constexpr std::uint64_t partStreams = 64;             // apart from those of other tensors

/// How many rows at the beginning all have the last, ordinary, distribution: none in half of the contents, up to half of them in the
/// others, in which the first rows say nothing of what follows.
std::uint64_t ordinaryRows(std::uint64_t rows, CipherRandom &owners)
{
    return owners.bits(noRow) % 2 == 0 ? 0 : owners.bits(noRow - 1) % (rows / 2 + 1);
}

void fillPatchwork(std::span<float> out, std::uint64_t first, std::uint64_t rows, std::uint64_t rowLength,
                   const Distribution &d, std::uint64_t seed, std::uint64_t stream)
{
    CipherRandom owners(seed, ownerStream);
    const std::uint64_t ordinary = ordinaryRows(rows, owners);
    for (std::size_t i = 0; i < out.size();) {
        const std::uint64_t row = (first + i) / rowLength;
        const std::size_t count = std::min<std::size_t>(out.size() - i, (row + 1) * rowLength - (first + i));
        // The same for all tensors of a case.
        const auto part = row < ordinary
                              ? d.parts.size() - 1
                              : static_cast<std::size_t>(owners.bits(rows > 1 ? row : 0) % d.parts.size());
        fillPiece(out.subspan(i, count), first + i, rows, rowLength, d.parts[part], seed,
                  stream + partStreams * (part + 1));
        i += count;
    }
}

bool isStretched(const HostTensor &tensor, const Distribution &d)
{
    return d.headGroups > 0 && d.parts.size() > 1 && tensor.shape.size() > 2;
}

/// `out` begins with a row and ends with one.
void fillStretch(std::span<float> out, std::uint64_t first, std::uint64_t rows, std::uint64_t rowLength,
                 const Distribution &d, const Stretch &stretch, std::uint64_t seed, std::uint64_t stream)
{
    const std::size_t last = d.parts.size() - 1;
    fillPiece(out, first, rows, rowLength, d.parts[last], seed, stream + partStreams * (last + 1));
    std::vector<float> hard(out.size());
    fillPiece(hard, first, rows, rowLength, d.parts.front(), seed, stream + partStreams);
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (stretch.has(first + i))
            out[i] = hard[i];
    }
}

/// Puts a piece of a row of `hard` into `row`.
void putPiece(std::span<float> row, std::span<const float> hard, std::uint64_t count, std::uint64_t place)
{
    const std::uint64_t begin = place % (row.size() - count + 1);
    std::copy_n(hard.begin() + static_cast<std::ptrdiff_t>(begin), count,
                row.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// Puts one element of `row` at `count` places more, some of them perhaps the same.
void putCopies(std::span<float> row, std::uint64_t count, CipherRandom random, std::uint64_t place)
{
    const float copied = row[place % row.size()];
    for (std::uint64_t i = 0; i < count; ++i)
        row[random.bits(i) % row.size()] = copied;
}

/// A piece is one element in some contents, nearly a whole row in others, and what is between; all orders of magnitude alike. `out` begins with
/// a row and ends with one.
void fillPieces(std::span<float> out, std::uint64_t first, std::uint64_t rows, std::uint64_t rowLength,
                const Distribution &d, std::uint64_t seed, std::uint64_t stream)
{
    constexpr std::uint64_t pieceStreams = ownerStream + 16; // no tensor's
    const std::size_t last = d.parts.size() - 1;
    fillPiece(out, first, rows, rowLength, d.parts[last], seed, stream + partStreams * (last + 1));
    // The same for all tensors of a case.
    CipherRandom drawn(seed, pieceStreams + static_cast<std::uint64_t>(d.drawing));
    const std::uint64_t firstPart = drawn.bits(noRow) % d.parts.size();
    const std::uint64_t most = rowLength;
    std::vector<float> hard(rowLength);
    for (std::uint64_t piece = 0; piece < static_cast<std::uint64_t>(d.pieces); ++piece) {
        const auto bits = [&](std::uint64_t i) { return drawn.bits(4 * piece + i); };
        const std::uint64_t row = bits(0) % rows;
        if (row * rowLength < first || (row + 1) * rowLength > first + out.size())
            continue;
        const auto own = out.subspan(row * rowLength - first, rowLength);
        const std::uint64_t order = std::uint64_t{1}
                                    << (bits(1) % static_cast<std::uint64_t>(std::bit_width(most)));
        const std::uint64_t count = std::min(order + bits(2) % order, most);
        if (d.copies) {
            putCopies(own, count, CipherRandom(bits(2), pieceStreams), bits(3));
            continue;
        }
        const auto part = static_cast<std::size_t>((firstPart + piece) % ((d.parts.size() + 1) / 2));
        fillPiece(hard, row * rowLength, rows, rowLength, d.parts[part], seed,
                  stream + partStreams * (part + 1));
        putPiece(own, hard, count, bits(3));
    }
}

/// Steps of at least 1 that add up to `end`; random ones are between about a third and nearly twice their mean, but for one in one of four contents,
/// which is about half of all.
void fillOffsets(HostTensor &tensor, const Distribution &d, std::uint64_t seed, std::uint64_t stream)
{
    CipherRandom random(seed, 2 * stream);
    const std::size_t steps = tensor.elements() - 1;
    std::vector<double> sums(steps + 1, 0.0);
    const std::size_t longest = random.bits(steps + 1) % 4 == 0 ? random.bits(steps) % steps : steps;
    for (std::size_t i = 0; i < steps; ++i) {
        const double step = i == longest ? static_cast<double>(steps) : 0.5 + random.uniform(i);
        sums[i + 1] = sums[i] + (d.even ? 1.0 : step);
    }
    const double spare = d.high - static_cast<double>(steps);
    for (std::size_t i = 0; i <= steps; ++i) {
        const double offset = static_cast<double>(i) + std::floor(spare * (sums[i] / sums[steps]));
        kernel::storeElement(tensor.bytes.data(), tensor.dtype, i, offset);
    }
}

/// As fillPiece() has them, and also those that single precision does not hold.
void storeIntegers(HostTensor &tensor, const Distribution &d, std::uint64_t seed, std::uint64_t stream)
{
    parallelRanges(tensor.elements(), usualGrain, [&](std::size_t begin, std::size_t end) {
        CipherRandom random(seed, 2 * stream);
        for (std::size_t i = begin; i < end; ++i)
            kernel::storeElement(tensor.bytes.data(), tensor.dtype, i, d.factor * integerAt(d, random, i));
    });
}

/// Elements [first, …) of doubles, each off by what single precision does not see.
void addLowBits(std::span<std::byte> target, std::uint64_t first, std::uint64_t seed, std::uint64_t stream)
{
    constexpr std::uint64_t lowStreams = std::uint64_t{6} << 32; // no tensor's
    CipherRandom random(seed, lowStreams + stream);
    for (std::size_t i = 0; i < target.size() / sizeof(double); ++i) {
        const double value = kernel::loadElement(target.data(), kernel::DType::F64, i);
        kernel::storeElement(target.data(), kernel::DType::F64, i,
                             value * (1 + 0x1p-25 * random.uniform(first + i)));
    }
}

void store(std::span<const float> values, std::byte *target, kernel::DType dtype)
{
    switch (dtype) {
    case kernel::DType::F32:
    case kernel::DType::TF32:
        std::memcpy(target, values.data(), values.size_bytes());
        break;
    case kernel::DType::BF16:
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::uint16_t bits = kernel::floatToBf16(values[i]);
            std::memcpy(target + i * sizeof bits, &bits, sizeof bits);
        }
        break;
    default:
        for (std::size_t i = 0; i < values.size(); ++i)
            kernel::storeElement(target, dtype, i, values[i]);
    }
}

} // namespace

std::size_t HostTensor::elements() const
{
    std::size_t count = 1;
    for (const auto extent : shape)
        count *= static_cast<std::size_t>(extent);
    return count;
}

std::size_t pairWindow(const Distribution &distribution, kernel::DType dtype, std::uint64_t seed)
{
    constexpr std::array<std::size_t, 3> windows{16, 32, 64};
    if (!distribution.isNear)
        return 0;
    CipherRandom random(seed, pairStream);
    return kernel::sizeOf(dtype) == 1 ? windows.front() : windows.at(random.bits(noRow) % windows.size());
}

Pairing pairingOf(std::size_t terms, std::uint64_t seed, std::size_t window)
{
    CipherRandom random(seed, pairStream);
    std::uint64_t counter = 0;
    window = window == 0 ? terms : window;
    Pairing pairing{std::vector<std::size_t>(terms), std::vector<bool>(terms, true),
                    std::vector<bool>(terms)};
    for (std::size_t begin = 0; begin < terms; begin += window) {
        const std::size_t count = std::min(window, terms - begin);
        const auto order = randomOrder(count, [&] { return random.bits(counter++); });
        for (std::size_t i = 0; i < count; i += 2) {
            const std::size_t first = begin + order[i];
            const std::size_t second = begin + order[std::min(i + 1, count - 1)];
            pairing.partner[first] = second;
            pairing.partner[second] = first;
            pairing.isFirst[second] = second == first;
            pairing.equalInSecond[first] = pairing.equalInSecond[second] = random.bits(counter++) % 2 == 0;
        }
    }
    return pairing;
}

void generate(HostTensor &tensor, const Distribution &distribution, std::uint64_t seed, std::uint64_t stream)
{
    const std::size_t count = tensor.elements();
    const std::size_t size = kernel::sizeOf(tensor.dtype);
    tensor.bytes.resize(count * size);
    if (distribution.parts.empty() && distribution.kind == DistributionKind::Offsets)
        return fillOffsets(tensor, distribution, seed, stream);
    if (distribution.parts.empty() && distribution.kind == DistributionKind::Integers
        && !kernel::isFloat(tensor.dtype))
        return storeIntegers(tensor, distribution, seed, stream);
    // Whole rows a piece where rows matter, and an even number of them for the pairs of fillNormal().
    const std::size_t rows = 2 * tensor.rowLength();
    const bool isPaired = distribution.cancels != 0 && tensor.shape.size() > 1;
    const bool wholeRows =
        isPaired || distribution.kind == DistributionKind::UnitRows || !distribution.parts.empty();
    const std::size_t terms = termsOf(tensor, distribution);
    const LargeTerms large(tensor, distribution, seed);
    const auto stretch =
        isStretched(tensor, distribution)
            ? std::optional<Stretch>(std::in_place, tensor.shape, distribution.headGroups, seed)
            : std::nullopt;
    const Pairing pairing =
        isPaired ? pairingOf(terms, seed, pairWindow(distribution, tensor.dtype, seed)) : Pairing{};
    const std::size_t grain = wholeRows ? rows * std::max<std::size_t>(1, usualGrain / rows) : usualGrain;
    parallelRanges(count, grain, [&](std::size_t begin, std::size_t end) {
        std::vector<float> values(end - begin);
        const auto fill = distribution.parts.empty() ? fillPiece
                          : distribution.pieces > 0  ? fillPieces
                                                     : fillPatchwork;
        if (isPaired)
            fillPaired(values, begin, tensor.rowLength(), terms, distribution, pairing, seed, stream);
        else if (stretch)
            fillStretch(values, begin, count / tensor.rowLength(), tensor.rowLength(), distribution, *stretch,
                        seed, stream);
        else
            fill(values, begin, count / tensor.rowLength(), tensor.rowLength(), distribution, seed, stream);
        for (std::size_t i = 0; large.any() && i < values.size(); ++i) {
            if (const auto value = large.at(begin + i, values[i]))
                values[i] = static_cast<float>(*value);
        }
        applyStandingHardness(values, begin, tensor.rowLength(), distribution, seed, stream);
        store(values, tensor.bytes.data() + begin * size, tensor.dtype);
        if (distribution.allBits)
            addLowBits({tensor.bytes.data() + begin * size, values.size() * size}, begin, seed, stream);
    });
}

namespace {

/// As what the timed runs hold is made: of what is there, and another content of its kind. What is hard in few places is so there still.
void blendWithAnother(HostTensor &tensor, const Distribution &d, std::uint64_t seed, std::uint64_t stream)
{
    constexpr std::uint64_t otherSeed = 0x5851f42d4c957f2d;
    const bool isStretch = isStretched(tensor, d);
    Distribution plain = isStretch ? d.parts.back() : d;
    plain.spike = plain.pair = plain.drift = 0;
    plain.termOctaves = 0;
    plain.lastHead = d.lastHead;
    plain.lift = d.lift;
    std::optional<Blend> blend =
        plain.parts.empty() && plain.cancels == 0 ? blendFor(tensor, plain) : std::nullopt;
    if (!blend)
        return;
    blend->key = seed + stream;
    HostTensor first{tensor.name, tensor.role, tensor.dtype, tensor.shape, {}};
    HostTensor second = first;
    RawBytes made;
    made.resize(tensor.bytes.size());
    const LargeTerms large(tensor, d, seed);
    if (isStretch || large.any())
        generate(first, plain, seed, stream);
    else
        first.bytes = std::move(tensor.bytes);
    generate(second, plain, seed ^ otherSeed, stream);
    parallelRanges(pieceCount(*blend, tensor.elements()), std::max<std::size_t>(1, usualGrain / blend->piece),
                   [&](std::size_t begin, std::size_t end) {
                       blendPieces(*blend, first.bytes, second.bytes, made, begin, end);
                   });
    const std::size_t size = kernel::sizeOf(tensor.dtype);
    const auto stretch =
        isStretch ? std::optional<Stretch>(std::in_place, tensor.shape, d.headGroups, seed) : std::nullopt;
    const std::size_t hard = stretch || large.any() ? tensor.elements() : 0;
    parallelRanges(hard, usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (stretch && stretch->has(i))
                std::memcpy(made.data() + i * size, tensor.bytes.data() + i * size, size);
            else if (const auto value = stretch
                                            ? std::nullopt
                                            : large.at(i, kernel::loadElement(made.data(), tensor.dtype, i)))
                kernel::storeElement(made.data(), tensor.dtype, i, *value);
        }
    });
    tensor.bytes = std::move(made);
}

} // namespace

Result<std::vector<HostTensor>> generateCase(const workload::Workload &workload, const workload::Case &c,
                                             std::uint64_t seed)
{
    const auto buffers = workload.buffersOf(c);
    if (!buffers)
        return tl::unexpected(buffers.error());
    std::vector<HostTensor> tensors;
    double total = 0;
    for (std::size_t i = 0; i < buffers->size(); ++i) {
        const kernel::ResolvedBuffer &buffer = (*buffers)[i];
        double bytes = static_cast<double>(kernel::sizeOf(buffer.dtype));
        for (const auto extent : buffer.shape)
            bytes *= static_cast<double>(extent);
        total += bytes;
        tensors.push_back({buffer.name, workload.tensors[i].role, buffer.dtype, buffer.shape, {}});
    }
    if (total > maxCaseBytes)
        return fail(ErrorCode::InvalidInput, "Cannot make the inputs of case " + c.name + " of "
                                                 + workload.name + ": its tensors need more than 64 GiB.");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].role != workload::Role::Input)
            continue;
        Distribution distribution = workload.distributionOf(workload.tensors[i], c);
        if (distribution.kind == DistributionKind::Offsets)
            distribution.high = static_cast<double>(c.axes.at(distribution.end));
        generate(tensors[i], distribution, seed, i);
        if (c.blended)
            blendWithAnother(tensors[i], distribution, seed, i);
    }
    return tensors;
}

} // namespace klineage::gate
