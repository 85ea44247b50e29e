// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/seedcount.h"

#include "core/gate/check/hardcontent.h"

namespace klineage::gate {

int unseenSeeds(const workload::Workload &workload)
{
    constexpr double muchWork = 2e11;
    const auto flops = workload.flops.evaluateReal(workload.bindings(workload.cases.front()));
    return flops && *flops > muchWork ? 1 : 2;
}

int seedsOf(const GateJob &job)
{
    constexpr double manyBytes = 256e6;
    const auto bytes = job.workload.bytes.evaluateReal(job.workload.bindings(job.workload.cases.front()));
    if (job.request.quick && bytes && *bytes > manyBytes)
        return 1;
    // The last one is filled as the other cases are (checkCorrectness()). Where it costs nothing it is one more.
    return job.request.seeds + (isLittleWork(job.workload) && !hardContents(job.workload, 0).empty() ? 1 : 0);
}

} // namespace klineage::gate
