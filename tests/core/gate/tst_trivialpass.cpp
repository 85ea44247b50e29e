// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/shapes.h"
#include "core/gate/check/trivialpass.h"

#include "gatefixture.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <set>

using namespace klineage;
using namespace klineage::gate;
namespace fs = std::filesystem;

namespace {

/// y = oracle(x) for a column of 64 rows, with an input and an output of these types.
std::string oneInput(const std::string &oracle, const std::string &distribution, const std::string &shape,
                     const std::string &dtype = "f32")
{
    return "name = \"w\"\naxes = [\"R\", \"C\"]\nflops = \"R\"\nbytes = \"R\"\n"
           "[[tensor]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f32\"\nshape = [\"R\", \"C\"]\ndistribution = "
           + distribution + "\n[[tensor]]\nname = \"y\"\nrole = \"output\"\ndtype = \"" + dtype
           + "\"\nshape = " + shape
           + "\n[[case]]\nname = \"timed\"\naxes = { R = 64, C = 50 }\n[oracle]\nname = \"" + oracle
           + "\"\nargs = { in = \"x\", out = \"y\" }\n";
}

std::optional<std::string> passOf(const workload::Workload &workload, const workload::Case &c)
{
    const auto instance = makeInstance(workload, c, 3);
    if (!instance)
        qFatal("%s", instance.error().message.c_str());
    return trivialPass((*instance)->tensors, (*instance)->expected, (*instance)->tolerance);
}

/// What passes in each of the cases that take a moment; a timed case that takes longer is made smaller.
std::vector<std::optional<std::string>> passesOf(const workload::Workload &workload)
{
    const double slower = klineage::test::isSanitized() ? 10 : 1;
    const double mostFlops = 2e8 / slower;
    const double mostBytes = 2e7 / slower; // of what can be made smaller
    const auto isQuick = [&](const workload::Case &c) {
        return workload.flops.evaluateReal(workload.bindings(c)).value_or(0) <= mostFlops;
    };
    const auto isSmall = [&](const workload::Case &c) {
        return isQuick(c) && workload.bytes.evaluateReal(workload.bindings(c)).value_or(0) <= mostBytes;
    };
    std::vector<std::optional<std::string>> passes;
    for (const workload::Case &c : workload.cases) {
        workload::Case quick = drawCase(c, 5);
        for (int halvings = 0; halvings < 6 && &c == &workload.cases.front() && !isSmall(quick); ++halvings) {
            for (auto &[axis, extent] : quick.axes)
                extent = extent >= 256 ? extent / 2 : extent;
        }
        if (!isQuick(quick))
            continue;
        if (const auto instance = makeInstance(workload, quick, 3))
            passes.push_back(
                trivialPass((*instance)->tensors, (*instance)->expected, (*instance)->tolerance));
    }
    return passes;
}

/// The oracle, and the types that it reads and writes.
std::string kindOf(const workload::Workload &workload)
{
    std::string kind = workload.oracle;
    for (const workload::Tensor &tensor : workload.tensors)
        kind += std::string(" ") + kernel::toString(tensor.dtype);
    return kind;
}

} // namespace

class TestTrivialPass : public QObject
{
    Q_OBJECT
private slots:
    void refused_data();
    void refused();
    void zerosAndUntouched();
    void everyOutputCounts();
    void workloadsOfTheRepository_data();
    void workloadsOfTheRepository();
    void theSupervisorRefuses();
    void shapesFollowFromTheSeed();
};

void TestTrivialPass::refused_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("pass"); // empty: the work has to be done
    const auto row = [](const char *name, const std::string &text, const char *pass) {
        QTest::newRow(name) << QString::fromStdString(text) << pass;
    };
    row("sums of nearly equal numbers",
        oneInput("sum_rows", "{ kind = \"normal\", mean = 1.0, stddev = 1e-4 }", "[\"R\"]", "bf16"),
        "y passes as the mean of the result everywhere");
    row("sums of other numbers", oneInput("sum_rows", "{ kind = \"normal\" }", "[\"R\"]", "bf16"), "");
    row("silu where it is the identity",
        oneInput("silu", "{ kind = \"normal\", mean = 500.0 }", "[\"R\", \"C\"]"), "y passes as a copy of x");
    row("silu where it is the identity, in another type",
        oneInput("silu", "{ kind = \"normal\", mean = 500.0 }", "[\"R\", \"C\"]", "bf16"),
        "y passes as the mean of the result everywhere");
    row("silu", oneInput("silu", "{ kind = \"normal\" }", "[\"R\", \"C\"]"), "");
    row("softmax of equal numbers",
        oneInput("softmax_rows", "{ kind = \"uniform\", low = 0.0, high = 1e-9 }", "[\"R\", \"C\"]"),
        "y passes as the mean of the result everywhere");
    row("softmax", oneInput("softmax_rows", "{ kind = \"normal\" }", "[\"R\", \"C\"]"), "");
}

void TestTrivialPass::refused()
{
    QFETCH(QString, text);
    const workload::Workload workload = test::parsed(text.toUtf8().constData());
    QTEST(QString::fromStdString(passOf(workload, workload.cases.front()).value_or("")), "pass");
}

void TestTrivialPass::zerosAndUntouched()
{
    const HostTensor y{"y", workload::Role::Output, kernel::DType::F32, {3}, {}};
    const auto pass = [&y](std::vector<double> expected) {
        return QString::fromStdString(trivialPass({y}, {{"y", std::move(expected)}}, {}).value_or(""));
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    QCOMPARE(pass({0, 0, 0}), QString("y passes as zeros"));
    QCOMPARE(pass({1, 1, 1}), QString("y passes as ones"));
    QCOMPARE(pass({7, 7, 7}), QString("y passes as the mean of the result everywhere"));
    QCOMPARE(pass({7, 7, 8}), QString());
    QCOMPARE(pass({nan, nan, nan}), QString()); // NaN there before is garbage the next time
}

void TestTrivialPass::everyOutputCounts()
{
    const HostTensor y{"y", workload::Role::Output, kernel::DType::F32, {2}, {}};
    const HostTensor z{"z", workload::Role::Output, kernel::DType::F32, {2}, {}};
    using Values = std::vector<double>;
    QVERIFY(!trivialPass({y, z}, {{"y", Values{0, 0}}, {"z", Values{1, 2}}}, {}));
    QCOMPARE(trivialPass({y, z}, {{"y", Values{0, 0}}, {"z", Values{1, 1}}}, {}).value_or(""),
             std::string("y passes as zeros, z passes as ones"));
}

void TestTrivialPass::workloadsOfTheRepository_data()
{
    QTest::addColumn<QString>("folder");
    // All of them where that is quick. The sanitizers look at code, not at workloads: one for each oracle and its types.
    std::set<std::string> kinds;
    for (const char *root : {"workloads", "tests/gate/corpus/workloads", "tests/gate/references/workloads"}) {
        for (const auto &entry : fs::directory_iterator(fs::path(klineage::test::sourcePath()) / root)) {
            if (!fs::exists(entry.path() / "workload.toml"))
                continue;
            const auto workload = workload::readWorkload(entry.path());
            if (klineage::test::isSanitized() && workload && !kinds.insert(kindOf(*workload)).second)
                continue;
            QTest::newRow(entry.path().filename().c_str()) << QString::fromStdString(entry.path().string());
        }
    }
}

void TestTrivialPass::workloadsOfTheRepository()
{
    QFETCH(QString, folder);
    const auto workload = workload::readWorkload(folder.toStdString());
    QVERIFY2(workload, workload ? "" : workload.error().message.c_str());
    if (workload->oracle == "python")
        QSKIP(
            "what a Python oracle expects is computed in a process of its own: klineage-cli workload check");
    const auto passes = passesOf(*workload);
    QVERIFY(!passes.empty());
    QVERIFY2(!passes.front(), passes.front().value_or("").c_str());
    const auto passing =
        std::count_if(passes.begin(), passes.end(), [](const auto &pass) { return pass.has_value(); });
    QVERIFY2(2 * passing < static_cast<std::ptrdiff_t>(passes.size()), "most cases must show something");
}

void TestTrivialPass::theSupervisorRefuses()
{
    SupervisorOptions options;
    options.workerCommand = {klineage::test::programPath("/klineage-fakeworker"), "well"};
    options.trustedKernel = false; // it computes nothing
    Supervisor supervisor(options);
    const std::string text = oneInput("silu", "{ kind = \"normal\", mean = 500.0 }", "[\"R\", \"C\"]");
    const std::string candidate =
        "/*klineage\nsurface = \"opencl\"\n[[launch]]\nkernel = \"k\"\ngrid = [1]\nblock = [1]\nargs = [\"x\", \"y\"]\n*/\n"
        "__kernel void k(__global const float *x, __global float *y) {}\n";
    const auto trial = supervisor.gate(test::quickJob(candidate, text.c_str()));
    QVERIFY(!trial);
    QCOMPARE(trial.error().code, ErrorCode::InvalidInput);
    QCOMPARE(trial.error().message,
             std::string(
                 "Cannot gate with the workload w: in its case timed y passes as a copy of x, which takes no "
                 "work. Fill its inputs otherwise, or tighten its tolerance."));
}

void TestTrivialPass::shapesFollowFromTheSeed()
{
    const std::string text =
        std::string(test::smallMatmul)
        + "[[case]]\nname = \"hidden\"\naxes = { N = 7 }\n"
          "drawn = { M = { from = 8, to = 200 }, K = { from = 8, to = 64, step = 8 } }\n";
    const workload::Workload workload = test::parsed(text.c_str());
    const workload::Case &hidden = *workload.findCase("hidden");
    std::set<std::int64_t> seenM;
    std::set<std::int64_t> seenK;
    int equal = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const workload::Case drawn = drawCase(hidden, seed);
        QCOMPARE(drawCase(hidden, seed).axes, drawn.axes);
        QCOMPARE(drawn.axes.at("N"), std::int64_t{7});
        QVERIFY(drawn.axes.at("M") >= 8 && drawn.axes.at("M") <= 200);
        QCOMPARE(drawn.axes.at("K") % 8, std::int64_t{0});
        seenM.insert(drawn.axes.at("M"));
        seenK.insert(drawn.axes.at("K"));
        equal += drawn.axes.at("M") == drawn.axes.at("K") ? 1 : 0;
    }
    QVERIFY(seenM.size() > 120);
    QVERIFY(equal > 15 && equal < 100); // else one or two
    QCOMPARE(seenK.size(), std::size_t{8});
    QCOMPARE(drawCase(workload.cases.front(), 1).name, std::string("timed"));
}

QTEST_GUILESS_MAIN(TestTrivialPass)
#include "tst_trivialpass.moc"
