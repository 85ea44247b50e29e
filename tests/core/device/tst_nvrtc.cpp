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
    void piecesOfTheStackAreRefused()
    {
        const std::string spelled =
            "    asm volatile(\"{ .reg .u64 t; al\" \"loca.u64 t, %1, 16; cvta.local.u64 %0, t; }\" : "
            "\"=l\"(to) : \"l\"(768ull));\n";
        for (const std::string &how :
             {spelled, std::string("    to = (unsigned long long)__builtin_alloca(n);\n")}) {
            const auto compiled = compileCuda(
                "extern \"C\" __global__ void f(int n, float *y)\n{\n    unsigned long long to;\n" + how
                    + "    float *p = (float *)to;\n    p[n % 4] = y[0];\n    __syncthreads();\n"
                      "    y[0] = p[n % 3];\n}\n",
                "f.cu", {}, "sm_90a");
            QVERIFY(compiled.has_value());
            QVERIFY(!compiled->ok);
            QVERIFY2(compiled->log.find("alloca") != std::string::npos, compiled->log.c_str());
        }
        // A name is none.
        const auto named = compileCuda(
            "struct A { __device__ static float alloca_u(float x) { return 2 * x; } };\n"
            "extern \"C\" __global__ void my_alloca(float *y)\n{\n    y[0] = A::alloca_u(y[1]);\n}\n",
            "f.cu", {}, "sm_90a");
        QVERIFY(named.has_value());
        QVERIFY2(named->ok, named->log.c_str());
    }

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
