// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/normalization.h"

#include "core/gate/check/parallel.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr double epsilon = 1e-5;

std::vector<double> toDoubles(const HostTensor &tensor)
{
    std::vector<double> values(tensor.elements());
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = kernel::loadElement(tensor.bytes.data(), tensor.dtype, i);
    return values;
}

double meanOf(std::span<const double> row)
{
    double sum = 0;
    for (const double value : row)
        sum += value;
    return sum / static_cast<double>(row.size());
}

double meanSquareAbout(double center, std::span<const double> row)
{
    double sum = 0;
    for (const double value : row)
        sum += (value - center) * (value - center);
    return sum / static_cast<double>(row.size());
}

/// In place. `beta` is empty when the normalization has none.
void normalizeRow(std::span<double> row, Normalization normalization, const std::vector<double> &gamma,
                  const std::vector<double> &beta)
{
    const double center = normalization == Normalization::LayerNorm ? meanOf(row) : 0.0;
    const double scale = 1 / std::sqrt(meanSquareAbout(center, row) + epsilon);
    for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = (row[i] - center) * scale * gamma[i] + (beta.empty() ? 0.0 : beta[i]);
}

} // namespace

Result<Expected> normalizationOracle(OracleRoles roles, Normalization normalization)
{
    const bool shifts = normalization == Normalization::LayerNorm;
    const HostTensor *in = roles["in"];
    const HostTensor *gamma = roles["gamma"];
    const HostTensor *beta = shifts ? roles["beta"] : nullptr;
    const bool adds = normalization == Normalization::AddRmsNorm;
    const HostTensor *residual = adds ? roles["residual"] : nullptr;
    const HostTensor *sum = adds ? roles["sum"] : nullptr;
    const HostTensor *out = roles["out"];
    if (!in || !gamma || (shifts && !beta) || (adds && (!residual || !sum)) || !out)
        return roles.problem({});
    const std::vector<std::int64_t> columns{static_cast<std::int64_t>(in->rowLength())};
    if (in->shape.empty() || out->shape != in->shape || gamma->shape != columns
        || (beta && beta->shape != columns)
        || (adds && (residual->shape != in->shape || sum->shape != in->shape)))
        return roles.problem("the shapes of its tensors do not fit together");
    const std::vector<double> scales = toDoubles(*gamma);
    const std::vector<double> shiftsOfColumns = beta ? toDoubles(*beta) : std::vector<double>{};
    const std::size_t length = in->rowLength();
    Expected expected;
    std::vector<double> &result = expected[out->name];
    result.resize(in->elements());
    std::vector<double> sums(adds ? result.size() : 0);
    parallelRanges(result.size() / length, std::max<std::size_t>(1, usualGrain / length),
                   [&](std::size_t begin, std::size_t end) {
                       for (std::size_t i = begin * length; i < end * length; ++i) {
                           result[i] = kernel::loadElement(in->bytes.data(), in->dtype, i);
                           if (adds)
                               sums[i] = result[i] +=
                                   kernel::loadElement(residual->bytes.data(), residual->dtype, i);
                       }
                       for (std::size_t row = begin; row < end; ++row)
                           normalizeRow(std::span(result).subspan(row * length, length), normalization,
                                        scales, shiftsOfColumns);
                   });
    if (adds)
        expected[sum->name] = std::move(sums);
    return expected;
}

} // namespace klineage::gate
