// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/expected.h"
#include "core/gate/oracle/oraclejob.h"
#include "core/gate/oracle/trusteddevice.h"

#include <map>
#include <memory>
#include <string>

namespace klineage::gate {

/// Expected outputs computed on a CUDA device, by kernels of ours in double. A kernel is checked against the CPU's oracle on small cases
/// each time it is loaded; one that disagrees is not used again. What it computes stays there too, with the inputs, where there is
/// room (ExpectedOutputs::onDevice).
class DeviceOracle
{
public:
    /// workerCommand: with its "--backend cuda".
    DeviceOracle(std::vector<std::string> workerCommand, std::vector<std::string> compilerCommand,
                 CompileCache cache);

    [[nodiscard]] const std::shared_ptr<TrustedDevice> &device() const { return m_device; }

    /// The expected outputs. wide: in double, else rounded to single precision. keeps: they stay on the device too. Cancelled; every other Error says in a clause why the
    /// device cannot be had for it, and the CPU has to do it.
    [[nodiscard]] Result<ExpectedOutputs> compute(const workload::Workload &workload,
                                                  const std::vector<HostTensor> &tensors, bool wide,
                                                  bool keeps, const std::stop_token &stop);

private:
    [[nodiscard]] Status check(const workload::Workload &workload, const std::vector<HostTensor> &tensors,
                               bool wide, const OracleJob &job, const std::stop_token &stop);
    /// kept: where the buffers stay, if they are to.
    [[nodiscard]] Result<ExpectedOutputs> computeOn(WorkerSession &session, const OracleJob &job,
                                                    const std::shared_ptr<DeviceContent> &kept,
                                                    const std::stop_token &stop);

    std::shared_ptr<TrustedDevice> m_device;
    std::uint64_t m_checkedOn = 0; ///< generation of the device that the verdicts are about
    std::map<std::string, std::string>
        m_verdicts; ///< key of what was checked there -> why not; empty: it is right
};

} // namespace klineage::gate
