// SPDX-License-Identifier: GPL-3.0-or-later
//
// The timed shape with what the other cases are filled with, and how far off a result may be there.
#include "core/gate/check/hardcontent.h"

#include "core/gate/check/comparison.h"

#include <QTest>

#include <cmath>
#include <filesystem>

using namespace klineage;
using namespace klineage::gate;

namespace {

workload::Workload corpusWorkload(const char *name)
{
    const auto read = workload::readWorkload(std::filesystem::path(KLINEAGE_SOURCE_DIR)
                                             / "tests/gate/corpus/workloads" / name);
    if (!read)
        qFatal("%s", read.error().message.c_str());
    return *read;
}

const HostTensor &tensorOf(const CaseInstance &instance, const char *name)
{
    for (const HostTensor &tensor : instance.tensors) {
        if (tensor.name == name)
            return tensor;
    }
    qFatal("no tensor %s", name);
}

} // namespace

class TestHardContent : public QObject
{
    Q_OBJECT

private slots:
    /// Rows of a softmax are those of all its cases, some masked, some large, some both, and half of them as ordinary as timed ones.
    void rowsOfAllCases()
    {
        const auto workload = corpusWorkload("small-softmax");
        const auto hard = hardContent(workload);
        QVERIFY(hard);
        QCOMPARE(hard->axes, workload.cases.front().axes);
        QCOMPARE(hard->name, std::string("timed (as large, masked, mostly-masked, mixed)"));
        const auto instance = makeInstance(workload, *hard, 5).value();
        const HostTensor &x = tensorOf(*instance, "x");
        int masked = 0;
        int large = 0;
        int ordinary = 0;
        for (std::size_t row = 0; row < 128; ++row) {
            bool hasMask = false;
            bool isLarge = false;
            bool hasFinite = false;
            for (std::size_t i = 0; i < 256; ++i) {
                const double value = kernel::loadElement(x.bytes.data(), x.dtype, row * 256 + i);
                hasMask |= std::isinf(value);
                hasFinite |= std::isfinite(value);
                isLarge |= std::isfinite(value) && std::abs(value) > 500;
            }
            QVERIFY(hasFinite);
            masked += hasMask ? 1 : 0;
            large += isLarge ? 1 : 0;
            ordinary += !hasMask && !isLarge ? 1 : 0;
        }
        QVERIFY2(ordinary > 50 && ordinary < 100, qPrintable(QString::number(ordinary)));
        QVERIFY(masked > 30 && masked < 120);
        QVERIFY(large > 15 && large < 100);
        // The same seed, the same content.
        QVERIFY(tensorOf(*makeInstance(workload, *hard, 5).value(), "x").bytes == x.bytes);
        QVERIFY(tensorOf(*makeInstance(workload, *hard, 6).value(), "x").bytes != x.bytes);
    }

    /// Of a product all inputs are mixed; exact cases are left out.
    void productsAreMixed()
    {
        const auto workload = corpusWorkload("small-sgemm");
        const auto hard = hardContent(workload);
        QVERIFY(hard);
        for (const char *tensor : {"a", "b"})
            QVERIFY(hard->distributions.at(tensor).kind == workload::DistributionKind::Mixed);
        QVERIFY(!hard->exact);
    }

    /// Where there are no other contents there is nothing to check, and nothing where a case's content need make no sense at that length.
    void notForAll()
    {
        auto workload = corpusWorkload("small-softmax");
        workload.cases.resize(5);
        QVERIFY(!hardContent(workload));
        workload = corpusWorkload("small-softmax");
        workload.oracle = "gated_delta_rule";
        QVERIFY(!hardContent(workload));
    }

    /// A product of mixed content may be off by what adding rows beforehand costs, not by what fewer bits do.
    void productsMayAddFirst()
    {
        const auto workload = corpusWorkload("small-sgemm");
        const auto hard = makeInstance(workload, *hardContent(workload), 3).value();
        const auto usual = makeInstance(workload, workload.cases.front(), 3).value();
        QCOMPARE(usual->tolerance.atol, workload.toleranceFor(workload.cases.front())->atol);
        QVERIFY(hard->tolerance.atol > 2 * usual->tolerance.atol);
        QVERIFY(hard->tolerance.atol < 1e-4); // TF32 is off by 3e-4 of each product
        QCOMPARE(hard->tolerance.relL2, usual->tolerance.relL2);
    }

    void overflowsAreSeen()
    {
        CaseInstance instance;
        HostTensor out;
        out.name = "y";
        out.role = workload::Role::Output;
        out.dtype = kernel::DType::F16;
        out.shape = {2};
        instance.tensors = {out};
        instance.expected["y"] = std::vector<double>{1, 65000};
        QVERIFY(!overflows(instance));
        instance.expected["y"] = std::vector<double>{1, -66000};
        QVERIFY(overflows(instance));
        instance.tensors.front().dtype = kernel::DType::BF16;
        QVERIFY(!overflows(instance));
    }
};

QTEST_GUILESS_MAIN(TestHardContent)
#include "tst_hardcontent.moc"
