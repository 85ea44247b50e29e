// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/standing.h"

#include "core/base/cipherrandom.h"
#include "core/gate/check/hardparts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace klineage::gate {

namespace {

using workload::Distribution;
using workload::DistributionKind;

constexpr double hardlyCorrected = 0x1p-6;
constexpr double beyondExponentials = 200; ///< of single precision: e^89 is infinite
// What a row is lifted by, in these: above or below, so that nobody guesses it.
constexpr double leastLift = 0.46;
constexpr double mostLift = 1.25;
constexpr double liftedShare = 1.0 / 16;
constexpr std::uint64_t liftStreams = std::uint64_t{5} << 32; // no tensor's

void rememberInOneHead(workload::Workload &workload)
{
    const workload::Tensor *gates = tensorOf(workload, "g");
    const workload::Tensor *weights = tensorOf(workload, "beta");
    workload::Case &timed = workload.cases.front();
    if (!gates || !weights || hasOneHead(workload, *gates))
        return; // all of it would be open, and no gate seen
    Distribution open = workload.distributionOf(*gates, timed);
    Distribution small = workload.distributionOf(*weights, timed);
    if (open.kind != DistributionKind::LogGates || small.kind != DistributionKind::Sigmoid)
        return;
    open.lastHead = 0;
    small.lastHead = hardlyCorrected;
    timed.distributions[gates->name] = open;
    timed.distributions[weights->name] = small;
}

void liftRows(workload::Workload &workload)
{
    workload::Case &timed = workload.cases.front();
    for (const workload::Tensor &tensor : workload.tensors) {
        Distribution lifted = workload.distributionOf(tensor, timed);
        if (tensor.role != workload::Role::Input || lifted.kind != DistributionKind::Normal
            || !holdsManyScales(tensor.dtype))
            continue;
        lifted.lift = beyondExponentials;
        timed.distributions[tensor.name] = lifted;
    }
}

/// Doubles of a selection have all of their bits, of which an order can hang.
void fillAllBits(workload::Workload &workload)
{
    workload::Case &timed = workload.cases.front();
    for (const workload::Tensor &tensor : workload.tensors) {
        if (tensor.role != workload::Role::Input || tensor.dtype != kernel::DType::F64)
            continue;
        Distribution full = workload.distributionOf(tensor, timed);
        full.allBits = true;
        timed.distributions[tensor.name] = full;
    }
}

} // namespace

workload::Workload withStandingHardness(workload::Workload workload)
{
    if (workload.oracle == "gated_delta_rule")
        rememberInOneHead(workload);
    else if (workload.oracle == "softmax_rows")
        liftRows(workload);
    else if (contains(workload::selections, workload.oracle))
        fillAllBits(workload);
    return workload;
}

bool saysTheSame(Distribution one, Distribution other)
{
    one.lastHead = other.lastHead;
    one.lift = other.lift;
    one.allBits = other.allBits;
    return one == other;
}

void applyStandingHardness(std::span<float> values, std::uint64_t first, std::uint64_t rowLength,
                           const Distribution &distribution, std::uint64_t seed, std::uint64_t stream)
{
    if (distribution.lastHead != 1) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            if ((first + i) % rowLength == rowLength - 1)
                values[i] *= static_cast<float>(distribution.lastHead);
        }
    }
    if (distribution.lift != 0) {
        CipherRandom random(seed, liftStreams + stream);
        for (std::size_t i = 0; i < values.size();) {
            const std::uint64_t row = (first + i) / rowLength;
            const auto end = std::min<std::size_t>(values.size(), (row + 1) * rowLength - first);
            const bool isLifted = random.uniform(3 * row) < liftedShare;
            const double sign = random.bits(3 * row + 1) % 2 == 0 ? 1 : -1;
            const double by = sign * (leastLift + (mostLift - leastLift) * random.uniform(3 * row + 2));
            for (; i < end; ++i)
                values[i] += isLifted ? static_cast<float>(by * distribution.lift) : 0.0f;
        }
    }
}

} // namespace klineage::gate
