// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the timed shape is filled with besides: cases as they are declared, and numbers of all widths.
#include "core/gate/check/standing.h"
#include "tests/core/gate/corpusworkload.h"
#include "tests/core/gate/namedcontent.h"

#include <QTest>

#include <algorithm>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using klineage::test::corpusWorkload;
using klineage::test::named;
using klineage::test::tensorOf;

class TestDeclaredContent : public QObject
{
    Q_OBJECT

private slots:
    /// Of functions no more is known than what their cases declare: two of them are drawn, at the timed shape.
    void functionsAsDeclared()
    {
        auto workload = corpusWorkload("small-softmax");
        workload.oracle = "python";
        std::set<std::string> names;
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const auto contents = hardContents(workload, seed);
            QCOMPARE(contents.size(), std::size_t{2});
            QVERIFY(contents[0].name != contents[1].name);
            for (const workload::Case &content : contents) {
                QCOMPARE(content.axes, workload.cases.front().axes);
                QVERIFY(!(content.distributions.at("x") == workload.cases.front().distributions["x"]));
                names.insert(content.name);
            }
        }
        QVERIFY(names.size() > 2);
        for (workload::Case &c : workload.cases)
            c.axes = {{"R", 1 << 16}, {"C", 1 << 12}};
        QVERIFY(hardContents(workload, 1).empty()); // much work
    }

    /// Whole numbers as an exact case has them, where sums of as many terms are exact too.
    void exactCasesAtTheTimedShape()
    {
        auto workload = corpusWorkload("small-sgemm");
        const auto exact = std::find_if(workload.cases.begin(), workload.cases.end(), [](const auto &c) {
            return c.exact && c.distributions.contains("a")
                   && c.distributions.at("a").kind == workload::DistributionKind::Integers;
        });
        QVERIFY(exact != workload.cases.end());
        const std::string name = "timed (with " + exact->name + ")";
        const auto has = [&] {
            const auto contents = hardContents(workload, 1);
            return std::any_of(contents.begin(), contents.end(),
                               [&](const auto &content) { return content.name == name && content.exact; });
        };
        QVERIFY(has());
        exact->distributions["a"].high = 0x1p23;
        QVERIFY(!has());
    }

    /// Of whole numbers of eight bits all that there are.
    void wholeBytes()
    {
        auto workload = corpusWorkload("small-sgemm");
        for (workload::Tensor &tensor : workload.tensors)
            tensor.dtype = tensor.role == workload::Role::Input ? kernel::DType::I8 : kernel::DType::I32;
        for (workload::Case &c : workload.cases) {
            for (auto &[name, d] : c.distributions) {
                d.low = std::max(d.low, -8.0);
                d.high = std::min(d.high, 8.0);
            }
        }
        double largest = 0;
        for (const workload::Case &content : hardContents(workload, 1)) {
            if (content.exact)
                largest = std::max(largest, content.distributions.at("a").high);
        }
        QCOMPARE(largest, 127.0);
        const auto extremes = makeInstance(workload, named(workload, 1, "extremes"), 1).value();
        const HostTensor &a = tensorOf(*extremes, "a");
        std::set<double> values;
        for (std::size_t i = 0; i < a.elements(); ++i)
            values.insert(kernel::loadElement(a.bytes.data(), a.dtype, i));
        QCOMPARE(values, (std::set<double>{-128, 0}));
        const workload::Distribution between = named(workload, 1, "between").distributions.at("b");
        QVERIFY(between.high >= 28 && between.high <= 60 && between.low == -between.high);
    }

    /// Doubles of a selection differ by what single precision does not hold, and whole numbers are not rounded to it.
    void selectionsOfAllBits()
    {
        auto workload = corpusWorkload("small-topk");
        workload.tensors.front().dtype = kernel::DType::F64;
        const auto standing = withStandingHardness(workload);
        const auto instance = makeInstance(standing, standing.cases.front(), 3).value();
        const HostTensor &in = tensorOf(*instance, workload.tensors.front().name);
        std::size_t finer = 0;
        for (std::size_t i = 0; i < in.elements(); ++i) {
            const double value = kernel::loadElement(in.bytes.data(), in.dtype, i);
            finer += static_cast<double>(static_cast<float>(value)) != value ? 1 : 0;
        }
        QVERIFY(finer > in.elements() * 9 / 10);
        workload.tensors.front().dtype = kernel::DType::I32;
        workload::Distribution whole;
        whole.kind = workload::DistributionKind::Integers;
        whole.low = 0;
        whole.high = 2147483647;
        workload.cases.front().distributions[workload.tensors.front().name] = whole;
        const auto integers = makeInstance(workload, workload.cases.front(), 3).value();
        const HostTensor &of = tensorOf(*integers, workload.tensors.front().name);
        std::size_t odd = 0;
        for (std::size_t i = 0; i < of.elements(); ++i)
            odd +=
                static_cast<std::int64_t>(kernel::loadElement(of.bytes.data(), of.dtype, i)) % 2 != 0 ? 1 : 0;
        QVERIFY(odd > of.elements() * 2 / 5 && odd < of.elements() * 3 / 5);
    }
};

QTEST_GUILESS_MAIN(TestDeclaredContent)
#include "tst_declaredcontent.moc"
