// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/worker/codec.h"
#include "core/gate/session/compilecache.h"
#include "core/gate/supervisor/supervisor.h"
#include "core/process/isolation.h"
#include "core/trial/requestjson.h"

#include "gatefixture.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QtTest>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace klineage;
using namespace klineage::gate;

namespace {

SupervisorOptions fake(const std::string &mode)
{
    SupervisorOptions options;
    options.workerCommand = {klineage::test::programPath("/klineage-fakeworker"), mode};
    options.trustedKernel = false; // it computes nothing
    return options;
}

GateJob shortJob()
{
    GateJob job = test::quickJob(test::naive());
    job.request.deadlineSeconds = 8; // a launch gets a quarter of it
    return job;
}

std::size_t entriesOf(const std::string &folder)
{
    std::size_t count = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(folder))
        ++count;
    return count;
}

/// Running or not yet reaped, of any thread.
std::vector<pid_t> childrenOfThis()
{
    std::vector<pid_t> children;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(task.path() / "children");
        for (pid_t child = 0; file >> child;)
            children.push_back(child);
    }
    return children;
}

} // namespace

class TestSupervisor : public QObject
{
    Q_OBJECT
private slots:
    void misbehaviour_data();
    void misbehaviour();
    void workerThatCannotStart_data();
    void workerThatCannotStart();
    void loadKeepsToTheDeadline();
    void workerThatClaimsSuccess();
    void freshWorkerAfterADeath();
    void cancellationIsImmediate();
    void badRequests();
    void badPlanIsAVerdict();
    void nothingLeaks();
    void cutAnywhere();
    void killedFromOutside();
    void planSurvivesTheWire();
    void requestSurvivesTheWire();
    void unknownRequestKeys();
    void compileCache();
};

void TestSupervisor::misbehaviour_data()
{
    QTest::addColumn<QString>("mode");
    QTest::addColumn<QString>("status");
    QTest::addColumn<QString>("reason");
    QTest::addColumn<QString>("stage");
    const auto row = [](const char *mode, const char *status, const char *reason,
                        const char *stage = "correctness") {
        QTest::newRow(mode) << QString(mode) << QString(status) << QString(reason) << QString(stage);
    };
    row("hang", "timeout", "deadline");
    row("flood", "timeout", "deadline");
    row("stall", "timeout", "deadline");
    row("segv", "crash", "signal");
    row("exit", "crash", "exit");
    row("garbage", "crash", "protocol");
    row("cut", "crash", "protocol");
    row("oversized", "crash", "protocol");
    row("not-json", "crash", "protocol");
    row("forged", "crash", "protocol");
    row("segv@load", "compile_error", "compiler_crash", "compile"); // nothing of the source ran
    row("garbage@load", "crash", "protocol", "compile");
    row("segv@download", "crash", "signal");
    row("garbage@upload", "crash", "protocol");
    row("extra@upload", "crash", "protocol");  // an answer to nothing, before the answer
    row("late@upload", "crash", "protocol");   // the answer, twice
    row("replay@upload", "crash", "protocol"); // the answer to the request before
}

void TestSupervisor::misbehaviour()
{
    QFETCH(QString, mode);
    Supervisor supervisor(fake(mode.toStdString()));
    const auto trial = supervisor.gate(shortJob());
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QTEST(QString(toString(trial->verdict.status)), "status");
    QTEST(QString::fromStdString(trial->verdict.reason), "reason");
    QTEST(QString(toString(trial->verdict.stage)), "stage");
    QVERIFY(!trial->verdict.message.empty());
    QVERIFY(!trial->verdict.hint.empty());
    if (trial->verdict.status == VerdictStatus::Timeout)
        QCOMPARE(trial->verdict.evidence.front().value, std::string("2")); // a launch's, not the trial's
    if (mode == "flood") {
        QVERIFY(trial->verdict.log.size() < (std::size_t{1} << 20));
        QVERIFY(trial->verdict.log.find("cut") != std::string::npos);
    }
}

void TestSupervisor::workerThatCannotStart_data()
{
    QTest::addColumn<QString>("mode");
    QTest::newRow("garbage") << "hello-garbage";
    QTest::newRow("exit") << "hello-exit";
    QTest::newRow("forged") << "hello-forged";
    QTest::newRow("other version") << "old";
}

void TestSupervisor::workerThatCannotStart()
{
    // The candidate was never seen, so this is no verdict about it.
    QFETCH(QString, mode);
    Supervisor supervisor(fake(mode.toStdString()));
    const auto trial = supervisor.gate(shortJob());
    QVERIFY(!trial);
    QVERIFY(!trial.error().message.empty());
    Supervisor missing(SupervisorOptions{{"/proc/nowhere/worker"}, {}, 0, {}, {}});
    QVERIFY(!missing.gate(shortJob()));
}

void TestSupervisor::loadKeepsToTheDeadline()
{
    Supervisor supervisor(fake("hang@load"));
    GateJob job = shortJob();
    job.request.deadlineSeconds = 3; // a load's own limit is a minute
    const auto trial = supervisor.gate(job);
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(trial->verdict.status, VerdictStatus::Timeout);
    QCOMPARE(trial->verdict.stage, Stage::Compile);
    QVERIFY2(std::stod(trial->verdict.evidence.front().value) <= 3, trial->verdict.message.c_str());
}

void TestSupervisor::workerThatClaimsSuccess()
{
    // It answers "ok" to everything and leaves what was uploaded in the shared memory: images of other buffers.
    Supervisor supervisor(fake("none"));
    const auto trial = supervisor.gate(shortJob());
    QVERIFY(trial);
    QVERIFY(trial->verdict.status == VerdictStatus::Unsafe || trial->verdict.status == VerdictStatus::Wrong);
}

void TestSupervisor::freshWorkerAfterADeath()
{
    Supervisor supervisor(fake("segv"));
    for (int i = 0; i < 3; ++i) {
        const auto trial = supervisor.gate(shortJob());
        QVERIFY(trial);
        QCOMPARE(trial->verdict.status, VerdictStatus::Crash);
    }
}

void TestSupervisor::cancellationIsImmediate()
{
    Supervisor supervisor(fake("hang"));
    GateJob job = shortJob();
    job.request.deadlineSeconds = 600;
    std::stop_source stop;
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        stop.request_stop();
    });
    const auto trial = supervisor.gate(job, stop.get_token());
    stopper.join();
    QVERIFY(!trial); // a launch that is not cancelled would end as a timeout
    QCOMPARE(trial.error().code, ErrorCode::Cancelled);
}

void TestSupervisor::badRequests()
{
    Supervisor supervisor(fake("none"));
    GateJob job = shortJob();
    job.request.seeds = 0;
    QCOMPARE(supervisor.gate(job).error().code, ErrorCode::InvalidInput);
    job = shortJob();
    job.request.tunables["BM"] = 3;
    const auto trial = supervisor.gate(job);
    QVERIFY(!trial);
    QVERIFY(trial.error().message.find("BM") != std::string::npos);
}

void TestSupervisor::badPlanIsAVerdict()
{
    Supervisor supervisor(fake("none"));
    GateJob job = shortJob();
    job.request.candidateText = "no plan at all";
    auto trial = supervisor.gate(job);
    QVERIFY(trial);
    QCOMPARE(trial->verdict.status, VerdictStatus::CompileError);
    QCOMPARE(trial->verdict.reason, std::string("bad_plan"));
    job.request.candidateText = test::naive();
    job.request.candidateText.replace(job.request.candidateText.find("ceil_div(N, 8)"), 14, "ceil_div(Q, 8)");
    trial = supervisor.gate(job);
    QVERIFY(trial);
    QCOMPARE(trial->verdict.reason, std::string("bad_plan"));
    QVERIFY(trial->verdict.message.find('Q') != std::string::npos);
    QCOMPARE(trial->candidate.size(), std::size_t{64});
}

void TestSupervisor::nothingLeaks()
{
    const int candidates =
        klineage::test::isSanitized() ? 70 : 300; // processes start slowly under the sanitizer
    const QTemporaryDir temporary;
    qputenv("TMPDIR", temporary.path().toUtf8());
    GateJob job = shortJob();
    {
        Supervisor supervisor(fake("any")); // dies or misbehaves in one of seven ways
        QVERIFY(supervisor.gate(job));
        const std::size_t descriptors = entriesOf("/proc/self/fd");
        QElapsedTimer timer;
        timer.start();
        for (int i = 1; i < candidates; ++i) {
            const auto trial = supervisor.gate(job);
            QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
            QCOMPARE(trial->verdict.status, VerdictStatus::Crash);
        }
        qInfo("%d candidates in %.1f s", candidates, static_cast<double>(timer.elapsed()) / 1000);
        QCOMPARE(entriesOf("/proc/self/fd"), descriptors);
        // Four workers are ready, each in its folder: for the next candidate, and for what is timed: it, its copy, and the reference.
        QCOMPARE(childrenOfThis().size(), std::size_t{4});
        QCOMPARE(entriesOf(temporary.path().toStdString()), std::size_t{4});
    }
    QCOMPARE(childrenOfThis().size(), std::size_t{0});
    QCOMPARE(entriesOf(temporary.path().toStdString()), std::size_t{0});
    qunsetenv("TMPDIR");
}

void TestSupervisor::cutAnywhere()
{
    // Not cut, the conversation goes on to the verdict that workerThatClaimsSuccess() is about.
    // Primes, so that each place of a frame is met in some of the hundreds of frames.
    const int stride = klineage::test::isSanitized() ? 61 : 7;
    int offset = 0;
    int verdicts = 0;
    for (int whole = 0; whole < 3; offset += stride) {
        Supervisor supervisor(fake("truncate=" + std::to_string(offset)));
        const auto trial = supervisor.gate(shortJob());
        if (!trial) {
            QVERIFY(!trial.error().message.empty()); // cut in the hello: the candidate was never seen
            QVERIFY2(verdicts == 0, (std::to_string(offset) + ": " + trial.error().message).c_str());
            continue;
        }
        ++verdicts;
        const auto status = trial->verdict.status;
        const bool cut = status == VerdictStatus::Crash;
        QVERIFY2(cut || status == VerdictStatus::Unsafe || status == VerdictStatus::Wrong,
                 trial->verdict.message.c_str());
        QVERIFY(!cut || trial->verdict.reason == "exit" || trial->verdict.reason == "protocol");
        whole += cut ? 0 : 1;
        QVERIFY(offset < 100'000);
    }
    qInfo("%d offsets, %d verdicts", offset, verdicts);
    QVERIFY(verdicts > 100 / stride);
}

void TestSupervisor::killedFromOutside()
{
    if (!process::isolationSupport().seccomp)
        QSKIP("Without seccomp, a worker could have killed itself.");
    Supervisor supervisor(fake("hang"));
    GateJob job = shortJob();
    job.request.deadlineSeconds = 100;
    std::jthread killer([](const std::stop_token &given) {
        while (!given.stop_requested() && childrenOfThis().empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        for (const pid_t child : childrenOfThis())
            ::kill(child, SIGKILL);
    });
    const auto trial = supervisor.gate(job);
    killer.request_stop();
    killer.join();
    QVERIFY(!trial);
    QVERIFY2(trial.error().message.find("killed from outside") != std::string::npos,
             trial.error().message.c_str());
}

void TestSupervisor::planSurvivesTheWire()
{
    kernel::ResolvedPlan plan;
    plan.workspaces.push_back({"partial", kernel::DType::BF16, {2, 3}, kernel::WorkspaceInit::Zero});
    plan.tensorMaps.push_back({"tm",
                               "x",
                               kernel::DType::F16,
                               {4, 5},
                               {80},
                               {2, 8},
                               kernel::Swizzle::B64,
                               kernel::L2Promotion::B256,
                               kernel::TensorMapFill::Nan});
    kernel::ResolvedLaunch launch;
    launch.kernel = "k";
    launch.grid = {1, 2, 3};
    launch.block = {32, 4, 1};
    launch.cluster = {2, 1, 1};
    launch.sharedBytes = 1000;
    launch.cooperative = true;
    kernel::ScalarValue scalar;
    scalar.size = 4;
    scalar.bytes[2] = std::byte{200};
    launch.args = {kernel::PointerValue{"x"}, kernel::TensorMapValue{0}, scalar, kernel::LocalValue{64}};
    plan.launches.push_back(launch);
    const auto text = protocol::write(plan).dump();
    const kernel::ResolvedPlan back = protocol::decode<kernel::ResolvedPlan>(nlohmann::json::parse(text));
    QCOMPARE(protocol::write(back).dump(), text);
    QCOMPARE(back.workspaces[0].bytes(), std::int64_t{12});
    QCOMPARE(std::get<kernel::ScalarValue>(back.launches[0].args[2]).bytes[2], std::byte{200});
    QCOMPARE(back.tensorMaps[0].l2Promotion, kernel::L2Promotion::B256);
    auto bad = protocol::write(plan);
    bad["launches"][0]["args"][2]["scalar"] = nlohmann::json::array({1, 2, 3, 4, 5, 6, 7, 8, 9});
    QVERIFY_EXCEPTION_THROWN((void)protocol::decode<kernel::ResolvedPlan>(bad), std::exception);
}

void TestSupervisor::requestSurvivesTheWire()
{
    GateRequest request;
    request.candidateText = "text";
    request.candidateName = "K03.cl";
    request.parentText = "parent";
    request.tunables = {{"BM", 64}};
    request.seeds = 5;
    request.profileSeconds = 1.5;
    request.withReference = false;
    const auto job = readJob(protocol::writeRequest(request, test::smallMatmul));
    QVERIFY2(job, job ? "" : job.error().message.c_str());
    QCOMPARE(job->workload.name, std::string("tiny"));
    QCOMPARE(job->request.candidateName, request.candidateName);
    QCOMPARE(job->request.parentText, request.parentText);
    QVERIFY(job->request.tunables == request.tunables);
    QCOMPARE(job->request.seeds, 5);
    QCOMPARE(job->request.profileSeconds, 1.5);
    QCOMPARE(job->request.withReference, false);
}

void TestSupervisor::unknownRequestKeys()
{
    auto params = protocol::writeRequest({}, test::smallMatmul);
    params["profile_second"] = 3;
    const auto job = readJob(params);
    QVERIFY(!job);
    QVERIFY(job.error().message.find("profile_seconds") != std::string::npos);
    params = protocol::writeRequest({}, test::smallMatmul);
    params["seeds"] = "three";
    QVERIFY(!readJob(params));
    QVERIFY(!readJob(nlohmann::json::array()));
}

void TestSupervisor::compileCache()
{
    const QTemporaryDir folder;
    const auto path = std::filesystem::path(folder.path().toStdString()) / "cubin";
    const CompileCache cache(path);
    const CompileKey key{"source", {{"BM", 64}}, "nvrtc 13.0", "sm_90a"};
    QVERIFY(!cache.find(key));
    CompileOutput output;
    output.ok = true;
    output.log = "log";
    output.compiler = "nvrtc 13.0";
    output.metrics = {{"registers", 40, "", "k"}};
    output.binary = {std::byte{1}, std::byte{'\n'}, std::byte{0}, std::byte{255}};
    cache.store(key, output);
    const auto found = cache.find(key);
    QVERIFY(found);
    QVERIFY(found->binary == output.binary);
    QCOMPARE(found->metrics.at(0).value, 40.0);
    for (const CompileKey &other : {CompileKey{"source2", key.tunables, key.compiler, key.target},
                                    CompileKey{"source", {}, key.compiler, key.target},
                                    CompileKey{"source", key.tunables, "nvrtc 13.1", key.target},
                                    CompileKey{"source", key.tunables, key.compiler, "sm_100a"}})
        QVERIFY(!cache.find(other));
    // A damaged entry is a miss.
    std::fstream file(path / key.digest(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
    file.close();
    QVERIFY(!cache.find(key));
}

QTEST_GUILESS_MAIN(TestSupervisor)
#include "tst_supervisor.moc"
