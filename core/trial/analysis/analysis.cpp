// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/analysis.h"

#include "core/base/numbertext.h"
#include "core/trial/analysis/classify.h"
#include "core/trial/analysis/tools.h"
#include "core/trial/metricnames.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace klineage::gate {

using nlohmann::json;

namespace {

bool isFor(const Tool &tool, kernel::Surface surface)
{
    return !tool.device || *tool.device == surface->device;
}

/// Empty when the tool can look.
std::string obstacle(const Tool &tool, const Figures &figures, const std::optional<Roof> &roof)
{
    if (std::any_of(tool.metrics.begin(), tool.metrics.end(),
                    [&](const char *metric) { return !figures.has(metric); }))
        return "needs counters";
    return tool.roof && !roof ? "needs measured ceilings" : "";
}

bool canLook(const Tool &tool, const KernelFigures &kernel)
{
    return std::all_of(tool.metrics.begin(), tool.metrics.end(),
                       [&](const char *metric) { return kernel.find(metric).has_value(); });
}

/// The lines of a kernel (empty: of any) where most samples have one of the reasons.
std::vector<FindingLine> linesWith(const Trial &trial, const std::string &kernel,
                                   const std::vector<const char *> &reasons)
{
    constexpr double leastShare = 0.005;
    constexpr std::size_t mostLines = 3;
    std::int64_t total = 0;
    std::map<int, std::int64_t> found;
    for (const Hotspot &spot : trial.hotspots) {
        total += spot.samples;
        if (spot.line <= 0 || (!kernel.empty() && spot.kernel != kernel))
            continue;
        for (const char *reason : reasons) {
            if (const auto stall = spot.stalls.find(reason); stall != spot.stalls.end())
                found[spot.line] += stall->second;
        }
    }
    std::vector<FindingLine> lines;
    for (const auto &[line, samples] : found) {
        const double share = total > 0 ? static_cast<double>(samples) / static_cast<double>(total) : 0;
        if (share >= leastShare)
            lines.push_back({line, share});
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const FindingLine &a, const FindingLine &b) { return a.share > b.share; });
    lines.resize(std::min(lines.size(), mostLines));
    return lines;
}

/// A stall's reason is the end of its metric's name.
std::vector<const char *> reasonsOf(const Tool &tool, const std::string &metric)
{
    constexpr std::string_view prefix = "stall_";
    if (!tool.subject || !metric.starts_with(prefix))
        return tool.reasons;
    if (metric == metric::stallNoInstruction)
        return {"no_instruction", "no_instructions"}; // older and newer samplers
    return {metric.c_str() + prefix.size()};
}

void apply(const Tool &tool, const Trial &trial, const std::optional<Roof> &roof, const Figures &figures,
           Analysis &analysis)
{
    if (const std::string why = obstacle(tool, figures, roof); !why.empty()) {
        analysis.notMeasured.push_back({tool.name, why});
        return;
    }
    const auto look = [&](const KernelFigures &kernel, const std::string &name) {
        const ToolScope scope{trial, roof, analysis, figures, kernel};
        auto text = tool.look(scope);
        if (!text)
            return;
        const std::string metric = tool.subject           ? tool.subject(scope)
                                   : tool.metrics.empty() ? std::string()
                                                          : tool.metrics.front();
        analysis.findings.push_back(
            {tool.name, name, std::move(*text), metric, linesWith(trial, name, reasonsOf(tool, metric))});
    };
    if (tool.looks == Tool::Looks::WholeRun)
        return look(figures.run, {});
    for (const KernelFigures &kernel : figures.kernels) {
        if (canLook(tool, kernel))
            look(kernel, kernel.kernel);
    }
}

json orNull(double value)
{
    return value > 0 ? json(value) : json();
}

} // namespace

double ToolScope::fact(const std::string &name) const
{
    const auto found = trial.environment.facts.find(name);
    return found == trial.environment.facts.end() ? 0 : numberIn(found->second);
}

const std::vector<Tool> &allTools()
{
    static const std::vector<Tool> tools = [] {
        std::vector<Tool> all = sharedTools();
        for (Tool &tool : cudaTools())
            all.push_back(std::move(tool));
        return all;
    }();
    return tools;
}

std::vector<std::string> toolNames(kernel::Surface surface)
{
    std::vector<std::string> names;
    for (const Tool &tool : allTools()) {
        if (isFor(tool, surface))
            names.emplace_back(tool.name);
    }
    return names;
}

Analysis analyse(const Trial &trial)
{
    return analyse(trial, recordedRoof(trial.environment));
}

Analysis analyse(const Trial &trial, const std::optional<Roof> &roof)
{
    Analysis analysis;
    const Figures figures = figuresOf(trial);
    classify(trial, roof, figures, analysis);
    for (const Tool &tool : allTools()) {
        if (isFor(tool, trial.surface))
            apply(tool, trial, roof, figures, analysis);
    }
    return analysis;
}

json analysisJson(const Analysis &analysis)
{
    json findings = json::array();
    for (const ToolFinding &finding : analysis.findings) {
        json lines = json::array();
        for (const FindingLine &line : finding.lines)
            lines.push_back({{"line", line.line}, {"share", line.share}});
        findings.push_back({{"tool", finding.tool},
                            {"kernel", finding.kernel},
                            {"text", finding.text},
                            {"metric", finding.metric.empty() ? json() : json(finding.metric)},
                            {"lines", std::move(lines)}});
    }
    json missing = json::array();
    for (const ToolSilence &silence : analysis.notMeasured)
        missing.push_back({{"tool", silence.tool}, {"why", silence.why}});
    return {{"class", toString(analysis.classification.bound)},
            {"reason", analysis.classification.reason},
            {"analytic", toString(analysis.classification.analytic)},
            {"counters", toString(analysis.classification.counters)},
            {"intensity", orNull(analysis.intensity)},
            {"ridge", orNull(analysis.ridge)},
            {"bandwidth_share", orNull(analysis.bandwidthShare)},
            {"peak_share", orNull(analysis.peakShare)},
            {"findings", findings},
            {"not_measured", missing}};
}

std::string analysisText(const Analysis &analysis)
{
    std::string text = std::string("Bound by: ") + toString(analysis.classification.bound) + ". "
                       + analysis.classification.reason + "\n";
    for (const ToolFinding &finding : analysis.findings)
        text += "- " + finding.tool + (finding.kernel.empty() ? "" : " of " + finding.kernel) + ": "
                + finding.text + "\n";
    std::map<std::string, std::string> missing;
    for (const ToolSilence &silence : analysis.notMeasured) {
        std::string &names = missing[silence.why];
        names += (names.empty() ? "" : ", ") + silence.tool;
    }
    for (const auto &[why, names] : missing)
        text += "Not measured (" + why + "): " + names + ".\n";
    return text;
}

} // namespace klineage::gate
