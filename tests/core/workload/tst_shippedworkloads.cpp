// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/workload.h"

#include <QTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::workload;
namespace fs = std::filesystem;

/// What ships must be sound: every workload parses, and every candidate of its lineages has a plan for every
/// case.
class TestShippedWorkloads : public QObject
{
    Q_OBJECT

private slots:
    void parseAndRoundTrip_data();
    void parseAndRoundTrip();
    void contracts();
    void everyCandidateHasAPlanForEveryCase_data();
    void everyCandidateHasAPlanForEveryCase();

private:
    static fs::path root() { return fs::path(KLINEAGE_SOURCE_DIR) / "workloads"; }
};

void TestShippedWorkloads::parseAndRoundTrip_data()
{
    QTest::addColumn<QString>("name");
    for (const auto &entry : fs::directory_iterator(root())) {
        if (entry.is_directory())
            QTest::newRow(entry.path().filename().c_str())
                << QString::fromStdString(entry.path().filename().string());
    }
}

void TestShippedWorkloads::parseAndRoundTrip()
{
    QFETCH(QString, name);
    const Result<Workload> workload = readWorkload(root() / name.toStdString());
    QVERIFY2(workload, workload ? "" : workload.error().message.c_str());
    QCOMPARE(QString::fromStdString(workload->name), name);
    QVERIFY(workload->cases.size() >= 4);
    QCOMPARE(workload->references.empty(),
             name == "rmsnorm" || name == "silu"); // no library that is called here has one
    QVERIFY2(std::any_of(workload->cases.begin(), workload->cases.end(),
                         [](const Case &c) { return !c.drawn.empty(); }),
             "no shape is hidden");
    const std::string written = writeWorkload(*workload);
    QCOMPARE(writeWorkload(parseWorkload(written, "again").value()), written);
}

void TestShippedWorkloads::contracts()
{
    const Workload gemm = readWorkload(root() / "gemm").value();
    QCOMPARE(gemm.flops.evaluateReal(gemm.bindings(gemm.cases.front())).value(), 2.0 * 4096 * 4096 * 4096);
    for (const Case &c : gemm.cases)
        QVERIFY2(c.axes.at("K") % 8 == 0 && c.axes.at("N") % 8 == 0, c.name.c_str());
    const Workload sgemm = readWorkload(root() / "sgemm").value();
    QCOMPARE(sgemm.bytes.evaluateReal(sgemm.bindings(sgemm.cases.front())).value(), 3.0 * 4 * 768 * 768);
    const Workload softmax = readWorkload(root() / "softmax").value();
    QVERIFY(softmax.tolerance.rowSum > 0);
    const auto has = [](const Workload &workload, DistributionKind kind) {
        return std::any_of(workload.cases.begin(), workload.cases.end(), [kind](const Case &c) {
            return std::any_of(c.distributions.begin(), c.distributions.end(),
                               [kind](const auto &entry) { return entry.second.kind == kind; });
        });
    };
    QVERIFY(has(gemm, DistributionKind::Bits));
    QVERIFY(has(sgemm, DistributionKind::Bits));
    QVERIFY(has(softmax, DistributionKind::Large));
    QVERIFY(has(softmax, DistributionKind::NegInfinity));
}

void TestShippedWorkloads::everyCandidateHasAPlanForEveryCase_data()
{
    QTest::addColumn<QString>("path");
    for (const auto &entry : fs::recursive_directory_iterator(root())) {
        const std::string extension = entry.path().extension().string();
        if (extension == ".cu" || extension == ".cl")
            QTest::newRow(entry.path().lexically_relative(root()).c_str())
                << QString::fromStdString(entry.path().string());
    }
}

void TestShippedWorkloads::everyCandidateHasAPlanForEveryCase()
{
    QFETCH(QString, path);
    const fs::path file = path.toStdString();
    const auto candidate = kernel::readCandidate(file);
    QVERIFY2(candidate, candidate ? "" : candidate.error().message.c_str());
    const Workload workload = readWorkload(root() / *file.lexically_relative(root()).begin()).value();
    std::vector<Case> cases = workload.cases;
    for (const Case &c : workload.cases) {
        for (std::uint64_t i = 1; i < 40 && !c.drawn.empty(); ++i)
            cases.push_back(drawnAt(c, {{"M", 31 * i},
                                        {"N", 17 * i},
                                        {"K", 13 * i},
                                        {"R", 31 * i},
                                        {"C", 53 * i},
                                        {"H", 7 * i},
                                        {"W", 11 * i},
                                        {"F", 19 * i},
                                        {"T", 29 * i}}));
    }
    for (const Case &c : cases) {
        kernel::Bindings bindings = workload.bindings(c);
        bindings.merge(candidate->defaultTunables());
        bindings["sm_count"] = std::int64_t{132};
        bindings["warp_size"] = std::int64_t{32};
        bindings["max_shared"] = std::int64_t{232448}; // of an H200; PoCL's local memory is larger
        const auto plan = kernel::resolvePlan(*candidate, workload.buffersOf(c).value(), bindings);
        QVERIFY2(plan, plan ? "" : (c.name + ": " + plan.error().message).c_str());
    }
}

QTEST_GUILESS_MAIN(TestShippedWorkloads)
#include "tst_shippedworkloads.moc"
