// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/gaterequest.h"
#include "app/cli/interrupt.h"
#include "app/cli/poolchoice.h"
#include "app/cli/runsession.h"

#include "core/pool/gatepool.h"
#include "core/tune/sweep.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <memory>
#include <sstream>

#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;

namespace {

namespace tune = gate::tune;

struct TuneOptions {
    GateChoice choice;
    std::vector<std::string> sets;
    PoolChoice pool;
    gate::Place place;
    int jobs = 0; ///< 0: one a gate
    int budget = 64;
    double seconds = 0;
    double pointSeconds = 1.5;
    std::uint64_t seed = 1;
    std::string out;
    bool record = false;
};

const char *const tuneFooter =
    "Every point is a trial with the defaults as its parent. When there are more points than --budget, a local search picks them.\n"
    "The fastest is measured again against the defaults, and with --parent against that state too; only that counts.\n"
    "With --json: a line {\"id\", \"trial\"} or {\"id\", \"error\"} for each trial, as --out keeps them, and at last {\"sweep\"}.\n"
    "Exit status: 0 something beats the defaults, 1 nothing does, 3 there is no device or a file cannot be written.";

/// "TILE=8,16" -> TILE, {8, 16}.
bool readSet(const std::string &text, std::map<std::string, std::vector<std::int64_t>> &sets)
{
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        return false;
    std::vector<std::int64_t> &values = sets[text.substr(0, equals)];
    for (std::size_t begin = equals + 1; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        std::int64_t value = 0;
        const auto [stopped, problem] = std::from_chars(text.data() + begin, text.data() + end, value);
        if (problem != std::errc() || stopped != text.data() + end)
            return false;
        values.push_back(value);
        begin = end + 1;
    }
    return true;
}

json lineOf(const tune::PointResult &result, const std::string &role)
{
    json line = {{"id", role + " " + tune::nameOf(result.point)}};
    if (result.trial)
        line["trial"] = *result.trial;
    else
        line["error"] = {{"code", toString(result.error->code)}, {"message", result.error->message}};
    return line;
}

json summaryOf(const tune::SweepResult &result, const Result<std::string> &recorded)
{
    const auto idOf = [](const std::optional<tune::PointResult> &point) {
        return point && point->trial ? json(point->trial->id) : json();
    };
    json summary = {{"search", result.search},
                    {"seed", result.seed},
                    {"space", result.spaceSize},
                    {"end", tune::toString(result.end)},
                    {"points", json::array()},
                    {"best", result.best ? json(result.points[*result.best].point) : json()},
                    {"improved", result.improved()},
                    {"confirmation", idOf(result.confirmation)},
                    {"comparison", idOf(result.comparison)},
                    {"conclusion", result.conclusion}};
    for (const tune::PointResult &point : result.points) {
        const auto speed = tune::speedOf(point, result.points.front());
        const bool timed = point.trial && point.trial->latencyNs.value > 0;
        summary["points"].push_back(
            {{"tunables", point.point},
             {"trial", point.trial ? json(point.trial->id) : json()},
             {"status", point.trial ? json(gate::toString(point.trial->verdict.status)) : json()},
             {"latency_ns", timed ? jsonOf(point.trial->latencyNs) : json()},
             {"speed", speed && result.points.front().correct() ? json(*speed) : json()}});
    }
    if (!recorded || !recorded->empty())
        summary["recorded"] = {{"lineage", recorded ? json(*recorded) : json()},
                               {"problem", recorded ? json() : json(recorded.error().message)}};
    return summary;
}

/// The text table, row by row as the trials come in.
class Rows
{
public:
    explicit Rows(const gate::GateRequest &request)
    {
        const auto candidate = kernel::parseCandidate(request.candidateText, request.candidateName);
        for (const kernel::Tunable &tunable :
             candidate ? candidate->tunables : std::vector<kernel::Tunable>()) {
            std::size_t widest = 0;
            for (const std::int64_t value : tunable.values)
                widest = std::max(widest, std::to_string(value).size());
            m_width += tunable.name.size() + 2 + widest;
        }
    }
    void print(const tune::PointResult &result, const std::string &role)
    {
        if (std::exchange(m_started, true) == false)
            std::printf("%-8s%-*s  %-13s  %s\n", "TRIAL", static_cast<int>(m_width), "POINT", "VERDICT",
                        "LATENCY; SPEED");
        const std::string number = role == "point" ? std::to_string(++m_count) : role;
        std::printf("%-8s%-*s  %-13s  %s\n", number.c_str(), static_cast<int>(m_width),
                    tune::nameOf(result.point).c_str(),
                    result.trial ? gate::toString(result.trial->verdict.status) : "error",
                    detailOf(result, role).c_str());
        std::fflush(stdout);
    }

private:
    static std::string detailOf(const tune::PointResult &result, const std::string &role)
    {
        if (!result.trial)
            return result.error->message;
        const gate::Trial &trial = *result.trial;
        if (!result.correct())
            return trial.verdict.message;
        std::string text = formatLatency(trial.latencyNs);
        for (const gate::Comparison &comparison : trial.verdict.comparisons)
            text += "; " + formatSpeedup(comparison.speedup) + " "
                    + (comparison.against == "parent" && role != "compare" ? "defaults" : comparison.against)
                    + ", " + gate::toString(comparison.change);
        return text;
    }

    std::size_t m_width = 8;
    int m_count = 0;
    bool m_started = false;
};

void showProgress(const gate::GateProgress &progress)
{
    if (::isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r\033[K%s: %s", gate::toString(progress.stage), progress.text.c_str());
}

Result<tune::SweepResult> sweep(const Session &session, gate::GatePool &pool,
                                const tune::SweepOptions &wanted)
{
    const InterruptWatcher interrupts;
    tune::Gate gate;
    gate.run = [&](const gate::GateRequest &request) {
        return pool.run(request, interrupts.token(), showProgress);
    };
    const auto candidate = kernel::parseCandidate(wanted.request.candidateText, wanted.request.candidateName);
    if (candidate && candidate->surface->compiledApart)
        gate.prepare = [&pool](const gate::GateRequest &request) { pool.prepare(request); };
    Rows rows(wanted.request);
    return tune::runSweep(
        wanted, gate, interrupts.token(), [&](const tune::PointResult &result, const std::string &role) {
            if (::isatty(STDERR_FILENO))
                std::fprintf(stderr, "\r\033[K");
            if (session.json())
                std::printf(
                    "%s\n",
                    lineOf(result, role).dump(-1, ' ', false, json::error_handler_t::replace).c_str());
            else
                rows.print(result, role);
            std::fflush(stdout);
        });
}

int runTune(const Session &session, const TuneOptions &options)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    auto request = requestFor(session, *workspace, options.choice);
    if (!request)
        return request.error();
    tune::SweepOptions wanted;
    wanted.against = std::exchange(request->parentText, {});
    wanted.request = std::move(*request);
    wanted.budget = options.budget;
    wanted.seconds = options.seconds;
    wanted.seed = options.seed;
    wanted.pointSeconds = options.pointSeconds;
    wanted.out = options.out;
    for (const std::string &set : options.sets) {
        if (!readSet(set, wanted.only))
            return session.usage("'" + set + "' is no choice of values; expected NAME=INTEGER,INTEGER,…");
    }
    const auto pool = openPool(session, options.pool);
    if (!pool)
        return pool.error();
    wanted.request.place = options.place;
    wanted.jobs = jobsOf(options.jobs, **pool);
    const auto result = sweep(session, **pool, wanted);
    if (!result)
        return result.error().code == ErrorCode::InvalidInput ? session.usage(result.error().message)
                                                              : session.fail(result.error());
    Result<std::string> recorded = std::string();
    // What was asked for is on record when the point holds; of the two trials the one against the lineage's state.
    const auto &standing = result->comparison ? result->comparison : result->confirmation;
    if (options.record && result->improved() && standing && standing->trial)
        recorded = recordInLineage(*workspace, *standing->trial, wanted.request.candidateText);
    if (session.json())
        std::printf("%s\n", json{{"sweep", summaryOf(*result, recorded)}}
                                .dump(-1, ' ', false, json::error_handler_t::replace)
                                .c_str());
    else
        std::printf("%s\n%zu of %llu points, %s search, seed %llu, ended: %s\n", result->conclusion.c_str(),
                    result->points.size(), static_cast<unsigned long long>(result->spaceSize),
                    result->search.c_str(), static_cast<unsigned long long>(result->seed),
                    tune::toString(result->end));
    if (!recorded) {
        std::fprintf(stderr, "klineage-cli: %s\n", recorded.error().message.c_str());
        return exitEnvironment;
    }
    if (!recorded->empty() && !session.json())
        std::printf("Recorded in %s.\n", recorded->c_str());
    if (result->end == tune::SweepEnd::NoDevice)
        return exitEnvironment;
    return result->improved() ? exitOk : exitNegative;
}

} // namespace

void addTuneCommand(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<TuneOptions>();
    CLI::App *verb = session.addVerb(group, "tune", "Sweep a candidate's tunables under the gate",
                                     [&session, options] { return runTune(session, *options); });
    verb->footer(tuneFooter);
    GateChoice &choice = options->choice;
    verb->add_option("file", choice.file, "Candidate file")->required();
    verb->add_option("--workload", choice.workload, "Name of the workload")->required();
    verb->add_option("--budget", options->budget, "Trials of points, at most")
        ->check(CLI::Range(2, 100000))
        ->capture_default_str();
    verb->add_option("--seconds", options->seconds, "Begin no further point after this long (0: no limit)")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb->add_option("--set", options->sets, "NAME=V1,V2,… only these values of a tunable (repeatable)")
        ->allow_extra_args(false);
    verb->add_option("--seed", options->seed, "Seed of the search")->capture_default_str();
    verb->add_option("--parent", choice.parent,
                     "Compare the result with this state of the lineage, or with a file, too");
    verb->add_option("--lineage", choice.lineage, "Lineage of --parent (default: the one that fits)");
    verb->add_option("--out", options->out,
                     "Keep the trials in this file; those that are there already are not made again");
    addPoolOptions(*verb, options->pool);
    addPlaceOptions(*verb, options->place);
    verb->add_option("--jobs", options->jobs, "Points that are tried at a time (default: one a gate)")
        ->check(CLI::Range(1, 64));
    verb->add_option("--point-seconds", options->pointSeconds, "Longest timing of a point")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--profile-seconds", choice.profileSeconds, "Longest timing of the confirmation")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--rounds", choice.rounds, "Timing rounds of the confirmation, at least")
        ->check(CLI::Range(3, 10000))
        ->capture_default_str();
    verb->add_option("--timeout", choice.timeoutSeconds, "Deadline of each trial, seconds")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--seeds", choice.seeds, "Fresh inputs a case")
        ->check(CLI::Range(1, gate::mostSeeds))
        ->capture_default_str();
    verb->add_flag("--no-reference", choice.withoutReference,
                   "Do not time the vendor reference in the confirmation");
    verb->add_flag("--record", options->record,
                   "Add the confirming trial to the lineage of its workload and platform, if it is a gain");
}

} // namespace klineage::cli
