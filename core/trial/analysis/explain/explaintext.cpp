// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/explain/explaintext.h"

#include "core/base/listtext.h"
#include "core/base/numbertext.h"
#include "core/trial/analysis/figuretext.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace klineage::gate {

using nlohmann::json;

namespace {

constexpr std::size_t mostAgainst = 2;

std::string changeText(double deltaNs)
{
    return durationText(std::abs(deltaNs), 3) + (deltaNs < 0 ? " less" : " more");
}

/// Shares that may be a little over 1 keep a decimal: 100.4 % must not read as all.
std::string shareText(double share)
{
    return share > 1 && share < 1.095 ? fixedText(100 * share, 1) + " %" : formatShare(share);
}

std::string figureText(const FigurePair &pair)
{
    const auto side = [&](const std::optional<double> &value) {
        return value ? metricText(*value, pair.unit) : std::string("not recorded");
    };
    return pair.metric + " " + side(pair.before) + " → " + side(pair.after);
}

void addCause(std::string &text, const Cause &cause, const Explanation &explanation)
{
    text += cause.title + ": " + causeText(cause) + "\n";
    if (!cause.reason.empty())
        text += "   Mostly " + cause.reason + (cause.kernel.empty() ? "" : ", in " + cause.kernel) + ".\n";
    else if (!cause.kernel.empty())
        text += "   Mostly in " + cause.kernel + ".\n";
    std::vector<std::string> figures;
    for (const FigurePair &pair : cause.figures)
        figures.push_back(figureText(pair));
    if (!figures.empty())
        text += "   " + joined(figures) + "\n";
    std::vector<std::string> lines;
    for (const MovedLine &line : cause.lines)
        lines.push_back(lineText(line, explanation));
    if (!lines.empty())
        text += "   " + joined(lines, "; ") + "\n";
}

json orNull(const std::optional<double> &value)
{
    return value ? json(*value) : json();
}

json orNull(const std::string &text)
{
    return text.empty() ? json() : json(text);
}

json figuresJson(const std::vector<FigurePair> &figures)
{
    json out = json::array();
    for (const FigurePair &pair : figures)
        out.push_back({{"metric", pair.metric},
                       {"unit", pair.unit},
                       {"before", orNull(pair.before)},
                       {"after", orNull(pair.after)}});
    return out;
}

json causesJson(const std::vector<Cause> &causes)
{
    json out = json::array();
    for (const Cause &cause : causes) {
        json lines = json::array();
        for (const MovedLine &line : cause.lines)
            lines.push_back({{"before", line.before > 0 ? json(line.before) : json()},
                             {"after", line.after > 0 ? json(line.after) : json()},
                             {"delta_ns", line.deltaNs},
                             {"kernel", line.kernel}});
        out.push_back({{"group", cause.group},
                       {"title", cause.title},
                       {"before", cause.before},
                       {"after", cause.after},
                       {"before_ns", cause.beforeNs},
                       {"after_ns", cause.afterNs},
                       {"share_of_difference", cause.shareOfDifference},
                       {"reason", orNull(cause.reason)},
                       {"metric", orNull(cause.metric)},
                       {"kernel", orNull(cause.kernel)},
                       {"figures", figuresJson(cause.figures)},
                       {"lines", std::move(lines)}});
    }
    return out;
}

} // namespace

std::string metricText(double value, const std::string &unit)
{
    if (unit == "%")
        return fixedText(value, 1) + " %";
    if (unit == "ns")
        return durationText(value, 4);
    if (std::abs(value) < 1000)
        return formatFigure(value) + (unit.empty() ? "" : " " + unit);
    return formatScaled(value, unit.c_str());
}

std::string stepText(const Explanation &explanation)
{
    const Interval &speedup = explanation.speedup;
    if (speedup.value <= 0)
        return "There is no time of both " + explanation.beforeName + " and " + explanation.afterName + ".";
    return explanation.afterName + " is " + significantText(speedup.value, 4) + " times as fast as "
           + explanation.beforeName
           + (explanation.paired ? " (paired rounds, 95 % interval " : " (not paired; between ")
           + significantText(speedup.low, 4) + (explanation.paired ? " to " : " and ")
           + significantText(speedup.high, 4) + "): " + durationText(explanation.beforeNs, 4) + ", then "
           + durationText(explanation.afterNs, 4) + ", " + changeText(explanation.differenceNs()) + ".";
}

std::string togetherText(const Explanation &explanation)
{
    if (explanation.causes.empty())
        return {};
    const std::string share = shareText(explanation.together);
    const char *subjects[] = {"The largest cause is about ", "The two largest causes are together about ",
                              "The three largest causes are together about "};
    const std::string subject = subjects[std::min(explanation.causes.size(), std::size_t{3}) - 1];
    std::vector<std::string> others;
    for (const Cause &cause : explanation.against) {
        if (others.size() < mostAgainst)
            others.push_back("“" + cause.title + "” by " + durationText(std::abs(cause.deltaNs()), 3));
    }
    const std::string grew = explanation.differenceNs() < 0 ? "grew" : "fell";
    const std::string meanwhile = others.empty() ? "" : " Meanwhile " + grew + " " + listed(others) + ".";
    if (explanation.together <= 1)
        return subject + share + " of the difference." + meanwhile;
    return subject + share + " of the difference, more than all of it: other parts changed the other way."
           + meanwhile;
}

std::string causeText(const Cause &cause)
{
    return formatShare(cause.before) + " of the time before, " + formatShare(cause.after)
           + " after: " + changeText(cause.deltaNs()) + ", about " + shareText(cause.shareOfDifference)
           + " of the difference.";
}

std::string lineText(const MovedLine &line, const Explanation &explanation)
{
    const std::string change = changeText(line.deltaNs);
    if (line.after == 0)
        return "line " + std::to_string(line.before) + " of " + explanation.beforeName + ", which is gone, "
               + change;
    return "line " + std::to_string(line.after) + " of " + explanation.afterName
           + (line.before == 0 ? ", which is new, " : ", ") + change;
}

std::string explanationText(const Explanation &explanation)
{
    std::string text = stepText(explanation) + "\n";
    if (!explanation.nothing.empty())
        text += explanation.nothing + "\n";
    for (const std::string &sentence : explanation.kept)
        text += sentence + "\n";
    std::size_t number = 0;
    for (const Cause &cause : explanation.causes) {
        text += std::to_string(++number) + ". ";
        addCause(text, cause, explanation);
    }
    if (const std::string together = togetherText(explanation); !together.empty())
        text += together + "\n";
    std::vector<std::string> figures;
    for (const FigurePair &pair : explanation.figures)
        figures.push_back(figureText(pair));
    if (!figures.empty())
        text += "Figures that changed: " + joined(figures, "; ") + ".\n";
    for (const std::string &caution : explanation.cautions)
        text += "Note: " + caution + "\n";
    return text;
}

json explanationJson(const Explanation &explanation)
{
    const bool timed = explanation.speedup.value > 0;
    const Interval &speedup = explanation.speedup;
    return {{"before", explanation.beforeName},
            {"after", explanation.afterName},
            {"paired", explanation.paired},
            {"speedup",
             timed ? json{{"value", speedup.value}, {"low", speedup.low}, {"high", speedup.high}} : json()},
            {"before_ns", timed ? json(explanation.beforeNs) : json()},
            {"after_ns", timed ? json(explanation.afterNs) : json()},
            {"difference_ns", timed ? json(explanation.differenceNs()) : json()},
            {"source", toString(explanation.source)},
            {"causes", causesJson(explanation.causes)},
            {"together", explanation.causes.empty() ? json() : json(explanation.together)},
            {"against", causesJson(explanation.against)},
            {"nothing", orNull(explanation.nothing)},
            {"kept", explanation.kept},
            {"cautions", explanation.cautions},
            {"figures", figuresJson(explanation.figures)}};
}

} // namespace klineage::gate
