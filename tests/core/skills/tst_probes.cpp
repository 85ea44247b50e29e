// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/probes.h"

#include <QTest>

using namespace klineage;
using namespace klineage::skills;

class TestProbes : public QObject
{
    Q_OBJECT

private slots:
    void aTrialShowsRefutesOrSaysNothing_data()
    {
        QTest::addColumn<QString>("status");
        QTest::addColumn<QString>("change"); // against the parent; empty: there was none
        QTest::addColumn<QStringList>("expected");
        QTest::addColumn<QString>("outcome");
        QTest::addColumn<QString>("says");
        const auto row = [](const char *name, const char *status, const char *change,
                            const QStringList &expected, const char *outcome, const char *says) {
            QTest::newRow(name) << status << change << expected << outcome << says;
        };
        row("as the risk says", "wrong", "", {"wrong"}, "wrong", "shows");
        row("one of several", "crash", "", {"wrong", "crash"}, "crash", "shows");
        row("in another way", "compile_error", "", {"wrong"}, "compile_error", "nothing");
        row("right all the same", "correct", "", {"wrong"}, "correct", "refutes");
        row("right, and timed", "correct", "undecided", {"wrong"}, "undecided", "refutes");
        row("a loss", "correct", "loss", {"loss"}, "loss", "shows");
        row("no gain may be a loss", "correct", "no_gain", {"loss"}, "no_gain", "nothing");
        row("a loss is no gain", "correct", "loss", {"no_gain"}, "loss", "shows");
        row("no gain", "correct", "no_gain", {"loss", "no_gain"}, "no_gain", "shows");
        row("a gain", "correct", "gain", {"loss"}, "gain", "refutes");
        row("undecided", "correct", "undecided", {"loss"}, "undecided", "nothing");
        row("no parent", "correct", "", {"loss"}, "correct", "nothing");
    }

    void aTrialShowsRefutesOrSaysNothing()
    {
        QFETCH(QString, status);
        QFETCH(QString, change);
        QFETCH(QStringList, expected);
        QFETCH(QString, outcome);
        QFETCH(QString, says);
        gate::Trial trial;
        trial.verdict.status = gate::verdictStatusFromString(status.toStdString()).value();
        if (!change.isEmpty()) {
            gate::Comparison comparison;
            comparison.against = "parent";
            comparison.change = gate::changeFromString(change.toStdString()).value();
            trial.verdict.comparisons.push_back(comparison);
        }
        std::vector<std::string> words;
        for (const QString &word : expected)
            words.push_back(word.toStdString());
        const Finding finding = findingOf(trial, words);
        QCOMPARE(QString::fromStdString(finding.outcome), outcome);
        QCOMPARE(finding.refutes, says == QString("refutes"));
        QCOMPARE(finding.problem.empty(), says != QString("nothing"));
    }
};

QTEST_GUILESS_MAIN(TestProbes)
#include "tst_probes.moc"
