// SPDX-License-Identifier: GPL-3.0-or-later
// Search policies in simulated worlds, at an equal number of questions. There is no model and no device in it: it compares strategies given one
// author that is good and careless to the same degree for all of them, and says nothing about speedups of real kernels.
#include "bench.h"

#include "tests/core/policy/study.h"

#include <cstdio>

namespace klineage::bench {

namespace {

constexpr int worlds = 200;
constexpr int questions = 40;

void run(Reporter &reporter)
{
    std::vector<std::string> names = policy::policyNames();
    std::erase(names, "klineage"); // it lives on cards, and a simulated world has none
    const std::vector<tests::StudyRow> rows = tests::studyPolicies(names, worlds, questions);
    std::fputs(tests::studyTable(rows).c_str(), stderr);
    const QString note = QStringLiteral("simulated author and gate, no model: %1 worlds, %2 questions each")
                             .arg(worlds)
                             .arg(questions);
    for (const tests::StudyRow &row : rows) {
        const QString name = QStringLiteral("policies.%1.").arg(QString::fromStdString(row.policy));
        reporter.info(name + QStringLiteral("near_optimum"), row.nearOptimum * 100, QStringLiteral("%"),
                      QStringLiteral("runs within 5 % of the planted optimum; ") + note);
        reporter.info(name + QStringLiteral("median_gain"), row.medianGain, QStringLiteral("x"),
                      QStringLiteral("true gain over the root, of each run's best; ") + note);
        reporter.info(
            name + QStringLiteral("questions_to_90"), row.medianToNinety, QStringLiteral("questions"),
            QStringLiteral(
                "median until 90 % of the optimum's gain, 41: not within 40; reached by %1 % of the runs; ")
                    .arg(row.reachedNinety * 100, 0, 'f', 1)
                + note);
    }
}

const Group group("policies", "search policies in simulated worlds, without a model", &run);

} // namespace

} // namespace klineage::bench
