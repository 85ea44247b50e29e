// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/rowoperations.h"

#include "core/gate/check/parallel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace klineage::gate {

namespace {

bool before(double a, double b)
{
    if (std::isnan(a) || std::isnan(b))
        return !std::isnan(a) && std::isnan(b);
    return a < b;
}

void computeRow(RowOperation operation, std::vector<double> row, double *out)
{
    switch (operation) {
    case RowOperation::Sum:
        *out = std::accumulate(row.begin(), row.end(), 0.0);
        return;
    case RowOperation::CumulativeSum:
        std::partial_sum(row.begin(), row.end(), out);
        return;
    case RowOperation::Sort:
        std::sort(row.begin(), row.end(), before);
        std::copy(row.begin(), row.end(), out);
        return;
    }
}

} // namespace

Result<Expected> rowOracle(OracleRoles roles, RowOperation operation)
{
    const HostTensor *in = roles["in"];
    const HostTensor *out = roles["out"];
    if (!in || !out)
        return roles.problem({});
    const bool reduces = operation == RowOperation::Sum;
    const std::size_t length = in->rowLength();
    const std::size_t rows = in->elements() / length;
    if (reduces ? out->elements() != rows : out->shape != in->shape)
        return roles.problem("the shapes of its tensors do not fit together");
    Expected expected;
    std::vector<double> &result = expected[out->name];
    const std::size_t width = reduces ? 1 : length;
    result.resize(rows * width);
    parallelRanges(rows, std::max<std::size_t>(1, (std::size_t{1} << 16) / length),
                   [&](std::size_t begin, std::size_t end) {
                       for (std::size_t row = begin; row < end; ++row) {
                           std::vector<double> values(length);
                           for (std::size_t i = 0; i < length; ++i)
                               values[i] = kernel::loadElement(in->bytes.data(), in->dtype, row * length + i);
                           computeRow(operation, std::move(values), result.data() + row * width);
                       }
                   });
    return expected;
}

} // namespace klineage::gate
