// SPDX-License-Identifier: GPL-3.0-or-later
// Why the largest steps of a lineage are faster, and where its states stand under the ceilings of the device.
#include "core/base/numbertext.h"
#include "core/lineage/largeststeps.h"
#include "core/report/figuretext.h"
#include "core/report/parts.h"
#include "core/report/report.h"
#include "core/trial/analysis/explain/explaintext.h"
#include "core/trial/analysis/explain/rooflinepath.h"
#include "core/why/whystep.h"

#include <algorithm>
#include <cmath>

namespace klineage::report {

namespace {

constexpr std::size_t explainedSteps = 3;

/// "702 TFLOP/s": three digits and a prefix of thousands.
std::string rateText(double perSecond, const char *unit)
{
    constexpr const char *prefixes[] = {"", "K", "M", "G", "T", "P"};
    std::size_t step = 0;
    while (perSecond >= 999.5 && step + 1 < std::size(prefixes)) {
        perSecond /= 1000;
        ++step;
    }
    return digitsText(perSecond, 3) + ' ' + prefixes[step] + unit;
}

std::string percentText(double share)
{
    return fixedText(100 * share, 1) + " %";
}

std::string figuresText(const gate::Cause &cause)
{
    std::string text;
    const auto side = [](const std::optional<double> &value, const std::string &unit) {
        return value ? gate::metricText(*value, unit) : std::string("not recorded");
    };
    for (const gate::FigurePair &pair : cause.figures)
        text += (text.empty() ? "" : "; ") + pair.metric + ' ' + side(pair.before, pair.unit) + " → "
                + side(pair.after, pair.unit);
    return text.empty() ? nothing : text;
}

std::string linesText(const gate::Cause &cause, const gate::Explanation &explanation)
{
    std::string text;
    for (const gate::MovedLine &line : cause.lines)
        text += (text.empty() ? "" : "; ") + gate::lineText(line, explanation);
    return text.empty() ? nothing : text;
}

Table causeTable(const gate::Explanation &explanation)
{
    Table table{{{"Cause"},
                 {"Time before", true},
                 {"Time after", true},
                 {"Share before", true},
                 {"Share after", true},
                 {"Of the difference", true},
                 {"Figures"},
                 {"Lines"}},
                {}};
    table.data.columns = {"cause",        "kernel",      "before_ns",          "after_ns",
                          "share_before", "share_after", "share_of_difference"};
    for (const gate::Cause &cause : explanation.causes) {
        table.rows.push_back({cause.title, durationText(cause.beforeNs, 3), durationText(cause.afterNs, 3),
                              percentText(cause.before), percentText(cause.after),
                              percentText(cause.shareOfDifference), figuresText(cause),
                              linesText(cause, explanation)});
        table.data.rows.push_back({cause.title, cause.kernel, shortestText(cause.beforeNs),
                                   shortestText(cause.afterNs), shortestText(cause.before),
                                   shortestText(cause.after), shortestText(cause.shareOfDifference)});
    }
    return table;
}

void addExplanation(Document &document, const gate::Explanation &explanation)
{
    std::string text = gate::stepText(explanation);
    if (explanation.causes.empty()) {
        text += ' ' + explanation.nothing;
        for (const std::string &kept : explanation.kept)
            text += ' ' + kept;
        document.blocks.emplace_back(Paragraph{std::move(text)});
        return;
    }
    text += ' ' + gate::togetherText(explanation);
    document.blocks.emplace_back(Paragraph{std::move(text)});
    document.blocks.emplace_back(causeTable(explanation));
    std::string cautions;
    for (const std::string &caution : explanation.cautions)
        cautions += (cautions.empty() ? "" : " ") + caution;
    if (!cautions.empty())
        document.blocks.emplace_back(Paragraph{std::move(cautions)});
}

} // namespace

void addExplanations(Document &document, const Workspace &workspace, const lineage::Lineage &lineage)
{
    std::vector<lineage::LargeStep> steps = lineage::largestSteps(lineage);
    std::erase_if(steps, [](const lineage::LargeStep &step) { return step.speedup.low <= 1; });
    steps.resize(std::min(steps.size(), explainedSteps));
    bool isFirst = true;
    for (const lineage::LargeStep &step : steps) {
        const auto question = why::askStep(lineage, step.to, {}, workspace.findWorkload(lineage.workload));
        if (!question || !question->before)
            continue;
        if (std::exchange(isFirst, false)) {
            document.blocks.emplace_back(Heading{"Why the largest steps are faster"});
            document.blocks.emplace_back(Paragraph{
                "The time of both runs is divided into the same parts, by counters and samples of the two recorded trials; causes are the "
                "parts that changed most. Shares are estimates."});
        }
        addExplanation(document, why::answer(*question).explanation);
    }
}

void addRoofline(Document &document, const lineage::Lineage &lineage)
{
    const std::string &best = lineage.states.back().id;
    const why::Chain chain = why::chainTo(lineage, best);
    const gate::RooflinePath path = gate::rooflinePath(chain.states, best);
    if (!path.missing.empty() || path.points.empty())
        return;
    const bool isCounted = path.bytes == gate::RooflineBytes::Counted;
    const gate::Trial *bestTrial = lineage.trialOf(lineage.states.back());
    const std::string both = bestTrial ? gate::bothIntensities(*bestTrial) : std::string();
    document.blocks.emplace_back(Heading{"Roofline"});
    document.blocks.emplace_back(Figure{
        rooflineFigure, std::string("Operations a byte against operations a second, both logarithmic; ")
                            + (isCounted ? "bytes as counted in device memory."
                                         : "bytes are the fewest that the workload needs.")
                            + (both.empty() ? "" : ' ' + best + ": " + both) + " Ceilings are those of "
                            + path.device + ", as recorded with " + path.ceilingsOf + '.'});
    Table states{{{"State"}, {"FLOP/B", true}, {"Rate", true}, {"Of its roof", true}, {"Roof"}}, {}};
    states.data.columns = {"state",      "flop_per_byte", "flop_per_second",
                           "latency_ns", "share_of_roof", "roof"};
    for (const gate::RooflinePoint &point : path.points) {
        const auto [roof, most] = gate::roofAbove(path, point.intensity);
        const std::string name = roof ? roof->name : nothing;
        states.rows.push_back({point.id, digitsText(point.intensity, 3), rateText(point.perSecond, "FLOP/s"),
                               most > 0 ? percentText(point.perSecond / most) : nothing, name});
        states.data.rows.push_back({point.id, shortestText(point.intensity), shortestText(point.perSecond),
                                    shortestText(point.latencyNs),
                                    most > 0 ? shortestText(point.perSecond / most) : std::string(),
                                    roof ? roof->name : std::string()});
    }
    document.blocks.emplace_back(std::move(states));
    Table ceilings{{{"Ceiling"}, {"Rate", true}, {"Source"}}, {}};
    ceilings.data.columns = {"ceiling", "per_second", "unit", "source"};
    for (const gate::RooflineCeiling &ceiling : path.ceilings) {
        const char *unit = ceiling.isBandwidth ? "B/s" : "FLOP/s";
        ceilings.rows.push_back({ceiling.name, rateText(ceiling.perSecond, unit), ceiling.source});
        ceilings.data.rows.push_back({ceiling.name, shortestText(ceiling.perSecond), unit, ceiling.source});
    }
    document.blocks.emplace_back(std::move(ceilings));
    for (const std::string &notice : path.notices)
        document.blocks.emplace_back(Paragraph{notice});
}

} // namespace klineage::report
