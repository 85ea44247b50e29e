// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/policy/study.h"

#include "core/base/numbertext.h"
#include "tests/core/policy/simulatedworld.h"

#include <algorithm>

namespace klineage::tests {

namespace {

double medianOf(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Only the number of questions ends a run.
std::map<std::string, std::string> withoutEnds()
{
    return {{"patience", "1000"},
            {"done_limit", "1000"},
            {"evolution_rounds", "100000"},
            {"iterations", "100000"},
            {"steps", "100000"}};
}

StudyRow studyOne(const std::string &name, int worlds, int questions)
{
    StudyRow row;
    row.policy = name;
    std::vector<double> gains;
    std::vector<double> shares;
    std::vector<double> toNinety;
    int near = 0;
    int reached = 0;
    for (int seed = 1; seed <= worlds; ++seed) {
        const SimulatedWorld world(static_cast<std::uint64_t>(seed));
        const auto policy =
            policy::makePolicy(name, problemOf(static_cast<std::uint64_t>(seed), withoutEnds()));
        if (!policy)
            continue;
        const SimulatedRun run = play(**policy, world, questions);
        ++row.runs;
        gains.push_back(run.best);
        shares.push_back(run.best / world.optimum());
        toNinety.push_back(run.toNinety > 0 ? run.toNinety : questions + 1);
        near += run.best >= 0.95 * world.optimum() ? 1 : 0;
        reached += run.toNinety > 0 ? 1 : 0;
    }
    if (row.runs == 0)
        return row;
    row.nearOptimum = static_cast<double>(near) / row.runs;
    row.reachedNinety = static_cast<double>(reached) / row.runs;
    row.medianGain = medianOf(std::move(gains));
    row.medianShare = medianOf(std::move(shares));
    row.medianToNinety = medianOf(std::move(toNinety));
    return row;
}

} // namespace

std::vector<StudyRow> studyPolicies(const std::vector<std::string> &policies, int worlds, int questions)
{
    std::vector<StudyRow> rows;
    for (const std::string &name : policies)
        rows.push_back(studyOne(name, worlds, questions));
    return rows;
}

std::string studyTable(const std::vector<StudyRow> &rows)
{
    std::string table =
        "| policy | runs | within 5 % of the optimum | median gain | of the optimum | reach 90 % | median questions to 90 % |\n"
        "|---|---|---|---|---|---|---|\n";
    for (const StudyRow &row : rows) {
        table +=
            "| " + row.policy + " | " + std::to_string(row.runs) + " | " + fixedText(row.nearOptimum * 100, 1)
            + " % | " + fixedText(row.medianGain, 2) + "× | " + fixedText(row.medianShare * 100, 0) + " % | "
            + fixedText(row.reachedNinety * 100, 1) + " % | "
            + (row.reachedNinety >= 0.5 ? fixedText(row.medianToNinety, 0) : "more than half never") + " |\n";
    }
    return table;
}

} // namespace klineage::tests
