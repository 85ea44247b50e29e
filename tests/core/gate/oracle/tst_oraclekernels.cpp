// SPDX-License-Identifier: GPL-3.0-or-later
//
// The oracle's kernels as they are, run on the CPU and compared with the oracle of the CPU; and compiled for a device where there is
// a compiler.
#include "core/device/backend.h"
#include "core/gate/check/oracle.h"
#include "core/gate/oracle/oraclejob.h"
#include "core/gate/oracle/smallcases.h"
#include "core/gate/oracle/trusteddevice.h"
#include "tests/core/gate/oracle/emulator.h"
#include "tests/core/gate/oracle/oracleworkloads.h"

#include <QtTest>

#include <cstring>
#include <variant>

// NOLINTBEGIN(bugprone-suspicious-include)
#define WIDE 1
namespace kernels {
using std::exp;
#include "core/gate/oracle/kernels/elements.cu"
} // namespace kernels
using namespace kernels; // as in the one file that a device gets
#define TYPE_A 1
#define TYPE_B 1
#define TYPE_BIAS 5
#define multiply multiplyPlain // C names are one, whatever their namespace
#define TRANSPOSE_B 0
namespace plain {
#include "core/gate/oracle/kernels/matmul.cu"
}
#undef TRANSPOSE_B
#undef multiply
#undef TILE
#undef SLICE
#undef ROW
#define multiply multiplyTransposed
#define TRANSPOSE_B 1
namespace transposed {
#include "core/gate/oracle/kernels/matmul.cu"
}
#undef TRANSPOSE_B
#undef multiply
#undef TILE
#undef SLICE
#undef ROW
#define multiply multiplyGathered
#define GATHER 1
namespace gathered {
#include "core/gate/oracle/kernels/matmul.cu"
}
#undef GATHER
#undef multiply
#undef TILE
#undef SLICE
#undef ROW
#undef TYPE_BIAS
#define TYPE_BIAS 1
#define multiply multiplyBiased
#define TRANSPOSE_B 0
namespace biased {
#include "core/gate/oracle/kernels/matmul.cu"
}
#undef TRANSPOSE_B
#undef multiply
#undef TILE
#undef SLICE
#undef ROW
#define TYPE_Q 1
#define TYPE_K 1
#define TYPE_V 1
#define CAUSAL 0
#define attend attendNarrow
#define COLUMNS 4
namespace narrowheads {
#include "core/gate/oracle/kernels/attention.cu"
}
#undef COLUMNS
#undef attend
#undef SLICE
#undef ROW
#undef QUERIES_OF_BLOCK
#undef KEYS_OF_TILE
#undef KEY_ROW
#undef VALUES
#undef KEYS_OF_SLICE
#define attend attendUsual
#define COLUMNS 8
namespace usualheads {
#include "core/gate/oracle/kernels/attention.cu"
}
#undef CAUSAL
#undef attend
#undef SLICE
#undef ROW
#undef QUERIES_OF_BLOCK
#undef KEYS_OF_TILE
#undef KEY_ROW
#undef VALUES
#undef KEYS_OF_SLICE
#define attend attendCausal
#define CAUSAL 1
namespace causal {
#include "core/gate/oracle/kernels/attention.cu"
}
#undef COLUMNS
#undef attend
// NOLINTEND(bugprone-suspicious-include)

using namespace klineage;
using namespace klineage::gate;

namespace {

std::int64_t sizeOf(const OracleJob &job, const char *name)
{
    return std::get<std::int64_t>(job.sizes.at(name));
}

int blocks(std::int64_t extent)
{
    return static_cast<int>((extent + 63) / 64);
}

std::vector<double> emulated(const OracleJob &job)
{
    std::vector<double> out(job.elements, -77);
    const auto in = [&](std::size_t i) { return job.inputs[i].bytes.data(); };
    const auto size = [&](const char *name) { return sizeOf(job, name); };
    if (std::string(job.name) == "attention.cu") {
        const auto *queryOffsets = reinterpret_cast<const long long *>(in(3));
        const auto *keyOffsets = reinterpret_cast<const long long *>(in(4));
        const auto attend = job.tunables.at("CAUSAL") == 1    ? causal::attendCausal
                            : job.tunables.at("COLUMNS") == 4 ? narrowheads::attendNarrow
                                                              : usualheads::attendUsual;
        test::launchEmulated(blocks(size("QUERIES")) + static_cast<int>(size("SEQUENCES")),
                             static_cast<int>(size("HEADS")), 1, [&] {
                                 attend(in(0), in(1), in(2), queryOffsets, keyOffsets, out.data(),
                                        size("SEQUENCES"), size("HEADS"), size("KV_HEADS"), size("DIM"),
                                        1.0 / std::sqrt(static_cast<double>(size("DIM"))));
                             });
        return out;
    }
    const auto multiply = job.tunables.at("GATHER") == 1        ? gathered::multiplyGathered
                          : job.tunables.at("TYPE_BIAS") < 5    ? biased::multiplyBiased
                          : job.tunables.at("TRANSPOSE_B") == 1 ? transposed::multiplyTransposed
                                                                : plain::multiplyPlain;
    const auto *offsets = reinterpret_cast<const long long *>(in(3));
    test::launchEmulated(blocks(size("M")), blocks(size("N")), static_cast<int>(size("GROUPS")), [&] {
        multiply(in(0), in(1), in(2), offsets, out.data(), size("N"), size("K"), size("HEIGHT"),
                 size("WIDTH"), size("CHANNELS"), size("WINDOW"));
    });
    return out;
}

} // namespace

class TestOracleKernels : public QObject
{
    Q_OBJECT
private slots:
    void elementsAreWhatTheyAre();
    void agreeWithTheCpu_data();
    void agreeWithTheCpu();
    void disagreementIsTold();
    void whatHasNoKernelIsSaid();
    void singlePrecisionOnlyWhereItIsEnough();
    void compileForADevice();
};

void TestOracleKernels::elementsAreWhatTheyAre()
{
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    for (unsigned bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const auto small = static_cast<std::uint8_t>(bits);
        const auto is = [&](kernel::DType dtype, const void *data) {
            return kernel::loadElement(static_cast<const std::byte *>(data), dtype, 0);
        };
        QVERIFY2(same(kernels::element<1>(&half, 0), is(kernel::DType::F16, &half)),
                 qPrintable(QString::number(bits)));
        QVERIFY2(same(kernels::element<2>(&half, 0), is(kernel::DType::BF16, &half)),
                 qPrintable(QString::number(bits)));
        QVERIFY2(same(kernels::element<3>(&small, 0), is(kernel::DType::F8E4M3, &small)),
                 qPrintable(QString::number(bits)));
        QVERIFY2(same(kernels::element<4>(&small, 0), is(kernel::DType::F8E5M2, &small)),
                 qPrintable(QString::number(bits)));
    }
    const float third = 1.0f / 3;
    QCOMPARE(kernels::element<0>(&third, 0), static_cast<double>(third));
}

void TestOracleKernels::agreeWithTheCpu_data()
{
    QTest::addColumn<QString>("oracle");
    QTest::addColumn<int>("width");
    QTest::addColumn<int>("kvHeads");
    QTest::addColumn<bool>("batch");
    QTest::addColumn<bool>("bias");
    QTest::newRow("product") << "matmul_nn" << 35 << 4 << false << false;
    QTest::newRow("product, transposed") << "matmul_nt" << 35 << 4 << false << false;
    QTest::newRow("product with a bias") << "matmul_nn" << 35 << 4 << false << true;
    QTest::newRow("products") << "matmul_nn" << 35 << 4 << true << false;
    QTest::newRow("products, transposed") << "matmul_nt" << 35 << 4 << true << false;
    QTest::newRow("products of groups") << "matmul_grouped_nn" << 35 << 4 << false << false;
    QTest::newRow("convolution") << "conv2d_nhwc" << 3 << 4 << false << false;
    QTest::newRow("attention, narrow heads") << "attention_varlen" << 40 << 4 << false << false;
    QTest::newRow("attention") << "attention_varlen" << 128 << 4 << false << false;
    QTest::newRow("causal attention") << "attention_varlen_causal" << 24 << 4 << false << false;
    QTest::newRow("causal attention, shared keys") << "attention_varlen_causal" << 40 << 2 << false << false;
}

void TestOracleKernels::agreeWithTheCpu()
{
    QFETCH(const QString, oracle);
    QFETCH(const int, width);
    QFETCH(const int, kvHeads);
    QFETCH(const bool, batch);
    QFETCH(const bool, bias);
    const auto workload = test::workloadOf({oracle.toStdString(), "f16", "1", width, kvHeads, batch, bias});
    const auto tensors = generateCase(workload, workload.cases.front(), 5);
    QVERIFY(tensors);
    const auto cases = smallCasesOf(workload, *tensors);
    QVERIFY(cases.size() >= 2);
    for (const auto &small : cases) {
        const auto job = oracleJobOf(workload, small, true);
        QVERIFY2(job, job ? "" : job.error().message.c_str());
        const auto cpu = computeOracle(workload, small);
        QVERIFY2(cpu, cpu ? "" : cpu.error().message.c_str());
        const auto wrong = disagreement(emulated(*job), cpu->at(job->output), true);
        QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
    }
}

void TestOracleKernels::disagreementIsTold()
{
    const std::vector<double> cpu{1.0, -2.0, 3.0};
    QVERIFY(!disagreement(std::vector<double>{1.0, -2.0 - 1e-12, 3.0}, cpu, true));
    QVERIFY(!disagreement(RawVector<float>{1.0f, -2.0f, 3.0f}, cpu, false));
    const auto wide = disagreement(std::vector<double>{1.0, -2.0, 3.5}, cpu, true);
    QVERIFY(wide);
    QVERIFY2(wide->starts_with("element 2 is 3.5, not 3"), wide->c_str());
    QVERIFY(disagreement(RawVector<float>{1.0f, -2.000001f, 3.0f}, cpu, false));
    QVERIFY(disagreement(std::vector<double>{1.0, NAN, 3.0}, cpu, true));
    QVERIFY(disagreement(std::vector<double>{1.0, -2.0}, cpu, true));
}

void TestOracleKernels::whatHasNoKernelIsSaid()
{
    const auto why = [](const workload::Workload &workload) {
        const auto tensors = generateCase(workload, workload.cases.front(), 5);
        const auto job = oracleJobOf(workload, *tensors, true);
        return job ? std::string() : job.error().message;
    };
    QCOMPARE(why(test::workloadOf({"matmul_nn"})), std::string());
    auto other = test::workloadOf({"matmul_nn"});
    other.oracle = "softmax_rows";
    QCOMPARE(why(other), std::string("there is no kernel for softmax_rows"));
    auto integers = test::workloadOf({"matmul_nn"});
    integers.tensors.front().dtype = kernel::DType::I8;
    QCOMPARE(why(integers), std::string("a type of its inputs is not known there"));
    QCOMPARE(why(test::workloadOf({"attention_varlen", "f16", "1", 264})),
             std::string("its heads are too many or too wide"));
    auto unfit = test::workloadOf({"matmul_nn"});
    unfit.oracleArgs["b"] = "x";
    QCOMPARE(why(unfit), std::string("the tensors are not such as it takes"));
}

void TestOracleKernels::singlePrecisionOnlyWhereItIsEnough()
{
    const auto narrow = [](const char *dtype, bool exact) {
        const auto workload = test::workloadOf({"matmul_nn", dtype});
        workload::Tolerance tolerance;
        tolerance.exact = exact;
        return narrowIsEnough(*generateCase(workload, workload.cases.front(), 5), tolerance);
    };
    QVERIFY(narrow("f16", false));
    QVERIFY(narrow("bf16", false));
    QVERIFY(!narrow("bf16", true)); // rounding twice is not rounding once
    QVERIFY(!narrow("f32", false));
}

void TestOracleKernels::compileForADevice()
{
    struct Build {
        const char *oracle;
        const char *dtype;
        int width;
        bool wide;
        const char *target;
        bool bias = false;
    };
    constexpr Build builds[] = {{"matmul_nn", "f32", 35, true, "sm_80"},
                                {"matmul_nt", "bf16", 35, false, "sm_90a"},
                                {"conv2d_nhwc", "f16", 3, false, "sm_90a"},
                                {"matmul_nn", "f8e4m3", 35, false, "sm_90a"},
                                {"matmul_grouped_nn", "bf16", 35, false, "sm_90a", true},
                                {"attention_varlen", "f16", 128, false, "sm_90a"},
                                {"attention_varlen_causal", "f16", 128, false, "sm_90a"},
                                {"attention_varlen", "f8e5m2", 256, true, "sm_80"}};
    for (const Build &build : builds) {
        const auto workload =
            test::workloadOf({build.oracle, build.dtype, "1", build.width, 4, false, build.bias});
        const auto tensors = generateCase(workload, workload.cases.front(), 5);
        const auto job = oracleJobOf(workload, *tensors, build.wide);
        QVERIFY2(job, job ? "" : job.error().message.c_str());
        const auto compiled = compileCuda(TrustedDevice::Kernel{job->text, job->name, {}}.source(), job->name,
                                          job->tunables, build.target);
        if (!compiled)
            QSKIP(compiled.error().message.c_str());
        QVERIFY2(compiled->ok, compiled->log.c_str());
    }
}

QTEST_GUILESS_MAIN(TestOracleKernels)
#include "tst_oraclekernels.moc"
