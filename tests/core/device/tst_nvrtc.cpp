// SPDX-License-Identifier: GPL-3.0-or-later
//
// NVRTC reads as little as a kernel needs, and more where it needs more. No device is used.
#include "core/device/backend.h"

#include <QTest>

using namespace klineage::gate;

class TestNvrtc : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        const auto compiled = compileCuda("extern \"C\" __global__ void f() {}", "f.cu", {}, "sm_90a");
        if (!compiled)
            QSKIP(compiled.error().message.c_str());
    }

    /// Textures are among what is left out at first.
    void whatNeedsMoreIsReadAgain()
    {
        const auto compiled =
            compileCuda("extern \"C\" __global__ void f(cudaTextureObject_t t, float *y)\n"
                        "{\n    y[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x) + N;\n}\n",
                        "f.cu", {{"N", 7}}, "sm_90a");
        QVERIFY(compiled.has_value());
        QVERIFY2(compiled->ok, compiled->log.c_str());
        QVERIFY(compiled->binary.size() > 1000);
    }

    /// A small kernel is the same program.
    void whatDoesNotIsTheSame()
    {
        const auto compiled = compileCuda(
            "#include <cuda_bf16.h>\nextern \"C\" __global__ void f(const __nv_bfloat16 *x, float *y)\n"
            "{\n    y[threadIdx.x] = __bfloat162float(x[threadIdx.x]);\n}\n",
            "f.cu", {}, "sm_90a");
        QVERIFY(compiled.has_value());
        QVERIFY2(compiled->ok, compiled->log.c_str());
        QVERIFY(!compiled->metrics.empty());
    }

    /// What is said of mistakes is said once, and names the candidate's line.
    void mistakesAreToldOnce()
    {
        const auto compiled = compileCuda(
            "extern \"C\" __global__ void f(float *y)\n{\n    y[0] = missing;\n}\n", "f.cu", {}, "sm_90a");
        QVERIFY(compiled.has_value());
        QVERIFY(!compiled->ok);
        QCOMPARE(QString::fromStdString(compiled->log).count(QStringLiteral("missing\" is undefined")), 1);
        QVERIFY(compiled->log.find("f.cu(3)") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestNvrtc)
#include "tst_nvrtc.moc"
