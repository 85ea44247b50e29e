// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace klineage::gate {

/// How a gate is started, and what is known of it before it is.
struct GateSpec {
    std::vector<std::string>
        launcher; ///< before the program, such as {"srun", "--ntasks=1"}; empty: this machine
    std::filesystem::path
        program; ///< where the launcher takes it; empty: found when the gate is first needed

    std::string name{}; ///< in messages and in its trials; empty: the only gate there is
    std::vector<std::string>
        shell{}; ///< such as {"ssh", …, "--", "host"}: what follows is one word, for that shell
    std::vector<std::pair<std::string, std::string>> environment{}; ///< of the gate
    std::vector<std::string> platforms{}; ///< its trials' platforms; empty: it is started and says which
    std::string where{};      ///< "h200.lab", "Slurm, partition gpu": for people; empty: this machine
    double startSeconds = 60; ///< until it says hello; 0: as long as a queue takes
    double silentSeconds = 0; ///< after so long without a sign of life it is lost; 0: at the trial's deadline
    double idleSeconds = 0;   ///< it is ended after so long without a trial; 0: it is kept
    bool isQueued = false;    ///< by Slurm, which is told when it is not needed any more
};

/// A word as a POSIX shell reads it back.
[[nodiscard]] std::string shellQuoted(std::string_view word);
/// Words as a person writes them on a command line: divided by blanks, with '…', "…" and \ as in a shell; nothing is expanded.
[[nodiscard]] Result<std::vector<std::string>> splitWords(std::string_view text);

/// klineage-gate beside the running program, or on PATH.
[[nodiscard]] Result<std::filesystem::path> findGateProgram();

/// The words to execute here for `PROGRAM arguments…` there. The program must be known unless there is a shell, which finds it: what
/// `pool deploy` left, or on its PATH.
[[nodiscard]] std::vector<std::string> commandOf(const GateSpec &spec,
                                                 const std::vector<std::string> &arguments);
/// The same for a script of a POSIX shell there, without launcher and program.
[[nodiscard]] std::vector<std::string> scriptOf(const GateSpec &spec, const std::string &script);

/// The gate behind a --launcher: `ssh HOST` takes its words to a shell, `srun …` and `salloc …` may queue.
[[nodiscard]] GateSpec specOfLauncher(std::vector<std::string> words);

/// Where `pool deploy` puts a gate, below the home folder.
inline constexpr const char *deployedFolder = ".local/share/klineage/gate";

/// Why a gate could not be started, or went away.
struct GateProblem {
    Error error;
    bool isFinal = false; ///< trying again will not help: a key that is refused, a program that is missing
};
/// In words, from how its command ended ("exit code 255"; its exit code) and what that said on stderr.
[[nodiscard]] GateProblem explainEnd(const GateSpec &spec, int exitCode, const std::string &ended,
                                     const std::string &said);
/// The last thing that a launcher said which tells where a start stands: "job 12 queued and waiting for resources".
[[nodiscard]] std::string standOf(const std::string &said);

} // namespace klineage::gate
