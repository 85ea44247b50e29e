// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/trial/request.h"

#include <nlohmann/json.hpp>

namespace klineage::gate::protocol {

/// Raised when what `klineage-gate serve` understands changes its meaning.
inline constexpr int serveVersion = 1;

/// A request with the text of its workload.toml; workloadDirectory is empty.
struct RequestMessage {
    GateRequest request;
    std::string workloadText;
};

/// A gate request as it travels to `serve`: with the texts of workload, candidate and parent, because the gate may run on a machine
/// that has none of the files.
[[nodiscard]] nlohmann::json writeRequest(const GateRequest &request, const std::string &workloadText);
/// Unknown keys and wrong types are errors (InvalidInput).
[[nodiscard]] Result<RequestMessage> readRequest(const nlohmann::json &json);

/// Reads the settings seeds, min_rounds, target_half_width, profile_seconds, deadline_seconds, with_reference and tunables into
/// request; other keys must be among `others`.
[[nodiscard]] Status readSettings(const nlohmann::json &json, const std::vector<std::string> &others,
                                  GateRequest &request);

[[nodiscard]] nlohmann::json writeDevices(const std::vector<DeviceInfo> &devices);
[[nodiscard]] Result<std::vector<DeviceInfo>> readDevices(const nlohmann::json &json);

} // namespace klineage::gate::protocol
