// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/texttable.h"

#include "core/base/numbertext.h"
#include "core/run/subject.h"
#include "core/trial/analysis/explain/explaintext.h"
#include "core/trial/analysis/figuretext.h"
#include "core/trial/analysis/launch/launchrows.h"
#include "core/why/whystep.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct ExplainOptions {
    std::string name;
    std::string baseline;
};

json orNull(const std::optional<double> &value)
{
    return value ? json(*value) : json();
}

/// What one side's launches came to; the limit with the rooms that it is the least of.
json launchesJson(const std::vector<gate::LaunchNumbers> &launches)
{
    json out = json::array();
    for (const gate::LaunchNumbers &one : launches) {
        json limits = json::array();
        for (const gate::BlockLimit limit : one.limits)
            limits.push_back(gate::toString(limit));
        out.push_back({{"kernel", one.kernel},
                       {"count", one.count},
                       {"grid", one.grid ? json(*one.grid) : json()},
                       {"block", one.block ? json(*one.block) : json()},
                       {"cluster", one.cluster ? json(*one.cluster) : json()},
                       {"blocks", orNull(one.blocks)},
                       {"threads_per_block", orNull(one.threads)},
                       {"threads", orNull(one.threadsInAll())},
                       {"waves", orNull(one.waves)},
                       {"multiprocessors", orNull(one.multiprocessors)},
                       {"registers", orNull(one.registers)},
                       {"static_shared", orNull(one.staticShared)},
                       {"dynamic_shared", orNull(one.dynamicShared)},
                       {"blocks_per_sm", orNull(one.blocksPerSm)},
                       {"theoretical_occupancy", orNull(one.theoreticalOccupancy)},
                       {"achieved_occupancy", orNull(one.achievedOccupancy)},
                       {"limits", std::move(limits)},
                       {"limit", one.limitText}});
    }
    return out;
}

json rooflineJson(const gate::RooflinePath &path)
{
    json points = json::array();
    for (const gate::RooflinePoint &point : path.points)
        points.push_back({{"id", point.id},
                          {"intensity", point.intensity},
                          {"flops", point.perSecond},
                          {"latency_ns", point.latencyNs}});
    json ceilings = json::array();
    for (const gate::RooflineCeiling &ceiling : path.ceilings)
        ceilings.push_back({{"name", ceiling.name},
                            {"per_second", ceiling.perSecond},
                            {"of", ceiling.isBandwidth ? "bytes" : "operations"},
                            {"source", ceiling.source}});
    return {{"bytes", gate::toString(path.bytes)},
            {"points", std::move(points)},
            {"ceilings", std::move(ceilings)},
            {"notices", path.notices},
            {"missing", path.missing.empty() ? json() : json(path.missing)}};
}

std::string cellText(const gate::LaunchCell &cell, const std::string &unit)
{
    if (!cell.value)
        return cell.text;
    if (unit == "B" && *cell.value >= 1024) // as the sentence about the limit has it
        return significantText(*cell.value / 1024, 4) + " KiB";
    return unit.empty() ? gate::formatFigure(*cell.value) : gate::metricText(*cell.value, unit);
}

void printLaunches(const why::Answer &answer, const std::string &before, const std::string &after)
{
    constexpr auto right = TextTable::Align::Right;
    std::string kernel;
    std::optional<TextTable> table;
    const auto flush = [&] {
        if (table)
            std::printf("\n%s\n%s", kernel.c_str(), table->text(2).c_str());
    };
    for (const gate::LaunchRow &row : gate::launchRows(answer.before, answer.after)) {
        if (!table || row.kernel != kernel) {
            flush();
            kernel = row.kernel;
            table.emplace(std::vector<TextTable::Column>{
                {"LAUNCH"}, {before.empty() ? "–" : before, right}, {after, right}, {""}});
        }
        table->addRow({row.label, cellText(row.before, row.unit), cellText(row.after, row.unit),
                       row.differs ? "≠" : ""});
    }
    flush();
    for (const gate::LaunchNumbers &one : answer.after)
        std::printf("%s: %s\n", one.kernel.c_str(), one.limitText.c_str());
}

void printRoofline(const gate::RooflinePath &path, const std::string &row)
{
    if (!path.missing.empty()) {
        std::printf("\nRoofline: %s\n", path.missing.c_str());
        return;
    }
    constexpr auto right = TextTable::Align::Right;
    const bool counted = path.bytes == gate::RooflineBytes::Counted;
    TextTable table({{"ROOFLINE"}, {"FLOP/B", right}, {"RATE", right}});
    for (const gate::RooflinePoint &point : path.points)
        table.addRow({point.id + (point.id == row ? " *" : ""), gate::formatFigure(point.intensity),
                      gate::formatScaled(point.perSecond, "FLOP/s")});
    std::printf("\n%sBytes: %s.\n", table.text().c_str(),
                counted ? "counted in device memory" : "the fewest that the workload needs");
    for (const gate::RooflineCeiling &ceiling : path.ceilings)
        std::printf("Ceiling: %s, %s, %s.\n", ceiling.name.c_str(),
                    gate::formatScaled(ceiling.perSecond, ceiling.isBandwidth ? "B/s" : "FLOP/s").c_str(),
                    ceiling.source.c_str());
    for (const std::string &notice : path.notices)
        std::printf("%s\n", notice.c_str());
}

std::vector<std::string> rowNames(const lineage::Lineage &lineage)
{
    std::vector<std::string> rows;
    for (const lineage::State &state : lineage.states)
        rows.push_back(lineage.key() + '/' + state.id);
    for (const lineage::Attempt &attempt : lineage.attempts)
        rows.push_back(lineage.key() + '/' + attempt.id);
    return rows;
}

int explain(const Session &session, const ExplainOptions &options)
{
    const auto name = run::stateNameOf(options.name);
    if (!name || name->state.empty())
        return session.usage("'" + options.name
                             + "' is no step; expected WORKLOAD/LINEAGE/STATE, as in gemm/sm90/K08.");
    const auto workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const lineage::Lineage *lineage = workspace->findLineage(name->lineage());
    if (!lineage)
        return session.unknownName("lineage", name->lineage(), workspace->lineageKeys());
    if (!lineage::findRow(*lineage, name->state))
        return session.unknownName("state or attempt", options.name, rowNames(*lineage));
    if (!options.baseline.empty() && !lineage->findState(options.baseline))
        return session.unknownName("state", lineage->key() + '/' + options.baseline, rowNames(*lineage));
    const auto question =
        why::askStep(*lineage, name->state, options.baseline, workspace->findWorkload(lineage->workload));
    if (!question)
        return session.fail({ErrorCode::NotFound, options.name + " has no recorded trial.",
                             "Gate it first: klineage-cli gate run --record."});
    const why::Answer answer = why::answer(*question);
    why::Chain chain = why::chainTo(*lineage, name->state);
    chain.states.resize(chain.length);
    const gate::RooflinePath path = gate::rooflinePath(chain.states, name->state);
    if (session.json()) {
        json out = gate::explanationJson(answer.explanation);
        out["step"] = options.name;
        out["launches"] = {{"before", launchesJson(answer.before)}, {"after", launchesJson(answer.after)}};
        out["roofline"] = rooflineJson(path);
        session.print(out);
        return exitOk;
    }
    std::printf("%s", question->before ? gate::explanationText(answer.explanation).c_str()
                                       : (answer.explanation.nothing + "\n").c_str());
    printLaunches(answer, question->before ? question->before->name : "", question->after.name);
    printRoofline(path, name->state);
    return exitOk;
}

} // namespace

void addExplainCommand(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<ExplainOptions>();
    CLI::App *verb = session.addVerb(
        group, "explain", "Why a step changed the time: the three largest causes, and the launches",
        [&session, options] { return explain(session, *options); });
    verb->footer(
        "From the recorded trials of both sides, with no device. Causes are ranked by how much of the time between the two they can "
        "account for, from stall samples and counters; without these it says what is missing and ranks nothing.");
    verb->add_option("step", options->name, "WORKLOAD/LINEAGE/STATE, as in gemm/sm90/K08")->required();
    verb->add_option("--baseline", options->baseline, "Compare with this state instead of the one before it");
}

} // namespace klineage::cli
