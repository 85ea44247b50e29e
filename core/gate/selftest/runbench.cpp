// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/selftest/runbench.h"
#include "core/base/random.h"

#include "core/kernel/candidatetext.h"
#include "core/trial/stages.h"
#include "core/trial/statistics.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace klineage::gate {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int warmUps = 2;

double secondsSince(Clock::time_point begin)
{
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

double rounded(double value)
{
    return value == 0 ? 0 : std::stod((std::ostringstream() << std::setprecision(5) << value).str());
}

double quantile(std::vector<double> values, double q)
{
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()) - 1e-9)) - 1];
}

/// Where the time of verdicts went, from their progress reports.
class ProgressClock
{
public:
    [[nodiscard]] ProgressCallback begin()
    {
        m_since = Clock::now();
        m_stage = "start";
        return [this](const GateProgress &progress) { change(toString(progress.stage)); };
    }
    void end() { change(""); }
    [[nodiscard]] json shares() const
    {
        double total = 0;
        for (const auto &[stage, seconds] : m_seconds)
            total += seconds;
        json out = json::object();
        for (const auto &[stage, seconds] : m_seconds)
            out[stage] = rounded(seconds / total);
        return out;
    }

private:
    void change(const std::string &stage)
    {
        m_seconds[m_stage] += secondsSince(m_since);
        m_since = Clock::now();
        m_stage = stage;
    }
    std::map<std::string, double> m_seconds;
    std::string m_stage;
    Clock::time_point m_since;
};

/// One trial of a discrimination case.
struct Outcome {
    Change change = Change::Undecided;
    Interval speedup;
    double latencyNs = 0;
    double seconds = 0;
};

class Bench
{
public:
    Bench(const BenchOptions &options, const std::stop_token &stop,
          const std::function<void(const json &)> &report)
        : m_options(options)
        , m_stop(stop)
        , m_report(report)
        , m_supervisor(options.supervisor)
    {}
    Status run(const BenchCase &benchCase);

private:
    [[nodiscard]] bool outOfTime() const
    {
        return m_options.limitSeconds > 0 && secondsSince(m_begin) > m_options.limitSeconds;
    }
    [[nodiscard]] Result<GateJob> jobOf(const BenchCase &benchCase) const;
    Result<Trial> gate(const GateJob &job, const ProgressCallback &progress = {});
    Status latency(const BenchCase &benchCase, GateJob job);
    Status discrimination(const BenchCase &benchCase, const GateJob &job);
    Result<Outcome> compare(const GateJob &job);
    Result<long> calibrate(const BenchCase &benchCase, const GateJob &job);
    Status series(const char *name, const BenchCase &benchCase, GateJob job, json extra);

    const BenchOptions &m_options;
    std::stop_token m_stop;
    const std::function<void(const json &)> &m_report;
    Supervisor m_supervisor;
    Clock::time_point m_begin = Clock::now();
    std::string m_device;
};

Result<GateJob> Bench::jobOf(const BenchCase &benchCase) const
{
    auto workload = workload::readWorkload(benchCase.workload);
    if (!workload)
        return tl::unexpected(workload.error());
    auto source = kernel::readCandidateText(benchCase.candidate);
    if (!source)
        return tl::unexpected(source.error());
    GateJob job{std::move(*workload), {}};
    job.request.candidateText = std::move(*source);
    job.request.candidateName = benchCase.candidate.filename().string();
    job.request.withReference = false;
    if (!benchCase.parent.empty()) {
        auto parent = kernel::readCandidateText(benchCase.parent);
        if (!parent)
            return tl::unexpected(parent.error());
        job.request.parentText = std::move(*parent);
    }
    return job;
}

Result<Trial> Bench::gate(const GateJob &job, const ProgressCallback &progress)
{
    auto trial = m_supervisor.gate(job, m_stop, progress);
    if (!trial)
        return trial;
    if (trial->verdict.status != VerdictStatus::Correct)
        return fail(ErrorCode::InvalidInput,
                    "Cannot measure the gate on " + job.request.candidateName + ", because its verdict is \""
                        + toString(trial->verdict.status) + "\": " + trial->verdict.message);
    m_device = trial->environment.device;
    return trial;
}

Status Bench::latency(const BenchCase &benchCase, GateJob job)
{
    const std::string source = job.request.candidateText;
    const bool compared = !job.request.parentText.empty();
    if (!compared) // else as long as the comparison needs
        job.request.profileSeconds = m_options.latencyProfileSeconds;
    job.request.quick = m_options.quick;
    std::vector<double> seconds;
    std::vector<double> speedups;
    std::vector<double> widths;
    std::map<std::string, int> changes;
    std::map<std::string, std::vector<double>> stageSeconds;
    OperationTimes before;
    ProgressClock stages;
    Clock::time_point begin = Clock::now();
    for (int i = -warmUps; i < m_options.verdicts && !outOfTime(); ++i) {
        if (i == 0) {
            begin = Clock::now();
            before = m_supervisor.operations(benchCase.surface->device);
        }
        // Each is a new text, so that none is found compiled.
        job.request.candidateText = source + "\n// " + randomId() + "\n";
        const auto started = Clock::now();
        const auto trial = gate(job, i < 0 ? ProgressCallback() : stages.begin());
        if (!trial)
            return tl::unexpected(trial.error());
        if (i < 0)
            continue;
        stages.end();
        seconds.push_back(secondsSince(started));
        for (const NamedStage &stage : stageFields)
            stageSeconds[stage.name].push_back(trial->stages.*stage.seconds);
        if (const Comparison *parent = trial->comparison("parent")) {
            speedups.push_back(parent->speedup.value);
            widths.push_back(halfWidth(parent->speedup) / parent->speedup.value);
            ++changes[toString(parent->change)];
        }
    }
    json line = {{"bench", "latency"},
                 {"case", benchCase.name},
                 {"device", m_device},
                 {"verdicts", seconds.size()},
                 {"profile_seconds", job.request.profileSeconds},
                 {"p50_s", rounded(quantile(seconds, 0.5))},
                 {"p95_s", rounded(quantile(seconds, 0.95))},
                 {"per_second", rounded(static_cast<double>(seconds.size()) / secondsSince(begin))},
                 {"stages", stages.shares()}};
    for (const auto &[name, spent] : stageSeconds)
        line["stages_p50_s"][name] = rounded(quantile(spent, 0.5));
    // Milliseconds of a verdict that were spent waiting for the worker, by what it was asked. Workers on the host last for one trial.
    for (const auto &[name, spent] : m_supervisor.operations(benchCase.surface->device)) {
        const auto verdicts = static_cast<double>(std::max<std::size_t>(seconds.size(), 1));
        const double ms = 1e3 * (spent.seconds - before[name].seconds) / verdicts;
        if (ms > 0 && !benchCase.surface.device().isHost)
            line["operations_ms"][name] = {
                rounded(ms), rounded(static_cast<double>(spent.count - before[name].count) / verdicts)};
    }
    if (compared)
        line.update({{"quick", job.request.quick},
                     {"speedup_p50", rounded(quantile(speedups, 0.5))},
                     {"half_width_p50", rounded(quantile(widths, 0.5))},
                     {"half_width_max", rounded(quantile(widths, 1))},
                     {"changes", changes}});
    m_report(line);
    return {};
}

Result<Outcome> Bench::compare(const GateJob &job)
{
    const auto started = Clock::now();
    const auto trial = gate(job);
    if (!trial)
        return tl::unexpected(trial.error());
    const Comparison *parent = trial->comparison("parent");
    if (!parent)
        return fail(ErrorCode::Internal,
                    "Cannot measure the gate: the trial has no comparison with the parent.");
    return Outcome{parent->change, parent->speedup, trial->latencyNs.value, secondsSince(started)};
}

/// Cycles that slow the candidate down by the wanted share, found by the gate itself at twice its precision.
Result<long> Bench::calibrate(const BenchCase &benchCase, const GateJob &given)
{
    GateJob job = given;
    job.request.targetHalfWidth = m_options.halfWidth / 2;
    job.request.profileSeconds = 2 * m_options.profileSeconds;
    job.request.quick = false;
    const auto slowdownOf = [&](long cycles) -> Result<double> {
        auto planted = plantDelay(benchCase, given.request.candidateText, cycles);
        if (!planted)
            return tl::unexpected(planted.error());
        job.request.candidateText = std::move(*planted);
        const auto outcome = compare(job);
        if (!outcome)
            return tl::unexpected(outcome.error());
        return 1 / outcome->speedup.value - 1;
    };
    const auto base = compare(job);
    if (!base)
        return tl::unexpected(base.error());
    // A first guess at 1.5 GHz, then along the line through what was measured.
    long cycles = std::max(1L, std::lround(m_options.planted * base->latencyNs * 1.5));
    for (int pass = 0; pass < 3; ++pass) {
        const auto slowdown = slowdownOf(cycles);
        if (!slowdown)
            return tl::unexpected(slowdown.error());
        if (std::abs(*slowdown - m_options.planted) < 0.05 * m_options.planted)
            break;
        const double factor = std::clamp(m_options.planted / std::max(*slowdown, 1e-4), 0.25, 4.0);
        cycles = std::max(1L, std::lround(static_cast<double>(cycles) * factor));
    }
    return cycles;
}

Status Bench::series(const char *name, const BenchCase &benchCase, GateJob job, json extra)
{
    int gains = 0;
    int losses = 0;
    int undecided = 0;
    std::vector<double> widths;
    std::vector<double> latencies;
    std::vector<double> seconds;
    std::vector<double> speedups;
    for (int i = 0; i < m_options.trials && !outOfTime(); ++i) {
        const auto outcome = compare(job);
        if (!outcome)
            return tl::unexpected(outcome.error());
        gains += outcome->change == Change::Gain;
        losses += outcome->change == Change::Loss;
        undecided += outcome->change == Change::Undecided;
        widths.push_back(halfWidth(outcome->speedup) / outcome->speedup.value);
        latencies.push_back(outcome->latencyNs * 1e-3);
        seconds.push_back(outcome->seconds);
        speedups.push_back(outcome->speedup.value);
    }
    json line = {{"bench", name},
                 {"case", benchCase.name},
                 {"device", m_device},
                 {"trials", widths.size()},
                 {"latency_us", rounded(quantile(latencies, 0.5))},
                 {"gains", gains},
                 {"losses", losses},
                 {"undecided", undecided},
                 {"speedup_p05", rounded(quantile(speedups, 0.05))},
                 {"speedup_p50", rounded(quantile(speedups, 0.5))},
                 {"speedup_p95", rounded(quantile(speedups, 0.95))},
                 {"half_width_p50", rounded(quantile(widths, 0.5))},
                 {"half_width_p95", rounded(quantile(widths, 0.95))},
                 {"half_width_max", rounded(quantile(widths, 1))},
                 {"seconds_p50", rounded(quantile(seconds, 0.5))}};
    line.update(extra);
    m_report(line);
    return {};
}

Status Bench::discrimination(const BenchCase &benchCase, const GateJob &given)
{
    if (m_options.trials <= 0)
        return {};
    GateJob job = given;
    job.request.parentText = given.request.candidateText;
    job.request.targetHalfWidth = m_options.halfWidth;
    job.request.profileSeconds = m_options.profileSeconds;
    job.request.quick = m_options.quick;
    if (m_options.same) {
        if (auto done = series("same", benchCase, job, json::object()); !done)
            return done;
    }
    if (benchCase.find.empty() || !m_options.slowed)
        return {};
    const auto cycles =
        m_options.plantedCycles > 0 ? Result<long>(m_options.plantedCycles) : calibrate(benchCase, job);
    if (!cycles)
        return tl::unexpected(cycles.error());
    auto planted = plantDelay(benchCase, given.request.candidateText, *cycles);
    if (!planted)
        return tl::unexpected(planted.error());
    job.request.candidateText = std::move(*planted);
    return series("planted", benchCase, job, {{"planted", m_options.planted}, {"planted_cycles", *cycles}});
}

Status Bench::run(const BenchCase &benchCase)
{
    auto job = jobOf(benchCase);
    if (!job)
        return tl::unexpected(job.error());
    return benchCase.latency ? latency(benchCase, std::move(*job)) : discrimination(benchCase, *job);
}

} // namespace

Status runBench(const std::vector<BenchCase> &cases, const BenchOptions &options, const std::stop_token &stop,
                const std::function<void(const nlohmann::json &)> &report)
{
    Bench bench(options, stop, report);
    for (const BenchCase &benchCase : cases) {
        if ((options.surface && *options.surface != benchCase.surface)
            || benchCase.name.find(options.filter) == std::string::npos)
            continue;
        if (auto done = bench.run(benchCase); !done)
            return done;
    }
    return {};
}

} // namespace klineage::gate
