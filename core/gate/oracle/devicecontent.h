// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/oracle/trusteddevice.h"

#include <optional>

namespace klineage::gate {

/// The inputs of an instance, and what its output has to be, in the memory of the trusted process: for as long as the instance is needed,
/// or until that process ends.
class DeviceContent
{
public:
    explicit DeviceContent(std::shared_ptr<TrustedDevice> device)
        : m_device(std::move(device))
        , m_generation(m_device->generation())
    {}
    ~DeviceContent();
    DeviceContent(const DeviceContent &) = delete;
    DeviceContent &operator=(const DeviceContent &) = delete;

    /// To be called with the device's lock.
    [[nodiscard]] bool isThere() const { return m_device->generation() == m_generation; }

    std::map<std::string, BufferId> inputs; ///< by tensor: its own bytes
    std::string output;                     ///< the one that is known; there is no other
    std::optional<BufferId> expected;       ///< doubles, or floats
    bool wide = true;
    double rms = 0; ///< of what is expected

private:
    std::shared_ptr<TrustedDevice> m_device;
    std::uint64_t m_generation;
};

} // namespace klineage::gate
