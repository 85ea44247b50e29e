// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/gaterequest.h"
#include "app/cli/interrupt.h"
#include "app/cli/poolchoice.h"
#include "app/cli/runsession.h"
#include "app/cli/texttable.h"

#include "core/files/atomicfile.h"
#include "core/kernel/candidatetext.h"
#include "core/kernel/outline/siblings.h"
#include "core/lineage/record.h"
#include "core/pool/gateclient.h"
#include "core/pool/gatepool.h"
#include "core/trial/analysis/analysis.h"
#include "core/trial/trialfile.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
#include <iterator>
#include <memory>
#include <sstream>

#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;

namespace {

namespace fs = std::filesystem;

struct RunOptions : GateChoice {
    std::string backend = "auto";
    std::string replay;
    std::vector<std::string> tunables;
    PoolChoice pool;
    gate::Place place;
    bool record = false;
    bool precise = false;
    bool counters = false;
    bool energy = false;
    bool sanitize = false;
};

/// A problem that has been printed already; carries the exit status.
using Exit = tl::unexpected<int>;

/// The lineage that --lineage names, the one whose folder holds the file, or the only one of the workload on that surface.
tl::expected<const lineage::Lineage *, int> chooseLineage(const Session &session, const Workspace &workspace,
                                                          const RunOptions &options, kernel::Surface surface)
{
    std::vector<const lineage::Lineage *> fitting;
    std::vector<std::string> known;
    std::error_code ignored;
    const fs::path folder = fs::weakly_canonical(fs::path(options.file), ignored).parent_path();
    for (const lineage::Lineage &candidate : workspace.lineages) {
        if (candidate.workload != options.workload)
            continue;
        known.push_back(candidate.key());
        if (candidate.key() == options.lineage || candidate.platform == options.lineage)
            return &candidate;
        if (options.lineage.empty() && fs::weakly_canonical(candidate.directory, ignored) == folder)
            return &candidate;
        if (candidate.surface == surface)
            fitting.push_back(&candidate);
    }
    if (!options.lineage.empty())
        return Exit(session.unknownName("lineage", options.lineage, known));
    if (fitting.size() == 1)
        return fitting.front();
    if (fitting.empty())
        return Exit(session.usage("The workload '" + options.workload + "' has no lineage on the surface '"
                                  + kernel::toString(surface) + "', so there is no parent state."));
    return Exit(session.usage("The workload '" + options.workload
                              + "' has several lineages on this surface; say which with --lineage."));
}

tl::expected<std::map<std::string, std::int64_t>, int> readTunables(const Session &session,
                                                                    const RunOptions &options)
{
    std::map<std::string, std::int64_t> tunables;
    for (const std::string &assignment : options.tunables) {
        const std::size_t equals = assignment.find('=');
        std::int64_t value = 0;
        const char *end = assignment.data() + assignment.size();
        const char *number = equals == std::string::npos ? end : assignment.data() + equals + 1;
        const auto [stopped, problem] = std::from_chars(number, end, value);
        if (equals == 0 || problem != std::errc() || stopped != end)
            return Exit(session.usage("'" + assignment + "' is no tunable; expected NAME=INTEGER."));
        tunables[assignment.substr(0, equals)] = value;
    }
    return tunables;
}

/// Ids of states have neither folders nor endings.
bool isFileName(const std::string &parent)
{
    return parent.find_first_of("./") != std::string::npos;
}

/// A trial by its id, in the lineages of the workload or the runs of the workspace, or in a file: what `gate run --json` printed, or
/// a trial by itself.
tl::expected<gate::Trial, int> findTrial(const Session &session, const Workspace &workspace,
                                         const RunOptions &options)
{
    if (const gate::Trial *trial = workspace.findTrial(options.replay))
        return *trial;
    std::error_code none;
    for (const auto &run : fs::directory_iterator(workspace.root / "runs", none)) {
        const auto file = gate::readTrialFile(run.path() / "trials.jsonl");
        for (const gate::Trial &trial : file ? file->trials : std::vector<gate::Trial>()) {
            if (trial.id == options.replay)
                return trial;
        }
    }
    if (!isFileName(options.replay) && !fs::exists(options.replay, none))
        return Exit(session.usage("No lineage and no run of this workspace has a trial '" + options.replay
                                  + "'; expected its id, or a file that holds a trial."));
    constexpr std::size_t mostBytes = std::size_t{16} << 20;
    const Result<std::string> text = files::readFile(options.replay, mostBytes);
    if (!text)
        return Exit(session.usage(text.error().message));
    json value = json::parse(*text, nullptr, false);
    if (value.is_object() && value.contains("trial"))
        value = json(value["trial"]);
    Result<gate::Trial> trial = gate::parseTrial(value.is_discarded() ? *text : value.dump(), options.replay);
    return trial ? tl::expected<gate::Trial, int>(std::move(*trial)) : Exit(session.fail(trial.error()));
}

/// The exit status of what is wrong with it; nothing when all is well.
std::optional<int> addReplay(const Session &session, const Workspace &workspace, const RunOptions &options,
                             gate::GateRequest &request)
{
    if (options.replay.empty())
        return std::nullopt;
    if (options.record)
        return session.usage(
            "A replay has inputs that were known before, so it is not recorded: leave out --record.");
    const auto trial = findTrial(session, workspace, options);
    if (!trial)
        return trial.error();
    if (trial->workload != options.workload || trial->seeds.empty())
        return session.usage("The trial " + trial->id
                             + (trial->seeds.empty() ? " came to no inputs: there is nothing to replay."
                                                     : " is of the workload '" + trial->workload + "'."));
    request.replayOf = trial->id;
    request.replaySeeds = trial->seeds;
    return std::nullopt;
}

tl::expected<std::string, int> readParent(const Session &session, const Workspace &workspace,
                                          const RunOptions &options, kernel::Surface surface)
{
    if (options.parent.empty())
        return std::string();
    if (isFileName(options.parent)) {
        Result<std::string> text = kernel::readCandidateText(options.parent);
        if (!text)
            return Exit(text.error().code == ErrorCode::NotFound ? session.usage(text.error().message)
                                                                 : session.fail(text.error()));
        return *text;
    }
    const auto chosen = chooseLineage(session, workspace, options, surface);
    if (!chosen)
        return Exit(chosen.error());
    const lineage::Lineage &lineage = **chosen;
    const lineage::State *state = lineage.findState(options.parent);
    if (!state) {
        std::vector<std::string> known;
        for (const lineage::State &other : lineage.states)
            known.push_back(other.id);
        return Exit(session.unknownName("state of " + lineage.key(), options.parent, known));
    }
    Result<std::string> text = kernel::readCandidateText(lineage.directory / state->file);
    if (!text)
        return Exit(session.fail(text.error()));
    return *text;
}

/// Everything about the request that can be wrong before the gate is started.
tl::expected<gate::GateRequest, int> makeRequest(const Session &session, const Workspace &workspace,
                                                 const RunOptions &options)
{
    const workload::Workload *workload = workspace.findWorkload(options.workload);
    if (!workload)
        return Exit(session.unknownName("workload", options.workload, workspace.workloadNames()));
    gate::GateRequest request;
    request.workloadDirectory = workload->directory;
    request.candidateName = fs::path(options.file).filename().string();
    Result<std::string> text = kernel::readCandidateText(options.file);
    if (!text)
        return Exit(text.error().code == ErrorCode::NotFound ? session.usage(text.error().message)
                                                             : session.fail(text.error()));
    Result<kernel::WithSiblings> whole = kernel::withSiblings(*text, options.file);
    if (!whole)
        return Exit(session.usage(whole.error().message));
    for (const std::string &notice : session.json() ? std::vector<std::string>() : whole->notices)
        std::fprintf(stderr, "klineage-cli: %s\n", notice.c_str());
    request.candidateText = std::move(whole->text);
    // A file whose plan cannot be read is still the gate's to judge; its name says the surface well enough to find the parent.
    const Result<kernel::Candidate> candidate =
        kernel::parseCandidate(request.candidateText, request.candidateName);
    const kernel::Surface surface =
        candidate ? candidate->surface
                  : kernel::surfaceOfFile(request.candidateName).value_or(kernel::Surface());
    if (options.backend != "auto" && options.backend != surface.device().word)
        return Exit(session.usage(request.candidateName + " is written for the backend '"
                                  + surface.device().word + "', not for '" + options.backend + "'."));
    auto parent = readParent(session, workspace, options, surface);
    if (!parent)
        return Exit(parent.error());
    request.parentText = std::move(*parent);
    auto tunables = readTunables(session, options);
    if (!tunables)
        return Exit(tunables.error());
    request.tunables = std::move(*tunables);
    request.deadlineSeconds = options.timeoutSeconds;
    request.seeds = options.seeds;
    request.profileSeconds = options.profileSeconds;
    request.minRounds = options.rounds;
    request.quick = !options.precise && !options.record;
    request.withReference = !options.withoutReference;
    request.counters = options.counters;
    request.energy = options.energy;
    request.sanitize = options.sanitize;
    request.place = options.place;
    if (const auto wrong = addReplay(session, workspace, options, request))
        return Exit(*wrong);
    return request;
}

/// The recorded file name, or what kept the trial out. Empty when --record was not given.
struct Recorded {
    bool wanted = false;
    std::string lineage;
    std::string problem;
};

/// The only one of the workload and platform, the one with the parent among its states, or the one that is named after the platform alone.
const lineage::Lineage *lineageOf(const Workspace &workspace, const gate::Trial &trial)
{
    std::vector<const lineage::Lineage *> fitting;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (lineage.workload == trial.workload && lineage.platform == trial.environment.platform)
            fitting.push_back(&lineage);
    }
    if (fitting.size() == 1)
        return fitting.front();
    const lineage::Lineage *usual = workspace.findLineage(trial.workload + '/' + trial.environment.platform);
    const auto hasParent = [&](const lineage::Lineage *lineage) {
        return std::any_of(lineage->states.begin(), lineage->states.end(), [&](const lineage::State &state) {
            const gate::Trial *own = lineage->trialOf(state);
            return own && own->candidate == trial.parent;
        });
    };
    if (usual && (trial.parent.empty() || hasParent(usual)))
        return usual;
    const auto found = std::find_if(fitting.begin(), fitting.end(), hasParent);
    return found == fitting.end() ? usual : *found;
}

Recorded recordIn(const Workspace &workspace, const gate::Trial &trial, const std::string &candidateText)
{
    Recorded recorded;
    recorded.wanted = true;
    const std::string key = trial.workload + '/' + trial.environment.platform;
    const lineage::Lineage *lineage = lineageOf(workspace, trial);
    if (trial.environment.platform.empty()) {
        recorded.problem = "The trial reached no device, so it belongs to no platform and was not recorded.";
        return recorded;
    }
    if (!lineage) {
        recorded.problem = "There is no lineage " + key + " to record the trial in.";
        return recorded;
    }
    const Result<lineage::RecordOutcome> outcome = lineage::recordTrial(*lineage, trial, candidateText);
    if (outcome)
        recorded.lineage = lineage->key();
    else
        recorded.problem = outcome.error().message;
    return recorded;
}

} // namespace

void printTrial(const gate::Trial &trial)
{
    const gate::Verdict &verdict = trial.verdict;
    std::printf("%s at %s (%s): %s\n", gate::toString(verdict.status), gate::toString(verdict.stage),
                verdict.reason.c_str(), verdict.message.c_str());
    for (const gate::Evidence &fact : verdict.evidence)
        std::printf("  %s: %s\n", fact.name.c_str(), fact.value.c_str());
    if (!verdict.hint.empty())
        std::printf("  Try: %s\n", verdict.hint.c_str());
    if (!verdict.log.empty())
        std::printf("\n%s\n", verdict.log.c_str());
    if (trial.trust != gate::Trust::Unsaid)
        std::printf("Trust: %s\n", gate::toString(trial.trust));
    if (!trial.environment.device.empty())
        std::printf("Device: %s (%s)\n", trial.environment.device.c_str(),
                    trial.environment.platform.c_str());
    if (trial.latencyNs.value > 0)
        std::printf("Latency: %s, %s, %s\n", formatLatency(trial.latencyNs).c_str(),
                    formatRate(trial.achievedFlops, "FLOP").c_str(),
                    formatRate(trial.achievedBytes, "B").c_str());
    for (const gate::Comparison &comparison : verdict.comparisons)
        std::printf("Speedup to %s: %s, %s\n",
                    comparison.against == "parent" ? "parent" : comparison.subject.c_str(),
                    formatSpeedup(comparison.speedup).c_str(), gate::toString(comparison.change));
    if (trial.latencyNs.value > 0)
        std::printf("%s", gate::analysisText(gate::analyse(trial)).c_str());
    const gate::StageSeconds &stages = trial.stages;
    std::printf("Seconds: start %.2f, compile %.2f, oracle %.2f, check %.2f, profile %.2f\n", stages.start,
                stages.compile, stages.oracle, stages.check, stages.profile);
    std::printf("Trial %s\n", trial.id.c_str());
}

int exitStatusOf(gate::VerdictStatus status)
{
    if (status == gate::VerdictStatus::Correct)
        return exitOk;
    return status == gate::VerdictStatus::Unavailable ? exitEnvironment : exitNegative;
}

void showProgress(const gate::GateProgress &progress)
{
    if (::isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r\033[K%s: %s", gate::toString(progress.stage), progress.text.c_str());
}

namespace {

int runGate(const Session &session, const RunOptions &options)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const auto request = makeRequest(session, *workspace, options);
    if (!request)
        return request.error();
    const InterruptWatcher interrupts;
    const auto pool = openPool(session, options.pool);
    if (!pool)
        return pool.error();
    const Result<gate::Trial> trial = (*pool)->run(*request, interrupts.token(), showProgress);
    if (::isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r\033[K");
    if (!trial)
        return session.fail(trial.error());

    const Recorded recorded =
        options.record ? recordIn(*workspace, *trial, request->candidateText) : Recorded{};
    if (session.json()) {
        json out{{"status", gate::toString(trial->verdict.status)}, {"trial", *trial}};
        if (trial->latencyNs.value > 0)
            out["analysis"] = gate::analysisJson(gate::analyse(*trial));
        if (recorded.wanted)
            out["recorded"] = {{"lineage", recorded.lineage.empty() ? json() : json(recorded.lineage)},
                               {"problem", recorded.problem.empty() ? json() : json(recorded.problem)}};
        session.print(out);
    } else {
        printTrial(*trial);
        if (!recorded.lineage.empty())
            std::printf("Recorded in %s.\n", recorded.lineage.c_str());
    }
    if (!recorded.problem.empty()) {
        std::fprintf(stderr, "klineage-cli: %s\n", recorded.problem.c_str());
        return exitEnvironment;
    }
    return exitStatusOf(trial->verdict.status);
}

int devices(const Session &session)
{
    const Result<fs::path> program = gate::findGateProgram();
    if (!program)
        return session.fail(program.error());
    const Result<std::vector<gate::DeviceInfo>> found = gate::queryDevices(*program);
    if (!found)
        return session.fail(found.error());
    json out{{"devices", json::array()}};
    TextTable table({{"BACKEND"}, {"DEVICE"}, {"DETAIL"}});
    for (const gate::DeviceInfo &device : *found) {
        out["devices"].push_back({{"backend", kernel::toString(device.kind)},
                                  {"available", device.available},
                                  {"name", device.name},
                                  {"detail", device.detail}});
        table.addRow({kernel::toString(device.kind), device.available ? device.name : "none", device.detail});
    }
    if (session.json())
        session.print(out);
    else
        std::printf("%s", table.text().c_str());
    return exitOk;
}

} // namespace

tl::expected<gate::GateRequest, int> requestFor(const Session &session, const Workspace &workspace,
                                                const GateChoice &choice)
{
    RunOptions options;
    static_cast<GateChoice &>(options) = choice;
    return makeRequest(session, workspace, options);
}

Result<std::string> recordInLineage(const Workspace &workspace, const gate::Trial &trial,
                                    const std::string &candidateText)
{
    const Recorded recorded = recordIn(workspace, trial, candidateText);
    if (!recorded.problem.empty())
        return klineage::fail(ErrorCode::InvalidInput, recorded.problem);
    return recorded.lineage;
}

void addGateCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(app, "gate", "Compile, check and time a candidate");
    const auto options = std::make_shared<RunOptions>();
    std::vector<std::string> backends = {"auto"};
    for (const kernel::DeviceTraits &device : kernel::deviceTable())
        backends.emplace_back(device.word);
    CLI::App *verb = session.addVerb(*group, "run", "Gate one candidate file (exit status 1 unless correct)",
                                     [&session, options] { return runGate(session, *options); });
    verb->add_option("file", options->file, "Candidate file")->required();
    verb->add_option("--workload", options->workload, "Name of the workload")->required();
    verb->add_option("--backend", options->backend, "cuda, opencl or auto: the one the file is written for")
        ->check(CLI::IsMember(backends))
        ->capture_default_str();
    verb->add_option("--parent", options->parent,
                     "Compare with this state of the lineage, as in K03, or with a file");
    verb->add_option("--lineage", options->lineage, "Lineage of --parent (default: the one that fits)");
    verb->add_option("--replay", options->replay,
                     "Inputs and drawn shapes of this trial again: its id, or a file with it");
    verb->add_option("--tunable", options->tunables, "NAME=INTEGER instead of the default (repeatable)");
    addPoolOptions(*verb, options->pool);
    addPlaceOptions(*verb, options->place);
    verb->add_option("--profile-seconds", options->profileSeconds,
                     "Stop timing after this long at the latest")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--rounds", options->rounds, "Timing rounds, at least")
        ->check(CLI::Range(3, 10000))
        ->capture_default_str();
    verb->add_option("--timeout", options->timeoutSeconds, "Deadline of the whole trial, seconds")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--seeds", options->seeds, "Fresh inputs a case")
        ->check(CLI::Range(1, gate::mostSeeds))
        ->capture_default_str();
    verb->add_flag(
        "--precise", options->precise,
        "Time on when the comparison with the parent is decided, to ±0.2 % or --profile-seconds; --record does so too");
    verb->add_flag("--no-reference", options->withoutReference, "Do not time the vendor reference");
    verb->add_flag(
        "--counters", options->counters,
        "After a correct verdict, read hardware counters and where the time goes, line by line (CUDA)");
    verb->add_flag("--energy", options->energy, "Read the device's energy counter over a long replay (CUDA)");
    verb->add_flag(
        "--sanitize", options->sanitize,
        "Run the smallest case under compute-sanitizer first: memory, races, initialisation, barriers (CUDA)");
    verb->add_flag("--record", options->record, "Add the trial to the lineage of its workload and platform");

    addCorpusCommand(*group, session);
    addTuneCommand(*group, session);
    session.addVerb(*group, "devices", "What the gate can run on", [&session] { return devices(session); });
}

} // namespace klineage::cli
