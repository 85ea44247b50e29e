// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/supervisor.h"

namespace klineage::gate {

/// One JSON object a line on stdin, answers and events on stdout, until stdin ends. The first line out is
///   {"event": "hello", "version": 1, "gate": "0.1.0"}
/// Requests, each with an "id" of the caller's choice that every line about it repeats:
///   {"id": 1, "method": "gate", "params": {"workload": TOML, "candidate": TEXT, "name": …, "parent": TEXT, settings…}}
///   {"id": 5, "method": "prepare", "params": as of gate}    (likely to come soon: a CUDA candidate is compiled in the background)
///   {"id": 2, "method": "devices"}    {"id": 3, "method": "cancel", "target": 1}    {"id": 4, "method": "ping"}
/// Events: {"id", "event": "progress", "stage", "fraction", "text"}, {"id", "event": "result", "trial" | "devices" | "pong" | "prepared"},
/// {"id", "event": "error", "error": {"code", "message", "detail"}}. gate and devices run one after another, in order.
/// Returns the exit code.
[[nodiscard]] int serve(SupervisorOptions options);

} // namespace klineage::gate
