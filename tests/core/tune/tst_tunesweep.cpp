// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sweeps over a gate that is a function.
#include "core/base/random.h"
#include "core/tune/sweep.h"

#include "core/files/sha256.h"
#include "tests/paths.h"

#include <QtTest>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::gate::tune;

namespace {

const char *const candidateText =
    "/*klineage\nsurface = \"opencl\"\n[[tunable]]\nname = \"TILE\"\ndefault = 16\n"
    "values = [1, 8, 16, 32, 64, 128]\n[[launch]]\nkernel = \"k\"\ngrid = [1]\n"
    "block = [\"TILE\"]\nargs = [\"c\"]\n*/\n"
    "__kernel void k(__global float *c) { }\n";

/// TILE 8 does not compile, 128 is refused, 1 is wrong; 32 is 1.25× as fast as the default 16, and 64 is as fast as 16.
class FakeGate
{
public:
    double confirmed = 1.25; ///< what 32 is worth when it is measured again
    Change change = Change::Gain;
    bool defaultsFail = false;
    int failures = 0; ///< the gate itself fails this many times
    bool backwards = false;
    std::atomic<int> asked = 0;
    std::mutex mutex;
    std::stop_source stop;
    int stopAfter = 1000;
    std::vector<GateRequest> requests;
    std::vector<std::int64_t> prepared;

    tune::Gate functions()
    {
        return {[this](const GateRequest &request) { return run(request); },
                [this](const GateRequest &request) { prepared.push_back(request.tunables.at("TILE")); }};
    }

private:
    static void refuse(Trial &trial, VerdictStatus status, const char *reason)
    {
        trial.verdict.status = status;
        trial.verdict.reason = reason;
    }
    Result<Trial> run(const GateRequest &request)
    {
        // The later a point is asked for, the sooner its trial comes.
        if (backwards)
            std::this_thread::sleep_for(std::chrono::milliseconds(30 - 3 * std::min(++asked, 9)));
        const std::scoped_lock lock(mutex);
        requests.push_back(request);
        if (static_cast<int>(requests.size()) > stopAfter) {
            stop.request_stop();
            return fail(ErrorCode::Cancelled, "Stopped.");
        }
        if (failures-- > 0)
            return fail(ErrorCode::Protocol, "The gate died.");
        Trial trial;
        trial.id = randomId();
        trial.time = "2025-01-31T12:34:56Z";
        trial.workload = "sgemm";
        trial.candidate = files::sha256Hex(request.candidateText);
        trial.tunables = request.tunables;
        trial.environment = {"pocl", "cpu", {}};
        trial.verdict.stage = Stage::Compile;
        const std::int64_t tile = request.tunables.at("TILE");
        if (tile == 8)
            refuse(trial, VerdictStatus::CompileError, "compiler");
        else if (tile == 128)
            refuse(trial, VerdictStatus::CompileError, "plan");
        else if (tile == 1)
            refuse(trial, VerdictStatus::Wrong, "mismatch");
        else if (tile == 16 && defaultsFail)
            refuse(trial, VerdictStatus::Crash, "signal");
        else
            measure(request, tile, trial);
        return trial;
    }
    void measure(const GateRequest &request, std::int64_t tile, Trial &trial) const
    {
        const bool again = request.profileSeconds > 5;
        const double speed = tile == 32 ? (again ? confirmed : 1.25) : 1;
        trial.verdict.status = VerdictStatus::Correct;
        trial.verdict.reason = "ok";
        trial.latencyNs = {1e6 / speed, 0.99e6 / speed, 1.01e6 / speed};
        if (!request.parentText.empty())
            trial.verdict.comparisons.push_back({"parent",
                                                 files::sha256Hex(request.parentText),
                                                 {speed, speed * 0.99, speed * 1.01},
                                                 1e6,
                                                 again ? change : Change::Undecided});
    }
};

SweepOptions options()
{
    SweepOptions options;
    options.request.candidateText = candidateText;
    options.request.candidateName = "tile.cl";
    options.request.workloadDirectory = klineage::test::sourcePath("/workloads/sgemm");
    return options;
}

const PointResult *pointOf(const SweepResult &result, std::int64_t tile)
{
    for (const PointResult &point : result.points) {
        if (point.point.at("TILE") == tile)
            return &point;
    }
    return nullptr;
}

} // namespace

class TestTuneSweep : public QObject
{
    Q_OBJECT
private slots:
    void everyPointIsATrial()
    {
        FakeGate gate;
        std::vector<std::string> roles;
        const auto result =
            runSweep(options(), gate.functions(), {},
                     [&](const PointResult &, const std::string &role) { roles.push_back(role); });
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QCOMPARE(result->search, std::string("exhaustive"));
        QVERIFY(result->end == SweepEnd::Complete);
        QCOMPARE(result->spaceSize, std::uint64_t{6});
        QCOMPARE(result->points.size(), std::size_t{6});
        QCOMPARE(result->points.front().point.at("TILE"), std::int64_t{16});
        QVERIFY(pointOf(*result, 8)->trial->verdict.status == VerdictStatus::CompileError);
        QVERIFY(pointOf(*result, 1)->trial->verdict.status == VerdictStatus::Wrong);
        QCOMPARE(result->points[*result->best].point.at("TILE"), std::int64_t{32});
        QVERIFY(result->improved());
        QCOMPARE(result->conclusion,
                 std::string("TILE=32 beats the defaults: 1.25× their speed, confirmed."));
        QCOMPARE(roles.size(), std::size_t{7});
        QCOMPARE(roles.back(), std::string("confirm"));
    }

    void theDefaultsAreTheParent()
    {
        FakeGate gate;
        QVERIFY(runSweep(options(), gate.functions()));
        QVERIFY(gate.requests.front().parentText.empty());
        for (std::size_t i = 1; i < gate.requests.size(); ++i)
            QCOMPARE(gate.requests[i].parentText, std::string(candidateText));
        // Points are measured briefly and without the reference, the confirmation as was asked.
        QCOMPARE(gate.requests[1].profileSeconds, 1.5);
        QVERIFY(!gate.requests[1].withReference);
        QCOMPARE(gate.requests.back().profileSeconds, options().request.profileSeconds);
        QCOMPARE(gate.requests.back().targetHalfWidth, options().request.targetHalfWidth);
        QVERIFY(gate.requests.back().withReference);
        QCOMPARE(gate.requests.back().tunables.at("TILE"), std::int64_t{32});
        QVERIFY(!gate.prepared.empty());
    }

    void winnersCurseIsSaid()
    {
        FakeGate gate;
        gate.confirmed = 1.001;
        gate.change = Change::NoGain;
        const auto result = runSweep(options(), gate.functions());
        QVERIFY(result);
        QVERIFY(result->best && !result->improved());
        QCOMPARE(
            result->conclusion,
            std::string(
                "Nothing beats the defaults: the seemingly fastest point, TILE=32, has 1.001× their speed "
                "when measured again (no gain)."));
    }

    void nothingSeemsFaster()
    {
        FakeGate gate;
        SweepOptions narrow = options();
        narrow.only["TILE"] = {64, 8};
        const auto result = runSweep(narrow, gate.functions());
        QVERIFY(result);
        QCOMPARE(result->points.size(), std::size_t{3}); // the defaults lie outside and are tried too
        QVERIFY(!result->best && !result->confirmation);
        QVERIFY2(result->conclusion.starts_with("Nothing beats the defaults"), result->conclusion.c_str());
    }

    void defaultsThatFail()
    {
        FakeGate gate;
        gate.defaultsFail = true;
        const auto result = runSweep(options(), gate.functions());
        QVERIFY(result);
        QVERIFY(gate.requests[1].parentText.empty());
        QCOMPARE(result->points[*result->best].point.at("TILE"), std::int64_t{32});
        QVERIFY(result->improved());
        QVERIFY2(result->conclusion.find("the defaults do not pass") != std::string::npos,
                 result->conclusion.c_str());
    }

    void budgetEndsIt()
    {
        FakeGate gate;
        SweepOptions few = options();
        few.budget = 3;
        const auto result = runSweep(few, gate.functions());
        QVERIFY(result);
        QCOMPARE(result->search, std::string("local"));
        QVERIFY(result->end == SweepEnd::Budget);
        QCOMPARE(result->points.size(), std::size_t{3});
    }

    void severalAtATimeComeToTheSame()
    {
        FakeGate alone;
        const auto one = runSweep(options(), alone.functions());
        FakeGate gate;
        gate.backwards = true;
        SweepOptions many = options();
        many.jobs = 3;
        std::vector<Point> told;
        const auto result =
            runSweep(many, {gate.functions().run}, {},
                     [&](const PointResult &point, const std::string &) { told.push_back(point.point); });
        QVERIFY(one && result);
        QCOMPARE(result->points.size(), one->points.size());
        for (std::size_t i = 0; i < one->points.size(); ++i) {
            QVERIFY(result->points[i].point == one->points[i].point);
            QVERIFY(told[i] == one->points[i].point);
        }
        QCOMPARE(result->best, one->best);
        QCOMPARE(result->conclusion, one->conclusion);
        // All of them where the first was.
        for (std::size_t i = 1; i < gate.requests.size(); ++i)
            QCOMPARE(gate.requests[i].place.device, std::string("cpu"));
    }

    void comparedWithAnother()
    {
        FakeGate gate;
        SweepOptions other = options();
        other.against = "another";
        const auto result = runSweep(other, gate.functions());
        QVERIFY(result && result->comparison);
        QCOMPARE(gate.requests.back().parentText, std::string("another"));
        QCOMPARE(result->comparison->trial->comparison("parent")->subject, files::sha256Hex("another"));
    }

    void stopKeepsWhatThereIs()
    {
        FakeGate gate;
        gate.stopAfter = 4;
        const auto result = runSweep(options(), gate.functions(), gate.stop.get_token());
        QVERIFY(result);
        QVERIFY(result->end == SweepEnd::Stopped);
        QCOMPARE(result->points.size(), std::size_t{4});
        QVERIFY(!result->confirmation);
    }

    void resumes()
    {
        const QTemporaryDir folder;
        SweepOptions kept = options();
        kept.out = folder.filePath("points.jsonl").toStdString();
        FakeGate first;
        first.stopAfter = 3;
        QVERIFY(runSweep(kept, first.functions(), first.stop.get_token()));
        FakeGate second;
        const auto result = runSweep(kept, second.functions());
        QVERIFY(result && result->improved());
        QCOMPARE(second.requests.size(), std::size_t{4}); // three points and the confirmation
        QVERIFY(result->points.front().resumed && !result->points.back().resumed);
        FakeGate third;
        QVERIFY(runSweep(kept, third.functions())->improved());
        QCOMPARE(third.requests.size(), std::size_t{0});
        // Another candidate must not go on with these.
        SweepOptions other = kept;
        other.request.candidateText += "\n";
        const auto refused = runSweep(other, second.functions());
        QVERIFY(!refused && refused.error().code == ErrorCode::InvalidInput);
    }

    void gateThatFails()
    {
        FakeGate once;
        once.failures = 1;
        const auto result = runSweep(options(), once.functions());
        QVERIFY(result);
        QVERIFY(result->points.front().error && !result->points.front().trial);
        FakeGate always;
        always.failures = 100;
        const auto broken = runSweep(options(), always.functions());
        QVERIFY(!broken && broken.error().code == ErrorCode::Protocol);
        QCOMPARE(always.requests.size(), std::size_t{3});
    }

    void nothingToTune()
    {
        FakeGate gate;
        SweepOptions single = options();
        single.only["TILE"] = {16};
        const auto result = runSweep(single, gate.functions());
        QVERIFY(!result && result.error().code == ErrorCode::InvalidInput);
    }
};

QTEST_APPLESS_MAIN(TestTuneSweep)
#include "tst_tunesweep.moc"
