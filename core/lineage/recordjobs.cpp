// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/recordjobs.h"

#include "core/lineage/step.h"

#include <nlohmann/json.hpp>

namespace klineage::lineage {

std::vector<RecordJob> recordJobs(const Lineage &lineage)
{
    std::vector<std::string> rows;
    for (const State &state : lineage.states)
        rows.push_back(state.id);
    for (const Attempt &attempt : lineage.attempts)
        rows.push_back(attempt.id);

    std::vector<RecordJob> jobs;
    for (const std::string &id : rows) {
        const auto row = findRow(lineage, id);
        RecordJob job;
        job.id = lineage.key() + "/" + id;
        job.workload = lineage.directory.parent_path().parent_path();
        job.candidate = row->file;
        if (const auto parent = findRow(lineage, row->parent))
            job.parent = parent->file;
        jobs.push_back(std::move(job));
    }
    return jobs;
}

std::string writeRecordJob(const RecordJob &job)
{
    nlohmann::ordered_json line;
    line["id"] = job.id;
    line["workload"] = job.workload.string();
    line["candidate"] = job.candidate.string();
    if (!job.parent.empty())
        line["parent"] = job.parent.string();
    return line.dump();
}

} // namespace klineage::lineage
