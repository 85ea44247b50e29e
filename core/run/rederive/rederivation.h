// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/activerun.h"
#include "core/trial/trial.h"

#include <optional>
#include <string>

/// What is asked of an author who derives a step forward again, and when the answer counts. One place for runs, which ask and gate at
/// once, and for lineages written by hand, where prompts, replies and trials travel as files.
namespace klineage::run {

/// To come forward again from a simpler kernel. The stronger kernel's text is for the gate; no prompt holds it.
struct Rederivation {
    std::string simpler;
    std::string stronger;
    std::string category;
    std::string locus;
    std::string intent{}; ///< what the optimization is to do, a sentence; empty: category and locus say it
    std::string workload; ///< workload.toml
    std::string platform;
    bool planExample = false; ///< show every key of a launch plan: to an author who asks nothing back
    int repairs = 2;          ///< further tries, with the verdict of the last one
    double within = 0.03;     ///< how much longer than the stronger kernel it may take
    bool both = true;         ///< …and how much less long; runs before there was this bound: no
};

/// The system prompt and the request.
[[nodiscard]] Result<Conversation> beginRederivation(const Rederivation &wanted, kernel::Surface surface);
/// What is said when a try was not accepted.
[[nodiscard]] Result<std::string> repairRequest(const Rederivation &wanted, const std::string &problem);
/// Why a text does not count before it is gated; empty when it is to be gated.
[[nodiscard]] std::string unchangedProblem(const Rederivation &wanted, const std::string &text);

struct Judgement {
    enum class Outcome { Accepted, Rejected, Stronger, Unsteady };
    Outcome outcome = Outcome::Rejected;
    std::string reason;   ///< for people
    std::string feedback; ///< for the author; holds nothing of the stronger kernel but how fast it is
};
[[nodiscard]] const char *toString(
    Judgement::Outcome outcome); ///< "accepted" "rejected" "stronger" "unsteady"

/// By its trial against the simpler kernel alone: what is not correct needs no comparison with the stronger one.
[[nodiscard]] std::optional<Judgement> judgeAlone(const gate::Trial &trial);
/// By both trials, the first of which is correct.
[[nodiscard]] Judgement judgeMatch(const Rederivation &wanted, const gate::Trial &trial,
                                   const gate::Trial &match);

} // namespace klineage::run
