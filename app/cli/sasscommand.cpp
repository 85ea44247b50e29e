// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"

#include "core/files/atomicfile.h"
#include "core/gate/counters/sass.h"
#include "core/gate/session/compilersession.h"
#include "core/gate/triton/launches.h"
#include "core/pool/gateclient.h"
#include "core/run/subject.h"
#include "core/trial/listing.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;

namespace {

constexpr double limitSeconds = 60;

struct SassOptions {
    std::string file;
    std::string target = "sm_90a";
    bool ptx = false;
};

int failed(const Session &session, const gate::WorkerFailure &failure)
{
    return session.fail(failure.error);
}

int printPtx(const Session &session, const gate::CompileOutput &compiled)
{
    const std::string text(reinterpret_cast<const char *>(compiled.binary.data()), compiled.binary.size());
    if (session.json())
        session.print({{"compiler", compiled.compiler}, {"ptx", text}});
    else
        std::printf("%s", text.c_str());
    return exitOk;
}

std::string lineText(int line)
{
    return line > 0 ? std::to_string(line) : std::string();
}

void printKernelName(std::string &last, const std::string &kernel)
{
    if (kernel != last)
        std::printf("%s%s:\n", last.empty() ? "" : "\n", kernel.c_str());
    last = kernel;
}

/// What a recorded state's trial kept, with the samples of its run.
int printKept(const Session &session, const gate::Trial &trial, const gate::Listing &listing)
{
    json out = {{"trial", trial.id}, {"compiler", listing.compiler}, {"instructions", json::array()}};
    std::string kernel;
    for (const gate::ListedInstruction &one : listing.instructions) {
        if (session.json()) {
            out["instructions"].push_back({{"kernel", one.kernel},
                                           {"offset", one.offset},
                                           {"line", one.line},
                                           {"samples", one.samples},
                                           {"stalls", one.stalls},
                                           {"text", one.text}});
            continue;
        }
        printKernelName(kernel, one.kernel);
        const auto most = std::max_element(one.stalls.begin(), one.stalls.end(),
                                           [](const auto &a, const auto &b) { return a.second < b.second; });
        std::printf("%6s  %6s  %-18s  %04llx  %s\n", lineText(one.line).c_str(),
                    one.samples > 0 ? std::to_string(one.samples).c_str() : "",
                    most == one.stalls.end() ? "" : most->first.c_str(),
                    static_cast<unsigned long long>(one.offset), one.text.c_str());
    }
    if (session.json())
        session.print(out);
    return exitOk;
}

int showState(const Session &session, const run::StateName &name)
{
    const auto workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    std::vector<std::string> states;
    for (const lineage::Lineage &lineage : workspace->lineages) {
        for (const lineage::State &state : lineage.states) {
            const std::string key = lineage.key() + '/' + state.id;
            states.push_back(key);
            if (key != name.lineage() + '/' + name.state)
                continue;
            const gate::Trial *trial = lineage.findTrial(state.trial);
            if (!trial || trial->listing.empty())
                return session.fail(
                    {ErrorCode::NotFound,
                     "The trial of " + key + " kept no machine code: it was recorded without counters.",
                     "Name its file to compile it here: klineage-cli sass "
                         + (lineage.directory / state.file).string()});
            const auto listing = gate::readListing(lineage.directory, trial->listing);
            return listing ? printKept(session, *trial, *listing) : session.fail(listing.error());
        }
    }
    return session.unknownName("state", name.lineage() + '/' + name.state, states);
}

int printSass(const Session &session, const gate::CompileOutput &compiled, const std::string &file)
{
    const auto lines = gate::counters::disassemble(compiled.binary, file, limitSeconds);
    if (!lines)
        return session.fail(lines.error());
    json out = {{"compiler", compiled.compiler}, {"instructions", json::array()}};
    std::string kernel;
    for (const gate::counters::SassLine &line : *lines) {
        if (session.json()) {
            out["instructions"].push_back(
                {{"kernel", line.kernel}, {"offset", line.offset}, {"line", line.line}, {"text", line.text}});
            continue;
        }
        printKernelName(kernel, line.kernel);
        std::printf("%6s  %04llx  %s\n", lineText(line.line).c_str(),
                    static_cast<unsigned long long>(line.offset), line.text.c_str());
    }
    if (session.json())
        session.print(out);
    return exitOk;
}

/// Compiles in the gate's compiler process: the source is not to be trusted here either.
int show(const Session &session, const SassOptions &options)
{
    std::error_code ignored;
    const auto state = run::stateNameOf(options.file);
    if (state && !state->state.empty() && !std::filesystem::exists(options.file, ignored)) {
        if (options.ptx)
            return session.usage("--ptx compiles a file; what a trial kept of " + options.file + " is SASS.");
        return showState(session, *state);
    }
    const auto candidate = kernel::readCandidate(options.file);
    if (!candidate)
        return candidate.error().code == ErrorCode::Io ? session.fail(candidate.error())
                                                       : session.usage(candidate.error().message);
    if (const auto &device = candidate->surface.device(); !device.disassembles)
        return session.usage(options.file + " is written for " + device.name
                             + "; there is SASS of CUDA candidates only.");
    if (options.target.rfind("sm_", 0) != 0)
        return session.usage("'" + options.target + "' is no target; expected one such as sm_90a.");
    if (!options.ptx) {
        if (const auto tool = gate::counters::findDisassembler(); !tool)
            return session.fail(tool.error());
    }
    const Result<std::filesystem::path> program = gate::findGateProgram();
    if (!program)
        return session.fail(program.error());
    std::map<std::string, std::int64_t> tunables;
    for (const kernel::Tunable &tunable : candidate->tunables)
        tunables[tunable.name] = tunable.defaultValue;
    const std::string name = std::filesystem::path(options.file).filename().string();
    const std::string target = options.ptx ? "compute_" + options.target.substr(3) : options.target;
    const auto launches = gate::describeLaunchesOf(*candidate, options.file, tunables);
    if (!launches)
        return session.fail(launches.error());
    gate::CompilerSession compiler({program->string(), "compile"}, gate::CompileCache({}));
    const auto compiled = compiler.compile(
        {kernel::toString(candidate->surface), candidate->source, name, tunables, target, *launches},
        limitSeconds, {});
    if (!compiled)
        return failed(session, compiled.error());
    if (!compiled->ok) {
        session.fail({ErrorCode::InvalidInput, "Cannot compile " + name + ".", compiled->log});
        return exitNegative;
    }
    return options.ptx ? printPtx(session, *compiled) : printSass(session, *compiled, name);
}

} // namespace

void addSassCommand(CLI::App &app, Session &session)
{
    const auto options = std::make_shared<SassOptions>();
    CLI::App *verb =
        session.addVerb(app, "sass", "Show the machine code of a CUDA candidate, with source lines",
                        [&session, options] { return show(session, *options); });
    verb->footer(
        "Of a state whose trial kept its machine code, with the samples of its run: how many found warps there, and the most "
        "frequent reason why they waited. A file is compiled here: that needs nvdisasm or cuobjdump of the CUDA "
        "Toolkit; --ptx needs neither. No device is needed.");
    verb->add_option("file", options->file, "WORKLOAD/LINEAGE/STATE, or a candidate file")->required();
    verb->add_option("--target", options->target, "Architecture to compile for")->capture_default_str();
    verb->add_flag("--ptx", options->ptx, "Show PTX instead");
}

} // namespace klineage::cli
