// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/outline.h"

#include <QTest>

using namespace klineage::kernel;
using Kind = KernelParameter::Kind;

namespace {

const char *const oddCuda = R"KL(// __global__ void inAComment(float *x)
#include <cuda_fp16.h>
#define BM 64
#define BN (128) // in parentheses
#define SCALE 0.5f
#ifndef BK
#define BK 0x20
#endif
#define LONG_ONE \
    7
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define KERNEL extern "C" __global__
#if 0
extern "C" __global__ void leftOut(int a) {}
#endif
using element = __half;
typedef unsigned long long big;

namespace deep { namespace er {
__global__ void mangled(float *x) { for (int i = 0; i < 3; ++i) { x[i] = '}'; } }
extern "C" __global__ void inside(float *x) {}
} }

template <typename T, int N>
__global__ void generic(T *x) {}

extern "C" __global__ void declaredOnly(float *x);

extern "C" {
__global__ void __launch_bounds__(256, 2)
first(const float *__restrict__ x, /* what, comes */ float* y, const element w[], int n, big m,
      float const eps = 1e-6f)
{
    extern __shared__ float tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < n; ++k)
        y[i] = x[i];
}
}

KERNEL void second(const __grid_constant__ CUtensorMap map, float4 *__restrict__ v, void *any, int2 pair,
                   float &reference, float **rows, std::uint8_t *bytes, unsigned, bool flag)
{
    int row = blockIdx.y, lane = threadIdx.y;
}
)KL";

/// With what a moc of Qt cannot read in a literal of its own.
std::string oddCudaText()
{
    return std::string(oddCuda)
           + "const char *text = \"extern \\\"C\\\" __global__ void inAString(int a) {}\";\n"
             "const char *raw = R\"x(__global__ void inARawString() { \" })x\";\n"
             "extern \"C\" __global__ void last() {}\n";
}

const char *const oddOpenCl = R"KL(
#define LOCAL 32
__attribute__((reqd_work_group_size(LOCAL, 4, 1)))
__kernel void tiled(__global const float *restrict in, global float *out, __local float *scratch,
                    __constant int *table, const uint rows, size_t n, ulong m)
{
    size_t r = get_group_id(1), c = get_local_id(1), g = get_global_id(0);
}
kernel void plain(global half *x) {}
int kernel_size(int kernel) { return kernel; }
)KL";

const KernelFunction *find(const SourceOutline &outline, const char *name)
{
    for (const KernelFunction &kernel : outline.kernels) {
        if (kernel.name == name)
            return &kernel;
    }
    return nullptr;
}

std::string names(const SourceOutline &outline)
{
    std::string text;
    for (const KernelFunction &kernel : outline.kernels)
        text += kernel.name + ' ';
    return text;
}

} // namespace

class TestOutline : public QObject
{
    Q_OBJECT

private slots:
    void findsWhatIsDefined()
    {
        const SourceOutline outline = outlineSource(oddCudaText(), Surface::Cuda);
        QCOMPARE(names(outline), std::string("mangled inside generic first second last "));
        QVERIFY(find(outline, "mangled")->problem.find("extern \"C\"") != std::string::npos);
        QVERIFY(find(outline, "generic")->problem.find("template") != std::string::npos);
        for (const char *good : {"inside", "first", "second"})
            QVERIFY2(find(outline, good)->problem.empty(), good);
        QCOMPARE(find(outline, "second")->line, 41);
    }

    void readsParameters()
    {
        const SourceOutline outline = outlineSource(oddCudaText(), Surface::Cuda);
        const KernelFunction *first = find(outline, "first");
        QVERIFY(first);
        QCOMPARE(first->parameters.size(), std::size_t{6});
        const auto &p = first->parameters;
        QCOMPARE(p[0].name, std::string("x"));
        QVERIFY(p[0].kind == Kind::Pointer && p[0].isConst && p[0].element == DType::F32);
        QVERIFY(p[1].kind == Kind::Pointer && !p[1].isConst && p[1].element == DType::F32);
        QCOMPARE(p[2].name, std::string("w"));
        QVERIFY(p[2].kind == Kind::Pointer && p[2].isConst && p[2].element == DType::F16);
        QVERIFY(p[3].kind == Kind::Scalar && p[3].scalar == ScalarType::Int32);
        QVERIFY(p[4].kind == Kind::Scalar && p[4].scalar == ScalarType::UInt64);
        QCOMPARE(p[5].name, std::string("eps"));
        QVERIFY(p[5].kind == Kind::Scalar && p[5].scalar == ScalarType::Float32);
        QVERIFY(first->isByElement && first->usesDynamicShared);
        QCOMPARE(first->block[0], std::int64_t{256});
        QVERIFY(first->loopLimits.contains("n"));

        const KernelFunction *second = find(outline, "second");
        QCOMPARE(second->parameters.size(), std::size_t{9});
        const auto &s = second->parameters;
        QVERIFY(s[0].kind == Kind::TensorMap);
        QVERIFY(s[1].kind == Kind::Pointer && s[1].element == DType::F32);
        QVERIFY(s[2].kind == Kind::Pointer && !s[2].element);
        QVERIFY(s[3].kind == Kind::Other);
        QVERIFY(s[4].kind == Kind::Other);
        QVERIFY(s[5].kind == Kind::Other);
        QVERIFY(s[6].kind == Kind::Pointer && s[6].element == DType::U8);
        QVERIFY(s[7].kind == Kind::Scalar && s[7].scalar == ScalarType::UInt32 && s[7].name.empty());
        QVERIFY(s[8].kind == Kind::Other);
        QCOMPARE(second->gridRank, 2);
        QCOMPARE(second->blockRank, 2);
        QVERIFY(!second->isByElement);
    }

    void readsOpenCl()
    {
        const SourceOutline outline = outlineSource(oddOpenCl, Surface::OpenCl);
        QCOMPARE(names(outline), std::string("tiled plain "));
        const KernelFunction &tiled = outline.kernels[0];
        QCOMPARE(tiled.parameters.size(), std::size_t{7});
        QVERIFY(tiled.parameters[0].kind == Kind::Pointer && tiled.parameters[0].isConst);
        QCOMPARE(tiled.parameters[0].name, std::string("in"));
        QVERIFY(tiled.parameters[1].kind == Kind::Pointer && !tiled.parameters[1].isConst);
        QVERIFY(tiled.parameters[2].kind == Kind::Local && tiled.parameters[2].element == DType::F32);
        QVERIFY(tiled.parameters[3].isConst && tiled.parameters[3].element == DType::I32);
        QVERIFY(tiled.parameters[4].scalar == ScalarType::UInt32);
        QVERIFY(tiled.parameters[5].scalar == ScalarType::UInt64);
        QCOMPARE(tiled.block[0], std::int64_t{32});
        QCOMPARE(tiled.block[1], std::int64_t{4});
        QCOMPARE(tiled.gridRank, 2);
        QCOMPARE(tiled.blockRank, 2);
        QVERIFY(tiled.isByElement);
        QVERIFY(outline.kernels[1].parameters[0].element == DType::F16);
    }

    void findsConstants()
    {
        const SourceOutline outline = outlineSource(oddCudaText(), Surface::Cuda);
        std::string text;
        for (const SourceConstant &constant : outline.constants)
            text += constant.name + '=' + std::to_string(constant.value) + (constant.isGuarded ? "! " : " ");
        QCOMPARE(text, std::string("BM=64 BN=128 BK=32! LONG_ONE=7 "));
    }

    void tunablesWinOverTheirDefines()
    {
        const std::string code = "#define BM 64 // rows\n#ifndef BK\n#define BK 8\n#endif\nint x = BM;\n";
        QCOMPARE(
            withTunables(code, {"BM", "BK", "none"}, Surface::OpenCl),
            std::string(
                "#ifndef BM\n#define BM 64\n#endif // rows\n#ifndef BK\n#define BK 8\n#endif\nint x = BM;\n"));
        QCOMPARE(withTunables(code, {}, Surface::OpenCl), code);
    }

    /// It ends, and soon, whatever it is given.
    void survives_data()
    {
        QTest::addColumn<QByteArray>("code");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("open comment") << QByteArray("__global__ void f(int a) { /* never closed");
        QTest::newRow("open string") << QByteArray("const char *s = \"__global__");
        QTest::newRow("open raw string") << QByteArray("R\"abc(__global__ void f() {}");
        QTest::newRow("open parenthesis") << QByteArray("__global__ void f(int a, ");
        QTest::newRow("keyword alone") << QByteArray("__global__");
        QTest::newRow("keyword last in a define") << QByteArray("#define K __global__\nK");
        QTest::newRow("stray braces") << QByteArray("}}}} __global__ void f() }}");
        QTest::newRow("alias of itself") << QByteArray("#define T T T T\n__global__ void f(T x, T y) {}");
        QTest::newRow("bytes") << QByteArray("\xff\xfe\x00__global__\x00(\x80", 17);
        QTest::newRow("backslash at the end") << QByteArray("#define A \\");
        QTest::newRow("keywords") << QByteArray("__global__ ").repeated(300'000);
        QTest::newRow("parentheses") << QByteArray("__global__ void f(").repeated(200'000);
        QTest::newRow("loops") << "__global__ void f() { " + QByteArray("for (").repeated(500'000);
        QTest::newRow("braces") << QByteArray("a {").repeated(700'000);
        QTest::newRow("aliases") << "#define T " + QByteArray("T ").repeated(1'000'000) + "\n"
                                        + QByteArray("__global__ void f(T x, T y, T z) {}\n").repeated(1000);
        QTest::newRow("parameters") << "__global__ void f(" + QByteArray("int a, ").repeated(300'000)
                                           + "int b) {}";
        QTest::newRow("too long") << QByteArray("x ").repeated(2'500'000);
    }
    void survives()
    {
        QFETCH(const QByteArray, code);
        for (const Surface surface : allSurfaces()) {
            const SourceOutline outline = outlineSource(code.toStdString(), surface);
            QVERIFY(outline.kernels.size() <= maxOutlineKernels);
            for (const KernelFunction &kernel : outline.kernels)
                QVERIFY(kernel.parameters.size() <= maxOutlineParameters);
        }
    }
};

QTEST_GUILESS_MAIN(TestOutline)
#include "tst_outline.moc"
