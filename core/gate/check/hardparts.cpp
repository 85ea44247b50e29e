// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/hardparts.h"

#include "core/base/cipherrandom.h"
#include "core/gate/check/standing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace klineage::gate {

using workload::Distribution;
using workload::DistributionKind;

const workload::Tensor *tensorOf(const workload::Workload &workload, const std::string &role)
{
    const auto argument = workload.oracleArgs.find(role);
    return argument == workload.oracleArgs.end() ? nullptr : workload.findTensor(argument->second);
}

bool hasOneHead(const workload::Workload &workload, const workload::Tensor &tensor)
{
    const auto shape = workload.shapeOf(tensor, workload.cases.front());
    return shape && !shape->empty() && shape->back() < 2;
}

bool isProduct(const workload::Workload &workload)
{
    constexpr std::array products{"matmul_nn", "matmul_nt", "matmul_grouped_nn", "conv2d_nhwc"};
    return contains(products, workload.oracle);
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

workload::Case atTimedShape(const workload::Workload &workload, const workload::Case &c)
{
    workload::Case content = workload.cases.front();
    for (const workload::Tensor &tensor : workload.tensors) {
        const Distribution &declared = workload.distributionOf(tensor, c);
        if (tensor.role == workload::Role::Input && declared.kind != DistributionKind::Offsets)
            content.distributions[tensor.name] = declared;
    }
    return content;
}

void nameAfter(workload::Case &content, const std::vector<const workload::Case *> &cases)
{
    std::string names;
    for (const workload::Case *c : cases)
        names += (names.empty() ? "" : ", ") + c->name;
    content.name += " (as " + names + ")";
}

std::optional<Operands> operandsOf(const workload::Workload &workload)
{
    const bool isConvolution = workload.oracle == "conv2d_nhwc";
    Operands operands{tensorOf(workload, isConvolution ? "data" : "a"),
                      tensorOf(workload, isConvolution ? "weight" : "b"), workload.oracle != "matmul_nt"};
    if (isConvolution && operands.first) {
        const auto shape = workload.shapeOf(*operands.first, workload.cases.front());
        if (!shape || shape->empty())
            return std::nullopt;
        operands.terms = shape->back();
    }
    const bool isComplete = operands.first && operands.second && operands.first->shape.size() > 1
                            && operands.second->shape.size() > 1;
    return isComplete ? std::optional(operands) : std::nullopt;
}

double factorOf(const workload::Workload &workload, const workload::Tensor &tensor, std::uint64_t seed,
                bool other)
{
    if (!std::all_of(workload.tensors.begin(), workload.tensors.end(),
                     [](const auto &each) { return holdsManyScales(each.dtype); }))
        return 1;
    CipherRandom random(seed, scaleStream);
    const int octaves = fewestOctaves + static_cast<int>(random.bits(0) % (mostOctaves - fewestOctaves + 1));
    const int first = (random.bits(1) % 2 == 0) != other ? octaves : -octaves;
    for (const auto &[role, sign] : {std::pair{"a", 1}, {"b", -1}, {"data", 1}, {"weight", -1}}) {
        const auto argument = workload.oracleArgs.find(role);
        if (argument != workload.oracleArgs.end() && argument->second == tensor.name)
            return std::exp2(sign * first);
    }
    return 1;
}

} // namespace klineage::gate
