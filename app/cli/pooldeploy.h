// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

#include "core/pool/gatespec.h"

#include <string>
#include <vector>

namespace klineage::cli {

/// Runs a script of a POSIX shell where the gate is (not in a job). Its standard output; Timeout, or what it said, when it fails.
[[nodiscard]] Result<std::string> runThere(const gate::GateSpec &spec, const std::string &script,
                                           double limitSeconds);

struct DeployOptions {
    std::string host;
    std::string program;   ///< empty: klineage-gate beside this program
    bool withCuda = false; ///< NVRTC, CUPTI and headers go with it; else the gate uses what the host has
    std::string toolkit;   ///< where they are taken from; empty: this machine's
    std::vector<std::string> sshOptions;
};
/// `pool deploy HOST`: brings a gate there and asks it for its devices.
[[nodiscard]] int deployGate(const Session &session, const DeployOptions &options);

} // namespace klineage::cli
