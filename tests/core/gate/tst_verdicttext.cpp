// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/verdicttext.h"

#include <QtTest>

#include <csignal>
#include <limits>

using namespace klineage;
using namespace klineage::gate;

namespace {

Where place()
{
    Where where;
    where.caseName = "odd";
    where.seed = 7;
    return where;
}

std::string evidence(const Verdict &verdict, const std::string &name)
{
    for (const Evidence &entry : verdict.evidence) {
        if (entry.name == name)
            return entry.value;
    }
    return {};
}

} // namespace

class TestVerdictText : public QObject
{
    Q_OBJECT
private slots:
    void mismatch();
    void exactMismatch();
    void selectionMismatch();
    void redZone();
    void inputChanged();
    void suspicions_data();
    void suspicions();
    void timeout();
    void deaths();
    void compileLog_data();
    void compileLog();
    void compileError();
    void environmentIsNoVerdict();
};

void TestVerdictText::mismatch()
{
    Finding finding;
    finding.buffer = "c";
    finding.element = "c[3, 17]";
    finding.check.failure = OutputCheck::Failure::Element;
    finding.check.expected = 0.25;
    finding.check.got = std::numeric_limits<double>::quiet_NaN();
    finding.check.elements = 100;
    finding.check.mismatches = 3;
    const Verdict verdict = findingVerdict(finding, place());
    QCOMPARE(verdict.status, VerdictStatus::Wrong);
    QCOMPARE(verdict.reason, std::string("mismatch"));
    QCOMPARE(
        verdict.message,
        std::string(
            "c[3, 17] is nan, expected 0.25; 3 of 100 elements are outside the tolerance (case odd, seed 7)."));
    QCOMPARE(evidence(verdict, "element"), std::string("c[3, 17]"));
    QCOMPARE(evidence(verdict, "case"), std::string("odd"));
    QCOMPARE(evidence(verdict, "seed"), std::string("7"));
    QVERIFY(verdict.hint.find("NaN") != std::string::npos);
}

void TestVerdictText::exactMismatch()
{
    Finding finding;
    finding.buffer = "c";
    finding.element = "c[0, 2]";
    finding.tolerance.exact = true;
    finding.check.failure = OutputCheck::Failure::Element;
    finding.check.expected = 2097153;
    finding.check.got = 2097152;
    finding.check.elements = 100;
    finding.check.mismatches = 40;
    finding.check.relativeL2 = 2e-7;
    const Verdict verdict = findingVerdict(finding, place());
    QCOMPARE(
        verdict.message,
        std::string(
            "c[0, 2] is 2097152, expected 2097153; 40 of 100 elements differ in a case that is exact (case odd, seed 7)."));
    QCOMPARE(evidence(verdict, "expected"), std::string("2097153"));
    QVERIFY(verdict.hint.find("lose bits") != std::string::npos);
}

void TestVerdictText::selectionMismatch()
{
    Finding finding;
    finding.buffer = "indices";
    finding.element = "indices[2, 5]";
    finding.check.failure = OutputCheck::Failure::Selection;
    finding.check.got = 17;
    finding.check.why = "which its row names already";
    finding.check.elements = 185;
    finding.check.mismatches = 1;
    const Verdict verdict = findingVerdict(finding, place());
    QCOMPARE(verdict.status, VerdictStatus::Wrong);
    QCOMPARE(verdict.reason, std::string("selection"));
    QCOMPARE(
        verdict.message,
        std::string(
            "indices[2, 5] is 17, which its row names already; 1 of 185 elements are wrong (case odd, seed 7)."));
    QCOMPARE(evidence(verdict, "expected"), std::string());
    QVERIFY(verdict.hint.find("none comes twice") != std::string::npos);
}

void TestVerdictText::redZone()
{
    Finding finding;
    finding.kind = Finding::Kind::RedZone;
    finding.buffer = "y";
    finding.redZone = {false, 4, 8};
    const Verdict verdict = findingVerdict(finding, place());
    QCOMPARE(verdict.status, VerdictStatus::Unsafe);
    QCOMPARE(verdict.reason, std::string("red_zone"));
    QCOMPARE(
        verdict.message,
        std::string(
            "The candidate wrote outside y: 8 bytes after the end of its memory changed (case odd, seed 7)."));
    QCOMPARE(evidence(verdict, "distance_bytes"), std::string("4"));
}

void TestVerdictText::inputChanged()
{
    Finding finding;
    finding.kind = Finding::Kind::InputChanged;
    finding.buffer = "a";
    finding.element = "a[0, 1]";
    const Verdict verdict = findingVerdict(finding, place());
    QCOMPARE(verdict.status, VerdictStatus::Unsafe);
    QCOMPARE(verdict.reason, std::string("input_changed"));
    QVERIFY(verdict.message.find("a[0, 1]") != std::string::npos);
}

void TestVerdictText::suspicions_data()
{
    QTest::addColumn<QString>("which");
    QTest::addColumn<QString>("status");
    QTest::addColumn<QString>("reason");
    QTest::addColumn<QString>("message");
    QTest::addColumn<QString>("evidence"); // first entry
    QTest::addColumn<QString>("hint");     // a word of it
    QTest::newRow("variable written")
        << "written"
        << "unsafe"
        << "global_changed"
        << "The candidate wrote to its module's variable counter, which lives from launch to launch."
        << "variable: counter"
        << "[[workspace]]";
    QTest::newRow("variable out of sight")
        << "hidden"
        << "unsafe"
        << "global_changed"
        << "The candidate's module has a variable counter that cannot be watched."
        << "variable: counter"
        << "__constant__";
    QTest::newRow("clock")
        << "clock"
        << "suspect"
        << "clock"
        << "The worker says that its runs took 1.5 ms, but the supervisor waited 60 ms for them: the "
           "times cannot be trusted."
        << "claimed: 1.5 ms"
        << "quieter machine";
    QTest::newRow("replay")
        << "replay"
        << "suspect"
        << "replay"
        << "A run takes 2 µs in a replayed graph and 40 µs when it is launched by itself: they differ by more "
           "than 5 % and more than launching explains."
        << "replayed: 2 µs"
        << "one launch leaves to the next";
    QTest::newRow("stray")
        << "stray"
        << "unsafe"
        << "stray_write"
        << "Timed launches of the candidate wrote into the red zones of y, which they were not "
           "given (case odd)."
        << "buffer: the red zones of y"
        << "the buffers that it is given";
}

void TestVerdictText::suspicions()
{
    QFETCH(QString, which);
    QFETCH(QString, evidence);
    QFETCH(QString, hint);
    const bool timed = which == "clock" || which == "replay" || which == "stray";
    const Verdict verdict = which == "clock"    ? clockVerdict(1.5e6, 60e6, place())
                            : which == "replay" ? replayVerdict(2e3, 40e3, place())
                            : which == "stray"  ? strayVerdict("the red zones of y", place())
                                                : globalVerdict("counter", which == "written", place());
    QTEST(QString(toString(verdict.status)), "status");
    QTEST(QString::fromStdString(verdict.reason), "reason");
    QTEST(QString::fromStdString(verdict.message), "message");
    QCOMPARE(verdict.stage, timed ? Stage::Profile : Stage::Correctness);
    QCOMPARE(QString::fromStdString(verdict.evidence.front().name + ": " + verdict.evidence.front().value),
             evidence);
    QCOMPARE(::evidence(verdict, "case"), std::string("odd"));
    QCOMPARE(::evidence(verdict, "seed"), std::string("7"));
    QVERIFY2(verdict.hint.find(hint.toStdString()) != std::string::npos, verdict.hint.c_str());
}

void TestVerdictText::timeout()
{
    WorkerFailure failure;
    failure.kind = FailureKind::Timeout;
    failure.limitSeconds = 5;
    const TrialEnd end = failureEnd(failure, place());
    QVERIFY(std::holds_alternative<Verdict>(end));
    const auto &verdict = std::get<Verdict>(end);
    QCOMPARE(verdict.status, VerdictStatus::Timeout);
    QCOMPARE(verdict.reason, std::string("deadline"));
    QCOMPARE(
        verdict.message,
        std::string(
            "The worker did not finish running the candidate on case odd, seed 7 within 5 s and was killed."));
    failure.limitSeconds = 0; // nothing was left of the trial's time
    QCOMPARE(std::get<Verdict>(failureEnd(failure, place())).message,
             std::string("The trial's time was used up before running the candidate on case odd, seed 7."));
    QCOMPARE(std::get<Error>(environmentEnd(failure)).message,
             std::string("The trial's time was used up before the worker was asked."));
}

void TestVerdictText::deaths()
{
    WorkerFailure failure;
    failure.kind = FailureKind::Died;
    failure.exit = process::ExitStatus{0, SIGSEGV};
    auto verdict = std::get<Verdict>(failureEnd(failure, place()));
    QCOMPARE(verdict.status, VerdictStatus::Crash);
    QCOMPARE(verdict.reason, std::string("signal"));
    QVERIFY(verdict.message.find("SIGSEGV") != std::string::npos);
    failure.kind = FailureKind::Protocol;
    QCOMPARE(std::get<Verdict>(failureEnd(failure, place())).reason, std::string("protocol"));
    failure.kind = FailureKind::Candidate;
    failure.error.message = "Cannot finish the kernel: CUDA_ERROR_ILLEGAL_ADDRESS.";
    verdict = std::get<Verdict>(failureEnd(failure, place()));
    QCOMPARE(verdict.reason, std::string("device_error"));
    QVERIFY(verdict.message.find("ILLEGAL_ADDRESS") != std::string::npos);
}

void TestVerdictText::compileLog_data()
{
    QTest::addColumn<QString>("log");
    QTest::addColumn<int>("line");
    QTest::newRow("clang") << "K03.cl:12:5: error: use of undeclared identifier 'x'\n" << 12;
    QTest::newRow("nvrtc") << "K03.cu(7): error: identifier \"x\" is undefined\n" << 7;
    QTest::newRow("after a warning") << "K03.cl:3:1: warning: unused\nK03.cl:9:1: error: no\n" << 9;
    QTest::newRow("no line") << "ptxas error   : too much shared data\n" << 0;
    QTest::newRow("none") << "all is well\n" << 0;
}

void TestVerdictText::compileLog()
{
    QFETCH(QString, log);
    QFETCH(int, line);
    const std::string name = log.contains("K03.cu") ? "K03.cu" : "K03.cl";
    QCOMPARE(firstError(log.toStdString(), name).line, line);
}

void TestVerdictText::compileError()
{
    CompileOutput output;
    output.log = "t.cl:2:3: error: expected ';'\n";
    output.compiler = "pocl";
    kernel::Candidate candidate;
    candidate.source = "first\n  second line\nthird\n";
    const Verdict verdict = compileVerdict(output, {}, "t.cl", candidate);
    QCOMPARE(verdict.status, VerdictStatus::CompileError);
    QCOMPARE(verdict.stage, Stage::Compile);
    QCOMPARE(verdict.message, std::string("The candidate does not compile: line 2: error: expected ';'"));
    QCOMPARE(evidence(verdict, "source"), std::string("second line"));
    QCOMPARE(verdict.log, output.log);
}

void TestVerdictText::environmentIsNoVerdict()
{
    WorkerFailure failure;
    failure.kind = FailureKind::Cancelled;
    QCOMPARE(std::get<Error>(failureEnd(failure, place())).code, ErrorCode::Cancelled);
    failure.kind = FailureKind::Machine;
    failure.error = {ErrorCode::Internal, "Cannot allocate.", {}};
    QCOMPARE(std::get<Error>(environmentEnd(failure)).message, std::string("Cannot allocate."));
}

QTEST_GUILESS_MAIN(TestVerdictText)
#include "tst_verdicttext.moc"
