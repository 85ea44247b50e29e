// SPDX-License-Identifier: GPL-3.0-or-later
// Kernels as nvcc's users write them, compiled by NVRTC; without it only the reading of its messages is seen.
#include "core/device/backend.h"
#include "core/device/cuda/headers/standardheaders.h"
#include "core/kernel/outline/hostcode.h"
#include "core/kernel/outline/siblings.h"
#include "tests/core/kernel/hostsources.h"

#include <QTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::gate;

namespace {

bool holds(const std::vector<std::string> &list, const std::string &what)
{
    return std::find(list.begin(), list.end(), what) != list.end();
}

} // namespace

class TestStandardHeaders : public QObject
{
    Q_OBJECT

private slots:
    void missingNames();
    void readsLittleOfALog();
    void asPeopleWrite_data();
    void asPeopleWrite();
    void withHostCode_data();
    void withHostCode();
    void everyOfferIsKept();
    void whatStandsIsLeftAlone();
    void linesStay_data();
    void linesStay();
    void noOtherFile_data();
    void noOtherFile();
};

void TestStandardHeaders::missingNames()
{
    const cuda::MissingNames missing =
        cuda::missingNames("k.cu(3): error: identifier \"INFINITY\" is undefined\n  float m = -INFINITY;\n\n"
                           "k.cu(4): error: namespace \"std\" has no member \"max\"\n"
                           "k.cu(5): error: identifier \"FLT\" is undefined\n"
                           "k.cu(6): error: identifier \"max\" is undefined\n");
    QCOMPARE(missing.headers, (std::vector<std::string>{"math.h", "algorithm"}));
    QCOMPARE(missing.names, (std::set<std::string>{"INFINITY", "std::max"}));
    QVERIFY(!missing.wantsDeviceDefault);
    QVERIFY(cuda::missingNames(
                "k.cu(1): error: A function without execution space annotations (…) is considered …")
                .wantsDeviceDefault);
    QVERIFY(cuda::missingNames("").isEmpty());
    QVERIFY(
        cuda::missingNames("error: identifier \"\" is undefined\nerror: identifier \"INFINITY").isEmpty());
    QVERIFY(cuda::missingNames("error: identifier \"NAN HUGE_VAL\" is undefined").isEmpty());
}

void TestStandardHeaders::readsLittleOfALog()
{
    std::string log(std::size_t{65} << 10, 'x');
    log += "\nk.cu(3): error: identifier \"INFINITY\" is undefined\n";
    QVERIFY(cuda::missingNames(log).isEmpty());
}

void TestStandardHeaders::asPeopleWrite_data()
{
    QTest::addColumn<QString>("source");
    const auto row = [](const char *name, const char *source) { QTest::newRow(name) << QString(source); };
    row("softmax with INFINITY, nothing included", R"(
extern "C" __global__ void softmax(const float *x, float *y, int n)
{
    float m = -INFINITY;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        m = max(m, x[blockIdx.x * n + i]);
    y[blockIdx.x * n + threadIdx.x] = expf(x[threadIdx.x] - m) + (isnan(m) ? NAN : 0.f);
})");
    row("online softmax with cfloat", R"(
#include <cfloat>
#include <cuda_runtime.h>
extern "C" __global__ void online(const float *x, float *y, int n)
{
    float m = -FLT_MAX, d = 0.0f;
    for (int i = 0; i < n; ++i) {
        const float v = x[i], next = fmaxf(m, v);
        d = d * __expf(m - next) + __expf(v - next);
        m = next;
    }
    y[0] = d > FLT_MIN ? d : FLT_EPSILON;
})");
    row("FLT_MAX without cfloat", R"(extern "C" __global__ void k(float *y) { *y = -FLT_MAX + INT_MAX; })");
    row("fixed width, C++", R"(
#include <cstdint>
#include <cstddef>
extern "C" __global__ void k(const std::uint8_t *x, std::int32_t *y, std::size_t n)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i)
        sum += x[i];
    *y = static_cast<int32_t>(sum & UINT32_MAX);
})");
    row("fixed width, nothing included", R"(
extern "C" __global__ void k(const uint4 *x, uint32_t *y)
{
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(y));
    const uint64_t desc = (uint64_t)address << 32;
    y[0] = uint32_t(desc >> 32) + x->x;
})");
    row("std::min and std::max", R"(
#include <algorithm>
#include <limits>
template <typename T> __device__ T clampTo(T v, T low, T high) { return std::min(std::max(v, low), high); }
extern "C" __global__ void relu6(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float best = std::numeric_limits<float>::lowest();
    for (; i < n; i += gridDim.x * blockDim.x)
        best = std::max(best, clampTo(x[i], 0.0f, 6.0f));
    int a = 1, b = 2;
    std::swap(a, b);
    x[0] = best + a + std::numeric_limits<int>::max() + std::numeric_limits<float>::infinity();
})");
    row("std::max, nothing included",
        R"(extern "C" __global__ void k(float *x) { x[0] = std::max(x[0], 0.f) + std::sqrt(x[1]); })");
    row("type traits", R"(
#include <type_traits>
#include <utility>
#include <cmath>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <typename T> __device__ float wide(T v)
{
    if constexpr (std::is_same_v<T, __half>)
        return __half2float(v);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __bfloat162float(v);
    else
        return static_cast<float>(v);
}
template <typename T, typename = std::enable_if_t<std::is_integral<T>::value>> __device__ T up(T a, T b) { return (a + b - 1) / b; }
template <size_t... is> __device__ float sum(const float *x, std::index_sequence<is...>) { return (x[is] + ...); }
extern "C" __global__ void k(const __half *h, const __nv_bfloat16 *b, float *y, int n)
{
    y[up(n, 2)] = wide(h[0]) + wide(b[0]) + wide(y[0]) + std::exp(y[1]) + sum(y, std::make_index_sequence<4>());
})");
    row("helpers without __device__", R"(
constexpr int ceilDiv(int a, int b) { return (a + b - 1) / b; }
template <typename T> inline T square(T v) { return v * v; }
extern "C" __global__ void k(float *y)
{
    __shared__ float tile[ceilDiv(100, 32)];
    tile[0] = square(y[0]);
    y[1] = tile[0];
})");
    row("tensor cores", R"(
#include <mma.h>
#include <cuda_fp16.h>
#include <cstdio>
#include <cassert>
using namespace nvcuda;
extern "C" __global__ void k(const half *a, const half *b, float *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
})");
    row("TMA", R"(
#include <cuda.h>
#include <stdint.h>
extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, float *y)
{
    static_assert(sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) == 64);
    y[0] = static_cast<float>(reinterpret_cast<uint64_t>(&map));
})");
    row("warp shuffles", R"(
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#define WARP 32
__inline__ __device__ float warpSum(float v)
{
#pragma unroll
    for (int o = WARP / 2; o > 0; o >>= 1)
        v += __shfl_down_sync(0xffffffff, v, o);
    return v;
}
extern "C" __global__ void rmsNorm(const float *x, float *y, int n, float eps)
{
    const float s = warpSum(x[threadIdx.x] * x[threadIdx.x]);
    if (threadIdx.x == 0)
        y[0] = 1.0f / sqrtf(s / n + eps) * float(M_PI);
})");
    row("libcu++ beside ours", R"(
#include <cstdint>
#include <limits>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
extern "C" __global__ void k(uint64_t *y) { y[0] = cuda::std::numeric_limits<uint64_t>::max() - std::numeric_limits<std::uint64_t>::min(); })");
}

void TestStandardHeaders::asPeopleWrite()
{
    QFETCH(QString, source);
    const auto output = compileCuda(source.toStdString(), "k.cu", {}, "sm_90a");
    if (!output && output.error().code == ErrorCode::Unavailable)
        QSKIP(output.error().message.c_str());
    QVERIFY2(output, output ? "" : output.error().message.c_str());
    QVERIFY2(output->ok, output->log.c_str());
    QVERIFY2(output->log.find("warning") == std::string::npos, output->log.c_str());
}

void TestStandardHeaders::withHostCode_data()
{
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("kernel");
    QTest::newRow("program") << QString(tests::programSource) << "softmax_kernel";
    QTest::newRow("extension") << QString(tests::extensionSource) << "silu_kernel";
    QString launcher(tests::launcherSource);
    QTest::newRow("launcher") << launcher.replace("#include \"tile.cuh\"\n#include \"tile.cuh\"",
                                                  tests::siblingSource)
                              << "matmul";
    QTest::newRow("template") << QString(tests::templateSource) << "layernorm";
}

void TestStandardHeaders::withHostCode()
{
    QFETCH(QString, source);
    QFETCH(QString, kernel);
    const kernel::DeviceSource device = kernel::deviceSourceOf(source.toStdString(), kernel::Surface::Cuda);
    const auto output = compileCuda(device.code, "k.cu", {}, "compute_90a");
    if (!output && output.error().code == ErrorCode::Unavailable)
        QSKIP(output.error().message.c_str());
    QVERIFY2(output && output->ok, output ? output->log.c_str() : "");
    const QByteArray ptx(reinterpret_cast<const char *>(output->binary.data()),
                         static_cast<qsizetype>(output->binary.size()));
    QVERIFY2(ptx.contains(".visible .entry " + kernel.toUtf8() + "("), ptx.constData());
}

void TestStandardHeaders::everyOfferIsKept()
{
    // One source a header that uses all of its names: what a message asks for has to be there.
    for (const cuda::StandardHeader &header : cuda::standardHeaders()) {
        std::string uses;
        int count = 0;
        const QStringList names = QString(header.offers).split(' ', Qt::SkipEmptyParts);
        for (const QString &name : names) {
            if (name == "offsetof")
                continue;
            const QByteArray word = name.toUtf8();
            const std::string n = std::to_string(count++);
            const bool isMacro = name.front().isUpper() && name != "CUtensorMap";
            uses += isMacro ? "constexpr auto v" + n + " = sizeof(" + word.toStdString() + ");\n"
                    : name.startsWith("std::")
                        ? "namespace n" + n + " { using " + word.toStdString() + "; }\n"
                        : "using t" + n + " = " + word.toStdString() + ";\n";
        }
        const auto output =
            compileCuda("#include <" + std::string(header.name) + ">\n" + uses, "k.cu", {}, "sm_90a");
        if (!output && output.error().code == ErrorCode::Unavailable)
            QSKIP(output.error().message.c_str());
        // libcu++ may be missing; ours has to be whole.
        const bool isTheirs = std::string_view(header.text).find("cuda/std/") != std::string_view::npos;
        QVERIFY2(output && (output->ok || isTheirs), output ? output->log.c_str() : "");
        const QString told = header.offers;
        QVERIFY2(output->log.find("note: ") == std::string::npos, qPrintable(told));
        if (isTheirs)
            break; // one of them: each takes a second
    }
}

void TestStandardHeaders::whatStandsIsLeftAlone()
{
    // Their own meaning of a name wins: nothing is included that nobody misses.
    const auto output =
        compileCuda("typedef unsigned long uint64_t;\n#define INFINITY 2\n"
                    "namespace std { template <class T> __device__ T max(T a, T) { return a; } }\n"
                    "extern \"C\" __global__ void k(uint64_t *y) { *y = std::max(INFINITY, 1); }\n",
                    "k.cu", {}, "sm_90a");
    if (!output && output.error().code == ErrorCode::Unavailable)
        QSKIP(output.error().message.c_str());
    QVERIFY2(output && output->ok, output ? output->log.c_str() : "");
    QVERIFY2(output->log.find("note: ") == std::string::npos, output->log.c_str());
}

void TestStandardHeaders::linesStay_data()
{
    QTest::addColumn<QString>("head");
    QTest::newRow("nothing") << "";
    QTest::newRow("included by us") << "__device__ float low() { return -INFINITY; }";
    QTest::newRow("included by them") << "#include <cstdint>";
    QTest::newRow("for the device") << "inline float f(float v) { return v; }";
}

void TestStandardHeaders::linesStay()
{
    QFETCH(QString, head);
    const auto output = compileCuda(
        head.toStdString() + "\n\nextern \"C\" __global__ void k(float *y)\n{\n    y[0] = nowhere;\n}\n",
        "K03.cu", {}, "sm_90a");
    if (!output && output.error().code == ErrorCode::Unavailable)
        QSKIP(output.error().message.c_str());
    QVERIFY(output && !output->ok);
    QVERIFY2(output->log.find("K03.cu(5): error: identifier \"nowhere\" is undefined") != std::string::npos,
             output->log.c_str());
}

void TestStandardHeaders::noOtherFile_data()
{
    QTest::addColumn<QString>("name");
    for (const char *name :
         {"vector", "iostream", "torch/extension.h", "unistd.h", "sys/types.h", "../stdint.h"})
        QTest::newRow(name) << name;
}

void TestStandardHeaders::noOtherFile()
{
    QFETCH(QString, name);
    const auto output = compileCuda("#include <" + name.toStdString() + ">\n", "k.cu", {}, "sm_90a");
    if (!output && output.error().code == ErrorCode::Unavailable)
        QSKIP(output.error().message.c_str());
    QVERIFY(output && !output->ok);
    QVERIFY2(output->log.find("cannot open source file") != std::string::npos, output->log.c_str());
    std::vector<std::string> ours;
    for (const cuda::StandardHeader &header : cuda::standardHeaders())
        ours.emplace_back(header.name);
    QVERIFY(!holds(ours, name.toStdString()));
}

QTEST_GUILESS_MAIN(TestStandardHeaders)
#include "tst_standardheaders.moc"
