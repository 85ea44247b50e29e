// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/request.h"
#include "core/workload/workload.h"

#include <nlohmann/json_fwd.hpp>

namespace klineage::gate {

/// A request with its workload read. request.workloadDirectory is not used.
struct GateJob {
    workload::Workload workload;
    GateRequest request;
};

/// The parameters of a request as they came over the pipe; the workload's text is read too. Unknown keys and wrong types are errors
/// (InvalidInput).
[[nodiscard]] Result<GateJob> readJob(const nlohmann::json &parameters);

} // namespace klineage::gate
