// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/job.h"

#include "core/trial/requestjson.h"

namespace klineage::gate {

Result<GateJob> readJob(const nlohmann::json &parameters)
{
    auto message = protocol::readRequest(parameters);
    if (!message)
        return tl::unexpected(message.error());
    auto workload = workload::parseWorkload(message->workloadText, "workload.toml");
    if (!workload)
        return tl::unexpected(workload.error());
    return GateJob{std::move(*workload), std::move(message->request)};
}

} // namespace klineage::gate
