// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"

#include "core/files/atomicfile.h"
#include "core/gate/counters/sass.h"
#include "core/gate/session/compilersession.h"
#include "core/pool/gateclient.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

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
        if (line.kernel != kernel)
            std::printf("%s%s:\n", kernel.empty() ? "" : "\n", line.kernel.c_str());
        kernel = line.kernel;
        const std::string number = line.line > 0 ? std::to_string(line.line) : std::string();
        std::printf("%6s  %04llx  %s\n", number.c_str(), static_cast<unsigned long long>(line.offset),
                    line.text.c_str());
    }
    if (session.json())
        session.print(out);
    return exitOk;
}

/// Compiles in the gate's compiler process: the source is not to be trusted here either.
int show(const Session &session, const SassOptions &options)
{
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
    gate::CompilerSession compiler({program->string(), "compile"}, gate::CompileCache({}));
    const auto compiled = compiler.compile(
        {kernel::toString(candidate->surface), candidate->source, name, tunables, target}, limitSeconds, {});
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
        "Needs nvdisasm or cuobjdump of the CUDA Toolkit; --ptx needs neither. No device is needed.");
    verb->add_option("file", options->file, "Candidate file")->required();
    verb->add_option("--target", options->target, "Architecture to compile for")->capture_default_str();
    verb->add_flag("--ptx", options->ptx, "Show PTX instead");
}

} // namespace klineage::cli
