// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/trialtext.h"

#include "core/trial/analysis/analysis.h"

#include <charconv>

#include <locale.h>

namespace klineage::policy {

namespace {

/// Numbers as the C locale writes them, on this thread, while it lives: a prompt must not depend on where the program runs.
class PlainNumbers
{
public:
    PlainNumbers()
        : m_plain(::newlocale(LC_NUMERIC_MASK, "C", ::duplocale(LC_GLOBAL_LOCALE)))
        , m_before(m_plain != locale_t() ? ::uselocale(m_plain) : locale_t())
    {}
    ~PlainNumbers()
    {
        if (m_plain == locale_t())
            return;
        ::uselocale(m_before);
        ::freelocale(m_plain);
    }
    PlainNumbers(const PlainNumbers &) = delete;
    PlainNumbers &operator=(const PlainNumbers &) = delete;

private:
    locale_t m_plain;
    locale_t m_before;
};

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
    return decimalText(speedup.value, 3) + "× [" + decimalText(speedup.low, 3) + ", "
           + decimalText(speedup.high, 3) + ']';
}

std::string measuredText(const gate::Trial &trial)
{
    std::string text = "Latency: " + durationText(trial.latencyNs.value) + '\n';
    for (const gate::Comparison &comparison : trial.verdict.comparisons) {
        const bool parent = comparison.against == "parent";
        text += "Speedup against " + (parent ? std::string("the state it was made from") : comparison.against)
                + ": " + speedupText(comparison.speedup);
        if (parent)
            text += std::string(" (") + gate::toString(comparison.change) + ')';
        text += '\n';
    }
    const PlainNumbers plain;
    return text + gate::analysisText(gate::analyse(trial));
}

} // namespace

std::string decimalText(double value, int digits)
{
    char buffer[64];
    const auto [end, status] =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, digits);
    return status == std::errc() ? std::string(buffer, end) : "?";
}

std::string durationText(double ns)
{
    if (ns >= 1e9)
        return decimalText(ns / 1e9, 3) + " s";
    if (ns >= 1e6)
        return decimalText(ns / 1e6, 3) + " ms";
    return decimalText(ns / 1e3, 3) + " µs";
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
