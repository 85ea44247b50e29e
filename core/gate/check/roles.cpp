// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/roles.h"

#include "core/gate/check/parallel.h"

#include <cstring>

namespace klineage::gate {

const HostTensor *OracleRoles::operator[](const std::string &role)
{
    const auto named = m_workload.oracleArgs.find(role);
    for (const HostTensor &tensor : m_tensors) {
        if (named != m_workload.oracleArgs.end() && tensor.name == named->second)
            return &tensor;
    }
    m_missing = role;
    return nullptr;
}

tl::unexpected<Error> OracleRoles::problem(const std::string &what) const
{
    const std::string reason = m_missing.empty() ? what : "the role \"" + m_missing + "\" names no tensor";
    return fail(ErrorCode::InvalidInput, "Cannot compute the oracle " + m_workload.oracle + " of "
                                             + m_workload.name + ": " + reason + ".");
}

std::vector<float> toFloats(const HostTensor &tensor)
{
    std::vector<float> values(tensor.elements());
    parallelRanges(values.size(), usualGrain, [&](std::size_t begin, std::size_t end) {
        if (tensor.dtype == kernel::DType::F32 || tensor.dtype == kernel::DType::TF32) {
            std::memcpy(values.data() + begin, tensor.bytes.data() + begin * sizeof(float),
                        (end - begin) * sizeof(float));
            return;
        }
        for (std::size_t i = begin; i < end; ++i)
            values[i] = static_cast<float>(kernel::loadElement(tensor.bytes.data(), tensor.dtype, i));
    });
    return values;
}

std::vector<std::int64_t> ascendingOffsets(const HostTensor &tensor, std::int64_t end)
{
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < tensor.elements(); ++i) {
        const double value = kernel::loadElement(tensor.bytes.data(), tensor.dtype, i);
        const double last = offsets.empty() ? 0 : static_cast<double>(offsets.back());
        if (!(offsets.empty() ? value == 0 : value >= last) || value > static_cast<double>(end))
            return {};
        offsets.push_back(static_cast<std::int64_t>(value));
    }
    return !offsets.empty() && offsets.back() == end ? offsets : std::vector<std::int64_t>();
}

} // namespace klineage::gate
