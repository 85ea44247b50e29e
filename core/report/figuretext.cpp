// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/figuretext.h"

#include "core/base/numbertext.h"

#include <algorithm>

namespace klineage::report {

namespace {

constexpr int digits = 4;

bool isCorrect(const gate::Trial *trial)
{
    return trial && trial->verdict.status == gate::VerdictStatus::Correct;
}

/// "compile error"
std::string statusText(const gate::Trial &trial)
{
    std::string text = gate::toString(trial.verdict.status);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

} // namespace

std::string latencyText(const gate::Interval &ns)
{
    if (ns.value <= 0)
        return nothing;
    const double halfWidth = std::max(ns.high - ns.value, ns.value - ns.low) / ns.value * 100;
    return durationText(ns.value, digits, Zeros::Kept) + " ± " + fixedText(halfWidth, 2) + " %";
}

std::string speedupText(const gate::Interval &speedup)
{
    if (speedup.value <= 0)
        return nothing;
    return digitsText(speedup.value, digits) + "× (" + digitsText(speedup.low, digits) + "–"
           + digitsText(speedup.high, digits) + ")";
}

std::string factorText(double factor)
{
    return factor > 0 ? digitsText(factor, digits) + "×" : nothing;
}

std::string dollarText(double dollars)
{
    return '$' + fixedText(dollars, dollars > 0 && dollars < 1 ? 4 : 2);
}

std::string verdictText(const gate::Trial *trial)
{
    if (!trial)
        return "not gated";
    std::string text = statusText(*trial);
    if (!isCorrect(trial) && !trial->verdict.message.empty())
        text += ": " + trial->verdict.message;
    return text;
}

std::string outcomeText(const gate::Trial *trial)
{
    if (isCorrect(trial))
        return trial->latencyNs.value > 0 ? latencyText(trial->latencyNs) : "correct, not timed";
    return trial ? statusText(*trial) : "not gated";
}

std::string pairedText(const gate::Trial *trial, const std::string &against)
{
    const gate::Comparison *comparison = isCorrect(trial) ? trial->comparison(against) : nullptr;
    return comparison ? speedupText(comparison->speedup) : nothing;
}

} // namespace klineage::report
