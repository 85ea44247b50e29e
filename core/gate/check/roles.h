// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/inputs.h"

namespace klineage::gate {

/// The tensors that an oracle's roles name, while it is computed.
class OracleRoles
{
public:
    OracleRoles(const workload::Workload &workload, const std::vector<HostTensor> &tensors)
        : m_workload(workload)
        , m_tensors(tensors)
    {}

    /// Whether the workload says anything of a role that may be left out.
    [[nodiscard]] bool has(const std::string &role) const { return m_workload.oracleArgs.contains(role); }
    /// nullptr when the role names no tensor; problem() says which one then.
    const HostTensor *operator[](const std::string &role);
    /// "Cannot compute the oracle …: <missing role, or what>."
    [[nodiscard]] tl::unexpected<Error> problem(const std::string &what) const;

private:
    const workload::Workload &m_workload;
    const std::vector<HostTensor> &m_tensors;
    std::string m_missing;
};

/// A tensor of at most 32 bits an element, as floats (exact for every such floating-point type). Multi-threaded.
[[nodiscard]] std::vector<float> toFloats(const HostTensor &tensor);

/// Offsets from 0, ascending to `end`; empty when they are not.
[[nodiscard]] std::vector<std::int64_t> ascendingOffsets(const HostTensor &tensor, std::int64_t end);

} // namespace klineage::gate
