// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/texttable.h"

#include "core/lineage/rederived.h"
#include "core/lineage/table.h"
#include "core/trial/analysis/analysis.h"
#include "core/trial/analysis/figuretext.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace klineage::cli {

using lineage::TableRow;
using nlohmann::json;

namespace {

const gate::Trial *baselineTrial(const lineage::Lineage &lineage)
{
    return lineage.states.empty() ? nullptr : lineage.trialOf(lineage.states.front());
}

/// T_K0 / T_row, of trials that were not paired.
std::optional<gate::Interval> speedupToK0(const lineage::Lineage &lineage, const TableRow &row)
{
    const gate::Trial *baseline = baselineTrial(lineage);
    if (!row.speedupToBaseline || !row.latencyNs || !baseline)
        return std::nullopt;
    return lineage::ratioOfMedians(baseline->latencyNs, *row.latencyNs);
}

json rowJson(const lineage::Lineage &lineage, const TableRow &row)
{
    json out{{"id", row.id},
             {"title", row.title},
             {"parent", row.parent.empty() ? json() : json(row.parent)},
             {"trial", row.trial ? json(row.trial->id) : json()},
             {"status", row.trial ? json(gate::toString(row.trial->verdict.status)) : json()},
             {"device", row.trial ? json(row.trial->environment.device) : json()},
             {"latency_ns", jsonOf(row.latencyNs)},
             {"speedup_to_parent", jsonOf(row.speedupToParent)},
             {"speedup_to_k0", jsonOf(speedupToK0(lineage, row))},
             {"speedup_to_reference", jsonOf(row.speedupToReference)},
             {"reference", row.reference.empty() ? json() : json(row.reference)}};
    if (row.trial && row.trial->latencyNs.value > 0)
        out["analysis"] = gate::analysisJson(gate::analyse(*row.trial));
    return out;
}

json lineageJson(const lineage::Lineage &lineage)
{
    json out{{"lineage", lineage.key()},  {"workload", lineage.workload}, {"platform", lineage.platform},
             {"title", lineage.title},    {"states", json::array()},      {"attempts", json::array()},
             {"branches", json::array()}, {"notices", lineage.notices}};
    std::vector<TableRow> rows = lineage::lineageTable(lineage);
    std::reverse(rows.begin(), rows.end()); // K0 first, as a list is read
    for (const TableRow &row : rows) {
        const char *key = row.kind == TableRow::Kind::State     ? "states"
                          : row.kind == TableRow::Kind::Attempt ? "attempts"
                                                                : "branches";
        out[key].push_back(rowJson(lineage, row));
    }
    const std::string device = lineage::deviceOf(lineage);
    out["rederived"] = rederivedJson(lineage);
    out["device"] = device.empty() ? json() : json(device);
    return out;
}

const char *glyphOf(TableRow::Kind kind)
{
    switch (kind) {
    case TableRow::Kind::State:
        return "";
    case TableRow::Kind::Attempt:
        return " (rejected)";
    case TableRow::Kind::Branch:
        return " (branch)";
    }
    return "";
}

/// How near a state is to what the device was measured to be able to do, by the workload's own bytes and operations.
std::string limitText(const gate::Trial *trial)
{
    if (!trial || trial->latencyNs.value <= 0)
        return "-";
    const gate::Analysis analysis = gate::analyse(*trial);
    const double share = std::max(analysis.bandwidthShare, analysis.peakShare);
    if (share <= 0)
        return "-";
    return gate::formatShare(share)
           + (analysis.peakShare >= analysis.bandwidthShare ? " rate" : " bandwidth");
}

/// A column has figures of one device; those of another stand beside the title, with its name.
TableRow setApart(TableRow row)
{
    if (row.elsewhere.empty())
        return row;
    row.title +=
        ": " + (row.latencyNs ? formatLatency(row.latencyNs) + " " : std::string()) + "on " + row.elsewhere;
    row.latencyNs = row.speedupToParent = row.speedupToReference = std::nullopt;
    row.speedupToBaseline.reset();
    row.reference.clear();
    return row;
}

void printTable(const lineage::Lineage &lineage)
{
    const std::string device = lineage::deviceOf(lineage);
    std::printf("%s  %s%s%s\n", lineage.key().c_str(), lineage.title.c_str(), device.empty() ? "" : ", on ",
                device.c_str());
    constexpr auto right = TextTable::Align::Right;
    TextTable table({{"STATE"},
                     {"TITLE"},
                     {"VERDICT"},
                     {"LATENCY", right},
                     {"TO PARENT", right},
                     {"TO K0", right},
                     {"TO REFERENCE", right},
                     {"REFERENCE"},
                     {"OF THE LIMIT", right}});
    for (const TableRow &measured : lineage::lineageTable(lineage)) {
        const TableRow row = setApart(measured);
        table.addRow({row.id, row.title + glyphOf(row.kind),
                      row.trial ? gate::toString(row.trial->verdict.status) : "not gated",
                      formatLatency(row.latencyNs), formatSpeedup(row.speedupToParent),
                      formatSpeedup(speedupToK0(lineage, row)), formatSpeedup(row.speedupToReference),
                      row.reference, row.elsewhere.empty() ? limitText(row.trial) : "-"});
    }
    std::printf("%s", table.text(2).c_str());
    std::printf("  %s\n", lineage::rederivedText(lineage::countRederived(lineage)).c_str());
    for (const std::string &notice : lineage.notices)
        std::printf("  Notice: %s\n", notice.c_str());
    std::printf("\n");
}

} // namespace

int printLineageTables(const Session &session, const std::vector<lineage::Lineage> &lineages)
{
    const lineage::GeometricMean mean = lineage::referenceGeometricMean(lineages);
    if (session.json()) {
        json out{{"lineages", json::array()},
                 {"geometric_mean",
                  {{"value", mean.counted > 0 ? json(mean.value) : json()},
                   {"counted", mean.counted},
                   {"missing", mean.missing}}}};
        for (const lineage::Lineage &lineage : lineages)
            out["lineages"].push_back(lineageJson(lineage));
        session.print(out);
        return exitOk;
    }
    for (const lineage::Lineage &lineage : lineages)
        printTable(lineage);
    if (mean.counted > 0)
        std::printf("Speedup of K* to its vendor reference, geometric mean over %d of %d lineages: %.3f×\n",
                    mean.counted, mean.counted + mean.missing, mean.value);
    else
        std::printf("No lineage has a K* that was compared with a vendor reference.\n");
    return exitOk;
}

} // namespace klineage::cli
