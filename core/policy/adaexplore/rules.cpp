// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/adaexplore/rules.h"

#include <algorithm>
#include <cctype>

namespace klineage::policy {

namespace {

constexpr std::size_t longestRule = 240;

/// The first error of the log without its place, else the verdict's message.
std::string essenceOf(const gate::Verdict &verdict)
{
    std::string_view log = verdict.log;
    while (!log.empty()) {
        const std::size_t end = log.find('\n');
        const std::string_view line = log.substr(0, end);
        if (const std::size_t at = line.find("error"); at != std::string_view::npos)
            return std::string(line.substr(at, longestRule));
        log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    }
    return verdict.message.substr(0, longestRule);
}

/// "undeclared identifier 'x12' at 40" and "… 'y' at 7" are one failure.
std::string keyOf(const std::string &text)
{
    std::string key;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const std::size_t closed = c == '\'' || c == '"' ? text.find(c, i + 1) : std::string::npos;
        if (closed != std::string::npos) {
            key += "'…'";
            i = closed;
        } else if (std::isdigit(static_cast<unsigned char>(c))) {
            if (!key.ends_with('#'))
                key += '#';
        } else {
            key += c;
        }
    }
    return key;
}

bool makesRule(gate::VerdictStatus status)
{
    using enum gate::VerdictStatus;
    return status == CompileError || status == Unsafe || status == Timeout || status == Crash;
}

} // namespace

const FailureRules::Rule *FailureRules::learn(const gate::Verdict &verdict)
{
    if (!makesRule(verdict.status))
        return nullptr;
    const std::string essence = essenceOf(verdict);
    const std::string status = gate::toString(verdict.status);
    const std::string key = status + ": " + keyOf(essence);
    auto rule = std::find_if(m_rules.begin(), m_rules.end(), [&](const Rule &one) { return one.key == key; });
    if (rule == m_rules.end()) {
        m_rules.push_back(
            {key, status + ": " + essence + (verdict.hint.empty() ? "" : " Try: " + verdict.hint), 0});
        rule = m_rules.end() - 1;
    }
    ++rule->count;
    return &*rule;
}

std::vector<std::string> FailureRules::known(int least, std::size_t most) const
{
    std::vector<Rule> often;
    std::copy_if(m_rules.begin(), m_rules.end(), std::back_inserter(often),
                 [least](const Rule &rule) { return rule.count >= least; });
    std::stable_sort(often.begin(), often.end(),
                     [](const Rule &a, const Rule &b) { return a.count > b.count; });
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < often.size() && i < most; ++i)
        texts.push_back(often[i].text + " (" + std::to_string(often[i].count) + " times)");
    return texts;
}

} // namespace klineage::policy
