// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/texttable.h"
#include "app/version/version.h"

#include "core/gate/references/installed.h"
#include "core/gate/session/interpreter.h"
#include "core/gate/session/sandbox.h"
#include "core/gate/triton/tilelangcompiler.h"
#include "core/gate/triton/tritoncompiler.h"
#include "core/llm/curlprobe.h"
#include "core/llm/network/secrets.h"
#include "core/llm/prices.h"
#include "core/pool/gateclient.h"
#include "core/process/childprocess.h"
#include "core/process/isolation.h"
#include "core/trial/analysis/ceilingstore.h"
#include "core/trial/analysis/figuretext.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <dlfcn.h>

namespace klineage::cli {

using nlohmann::json;

namespace {

namespace fs = std::filesystem;

constexpr double interpreterSeconds = 20;

enum class Health { Ok, Missing, Problem };

/// One line of the report. Missing things are no failure: the text says what goes without them.
struct Check {
    std::string name;
    Health health = Health::Ok;
    std::string text;   ///< what was found, a sentence
    std::string advice; ///< what to do; empty when there is nothing
};

const char *toString(Health health)
{
    switch (health) {
    case Health::Ok:
        return "ok";
    case Health::Missing:
        return "missing";
    case Health::Problem:
        return "problem";
    }
    return "problem";
}

Check checkProgram()
{
    return {"klineage",
            Health::Ok,
            std::string("Version ") + versionText() + ", C++ compiler " + __VERSION__ + '.',
            {}};
}

Check checkCudaHeaders()
{
#if KLINEAGE_HAVE_CUDA
    return {"cuda build", Health::Ok, "The CUDA backend was built in.", {}};
#else
    return {"cuda build", Health::Missing, "The CUDA backend was not built: there were no CUDA headers.",
            "Install the CUDA toolkit, set CUDA_PATH, and build again. OpenCL works without it."};
#endif
}

Check checkNvidiaDriver()
{
    // Read, not loaded: loading a driver here could hang this process, and the gate does it in one of its own.
    std::ifstream file("/proc/driver/nvidia/version");
    std::string line;
    if (std::getline(file, line) && !line.empty())
        return {"nvidia driver", Health::Ok, line + '.', {}};
    return {
        "nvidia driver", Health::Missing, "There is no NVIDIA driver, so CUDA candidates cannot run here.",
        "They can still be read and compiled. To gate them, use a machine with a GPU: klineage-gate batch, or --launcher ssh."};
}

Check checkNvrtc()
{
    std::vector<fs::path> candidates{"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
    std::vector<fs::path> roots{"/usr/local/cuda"};
    if (const char *root = std::getenv("CUDA_PATH"); root && *root)
        roots.insert(roots.begin(), root);
    for (const fs::path &root : roots) {
        candidates.push_back(root / "lib64" / "libnvrtc.so");
        candidates.push_back(root / "lib" / "libnvrtc.so");
        candidates.push_back(root / "targets/x86_64-linux/lib/libnvrtc.so");
    }
    for (const fs::path &candidate : candidates) {
        void *library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        int major = 0;
        int minor = 0;
        const auto version = reinterpret_cast<int (*)(int *, int *)>(::dlsym(library, "nvrtcVersion"));
        if (version && version(&major, &minor) == 0)
            return {"nvrtc",
                    Health::Ok,
                    fmt::format("NVRTC {}.{} compiles CUDA candidates, with or without a GPU.", major, minor),
                    {}};
    }
    return {"nvrtc", Health::Missing, "NVRTC was not found, so CUDA candidates cannot be compiled here.",
            "Install the CUDA toolkit (or its package cuda-nvrtc) or set CUDA_PATH."};
}

/// A language that is a package of Python's.
template <typename Compiler>
Check checkLanguage(const kernel::Language &language)
{
    const auto versions = Compiler().versions({});
    if (versions)
        return {language.word,
                Health::Ok,
                versions->text() + ": " + language.name + " candidates compile, with or without a GPU.",
                {}};
    return {language.word, Health::Missing, versions.error().error.message, {}};
}

/// What definitions and references in Python need.
Check checkNumpy()
{
    const std::string python = gate::pythonInterpreter();
    process::ChildOptions options;
    options.command = {python, "-B", "-c",
                       "import sys, numpy; print(f'{numpy.__version__}, Python {sys.version.split()[0]}')"};
    if (auto child = process::ChildProcess::start(options)) {
        const auto status = child->wait(process::Deadline::in(interpreterSeconds));
        if (status && status->ok())
            return {"numpy",
                    Health::Ok,
                    fmt::format("numpy {}: operators can be defined over its arrays.",
                                gate::lastLine(child->standardOutput().text)),
                    {}};
    }
    return {"numpy", Health::Missing,
            "'" + python + "' has no numpy, so definitions over numpy arrays cannot be run.",
            "Install Debian's python3-numpy, or let KLINEAGE_PYTHON name a Python that has it."};
}

/// The gate answers for drivers, in its own process.
std::vector<Check> checkDevices()
{
    const Result<fs::path> program = gate::findGateProgram();
    if (!program)
        return {{"gate", Health::Problem, program.error().message, program.error().detail}};
    std::vector<Check> checks{{"gate", Health::Ok, "The gate is " + program->string() + '.', {}}};
    const Result<std::vector<gate::DeviceInfo>> devices = gate::queryDevices(*program);
    if (!devices) {
        checks.push_back({"devices", Health::Problem, devices.error().message, devices.error().detail});
        return checks;
    }
    bool anyAvailable = false;
    for (const gate::DeviceInfo &device : *devices) {
        const std::string name = std::string(kernel::toString(device.kind)) + " device";
        anyAvailable = anyAvailable || device.available;
        if (device.available)
            checks.push_back({name, Health::Ok, device.name + ": " + device.detail, {}});
        else
            checks.push_back({name, Health::Missing, "There is none: " + device.detail, {}});
    }
    if (!anyAvailable)
        checks.push_back({"devices", Health::Problem,
                          "The gate has no device at all, so nothing can be gated here.",
                          "Install pocl-opencl-icd to run OpenCL candidates on the CPU."});
    return checks;
}

std::vector<Check> checkReferences()
{
    std::vector<Check> checks;
    for (const gate::InstalledReference &reference : gate::installedReferences()) {
        const std::string name = "reference " + reference.provider;
        if (reference.version.empty())
            checks.push_back({name, Health::Missing, reference.problem, {}});
        else
            checks.push_back({name, Health::Ok, "Version " + reference.version + '.', {}});
    }
    return checks;
}

/// Ceilings of this machine and of others that share the cache folder.
std::vector<Check> checkCeilings()
{
    const fs::path cache = gate::cacheDirectory();
    const std::vector<gate::Ceilings> kept =
        cache.empty() ? std::vector<gate::Ceilings>() : gate::CeilingStore(cache / "roofline").all();
    if (kept.empty())
        return {{"ceilings", Health::Missing,
                 "No device was measured yet, so nothing is known of what it can do.",
                 "The first trial measures its device; klineage-gate roofline does so now."}};
    std::vector<Check> checks;
    for (const gate::Ceilings &ceilings : kept) {
        const auto device = ceilings.fingerprint.find("device");
        std::string text = device == ceilings.fingerprint.end() ? "A device" : device->second;
        text += ", measured " + ceilings.time + ':';
        for (const gate::BandwidthCeiling &b : ceilings.bandwidths)
            text += " copy " + gate::formatScaled(b.copy, "B/s") + " over "
                    + gate::formatScaled(b.footprintBytes, "B") + ';';
        for (const gate::RateCeiling &rate : ceilings.rates)
            text += ' ' + rate.name + ' ' + gate::formatScaled(rate.perSecond, "FLOP/s") + ';';
        text.back() = '.';
        checks.push_back({"ceilings", Health::Ok, text, {}});
    }
    return checks;
}

Check checkCurl()
{
    const llm::CurlFacts facts = llm::probeCurl();
    if (!facts.isThere)
        return {"libcurl", Health::Missing,
                "libcurl is missing, or was when this was built, so language models cannot be reached.",
                "Install libcurl4-openssl-dev and build again."};
    if (!facts.https)
        return {"libcurl", Health::Problem,
                "libcurl " + facts.version + " has no https, so most language models cannot be reached.",
                "Install a libcurl with TLS."};
    return {"libcurl", Health::Ok, "libcurl " + facts.version + " with " + facts.tls + '.', {}};
}

/// Whether there is a key, never which.
std::vector<Check> checkKeys()
{
    std::vector<Check> checks;
    for (const char *provider : {"anthropic", "openai"}) {
        const std::string variable = llm::keyVariable(provider, false);
        const Result<std::string> key = llm::findKey(provider, false, {});
        const std::string name = std::string(provider) + " key";
        if (!key)
            checks.push_back({name, Health::Problem, key.error().message, key.error().detail});
        else if (key->empty())
            checks.push_back({name, Health::Missing, variable + " is not set.",
                              "Set it to ask the models of '" + std::string(provider) + "'."});
        else
            checks.push_back({name, Health::Ok, variable + " is set.", {}});
    }
    return checks;
}

Check checkPrices(const Session &session)
{
    const Result<llm::PriceTable> table = llm::loadPrices(session.workspaceRoot().value_or(fs::path()));
    if (!table)
        return {"prices", Health::Problem, table.error().message, table.error().detail};
    return {"prices",
            Health::Ok,
            fmt::format("Prices of {} models, of {}, from {}: {}.", table->prices.size(), table->date,
                        table->file, table->source),
            {}};
}

Check checkIsolation()
{
    const process::IsolationSupport &support = process::isolationSupport();
    const std::string means = process::describe(support);
    if (support.landlockAbi > 0 && support.seccomp)
        return {
            "isolation", Health::Ok, "The kernel confines the gate's compiler and worker: " + means + ".",
            support.landlockAbi == 1
                ? "This Landlock is too old for OpenCL on the CPU, whose files are not confined. Linux 5.19 or later does that."
                : ""};
    return {
        "isolation", Health::Missing,
        "The kernel confines the gate's compiler and worker only in part: " + means + ".",
        "Gate only candidates that you trust, or use Linux 5.19 or later with Landlock and seccomp; a container has to allow "
        "landlock_create_ruleset, landlock_add_rule and landlock_restrict_self."};
}

std::vector<Check> checkWorkspace(const Session &session)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return {{"workspace", Health::Problem, workspace.error().message, workspace.error().detail}};
    std::vector<Check> checks{
        {"workspace",
         Health::Ok,
         fmt::format("{} holds {} workloads, {} lineages and {} cards.", workspace->root.string(),
                     workspace->workloads.size(), workspace->lineages.size(), workspace->cards.size()),
         {}}};
    for (const Error &problem : workspace->problems)
        checks.push_back({"workspace", Health::Problem, problem.message, problem.detail});
    for (const lineage::Lineage &lineage : workspace->lineages) {
        if (!lineage.notices.empty())
            checks.push_back({lineage.key(), Health::Problem, lineage.notices.front(),
                              "klineage-cli lineage verify " + lineage.key() + " says everything about it."});
    }
    for (const skills::CardRecord &record : workspace->cards) {
        if (!record.notices.empty())
            checks.push_back({record.card.name, Health::Problem, record.notices.front(),
                              "klineage-cli card lint " + record.card.name + " says everything about it."});
    }
    return checks;
}

int doctor(const Session &session)
{
    std::vector<Check> checks{checkProgram()};
    const auto add = [&](std::vector<Check> more) { checks.insert(checks.end(), more.begin(), more.end()); };
    add(checkDevices());
    add(checkCeilings());
    add({checkCudaHeaders(), checkNvidiaDriver(), checkNvrtc(),
         checkLanguage<gate::TritonCompiler>(kernel::Surface::Triton.language()),
         checkLanguage<gate::TilelangCompiler>(kernel::Surface::Tilelang.language()), checkNumpy(),
         checkCurl(), checkIsolation()});
    add(checkKeys());
    add({checkPrices(session)});
    add(checkReferences());
    add(checkWorkspace(session));

    bool ok = true;
    json out{{"version", KLINEAGE_VERSION}, {"checks", json::array()}};
    for (const Check &check : checks) {
        ok = ok && check.health != Health::Problem;
        out["checks"].push_back({{"name", check.name},
                                 {"status", toString(check.health)},
                                 {"text", check.text},
                                 {"advice", check.advice}});
        if (session.json())
            continue;
        std::printf("%-8s %s: %s\n", toString(check.health), check.name.c_str(), check.text.c_str());
        if (!check.advice.empty())
            std::printf("         %s\n", check.advice.c_str());
    }
    out["ok"] = ok;
    if (session.json())
        session.print(out);
    return ok ? exitOk : exitEnvironment;
}

} // namespace

void addDoctor(CLI::App &app, Session &session)
{
    session.addVerb(app, "doctor", "What this machine has, what is missing, and what to do about it",
                    [&session] { return doctor(session); });
}

} // namespace klineage::cli
