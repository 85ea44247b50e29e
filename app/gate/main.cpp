// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gate/resample.h"
#include "app/gate/roofline.h"
#include "app/manual/pages.h"
#include "app/version/version.h"

#include "core/device/worker/worker.h"
#include "core/gate/counters/onerun.h"
#include "core/gate/selftest/runbench.h"
#include "core/gate/selftest/runcorpus.h"
#include "core/gate/service/batch.h"
#include "core/gate/service/serve.h"
#include "core/gate/session/deviceturn.h"
#include "core/gate/session/sandbox.h"
#include "core/trial/requestjson.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <thread>

namespace {

using namespace klineage;

// The table of README.md, "Exit status".
constexpr int exitNegative = 1;    ///< a mismatch; lines of a batch that were not begun
constexpr int exitUsage = 2;       ///< wrong options, or input that cannot be read
constexpr int exitEnvironment = 3; ///< files, devices or drivers failed

int failed(const Error &error)
{
    std::fprintf(stderr, "klineage-gate: %s\n%s", error.message.c_str(), error.detail.c_str());
    const bool isInput = error.code == ErrorCode::InvalidInput || error.code == ErrorCode::NotFound;
    return isInput ? exitUsage : exitEnvironment;
}

gate::SupervisorOptions supervisorOptions()
{
    gate::SupervisorOptions options;
    options.cacheDirectory = gate::cacheDirectory();
    std::error_code none;
    options.turnDirectory = gate::DeviceTurn::meetingPlace();
    return options;
}

int runDevices()
{
    gate::Supervisor supervisor(supervisorOptions());
    const nlohmann::json answer = {{"devices", gate::protocol::writeDevices(supervisor.devices())}};
    std::printf("%s\n", answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return 0;
}

/// Ctrl+C ends the trial in flight and the batch; what is written stays written.
std::stop_source stopOnSignals()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::stop_source source;
    std::thread([source, signals]() mutable {
        int received = 0;
        sigwait(&signals, &received);
        source.request_stop();
    }).detach();
    return source;
}

int runBatch(const gate::BatchOptions &options)
{
    const std::stop_source source = stopOnSignals();
    const auto summary = gate::runBatch(options, source.get_token(), [](const std::string &line) {
        std::fprintf(stderr, "%s\n", line.c_str());
    });
    if (!summary)
        return failed(summary.error());
    std::fprintf(stderr, "%d done, %d skipped, %d failed, %d left\n", summary->done, summary->skipped,
                 summary->failed, summary->left);
    if (summary->failed > 0)
        return exitEnvironment;
    return summary->left > 0 ? exitNegative : 0;
}

int runCorpus(const std::string &folder, const gate::CorpusOptions &options)
{
    const std::stop_source source = stopOnSignals();
    const auto corpus = gate::readCorpus(folder);
    std::vector<std::string> unexpected;
    const auto report = [&unexpected](const gate::CorpusOutcome &outcome) {
        const std::string line = gate::writeOutcome(outcome);
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
        if (!outcome.ok())
            unexpected.push_back(line);
    };
    const auto summary = !corpus ? tl::unexpected(corpus.error())
                                 : gate::runCorpus(*corpus, options, source.get_token(), report);
    if (!summary)
        return failed(summary.error());
    if (!unexpected.empty())
        std::fprintf(stderr, "Not as expected:\n");
    for (const std::string &line : unexpected)
        std::fprintf(stderr, "%s\n", line.c_str());
    std::fprintf(stderr, "%d as expected (%d not at first), %d mismatches, %d skipped\n", summary->asExpected,
                 summary->repeated, summary->mismatches, summary->skipped);
    return summary->mismatches > 0 ? exitNegative : 0;
}

int printCounters(const gate::counters::OneRunOptions &options)
{
    const auto figures = gate::counters::runOnce(options);
    if (figures) {
        std::printf("%s\n", figures->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
        return 0;
    }
    return failed(figures.error());
}

int runBench(const std::string &folder, const gate::BenchOptions &options)
{
    const std::stop_source source = stopOnSignals();
    const auto cases = gate::readBench(folder);
    const Status done = !cases ? tl::unexpected(cases.error())
                               : gate::runBench(*cases, options, source.get_token(), [](const auto &line) {
                                     std::printf("%s\n", line.dump().c_str());
                                     std::fflush(stdout);
                                 });
    return done ? 0 : failed(done.error());
}

const char *const benchFooter =
    "DIR holds bench.toml and what it names. A line of output is one series:\n"
    "  \"latency\": how long a warm verdict takes and the share of each stage; each candidate is a new text\n"
    "  \"same\":    trials of a candidate against a separate copy of itself; a gain or a loss is a false one\n"
    "  \"planted\": trials of a candidate slowed down by a known share; \"losses\" are those found\n";

const char *const corpusFooter =
    "DIR holds corpus.toml and what it names. A line of output is one candidate:\n"
    "  {\"file\", \"kind\", \"expected\", \"got\", \"stage\", \"ok\", \"message\", \"seconds\", \"stages\": {…}}\n"
    "and \"repeated\": true when it is gated once more.\n"
    "Candidates of a surface without a device are skipped: \"got\" is \"skipped\".\n"
    "Exit status: 0 no mismatch, 1 a mismatch, 2 DIR cannot be read, 3 an error.";

const char *const batchFooter =
    "A line of IN is one JSON object:\n"
    "  {\"id\": \"gemm-K03\", \"workload\": FOLDER, \"candidate\": FILE, \"parent\": FILE}\n"
    "id, workload and candidate are required. Optional: parent, name, tunables (object), seeds, min_rounds,\n"
    "target_half_width, profile_seconds, deadline_seconds, with_reference, quick, counters, energy, sanitize. Paths are relative to the\n"
    "current folder. quick: stop timing as soon as the comparison with the parent is decided.\n"
    "A line of OUT is {\"id\", \"trial\"} or {\"id\", \"error\"}, appended and synced one by one. Ids that have a trial in OUT\n"
    "are skipped, so that running the same command again resumes a batch that was killed; errors are tried again.\n"
    "Exit status: 0 all done, 1 some were not begun because of the limit or a signal, 2 IN cannot be read, 3 there were\n"
    "errors.";

const char *const serveFooter =
    "One JSON object a line on stdin, events on stdout, until stdin ends:\n"
    "  {\"id\": 1, \"method\": \"gate\", \"params\": {\"workload\": TOML, \"candidate\": TEXT, \"name\": NAME, \"parent\": TEXT, …}}\n"
    "  {\"id\": 2, \"method\": \"devices\"}   {\"id\": 3, \"method\": \"cancel\", \"target\": 1}   {\"id\": 4, \"method\": \"ping\"}\n"
    "  {\"id\": 5, \"method\": \"prepare\", \"params\": as of gate}   compiles a CUDA candidate in the background\n"
    "Events carry the id: \"progress\" (stage, fraction, text), \"result\" (trial, devices or pong), \"error\".";

} // namespace

int main(int argc, char **argv)
{
    CLI::App app{
        "The gate of KLineage: compiles a candidate kernel, checks it against the oracle, and times it.",
        "klineage-gate"};
    app.set_version_flag("--version", std::string("klineage-gate ") + versionText());
    app.footer("Exit status: 0 ok; 1 the answer is negative; 2 wrong usage; 3 the environment failed.");
    app.require_subcommand(1);

    auto *serve = app.add_subcommand("serve", "Answer requests on stdin, for the workbench and klineage-cli");
    serve->footer(serveFooter);

    gate::BatchOptions batchOptions;
    batchOptions.supervisor = supervisorOptions();
    auto *batch = app.add_subcommand("batch", "Gate every line of a file with one warm worker, resumable");
    batch->footer(batchFooter);
    batch->add_option("IN", batchOptions.in, "Lines of JSON: what to gate")->required();
    batch->add_option("--out", batchOptions.out, "Lines of JSON: the trials")->required();
    batch->add_option("--limit-seconds", batchOptions.limitSeconds,
                      "Begin no new trial after this long (0: no limit)");
    batch
        ->add_option(
            "--seed-pool", batchOptions.supervisor.seedPool,
            "Draw the timed case's seeds from this many random ones and keep their inputs and expected outputs "
            "(0: fresh seeds for every trial); recorded in each trial")
        ->check(CLI::Range(0, 64));
    batch->add_option("--profile-seconds", batchOptions.defaults.profileSeconds,
                      "Longest timing of one trial");
    batch->add_option("--deadline-seconds", batchOptions.defaults.deadlineSeconds, "Deadline of one trial");
    batch->add_option("--seeds", batchOptions.defaults.seeds, "Seeds of the timed case")
        ->check(CLI::Range(1, gate::mostSeeds));

    gate::CorpusOptions corpusOptions;
    corpusOptions.supervisor = supervisorOptions();
    std::string corpusFolder;
    std::string corpusSurface;
    auto *corpus = app.add_subcommand("corpus", "Gate candidates whose verdicts are known, and compare");
    corpus->footer(corpusFooter);
    corpus->add_option("DIR", corpusFolder, "Folder with corpus.toml")->required();
    corpus->add_option("--surface", corpusSurface, "Only this surface")
        ->check(CLI::IsMember(kernel::surfaceNames()));
    corpus->add_option("--filter", corpusOptions.filter, "Only files with this in their name");
    corpus
        ->add_option_function<std::string>(
            "--part",
            [&corpusOptions](const std::string &text) {
                if (std::sscanf(text.c_str(), "%3d/%3d", &corpusOptions.part, &corpusOptions.parts) != 2
                    || corpusOptions.part < 1 || corpusOptions.part > corpusOptions.parts)
                    throw CLI::ValidationError("--part", "expected I/N, as in 1/2");
            },
            "Only every Nth candidate, from the Ith on: for several at a time, as in 1/2")
        ->type_name("I/N");
    corpus->add_flag("--chance", corpusOptions.chance, "Only candidates whose wrongdoing depends on chance");
    corpus->add_option("--repeat", corpusOptions.repeat, "How often each is gated")
        ->check(CLI::Range(1, 10'000));
    corpus
        ->add_option("--again", corpusOptions.again,
                     "Gate what is not as expected so often once more; a mismatch unless all of these are")
        ->check(CLI::Range(0, 100));
    std::vector<std::string> except;
    corpus->add_option("--except", except, "Leave this file of the corpus out (repeatable)");
    corpus->add_option("--profile-seconds", corpusOptions.defaults.profileSeconds,
                       "Longest timing of a candidate without a parent");
    corpus->add_option("--compare-seconds", corpusOptions.compareSeconds,
                       "Longest timing of a candidate with a parent");

    gate::BenchOptions benchOptions;
    benchOptions.supervisor = supervisorOptions();
    benchOptions.supervisor.seedPool = 4;
    std::string benchFolder;
    std::string benchSurface;
    auto *bench = app.add_subcommand("bench", "Measure the gate itself: latency, false gains, power");
    bench->footer(benchFooter);
    bench->add_option("DIR", benchFolder, "Folder with bench.toml")->required();
    bench->add_option("--surface", benchSurface, "Only this surface")
        ->check(CLI::IsMember(kernel::surfaceNames()));
    bench->add_option("--filter", benchOptions.filter, "Only cases with this in their name");
    bench->add_option("--verdicts", benchOptions.verdicts, "Verdicts of a latency case");
    bench->add_option("--latency-profile-seconds", benchOptions.latencyProfileSeconds,
                      "Longest timing of one of those verdicts");
    bench->add_option("--trials", benchOptions.trials, "Trials of each series of a discrimination case");
    bench->add_flag("!--without-same", benchOptions.same, "Leave out the comparisons of equal candidates");
    bench->add_flag("!--without-planted", benchOptions.slowed, "Leave out the comparisons with slowed ones");
    bench->add_flag("--quick", benchOptions.quick, "Trials stop as soon as they are decided");
    bench->add_option("--planted", benchOptions.planted, "Slowdown that is planted");
    bench->add_option("--planted-cycles", benchOptions.plantedCycles,
                      "How many cycles that is, as an earlier run found (0: find out)");
    bench->add_option("--half-width", benchOptions.halfWidth, "Relative 95 % half-width that trials ask for");
    bench->add_option("--profile-seconds", benchOptions.profileSeconds, "Longest timing of one trial");
    bench->add_option("--limit-seconds", benchOptions.limitSeconds,
                      "Begin no new trial after this long (0: no limit)");
    bench
        ->add_option(
            "--seed-pool", benchOptions.supervisor.seedPool,
            "Draw the timed case's seeds from this many, whose expected outputs are kept (0: fresh seeds)")
        ->check(CLI::Range(0, 64));

    ResampleCommand resampleCommand;
    auto *resample = resampleCommand.add(app);

    auto *devices =
        app.add_subcommand("devices", "List the devices as JSON, with what is missing for the others");

    RooflineCommand rooflineCommand;
    auto *roofline = rooflineCommand.add(app);

    gate::counters::OneRunOptions oneRun;
    auto *counters = app.add_subcommand(
        "counters", "Run one trusted CUDA candidate in this process and print its counters");
    counters->footer("For comparisons with other profilers: tests/gate/ncu/compare.sh. Nothing is judged.");
    counters->add_option("WORKLOAD", oneRun.workload, "Folder with workload.toml")->required();
    counters->add_option("CANDIDATE", oneRun.candidate, "Candidate file")->required();
    counters->add_flag("--launch-only", oneRun.launchOnly, "Only launch it, three times");

    std::string backend;
    auto *worker =
        app.add_subcommand("worker", "Own a device and execute (started by the gate itself)")->group("");
    worker->add_option("--backend", backend)->required();
    auto *compiler =
        app.add_subcommand("compile", "Compile untrusted source (started by the gate itself)")->group("");

    if (const auto status = manual::generateIfAsked(argc, argv, [&app] { return manual::commandOf(app); }))
        return *status;
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        return app.exit(problem) == 0 ? 0 : exitUsage;
    }
    if (*serve)
        return gate::serve(supervisorOptions());
    if (*batch)
        return runBatch(batchOptions);
    if (*corpus) {
        corpusOptions.surface = kernel::surfaceFromString(corpusSurface);
        corpusOptions.except.insert(except.begin(), except.end());
        return runCorpus(corpusFolder, corpusOptions);
    }
    if (*bench) {
        benchOptions.surface = kernel::surfaceFromString(benchSurface);
        return runBench(benchFolder, benchOptions);
    }
    if (*resample) {
        const auto done = resampleCommand.run();
        return done ? 0 : failed(done.error());
    }
    if (*devices)
        return runDevices();
    if (*counters)
        return printCounters(oneRun);
    if (*roofline)
        return rooflineCommand.run(supervisorOptions());
    if (*worker) {
        const auto device = kernel::deviceFromString(backend);
        return device ? gate::runWorker(*device) : exitUsage;
    }
    return *compiler ? gate::runCompiler() : exitUsage;
}
