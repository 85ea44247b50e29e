// SPDX-License-Identifier: GPL-3.0-or-later
//
// Contents of products whose sums grow and shrink on the way, or of which few terms are out of proportion, and end as usual; and rows apart from zero.
#include "core/gate/check/hardcontent.h"
#include "tests/core/gate/corpusworkload.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

using namespace klineage;
using namespace klineage::gate;
using klineage::test::corpusWorkload;

namespace {

std::optional<workload::Case> contentOf(const workload::Workload &workload, const std::string &name,
                                        std::uint64_t seed = 3)
{
    for (const workload::Case &content : hardContents(workload, seed)) {
        if (content.name.find(name) != std::string::npos)
            return content;
    }
    return std::nullopt;
}

struct Matrix {
    std::vector<float> values;
    std::size_t columns = 0;
    [[nodiscard]] double at(std::size_t row, std::size_t column) const
    {
        return values[row * columns + column];
    }
};

/// The tensor of a role, or of that name.
Matrix matrixOf(const workload::Workload &workload, const std::vector<HostTensor> &tensors, const char *role)
{
    const auto argument = workload.oracleArgs.find(role);
    const std::string name = argument == workload.oracleArgs.end() ? role : argument->second;
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto &tensor) { return tensor.name == name; });
    if (found == tensors.end())
        qFatal("no tensor %s", name.c_str());
    return {toFloats(*found), found->rowLength()};
}

/// What a sum of products is after each 64 terms, and at its end.
struct Walk {
    double farthest = 0;
    double end = 0;
};

template <typename Term>
Walk walkOf(std::size_t terms, Term term)
{
    Walk walk;
    for (std::size_t k = 0; k < terms; ++k) {
        walk.end += term(k);
        if (k % 64 == 63)
            walk.farthest = std::max(walk.farthest, std::abs(walk.end));
    }
    return walk;
}

} // namespace

class TestDrifting : public QObject
{
    Q_OBJECT

private slots:
    /// On the way a sum is many times what it ends as, and it ends as it does without.
    void sumsEndAsUsual()
    {
        for (const char *name : {"deep-gemm", "half-gemm", "small-fp8"}) {
            const auto workload = corpusWorkload(name);
            const auto content = contentOf(workload, "drifting sums");
            QVERIFY2(content, name);
            const auto drifting = generateCase(workload, *content, 5).value();
            const auto usual = generateCase(workload, workload.cases.front(), 5).value();
            const auto mean = [&](const std::vector<HostTensor> &tensors, double Walk::*what) {
                const Matrix a = matrixOf(workload, tensors, "a");
                const Matrix b = matrixOf(workload, tensors, "b");
                double sum = 0;
                for (std::size_t i = 0; i < 16; ++i) {
                    const Walk walk = walkOf(a.columns, [&](std::size_t k) {
                        return a.at(i, k)
                               * (workload.oracle == "matmul_nt" ? b.at(3 * i, k) : b.at(k, 3 * i));
                    });
                    sum += std::abs(walk.*what) / 16;
                }
                return sum;
            };
            const double ends = mean(drifting, &Walk::end) / mean(usual, &Walk::end);
            QVERIFY2(ends > 0.4 && ends < 3, qPrintable(QString::number(ends)));
            const double ways = mean(drifting, &Walk::farthest) / mean(usual, &Walk::farthest);
            QVERIFY2(ways > 1.2, qPrintable(QString::number(ways)));
            const Matrix a = matrixOf(workload, drifting, "a");
            const auto most = std::max_element(a.values.begin(), a.values.end(),
                                               [](float x, float y) { return std::abs(x) < std::abs(y); });
            QVERIFY2(std::abs(*most) < 8, qPrintable(QString::number(*most)));
        }
    }

    /// Rows of a tensor that is both operands are of two kinds, and products of one kind with the other are as usual.
    void oneTensorHasBothKinds()
    {
        const auto workload = corpusWorkload("small-gram");
        const auto content = contentOf(workload, "drifting sums");
        QVERIFY(content);
        const auto rows = static_cast<std::size_t>(content->distributions.begin()->second.classRows);
        QVERIFY(rows >= 1 && rows <= 128);
        const auto made = generateCase(workload, *content, 5).value();
        const Matrix x = matrixOf(workload, made, made.front().name.c_str());
        QVERIFY(x.values.size() / x.columns > rows);
        const auto end = [&](std::size_t i, std::size_t j) {
            return std::abs(walkOf(x.columns, [&](std::size_t k) { return x.at(i, k) * x.at(j, k); }).end);
        };
        double alike = 0;
        double unlike = 0;
        for (std::size_t i = 0; i < 8; ++i) {
            alike += end(i, i + 8);
            unlike += end(i, rows + i);
        }
        QVERIFY2(alike > 5 * unlike, qPrintable(QString("%1 %2").arg(alike).arg(unlike)));
    }

    /// Every second term is large in one operand, within what half precision has, and small in the other, with few bits there; sums are as usual, and what
    /// their results were off by before they were rounded is looked at.
    void termsAreOutOfProportion()
    {
        for (const char *name : {"deep-gemm", "bias-gemm"}) {
            const auto workload = corpusWorkload(name);
            const auto content = contentOf(workload, "scaled terms");
            QVERIFY2(content, name);
            const auto made = generateCase(workload, *content, 5).value();
            const Matrix a = matrixOf(workload, made, "a");
            const Matrix b = matrixOf(workload, made, "b");
            std::size_t scaled = 0;
            for (std::size_t k = 0; k < a.columns; ++k) {
                double left = 0;
                double right = 0;
                for (std::size_t i = 0; i < 16; ++i) {
                    left = std::max<double>(left, std::abs(a.at(i, k)));
                    right = std::max<double>(
                        right, std::abs(workload.oracle == "matmul_nt" ? b.at(i, k) : b.at(k, i)));
                }
                const bool isScaled = left > 1e3 || right > 1e3;
                scaled += isScaled ? 1 : 0;
                QVERIFY(!isScaled || std::min(left, right) < 1e-3);
                QVERIFY(std::max(left, right) < 65504);
            }
            QCOMPARE(scaled, a.columns / 2);
            QVERIFY(makeInstance(workload, *content, 5).value()->tolerance.beforeRounding > 0);
            const auto drifting = contentOf(workload, "drifting sums");
            QVERIFY(drifting);
            QCOMPARE(makeInstance(workload, *drifting, 5).value()->tolerance.beforeRounding, 0.0);
        }
        QVERIFY(
            !contentOf(corpusWorkload("half-gemm"), "scaled terms")); // whose elements have no room for it
    }

    /// Single precision itself would lose too much of a sum that drifts.
    void whatCannotDriftDoesNot() { QVERIFY(!contentOf(corpusWorkload("small-sgemm"), "drifting sums")); }

    /// Three distances where there is little work; no row is as usual, and the limits are not wider.
    void rowsLieApart()
    {
        const auto workload = corpusWorkload("small-layernorm");
        std::set<double> means;
        for (const workload::Case &content : hardContents(workload, 7)) {
            if (content.name.find("rows apart") == std::string::npos)
                continue;
            const auto &d = content.distributions.at("x");
            QVERIFY(d.parts.empty());
            QVERIFY(d.mean >= 12 && d.mean <= 60);
            means.insert(d.mean);
            const auto instance = makeInstance(workload, content, 7).value();
            QCOMPARE(instance->tolerance.atol,
                     makeInstance(workload, workload.cases.front(), 7).value()->tolerance.atol);
        }
        QCOMPARE(means.size(), std::size_t{3});
    }
};

QTEST_GUILESS_MAIN(TestDrifting)
#include "tst_drifting.moc"
