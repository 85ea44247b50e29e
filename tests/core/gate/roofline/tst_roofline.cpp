// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/ceilingstore.h"
#include "core/trial/analysis/floor.h"
#include "core/trial/analysis/roof.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr double mega = 1e6;
constexpr double tera = 1e12;

/// Figures like those of an H200.
Ceilings gpu()
{
    Ceilings ceilings;
    ceilings.fingerprint = {{"platform", "sm90"}, {"device", "NVIDIA H200"}};
    ceilings.time = "2026-11-21T12:00:00Z";
    ceilings.gateVersion = "0.1.0";
    ceilings.seconds = 1.5;
    ceilings.launchNs = 1800;
    ceilings.bandwidths = {{8 * mega, 6 * tera, 7 * tera, 5 * tera, 0.01},
                           {300 * mega, 4.2 * tera, 4.4 * tera, 4.1 * tera, 0.01}};
    ceilings.rates = {{"fp32", "multiply-add", 58 * tera, 60 * tera, 0.01, true},
                      {"tf32", "wgmma", 400 * tera, 450 * tera, 0.01, true},
                      {"bf16", "wgmma", 790 * tera, 890 * tera, 0.02, true}};
    return ceilings;
}

Demand gemm()
{
    const double n = 4096;
    return {2 * n * n * n, 3 * 2 * n * n, 4 * 3 * 2 * n * n, "half"};
}

bool close(double a, double b)
{
    return std::abs(a - b) <= 1e-9 * std::abs(b);
}

} // namespace

class TestRoofline : public QObject
{
    Q_OBJECT

private slots:
    void floors_data();
    void floors();
    void margins();
    void bounds();
    void merge();
    void roundTrip();
    void refused_data();
    void refused();
    void store();
    void fingerprints();
    void recorded();
};

void TestRoofline::floors_data()
{
    QTest::addColumn<double>("flops");
    QTest::addColumn<double>("bytes");
    QTest::addColumn<double>("footprint");
    QTest::addColumn<QString>("precision");
    QTest::addColumn<double>("ns");
    QTest::addColumn<QString>("peak");

    const double gemmFlops = 2. * 4096 * 4096 * 4096;
    QTest::newRow("gemm: by its operations")
        << gemmFlops << 1e8 << 4e8 << "half" << gemmFlops / 890e12 * 1e9 << "bf16 (wgmma)";
    QTest::newRow("softmax: by its bytes, beyond the cache")
        << 1e8 << 4e9 << 8e9 << "fp32" << 4e9 / 4.4e12 * 1e9 << "three products in bf16 (wgmma)";
    QTest::newRow("within the cache") << 0. << 8e6 << 16e6 << "half" << 8e6 / 7e12 * 1e9 << "";
    QTest::newRow("f32 by three tensor products")
        << gemmFlops << 1e8 << 4e8 << "fp32" << gemmFlops * 3 / 890e12 * 1e9
        << "three products in bf16 (wgmma)";
    QTest::newRow("a precision without a rate") << gemmFlops << 0. << 0. << "fp8" << 0. << "";
    QTest::newRow("nothing said") << 0. << 0. << 0. << "" << 0. << "";
    QTest::newRow("a footprint below all measured ones") << 0. << 1e4 << 2e4 << "half" << 0. << "";
}

void TestRoofline::floors()
{
    QFETCH(double, flops);
    QFETCH(double, bytes);
    QFETCH(double, footprint);
    QFETCH(QString, precision);
    QFETCH(double, ns);
    QFETCH(QString, peak);
    const Floor floor = rooflineFloor({flops, bytes, footprint, precision.toStdString()}, gpu());
    QVERIFY2(close(floor.ns, ns) || (ns == 0 && floor.ns == 0), std::to_string(floor.ns).c_str());
    QCOMPARE(QString::fromStdString(floor.peakName), peak);
    QCOMPARE(floor.missing.empty(), floor.memoryNs > 0 && floor.computeNs > 0);
}

void TestRoofline::margins()
{
    const Floor floor = rooflineFloor(gemm(), gpu());
    QCOMPARE(floor.margin, 0.05);
    QVERIFY(!isBelow(2. * 4096 * 4096 * 4096 / 790e12 * 1e9, floor)); // as fast as the vendor's
    QVERIFY(!isBelow(floor.ns * 0.951, floor));
    QVERIFY(isBelow(floor.ns * 0.949, floor));
    QVERIFY(!isBelow(0, floor));
    QVERIFY(!isBelow(1, Floor{}));
    Ceilings wide = gpu();
    wide.rates[2].spread = 0.12;
    QCOMPARE(rooflineFloor(gemm(), wide).margin, 0.12);
    Ceilings cpu = gpu();
    cpu.fingerprint["platform"] = "pocl";
    QCOMPARE(rooflineFloor(gemm(), cpu).margin, 0.10);
    Ceilings newer = gpu();
    newer.rates[2].isBound = false; // faster instructions exist, so operations bound nothing
    QCOMPARE(rooflineFloor(gemm(), newer).computeNs, 0.);
}

void TestRoofline::bounds()
{
    const Ceilings ceilings = gpu();
    QVERIFY(!ceilings.boundFor(1 * mega));
    QCOMPARE(ceilings.boundFor(8 * mega)->footprintBytes, 8 * mega);
    QCOMPARE(ceilings.boundFor(299 * mega)->footprintBytes, 8 * mega);
    QCOMPARE(ceilings.boundFor(5000 * mega)->footprintBytes, 300 * mega);
    QCOMPARE(ceilings.nearest(1 * mega)->footprintBytes, 8 * mega);
    QCOMPARE(ceilings.nearest(200 * mega)->footprintBytes, 300 * mega);
    Ceilings odd = ceilings; // a larger footprint that went faster: the smaller one was measured badly
    odd.bandwidths[1].copy = 9 * tera;
    QCOMPARE(odd.boundFor(8 * mega)->footprintBytes, 300 * mega);
}

void TestRoofline::merge()
{
    Ceilings later = gpu();
    later.time = "2026-11-22T12:00:00Z";
    later.launchNs = 2100;
    later.bandwidths[1].copy = 4 * tera;
    later.rates[2].perSecond = 795 * tera;
    later.rates[2].limit = 850 * tera;
    later.rates.erase(later.rates.begin());
    const Ceilings merged = mergeCeilings(gpu(), later);
    QCOMPARE(merged.time, later.time);
    QCOMPARE(merged.launchNs, 1800.);
    QCOMPARE(merged.bandwidths[1].copy, 4.2 * tera);
    QCOMPARE(merged.rate("bf16")->perSecond, 795 * tera);
    QCOMPARE(merged.rate("bf16")->limit, 890 * tera);
    QVERIFY(merged.rate("fp32"));
}

void TestRoofline::roundTrip()
{
    const std::string text = writeCeilings(gpu());
    const auto read = parseCeilings(text, "here");
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    QCOMPARE(writeCeilings(*read), text);
}

void TestRoofline::refused_data()
{
    QTest::addColumn<QByteArray>("from");
    QTest::addColumn<QByteArray>("to");
    QTest::newRow("not JSON") << QByteArray("{") << QByteArray("");
    QTest::newRow("unknown key") << QByteArray("\"time\"") << QByteArray("\"tiem\"");
    QTest::newRow("no number") << QByteArray("1800.0") << QByteArray("\"fast\"");
    QTest::newRow("a limit below the rate") << QByteArray("890000000000000.0") << QByteArray("1.0");
    QTest::newRow("no bandwidth") << QByteArray("8000000.0") << QByteArray("-1.0");
}

void TestRoofline::refused()
{
    QFETCH(QByteArray, from);
    QFETCH(QByteArray, to);
    QByteArray text = QByteArray::fromStdString(writeCeilings(gpu()));
    QVERIFY(text.contains(from));
    text.replace(text.indexOf(from), from.size(), to);
    QVERIFY(!parseCeilings(text.toStdString(), "here"));
}

void TestRoofline::store()
{
    const QTemporaryDir folder;
    const CeilingStore store(folder.path().toStdString() + "/roofline");
    QVERIFY(!store.find(gpu().fingerprint));
    QVERIFY(store.store(gpu()));
    Ceilings other = gpu();
    other.fingerprint["driver"] = "2";
    other.time = "2026-11-22T12:00:00Z";
    QVERIFY(store.store(other));
    QCOMPARE(store.find(gpu().fingerprint)->time, gpu().time);
    QCOMPARE(store.all().size(), std::size_t{2});
    QCOMPARE(store.all().front().time, other.time);

    for (const auto &entry : std::filesystem::directory_iterator(store.directory())) {
        QFile file(QString::fromStdString(entry.path().string()));
        QVERIFY(file.open(QIODevice::ReadWrite));
        file.resize(file.size() / 2);
    }
    QVERIFY(!store.find(gpu().fingerprint));
    QVERIFY(store.all().empty());
    QVERIFY(CeilingStore({}).store(gpu()));
    QVERIFY(!CeilingStore({}).find(gpu().fingerprint));
}

void TestRoofline::fingerprints()
{
    Environment environment;
    environment.platform = "sm90";
    environment.device = "NVIDIA H200";
    environment.facts = {
        {"driver", "580"}, {"temperature_c", "40"}, {"sm_count", "132"}, {"compiler", "nvrtc 13.0"}};
    const Fingerprint first = fingerprintOf(environment);
    environment.facts["temperature_c"] = "60";
    environment.facts["compiler"] = "nvrtc 13.1";
    QVERIFY(fingerprintOf(environment) == first);
    environment.facts["driver"] = "590";
    QVERIFY(fingerprintOf(environment) != first);
    environment.facts = {{"opencl_platform", "Portable Computing Language"}, {"compiler", "pocl 3.1"}};
    const Fingerprint cpu = fingerprintOf(environment);
    environment.facts["compiler"] = "pocl 5.0";
    QVERIFY(fingerprintOf(environment) != cpu);
}

void TestRoofline::recorded()
{
    Environment environment;
    QVERIFY(!recordedRoof(environment));
    recordRoof(gpu(), 1e9, "half", environment);
    const auto roof = recordedRoof(environment);
    QVERIFY(roof);
    QCOMPARE(roof->bandwidth, 4.2 * tera);
    QCOMPARE(roof->peak, 790 * tera);
    QCOMPARE(roof->peakName, std::string("bf16"));
    QCOMPARE(roof->fp32, 58 * tera);
    QCOMPARE(roof->launchNs, 1800.);
    environment.facts["roofline_bandwidth"] = "much";
    QCOMPARE(recordedRoof(environment)->bandwidth, 0.);
}

QTEST_GUILESS_MAIN(TestRoofline)
#include "tst_roofline.moc"
