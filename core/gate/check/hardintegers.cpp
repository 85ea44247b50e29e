// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hard contents of products of whole numbers, whose sums are exact.
#include "core/base/cipherrandom.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/check/hardparts.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

using kernel::DType;
using workload::Distribution;
using workload::DistributionKind;

bool isByteFloat(DType dtype)
{
    return kernel::isFloat(dtype) && kernel::sizeOf(dtype) == 1;
}

bool isUnsigned(DType dtype)
{
    return dtype == DType::U8 || dtype == DType::U32;
}

/// Sums of whole numbers are exact so far: in 32 bits where results are whole numbers of so many, else in single precision.
double exactUpTo(const workload::Workload &workload)
{
    const bool areWhole =
        std::all_of(workload.tensors.begin(), workload.tensors.end(), [](const auto &tensor) {
            return tensor.role != workload::Role::Output
                   || (!kernel::isFloat(tensor.dtype) && kernel::sizeOf(tensor.dtype) >= 4);
        });
    return areWhole ? 0x1p31 : 0x1p24;
}

/// Exact cases at the timed shape as they are declared, where sums of as many terms are exact too: who has half precision do it where that is
/// infinite and nowhere else does not see them, nor who takes a whole number's lower bits.
std::vector<workload::Case> exactCases(const workload::Workload &workload, std::uint64_t seed)
{
    constexpr double deviations = 8; ///< of a sum of independent numbers
    const auto operands = operandsOf(workload);
    const auto terms = termsOfSum(workload, workload.cases.front());
    if (!operands || !terms)
        return {};
    std::vector<workload::Case> contents;
    for (const workload::Case &c : workload.cases) {
        double product = deviations / 3 * std::sqrt(*terms); // of the mean squares of uniform numbers
        double means = *terms;
        bool fits = c.exact;
        for (const workload::Tensor *operand : {operands->first, operands->second}) {
            const Distribution &d = workload.distributionOf(*operand, c);
            fits = fits && d.kind == DistributionKind::Integers && !isByteFloat(operand->dtype)
                   && d != workload.distributionOf(*operand, workload.cases.front());
            product *= std::max(std::abs(d.low), std::abs(d.high));
            means *= std::abs(d.low + d.high) / 2;
        }
        if (!fits || product + means > exactUpTo(workload))
            continue;
        workload::Case &hard = contents.emplace_back(atTimedShape(workload, c));
        hard.name += " (with " + c.name + ")";
        hard.exact = true;
    }
    if (contents.size() > 1 && !isLittleWork(workload)) {
        std::swap(contents.front(), contents[CipherRandom(seed, scaleStream).bits(15) % contents.size()]);
        contents.resize(1);
    }
    return contents;
}

/// The largest of the powers of two up to which a type has all whole numbers, or all it has; at most 2^12.
double wholeUpTo(DType dtype)
{
    switch (dtype) {
    case DType::I8:
        return 127;
    case DType::U8:
        return 255;
    case DType::BF16:
        return 256;
    case DType::F16:
        return 2048;
    default:
        return 4096;
    }
}

/// Whole numbers as large as they can be for sums of so many to be exact, and that times a power of two; where an exact case has such.
std::optional<workload::Case> wholeNumbers(const workload::Workload &workload, std::uint64_t seed)
{
    const auto terms = termsOfSum(workload, workload.cases.front());
    for (const workload::Case &c : workload.cases) {
        if (!terms || !c.exact || !hasKind(workload, c, DistributionKind::Integers))
            continue;
        workload::Case hard = workload.cases.front();
        hard.name += " (as " + c.name + ")";
        hard.exact = true;
        // Sums of so many random numbers stay below a third of this, with what adding rows first makes of them.
        const double room = exactUpTo(workload) / (16 * std::sqrt(*terms));
        const double each = std::exp2(std::floor(0.5 * std::log2(room)));
        double ofCase = 1;
        double ofTypes = 1;
        for (const workload::Tensor &tensor : workload.tensors) {
            const Distribution &d = workload.distributionOf(tensor, c);
            if (tensor.role != workload::Role::Input || tensor.shape.size() < 2)
                continue;
            ofCase *= std::max(std::abs(d.low), std::abs(d.high));
            ofTypes *= std::min(each, wholeUpTo(tensor.dtype));
        }
        const bool wider = ofTypes > ofCase || ofCase > room;
        for (const workload::Tensor &tensor : workload.tensors) {
            if (tensor.role != workload::Role::Input)
                continue;
            Distribution d = workload.distributionOf(tensor, c);
            // Tensor cores keep 14 bits of sums of eight-bit floats: no more than the case itself can ask.
            if (d.kind != DistributionKind::Integers || isByteFloat(tensor.dtype))
                return std::nullopt;
            if (tensor.shape.size() > 1) { // an operand
                if (wider) {
                    d.high = std::min(each, wholeUpTo(tensor.dtype));
                    d.low = isUnsigned(tensor.dtype) ? 0 : -d.high;
                }
                d.factor = factorOf(workload, tensor, seed, true); // the other way round than mixed
            }
            hard.distributions[tensor.name] = d;
        }
        return hard;
    }
    return std::nullopt;
}

/// Operands that are whole numbers by their type: larger than the timed ones, where half precision has no more bits than they need, and yet no infinite
/// sums; and of eight bits nothing but zeros and the extreme.
std::vector<workload::Case> wholeTypes(const workload::Workload &workload, std::uint64_t seed)
{
    constexpr double least = 28; ///< below which few sums of sixteen products need a twelfth bit
    constexpr double most = 60;  ///< sixteen products of which are finite in half precision
    const auto operands = operandsOf(workload);
    if (!operands || kernel::isFloat(operands->first->dtype) || kernel::isFloat(operands->second->dtype))
        return {};
    CipherRandom random(seed, scaleStream);
    const double high = std::floor(least * std::pow(most / least, random.uniform(16)));
    workload::Case between = workload.cases.front();
    between.name += " (between)";
    between.exact = true;
    workload::Case extreme = between;
    extreme.name = workload.cases.front().name + " (extremes)";
    bool areBytes = true;
    for (const workload::Tensor *operand : {operands->first, operands->second}) {
        const double lowest = isUnsigned(operand->dtype) ? 0 : -high;
        Distribution &d = between.distributions[operand->name];
        d = {};
        d.kind = DistributionKind::Integers;
        d.low = lowest;
        d.high = high;
        Distribution &bits = extreme.distributions[operand->name];
        bits = {};
        bits.kind = DistributionKind::Bits;
        bits.factor = isUnsigned(operand->dtype) ? 255 : -128;
        areBytes = areBytes && kernel::sizeOf(operand->dtype) == 1;
    }
    std::vector<workload::Case> contents{between};
    if (areBytes && exactUpTo(workload) > 0x1p24)
        contents.push_back(extreme);
    return contents;
}

} // namespace

std::vector<workload::Case> hardIntegers(const workload::Workload &workload, std::uint64_t seed)
{
    std::vector<workload::Case> contents = exactCases(workload, seed);
    if (auto whole = wholeNumbers(workload, seed))
        contents.insert(contents.begin(), std::move(*whole));
    const auto ofTypes = wholeTypes(workload, seed);
    contents.insert(contents.end(), ofTypes.begin(), ofTypes.end());
    return contents;
}

} // namespace klineage::gate
