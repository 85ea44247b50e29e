// SPDX-License-Identifier: GPL-3.0-or-later
//
// A sweep under the real gate on a real OpenCL device: points that compile, one that does not, one that the device refuses.
#include "core/pool/gateclient.h"
#include "core/tune/sweep.h"

#include "core/files/atomicfile.h"
#include "tests/core/gate/gatefixture.h"
#include "tests/paths.h"

#include <QtTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

/// The naive product in square work-groups. WORK repeats the sum, so that less is faster; TILE 3 is not compiled; 64 × 64 items are more
/// than a block may have.
const char *const tiled = R"cl(/*klineage
surface = "opencl"

[[tunable]]
name = "TILE"
default = 8
values = [3, 4, 8, 64]

[[tunable]]
name = "WORK"
default = 200
values = [1, 200]

[[launch]]
kernel = "tiny"
grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
block = ["TILE", "TILE"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
#if TILE == 3
#error "a tile must be a power of two"
#endif
__kernel void tiny(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    for (int r = 1; r < WORK; ++r) {
        float t = 0;
        for (int k = 0; k < K; ++k)
            t += a[row * K + k] * b[k * N + col] * r;
        sum += 1e-30f * t;
    }
    c[row * N + col] = sum;
}
)cl";

} // namespace

class TestGateTune : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void sweepsUnderTheGate();
};

void TestGateTune::initTestCase()
{
    const auto devices = queryDevices(klineage::test::programPath("/klineage-gate"));
    QVERIFY2(devices, devices ? "" : devices.error().message.c_str());
    for (const DeviceInfo &device : *devices) {
        if (device.kind == kernel::DeviceKind::OpenCl && !device.available)
            QSKIP(("No OpenCL device: " + device.detail).c_str());
    }
}

void TestGateTune::sweepsUnderTheGate()
{
    const QTemporaryDir folder;
    QVERIFY(files::writeFileAtomic(folder.filePath("workload.toml").toStdString(), test::smallMatmul));
    tune::SweepOptions options;
    options.request.workloadDirectory = folder.path().toStdString();
    options.request.candidateText = tiled;
    options.request.candidateName = "tiled.cl";
    options.request.profileSeconds = 1;
    options.request.deadlineSeconds = 240;
    options.request.seeds = 1;
    options.request.withReference = false;
    options.pointSeconds = 0.3;
    options.out = folder.filePath("points.jsonl").toStdString();

    GateClient client(klineage::test::programPath("/klineage-gate"));
    const auto result =
        tune::runSweep(options, {[&client](const GateRequest &request) { return client.run(request); }, {}});
    QVERIFY2(result, result ? "" : result.error().message.c_str());
    QCOMPARE(result->search, std::string("exhaustive"));
    QCOMPARE(result->points.size(), std::size_t{8});
    for (const tune::PointResult &point : result->points) {
        QVERIFY2(point.trial, point.error ? point.error->message.c_str() : "");
        const Verdict &verdict = point.trial->verdict;
        const std::int64_t tile = point.point.at("TILE");
        QVERIFY(point.trial->tunables == point.point);
        if (tile == 3) {
            QVERIFY2(verdict.status == VerdictStatus::CompileError, verdict.message.c_str());
            QVERIFY2(verdict.log.find("power of two") != std::string::npos, verdict.log.c_str());
        } else if (tile == 64) {
            QVERIFY2(verdict.status == VerdictStatus::CompileError, verdict.message.c_str());
            QVERIFY2(verdict.message.find("more than 1024 threads") != std::string::npos,
                     verdict.message.c_str());
        } else {
            QVERIFY2(verdict.status == VerdictStatus::Correct, verdict.message.c_str());
        }
    }
    // Two hundred times less work is faster on any machine, however busy.
    QVERIFY2(result->best, result->conclusion.c_str());
    QCOMPARE(result->points[*result->best].point.at("WORK"), std::int64_t{1});
    QVERIFY(result->confirmation && result->confirmation->correct());
    QVERIFY2(result->improved(), result->conclusion.c_str());
    QCOMPARE(result->confirmation->trial->parent, result->confirmation->trial->candidate);

    // The second time everything is there already.
    const auto again =
        tune::runSweep(options, {[](const GateRequest &) -> Result<Trial> {
                                     return fail(ErrorCode::Internal, "There is nothing to run.");
                                 },
                                 {}});
    QVERIFY2(again, again ? "" : again.error().message.c_str());
    QVERIFY(again->improved());
    QCOMPARE(again->conclusion, result->conclusion);
}

QTEST_GUILESS_MAIN(TestGateTune)
#include "tst_gatetune.moc"
