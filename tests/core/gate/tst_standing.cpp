// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hard places of all contents of the timed shape: those that a seed gives, those that timed runs are made of, and hard ones.
#include "core/gate/check/standing.h"

#include "core/gate/check/blendfor.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/check/inputs.h"
#include "core/gate/check/roles.h"
#include "tests/core/gate/corpusworkload.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace klineage;
using namespace klineage::gate;
using klineage::test::corpusWorkload;

namespace {

const HostTensor &named(const std::vector<HostTensor> &tensors, const std::string &name)
{
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const HostTensor &tensor) { return tensor.name == name; });
}

/// What a timed run holds, made of the contents of two seeds.
std::vector<float> timedContent(const workload::Workload &workload, const std::string &name)
{
    const auto first = generateCase(workload, workload.cases.front(), 1).value();
    const auto second = generateCase(workload, workload.cases.front(), 2).value();
    HostTensor tensor = named(first, name);
    auto blend =
        blendFor(tensor, workload.distributionOf(*workload.findTensor(name), workload.cases.front())).value();
    blend.key = 3;
    blendPieces(blend, named(first, name).bytes, named(second, name).bytes, tensor.bytes, 0,
                pieceCount(blend, tensor.elements()));
    return toFloats(tensor);
}

/// Of the columns, the largest element of the last one, and the mean of the others.
struct Heads {
    double largestOfLast = 0;
    double meanOfOthers = 0;
};
Heads headsOf(const std::vector<float> &values, std::size_t heads)
{
    Heads result;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = std::abs(values[i]);
        if (i % heads == heads - 1)
            result.largestOfLast = std::max(result.largestOfLast, value);
        else
            result.meanOfOthers += value;
    }
    result.meanOfOthers *= static_cast<double>(heads) / static_cast<double>(values.size() * (heads - 1));
    return result;
}

} // namespace

class TestStanding : public QObject
{
    Q_OBJECT

private slots:
    /// In every content, so that nothing tells hard ones from others by it.
    void oneHeadRemembers()
    {
        const auto workload = withStandingHardness(corpusWorkload("small-gdn"));
        const std::size_t heads = 4;
        const auto check = [&](const std::vector<float> &gates, const std::vector<float> &weights,
                               double leastWeight) {
            QCOMPARE(headsOf(gates, heads).largestOfLast, 0.0);
            QVERIFY(headsOf(weights, heads).largestOfLast < 1.0 / 60);
            QVERIFY(headsOf(weights, heads).meanOfOthers > leastWeight);
        };
        const auto drawn = generateCase(workload, workload.cases.front(), 1).value();
        check(toFloats(named(drawn, "g")), toFloats(named(drawn, "beta")), 0.4);
        QVERIFY(headsOf(toFloats(named(drawn, "g")), heads).meanOfOthers > 0.02);
        check(timedContent(workload, "g"), timedContent(workload, "beta"), 0.4);
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            for (const workload::Case &hard : hardContents(workload, seed)) {
                const auto tensors = generateCase(workload, hard, seed).value();
                check(toFloats(named(tensors, "g")), toFloats(named(tensors, "beta")), 0.03);
            }
        }
    }

    /// Few rows as a whole: softmax without the maximum overflows there, and nothing in them is further from the others than it was.
    void rowsLieHigh()
    {
        const auto workload = withStandingHardness(corpusWorkload("small-softmax"));
        const std::string name = "x";
        const auto rowLength = static_cast<std::ptrdiff_t>(
            named(generateCase(workload, workload.cases.front(), 1).value(), name).rowLength());
        const auto highRows = [&](const std::vector<float> &values) {
            std::ptrdiff_t rows = 0;
            for (auto row = values.begin(); row != values.end(); row += rowLength) {
                const auto [low, high] = std::minmax_element(row, row + rowLength);
                if (*high - *low > 12)
                    qFatal("a row of %g to %g", static_cast<double>(*low), static_cast<double>(*high));
                rows += *high > 100 ? 1 : 0;
            }
            return rows;
        };
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            const auto values =
                toFloats(named(generateCase(workload, workload.cases.front(), seed).value(), name));
            const std::ptrdiff_t high = highRows(values);
            QVERIFY(high > 0 && high < std::ssize(values) / rowLength / 4);
        }
        QVERIFY(highRows(timedContent(workload, name)) > 0);
    }

    /// The text of the workload says no word of it, and what no such place suits stays as it is.
    void others()
    {
        for (const char *name : {"small-sgemm", "small-topk", "small-attention"}) {
            const auto workload = corpusWorkload(name);
            QCOMPARE(withStandingHardness(workload).cases.front().distributions.size(),
                     workload.cases.front().distributions.size());
        }
        const auto workload = corpusWorkload("small-softmax");
        const auto hard = withStandingHardness(workload);
        const workload::Tensor &x = *workload.findTensor("x");
        const auto before = workload.distributionOf(x, workload.cases.front());
        const auto after = hard.distributionOf(x, hard.cases.front());
        QVERIFY(!(before == after));
        QVERIFY(saysTheSame(before, after));
    }
};

QTEST_APPLESS_MAIN(TestStanding)
#include "tst_standing.moc"
