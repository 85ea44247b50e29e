// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/verdict.h"

#include <string>
#include <vector>

namespace klineage::policy {

/// What a search learns from compile and runtime failures: a rule for each kind of failure, with how often it happened. The rule is read from
/// the verdict (a workbench default; AdaExplore has a model write it), so it costs no question. Wrong results make no rule.
class FailureRules
{
public:
    struct Rule {
        std::string key;  ///< status, and the message without numbers and quoted names
        std::string text; ///< as it was said first, with the gate's hint
        int count = 0;
    };

    /// The rule that the failure counts for; nullptr when it makes none.
    const Rule *learn(const gate::Verdict &verdict);
    /// The texts of those that happened so often at least, the most frequent first, with their counts.
    [[nodiscard]] std::vector<std::string> known(int least, std::size_t most) const;
    [[nodiscard]] const std::vector<Rule> &all() const { return m_rules; }

private:
    std::vector<Rule> m_rules;
};

} // namespace klineage::policy
