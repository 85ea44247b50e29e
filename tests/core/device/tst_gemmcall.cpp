// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/gemmcall.h"

#include <QtTest>

using namespace klineage;
using namespace klineage::gate;
using cuda::gemmCallOf;

class TestGemmCall : public QObject
{
    Q_OBJECT
private slots:
    void sizes()
    {
        const auto one = gemmCallOf({"cublas", "gemm_nt", {}, {{"m", 3}, {"n", 8}, {"k", 5}}});
        QVERIFY(one);
        QCOMPARE(std::tuple(one->batch, one->m, one->n, one->k, one->transposeB),
                 std::tuple(1, 3, 8, 5, true));
        const auto several =
            gemmCallOf({"cublas", "gemm_nn", {}, {{"batch", 4}, {"m", 3}, {"n", 8}, {"k", 5}}});
        QVERIFY(several);
        QCOMPARE(std::tuple(several->batch, several->m, several->transposeB), std::tuple(4, 3, false));
        QCOMPARE(std::tuple(several->strideA(), several->strideB(), several->strideOut()),
                 std::tuple(15LL, 40LL, 24LL));
        const auto grouped =
            gemmCallOf({"cublas", "gemm_nn", {}, {{"batch", 4}, {"t", 12}, {"n", 8}, {"k", 5}}});
        QVERIFY(grouped);
        QCOMPARE(std::tuple(grouped->batch, grouped->m), std::tuple(4, 3));
    }

    void refused()
    {
        const auto why = [](std::map<std::string, std::int64_t> sizes) {
            const auto call = gemmCallOf({"cublas", "gemm_nn", {}, std::move(sizes)});
            return QString::fromStdString(call ? "" : call.error().message);
        };
        QCOMPARE(why({{"m", 3}, {"n", 8}}),
                 QString("Cannot use cublas gemm_nn: it needs sizes n and k, and m or t."));
        QCOMPARE(why({{"n", 8}, {"k", 8}}),
                 QString("Cannot use cublas gemm_nn: it needs sizes n and k, and m or t."));
        QCOMPARE(why({{"t", 13}, {"batch", 4}, {"n", 8}, {"k", 8}}),
                 QString("Cannot use cublas gemm_nn: its 13 rows are not 4 groups of one size."));
        QCOMPARE(why({{"m", std::int64_t{1} << 31}, {"n", 8}, {"k", 8}}),
                 QString("Cannot use cublas gemm_nn: a size of it is too large."));
    }
};

QTEST_GUILESS_MAIN(TestGemmCall)
#include "tst_gemmcall.moc"
