// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/hardparts.h"

#include "core/gate/check/standing.h"

#include <algorithm>

namespace klineage::gate {

using workload::Distribution;
using workload::DistributionKind;

const workload::Tensor *tensorOf(const workload::Workload &workload, const std::string &role)
{
    const auto argument = workload.oracleArgs.find(role);
    return argument == workload.oracleArgs.end() ? nullptr : workload.findTensor(argument->second);
}

std::optional<double> termsOfSum(const workload::Workload &workload, const workload::Case &c)
{
    if (workload.tolerance.reduction) {
        const auto terms = workload.tolerance.reduction->evaluateReal(workload.bindings(c));
        return terms ? std::optional(*terms) : std::nullopt;
    }
    const bool isConvolution = workload.oracle == "conv2d_nhwc";
    const workload::Tensor *tensor = tensorOf(workload, isConvolution ? "weight" : "a");
    const auto shape =
        tensor ? workload.shapeOf(*tensor, c) : Result<std::vector<std::int64_t>>(tl::unexpected(Error{}));
    if (!shape || shape->empty())
        return std::nullopt;
    return static_cast<double>(isConvolution ? shape->front() : shape->back());
}

bool hasKind(const workload::Workload &workload, const workload::Case &c, DistributionKind kind)
{
    return std::any_of(workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
        return tensor.role == workload::Role::Input && workload.distributionOf(tensor, c).kind == kind;
    });
}

std::vector<const workload::Case *> hardCases(const workload::Workload &workload)
{
    const workload::Case &timed = workload.cases.front();
    std::vector<const workload::Case *> cases;
    for (const workload::Case &c : workload.cases) {
        const bool differs = std::any_of(
            workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
                const Distribution &mine = workload.distributionOf(tensor, c);
                return tensor.role == workload::Role::Input && mine.kind != DistributionKind::Offsets
                       && !saysTheSame(mine, workload.distributionOf(tensor, timed));
            });
        if ((!c.exact || timed.exact) && differs)
            cases.push_back(&c);
    }
    return cases;
}

void nameAfter(workload::Case &content, const std::vector<const workload::Case *> &cases)
{
    std::string names;
    for (const workload::Case *c : cases)
        names += (names.empty() ? "" : ", ") + c->name;
    content.name += " (as " + names + ")";
}

} // namespace klineage::gate
