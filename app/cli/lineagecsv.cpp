// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"

#include "core/base/numbertext.h"
#include "core/files/atomicfile.h"
#include "core/lineage/table.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace klineage::cli {

using lineage::TableRow;

namespace {

constexpr const char *csvHeading =
    "lineage,kind,id,title,parent,trial,status,latency_ns,latency_ns_low,latency_ns_high,"
    "speedup_to_parent,speedup_to_parent_low,speedup_to_parent_high,speedup_to_k0,speedup_to_k0_low,"
    "speedup_to_k0_high,speedup_to_reference,speedup_to_reference_low,speedup_to_reference_high,reference,device\n";

/// RFC 4180: quoted where it must be.
std::string csvCell(const std::string &text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos)
        return text;
    std::string out = "\"";
    for (const char c : text)
        out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + '"';
}

std::string csvCells(const std::optional<gate::Interval> &interval)
{
    if (!interval)
        return ",,,";
    return ',' + shortestText(interval->value) + ',' + shortestText(interval->low) + ','
           + shortestText(interval->high);
}

std::optional<gate::Interval> csvSpeedupToK0(const lineage::Lineage &lineage, const TableRow &row)
{
    const gate::Trial *first = lineage.states.empty() ? nullptr : lineage.trialOf(lineage.states.front());
    if (!row.speedupToBaseline || !row.latencyNs || !first)
        return std::nullopt;
    return lineage::ratioOfMedians(first->latencyNs, *row.latencyNs);
}

std::string csvLine(const lineage::Lineage &lineage, const TableRow &row)
{
    const gate::Trial *trial = row.trial;
    std::string out = csvCell(lineage.key()) + (row.kind == TableRow::Kind::State ? ",state," : ",attempt,")
                      + csvCell(row.id) + ',' + csvCell(row.title) + ',' + csvCell(row.parent) + ','
                      + (trial ? trial->id : std::string()) + ','
                      + (trial ? gate::toString(trial->verdict.status) : std::string());
    out += csvCells(row.latencyNs) + csvCells(row.speedupToParent) + csvCells(csvSpeedupToK0(lineage, row))
           + csvCells(row.speedupToReference);
    return out + ',' + csvCell(row.reference) + ','
           + (trial ? csvCell(trial->environment.device) : std::string()) + '\n';
}

/// States first, K0 before all; then what was rejected.
std::string csvLines(const lineage::Lineage &lineage)
{
    std::vector<TableRow> rows = lineage::lineageTable(lineage);
    std::reverse(rows.begin(), rows.end());
    std::string out;
    for (const TableRow::Kind kind : {TableRow::Kind::State, TableRow::Kind::Attempt}) {
        for (const TableRow &row : rows)
            out += row.kind == kind ? csvLine(lineage, row) : std::string();
    }
    return out;
}

} // namespace

int writeLineageCsv(const Session &session, const std::vector<lineage::Lineage> &lineages,
                    const std::string &file)
{
    std::string text = csvHeading;
    for (const lineage::Lineage &lineage : lineages)
        text += csvLines(lineage);
    if (file == "-") {
        std::printf("%s", text.c_str());
        return exitOk;
    }
    const Status written = files::writeFileAtomic(file, text);
    return written ? exitOk : session.fail(written.error());
}

} // namespace klineage::cli
