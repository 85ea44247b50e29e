// SPDX-License-Identifier: GPL-3.0-or-later
//
// The whole gate on a real OpenCL device, with candidates that are right, wrong and hostile.
#include "core/gate/session/deviceturn.h"
#include "core/gate/supervisor/supervisor.h"
#include "core/trial/statistics.h"

#include "tests/core/gate/gatefixture.h"
#include "tests/gate/realworker.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

using namespace klineage;
using namespace klineage::gate;

namespace {

std::string evidence(const Trial &trial, const std::string &name)
{
    for (const Evidence &entry : trial.verdict.evidence) {
        if (entry.name == name)
            return entry.value;
    }
    return {};
}

/// A softmax of one work-item a row; body computes y from x.
std::string softmax(const std::string &body)
{
    return "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"rows\"\ngrid = [\"R\"]\nblock = [1]\n"
           "args = [\"x\", \"y\", \"int C\"]\n*/\n"
           "__kernel void rows(__global const float *x, __global float *y, int C)\n{\n"
           "    x += get_global_id(0) * C;\n    y += get_global_id(0) * C;\n    "
           + body + "\n}\n";
}

const char *const goodSoftmax =
    "float m = -INFINITY;\n    for (int i = 0; i < C; ++i) m = fmax(m, x[i]);\n    float s = 0;\n"
    "    for (int i = 0; i < C; ++i) s += exp(x[i] - m);\n"
    "    for (int i = 0; i < C; ++i) y[i] = exp(x[i] - m) / s;";

/// Processor time that each process beneath this one has had, in the clock's ticks.
std::map<int, long> ticksOfChildren()
{
    std::map<int, long> ticks;
    for (const QString &entry : QDir("/proc").entryList({"[0-9]*"}, QDir::Dirs)) {
        QFile file("/proc/" + entry + "/stat");
        if (!file.open(QIODevice::ReadOnly))
            continue;
        const QByteArray text = file.readAll();
        const QList<QByteArray> fields = text.mid(text.lastIndexOf(')') + 2).split(' ');
        if (fields.size() > 12 && fields[1].toInt() == static_cast<int>(QCoreApplication::applicationPid()))
            ticks[entry.toInt()] = fields[11].toLong() + fields[12].toLong();
    }
    return ticks;
}

} // namespace

/// One supervisor for all, as in a session: what one candidate does must not reach the next.
class TestGateOpenCl : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void correctCandidate();
    void comparedWithItsParentAndTheReference();
    void eachSideHasAProcessOfItsOwn();
    void aQuickTrialEndsWhenItIsDecided();
    void verdicts_data();
    void verdicts();
    void wrongElementIsNamed();
    void compileErrorHasALine();
    void compileErrorsNeedNoTurn();
    void endlessLoopAndThenAFreshWorker();
    void zeroedWorkspace();
    void badParentIsSaid();
    void aParentThatDiesLeavesTheCandidate();
    void referenceThatIsMissingIsSaid();
    void aReferencesTimeIsNotTheCandidates();
    void tunablesReachTheKernel();
    void softmaxWithMasks();
    void choicesInAnyOrder_data();
    void choicesInAnyOrder();
    void seedPoolIsRecorded();
    void replayHasTheSameInputs();
    void byteOrderMark();
    void cudaWithoutADeviceIsUnavailable();

private:
    Result<Trial> gate(const GateJob &job) { return m_supervisor.gate(job); }
    Supervisor m_supervisor{test::realWorker()};
};

void TestGateOpenCl::initTestCase()
{
    for (const DeviceInfo &device : m_supervisor.devices()) {
        if (device.kind == kernel::DeviceKind::OpenCl && !device.available)
            QSKIP(("No OpenCL device: " + device.detail).c_str());
    }
}

void TestGateOpenCl::correctCandidate()
{
    GateJob job = test::quickJob(test::naive());
    std::vector<Stage> stages;
    const auto trial = m_supervisor.gate(job, {}, [&](const GateProgress &progress) {
        if (stages.empty() || stages.back() != progress.stage)
            stages.push_back(progress.stage);
    });
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    QCOMPARE(trial->verdict.reason, std::string("ok"));
    QCOMPARE(stages, (std::vector<Stage>{Stage::Compile, Stage::Correctness, Stage::Profile}));
    // One of each other case, four that the timed case is checked with, two that no launch has seen when it is timed.
    QCOMPARE(trial->seeds.size(), std::size_t{8});
    QVERIFY(trial->latencyNs.low > 0 && trial->latencyNs.low <= trial->latencyNs.value
            && trial->latencyNs.value <= trial->latencyNs.high);
    QVERIFY(trial->achievedFlops > 0 && trial->achievedBytes > 0);
    QVERIFY(!trial->environment.platform.empty() && !trial->environment.device.empty());
    QVERIFY(trial->environment.facts.contains("compiler"));
    QCOMPARE(trial->samples.front().subject, std::string("candidate"));
    QVERIFY(trial->samples.front().ns.size() >= 5);
    QVERIFY(std::any_of(trial->metrics.begin(), trial->metrics.end(),
                        [](const Metric &m) { return m.name == "work_group_size" && m.value == 64; }));
    // What was measured is a line of trials.jsonl that can be read back.
    const auto back = parseTrial(writeTrial(*trial), "test:1");
    QVERIFY2(back, back ? "" : back.error().message.c_str());
    QCOMPARE(back->seeds, trial->seeds);
}

void TestGateOpenCl::comparedWithItsParentAndTheReference()
{
    GateJob job = test::quickJob(test::naive());
    // So much more work, with the same result, that it shows on a busy machine too.
    job.request.parentText = test::naive(
        "c[row * N + col] = sum;", "for (int r = 0; r < 40; ++r) { float t = 0; for (int k = 0; k < K; ++k) "
                                   "t += a[row * K + k] * b[k * N + col]; sum += 1e-30f * t; }");
    const auto trial = gate(job);
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    const Comparison *parent = trial->comparison("parent");
    QVERIFY2(parent, evidence(*trial, "parent").c_str());
    QCOMPARE(parent->subject, trial->parent);
    QVERIFY2(parent->speedup.value > 2, trial->verdict.message.c_str());
    QVERIFY(parent->otherNs > trial->latencyNs.value);
    if (evidence(*trial, "openblas").empty()) {
        const Comparison *reference = trial->referenceComparison();
        QVERIFY(reference);
        QCOMPARE(reference->against, std::string("openblas"));
        QVERIFY(reference->subject.find("threads") != std::string::npos);
    }
}

void TestGateOpenCl::eachSideHasAProcessOfItsOwn()
{
    constexpr long fewTicks = 10;
    GateJob job = test::quickJob(test::naive());
    job.request.parentText = test::naive("c[row * N + col] = sum + 0.0f;");
    job.request.withReference = false;
    job.request.profileSeconds = 4;
    job.request.targetHalfWidth = 2e-9; // of no other trial, so that there is a copy
    std::map<int, long> first;
    std::map<int, long> last;
    const auto trial = m_supervisor.gate(job, {}, [&](const GateProgress &progress) {
        if (progress.text.rfind("round ", 0) != 0)
            return;
        last = ticksOfChildren();
        if (first.empty())
            first = last;
    });
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    QVERIFY2(trial->comparison("parent"), evidence(*trial, "parent").c_str());
    QCOMPARE(trial->samples.size(), std::size_t{3});
    // The candidate, its copy and the parent; those that wait for the next trial rest.
    const auto busy = std::count_if(last.begin(), last.end(), [&](const auto &child) {
        const auto before = first.find(child.first);
        return before != first.end() && child.second - before->second > fewTicks;
    });
    QCOMPARE(busy, std::ptrdiff_t{3});
}

void TestGateOpenCl::aQuickTrialEndsWhenItIsDecided()
{
    GateJob job = test::quickJob(test::naive());
    job.request.parentText = test::naive(
        "c[row * N + col] = sum;", "for (int r = 0; r < 40; ++r) { float t = 0; for (int k = 0; k < K; ++k) "
                                   "t += a[row * K + k] * b[k * N + col]; sum += 1e-30f * t; }");
    job.request.withReference = false;
    job.request.quick = true;
    job.request.minRounds = 60;         // ten a block
    job.request.targetHalfWidth = 1e-9; // which does not end it
    job.request.profileSeconds = 30;
    const auto trial = gate(job);
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    if (evidence(*trial, "stopped_by") == "time_limit")
        QSKIP("The machine is too busy for a comparison within 3 %.");
    QCOMPARE(evidence(*trial, "stopped_by"), std::string("decided"));
    const Comparison *parent = trial->comparison("parent");
    QVERIFY(parent);
    QCOMPARE(parent->change, Change::Gain);
    QVERIFY(halfWidth(parent->speedup) < 0.03 * parent->speedup.value);
}

void TestGateOpenCl::verdicts_data()
{
    QTest::addColumn<QString>("candidate");
    QTest::addColumn<QStringList>("status");
    const auto row = [](const char *name, const std::string &candidate, const QStringList &status) {
        QTest::newRow(name) << QString::fromStdString(candidate) << status;
    };
    const std::string store = "c[row * N + col] = sum;";
    row("nothing", test::naive(";"), {"wrong"});
    row("zeros", test::naive("c[row * N + col] = 0;"), {"wrong"});
    row("copy of an input", test::naive("c[row * N + col] = a[row * K + col % K];"), {"wrong"});
    row("adds to what was there", test::naive("c[row * N + col] += sum;"), {"wrong"});
    row("skips the last row", test::naive("if (row < M - 1) c[row * N + col] = sum;"), {"wrong"});
    row("reads behind the input", test::naive("c[row * N + col] = sum + b[K * N + col];"), {"wrong"});
    row("writes its input", test::naive(store + " a[row * K] += 1.0f;", {}, ""), {"unsafe"});
    row("writes one behind", test::naive(store + " if (row == M - 1 && col == N - 1) c[M * N] = sum;"),
        {"unsafe"});
    row("writes one before", test::naive(store + " if (row == 0 && col == 0) c[-1] = sum;"), {"unsafe"});
    row("writes far away", test::naive(store + " if (row == 0) c[(size_t)1 << 40] = sum;"),
        {"unsafe", "crash"});
    row("divides by zero", test::naive("c[row * N + col] = sum + (row / (M - M));"),
        {"crash", "wrong", "correct"});
    row("kernel of another name",
        "/*klineage\nsurface = \"opencl\"\n[[launch]]\nkernel = \"other\"\ngrid = [1]\nblock = [1]\nargs = [\"a\"]\n*/\n"
        "__kernel void tiny(__global float *a) {}\n",
        {"compile_error"});
    std::string scalar = test::naive();
    scalar.replace(scalar.find("\"int M\""), 7, "\"long M\"");
    row("scalar of the wrong size", scalar, {"compile_error"});
    std::string swapped = test::naive();
    swapped.replace(swapped.find("\"c\", \"int M\""), 12, "\"int M\", \"c\"");
    row("scalar for a pointer", swapped, {"compile_error"});
}

void TestGateOpenCl::verdicts()
{
    QFETCH(QString, candidate);
    QFETCH(QStringList, status);
    const auto trial = gate(test::quickJob(candidate.toStdString()));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(status.contains(toString(trial->verdict.status)), trial->verdict.message.c_str());
    QVERIFY(!trial->verdict.message.empty());
    if (trial->verdict.status != VerdictStatus::Correct)
        QVERIFY(!trial->verdict.hint.empty());
}

void TestGateOpenCl::wrongElementIsNamed()
{
    const auto trial = gate(test::quickJob(
        test::naive("c[row * N + col] = (M == 17 && row == 3 && col == 7) ? sum + 1.0f : sum;")));
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::Wrong);
    QCOMPARE(evidence(*trial, "element"), std::string("c[3, 7]"));
    QCOMPARE(evidence(*trial, "mismatches"), std::string("1"));
    QCOMPARE(evidence(*trial, "case"), std::string("odd"));
    const double difference = std::stod(evidence(*trial, "got")) - std::stod(evidence(*trial, "expected"));
    QVERIFY(std::abs(difference - 1.0) < 0.01);
    QVERIFY(std::to_string(trial->seeds.back()) == evidence(*trial, "seed"));
}

void TestGateOpenCl::compileErrorHasALine()
{
    const auto trial = gate(test::quickJob(test::naive("c[row * N + col] = undeclared;")));
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::CompileError);
    QCOMPARE(trial->verdict.stage, Stage::Compile);
    QVERIFY(trial->verdict.log.find("undeclared") != std::string::npos);
    QVERIFY2(evidence(*trial, "source").find("undeclared") != std::string::npos, trial->verdict.log.c_str());
    QVERIFY(trial->verdict.message.find("line") != std::string::npos);
}

// Who waits for a trial hears at once that it does not compile, and not when the device is free.
void TestGateOpenCl::compileErrorsNeedNoTurn()
{
    const QTemporaryDir folder;
    SupervisorOptions options = test::realWorker();
    options.turnDirectory = folder.path().toStdString();
    Supervisor gate(options);
    std::optional<DeviceTurn> another(std::in_place);
    QVERIFY(another->take(options.turnDirectory, "opencl", 0, {}) == DeviceTurn::Outcome::Had);

    for (const char *store : {"c[row * N + col] = undeclared;", "c[row * N + col] = sum"}) {
        GateJob job = test::quickJob(test::naive(store));
        const auto inTurn = m_supervisor.gate(job);
        job.request.quick = true;
        const auto trial = gate.gate(job);
        QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
        QVERIFY(inTurn);
        QCOMPARE(trial->verdict.status, VerdictStatus::CompileError);
        QCOMPARE(trial->verdict.message, inTurn->verdict.message);
        QCOMPARE(trial->verdict.log, inTurn->verdict.log);
        QCOMPARE(trial->environment.device, inTurn->environment.device);
        QVERIFY(trial->stages.compile > 0);
    }

    // Where nobody waits, no compiler disturbs what is timed.
    std::stop_source stop;
    const auto stopped = gate.gate(test::quickJob(test::naive("c[row * N + col] = undeclared;")),
                                   stop.get_token(), [&](const GateProgress &) { stop.request_stop(); });
    QVERIFY(!stopped);
    QCOMPARE(stopped.error().code, ErrorCode::Cancelled);

    // One that compiles waits for its turn.
    GateJob job = test::quickJob(test::naive());
    job.request.quick = true;
    bool waited = false;
    const auto trial = gate.gate(job, {}, [&](const GateProgress &progress) {
        waited = waited || progress.text.find("waiting") != std::string::npos;
        another.reset();
    });
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY(waited);
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
}

void TestGateOpenCl::endlessLoopAndThenAFreshWorker()
{
    // Warm, so that the deadline is about the loop and not about compiling.
    QVERIFY(gate(test::quickJob(test::naive())));
    const pid_t before = m_supervisor.workerPid(kernel::DeviceKind::OpenCl);
    GateJob job =
        test::quickJob(test::naive("c[row * N + col] = sum;", "volatile int go = 1; while (go) { }"));
    job.request.deadlineSeconds = 40; // a launch gets ten
    const auto trial = gate(job);
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::Timeout);
    QCOMPARE(trial->verdict.reason, std::string("deadline"));
    QCOMPARE(evidence(*trial, "limit_s"), std::string("10"));
    const auto next = gate(test::quickJob(test::naive()));
    QVERIFY(next);
    QVERIFY2(next->verdict.status == VerdictStatus::Correct, next->verdict.message.c_str());
    const pid_t after = m_supervisor.workerPid(kernel::DeviceKind::OpenCl);
    QVERIFY(after > 0 && after != before);
}

void TestGateOpenCl::zeroedWorkspace()
{
    const std::string twoLaunches = R"cl(/*klineage
surface = "opencl"
[[workspace]]
name = "scratch"
dtype = "f32"
shape = ["M", "N"]
init = "zero"
[[launch]]
kernel = "add"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = [8, 8]
args = ["a", "b", "scratch", "int M", "int N", "int K"]
[[launch]]
kernel = "copy"
grid = ["M * N"]
block = [1]
args = ["scratch", "c"]
*/
__kernel void add(__global const float *a, __global const float *b, __global float *s, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row < M && col < N)
        for (int k = 0; k < K; ++k)
            s[row * N + col] += a[row * K + k] * b[k * N + col];
}
__kernel void copy(__global const float *s, __global float *c)
{
    c[get_global_id(0)] = s[get_global_id(0)];
}
)cl";
    auto trial = gate(test::quickJob(twoLaunches));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    std::string poisoned = twoLaunches;
    poisoned.erase(poisoned.find("init = \"zero\"\n"), 14);
    trial = gate(test::quickJob(poisoned));
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::Wrong);
}

void TestGateOpenCl::badParentIsSaid()
{
    for (const std::string &parent :
         {test::naive("c[row * N + col] = 2 * sum;"), test::naive("undeclared();"), std::string("no plan")}) {
        GateJob job = test::quickJob(test::naive());
        job.request.parentText = parent;
        job.request.withReference = false;
        const auto trial = gate(job);
        QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
        QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
        QVERIFY(!trial->comparison("parent"));
        QVERIFY(evidence(*trial, "parent").find("not compared") == 0);
    }
}

void TestGateOpenCl::aParentThatDiesLeavesTheCandidate()
{
    const std::string faraway = "c[(size_t)1 << 40] = sum;";
    for (const std::string &dies :
         {"if (row == 0) " + faraway,                      // when it is looked at
          "if (row + col == 0 && as_uint(a[0]) % 8 == 5) " // hardly before it is timed
              + faraway}) {
        GateJob job = test::quickJob(test::naive());
        job.request.parentText = test::naive("c[row * N + col] = sum; " + dies);
        job.request.withReference = false;
        const auto trial = gate(job);
        QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
        QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
        QVERIFY(trial->latencyNs.value > 0);
        QVERIFY(!trial->comparison("parent"));
        QVERIFY2(evidence(*trial, "parent").find("not compared") == 0, evidence(*trial, "parent").c_str());
    }
}

void TestGateOpenCl::referenceThatIsMissingIsSaid()
{
    GateJob job = test::quickJob(test::naive());
    job.workload.references.front().provider = "nosuchblas";
    const auto trial = gate(job);
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::Correct);
    QVERIFY(trial->verdict.comparisons.empty());
    QVERIFY(evidence(*trial, "nosuchblas").find("not compared") == 0);
}

void TestGateOpenCl::aReferencesTimeIsNotTheCandidates()
{
    // A package that takes longer than the candidate may: some compile for minutes.
    const QTemporaryDir folder;
    const auto python = std::filesystem::path(folder.path().toStdString()) / "python";
    std::ofstream(python) << "#!/bin/sh\nsleep 21\nexit 1\n";
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    const QByteArray before = qgetenv("KLINEAGE_PYTHON");
    qputenv("KLINEAGE_PYTHON", python.c_str());
    GateJob job = test::quickJob(test::naive());
    job.workload.references.front().provider = "torch";
    job.request.deadlineSeconds = 20;
    const auto trial = gate(job);
    before.isEmpty() ? qunsetenv("KLINEAGE_PYTHON") : qputenv("KLINEAGE_PYTHON", before);
    QVERIFY(trial);
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    QVERIFY(evidence(*trial, "torch").find("not compared") == 0);
}

void TestGateOpenCl::tunablesReachTheKernel()
{
    std::string candidate = test::naive("c[row * N + col] = sum * FACTOR;");
    candidate.insert(candidate.find("[[launch]]"),
                     "[[tunable]]\nname = \"FACTOR\"\ndefault = 1\nvalues = [1, 2]\n\n");
    GateJob job = test::quickJob(candidate);
    auto trial = gate(job);
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::Correct);
    QCOMPARE(trial->tunables.at("FACTOR"), std::int64_t{1});
    job.request.tunables["FACTOR"] = 2;
    trial = gate(job);
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::Wrong);
    job.request.tunables["FACTOR"] = 3;
    QCOMPARE(gate(job).error().code, ErrorCode::InvalidInput);
}

void TestGateOpenCl::softmaxWithMasks()
{
    auto trial = gate(test::quickJob(softmax(goodSoftmax), test::smallSoftmax));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    // Begins with the first element as maximum, which a mask makes -inf, and then -inf - -inf is NaN.
    trial = gate(
        test::quickJob(softmax("float m = x[0], s = 0;\n    for (int i = 0; i < C; ++i) s += exp(x[i] - m);\n"
                               "    for (int i = 0; i < C; ++i) y[i] = exp(x[i] - m) / s;"),
                       test::smallSoftmax));
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::Wrong);
    QCOMPARE(evidence(*trial, "case"), std::string("masked"));
}

void TestGateOpenCl::choicesInAnyOrder_data()
{
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("column");
    QTest::addColumn<QString>("reason");
    QTest::newRow("descending") << "rank"
                                << "rank"
                                << "ok";
    QTest::newRow("ascending") << "K - 1 - rank"
                               << "K - 1 - rank"
                               << "ok";
    QTest::newRow("columns in another order") << "rank"
                                              << "K - 1 - rank"
                                              << "selection";
    QTest::newRow("the first place left out") << "max(rank, 1)"
                                              << "max(rank, 1)"
                                              << "mismatch";
}

void TestGateOpenCl::choicesInAnyOrder()
{
    QFETCH(const QString, value);
    QFETCH(const QString, column);
    const QString candidate =
        QString(
            "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"topk\"\ngrid = [\"S\", \"B\"]\n"
            "block = [1, 1]\nargs = [\"x\", \"values\", \"indices\", \"int S\", \"int K\"]\n*/\n"
            "__kernel void topk(__global const float *x, __global float *v, __global int *c, int S, int K)\n{\n"
            "    int i = get_global_id(0), row = get_global_id(1), rank = 0;\n    x += row * S;\n"
            "    for (int j = 0; j < S; ++j)\n        rank += x[j] > x[i] || (x[j] == x[i] && j < i);\n"
            "    if (rank < K) {\n        v[row * K + %1] = x[i];\n        c[row * K + %2] = i;\n    }\n}\n")
            .arg(value, column);
    GateJob job = test::quickJob(candidate.toStdString());
    auto workload = workload::readWorkload(std::filesystem::path(klineage::test::sourcePath())
                                           / "tests/gate/references/workloads/topk");
    QVERIFY2(workload, workload ? "" : workload.error().message.c_str());
    workload->cases.front().axes = {{"B", 3}, {"S", 400}, {"K", 50}};
    job.workload = std::move(*workload);
    const auto trial = gate(job);
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QTEST(QString::fromStdString(trial->verdict.reason), "reason");
}

void TestGateOpenCl::seedPoolIsRecorded()
{
    SupervisorOptions options = test::realWorker();
    options.seedPool = 6;
    Supervisor pooled(options);
    std::set<std::uint64_t> timedSeeds;
    for (int i = 0; i < 3; ++i) {
        const auto trial = pooled.gate(test::quickJob(test::naive()));
        QVERIFY(trial);
        QCOMPARE(trial->verdict.status, VerdictStatus::Correct);
        QCOMPARE(evidence(*trial, "seed_pool"), std::string("6"));
        timedSeeds.insert(trial->seeds.end() - 5, trial->seeds.end());
    }
    QVERIFY(timedSeeds.size() <= 6);
}

void TestGateOpenCl::replayHasTheSameInputs()
{
    std::string text = test::naive();
    text.insert(text.rfind('}'), "if (get_global_id(0) == 0 && get_global_id(1) == 0) c[0] = 1000.0f;\n");
    GateJob job = test::quickJob(text);
    const auto wrong = gate(job);
    QVERIFY2(wrong, wrong ? "" : wrong.error().message.c_str());
    QVERIFY2(wrong->verdict.status == VerdictStatus::Wrong, wrong->verdict.message.c_str());
    job.request.replayOf = wrong->id;
    job.request.replaySeeds = wrong->seeds;
    const auto again = gate(job);
    QVERIFY2(again, again ? "" : again.error().message.c_str());
    QCOMPARE(again->seeds, wrong->seeds);
    QCOMPARE(again->replayOf, wrong->id);
    QVERIFY(!again->admits());
    QCOMPARE(evidence(*again, "expected"), evidence(*wrong, "expected"));
    job.request.replayOf.clear();
    QCOMPARE(gate(job).error().code, ErrorCode::InvalidInput);
}

void TestGateOpenCl::byteOrderMark()
{
    const auto trial = gate(test::quickJob("\xef\xbb\xbf" + test::naive()));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
}

void TestGateOpenCl::cudaWithoutADeviceIsUnavailable()
{
    for (const DeviceInfo &device : m_supervisor.devices()) {
        if (device.kind == kernel::DeviceKind::Cuda && device.available)
            QSKIP("This machine has a CUDA device.");
    }
    const auto trial = gate(test::quickJob(
        "/*klineage\nsurface = \"cuda\"\n[[launch]]\nkernel = \"k\"\ngrid = [1]\nblock = [32]\nargs = [\"c\"]\n*/\n"
        "extern \"C\" __global__ void k(float *c) { c[0] = 1; }\n"));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(trial->verdict.status, VerdictStatus::Unavailable);
    QCOMPARE(trial->verdict.reason, std::string("no_device"));
    QVERIFY(trial->verdict.hint.find("batch") != std::string::npos);
}

QTEST_GUILESS_MAIN(TestGateOpenCl)
#include "tst_gateopencl.moc"
