// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/figures.h"

#include "core/base/numbertext.h"
#include "core/talk/trialtext.h"

#include <algorithm>

namespace klineage::run {

std::string factorText(double factor)
{
    return fixedText(factor, 3) + "×";
}

std::string figuresText(const gate::Trial &trial)
{
    std::string text = gate::toString(trial.verdict.status);
    if (trial.verdict.status != gate::VerdictStatus::Correct)
        return text;
    if (trial.latencyNs.value > 0)
        text += ", " + policy::latencyText(trial.latencyNs.value);
    for (const gate::Comparison &comparison : trial.verdict.comparisons) {
        const std::string other = comparison.against == "parent" ? "its parent" : comparison.against;
        text += ", " + factorText(comparison.speedup.value) + " [" + fixedText(comparison.speedup.low, 3)
                + ", " + fixedText(comparison.speedup.high, 3) + "] against " + other + " ("
                + gate::toString(comparison.change) + ')';
    }
    return text;
}

std::string verdictLine(const gate::Trial &trial)
{
    return sentence(std::string(gate::toString(trial.verdict.status)) + " at the "
                    + gate::toString(trial.verdict.stage) + " stage: " + trial.verdict.message);
}

std::string sentence(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    text.erase(text.find_last_not_of(' ') + 1);
    if (text.empty() || text.ends_with('.') || text.ends_with('!') || text.ends_with('?'))
        return text;
    return text + '.';
}

} // namespace klineage::run
