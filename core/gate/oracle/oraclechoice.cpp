// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/oraclechoice.h"

#include "core/gate/check/caseinstance.h"

#include <algorithm>

namespace klineage::gate {

namespace {

std::string namesOf(const std::set<std::string> &names)
{
    std::string text;
    for (const std::string &name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

} // namespace

bool OracleChoice::isLarge(const workload::Workload &workload, const workload::Case &c)
{
    return workload.flops.evaluateReal(workload.bindings(c)).value_or(0) >= leastDeviceWork;
}

void OracleChoice::beginTrial(kernel::DeviceKind device, const workload::Workload &workload, bool keeps,
                              std::stop_token stop)
{
    m_keeps = keeps;
    m_isPython = workload.python.has_value();
    m_hasDevice = kernel::traitsOf(device).oracle;
    m_stop = std::move(stop);
    m_onDevice.clear();
    m_failed.clear();
    const bool wanted =
        m_hasDevice && !m_isPython
        && std::any_of(workload.cases.begin(), workload.cases.end(),
                       [&](const workload::Case &c) { return c.drawn.empty() && isLarge(workload, c); });
    if (wanted)
        m_device.device()->launch();
}

Result<ExpectedOutputs> OracleChoice::compute(const workload::Workload &workload, const workload::Case &c,
                                              const std::vector<HostTensor> &tensors,
                                              const workload::Tolerance &tolerance)
{
    if (workload.python) {
        auto computed = m_python.compute(workload, tensors, m_stop);
        if (!computed)
            return tl::unexpected(computed.error());
        return expectedOf(std::move(*computed));
    }
    if (m_hasDevice && isLarge(workload, c)) {
        auto onDevice =
            m_device.compute(workload, tensors, !narrowIsEnough(tensors, tolerance), m_keeps, m_stop);
        if (onDevice) {
            m_onDevice.insert(c.name);
            return onDevice;
        }
        if (onDevice.error().code == ErrorCode::Cancelled)
            return onDevice;
        m_failed[c.name] = onDevice.error().message;
    }
    return expectedOnCpu(workload, c, tensors, tolerance);
}

std::string OracleChoice::summary() const
{
    if (m_isPython)
        return "python: " + m_python.version();
    std::string text = m_onDevice.empty() ? std::string() : "device: " + namesOf(m_onDevice);
    for (const auto &[name, why] : m_failed)
        text += (text.empty() ? "cpu for " : "; cpu for ") + name + ": " + why;
    return text.empty() ? "cpu: too little work for the device" : text;
}

} // namespace klineage::gate
