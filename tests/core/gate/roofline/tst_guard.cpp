// SPDX-License-Identifier: GPL-3.0-or-later
//
// No device is needed: the ceilings are written into the store, and the worker that would measure them again does not start.
#include "core/gate/roofline/guard.h"
#include "tests/core/gate/gatefixture.h"

#include <QTemporaryDir>
#include <QTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

Environment cpu()
{
    Environment environment;
    environment.platform = "pocl";
    environment.device = "a processor";
    environment.facts = {{"compute_units", "8"}, {"opencl_platform", "Portable Computing Language"}};
    return environment;
}

Ceilings ceilingsOf(const Environment &environment)
{
    Ceilings ceilings;
    ceilings.fingerprint = fingerprintOf(environment);
    ceilings.time = "2026-11-21T12:00:00Z";
    ceilings.gateVersion = "0.1.0";
    ceilings.bandwidths = {{1e5, 90e9, 100e9, 80e9, 0.01}, {5e8, 20e9, 25e9, 18e9, 0.01}};
    ceilings.rates = {{"fp32", "multiply-add", 140e9, 150e9, 0.01, true}};
    return ceilings;
}

/// A trial of the tiny product (524288 operations, 49152 bytes) over so many sets of buffers.
Trial trialOf(double ns, int sets)
{
    Trial trial;
    trial.environment = cpu();
    trial.latencyNs = {ns, ns, ns};
    trial.verdict.evidence = {{"buffer_sets", std::to_string(sets)}};
    return trial;
}

std::string word(const std::vector<Evidence> &evidence, const std::string &name)
{
    for (const Evidence &entry : evidence) {
        if (entry.name == name)
            return entry.value;
    }
    return {};
}

class Bench
{
public:
    explicit Bench(const std::filesystem::path &directory)
        : m_compiler({"/bin/false"}, CompileCache({}))
        , m_guard({"/bin/false"}, directory)
    {}
    StageResult<void> judge(Trial &trial, const char *workload = test::smallMatmul)
    {
        return m_guard.judge(test::quickJob(test::naive(), workload), m_compiler, {}, {}, trial);
    }

private:
    CompilerSession m_compiler;
    RooflineGuard m_guard;
};

} // namespace

class TestGuard : public QObject
{
    Q_OBJECT

private slots:
    void demand();
    void nowhereToKeep();
    void cannotMeasure();
    void honest();
    void impossible();
    void nothingBounds();
};

void TestGuard::demand()
{
    const Demand demand = demandOf(test::parsed(test::smallMatmul), 10);
    QCOMPARE(demand.flops, 2. * 64 * 64 * 64);
    QCOMPARE(demand.bytes, 4. * 3 * 64 * 64);
    QCOMPARE(demand.footprintBytes, 10 * 4. * 3 * 64 * 64);
    QCOMPARE(demand.precision, std::string("fp32"));
    workload::Workload half = test::parsed(test::smallMatmul);
    half.tensors[2].dtype = kernel::DType::BF16;
    QCOMPARE(demandOf(half, 1).precision, std::string("half"));
    half.tensors[0].dtype = kernel::DType::U8;
    QCOMPARE(demandOf(half, 1).precision, std::string());
    workload::Workload loose = test::parsed(test::smallMatmul);
    loose.tolerance.relL2 = 5e-4;
    QCOMPARE(demandOf(loose, 1).precision, std::string("tf32"));
}

void TestGuard::nowhereToKeep()
{
    Trial trial = trialOf(1, 10);
    QVERIFY(Bench({}).judge(trial));
    QVERIFY(word(trial.verdict.evidence, "roofline").starts_with("not measured: "));
    QVERIFY(!trial.environment.facts.contains("roofline_bandwidth"));
}

void TestGuard::cannotMeasure()
{
    const QTemporaryDir folder;
    Trial trial = trialOf(1, 10);
    QVERIFY(Bench(folder.path().toStdString()).judge(trial));
    QVERIFY(word(trial.verdict.evidence, "roofline").starts_with("not measured: "));
}

void TestGuard::honest()
{
    const QTemporaryDir folder;
    QVERIFY(CeilingStore(folder.path().toStdString()).store(ceilingsOf(cpu())));
    Trial trial = trialOf(3300, 10); // the operations alone need 3495 ns, and 10 % is the margin
    QVERIFY(Bench(folder.path().toStdString()).judge(trial));
    QCOMPARE(word(trial.verdict.evidence, "roofline"),
             std::string("floor 3.5 µs: 524.3 kFLOP at 150 GFLOP/s of fp32 (multiply-add)"));
    QCOMPARE(trial.environment.facts.at("roofline_flops_fp32"), std::string("140000000000"));
    QCOMPARE(trial.environment.facts.at("roofline_precision"), std::string("fp32"));
}

void TestGuard::impossible()
{
    const QTemporaryDir folder;
    QVERIFY(CeilingStore(folder.path().toStdString()).store(ceilingsOf(cpu())));
    Trial trial = trialOf(1000, 10);
    const auto judged = Bench(folder.path().toStdString()).judge(trial);
    QVERIFY(!judged);
    const auto *verdict = std::get_if<Verdict>(&judged.error());
    QVERIFY(verdict);
    QCOMPARE(toString(verdict->status), "suspect");
    QCOMPARE(verdict->reason, std::string("roofline"));
    QCOMPARE(
        verdict->message,
        std::string(
            "It seems to take 1 µs, less than the 3.5 µs that this device needs at best for 524.3 kFLOP at 150 "
            "GFLOP/s of fp32 (multiply-add)."));
    QCOMPARE(word(verdict->evidence, "margin"), std::string("10 %"));
    QCOMPARE(word(verdict->evidence, "bytes"), std::string("49152"));
    QCOMPARE(word(verdict->evidence, "bandwidth"), std::string("100 GB/s"));
    QVERIFY(!verdict->hint.empty());
}

void TestGuard::nothingBounds()
{
    Ceilings ceilings = ceilingsOf(cpu());
    ceilings.bandwidths.erase(ceilings.bandwidths.begin()); // the rest is of larger footprints
    ceilings.rates.clear();
    const QTemporaryDir folder;
    QVERIFY(CeilingStore(folder.path().toStdString()).store(ceilings));
    Trial trial = trialOf(1, 10);
    QVERIFY(Bench(folder.path().toStdString()).judge(trial));
    QCOMPARE(
        word(trial.verdict.evidence, "roofline"),
        std::string(
            "no floor: no bandwidth was measured for so small a footprint; no rate bounds this arithmetic on "
            "this device"));
}

QTEST_GUILESS_MAIN(TestGuard)
#include "tst_guard.moc"
