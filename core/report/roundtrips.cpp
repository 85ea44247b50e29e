// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/figuretext.h"
#include "core/report/parts.h"
#include "core/report/report.h"

#include "core/base/numbertext.h"
#include "core/run/roundtrip/roundtriprecord.h"

#include <cmath>

namespace klineage::report {

namespace {

std::string armText(const std::string &arm)
{
    return arm == "full"        ? "with its cards"
           : arm == "no-blocks" ? "cards without building blocks"
           : arm == "none"      ? "without cards"
                                : arm;
}

std::string shareOfText(int count, const gate::Interval &share)
{
    const auto percent = [](double part) { return std::to_string(std::lround(100 * part)); };
    return std::to_string(count) + " (95 %: " + percent(share.low) + " – " + percent(share.high) + " %)";
}

} // namespace

void addRoundtrips(Document &document, const lineage::Lineage &lineage)
{
    const Result<run::RoundtripRecord> record = run::readRoundtripRecord(lineage.directory);
    if (record && record->arms.empty())
        return;
    document.blocks.emplace_back(Heading{"Roundtrip"});
    if (!record) {
        document.blocks.emplace_back(Paragraph{record.error().message});
        return;
    }
    const std::string last = run::roundtripGoal(lineage, *record);
    document.blocks.emplace_back(Paragraph{
        "Authors who were given the first state alone, with the lineage's cards or without, came to these shares of the speed of "
        + last + ", each timed beside it in the same rounds. Recovered is what comes to "
        + fixedText(run::recoveredShare, 1) + " of it; a trial counts once, by its best try."});
    document.blocks.emplace_back(
        Figure{roundtripFigure,
               "A row for each trial, by arm: speed as a share of that of " + last
                   + " with its 95 % interval; a first try that fell short is joined to the repair."});
    Table table{{{"Arm"},
                 {"Trials", true},
                 {"Correct", true},
                 {"Recovered", true},
                 {"At the first try", true},
                 {"Median speed", true}},
                {}};
    table.data.columns = {"arm", "trials", "correct", "recovered", "recovered_at_first", "median_share"};
    for (const run::RoundtripArm &arm : record->arms) {
        const run::RoundtripCount &count = arm.count;
        table.rows.push_back({armText(arm.arm), std::to_string(count.trials), std::to_string(count.correct),
                              shareOfText(count.recovered, arm.recovered),
                              shareOfText(count.first, arm.first), fixedText(count.medianShare, 3) + "×"});
        table.data.rows.push_back({arm.arm, std::to_string(count.trials), std::to_string(count.correct),
                                   std::to_string(count.recovered), std::to_string(count.first),
                                   shortestText(count.medianShare)});
    }
    document.blocks.emplace_back(std::move(table));
    for (const std::string &notice : record->notices)
        document.blocks.emplace_back(Paragraph{notice});
}

} // namespace klineage::report
