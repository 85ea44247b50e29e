// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who computes the expected outputs, with workers that misbehave in place of a device.
#include "core/device/backend.h"
#include "core/gate/check/caseinstance.h"
#include "core/gate/oracle/oraclechoice.h"
#include "tests/core/gate/oracle/oracleworkloads.h"
#include "tests/paths.h"

#include <QtTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

const std::string binaries = klineage::test::programPath();

/// The kernel is compiled once for all tests.
std::filesystem::path cacheFolder()
{
    static const QTemporaryDir folder;
    return folder.path().toStdString();
}

struct Outcome {
    std::string summary;
    bool likeTheCpu = false;
};

/// One case, with a worker of that mode.
Outcome computeWith(const std::string &mode, const workload::Workload &workload,
                    kernel::DeviceKind kind = kernel::DeviceKind::Cuda)
{
    DeviceOracle device({binaries + "/klineage-fakeworker", mode, "--backend", "cuda"},
                        {binaries + "/klineage-gate", "compile"}, CompileCache(cacheFolder()));
    OracleChoice choice(device);
    choice.beginTrial(kind, workload, true, {});
    const workload::Case &c = workload.cases.front();
    const auto tensors = generateCase(workload, c, 9);
    const auto tolerance = workload.toleranceFor(c);
    if (!tensors || !tolerance)
        return {};
    const auto expected = choice.compute(workload, c, *tensors, *tolerance);
    const auto cpu = computeOracle(workload, *tensors);
    return {choice.summary(), expected && cpu && expected->at("y").doubles() == cpu->at("y")};
}

bool hasCompiler()
{
    return compileCuda("extern \"C\" __global__ void k() {}", "k.cu", {}, "sm_90a").has_value();
}

} // namespace

class TestDeviceOracle : public QObject
{
    Q_OBJECT
private slots:
    void smallCasesStayOnTheCpu()
    {
        const auto outcome = computeWith("well", test::workloadOf({"matmul_nn", "f16", "3999999999"}));
        QCOMPARE(outcome.summary, std::string("cpu: too little work for the device"));
        QVERIFY(outcome.likeTheCpu);
    }

    void otherDevicesStayOnTheCpu()
    {
        const auto outcome =
            computeWith("segv@load", test::workloadOf({"matmul_nn"}), kernel::DeviceKind::OpenCl);
        QCOMPARE(outcome.summary, std::string("cpu: too little work for the device"));
        QVERIFY(outcome.likeTheCpu);
    }

    void whatHasNoKernelStaysOnTheCpu()
    {
        const auto outcome = computeWith("well", test::workloadOf({"attention_varlen", "f16", "5e9", 264}));
        QCOMPARE(outcome.summary, std::string("cpu for timed: its heads are too many or too wide"));
        QVERIFY(outcome.likeTheCpu);
    }

    /// Its buffers hold zeros, whatever is run on them.
    void aWrongOneIsNotBelieved()
    {
        if (!hasCompiler())
            QSKIP("There is no NVRTC to compile the kernel.");
        const auto outcome = computeWith("memory", test::workloadOf({"matmul_nn"}));
        QVERIFY2(outcome.summary.starts_with(
                     "cpu for timed: on a small case it disagrees with the CPU's: element 0 is 0, not "),
                 outcome.summary.c_str());
        QVERIFY(outcome.likeTheCpu);
    }

    void failuresFallBackToTheCpu_data()
    {
        QTest::addColumn<QString>("mode");
        for (const char *mode : {"hello-exit", "hello-garbage", "segv@run", "exit@allocate",
                                 "garbage@download", "cut@load", "oversized@upload", "forged@add_plan"})
            QTest::newRow(mode) << mode;
    }
    void failuresFallBackToTheCpu()
    {
        QFETCH(const QString, mode);
        const auto outcome = computeWith(mode.toStdString(), test::workloadOf({"matmul_nn"}));
        QVERIFY2(outcome.summary.starts_with("cpu for timed: "), outcome.summary.c_str());
        QVERIFY(outcome.likeTheCpu);
    }

    void cancellingIsNoFailure()
    {
        DeviceOracle device({binaries + "/klineage-fakeworker", "hello-hang"},
                            {binaries + "/klineage-gate", "compile"}, CompileCache(cacheFolder()));
        const auto workload = test::workloadOf({"matmul_nn"});
        const auto tensors = generateCase(workload, workload.cases.front(), 9);
        std::stop_source stop;
        stop.request_stop();
        const auto expected = device.compute(workload, *tensors, true, true, stop.get_token());
        QVERIFY(!expected);
        QCOMPARE(expected.error().code, ErrorCode::Cancelled);
    }
};

QTEST_GUILESS_MAIN(TestDeviceOracle)
#include "tst_deviceoracle.moc"
