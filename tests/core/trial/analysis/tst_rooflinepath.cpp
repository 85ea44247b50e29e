// SPDX-License-Identifier: GPL-3.0-or-later
// A chain of states under the device's ceilings.
#include "core/trial/analysis/explain/rooflinepath.h"

#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::gate;

namespace {

/// 100 MFLOP and 1 MB at least, in so many µs; counted > 0: so many bytes were.
Trial trialOf(double us, double counted)
{
    Trial trial;
    trial.surface = kernel::Surface::Cuda;
    trial.environment = {"sm90",
                         "NVIDIA H200",
                         {{"roofline_bandwidth", "4e12"},
                          {"roofline_footprint", "314572800"},
                          {"roofline_precision", "half"},
                          {"roofline_flops_bf16", "9e14"},
                          {"roofline_flops_fp32", "6e13"},
                          {"roofline_measured", "2026-11-21T20:47:19.405Z"}}};
    trial.verdict.status = VerdictStatus::Correct;
    trial.latencyNs = {us * 1e3, us * 1e3, us * 1e3};
    trial.achievedFlops = 1e8 / (us * 1e-6);
    trial.achievedBytes = 1e6 / (us * 1e-6);
    if (counted > 0)
        trial.metrics.push_back({"dram_bytes", counted, "B", "gemm"});
    return trial;
}

} // namespace

class TestRooflinePath : public QObject
{
    Q_OBJECT

private slots:
    void countedBytesMoveAPoint()
    {
        const Trial first = trialOf(200, 4e6);
        const Trial second = trialOf(100, 2e6);
        const RooflinePath path = rooflinePath({{"K00", &first}, {"K01", &second}}, "K01");
        QVERIFY(path.missing.empty() && path.notices.empty());
        QCOMPARE(path.bytes, RooflineBytes::Counted);
        QCOMPARE(path.points.size(), std::size_t(2));
        QVERIFY(std::abs(path.points[0].intensity - 25) < 1e-9);
        QVERIFY(std::abs(path.points[1].intensity - 50) < 1e-9);
        QVERIFY(std::abs(path.points[1].perSecond - 1e12) < 1);
        QCOMPARE(path.ceilings.size(), std::size_t(3));
        QVERIFY(path.ceilings[0].isBandwidth);
        QCOMPARE(path.ceilings[0].source, std::string("measured on 2026-11-21 over 314.6 MB"));
        QCOMPARE(path.ceilings[1].name, std::string("bf16"));
        QCOMPARE(path.ceilings[2].name, std::string("fp32"));
        QCOMPARE(path.ceilingsOf, std::string("K01"));
    }

    /// A path of two kinds of bytes is one that nobody went.
    void oneKindOfBytesForAll()
    {
        const Trial first = trialOf(200, 0);
        const Trial second = trialOf(100, 2e6);
        const RooflinePath path = rooflinePath({{"K00", &first}, {"K01", &second}}, "K01");
        QCOMPARE(path.bytes, RooflineBytes::Least);
        for (const RooflinePoint &point : path.points)
            QVERIFY(std::abs(point.intensity - 100) < 1e-9);
        QCOMPARE(path.notices.size(), std::size_t(1));
        QVERIFY(path.notices[0].find("K00 have none") != std::string::npos);
    }

    void whatHasNoPlaceIsNamed()
    {
        const Trial good = trialOf(200, 4e6);
        Trial wrong = trialOf(100, 2e6);
        wrong.verdict.status = VerdictStatus::Wrong;
        Trial elsewhere = trialOf(100, 2e6);
        elsewhere.environment.device = "NVIDIA A100";
        const RooflinePath path =
            rooflinePath({{"K00", &good}, {"K01", &wrong}, {"K02", &elsewhere}, {"K03", nullptr}}, "K00");
        QCOMPARE(path.points.size(), std::size_t(1));
        QCOMPARE(path.notices[0], std::string("Left out: K01 and K03 (not timed)."));
        QCOMPARE(path.notices[1], std::string("Left out: K02 (measured on another device)."));
    }

    /// Ceilings of the selected state, else of the last that has some.
    void ceilingsAreTheSelectedStates()
    {
        Trial first = trialOf(200, 4e6);
        first.environment.facts["roofline_flops_bf16"] = "8e14";
        const Trial second = trialOf(100, 2e6);
        Trial bare = trialOf(50, 1e6);
        bare.environment.facts.clear();
        const std::vector<ChainedTrial> chain = {{"K00", &first}, {"K01", &second}, {"K02", &bare}};
        QCOMPARE(rooflinePath(chain, "K00").ceilings[1].perSecond, 8e14);
        QCOMPARE(rooflinePath(chain, "K02").ceilingsOf, std::string("K01"));
        QCOMPARE(rooflinePath(chain, "").ceilings[1].perSecond, 9e14);
        const RooflinePath none = rooflinePath({{"K02", &bare}}, "K02");
        QVERIFY(none.points.empty());
        QVERIFY(none.missing.find("what its device can do at most") != std::string::npos);
    }

    void bothIntensitiesOfATrial()
    {
        QCOMPARE(bothIntensities(trialOf(200, 4e6)),
                 std::string(
                     "By the fewest bytes that the workload needs it has 100 FLOP/B, by the bytes that were "
                     "counted in device memory 25 FLOP/B."));
        QVERIFY(bothIntensities(trialOf(200, 0)).empty());
    }

    void aWorkloadWithoutOperationsSaysSo()
    {
        Trial moves = trialOf(100, 0);
        moves.achievedFlops = 0;
        QVERIFY(rooflinePath({{"K00", &moves}}, "K00").missing.find("no floating-point operations")
                != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestRooflinePath)
#include "tst_rooflinepath.moc"
