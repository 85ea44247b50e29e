// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/outcometext.h"

#include "core/base/numbertext.h"

#include <algorithm>

namespace klineage::gate {

namespace {

std::string shownBy(const Trial &trial, std::size_t cases)
{
    return std::to_string(cases) + (cases == 1 ? " case" : " cases") + " with "
           + std::to_string(trial.seeds.size()) + " seeds";
}

std::string describeChange(const Comparison &comparison)
{
    std::string word = toString(comparison.change);
    std::replace(word.begin(), word.end(), '_', ' ');
    const std::string who = comparison.against == "parent" ? "its parent" : comparison.against;
    return significantText(comparison.speedup.value, 3) + "× the speed of " + who + " (" + word + ")";
}

} // namespace

std::string successMessage(const Trial &trial, std::size_t cases)
{
    std::string text = "Correct on " + shownBy(trial, cases) + "; " + durationText(trial.latencyNs.value, 3);
    for (const Comparison &comparison : trial.verdict.comparisons)
        text += "; " + describeChange(comparison);
    return text + ".";
}

void sayWhatWasShown(Trial &trial, std::size_t cases)
{
    Verdict &verdict = trial.verdict;
    const std::string shown = "correct on " + shownBy(trial, cases);
    verdict.evidence.push_back({"shown", shown});
    verdict.message += " It was " + shown + " before.";
    verdict.hint =
        "Nothing was wrong until the time was over: give the trial longer (deadline_seconds; --timeout of klineage-cli), let "
        "the candidate do its work in fewer launches, or look for a loop that ends sometimes only.";
}

Verdict unavailableVerdict(const Error &error, const PreparedCandidate &prepared, const std::string &target)
{
    Verdict verdict;
    verdict.status = VerdictStatus::Unavailable;
    verdict.stage = Stage::Correctness;
    verdict.reason = "no_device";
    verdict.message = error.message;
    if (prepared.compiled.ok) {
        verdict.message += " The candidate compiles for " + target + ".";
        verdict.evidence = {{"compiler", prepared.compiled.compiler}, {"target", target}};
    }
    verdict.log = prepared.compiled.log + error.detail;
    verdict.hint =
        !error.detail.empty()
            ? "The log has what the device's compiler, linker or driver said. `klineage-cli doctor` checks the same."
            : prepared.candidate.surface.device().howToGet;
    return verdict;
}

} // namespace klineage::gate
