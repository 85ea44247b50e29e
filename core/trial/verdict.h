// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

enum class VerdictStatus { Correct, CompileError, Wrong, Unsafe, Suspect, Timeout, Crash, Unavailable };
[[nodiscard]] const char *toString(
    VerdictStatus status); ///< correct compile_error wrong unsafe suspect timeout crash unavailable
[[nodiscard]] std::optional<VerdictStatus> verdictStatusFromString(std::string_view name);

enum class Stage { Compile, Correctness, Profile };
[[nodiscard]] const char *toString(Stage stage); ///< compile correctness profile
[[nodiscard]] std::optional<Stage> stageFromString(std::string_view name);

/// A measured change of a correct candidate against another subject.
enum class Change { Gain, NoGain, Loss, Undecided };
[[nodiscard]] const char *toString(Change change); ///< gain no_gain loss undecided
[[nodiscard]] std::optional<Change> changeFromString(std::string_view name);

/// A named fact of a verdict: ("element", "c[3, 17]"), ("expected", "0.25"), ("case", "odd").
struct Evidence {
    std::string name;
    std::string value;
};

/// A value with its 95 % interval.
struct Interval {
    double value = 0;
    double low = 0;
    double high = 0;
};

/// speedup = T_other / T_candidate, from paired rounds: > 1 means the candidate is faster.
struct Comparison {
    /// "parent", or the reference: its provider ("openblas"), with the operator where the workload names several of one provider
    /// ("cudnn/conv2d_nchw").
    std::string against;
    std::string subject; ///< sha-256 of the parent's file; version string of the reference
    Interval speedup;    ///< median of paired ratios, bootstrap 95 % interval
    double otherNs = 0;  ///< median latency of the other side in the same rounds
    Change change = Change::Undecided;
};

/// The structured result of the gate for one candidate.
struct Verdict {
    VerdictStatus status = VerdictStatus::Unavailable;
    Stage stage = Stage::Compile; ///< the stage that decided; Profile when everything passed
    std::string reason;           ///< stable code: "ok", "mismatch", "red_zone", "deadline", "no_device", …
    std::string message;          ///< one plain sentence
    std::vector<Evidence> evidence;
    std::string hint; ///< what to try; may be empty
    std::string log;  ///< compiler or worker output, capped
    std::vector<Comparison> comparisons;
};

void to_json(nlohmann::json &json, const Verdict &verdict);
void from_json(const nlohmann::json &json,
               Verdict &verdict); ///< throws nlohmann::json::exception on bad input

} // namespace klineage::gate
