// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hard contents of the delta rule: what is never forgotten, in all heads over the whole length, or in few over a part of it, which no look at
// samples finds.
#include "core/base/cipherrandom.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/check/hardparts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace klineage::gate {

namespace {

using workload::Distribution;
using workload::DistributionKind;

constexpr double beyondHalf = 0x1p17;
constexpr double manyElements = 64; ///< of a key; as many directions are each met seldom
constexpr double tokensADirection =
    4; ///< of a key's elements: keys so alike leave the most of what lies across them to the last token
constexpr double belowHalf = 0x1p-20; ///< of which half precision has four bits, where it has any

/// Key heads, each of which serves as many heads of values.
std::int64_t keyHeads(const workload::Workload &workload)
{
    const workload::Tensor *keys = tensorOf(workload, "k");
    if (!keys)
        return 0;
    const auto shape = workload.shapeOf(*keys, workload.cases.front());
    return shape && shape->size() > 2 ? (*shape)[2] : 0;
}

/// Gates that forget nothing.
Distribution openGates()
{
    Distribution open;
    open.mean = open.stddev = 0;
    return open;
}

/// What `hard` does to all of the tensors of these roles it does to one group of heads over a stretch of tokens, where no gate forgets either.
std::optional<workload::Case> inAStretch(const workload::Workload &workload,
                                         std::optional<workload::Case> hard, const std::string &role)
{
    const workload::Tensor *changed = tensorOf(workload, role);
    const workload::Tensor *gates = tensorOf(workload, "g");
    const std::int64_t groups = keyHeads(workload);
    if (!hard || !changed || !gates || groups == 0)
        return std::nullopt;
    const workload::Case &timed = workload.cases.front();
    const auto put = [&](const workload::Tensor &tensor, const Distribution &first) {
        Distribution d;
        d.parts = {first, workload.distributionOf(tensor, timed)};
        d.headGroups = groups;
        d.lastHead = d.parts.back().lastHead;
        hard->distributions[tensor.name] = d;
    };
    const Distribution whole = hard->distributions.at(changed->name);
    put(*changed, whole.parts.empty() ? whole : whole.parts.front());
    put(*gates, openGates());
    hard->name += ", in a stretch";
    return hard;
}

/// Weights so small, but for one token in sixteen, that a head whose gates are open keeps what it has over the whole length.
std::optional<workload::Case> longMemory(const workload::Workload &workload)
{
    const workload::Tensor *weights = tensorOf(workload, "beta");
    if (!weights)
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    const Distribution &ordinary = workload.distributionOf(*weights, hard);
    if (ordinary.kind != DistributionKind::Sigmoid)
        return std::nullopt;
    Distribution small = ordinary;
    small.mean = -5;
    Distribution all;
    all.parts.assign(15, small);
    all.parts.push_back(ordinary);
    all.lastHead = ordinary.lastHead;
    hard.distributions[weights->name] = all;
    if (const workload::Tensor *gates = tensorOf(workload, "g"); gates && hasOneHead(workload, *gates))
        hard.distributions[gates->name] = openGates(); // of others those of one head are open in any content
    hard.name += " (long memory)";
    return hard;
}

/// Keys that resemble each other, the more the fewer their elements and the more tokens there are: what lies across them is hardly corrected by
/// weights as large as usual, and so kept over the whole length where no gate forgets it. eitherSign: along one direction or against it, so
/// that they have no mean.
std::optional<workload::Case> alikeKeys(const workload::Workload &workload, bool eitherSign)
{
    const workload::Tensor *keys = tensorOf(workload, "k");
    if (!keys)
        return std::nullopt;
    workload::Case hard = workload.cases.front();
    Distribution alike = workload.distributionOf(*keys, hard);
    if (alike.kind != DistributionKind::UnitRows)
        return std::nullopt;
    const auto shape = workload.shapeOf(*keys, hard);
    const bool isKnown = shape && shape->size() > 1;
    const double elements = isKnown ? static_cast<double>(shape->back()) : manyElements;
    const double tokens = isKnown ? static_cast<double>((*shape)[1]) : 1;
    alike.mean = std::sqrt(std::max({1.0, manyElements / elements, tokens / (tokensADirection * elements)}));
    if (eitherSign) {
        Distribution both;
        both.parts = {alike, alike};
        both.parts.back().mean = -alike.mean;
        both.lastHead = alike.lastHead;
        hard.distributions[keys->name] = both;
    } else {
        hard.distributions[keys->name] = alike;
    }
    if (const workload::Tensor *gates = tensorOf(workload, "g"))
        hard.distributions[gates->name] = openGates();
    hard.name += eitherSign ? " (keys alike but for the sign)" : " (alike keys)";
    return hard;
}

/// The state and what is put into it, so large that half precision does not hold it, or so small. All is in proportion.
/// valuesAlone: the state begins as usual.
std::optional<workload::Case> scaledState(const workload::Workload &workload, double factor,
                                          const std::string &what, bool valuesAlone = false)
{
    workload::Case hard = workload.cases.front();
    for (const char *role : valuesAlone ? std::vector{"v"} : std::vector{"initial_state", "v"}) {
        const workload::Tensor *tensor = tensorOf(workload, role);
        if (!tensor || !holdsManyScales(tensor->dtype))
            return std::nullopt;
        Distribution d = workload.distributionOf(*tensor, hard);
        d.factor = factor;
        hard.distributions[tensor->name] = d;
    }
    for (const workload::Tensor &tensor : workload.tensors) {
        if (tensor.role == workload::Role::Output && !holdsManyScales(tensor.dtype))
            return std::nullopt;
    }
    hard.name += " (" + what + ")";
    return hard;
}

} // namespace

std::vector<workload::Case> hardRecurrences(const workload::Workload &workload, std::uint64_t seed)
{
    CipherRandom random(seed, scaleStream);
    const bool little = isLittleWork(workload);
    std::vector<workload::Case> contents;
    const auto add = [&](std::optional<workload::Case> content) {
        if (content)
            contents.push_back(std::move(*content));
    };
    // Of much work one of both, as the seed has it.
    const bool stretchedMemory = random.bits(3) % 2 == 0;
    if (little || !stretchedMemory)
        add(longMemory(workload));
    if (little || stretchedMemory)
        add(inAStretch(workload, longMemory(workload), "beta"));
    const std::uint64_t other = random.bits(4) % 4;
    const bool eitherSign = random.bits(6) % 2 == 0;
    if (little || other == 0)
        add(alikeKeys(workload, eitherSign));
    if (little)
        add(alikeKeys(workload, !eitherSign));
    if (little || other == 1)
        add(inAStretch(workload, alikeKeys(workload, false), "k"));
    if (little || other == 2)
        add(scaledState(workload, beyondHalf, "large state", !little && random.bits(5) % 2 == 0));
    if (little)
        add(scaledState(workload, beyondHalf, "large values", true));
    if (little || other == 3)
        add(scaledState(workload, belowHalf, "small state"));
    return contents;
}

} // namespace klineage::gate
