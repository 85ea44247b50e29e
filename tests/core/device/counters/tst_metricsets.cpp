// SPDX-License-Identifier: GPL-3.0-or-later
//
// CUPTI describes the counters of every chip without a device, so the sets are checked wherever libcupti is installed.
#include "core/device/counters/metrichost.h"
#include "core/trial/metricnames.h"

#include <QTest>

#include <algorithm>
#include <limits>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::gate::counters;

class TestMetricSets : public QObject
{
    Q_OBJECT

private slots:
    void namesAreUnique()
    {
        std::set<std::string> names;
        for (const MetricSet &set : metricSets()) {
            QVERIFY(findMetricSet(set.name) == &set);
            for (const CounterMetric &metric : set.metrics) {
                QVERIFY2(names.insert(metric.name).second, metric.name);
                QVERIFY2(!metric.chipMetrics.empty(), metric.name);
                QVERIFY2(std::string(metric.name).find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789")
                             == std::string::npos,
                         metric.name);
            }
        }
        QVERIFY(findMetricSet("sm__throughput") == nullptr);
    }

    void everyMetricIsOnTheChip_data()
    {
        QTest::addColumn<QString>("chip");
        QTest::addColumn<QStringList>("without"); ///< metrics that the chip really does not have
        QTest::newRow("Ampere, GA100") << "GA100" << QStringList{"stall_gmma", "tensor_ops_fp8"};
        QTest::newRow("Ada, AD102") << "AD102" << QStringList{"stall_gmma"};
        QTest::newRow("Hopper, GH100") << "GH100" << QStringList{};
        QTest::newRow("Blackwell, GB100") << "GB100" << QStringList{"stall_gmma", "tensor_ops_fp8"};
        QTest::newRow("Blackwell, GB202") << "GB202" << QStringList{"stall_gmma"};
    }

    void everyMetricIsOnTheChip()
    {
        QFETCH(QString, chip);
        QFETCH(QStringList, without);
        const auto host = MetricHost::open(chip.toStdString());
        if (!host)
            QSKIP(host.error().message.c_str());
        QStringList missing;
        for (const MetricSet &set : metricSets()) {
            const auto configuration = host->configure(set);
            QVERIFY2(configuration.has_value(), configuration ? "" : configuration.error().message.c_str());
            for (const CounterMetric &metric : set.metrics) {
                if (std::find(configuration->metrics.begin(), configuration->metrics.end(), &metric)
                    == configuration->metrics.end())
                    missing += metric.name;
            }
        }
        missing.sort();
        without.sort();
        QCOMPARE(missing, without);
    }

    void passesAreAsDocumented()
    {
        const auto version = cuptiVersion();
        if (!version)
            QSKIP(version.error().message.c_str());
        for (const MetricSet &set : metricSets()) {
            for (const auto &[chip, passes] : set.passes) {
                const auto host = MetricHost::open(std::string(chip));
                QVERIFY2(host.has_value(), host ? "" : host.error().message.c_str());
                const auto configuration = host->configure(set);
                QVERIFY(configuration.has_value());
                // Another release of CUPTI may schedule them otherwise, but the first set is always read in one run.
                if (set.name == "essential" || *version / 1000 == 130)
                    QCOMPARE(std::string(chip) + " " + std::string(set.name) + " "
                                 + std::to_string(configuration->passes),
                             std::string(chip) + " " + std::string(set.name) + " " + std::to_string(passes));
            }
        }
    }

    void anUnknownChipIsAnError()
    {
        const auto host = MetricHost::open("GX999");
        QVERIFY(!host.has_value());
        QCOMPARE(host.error().code, ErrorCode::Unavailable);
    }

    void launchesAreCombined()
    {
        const CounterMetric bytes{"dram_bytes", "B", Kind::Amount, {"a"}};
        const CounterMetric hits{"l2_hit_rate", "%", Kind::Rate, {"b"}};
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const std::vector<LaunchMetrics> launches = {{"split", 300, {{&bytes, 10}, {&hits, 80}}},
                                                     {"reduce", 50, {{&bytes, 4}, {&hits, nan}}},
                                                     {"split", 100, {{&bytes, 20}, {&hits, 40}}}};
        const std::vector<Metric> metrics = combineLaunches(launches);
        QCOMPARE(metrics.size(), std::size_t{3});
        QCOMPARE(metrics[0].kernel, std::string("split"));
        QCOMPARE(metrics[0].value, 30.0);
        QCOMPARE(metrics[0].unit, std::string("B"));
        QCOMPARE(metrics[1].name, std::string("l2_hit_rate"));
        QCOMPARE(metrics[1].value, 70.0); // (300 · 80 + 100 · 40) / 400
        QCOMPARE(metrics[2].kernel, std::string("reduce"));
        QVERIFY(combineLaunches({}).empty());
    }
};

QTEST_GUILESS_MAIN(TestMetricSets)
#include "tst_metricsets.moc"
