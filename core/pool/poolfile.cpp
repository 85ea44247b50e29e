// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/poolfile.h"

#include "core/files/atomicfile.h"
#include "core/files/tomlentries.h"
#include "core/files/tomlreader.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

namespace klineage::gate {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t mostGates = 1024;
constexpr std::int64_t mostCopies = 256;
constexpr double longestSeconds = 1e7;
constexpr double remoteSilentSeconds = 60;
constexpr double queuedIdleSeconds = 300;

enum class Slurm { No, Srun, Salloc };

/// ssh asks nothing and gives up in time; options of the person come first, because ssh takes the first of each.
std::vector<std::string> sshWords(const std::string &host, const std::vector<std::string> &options)
{
    std::vector<std::string> words = {"ssh"};
    words.insert(words.end(), options.begin(), options.end());
    for (const char *word : {"-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o",
                             "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3", "--"})
        words.emplace_back(word);
    words.push_back(host);
    return words;
}

double seconds(const files::TomlTable &table, const char *key, double absent)
{
    const double value = table.number(key, absent);
    if (value < 0 || value > longestSeconds)
        table.fail(key, "expected seconds, from 0 to 10000000.");
    return value;
}

std::string wordOf(const files::TomlTable &table, const char *key)
{
    const std::string value = table.string(key, std::string());
    if (value.starts_with('-') || std::any_of(value.begin(), value.end(), [](unsigned char c) {
            return std::iscntrl(c) != 0 || std::isspace(c) != 0;
        }))
        table.fail(key, "expected one word that does not begin with '-'.");
    return value;
}

void readEnvironment(const files::TomlTable &table, GateSpec &spec)
{
    for (const auto &[name, value] : table.stringMap("environment")) {
        const bool isName = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0
                            && std::all_of(name.begin(), name.end(),
                                           [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
        if (!isName)
            table.fail("environment", "'" + name + "' is no name of a variable.");
        spec.environment.emplace_back(name, value);
    }
}

/// srun runs the gate as a job step; salloc gets the node first and runs srun in it.
void readSlurm(const files::TomlTable &table, Slurm slurm, GateSpec &spec)
{
    const std::string partition = wordOf(table, "partition");
    const std::string constraint = table.string("constraint", std::string());
    const std::vector<std::string> options = table.strings("options");
    if (slurm == Slurm::No) {
        for (const char *key : {"partition", "constraint", "options"}) {
            if (table.has(key))
                table.fail(key, "needs slurm = \"srun\" or \"salloc\" beside it.");
        }
        return;
    }
    spec.isQueued = true;
    spec.where = (spec.where.empty() ? "" : spec.where + ", ") + "Slurm"
                 + (partition.empty() ? "" : ", partition " + partition);
    std::vector<std::string> &words = spec.launcher;
    words = {slurm == Slurm::Srun ? "srun" : "salloc", "--job-name=klineage-gate", "--ntasks=1"};
    if (!partition.empty())
        words.push_back("--partition=" + partition);
    if (!constraint.empty())
        words.push_back("--constraint=" + constraint);
    words.insert(words.end(), options.begin(), options.end());
    if (slurm == Slurm::Salloc)
        words.insert(words.end(), {"srun", "--ntasks=1"});
}

GateSpec readEntry(const files::TomlTable &table)
{
    static const std::vector<std::pair<std::string, Slurm>> slurmWords = {{"srun", Slurm::Srun},
                                                                          {"salloc", Slurm::Salloc}};
    GateSpec spec;
    spec.name = wordOf(table, "name");
    if (spec.name.empty())
        table.fail("name", "every gate needs a name of its own.");
    spec.program = table.string("program", std::string());
    spec.platforms = table.strings("platforms");
    const std::string host = wordOf(table, "ssh");
    const std::vector<std::string> sshOptions = table.strings("ssh_options");
    const Slurm slurm = table.choice("slurm", slurmWords, Slurm::No);
    if (!host.empty()) {
        spec.shell = sshWords(host, sshOptions);
        spec.where = host;
    } else if (!sshOptions.empty()) {
        table.fail("ssh_options", "needs ssh = \"HOST\" beside it.");
    }
    readSlurm(table, slurm, spec);
    readEnvironment(table, spec);
    if (const std::vector<std::string> command = table.strings("command"); !command.empty()) {
        if (slurm != Slurm::No)
            table.fail("command", "say command or slurm, not both.");
        spec.launcher = command;
        spec.where += (spec.where.empty() ? "" : ", ") + command.front();
    }
    const bool isFar = !host.empty() || spec.isQueued;
    spec.startSeconds = seconds(table, "start_seconds", spec.isQueued ? 0 : 60);
    spec.silentSeconds = seconds(table, "silent_seconds", isFar ? remoteSilentSeconds : 0);
    spec.idleSeconds = seconds(table, "idle_seconds", spec.isQueued ? queuedIdleSeconds : 0);
    return spec;
}

/// One gate for each of `devices`, or `count` of them.
void addGates(const files::TomlTable &table, std::vector<GateSpec> &gates)
{
    const GateSpec spec = readEntry(table);
    const std::vector<std::int64_t> devices = table.integers("devices");
    const std::int64_t count = table.integer("count", 1);
    if (count < 1 || count > mostCopies)
        table.fail("count", "expected 1 to 256.");
    if (table.has("count") && !devices.empty())
        table.fail("count", "say devices or count, not both.");
    if (spec.isQueued && !devices.empty())
        table.fail("devices", "Slurm gives the devices; say count, and --gres in options.");
    const std::size_t copies = devices.empty()
                                   ? static_cast<std::size_t>(std::clamp<std::int64_t>(count, 1, mostCopies))
                                   : devices.size();
    for (std::size_t i = 0; i < copies && gates.size() < mostGates; ++i) {
        GateSpec gate = spec;
        if (!devices.empty()) {
            if (devices[i] < 0 || devices[i] > 255)
                table.fail("devices", "expected indices from 0 to 255.");
            gate.environment.emplace_back("CUDA_VISIBLE_DEVICES", std::to_string(devices[i]));
            // So that an index means the same to CUDA as to nvidia-smi.
            gate.environment.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        }
        if (!devices.empty())
            gate.name += ':' + std::to_string(devices[i]);
        else if (copies > 1)
            gate.name += ':' + std::to_string(i + 1);
        gates.push_back(std::move(gate));
    }
}

} // namespace

BoardOptions PoolFile::options() const
{
    return file.empty() ? BoardOptions{0, 1, 1, false} : BoardOptions{patienceSeconds, 3, 1, true};
}

Result<PoolFile> parsePoolFile(std::string_view text, const std::string &fileName)
{
    const auto document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const files::TomlTable root = document->root();
    PoolFile pool;
    pool.file = fileName;
    pool.text = text;
    pool.patienceSeconds = seconds(root, "patience_seconds", pool.patienceSeconds);
    std::set<std::string> names;
    for (const files::TomlTable &entry : files::tomlEntries(root, "gate", mostGates)) {
        const std::size_t before = pool.gates.size();
        addGates(entry, pool.gates);
        for (std::size_t i = before; i < pool.gates.size(); ++i) {
            if (!names.insert(pool.gates[i].name).second)
                entry.fail("name", "there is another gate of this name.");
        }
    }
    if (pool.gates.empty())
        root.fail(root.position(), "a pool needs at least one [[gate]].");
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return pool;
}

Result<PoolFile> readPoolFile(const fs::path &file)
{
    const Result<std::string> text = files::readFile(file, files::maxTomlBytes);
    if (!text)
        return tl::unexpected(text.error());
    return parsePoolFile(*text, file.string());
}

fs::path ownPoolFile()
{
    fs::path folder;
    if (const char *configuration = std::getenv("XDG_CONFIG_HOME"); configuration && *configuration == '/')
        folder = configuration;
    else if (const char *home = std::getenv("HOME"); home && *home == '/')
        folder = fs::path(home) / ".config";
    return folder.empty() ? fs::path() : folder / "klineage" / "pool.toml";
}

Result<PoolFile> findPool(const fs::path &workspace)
{
    const fs::path inWorkspace = workspace.empty() ? fs::path() : workspace / "pool.toml";
    for (const fs::path &file : {inWorkspace, ownPoolFile()}) {
        if (file.empty())
            continue;
        auto pool = readPoolFile(file);
        // A pool that is there but cannot be read is not passed over: trials would run elsewhere than the person thinks.
        if (pool || pool.error().code != ErrorCode::NotFound)
            return pool;
    }
    PoolFile here;
    here.gates.emplace_back();
    return here;
}

Result<PoolFile> poolOfLauncher(const std::string &launcher)
{
    auto words = splitWords(launcher);
    if (!words)
        return tl::unexpected(words.error());
    if (words->empty() || words->front().empty())
        return fail(ErrorCode::InvalidInput,
                    "A launcher needs the words that start a gate, as in 'ssh HOST'.");
    PoolFile one;
    one.gates.push_back(specOfLauncher(std::move(*words)));
    return one;
}

Result<PoolFile> choosePool(const std::string &launcher, const std::string &pool, const fs::path &workspace)
{
    if (!launcher.empty() && !pool.empty())
        return fail(ErrorCode::InvalidInput, "Name a launcher or a pool, not both.");
    if (!launcher.empty())
        return poolOfLauncher(launcher);
    if (pool == "none") {
        PoolFile here;
        here.gates.emplace_back();
        return here;
    }
    return pool.empty() ? findPool(workspace) : readPoolFile(pool);
}

} // namespace klineage::gate
