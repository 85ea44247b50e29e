// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/checkedset.h"
#include "core/trial/verdict.h"

#include <variant>

namespace klineage::gate {

/// Why a trial stopped early: the candidate's doing (a verdict) or the environment's (an Error).
using TrialEnd = std::variant<Verdict, Error>;
template <typename T>
using StageResult = tl::expected<T, TrialEnd>;

/// Where in the trial something happened, for messages.
struct Where {
    Stage stage = Stage::Correctness;
    std::string subject = "candidate"; ///< "candidate" or "parent"
    std::string caseName;
    std::uint64_t seed = 0;
    int launch = 0;         ///< 1-based launch of the plan on this case; 0: not said
    std::string shape = {}; ///< "C = 513, R = 33"
};

/// The axes of a case, as Where has them.
[[nodiscard]] std::string shapeText(const workload::Case &c);

/// What is wrong with an output of a timed launch.
struct TimedFault {
    std::string output;
    std::string from; ///< "c[0, 0]": first and last element of the piece
    std::string to;
    std::string what;       ///< "4096 of its 4096 elements were not written"
    bool unwritten = false; ///< some of them were not
    std::size_t set = 0;
    std::size_t launch = 0; ///< in its sample, from 0
};

// The words of every verdict. Pure. `name` is the candidate's file name.
[[nodiscard]] Verdict planVerdict(const Error &error);
[[nodiscard]] Verdict compileVerdict(const CompileOutput &output, const Error &error, const std::string &name,
                                     const kernel::Candidate &candidate);
[[nodiscard]] Verdict launchVerdict(const Error &error, const Where &where);
[[nodiscard]] Verdict findingVerdict(const Finding &finding, const Where &where);
/// The candidate wrote to a variable of its module, or has one that cannot be watched.
[[nodiscard]] Verdict globalVerdict(const std::string &name, bool changed, const Where &where);
/// A launch wrote where a later one was to write; output: where.
[[nodiscard]] Verdict aheadVerdict(const TimedFault &fault, const Where &where);
/// A timed sample wrote to memory that none of its launches was given. what: "the red zones of y".
[[nodiscard]] Verdict strayVerdict(const std::string &what, const Where &where);
/// A timed sample left something in an output that is not right.
[[nodiscard]] Verdict timedOutputVerdict(const TimedFault &fault, const Where &where);
/// A graph's replay and single launches disagree about how long the same runs take.
[[nodiscard]] Verdict replayVerdict(double replayedNs, double launchedNs, const Where &where);
/// The worker's clock and the supervisor's disagree about the same runs.
[[nodiscard]] Verdict clockVerdict(double claimedNs, double elapsedNs, const Where &where);
/// For timeouts, deaths, broken protocols, failed launches and missing devices; other failures are the environment's.
[[nodiscard]] TrialEnd failureEnd(const WorkerFailure &failure, const Where &where);

/// For operations that the candidate has no part in: always the environment's, except that a deadline is a deadline.
[[nodiscard]] TrialEnd environmentEnd(const WorkerFailure &failure);

/// The first "error" of a compiler's log with its line in the candidate.
struct LogError {
    int line = 0; ///< 1-based; 0: the log names no line
    std::string text;
};
[[nodiscard]] LogError firstError(const std::string &log, const std::string &name);

} // namespace klineage::gate
