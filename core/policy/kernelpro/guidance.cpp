// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/kernelpro/guidance.h"

#include "core/trial/analysis/analysis.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace klineage::policy {

namespace {

using gate::BoundBy;

// Which tools a class leaves out is a workbench default: those whose advice moves what is not the limit.
constexpr std::array<std::string_view, 5> memoryTools{"coalescing", "store-coalescing", "dram", "l2",
                                                      "local-memory"};
constexpr std::array<std::string_view, 2> computeTools{"tensor-cores", "instruction-issue"};

template <std::size_t count>
bool isAmong(const std::array<std::string_view, count> &tools, const std::string &tool)
{
    return std::find(tools.begin(), tools.end(), tool) != tools.end();
}

bool looksAt(BoundBy bound, const std::string &tool)
{
    if (bound == BoundBy::Compute)
        return !isAmong(memoryTools, tool);
    if (bound == BoundBy::Memory)
        return !isAmong(computeTools, tool);
    return true;
}

} // namespace

std::string guidanceText(const gate::Trial &trial)
{
    if (trial.latencyNs.value <= 0)
        return {};
    gate::Analysis analysis = gate::analyse(trial);
    const BoundBy bound = analysis.classification.bound;
    std::erase_if(analysis.findings,
                  [bound](const gate::ToolFinding &finding) { return !looksAt(bound, finding.tool); });
    return gate::analysisText(analysis);
}

} // namespace klineage::policy
