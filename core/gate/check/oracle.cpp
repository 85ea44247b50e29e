// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/oracle.h"

#include "core/gate/check/attention.h"
#include "core/gate/check/convolution.h"
#include "core/gate/check/gateddelta.h"
#include "core/gate/check/normalization.h"
#include "core/gate/check/parallel.h"
#include "core/gate/check/product.h"
#include "core/gate/check/roles.h"
#include "core/gate/check/rowoperations.h"
#include "core/gate/check/selection.h"
#include "core/gate/oracle/pythonoracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace klineage::gate {

namespace {

void softmaxRow(const float *in, double *out, std::size_t length)
{
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < length; ++i)
        largest = std::max(largest, in[i]);
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
        out[i] = std::exp(static_cast<double>(in[i]) - static_cast<double>(largest));
        sum += out[i];
    }
    for (std::size_t i = 0; i < length; ++i)
        out[i] /= sum;
}

Result<Expected> softmaxOracle(OracleRoles roles)
{
    const HostTensor *in = roles["in"];
    const HostTensor *out = roles["out"];
    if (!in || !out)
        return roles.problem({});
    if (in->shape != out->shape || in->shape.empty())
        return roles.problem("input and output must have the same shape");
    const std::vector<float> values = toFloats(*in);
    const std::size_t length = in->rowLength();
    Expected expected;
    std::vector<double> &result = expected[out->name];
    result.resize(values.size());
    parallelRanges(values.size() / length, std::max<std::size_t>(1, usualGrain / length),
                   [&](std::size_t begin, std::size_t end) {
                       for (std::size_t row = begin; row < end; ++row)
                           softmaxRow(values.data() + row * length, result.data() + row * length, length);
                   });
    return expected;
}

Result<Expected> siluOracle(OracleRoles roles)
{
    const HostTensor *in = roles["in"];
    const HostTensor *out = roles["out"];
    if (!in || !out)
        return roles.problem({});
    if (in->shape != out->shape)
        return roles.problem("input and output must have the same shape");
    const std::vector<float> values = toFloats(*in);
    Expected expected;
    std::vector<double> &result = expected[out->name];
    result.resize(values.size());
    parallelRanges(values.size(), usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            result[i] = static_cast<double>(values[i]) / (1 + std::exp(-static_cast<double>(values[i])));
    });
    return expected;
}

struct Oracle {
    const char *name;
    Result<Expected> (*compute)(OracleRoles);
};

constexpr Oracle oracles[] = {
    {"matmul_nn", [](OracleRoles roles) { return productOracle(roles, Product::Nn); }},
    {"matmul_nt", [](OracleRoles roles) { return productOracle(roles, Product::Nt); }},
    {"matmul_grouped_nn", [](OracleRoles roles) { return productOracle(roles, Product::GroupedNn); }},
    {"softmax_rows", softmaxOracle},
    {"layernorm_rows",
     [](OracleRoles roles) { return normalizationOracle(roles, Normalization::LayerNorm); }},
    {"rmsnorm_rows", [](OracleRoles roles) { return normalizationOracle(roles, Normalization::RmsNorm); }},
    {"add_rmsnorm_rows",
     [](OracleRoles roles) { return normalizationOracle(roles, Normalization::AddRmsNorm); }},
    {"silu", siluOracle},
    {"conv2d_nhwc", convolutionOracle},
    {"attention_varlen", [](OracleRoles roles) { return attentionOracle(roles, false); }},
    {"attention_varlen_causal", [](OracleRoles roles) { return attentionOracle(roles, true); }},
    {"gated_delta_rule", gatedDeltaOracle},
    {"sum_rows", [](OracleRoles roles) { return rowOracle(roles, RowOperation::Sum); }},
    {"cumsum_rows", [](OracleRoles roles) { return rowOracle(roles, RowOperation::CumulativeSum); }},
    {"sort_rows", [](OracleRoles roles) { return rowOracle(roles, RowOperation::Sort); }},
    {"topk_rows", topkOracle},
    {"topk_sorted_rows", topkOracle},
};

std::string oracleNames()
{
    std::string names;
    for (const Oracle &oracle : oracles)
        names += (names.empty()                      ? ""
                  : &oracle == std::end(oracles) - 1 ? " or "
                                                     : ", ")
                 + std::string(oracle.name);
    return names;
}

} // namespace

Result<Expected> computeOracle(const workload::Workload &workload, const std::vector<HostTensor> &tensors)
{
    if (workload.python)
        return PythonOracles().compute(workload, tensors);
    OracleRoles roles(workload, tensors);
    const auto known = std::find_if(std::begin(oracles), std::end(oracles),
                                    [&](const Oracle &oracle) { return workload.oracle == oracle.name; });
    if (known == std::end(oracles))
        return roles.problem("there is no such oracle; expected " + oracleNames());
    auto expected = known->compute(roles);
    if (!expected)
        return expected;
    for (const HostTensor &tensor : tensors) {
        if (tensor.role == workload::Role::Output && !expected->contains(tensor.name))
            return roles.problem("it says nothing about the output " + tensor.name);
    }
    return expected;
}

} // namespace klineage::gate
