// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/poolchoice.h"
#include "app/cli/pooldeploy.h"
#include "app/cli/texttable.h"

#include "core/base/numbertext.h"
#include "core/pool/gateclient.h"
#include "core/pool/poolbatch.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;

namespace {

constexpr double loadLimitSeconds = 30;
constexpr std::size_t askedAtOnce = 16;

/// What a gate answered, or why it did not.
struct Answer {
    tl::expected<std::vector<gate::DeviceInfo>, gate::GateProblem> devices;
    std::string load; ///< "load 0.31; GPU 97 %, …", or the jobs of Slurm
};

std::string gateKind(const gate::GateSpec &spec)
{
    if (spec.isQueued)
        return "Slurm";
    if (!spec.shell.empty())
        return "ssh";
    return spec.launcher.empty() ? "local" : "command";
}

std::string gateName(const gate::GateSpec &spec)
{
    return spec.name.empty() ? "this machine" : spec.name;
}

std::string gateDevices(const Answer &answer)
{
    if (!answer.devices)
        return answer.devices.error().error.message;
    std::string text;
    for (const gate::DeviceInfo &device : *answer.devices) {
        if (device.available)
            text += (text.empty() ? "" : "; ") + device.name + " (" + device.detail + ")";
    }
    return text.empty() ? "no device" : text;
}

json gateJson(const gate::GateSpec &spec, const Answer &answer)
{
    json out = {{"name", gateName(spec)},
                {"kind", gateKind(spec)},
                {"where", spec.where},
                {"platforms", spec.platforms},
                {"load", answer.load.empty() ? json() : json(answer.load)},
                {"error", answer.devices ? json() : json(answer.devices.error().error.message)},
                {"devices", json::array()}};
    for (const gate::DeviceInfo &device :
         answer.devices ? *answer.devices : std::vector<gate::DeviceInfo>()) {
        if (device.available)
            out["devices"].push_back({{"backend", kernel::toString(device.kind)},
                                      {"name", device.name},
                                      {"platform", device.platform},
                                      {"detail", device.detail}});
    }
    return out;
}

/// ask(i) for all, several at a time.
void forEach(std::size_t count, const std::function<void(std::size_t)> &ask)
{
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < std::min(count, askedAtOnce); ++t)
        threads.emplace_back([&] {
            for (std::size_t i = next++; i < count; i = next++)
                ask(i);
        });
}

std::string onOneLine(std::string text)
{
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

const char *const loadScript =
    "cut -d' ' -f1 /proc/loadavg | sed 's/^/load /'; "
    "command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi --query-gpu=index,utilization.gpu --format=csv,noheader "
    "| sed 's/^\\([0-9]*\\), /GPU \\1: /'; true";
const char *const jobsScript =
    "squeue --noheader --user=\"$(id -un)\" --name=klineage-gate --format=%T | sort | "
    "uniq -c | sed 's/^ *//' | paste -sd, - ";

/// A machine that is asked for its load, or a Slurm for its jobs, once for all its gates.
struct Host {
    const gate::GateSpec *spec; ///< of its first gate
    Result<std::string> load;
};

/// The hosts, asked, and of each gate which of them is its.
std::pair<std::vector<Host>, std::vector<std::size_t>> hostsOf(const std::vector<gate::GateSpec> &gates)
{
    std::vector<Host> hosts;
    std::vector<std::size_t> places;
    std::map<std::pair<std::vector<std::string>, bool>, std::size_t> known;
    for (const gate::GateSpec &spec : gates) {
        const auto [entry, isNew] = known.emplace(std::pair(spec.shell, spec.isQueued), hosts.size());
        if (isNew)
            hosts.push_back({&spec, {}});
        places.push_back(entry->second);
    }
    forEach(hosts.size(), [&](std::size_t i) {
        const gate::GateSpec &spec = *hosts[i].spec;
        hosts[i].load = runThere(spec, spec.isQueued ? jobsScript : loadScript, loadLimitSeconds);
    });
    return {std::move(hosts), std::move(places)};
}

/// Without a job: Slurm says what is queued, the others what they have.
Answer glanceAt(const gate::GateSpec &spec, const Result<std::string> &load)
{
    Answer answer;
    if (load)
        answer.load = onOneLine(*load);
    if (spec.isQueued && load)
        answer.load = answer.load.empty() ? "no job" : "jobs: " + answer.load;
    else if (!load && !spec.shell.empty())
        answer.devices = tl::unexpected(gate::GateProblem{load.error(), false});
    else
        answer.devices = gate::queryDevices(spec);
    return answer;
}

int showPoolStatus(const Session &session, const PoolChoice &choice)
{
    const auto pool = poolOf(session, choice);
    if (!pool)
        return pool.error();
    const auto [hosts, places] = hostsOf(pool->gates);
    std::vector<Answer> answers(pool->gates.size());
    forEach(answers.size(), [&, &hosts = hosts, &places = places](std::size_t i) {
        answers[i] = glanceAt(pool->gates[i], hosts[places[i]].load);
    });
    json list = json::array();
    TextTable table({{"GATE"}, {"KIND"}, {"WHERE"}, {"DEVICES"}, {"LOAD"}});
    bool allWell = true;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const gate::GateSpec &spec = pool->gates[i];
        list.push_back(gateJson(spec, answers[i]));
        allWell = allWell && answers[i].devices.has_value();
        std::string platforms;
        for (const std::string &platform : spec.platforms)
            platforms += (platforms.empty() ? "" : ", ") + platform;
        const bool queued = spec.isQueued && answers[i].devices;
        table.addRow(
            {gateName(spec), gateKind(spec), spec.where,
             queued ? (platforms.empty() ? "said when a job runs" : platforms) : gateDevices(answers[i]),
             answers[i].load});
    }
    if (session.json())
        session.print({{"pool", pool->file.empty() ? json() : json(pool->file.string())}, {"gates", list}});
    else
        std::printf("%s", table.text().c_str());
    return allWell ? exitOk : exitNegative;
}

int checkGates(const Session &session, const PoolChoice &choice, const std::string &only)
{
    auto pool = poolOf(session, choice);
    if (!pool)
        return pool.error();
    std::vector<std::string> names;
    for (const gate::GateSpec &spec : pool->gates)
        names.push_back(spec.name);
    if (!only.empty())
        std::erase_if(pool->gates, [&](const gate::GateSpec &spec) { return spec.name != only; });
    if (pool->gates.empty())
        return session.unknownName("gate", only, names);
    const InterruptWatcher interrupts;
    std::mutex telling;
    std::vector<Answer> answers(pool->gates.size());
    forEach(answers.size(), [&](std::size_t i) {
        const gate::GateSpec &spec = pool->gates[i];
        gate::GateClient client(spec);
        answers[i].devices = client.start(true, interrupts.token(), [&](const std::string &stand) {
            const std::scoped_lock lock(telling);
            if (!session.json())
                std::fprintf(stderr, "%s: %s\n", gateName(spec).c_str(), stand.c_str());
        });
        const std::scoped_lock lock(telling);
        if (session.json())
            return;
        std::printf("%s: %s%s\n", gateName(spec).c_str(), answers[i].devices ? "ok, " : "",
                    gateDevices(answers[i]).c_str());
        if (!answers[i].devices && !answers[i].devices.error().error.detail.empty())
            std::printf("%s\n", answers[i].devices.error().error.detail.c_str());
        std::fflush(stdout);
    });
    json list = json::array();
    bool allWell = true;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        list.push_back(gateJson(pool->gates[i], answers[i]));
        allWell = allWell && answers[i].devices.has_value();
    }
    if (session.json())
        session.print({{"pool", pool->file.empty() ? json() : json(pool->file.string())}, {"gates", list}});
    return allWell ? exitOk : exitNegative;
}

struct BatchChoice {
    PoolChoice pool;
    gate::PoolBatch batch;
    int jobs = 0;
};

int batchOverPool(const Session &session, const BatchChoice &choice)
{
    const auto pool = openPool(session, choice.pool);
    if (!pool)
        return pool.error();
    const InterruptWatcher interrupts;
    gate::PoolBatch batch = choice.batch;
    // Twice as many are asked for as there are gates: when one is through, its next trial waits already.
    batch.jobs = choice.jobs > 0 ? choice.jobs : 2 * jobsOf(0, **pool);
    const auto summary = gate::runPoolBatch(batch, **pool, interrupts.token(), [&](const std::string &line) {
        std::fprintf(stderr, "%s\n", line.c_str());
    });
    if (!summary) {
        const ErrorCode code = summary.error().code;
        return code == ErrorCode::InvalidInput || code == ErrorCode::NotFound
                   ? session.usage(summary.error().message)
                   : session.fail(summary.error());
    }
    const gate::PoolState state = (*pool)->state();
    json gates = json::array();
    using Align = TextTable::Align;
    TextTable table({{"GATE"}, {"TRIALS", Align::Right}, {"LOST", Align::Right}, {"BUSY", Align::Right}});
    for (const gate::GateState &gate : state.gates) {
        gates.push_back({{"name", gateName(gate.spec)},
                         {"trials", gate.trials},
                         {"losses", gate.losses},
                         {"busy_seconds", gate.busySeconds},
                         {"up_seconds", gate.upSeconds}});
        table.addRow(
            {gateName(gate.spec), std::to_string(gate.trials), std::to_string(gate.losses),
             gate.upSeconds > 0 ? fixedText(100 * gate.busySeconds / gate.upSeconds, 1) + " %" : "–"});
    }
    if (session.json())
        session.print({{"done", summary->done},
                       {"skipped", summary->skipped},
                       {"failed", summary->failed},
                       {"left", summary->left},
                       {"seconds", summary->seconds},
                       {"gates", gates}});
    else
        std::printf("%s%d done, %d skipped, %d failed, %d left, %s s\n", table.text().c_str(), summary->done,
                    summary->skipped, summary->failed, summary->left, fixedText(summary->seconds, 1).c_str());
    if (summary->failed > 0)
        return exitEnvironment;
    return summary->left > 0 ? exitNegative : exitOk;
}

const char *const poolFooter =
    "Gates are named in pool.toml: that of the workspace, else ~/.config/klineage/pool.toml; core/pool/README.md has its keys. What asks\n"
    "for trials (gate run, gate tune, run, experiment, lineage deoptimize, card admit, mcp, the window) asks these gates.";

const char *const poolStatusFooter =
    "A machine is asked for its load, Slurm for its jobs, once for all their gates; what a gate through Slurm has is said when a job runs.\n"
    "Exit status: 0 all gates answered, 1 some did not, 2 pool.toml cannot be read.";
const char *const poolCheckFooter =
    "Starts every gate as a trial would, one that waits in a queue for as long as that takes (Ctrl+C ends it).\n"
    "Exit status: 0 all gates are well, 1 some are not, 2 pool.toml cannot be read.";
const char *const poolDeployFooter =
    "The gate goes to ~/.local/share/klineage/gate of HOST, where gates without `program` in pool.toml are found, in one step: gates that run\n"
    "there go on with their files. A libklineage-cub.so beside the program goes with it. --with-cuda brings NVRTC, CUPTI, the headers and,\n"
    "where the toolkit has them, nvdisasm or cuobjdump; the gate is then started with CUDA_PATH and LD_LIBRARY_PATH that find them. The\n"
    "driver is the host's. Prints the devices there and an entry for pool.toml.\n"
    "Exit status: 0 it is there and answers, 2 there is nothing to bring, 3 the host or the gate there says no.";
const char *const poolBatchFooter =
    "IN is what `lineage jobs` prints and `klineage-gate batch` takes. Lines of OUT come as trials end; run again, it goes on.\n"
    "Exit status: 0 all done, 1 some were left, 2 IN or pool.toml cannot be read, 3 there were errors.";

} // namespace

void addPoolCommands(CLI::App &app, Session &session)
{
    CLI::App *group =
        Session::addGroup(app, "pool", "The gates that trials go to: here, over ssh, through Slurm");
    group->footer(poolFooter);

    const auto choice = std::make_shared<PoolChoice>();
    CLI::App *verb = session.addVerb(*group, "status", "Each gate with its devices and load; starts no job",
                                     [&session, choice] { return showPoolStatus(session, *choice); });
    verb->footer(poolStatusFooter);
    addPoolOptions(*verb, *choice);

    const auto only = std::make_shared<std::string>();
    verb =
        session.addVerb(*group, "check", "Start each gate, jobs of Slurm too, and say what is wrong with it",
                        [&session, choice, only] { return checkGates(session, *choice, *only); });
    verb->footer(poolCheckFooter);
    addPoolOptions(*verb, *choice);
    verb->add_option("--gate", *only, "Only this one");

    const auto deploy = std::make_shared<DeployOptions>();
    verb = session.addVerb(*group, "deploy", "Bring klineage-gate to a host over ssh",
                           [&session, deploy] { return deployGate(session, *deploy); });
    verb->footer(poolDeployFooter);
    verb->add_option("host", deploy->host, "As ssh takes it")->required();
    verb->add_option("--program", deploy->program,
                     "The gate to bring, as built by the preset gpu-static (default: this machine's)");
    CLI::Option *withCuda = verb->add_flag(
        "--with-cuda", deploy->withCuda, "Bring NVRTC, CUPTI and headers too, for a host without a toolkit");
    verb->add_option("--toolkit", deploy->toolkit,
                     "The CUDA toolkit that they are of (default: CUDA_PATH, CUDA_HOME, /usr/local/cuda)")
        ->needs(withCuda);
    verb->add_option("--ssh-option", deploy->sshOptions, "A word for ssh, as in -p (repeatable)")
        ->allow_extra_args(false);

    const auto batch = std::make_shared<BatchChoice>();
    verb = session.addVerb(*group, "batch", "Gate every line of a file over all gates, resumable",
                           [&session, batch] { return batchOverPool(session, *batch); });
    verb->footer(poolBatchFooter);
    verb->add_option("IN", batch->batch.in, "Lines of JSON: what to gate")->required();
    verb->add_option("--out", batch->batch.out, "Lines of JSON: the trials")->required();
    verb->add_option("--jobs", batch->jobs, "Trials that are asked for at a time (default: two a gate)")
        ->check(CLI::Range(1, 4096));
    gate::GateRequest &defaults = batch->batch.defaults;
    verb->add_option("--profile-seconds", defaults.profileSeconds, "Longest timing of one trial");
    verb->add_option("--seeds", defaults.seeds, "Seeds of the timed case")
        ->check(CLI::Range(1, gate::mostSeeds));
    addPoolOptions(*verb, batch->pool);
    addPlaceOptions(*verb, defaults.place);
}

} // namespace klineage::cli
