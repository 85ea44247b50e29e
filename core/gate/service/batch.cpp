// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/service/batch.h"

#include "core/kernel/candidatetext.h"
#include "core/process/deadline.h"
#include "core/trial/batchfile.h"

#include <set>

namespace klineage::gate {

namespace {

/// The next few that are not done yet are compiled while this one is measured.
void compileAhead(const std::vector<BatchItem> &items, std::size_t after,
                  const std::set<std::string> &finished, Supervisor &supervisor)
{
    int wanted = 2;
    for (std::size_t i = after + 1; i < items.size() && wanted > 0; ++i) {
        if (finished.contains(items[i].id))
            continue;
        --wanted;
        GateRequest request = items[i].request;
        if (auto text = kernel::readCandidateText(items[i].candidate)) {
            request.candidateText = std::move(*text);
            supervisor.compileAhead(request);
        }
    }
}

Result<Trial> gateItem(BatchItem item, Supervisor &supervisor, const std::stop_token &stop)
{
    auto workload = workload::readWorkload(item.workload);
    if (!workload)
        return tl::unexpected(workload.error());
    if (Status read = readTexts(item); !read)
        return tl::unexpected(read.error());
    GateJob job;
    job.workload = std::move(*workload);
    job.request = std::move(item.request);
    return supervisor.gate(job, stop);
}

} // namespace

Result<BatchSummary> runBatch(const BatchOptions &options, const std::stop_token &stop,
                              const std::function<void(const std::string &)> &say)
{
    const auto items = readBatch(options.in, options.defaults);
    if (!items)
        return tl::unexpected(items.error());
    const auto finished = finishedOfBatch(options.out);
    if (!finished)
        return tl::unexpected(finished.error());
    const auto limit =
        options.limitSeconds > 0 ? process::Deadline::in(options.limitSeconds) : process::Deadline::never();
    Supervisor supervisor(options.supervisor);
    BatchSummary summary;
    for (std::size_t i = 0; i < items->size(); ++i) {
        const BatchItem &item = (*items)[i];
        if (finished->contains(item.id)) {
            ++summary.skipped;
            continue;
        }
        if (limit.passed() || stop.stop_requested()) {
            ++summary.left;
            continue;
        }
        compileAhead(*items, i, *finished, supervisor);
        const auto trial = gateItem(item, supervisor, stop);
        if (!trial && trial.error().code == ErrorCode::Cancelled) {
            ++summary.left;
            continue;
        }
        if (auto written = appendToBatch(options.out, item.id, trial); !written)
            return tl::unexpected(written.error());
        ++(trial ? summary.done : summary.failed);
        say(batchReport(item.id, trial));
    }
    return summary;
}

} // namespace klineage::gate
