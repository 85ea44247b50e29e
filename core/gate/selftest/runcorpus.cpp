// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/selftest/runcorpus.h"

#include "core/kernel/candidatetext.h"
#include "core/trial/stages.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace klineage::gate {

namespace {

using nlohmann::json;

bool isWanted(const CorpusEntry &entry, const CorpusOptions &options)
{
    return (!options.surface || *options.surface == entry.surface)
           && entry.file.find(options.filter) != std::string::npos && !options.except.contains(entry.file)
           && (entry.chance || !options.chance);
}

Result<GateJob> jobOf(const Corpus &corpus, const CorpusEntry &entry, const CorpusOptions &options)
{
    GateJob job;
    job.request = options.defaults;
    job.request.candidateName = std::filesystem::path(entry.file).filename().string();
    if (entry.deadlineSeconds > 0)
        job.request.deadlineSeconds = entry.deadlineSeconds;
    const auto directory = corpus.workloadDirectory(entry.workload);
    if (!directory)
        return tl::unexpected(directory.error());
    auto workload = workload::readWorkload(*directory);
    if (!workload)
        return tl::unexpected(workload.error());
    job.workload = std::move(*workload);
    auto candidate = kernel::readCandidateText(corpus.directory / entry.file);
    if (!candidate)
        return tl::unexpected(candidate.error());
    job.request.candidateText = std::move(*candidate);
    if (entry.parent.empty())
        return job;
    auto parent = kernel::readCandidateText(corpus.directory / entry.parent);
    if (!parent)
        return tl::unexpected(parent.error());
    job.request.parentText = std::move(*parent);
    job.request.profileSeconds = options.compareSeconds;
    job.request.minRounds = options.compareRounds;
    return job;
}

bool isUnavailable(const std::vector<DeviceInfo> &devices, kernel::Surface surface, std::string &why)
{
    for (const DeviceInfo &device : devices) {
        if (device.kind == surface->device) {
            why = device.detail;
            return !device.available;
        }
    }
    why = std::string("This build has no ") + kernel::toString(surface) + " surface.";
    return true;
}

Result<CorpusOutcome> judge(Supervisor &supervisor, const Corpus &corpus, const CorpusEntry &entry,
                            const CorpusOptions &options, const std::stop_token &stop)
{
    auto job = jobOf(corpus, entry, options);
    if (!job)
        return tl::unexpected(job.error());
    const auto begin = std::chrono::steady_clock::now();
    auto trial = supervisor.gate(*job, stop);
    if (trial && trial->verdict.status == VerdictStatus::Timeout && trial->verdict.stage == Stage::Compile
        && !mismatch(entry, trial->verdict).empty()) {
        // A deadline that is short because the candidate hangs was over before a busy machine had compiled it.
        job->request.deadlineSeconds =
            std::max(4 * job->request.deadlineSeconds, options.defaults.deadlineSeconds);
        trial = supervisor.gate(*job, stop);
    }
    if (!trial)
        return tl::unexpected(trial.error());
    CorpusOutcome outcome;
    outcome.entry = &entry;
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    outcome.verdict = trial->verdict;
    outcome.stages = trial->stages;
    outcome.mismatch = mismatch(entry, outcome.verdict);
    outcome.message =
        outcome.mismatch.empty() ? outcome.verdict.message : outcome.mismatch + " " + outcome.verdict.message;
    return outcome;
}

/// Gates an entry, and up to options.again times more when it is not as expected: all of these have to be. Reports each.
Result<bool> isAsExpected(Supervisor &supervisor, const Corpus &corpus, const CorpusEntry &entry,
                          const CorpusOptions &options, const std::stop_token &stop,
                          const std::function<void(const CorpusOutcome &)> &report, CorpusSummary &summary)
{
    for (int run = 0;; ++run) {
        auto outcome = judge(supervisor, corpus, entry, options, stop);
        if (!outcome)
            return tl::unexpected(outcome.error());
        const bool ok = outcome->ok();
        outcome->repeated = run == 0 ? !ok && options.again > 0 : ok && run < options.again;
        report(*outcome);
        if (!outcome->repeated) {
            summary.repeated += ok && run > 0 ? 1 : 0;
            return ok;
        }
    }
}

} // namespace

GateRequest corpusDefaults()
{
    GateRequest request;
    request.seeds = 3;
    request.minRounds = 10;
    request.profileSeconds = 0.3;
    request.deadlineSeconds = 120;
    request.withReference = false;
    return request;
}

std::string writeOutcome(const CorpusOutcome &outcome)
{
    json expected = json::array();
    for (const VerdictStatus status : outcome.entry->expected)
        expected.push_back(toString(status));
    json line = {{"file", outcome.entry->file},
                 {"kind", toString(outcome.entry->kind)},
                 {"expected", expected},
                 {"got", outcome.skipped ? "skipped" : toString(outcome.verdict.status)},
                 {"stage", outcome.skipped ? "" : toString(outcome.verdict.stage)},
                 {"ok", outcome.ok()},
                 {"message", outcome.message},
                 {"seconds", std::round(outcome.seconds * 1000) / 1000}};
    for (const auto &[name, seconds] : stageFields) {
        if (outcome.stages.*seconds > 0)
            line["stages"][name] = std::round(outcome.stages.*seconds * 1000) / 1000;
    }
    if (outcome.repeated)
        line["repeated"] = true;
    return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<CorpusSummary> runCorpus(const Corpus &corpus, const CorpusOptions &options,
                                const std::stop_token &stop,
                                const std::function<void(const CorpusOutcome &)> &report)
{
    Supervisor supervisor(options.supervisor);
    const std::vector<DeviceInfo> devices = supervisor.devices(stop);
    CorpusSummary summary;
    int number = 0;
    for (const CorpusEntry &entry : corpus.entries) {
        if (!isWanted(entry, options) || number++ % options.parts != options.part - 1)
            continue;
        std::string why;
        if (isUnavailable(devices, entry.surface, why)) {
            report({&entry, true, {}, {}, why, 0, {}});
            ++summary.skipped;
            continue;
        }
        for (int run = 0; run < options.repeat; ++run) {
            const auto ok = isAsExpected(supervisor, corpus, entry, options, stop, report, summary);
            if (!ok)
                return tl::unexpected(ok.error());
            ++(*ok ? summary.asExpected : summary.mismatches);
        }
    }
    return summary;
}

} // namespace klineage::gate
