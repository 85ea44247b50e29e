// SPDX-License-Identifier: GPL-3.0-or-later
//
// What results were off by before they were rounded to their type: as it is, and of sums in half precision that rounding hides.
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/precision.h"
#include "tests/core/gate/corpusworkload.h"

#include <QTest>

#include <cmath>
#include <random>
#include <vector>

using namespace klineage;
using namespace klineage::gate;
using klineage::test::corpusWorkload;
using kernel::DType;

namespace {

double rounded(double value, DType dtype)
{
    std::byte bytes[8] = {};
    kernel::storeElement(bytes, dtype, 0, value);
    return kernel::loadElement(bytes, dtype, 0);
}

const HostTensor &named(const CaseInstance &instance, const std::string &name)
{
    for (const HostTensor &tensor : instance.tensors) {
        if (tensor.name == name)
            return tensor;
    }
    qFatal("no tensor %s", name.c_str());
}

/// y = x · weightᵀ, of which so many products at a time are added up in half precision (0: none) and the rest in single.
OutputCheck checkOf(const CaseInstance &instance, std::size_t atOnce)
{
    const HostTensor &y = named(instance, "y");
    const auto x = toFloats(named(instance, "x"));
    const auto w = toFloats(named(instance, "weight"));
    const std::size_t columns = y.rowLength();
    const std::size_t rows = instance.expected.at("y").size() / columns;
    const std::size_t terms = x.size() / rows;
    std::vector<std::byte> out(rows * columns * kernel::sizeOf(y.dtype));
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            float sum = 0;
            double half = 0;
            for (std::size_t k = 0; k < terms; ++k) {
                const double product = double(x[i * terms + k]) * w[j * terms + k];
                if (atOnce == 0) {
                    sum += static_cast<float>(product);
                    continue;
                }
                half = rounded(half + product, DType::F16);
                if ((k + 1) % atOnce == 0 || k + 1 == terms) {
                    sum += static_cast<float>(half);
                    half = 0;
                }
            }
            kernel::storeElement(out.data(), y.dtype, i * columns + j, sum);
        }
    }
    return compareOutput(out, y.dtype, columns, instance.expected.at("y"), instance.tolerance);
}

} // namespace

class TestBeforeRounding : public QObject
{
    Q_OBJECT

private slots:
    /// As large as they were, within a few per cent, whether they are far below the distance of two numbers or some of them.
    void errorsAreWhatTheyWere()
    {
        std::mt19937_64 random(7);
        std::normal_distribution<double> normal;
        for (const DType dtype : {DType::BF16, DType::F16, DType::F32}) {
            const double distance = 2 * unitRoundoff(dtype);
            for (const double share : {1.0 / 64, 1.0 / 8, 4.0}) {
                double were = 0;
                double are = 0;
                for (int i = 0; i < 200'000; ++i) {
                    const double want = normal(random);
                    const double off = share * distance * normal(random);
                    were += off * off;
                    are += squareBeforeRounding(rounded(want + off, dtype), want, dtype);
                }
                const double ratio = std::sqrt(are / were);
                QVERIFY2(ratio > 0.8 && ratio < 1.25, qPrintable(QString("%1: %2").arg(share).arg(ratio)));
            }
        }
    }

    void whatIsRightIsOffByNothing()
    {
        std::mt19937_64 random(9);
        std::normal_distribution<double> normal;
        for (const DType dtype : {DType::BF16, DType::F16, DType::F32}) {
            for (int i = 0; i < 20'000; ++i) {
                const double want =
                    static_cast<float>(std::ldexp(normal(random), i % 50 - 40)); // which is rounded once
                QCOMPARE(squareBeforeRounding(rounded(want, dtype), want, dtype), 0.0);
            }
            QCOMPARE(squareBeforeRounding(0, 0, dtype), 0.0);
        }
    }

    /// Beside usual contents, where no other metric tells sums of a few products in half precision from others.
    void sumsInHalfPrecisionShow()
    {
        for (const char *name : {"deep-gemm", "half-gemm"}) {
            workload::Workload workload = corpusWorkload(name);
            workload::Case c = workload.cases.front();
            c.axes = {{"M", 24}, {"N", 24}, {"K", 1024}};
            const auto instance = makeInstance(workload, c, 11).value();
            const OutputCheck single = checkOf(*instance, 0);
            QVERIFY2(single.ok(), qPrintable(QString::number(std::log2(single.beforeRounding))));
            QVERIFY2(single.beforeRounding < 0x1p-17,
                     qPrintable(QString::number(std::log2(single.beforeRounding))));
            for (const std::size_t atOnce : {4, 16, 64}) {
                const OutputCheck half = checkOf(*instance, atOnce);
                QVERIFY2(half.beforeRounding > 0x1p-14,
                         qPrintable(QString::number(std::log2(half.beforeRounding))));
                QVERIFY(!half.ok());
                QVERIFY(std::string(name) == "half-gemm" || atOnce > 16
                        || half.failure == OutputCheck::Failure::BeforeRounding);
            }
        }
    }

    /// Few large rows do not hide what all others lose.
    void whatRowsLoseShows()
    {
        constexpr std::size_t rows = 64;
        constexpr std::size_t length = 96;
        std::mt19937_64 random(5);
        std::normal_distribution<double> normal;
        std::vector<double> want(rows * length);
        std::vector<std::byte> single(want.size() * sizeof(float));
        std::vector<std::byte> half = single;
        for (std::size_t i = 0; i < want.size(); ++i) {
            const bool isLarge = i / length % 8 == 0;
            want[i] = (isLarge ? 256 : 1) * normal(random);
            kernel::storeElement(single.data(), DType::F32, i, want[i]);
            kernel::storeElement(half.data(), DType::F32, i,
                                 isLarge ? want[i] : rounded(want[i], DType::F16));
        }
        workload::Tolerance tolerance;
        tolerance.atol = tolerance.rtol = tolerance.relL2 = 1;
        tolerance.beforeRounding = 1;
        const auto check = [&](const std::vector<std::byte> &out, std::size_t rowLength) {
            return compareOutput(out, DType::F32, rowLength, std::span<const double>(want), tolerance);
        };
        QVERIFY(check(half, length).beforeRounding < 0x1p-18);
        QVERIFY(check(half, length).rowsBeforeRounding > 0x1p-13);
        QVERIFY(check(half, 3).rowsBeforeRounding > 0x1p-13); // some at a time
        QCOMPARE(check(half, 0).rowsBeforeRounding, check(half, 0).beforeRounding);
        QCOMPARE(check(half, want.size()).rowsBeforeRounding, check(half, 0).beforeRounding);
        QVERIFY(check(single, length).rowsBeforeRounding < 0x1p-24);
        // Rows of next to nothing say nothing.
        for (std::size_t i = 0; i < length; ++i)
            want[i] *= 0x1p-40;
        QVERIFY(check(single, length).rowsBeforeRounding > 0x1p-24);
        for (std::size_t i = 0; i < length; ++i)
            kernel::storeElement(single.data(), DType::F32, i, 0);
        QVERIFY(check(single, length).rowsBeforeRounding < 0x1p-24);
    }

    /// Single precision, bytes, other operators and contents that are hard have no such limit.
    void otherContentsHaveNoLimit()
    {
        const auto limitOf = [](const char *name, std::size_t which) {
            const auto workload = corpusWorkload(name);
            return makeInstance(workload, drawnAt(workload.cases.at(which), {}), 3)
                .value()
                ->tolerance.beforeRounding;
        };
        // Where it is asked, but has no limit.
        QVERIFY(std::isinf(limitOf("small-sgemm", 0)));
        QVERIFY(std::isinf(limitOf("small-softmax", 0)));
        QVERIFY(limitOf("deep-gemm", 1) > 0);
        const auto workload = corpusWorkload("deep-gemm");
        for (const workload::Case &c : workload.cases) {
            const auto instance = makeInstance(workload, drawnAt(c, {}), 3).value();
            const double limit = instance->tolerance.beforeRounding;
            QCOMPARE(limit > 0 && !std::isinf(limit), c.distributions.empty());
        }
    }

    /// Beside a parent's: what its type has, eight times what the parent gave up, and what the workload says of its steps.
    void whatAParentAllows()
    {
        const auto allowed = [](const workload::Workload &workload, double parent) {
            return precisionAllowed(workload, workload.tensors.back(), 1 << 20, parent);
        };
        auto loose = corpusWorkload("loose-silu");
        QCOMPARE(allowed(loose, 0x1p-24), 0x1p-18);
        QCOMPARE(allowed(loose, 0x1p-20), 0x1p-17);
        QCOMPARE(allowed(loose, 0x1p-12), 0x1p-11);
        loose.tolerance.roundsBetween = true; // f32 between as well
        QCOMPARE(allowed(loose, 0x1p-24), 0x1p-18);
        loose.tensors.back().dtype = DType::F64;
        QCOMPARE(allowed(loose, 0x1p-50), 0x1p-42);
        loose.tensors.back().dtype = DType::BF16;
        QCOMPARE(allowed(loose, 0), 0x1p-18);
        QCOMPARE(allowed(loose, 0x1p-17), 0x1p-15);
        QCOMPARE(allowed(corpusWorkload("half-gemm"), 0x1p-20), 0x1p-15);
        QCOMPARE(allowed(corpusWorkload("small-attention"), 0x1p-20), unitRoundoff(DType::F16));
        QVERIFY(allowed(corpusWorkload("small-fp8"), 0x1p-20) > 0x1p-9);
        QCOMPARE(allowed(corpusWorkload("e5m2-weights-gemm"), 0x1p-20), 0x1p-15);
        loose = corpusWorkload("loose-silu");
        workload::Case exact = loose.cases.front();
        QVERIFY(tellsPrecision(loose, exact));
        exact.exact = true;
        QVERIFY(!tellsPrecision(loose, exact));
    }
};

QTEST_GUILESS_MAIN(TestBeforeRounding)
#include "tst_beforerounding.moc"
