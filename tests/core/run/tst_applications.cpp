// SPDX-License-Identifier: GPL-3.0-or-later
// What came of cards, counted from the experiments that ship.
#include "core/run/applications.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <fstream>

using namespace klineage;
using namespace klineage::run;

namespace {

gate::Interval factor(double value)
{
    return {value, value - 0.01, value + 0.02};
}

} // namespace

class TestApplications : public QObject
{
    Q_OBJECT

    QTemporaryDir m_folder;

    /// A workspace with the experiments that ship: their runs are whole.
    [[nodiscard]] std::filesystem::path recorded() const { return m_folder.path().toStdString(); }

private slots:
    void initTestCase()
    {
        std::filesystem::create_directory_symlink(std::filesystem::path(klineage::test::sourcePath())
                                                      / "tests/data/experiments",
                                                  recorded() / "experiments");
    }

    void theShippedRunsAreCounted()
    {
        const ApplicationRecord record = readApplications(recorded(), {});
        QVERIFY2(record.problems.empty(),
                 record.problems.empty() ? "" : record.problems.front().message.c_str());
        QVERIFY(record.runs > 50);
        const CardApplications *card = record.find("tma-store-epilogue");
        QVERIFY(card);
        QVERIFY(card->shown() > 0 && card->applied() > 0);
        for (const auto &[name, one] : record.cards) {
            int applied = 0;
            for (const PlatformRecord &platform : one.platforms) {
                QCOMPARE(platform.gained + platform.noGain + platform.lost + platform.undecided
                             + platform.wrong,
                         platform.applied);
                QVERIFY(platform.together <= platform.applied);
                QVERIFY(platform.factor.count <= platform.applied - platform.together);
                if (platform.factor.count > 0)
                    QVERIFY(platform.factor.low <= platform.factor.median
                            && platform.factor.median <= platform.factor.high);
                applied += platform.applied;
            }
            QCOMPARE(one.applied(), applied);
        }
    }

    /// Every application names a trial of the run, and its factor is that trial's paired comparison.
    void figuresAreThoseOfTheTrials()
    {
        const ApplicationRecord record = readApplications(recorded(), {});
        int checked = 0;
        for (const auto &folder : runFolders(recorded())) {
            const Result<RunRecord> run = readRun(folder);
            QVERIFY(run);
            for (const StepRecord &step : run->steps) {
                if (step.cards.empty() || step.trial.empty()
                    || (step.action != "complete" && step.action != "repair" && step.action != "roundtrip"))
                    continue;
                const auto &all = record.find(step.cards.front())->applications;
                const auto one = std::find_if(all.begin(), all.end(), [&](const Application &application) {
                    return application.trial == step.trial;
                });
                QVERIFY(one != all.end());
                QCOMPARE(one->run, run->settings.id);
                QCOMPARE(one->cards, static_cast<int>(step.cards.size()));
                const auto trial = std::find_if(run->trials.begin(), run->trials.end(),
                                                [&](const gate::Trial &t) { return t.id == step.trial; });
                const gate::Comparison *paired = trial->comparison("parent");
                const bool isCorrect = trial->verdict.status == gate::VerdictStatus::Correct;
                QCOMPARE(one->outcome == CardOutcome::Wrong, !isCorrect);
                if (isCorrect && paired)
                    QCOMPARE(one->factor->value, paired->speedup.value);
                ++checked;
            }
        }
        QVERIFY(checked >= 15);
    }

    /// A run's roundtrip and the card's line about it are one.
    void theCardsLogIsCountedOnce()
    {
        const ApplicationRecord runs = readApplications(recorded(), {});
        const auto applied = std::find_if(runs.cards.begin(), runs.cards.end(),
                                          [](const auto &card) { return card.second.applied() > 0; });
        QVERIFY(applied != runs.cards.end());
        const std::string name = applied->first;
        const CardApplications *before = &applied->second;
        skills::Verification same;
        same.target = "softmax/pocl/K00";
        same.trial = before->applications.back().trial;
        same.status = "correct";
        skills::Verification other = same;
        other.trial = "00000000000000ff";
        other.target = "layernorm/cpu9/K00";
        other.factor = 1.5;
        other.low = 1.4;
        other.high = 1.6;
        const ApplicationRecord both = readApplications(recorded(), {{name, {same, other}}});
        QCOMPARE(both.find(name)->applied(), before->applied() + 1);
        const PlatformRecord &last = both.find(name)->platforms.front();
        QCOMPARE(last.platform, std::string("cpu9"));
        QCOMPARE(last.gained, 1);
        QCOMPARE(last.factor.median, 1.5);
        QVERIFY(!last.factor.isSpan);
    }

    void outcomesOfALog_data()
    {
        QTest::addColumn<std::string>("status");
        QTest::addColumn<bool>("observed");
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::addColumn<std::string>("outcome");
        QTest::newRow("gain") << std::string("correct") << false << 1.1 << 1.2 << std::string("gained");
        QTest::newRow("observed, no figure")
            << std::string("correct") << true << 0.0 << 0.0 << std::string("gained");
        QTest::newRow("holds 1") << std::string("correct") << false << 0.9 << 1.1 << std::string("no_gain");
        QTest::newRow("slower") << std::string("correct") << false << 0.8 << 0.9 << std::string("lost");
        QTest::newRow("no figure") << std::string("correct") << false << 0.0 << 0.0
                                   << std::string("undecided");
        QTest::newRow("wrong") << std::string("wrong") << false << 1.1 << 1.2 << std::string("wrong");
    }

    void outcomesOfALog()
    {
        QFETCH(std::string, status);
        QFETCH(bool, observed);
        QFETCH(double, low);
        QFETCH(double, high);
        QFETCH(std::string, outcome);
        skills::Verification line;
        line.target = "w/p/K00";
        line.trial = "00000000000000ff";
        line.status = status;
        line.expectedEffectObserved = observed;
        line.factor = (low + high) / 2;
        line.low = low;
        line.high = high;
        const QTemporaryDir empty;
        const ApplicationRecord record = readApplications(empty.path().toStdString(), {{"card", {line}}});
        QCOMPARE(record.runs, 0);
        QCOMPARE(std::string(toString(record.find("card")->applications.front().outcome)), outcome);
        QVERIFY(!record.find("another"));
    }

    void mediansHaveIntervals()
    {
        QCOMPARE(medianFactor({}).count, 0);
        const MedianFactor one = medianFactor({factor(1.2)});
        QCOMPARE(one.low, 1.2 - 0.01);
        QVERIFY(!one.isSpan);
        const MedianFactor two = medianFactor({factor(1.4), factor(1.2)});
        QCOMPARE(two.median, 1.3);
        QVERIFY(two.isSpan && two.low == 1.2 - 0.01 && two.high == 1.4 + 0.02);
        std::vector<gate::Interval> six;
        for (int i = 0; i < 6; ++i)
            six.push_back(factor(1 + 0.1 * i));
        const MedianFactor all = medianFactor(six); // the least and the greatest hold the median with 96.9 %
        QVERIFY(!all.isSpan && all.low == 1 && all.high == six.back().value);
        std::vector<gate::Interval> nine;
        for (int i = 0; i < 9; ++i)
            nine.push_back(factor(1 + 0.1 * i));
        QCOMPARE(medianFactor(nine).low, nine[1].value); // 96.1 %
        QCOMPARE(medianFactor(nine).high, nine[7].value);
        const MedianFactor many = medianFactor(std::vector<gate::Interval>(5000, factor(1.1)));
        QCOMPARE(many.low, 1.1);
    }

    void whatCannotBeReadIsSaid()
    {
        const QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        std::filesystem::create_directories(root / "runs/broken");
        std::ofstream(root / "runs/broken/run.toml") << "id = ";
        QVERIFY(applicationsStamp(root).empty());
        std::ofstream(root / "runs/broken/steps.jsonl") << "{";
        const std::string stamp = applicationsStamp(root);
        QVERIFY(!stamp.empty());
        const ApplicationRecord record = readApplications(root, {});
        QCOMPARE(record.problems.size(), std::size_t(1));
        QCOMPARE(record.runs, 0);
    }
};

QTEST_GUILESS_MAIN(TestApplications)
#include "tst_applications.moc"
