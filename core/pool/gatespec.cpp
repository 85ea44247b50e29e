// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/gatespec.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <unistd.h>

namespace klineage::gate {

std::string shellQuoted(std::string_view word)
{
    const auto plain = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0
               || std::string_view("@%_-+=:,./").find(c) != std::string_view::npos;
    };
    if (!word.empty() && std::all_of(word.begin(), word.end(), plain))
        return std::string(word);
    std::string out = "'";
    for (const char c : word)
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

Result<std::vector<std::string>> splitWords(std::string_view text)
{
    std::vector<std::string> words;
    std::string word;
    bool inside = false; // of a word, which may be empty: ''
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (std::isspace(static_cast<unsigned char>(c)) != 0) {
            if (std::exchange(inside, false))
                words.push_back(std::exchange(word, {}));
            continue;
        }
        inside = true;
        if (c == '\'' || c == '"') {
            std::size_t end = i + 1;
            for (; end < text.size() && text[end] != c; ++end) {
                if (c == '"' && text[end] == '\\' && end + 1 < text.size()
                    && (text[end + 1] == '"' || text[end + 1] == '\\'))
                    ++end;
                word += text[end];
            }
            if (end == text.size())
                return fail(ErrorCode::InvalidInput,
                            "'" + std::string(text) + "' has a quote that does not end.");
            i = end;
        } else if (c == '\\' && i + 1 < text.size()) {
            word += text[++i];
        } else {
            word += c;
        }
    }
    if (inside)
        words.push_back(std::move(word));
    return words;
}

namespace {

std::string joined(const std::vector<std::string> &words)
{
    std::string line;
    for (const std::string &word : words)
        line += (line.empty() ? "" : " ") + shellQuoted(word);
    return line;
}

/// The program as a word of a shell there: its home folder is not ours.
std::string remoteProgram(const std::filesystem::path &program)
{
    const std::string text = program.string();
    if (text.rfind("~/", 0) == 0)
        return "\"$HOME\"/" + shellQuoted(text.substr(2));
    return shellQuoted(text);
}

void append(std::vector<std::string> &words, const std::vector<std::string> &more)
{
    words.insert(words.end(), more.begin(), more.end());
}

} // namespace

std::vector<std::string> scriptOf(const GateSpec &spec, const std::string &script)
{
    // The login shell there may be any; it has one thing to do.
    std::vector<std::string> words = spec.shell;
    if (spec.shell.empty())
        append(words, {"/bin/sh", "-c", script});
    else
        words.push_back("exec /bin/sh -c " + shellQuoted(script));
    return words;
}

Result<std::filesystem::path> findGateProgram()
{
    namespace fs = std::filesystem;
    std::error_code error;
    const auto isProgram = [&](const fs::path &path) {
        return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
    };
    const fs::path own = fs::read_symlink("/proc/self/exe", error);
    for (const fs::path &folder : {own.parent_path(), own.parent_path().parent_path()}) {
        if (!folder.empty() && isProgram(folder / "klineage-gate"))
            return folder / "klineage-gate";
    }
    const char *path = std::getenv("PATH");
    std::string rest = path ? path : "";
    for (std::size_t begin = 0; begin < rest.size();) {
        const std::size_t end = std::min(rest.find(':', begin), rest.size());
        const fs::path candidate = fs::path(rest.substr(begin, end - begin)) / "klineage-gate";
        if (end > begin && isProgram(candidate))
            return candidate;
        begin = end + 1;
    }
    return fail(
        ErrorCode::NotFound,
        "Cannot find klineage-gate: it is neither beside this program nor on PATH. Build the target klineage-gate.");
}

std::vector<std::string> commandOf(const GateSpec &spec, const std::vector<std::string> &arguments)
{
    std::vector<std::string> before = spec.launcher;
    if (!spec.environment.empty()) {
        before.emplace_back("env");
        for (const auto &[name, value] : spec.environment)
            before.push_back(name + '=' + value);
    }
    if (spec.shell.empty()) {
        std::string program = spec.program.string();
        if (const char *home = std::getenv("HOME"); home && program.rfind("~/", 0) == 0)
            program = home + program.substr(1);
        before.push_back(program);
        append(before, arguments);
        return before;
    }
    std::string script;
    std::string program = remoteProgram(spec.program);
    if (spec.program.empty()) {
        script = std::string("d=\"$HOME\"/") + deployedFolder
                 + "; p=\"$d/klineage-gate\"; [ -x \"$p\" ] || p=klineage-gate; if [ -d \"$d/cuda\" ]; then "
                   "CUDA_PATH=\"$d/cuda\"; "
                   "LD_LIBRARY_PATH=\"$d/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"; "
                   "export CUDA_PATH LD_LIBRARY_PATH; fi; ";
        program = "\"$p\"";
    }
    script += "exec " + joined(before) + (before.empty() ? "" : " ") + program + ' ' + joined(arguments);
    return scriptOf(spec, script);
}

GateSpec specOfLauncher(std::vector<std::string> words)
{
    GateSpec spec;
    const std::string first = words.empty() ? "" : std::filesystem::path(words.front()).filename().string();
    if (first == "ssh") {
        spec.where = words.back();
        spec.shell = std::move(words);
        spec.silentSeconds = 60;
        return spec;
    }
    spec.isQueued = first == "srun" || first == "salloc";
    if (spec.isQueued)
        spec.startSeconds = 0;
    spec.where = first;
    spec.launcher = std::move(words);
    return spec;
}

namespace {

struct Sign {
    const char *said;
    bool isFinal;
    const char *message; ///< after "Cannot start the gate NAME at PLACE: "
    const char *help;
};

/// What ssh, srun, salloc and shells say, in the order in which it is looked for.
constexpr Sign signs[] = {
    {"Permission denied (", true, "the host refused the key.",
     "Add your public key there (ssh-copy-id), or name another with ssh_options = [\"-i\", FILE]; passwords cannot be asked for."},
    {"Too many authentication failures", true, "the host refused the keys that it was offered.",
     "Name the right one with ssh_options = [\"-i\", FILE, \"-o\", \"IdentitiesOnly=yes\"]."},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", true, "its host key is not the known one.",
     "Somebody may listen in. If the host was installed anew, remove its old key with ssh-keygen -R HOST."},
    {"Host key verification failed", true, "its host key is not known here.",
     "Log in once by hand with ssh, and compare the key."},
    {"Could not resolve hostname", true, "there is no host of that name.",
     "Check the name, or ~/.ssh/config."},
    {"Bad configuration option", true, "ssh does not know one of its options.", ""},
    {"Connection refused", false, "the host refused the connection.", "Is sshd running there?"},
    {"No route to host", false, "there is no way to the host.", ""},
    {"Connection timed out", false, "the host does not answer.", ""},
    {"timed out during banner exchange", false, "the host took the connection and then said nothing.", ""},
    {"not responding", false, "the host stopped answering.", ""},
    {"Connection closed by", false, "the host closed the connection.", ""},
    {"Connection reset by", false, "the host closed the connection.", ""},
    {"GLIBC_", true, "the program there needs a newer C library than that machine has.",
     "Build one with cmake --preset gpu-static, and bring it there with klineage-cli pool deploy."},
    {"invalid partition", true, "Slurm has no such partition.", "sinfo lists them."},
    {"Invalid feature specification", true, "no node of Slurm has such a constraint.",
     "sinfo -o '%P %f' lists them."},
    {"Requested node configuration is not available", true, "no node of Slurm has what was asked for.",
     "Look at constraint and options; sinfo -N -l lists the nodes."},
    {"Invalid generic resource (gres)", true, "Slurm has no such generic resource.",
     "sinfo -o '%P %G' lists them."},
    {"Invalid account", true, "Slurm does not let this account run there.", ""},
    {"Invalid qos", true, "Slurm has no such quality of service.", ""},
    {"Unable to contact slurm controller", false, "Slurm's controller does not answer.", ""},
    {"Node failure", false, "Slurm lost the node.", ""},
    {"NODE FAIL", false, "Slurm lost the node.", ""},
    {"DUE TO TIME LIMIT", false, "the job's time was over.", "Ask for more with --time."},
    {"DUE TO PREEMPTION", false, "Slurm gave the node to another job.", ""},
    {"CANCELLED", false, "somebody cancelled the job.", ""},
    {"has been revoked", false, "Slurm took the allocation back.", ""},
    {"Out Of Memory", false, "it took more memory than the job may.", "Ask for more with --mem."},
    {"Unable to allocate resources", true, "Slurm refuses the job.", ""},
};

} // namespace

GateProblem explainEnd(const GateSpec &spec, int exitCode, const std::string &ended, const std::string &said)
{
    std::string name = spec.name.empty() ? "" : "The gate " + spec.name;
    if (!spec.where.empty() && !name.empty())
        name += " (" + spec.where + ")";
    for (const Sign &sign : signs) {
        if (said.find(sign.said) == std::string::npos || (spec.shell.empty() && spec.launcher.empty()))
            continue;
        if (name.empty())
            name = "The gate at " + spec.where;
        const std::string help = sign.help;
        return {{ErrorCode::Unavailable, name + " is not to be had: " + sign.message,
                 help.empty() ? said : help + "\n" + said},
                sign.isFinal};
    }
    const bool missing = exitCode == 127 || exitCode == 126;
    if (missing && !spec.shell.empty())
        return {
            {ErrorCode::Unavailable,
             (name.empty() ? "The gate at " + spec.where : name)
                 + " is not to be had: there is no klineage-gate there.",
             "Bring one there with klineage-cli pool deploy, or say where it is: program = \"…\".\n" + said},
            true};
    if (name.empty())
        name = "The gate";
    return {{ErrorCode::Protocol,
             name + " ended before it answered" + (ended.empty() ? "." : ": " + ended + "."), said},
            missing};
}

std::string standOf(const std::string &said)
{
    std::string stand;
    for (std::size_t begin = 0; begin < said.size();) {
        const std::size_t end = std::min(said.find('\n', begin), said.size());
        const std::string line = said.substr(begin, end - begin);
        for (const char *sign :
             {"queued and waiting", "Pending job allocation", "Required node not available",
              "allocated resources", "Granted job allocation", "Waiting for resource"}) {
            if (line.find(sign) == std::string::npos)
                continue;
            const std::size_t colon = line.find(": ");
            const std::string text = colon == std::string::npos ? line : line.substr(colon + 2);
            // Why it waits is said before that it does.
            const bool isReason =
                stand.find("not available") != std::string::npos && text.find("queued") != std::string::npos;
            stand = isReason ? stand + "; " + text : "Slurm: " + text;
        }
        begin = end + 1;
    }
    return stand;
}

} // namespace klineage::gate
