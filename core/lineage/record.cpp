// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/record.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/lineage/step.h"

#include <nlohmann/json.hpp>

namespace klineage::lineage {

namespace {

constexpr std::size_t maxCandidateBytes = 4u << 20;

std::vector<std::string> recordedRows(const Lineage &lineage)
{
    std::vector<std::string> rows;
    for (const State &state : lineage.states)
        rows.push_back(state.id);
    for (const Attempt &attempt : lineage.attempts)
        rows.push_back(attempt.id);
    return rows;
}

Result<std::string> fingerprint(const Lineage &lineage, std::string_view row)
{
    const auto found = findRow(lineage, row);
    if (!found)
        return std::string();
    const auto text = files::readFile(found->file, maxCandidateBytes);
    if (!text)
        return tl::unexpected(text.error());
    return files::sha256Hex(*text);
}

std::string newestTrial(const Lineage &lineage, const std::string &candidate, const std::string &parent)
{
    for (auto trial = lineage.trials.rbegin(); trial != lineage.trials.rend(); ++trial) {
        if (trial->candidate == candidate && trial->parent == parent)
            return trial->id;
    }
    return {};
}

} // namespace

std::vector<RecordJob> recordJobs(const Lineage &lineage)
{
    std::vector<RecordJob> jobs;
    for (const std::string &id : recordedRows(lineage)) {
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
    nlohmann::ordered_json json;
    json["id"] = job.id;
    json["workload"] = job.workload.string();
    json["candidate"] = job.candidate.string();
    if (!job.parent.empty())
        json["parent"] = job.parent.string();
    return json.dump();
}

Result<int> assignTrials(Lineage &lineage)
{
    int assigned = 0;
    const auto assign = [&](const std::string &row, const std::string &parent, std::string &trial) -> Status {
        const auto candidate = fingerprint(lineage, row);
        if (!candidate)
            return tl::unexpected(candidate.error());
        const auto before = fingerprint(lineage, parent);
        if (!before)
            return tl::unexpected(before.error());
        trial = newestTrial(lineage, *candidate, *before);
        assigned += trial.empty() ? 0 : 1;
        return {};
    };
    for (State &state : lineage.states) {
        const auto row = findRow(lineage, state.id);
        if (const auto done = assign(state.id, row ? row->parent : std::string(), state.trial); !done)
            return tl::unexpected(done.error());
    }
    for (Attempt &attempt : lineage.attempts) {
        if (const auto done = assign(attempt.id, attempt.parent, attempt.trial); !done)
            return tl::unexpected(done.error());
    }
    return assigned;
}

} // namespace klineage::lineage
