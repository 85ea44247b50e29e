// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/pooldeploy.h"

#include "core/files/tomlwriter.h"
#include "core/pool/gateclient.h"
#include "core/pool/poolfile.h"
#include "core/process/childprocess.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr double deployLimitSeconds = 600;

Result<std::string> runCommand(const std::vector<std::string> &command, const gate::GateSpec &spec,
                               double limitSeconds)
{
    process::ChildOptions options;
    options.command = command;
    auto child = process::ChildProcess::start(options);
    if (!child)
        return tl::unexpected(child.error());
    const auto status = child->wait(process::Deadline::in(limitSeconds));
    if (!status)
        return fail(ErrorCode::Timeout, spec.where + " did not answer within "
                                            + std::to_string(static_cast<int>(limitSeconds)) + " seconds.");
    if (!status->ok())
        return tl::unexpected(
            gate::explainEnd(spec, status->exitCode, status->describe(), child->standardError().text).error);
    return child->standardOutput().text;
}

/// What goes there: its path below the gate's folder -> file or folder here.
using Load = std::map<std::string, fs::path>;

/// A library by the name that it is loaded by, as in libnvrtc-builtins.so.13.0; longer ones are the same file again.
struct ToolkitLibrary {
    const char *stem;
    int numbers;      ///< after the stem
    const char *what; ///< for people; null: it is brought when it is there
};
constexpr ToolkitLibrary toolkitLibraries[] = {
    {"libnvrtc.so", 1, "NVRTC (libnvrtc.so)"},
    {"libnvrtc-builtins.so", 2, "what NVRTC loads (libnvrtc-builtins.so)"},
    {"libcupti.so", 1, "CUPTI (libcupti.so)"},
    {"libnvperf_host.so", 0, nullptr}, // CUPTI loads these
    {"libnvperf_target.so", 0, nullptr},
};
constexpr const char *toolkitPrograms[] = {"nvdisasm", "cuobjdump"}; // either lists a kernel's instructions

/// Wherever toolkits keep libraries. Whether there was one.
bool addLibrary(const fs::path &toolkit, const ToolkitLibrary &library, Load &load)
{
    const auto isLibrary = [&](const std::string &name) {
        const std::string stem = library.stem;
        return name.starts_with(stem)
               && name.find_first_not_of(".0123456789", stem.size()) == std::string::npos
               && std::count(name.begin() + static_cast<std::ptrdiff_t>(stem.size()), name.end(), '.')
                      == library.numbers;
    };
    bool found = false;
    std::error_code ignored;
    for (const char *folder : {"lib64", "lib", "targets/x86_64-linux/lib", "extras/CUPTI/lib64"}) {
        for (const auto &entry : fs::directory_iterator(toolkit / folder, ignored)) {
            const std::string name = entry.path().filename().string();
            if (!isLibrary(name))
                continue;
            load.emplace("cuda/lib64/" + name, entry.path());
            found = true;
        }
    }
    return found;
}

/// Of a toolkit what the gate loads, and the headers that candidates include. NotFound names all that it lacks.
Status addToolkit(const fs::path &toolkit, Load &load)
{
    std::string lacks;
    const auto miss = [&](const std::string &what) { lacks += (lacks.empty() ? "" : ", ") + what; };
    for (const ToolkitLibrary &library : toolkitLibraries) {
        if (!addLibrary(toolkit, library, load) && library.what)
            miss(library.what);
    }
    std::error_code ignored;
    if (fs::exists(toolkit / "include" / "cuda_fp16.h", ignored))
        load.emplace("cuda/include", toolkit / "include");
    else
        miss("headers (include/cuda_fp16.h)");
    for (const char *program : toolkitPrograms) {
        if (fs::is_regular_file(toolkit / "bin" / program, ignored))
            load.emplace(std::string("cuda/bin/") + program, toolkit / "bin" / program);
    }
    if (!lacks.empty())
        return fail(ErrorCode::NotFound, "Cannot bring CUDA from " + toolkit.string() + ": it lacks " + lacks
                                             + ". Name a toolkit that has them with --toolkit.");
    return {};
}

/// --toolkit, else where the gate itself would look here.
fs::path toolkitOf(const DeployOptions &options)
{
    if (!options.toolkit.empty())
        return options.toolkit;
    for (const char *variable : {"CUDA_PATH", "CUDA_HOME"}) {
        if (const char *value = std::getenv(variable); value && *value)
            return value;
    }
    return "/usr/local/cuda";
}

Result<Load> loadOf(const fs::path &program, const DeployOptions &options)
{
    std::error_code ignored;
    Load load{{"klineage-gate", program}};
    const char *const cub = "libklineage-cub.so"; // beside the programs of a build that has it
    if (fs::is_regular_file(program.parent_path() / cub, ignored))
        load.emplace(cub, program.parent_path() / cub);
    if (!options.withCuda)
        return load;
    if (Status added = addToolkit(toolkitOf(options), load); !added)
        return tl::unexpected(added.error());
    return load;
}

/// A shell script that writes a tar of it to its standard output.
std::string packScript(const Load &load)
{
    using gate::shellQuoted;
    std::string script = "set -e; t=$(mktemp -d); trap 'rm -rf \"$t\"' EXIT; ";
    for (const auto &[there, here] : load)
        script += "mkdir -p \"$t\"/" + shellQuoted(fs::path(there).parent_path().string()) + "; ln -s "
                  + shellQuoted(fs::absolute(here).string()) + " \"$t\"/" + shellQuoted(there) + "; ";
    return script + "tar -C \"$t\" -chzf - .";
}

/// Unpacks beside what is there and puts it in its place at once; a gate that runs keeps its files.
std::string unpackScript()
{
    return std::string("set -e; umask 022; d=\"$HOME\"/") + gate::deployedFolder
           + "; mkdir -p \"$d\"; n=$(mktemp -d \"$d.XXXXXX\"); trap 'rm -rf \"$n\"' EXIT; tar -C \"$n\" -xzf -; chmod 755 "
             "\"$n\" \"$n/klineage-gate\"; \"$n/klineage-gate\" --version; mv \"$d\" \"$n.old\"; mv \"$n\" \"$d\"; "
             "rm -rf \"$n.old\"";
}

gate::GateSpec specOf(const DeployOptions &options)
{
    files::TomlWriter writer;
    writer.beginArrayTable("gate");
    writer.string("name", "deployed");
    writer.string("ssh", options.host);
    writer.optionalStrings("ssh_options", options.sshOptions);
    const auto pool = gate::parsePoolFile(writer.text(), "--ssh-option");
    return pool ? pool->gates.front() : gate::GateSpec{};
}

std::string entryFor(const DeployOptions &options)
{
    files::TomlWriter writer;
    writer.beginArrayTable("gate");
    writer.string("name", options.host.substr(options.host.find('@') + 1));
    writer.string("ssh", options.host);
    writer.optionalStrings("ssh_options", options.sshOptions);
    return writer.text();
}

} // namespace

Result<std::string> runThere(const gate::GateSpec &spec, const std::string &script, double limitSeconds)
{
    return runCommand(gate::scriptOf(spec, script), spec, limitSeconds);
}

int deployGate(const Session &session, const DeployOptions &options)
{
    const gate::GateSpec spec = specOf(options);
    if (spec.shell.empty())
        return session.usage("'" + options.host + "' is no host as ssh takes it.");
    fs::path program = options.program;
    if (program.empty()) {
        const Result<fs::path> own = gate::findGateProgram();
        if (!own)
            return session.fail(own.error());
        program = *own;
    }
    std::error_code ignored;
    if (!fs::is_regular_file(program, ignored))
        return session.usage("There is no program " + program.string() + '.');
    const Result<Load> load = loadOf(program, options);
    if (!load)
        return session.usage(load.error().message);
    std::string pipeline = "( " + packScript(*load) + " ) |";
    for (const std::string &word : gate::scriptOf(spec, unpackScript()))
        pipeline += ' ' + gate::shellQuoted(word);
    std::fprintf(stderr, "Bringing %s to %s:~/%s ...\n", program.c_str(), options.host.c_str(),
                 gate::deployedFolder);
    const Result<std::string> version = runCommand({"/bin/sh", "-c", pipeline}, spec, deployLimitSeconds);
    if (!version)
        return session.fail(version.error());
    const auto devices = gate::queryDevices(spec);
    if (!devices)
        return session.fail(devices.error().error);
    if (session.json()) {
        json list = json::array();
        for (const gate::DeviceInfo &device : *devices)
            list.push_back({{"backend", kernel::toString(device.kind)},
                            {"available", device.available},
                            {"name", device.name},
                            {"platform", device.platform},
                            {"detail", device.detail}});
        json files = json::array();
        for (const auto &[there, here] : *load)
            files.push_back(there);
        session.print(
            {{"host", options.host}, {"files", files}, {"devices", list}, {"entry", entryFor(options)}});
        return exitOk;
    }
    for (const gate::DeviceInfo &device : *devices)
        std::printf("%s: %s\n", kernel::toString(device.kind),
                    (device.available ? device.name + ", " + device.detail : device.detail).c_str());
    std::printf("An entry of pool.toml for it:\n%s", entryFor(options).c_str());
    return exitOk;
}

} // namespace klineage::cli
