// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/trialtext.h"

#include "core/base/numbertext.h"
#include "core/trial/analysis/analysis.h"

namespace klineage::policy {

namespace {

/// The beginning and the end of a log: the first error and how it ended.
std::string clipped(const std::string &log, std::size_t most)
{
    if (log.size() <= most)
        return log;
    const auto isContinuation = [&log](std::size_t at) { return (log[at] & '\xc0') == '\x80'; };
    std::size_t head = most * 3 / 4;
    while (head > 0 && isContinuation(head))
        --head;
    std::size_t tail = log.size() - most / 4;
    while (tail < log.size() && isContinuation(tail))
        ++tail;
    return log.substr(0, head) + "\n… " + std::to_string(tail - head) + " bytes left out …\n"
           + log.substr(tail);
}

std::string speedupText(const gate::Interval &speedup)
{
    return fixedText(speedup.value, 3) + "× [" + fixedText(speedup.low, 3) + ", " + fixedText(speedup.high, 3)
           + ']';
}

std::string measuredText(const gate::Trial &trial)
{
    std::string text = "Latency: " + latencyText(trial.latencyNs.value) + '\n';
    for (const gate::Comparison &comparison : trial.verdict.comparisons) {
        const bool parent = comparison.against == "parent";
        text += "Speedup against " + (parent ? std::string("the state it was made from") : comparison.against)
                + ": " + speedupText(comparison.speedup);
        if (parent)
            text += std::string(" (") + gate::toString(comparison.change) + ')';
        text += '\n';
    }
    return text + gate::analysisText(gate::analyse(trial));
}

} // namespace

std::string latencyText(double ns)
{
    if (ns >= 1e9)
        return fixedText(ns / 1e9, 3) + " s";
    if (ns >= 1e6)
        return fixedText(ns / 1e6, 3) + " ms";
    return fixedText(ns / 1e3, 3) + " µs";
}

std::string trialText(const gate::Trial &trial, std::size_t mostLogBytes)
{
    const gate::Verdict &verdict = trial.verdict;
    std::string text = std::string("Verdict: ") + gate::toString(verdict.status) + " (stage "
                       + gate::toString(verdict.stage) + ", " + verdict.reason + "). " + verdict.message
                       + '\n';
    for (const gate::Evidence &fact : verdict.evidence)
        text += "- " + fact.name + ": " + fact.value + '\n';
    if (!verdict.hint.empty())
        text += "Try: " + verdict.hint + '\n';
    if (!verdict.log.empty())
        text += "Log:\n" + clipped(verdict.log, mostLogBytes) + '\n';
    if (trial.latencyNs.value > 0)
        text += measuredText(trial);
    return text;
}

} // namespace klineage::policy
