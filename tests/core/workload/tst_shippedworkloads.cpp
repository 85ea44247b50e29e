// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/candidatetext.h"
#include "core/workload/workload.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <fstream>
#include <set>

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
    void heldOutInstances_data();
    void heldOutInstances();
    void everyCandidateHasAPlanForEveryCase_data();
    void everyCandidateHasAPlanForEveryCase();

private:
    static fs::path root() { return fs::path(klineage::test::sourcePath()) / "workloads"; }
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
             name == "rmsnorm" || name == "silu" || name == "linear" || name.endsWith("sgemm-bias")
                 || name.contains("sgemm-bias-")
                 || name.startsWith("gdn-")); // no library that is called here has one
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

void TestShippedWorkloads::heldOutInstances_data()
{
    QTest::addColumn<QStringList>("names");
    const auto add = [](const char *operatorName, const QStringList &shapes) {
        QStringList names;
        for (const QString &shape : shapes)
            names << QString("heldout-%1-%2").arg(operatorName, shape);
        QTest::newRow(operatorName) << names;
    };
    add("mm", {"2048", "4096", "8192"});
    add("addmm", {"4096"});
    add("bmm", {"16x2048", "32x1024"});
    add("grouped-gemm", {"4", "8"});
    add("attention-causal", {"4x1024", "2x4096", "1x8192"});
    add("attention", {"2x2048"});
    add("gqa", {"2x2048", "1x4096"});
    add("rmsnorm", {"16384x4096", "8192x8192", "32768x2048"});
    add("layernorm", {"16384x4096", "8192x8192"});
    add("softmax", {"16384x4096", "131072x1024"});
    add("add-rmsnorm", {"16384x4096"});
}

/// Instances of one operator differ in their name, title and timed shape alone, their roots not at all.
void TestShippedWorkloads::heldOutInstances()
{
    QFETCH(const QStringList, names);
    std::set<std::string> rest;
    std::set<std::string> roots;
    std::set<std::map<std::string, std::int64_t>> shapes;
    for (const QString &name : names) {
        Workload workload = readWorkload(root() / name.toStdString()).value();
        QVERIFY(!fs::exists(workload.directory / "lineages"));
        QVERIFY(!workload.tolerance.reason.empty());
        shapes.insert(workload.cases.front().axes);
        workload.cases.front().axes = workload.cases[1].axes;
        workload.name = workload.title = "instance";
        rest.insert(writeWorkload(workload));
        roots.insert(kernel::readCandidateText(workload.directory / "root.cu").value());
    }
    QCOMPARE(shapes.size(), static_cast<std::size_t>(names.size()));
    QCOMPARE(rest.size(), std::size_t{1});
    QCOMPARE(roots.size(), std::size_t{1});
}

namespace {

/// Whether the gate refused the plan of an attempt: a probe may be just that.
bool isRefused(const fs::path &file)
{
    std::ifstream trials(file.parent_path().parent_path() / "trials.jsonl");
    const std::string name = "\"file\":\"branches/" + file.filename().string() + '"';
    for (std::string line; std::getline(trials, line);) {
        if (line.find(name) != std::string::npos && line.find("\"reason\":\"bad_plan\"") != std::string::npos)
            return true;
    }
    return false;
}

} // namespace

void TestShippedWorkloads::everyCandidateHasAPlanForEveryCase_data()
{
    QTest::addColumn<QString>("path");
    std::set<fs::path> files;
    for (const auto &entry : fs::recursive_directory_iterator(root())) {
        const std::string extension = entry.path().extension().string();
        if (extension == ".cu" || extension == ".cl")
            files.insert(entry.path());
    }
    // Under the sanitizers one in four: they read alike.
    int number = 0;
    for (const fs::path &file : files) {
        if (!klineage::test::isSanitized() || number++ % 4 == 0)
            QTest::newRow(file.lexically_relative(root()).c_str()) << QString::fromStdString(file.string());
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
                                        {"T", 29 * i},
                                        {"B", i},
                                        {"G", i}}));
    }
    const bool refused = isRefused(file);
    bool hasAll = true;
    for (const Case &c : cases) {
        kernel::Bindings bindings = workload.bindings(c);
        bindings.merge(candidate->defaultTunables());
        bindings["sm_count"] = std::int64_t{132};
        bindings["warp_size"] = std::int64_t{32};
        bindings["max_shared"] = std::int64_t{232448}; // of an H200; PoCL's local memory is larger
        const auto plan = kernel::resolvePlan(*candidate, workload.buffersOf(c).value(), bindings);
        hasAll = hasAll && plan;
        QVERIFY2(plan || refused, plan ? "" : (c.name + ": " + plan.error().message).c_str());
    }
    QVERIFY(hasAll != refused);
}

QTEST_GUILESS_MAIN(TestShippedWorkloads)
#include "tst_shippedworkloads.moc"
