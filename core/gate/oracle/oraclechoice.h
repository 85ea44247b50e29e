// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/expected.h"
#include "core/gate/oracle/deviceoracle.h"
#include "core/gate/oracle/pythonoracle.h"

#include <set>

namespace klineage::gate {

/// Decides who computes the expected outputs of a case. A workload's own Python does where it has one. Otherwise the CPU does, unless
/// the trial is on CUDA and the case is so much work that the device is worth its while; where the device cannot, the CPU does it after
/// all, and the trial says why.
class OracleChoice
{
public:
    explicit OracleChoice(DeviceOracle &device)
        : m_device(device)
    {}

    /// Work of a case, in operations as its workload counts them, from which on the device computes it.
    static constexpr double leastDeviceWork = 4e9;
    [[nodiscard]] static bool isLarge(const workload::Workload &workload, const workload::Case &c);

    /// Forgets what was said, and starts the device's process where this workload will want it. keeps: whether what is computed there may
    /// stay there (ExpectedOutputs::onDevice).
    void beginTrial(kernel::DeviceKind device, const workload::Workload &workload, bool keeps,
                    std::stop_token stop);
    [[nodiscard]] Result<ExpectedOutputs> compute(const workload::Workload &workload, const workload::Case &c,
                                                  const std::vector<HostTensor> &tensors,
                                                  const workload::Tolerance &tolerance);
    /// Whether the workload of the last beginTrial() has an oracle of its own.
    [[nodiscard]] bool isPython() const { return m_isPython; }
    /// "python: torch 2.9.0, Python 3.11.2", "device: timed", "cpu: too little work for the device",
    /// "device: timed; cpu for tails: its process failed: …".
    [[nodiscard]] std::string summary() const;

private:
    DeviceOracle &m_device;
    PythonOracles m_python;
    bool m_isPython = false;
    bool m_keeps = false;
    bool m_hasDevice = false; ///< the trial's device can compute too
    std::stop_token m_stop;
    std::set<std::string> m_onDevice;            ///< cases
    std::map<std::string, std::string> m_failed; ///< case -> why the CPU computed it
};

} // namespace klineage::gate
