// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/process/framepipe.h"

#include <nlohmann/json.hpp>

#include <functional>

namespace klineage::gate::protocol {

/// {"error": {…}}. ErrorCode::InvalidInput is the candidate's fault, everything else is the machine's.
[[nodiscard]] nlohmann::json failure(const Error &error);

/// Says hello, then answers requests one after the other until the supervisor closes the socket; each answer repeats the "id" of its
/// request. Returns the process's exit code. What answer() throws ends it, with `who` on standard error.
[[nodiscard]] int answerRequests(process::FramePipe &pipe, const char *who, const nlohmann::json &hello,
                                 const std::function<nlohmann::json(const nlohmann::json &)> &answer);

} // namespace klineage::gate::protocol
