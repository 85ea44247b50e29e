// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hard contents of products and convolutions.
#include "core/base/cipherrandom.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/check/hardparts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace klineage::gate {

namespace {

using kernel::DType;
using workload::Distribution;
using workload::DistributionKind;

/// What is left of sums, in units of the root of their number, which is what independent terms about zero leave: as much as half precision loses in
/// few of a chain's additions, in more, in most of them; beyond that are low means, up to nearly the usual ones.
struct Shares {
    double least, most;
};
struct ShareRanges {
    Shares small, middle, much;
};
constexpr ShareRanges sharesOfBf16{{0x1p-5, 0x1p-4}, {0x1p-4, 0x1p-2}, {0x1p-2, 0.75}};
/// Limits are those of half precision, which are finer: other arithmetic errs less in proportion.
constexpr ShareRanges sharesOfHalf{{0x1p-3, 0x1p-2}, {0x1p-2, 0x1p-1}, {0x1p-1, 1}};
constexpr double nearlyUsual = 0.8;
constexpr double farFromUsual =
    0.5; ///< three products of bf16's parts are within what is allowed beside usual means
/// Tensor cores keep 13 bits behind the first one of the largest of a step's products and the sum. Of pairs that are of the same sixteen, and while what
/// is left stays below the products, they lose an eighth of what an element may be off by, whatever the order of steps; sixteen or more products in
/// half precision lose five to ten times as much as they do.
constexpr Shares sharesOfBytes{1.0 / 10, 1.0 / 6};
constexpr double mostLeftOfBytes = 8; ///< of the largest sum's root mean square

/// Operands of eight bits as large as they can be, and one so small that most of it is subnormal; where the result has room for that.
std::vector<workload::Case> scaledBytes(const workload::Workload &workload, std::uint64_t seed)
{
    constexpr double large = 0x1p7; // a few in ten thousand are cut off
    constexpr double small = 0x1p-7;
    const auto isByte = [&](const char *role) {
        const workload::Tensor *operand = tensorOf(workload, role);
        return operand && kernel::sizeOf(operand->dtype) == 1 && kernel::isFloat(operand->dtype);
    };
    const bool hasRoom =
        std::none_of(workload.tensors.begin(), workload.tensors.end(), [](const auto &tensor) {
            return tensor.role == workload::Role::Output
                   && (tensor.dtype == DType::F16 || kernel::sizeOf(tensor.dtype) < 2);
        });
    if (!isByte("a") || !isByte("b") || !hasRoom)
        return {};
    std::vector<workload::Case> contents;
    const auto add = [&](double first, double second, const char *what) {
        workload::Case &hard = contents.emplace_back(workload.cases.front());
        hard.name += what;
        for (const auto &[role, factor] : {std::pair{"a", first}, {"b", second}}) {
            const workload::Tensor *operand = tensorOf(workload, role);
            hard.distributions[operand->name] = workload.distributionOf(*operand, workload.cases.front());
            hard.distributions[operand->name].factor = factor;
        }
    };
    add(large, large, " (large)");
    CipherRandom random(seed, scaleStream);
    // Between usual and large: every second of six powers of two, or one of much work.
    for (int octaves = 1 + static_cast<int>(random.bits(3) % 2); octaves < 7; octaves += 2) {
        const double between = std::ldexp(1.0, octaves);
        if (isLittleWork(workload) || random.bits(9) % 3 == static_cast<std::uint64_t>(octaves - 1) / 2)
            add(between, between, " (larger)");
    }
    if (random.bits(2) % 2 == 0)
        add(small, large, " (a subnormal)");
    else
        add(large, small, " (b subnormal)");
    return contents;
}

/// Half of the rows mixed; both operands times a power of two, so that their product is about what it was.
std::optional<workload::Case> mixedOperands(const workload::Workload &workload, std::uint64_t seed)
{
    workload::Case hard = workload.cases.front();
    std::vector<const workload::Case *> cases = hardCases(workload);
    std::erase_if(cases,
                  [&](const workload::Case *c) { return !hasKind(workload, *c, DistributionKind::Mixed); });
    if (cases.empty())
        return std::nullopt;
    cases.resize(1);
    nameAfter(hard, cases);
    for (const workload::Tensor &tensor : workload.tensors) {
        const Distribution &ordinary = workload.distributionOf(tensor, workload.cases.front());
        if (tensor.role != workload::Role::Input || ordinary.kind == DistributionKind::Offsets)
            continue;
        Distribution all;
        all.parts = {workload.distributionOf(tensor, *cases.front()), ordinary};
        for (Distribution &part : all.parts)
            part.factor = factorOf(workload, tensor, seed);
        hard.distributions[tensor.name] = all;
    }
    return hard;
}

/// How much sums leave (ShareRanges).
enum class Remainder { Small, Middle, Much, LowMeans };

Shares sharesOf(bool hasHalf, Remainder remainder)
{
    const ShareRanges &ranges = hasHalf ? sharesOfHalf : sharesOfBf16;
    return remainder == Remainder::Small    ? ranges.small
           : remainder == Remainder::Middle ? ranges.middle
           : remainder == Remainder::Much   ? ranges.much
                                            : Shares{1, 1};
}

/// All orders of magnitude alike.
double drawnShare(const Shares &shares, double uniform)
{
    return shares.least * std::pow(shares.most / shares.least, uniform);
}

/// Sums whose terms cancel, but for a drawn share of what independent ones would leave: what a sum of fewer bits loses on the way shows in what is
/// left, and who falls back where little is left does not know how much that is. No element or row looks other than ordinary. What is added to the
/// products is as much smaller. Of operands of 16 or 8 bits and results of 16; of others, of which single precision itself would lose too much, means
/// are low. Pairs lie anywhere in the sum, or, as the seed has it and always of bytes, near each other (pairingOf()).
std::optional<workload::Case> cancellingSums(const workload::Workload &workload, Remainder remainder,
                                             CipherRandom &random, std::uint64_t drawn)
{
    const auto operands = operandsOf(workload);
    if (!operands || operands->first == operands->second)
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    bool hasHalf = false;
    bool hasByte = false;
    bool hasSingle = false;
    for (const workload::Tensor &tensor : workload.tensors) {
        Distribution d = workload.distributionOf(tensor, workload.cases.front());
        if (tensor.role == workload::Role::Input && d.kind == DistributionKind::Offsets)
            continue;
        hasHalf = hasHalf || tensor.dtype == DType::F16;
        const bool isByte = tensor.dtype == DType::F8E4M3;
        const bool isSingle = tensor.dtype == DType::F32;
        const bool isNarrow = tensor.dtype == DType::F16 || tensor.dtype == DType::BF16;
        if (tensor.role == workload::Role::Output ? !isNarrow && !isSingle
                                                  : d.kind != DistributionKind::Normal)
            return std::nullopt;
        if (operands->has(tensor) && ((!isNarrow && !isByte && !isSingle) || d.stddev <= std::abs(d.mean)))
            return std::nullopt;
        hasByte = hasByte || isByte;
        hasSingle =
            hasSingle || (isSingle && (operands->has(tensor) || tensor.role == workload::Role::Output));
    }
    if (hasByte && (hasHalf || hasSingle || remainder > Remainder::Middle))
        return std::nullopt; // those limits are too fine for their tensor cores
    if (hasSingle && remainder != Remainder::LowMeans)
        return std::nullopt; // and these for sums of single precision, however they are ordered
    const double means = workload.distributionOf(*operands->first, hard).mean
                         * workload.distributionOf(*operands->second, hard).mean;
    const double terms = termsOfSum(workload, workload.cases.front()).value_or(1);
    Shares shares = hasByte ? sharesOfBytes : sharesOf(hasHalf, remainder);
    if (hasByte) {
        shares.most = std::min(shares.most, mostLeftOfBytes / std::sqrt(terms));
        if (shares.most < shares.least)
            return std::nullopt;
    }
    if (remainder == Remainder::LowMeans) {
        if (means == 0)
            return std::nullopt; // as they are
        const double usual = std::sqrt(1 + terms * means * means);
        shares.most = std::max(shares.least, (hasSingle ? farFromUsual : nearlyUsual) * usual);
    }
    if (!hasByte && remainder != Remainder::LowMeans) { // what tensor cores cut off adds up in very long sums
        const double longer = std::max(1.0, terms / usualTerms);
        shares = {shares.least * longer, shares.most * longer};
    }
    const double share = drawnShare(shares, random.uniform(drawn));
    const bool isNear = hasByte || random.bits(drawn + 1) % 2 == 0;
    hard.name += remainder == Remainder::Small    ? " (cancelling)"
                 : remainder == Remainder::Middle ? " (cancelling less)"
                 : remainder == Remainder::Much   ? " (cancelling little)"
                                                  : " (low means)";
    for (const workload::Tensor &tensor : workload.tensors) {
        Distribution d = workload.distributionOf(tensor, workload.cases.front());
        if (tensor.role != workload::Role::Input || d.kind == DistributionKind::Offsets)
            continue;
        if (!operands->has(tensor)) {
            d.factor = std::min(share, 1.0);
        } else if (remainder == Remainder::LowMeans) { // of the products of means, and of what is about them
            d.mean *= std::sqrt(std::sqrt((share * share - 1) / terms) / std::abs(means));
        } else {
            d.cancels = share;
            d.isNear = isNear;
            d.isSecond = &tensor == operands->second;
            d.sumsDown = d.isSecond && operands->sumsDown;
            d.terms = operands->terms;
        }
        hard.distributions[tensor.name] = d;
    }
    return hard;
}

/// One term of each sum so large that half precision holds neither it nor the sum; all else ordinary. Who looks at a few terms does not see it.
std::optional<workload::Case> oneLargeTerm(const workload::Workload &workload)
{
    constexpr double beyondHalf = 0x1p12; // of an element: a product is 2^24 times an ordinary one
    constexpr double beyondBytes = 0x1p7;
    const auto operands = operandsOf(workload);
    if (!operands)
        return std::nullopt;
    const bool hasRoom =
        std::none_of(workload.tensors.begin(), workload.tensors.end(), [](const auto &tensor) {
            return tensor.role == workload::Role::Output && !holdsManyScales(tensor.dtype);
        });
    if (!hasRoom || (operands->first == operands->second && operands->sumsDown))
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    hard.name += " (one large term)";
    for (const workload::Tensor *tensor : {operands->first, operands->second}) {
        Distribution d = workload.distributionOf(*tensor, workload.cases.front());
        const bool isByte = kernel::sizeOf(tensor->dtype) == 1;
        if (d.kind != DistributionKind::Normal || !kernel::isFloat(tensor->dtype)
            || (!isByte && !holdsManyScales(tensor->dtype)))
            return std::nullopt;
        d.spike = isByte ? beyondBytes : beyondHalf;
        d.sumsDown = tensor == operands->second && operands->sumsDown;
        d.terms = operands->terms;
        hard.distributions[tensor->name] = d;
    }
    return hard;
}

/// Both operands so small that half precision has few bits of an element, or none; or one of them alone, and far smaller.
std::optional<workload::Case> smallOperands(const workload::Workload &workload, double first, double second)
{
    const auto operands = operandsOf(workload);
    if (!operands)
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    hard.name += first < 1 && second < 1 ? " (both small)" : " (one small)";
    for (const workload::Tensor &tensor : workload.tensors) {
        Distribution d = workload.distributionOf(tensor, workload.cases.front());
        if (tensor.role == workload::Role::Input && d.kind == DistributionKind::Offsets)
            continue;
        if (!holdsManyScales(tensor.dtype)
            || (tensor.role == workload::Role::Input && d.kind != DistributionKind::Normal))
            return std::nullopt;
        if (tensor.role != workload::Role::Input)
            continue;
        const bool isFirst = &tensor == operands->first;
        if (isFirst && operands->first == operands->second && first != second)
            return std::nullopt;
        d.factor = isFirst                       ? first
                   : &tensor == operands->second ? second
                                                 : first * second; // what is added to the products too
        hard.distributions[tensor.name] = d;
    }
    return hard;
}

/// By how many powers of two an operand is smaller.
struct Octaves {
    int least, most;
};

/// One operand as small as weights often are, by a drawn power of two: what is kept in steps of one size for usual elements has few bits of it.
/// Half precision keeps normal ones. Results are as much smaller, and what is added to them. butOne: but for one term of each sum, which
/// is usual there and small in the other operand, so that neither a row's largest element nor a result says so.
std::optional<workload::Case> smallOperand(const workload::Workload &workload, Octaves octaves, bool isFirst,
                                           bool butOne, CipherRandom &random, std::uint64_t drawn)
{
    constexpr int mostOfHalf = 6;
    const auto operands = operandsOf(workload);
    if (!operands || operands->first == operands->second)
        return std::nullopt;
    for (const workload::Tensor &tensor : workload.tensors) {
        if (kernel::isFloat(tensor.dtype) && kernel::sizeOf(tensor.dtype) < 2)
            return std::nullopt; // scaledBytes() has these
        if (butOne && operands->has(tensor) && tensor.dtype == DType::F32)
            return std::
                nullopt; // rows may be added before they are multiplied (Strassen), as scaledTerms() says
        if (kernel::isFloat(tensor.dtype) && !holdsManyScales(tensor.dtype))
            octaves = {std::min(octaves.least, mostOfHalf), std::min(octaves.most, mostOfHalf)};
    }
    const auto range = static_cast<std::uint64_t>(octaves.most - octaves.least + 1);
    const int smaller = octaves.least + static_cast<int>(random.bits(drawn) % range);
    const workload::Tensor *small = isFirst ? operands->first : operands->second;
    workload::Case hard = workload.cases.front();
    hard.name += " (one operand 2^-" + std::to_string(smaller) + (butOne ? " but for a term)" : ")");
    for (const workload::Tensor &tensor : workload.tensors) {
        Distribution d = workload.distributionOf(tensor, workload.cases.front());
        if (tensor.role != workload::Role::Input || d.kind == DistributionKind::Offsets)
            continue;
        if (d.kind != DistributionKind::Normal)
            return std::nullopt;
        const bool isOther = operands->has(tensor) && &tensor != small;
        if (isOther && !butOne)
            continue;
        d.factor = isOther ? 1 : std::ldexp(1.0, -smaller);
        if (butOne && operands->has(tensor)) {
            d.spike = std::ldexp(1.0, isOther ? -smaller : smaller);
            d.sumsDown = &tensor == operands->second && operands->sumsDown;
            d.terms = operands->terms;
        }
        hard.distributions[tensor.name] = d;
    }
    return hard;
}

/// In one row in sixteen two terms that are far larger than all others and cancel: the sum is as usual, and what half precision loses on the way
/// is many times what is allowed. Neither results nor most rows say so. As large as single precision bears, whatever lies between the two in
/// the order of a sum: some multiple of √terms, to which results are in proportion. Of operands of 16 bits.
std::optional<workload::Case> largePairs(const workload::Workload &workload, bool near)
{
    const auto operands = operandsOf(workload);
    const auto terms = termsOfSum(workload, workload.cases.front());
    if (!operands || operands->first == operands->second || !terms)
        return std::nullopt;
    const bool hasHalf =
        std::any_of(workload.tensors.begin(), workload.tensors.end(), [](const auto &tensor) {
            return tensor.dtype == DType::F16; // whose limits are finer
        });
    const double large = std::exp2(std::floor(std::log2((hasHalf ? 8 : 16) * std::sqrt(*terms))));
    workload::Case hard = workload.cases.front();
    hard.name += near ? " (near large pairs)" : " (large pairs)";
    for (const workload::Tensor *tensor : {operands->first, operands->second}) {
        Distribution d = workload.distributionOf(*tensor, workload.cases.front());
        const bool isNarrow = tensor->dtype == DType::F16 || tensor->dtype == DType::BF16;
        if (d.kind != DistributionKind::Normal || !isNarrow)
            return std::nullopt;
        d.pair = large;
        d.isNear = near;
        d.isSecond = tensor == operands->second;
        d.sumsDown = d.isSecond && operands->sumsDown;
        d.terms = operands->terms;
        hard.distributions[tensor->name] = d;
    }
    return hard;
}

/// Sums that grow and shrink in blocks and end as usual, of elements that look ordinary, so that what fewer bits lose on the way is some times as much as
/// ever, and neither results nor a few elements say so. Of operands of 16 or 8 bits and results of 16; a tensor that is both operands has rows of
/// either kind.
std::optional<workload::Case> driftingSums(const workload::Workload &workload, CipherRandom &random,
                                           std::uint64_t drawn)
{
    constexpr double offUsual = 1.5; // in deviations: 64 terms add up to eighteen times what they usually do
    constexpr double offBytes = 0.5; // whose tensor cores keep 13 bits of a sum
    constexpr double fewestTerms = 64;
    constexpr std::int64_t classRows = 16; // or up to eight times as many: no tile has both
    const auto operands = operandsOf(workload);
    if (!operands || termsOfSum(workload, workload.cases.front()).value_or(0) < fewestTerms
        || (operands->terms > 0 && static_cast<double>(operands->terms) < fewestTerms))
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    hard.name += " (drifting sums)";
    const bool isBoth = operands->first == operands->second;
    if (isBoth && operands->sumsDown)
        return std::nullopt;
    for (const workload::Tensor &tensor : workload.tensors) {
        const bool isNarrow = tensor.dtype == DType::F16 || tensor.dtype == DType::BF16;
        const bool isByte = tensor.dtype == DType::F8E4M3;
        if (tensor.role == workload::Role::Output && !isNarrow)
            return std::nullopt;
        if (!operands->has(tensor))
            continue;
        Distribution d = workload.distributionOf(tensor, workload.cases.front());
        if ((!isNarrow && !isByte) || d.kind != DistributionKind::Normal)
            return std::nullopt;
        d.drift = (isByte ? offBytes : offUsual) * d.stddev;
        d.isSecond = !isBoth && &tensor == operands->second;
        d.sumsDown = d.isSecond && operands->sumsDown;
        d.terms = operands->terms;
        if (const auto shape = workload.shapeOf(tensor, hard); isBoth && shape)
            d.classRows = std::clamp<std::int64_t>((*shape)[shape->size() - 2] / 2, 1,
                                                   classRows << (random.bits(drawn) % 4));
        hard.distributions[tensor.name] = d;
    }
    return hard;
}

/// Every second term is large in one operand, though not for half precision, and so small in the other that half precision has few bits of it; their
/// products are small, and sums as usual. What those bits were worth shows in results before they are rounded. Of bf16
/// alone: in single precision rows may be added before they are multiplied (Strassen), which does not bear it.
std::optional<workload::Case> scaledTerms(const workload::Workload &workload, CipherRandom &random,
                                          std::uint64_t drawn)
{
    const auto operands = operandsOf(workload);
    if (!operands || operands->first == operands->second)
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    hard.name += " (scaled terms)";
    for (const workload::Tensor *tensor : {operands->first, operands->second}) {
        Distribution d = workload.distributionOf(*tensor, workload.cases.front());
        if (d.kind != DistributionKind::Normal || tensor->dtype != DType::BF16)
            return std::nullopt;
        d.termOctaves =
            fewestOctaves + static_cast<int>(random.bits(drawn) % (mostOctaves - fewestOctaves + 1));
        d.isSecond = tensor == operands->second;
        d.sumsDown = d.isSecond && operands->sumsDown;
        d.terms = operands->terms;
        hard.distributions[tensor->name] = d;
    }
    return hard;
}

} // namespace

bool holdsManyScales(DType dtype)
{
    return dtype == DType::F32 || dtype == DType::TF32 || dtype == DType::BF16 || dtype == DType::F64;
}

std::vector<workload::Case> hardProducts(const workload::Workload &workload, std::uint64_t seed)
{
    constexpr double small = 0x1p-13;
    constexpr double farSmaller = 0x1p-20;
    CipherRandom random(seed, scaleStream);
    constexpr std::uint64_t ofFirst = 16; // what each of the contents draws
    constexpr std::uint64_t ofOthers = 32;
    const bool little = isLittleWork(workload);
    const bool modest = isModestWork(workload);
    // Of the first there is most where there is little time: of either of those in which nothing looks hard. Modest work has much in a
    // content of its own.
    constexpr std::array remainders{Remainder::Small, Remainder::Middle, Remainder::LowMeans, Remainder::Much,
                                    Remainder::Much};
    const Remainder remainder = little ? Remainder::Small : remainders.at(random.bits(4) % (modest ? 3 : 5));
    std::optional<workload::Case> first = cancellingSums(workload, remainder, random, ofFirst);
    for (const Remainder other :
         {Remainder::Small, Remainder::LowMeans}) { // some types have one of them alone
        if (!first && (!little || other != Remainder::LowMeans))
            first = cancellingSums(workload, other, random, ofFirst);
    }
    const bool near = !little && random.bits(7) % 2 == 0;
    std::optional<workload::Case> second = largePairs(workload, near);
    if (random.bits(3) % 2 == 0)
        std::swap(first, second);
    std::vector<workload::Case> contents;
    const auto add = [&](std::optional<workload::Case> content) {
        if (content)
            contents.push_back(std::move(*content));
    };
    add(std::move(first));
    add(std::move(second));
    if (modest)
        add(cancellingSums(workload, Remainder::Much, random, ofOthers));
    if (little) {
        add(largePairs(workload, true));
        const double drawn = farSmaller / std::exp2(static_cast<double>(random.bits(5) % 4));
        const bool isFirst = random.bits(6) % 2 == 0;
        add(cancellingSums(workload, Remainder::Middle, random, ofOthers));
        add(cancellingSums(workload, Remainder::Much, random, ofOthers + 2));
        add(cancellingSums(workload, Remainder::LowMeans, random, ofOthers + 4));
        add(smallOperands(workload, isFirst ? drawn : 1, isFirst ? 1 : drawn));
    }
    auto drifting = driftingSums(workload, random, ofOthers + 6);
    auto scaled = scaledTerms(workload, random, ofOthers + 7);
    if (!little && !modest && drifting && scaled)
        (random.bits(8) % 2 == 0 ? drifting : scaled).reset();
    add(std::move(drifting));
    add(std::move(scaled));
    add(oneLargeTerm(workload));
    add(smallOperands(workload, small, small));
    // Of weights more often: what is multiplied by them is normalized in most networks.
    for (const Octaves octaves : little   ? std::vector<Octaves>{{3, 5}, {6, 8}, {9, 12}}
                                 : modest ? std::vector<Octaves>{{3, 6}, {7, 12}}
                                          : std::vector<Octaves>{{3, 12}}) {
        const std::uint64_t drawn = ofOthers + 8 + 2 * static_cast<std::uint64_t>(octaves.least);
        if (little || modest || random.bits(12) % 2 == 0)
            add(smallOperand(workload, octaves, random.bits(drawn + 1) % 4 == 0, false, random, drawn));
    }
    for (const bool isFirst : {false, true}) {
        if (little || (random.bits(14) % 2 == 0) == isFirst) {
            if (little || modest || random.bits(12) % 2 == 1)
                add(smallOperand(workload, {6, 12}, isFirst, true, random, ofOthers + 8));
        }
    }
    add(mixedOperands(workload, seed));
    for (auto more : {hardIntegers(workload, seed), scaledBytes(workload, seed)})
        contents.insert(contents.end(), more.begin(), more.end());
    return contents;
}

} // namespace klineage::gate
