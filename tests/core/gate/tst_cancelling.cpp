// SPDX-License-Identifier: GPL-3.0-or-later
//
// Contents of products whose sums cancel to a drawn share: who adds up as tensor cores or single precision do is right on them, and who adds up
// in half precision is not.
#include "core/gate/check/comparison.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/check/roles.h"
#include "tests/core/gate/corpusworkload.h"
#include "tests/core/gate/namedcontent.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using klineage::test::corpusWorkload;
using klineage::test::tensorOf;

namespace {

/// The contents that have this in their name.
std::vector<workload::Case> allNamed(const workload::Workload &workload, std::uint64_t seed,
                                     const std::string &name)
{
    auto contents = hardContents(workload, seed);
    std::erase_if(contents, [&](const auto &c) { return c.name.find(name) == std::string::npos; });
    return contents;
}

using Sum = std::function<float(const float *a, const float *b, std::size_t terms)>;

float half(float value)
{
    std::byte bits[2];
    kernel::storeElement(bits, kernel::DType::F16, 0, value);
    return static_cast<float>(kernel::loadElement(bits, kernel::DType::F16, 0));
}

/// Two chains side by side, each of so many products, joined in single precision.
Sum inHalf(std::size_t run)
{
    return [run](const float *a, const float *b, std::size_t terms) {
        float sum = 0;
        for (std::size_t k = 0; k < terms; k += 2 * run) {
            std::array<float, 2> part{};
            for (std::size_t i = k; i < std::min(terms, k + 2 * run); ++i)
                part.at(i % 2) = half(std::fma(a[i], b[i], part.at(i % 2)));
            sum += part[0] + part[1];
        }
        return sum;
    };
}

/// As tensor cores add up: `step` products and the sum are cut off so many bits behind the first one of the largest.
Sum inSteps(std::size_t step, int bits)
{
    return [step, bits](const float *a, const float *b, std::size_t terms) {
        double sum = 0;
        for (std::size_t k = 0; k < terms; k += step) {
            const std::size_t end = std::min(terms, k + step);
            double largest = std::abs(sum);
            for (std::size_t i = k; i < end; ++i)
                largest = std::max(largest, std::abs(static_cast<double>(a[i]) * b[i]));
            if (largest == 0)
                continue;
            const double unit = std::ldexp(1.0, std::ilogb(largest) - bits);
            double whole = std::trunc(sum / unit);
            for (std::size_t i = k; i < end; ++i)
                whole += std::trunc(static_cast<double>(a[i]) * b[i] / unit);
            sum = whole * unit;
        }
        return static_cast<float>(sum);
    };
}

float inOrder(const float *a, const float *b, std::size_t terms)
{
    float sum = 0;
    for (std::size_t i = 0; i < terms; ++i)
        sum = std::fma(a[i], b[i], sum);
    return sum;
}

/// What the comparison says of a product that is added up so.
OutputCheck judge(const workload::Workload &workload, const CaseInstance &instance, const Sum &sum)
{
    const HostTensor &first = tensorOf(instance, workload.oracleArgs.at("a"));
    const std::vector<float> a = toFloats(first);
    const std::vector<float> b = toFloats(tensorOf(instance, workload.oracleArgs.at("b")));
    const std::string &name = workload.oracleArgs.at("out");
    const HostTensor &out = tensorOf(instance, name);
    const std::size_t terms = first.rowLength();
    const std::size_t across = out.rowLength();
    std::vector<std::byte> bytes(out.elements() * kernel::sizeOf(out.dtype));
    for (std::size_t i = 0; i < out.elements(); ++i)
        kernel::storeElement(bytes.data(), out.dtype, i,
                             sum(&a[i / across * terms], &b[i % across * terms], terms));
    return compareOutput(bytes, out.dtype, across, instance.expected.at(name), instance.tolerance, {});
}

/// A part of the rows and columns, all of the terms.
workload::Workload smaller(workload::Workload workload)
{
    workload.cases.front().axes["M"] = 32;
    workload.cases.front().axes["N"] = 32;
    return workload;
}

} // namespace

class TestCancelling : public QObject
{
    Q_OBJECT

private slots:
    /// Shares and places are drawn; all orders of magnitude of a share come.
    void sharesAreDrawn_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<double>("least");
        QTest::addColumn<double>("most");
        QTest::addColumn<bool>("far");
        QTest::newRow("bf16") << "deep-gemm" << 1.0 / 32 << 0.75 << true;
        QTest::newRow("half precision") << "half-gemm" << 1.0 / 8 << 1.0 << true;
        QTest::newRow("convolution") << "small-conv" << 1.0 / 8 << 1.0 << true;
        QTest::newRow("a larger convolution") << "middle-conv" << 1.0 / 8 << 1.0 << true;
        QTest::newRow("bytes") << "small-fp8" << 1.0 / 10 << 1.0 / 6 << false;
    }
    void sharesAreDrawn()
    {
        QFETCH(QString, name);
        QFETCH(double, least);
        QFETCH(double, most);
        QFETCH(bool, far);
        const auto workload = corpusWorkload(name.toLatin1().constData());
        std::vector<double> shares;
        std::set<bool> near;
        for (std::uint64_t seed = 0; seed < 60; ++seed) {
            for (const auto &content : allNamed(workload, seed, "cancelling")) {
                const auto &first = content.distributions.begin()->second;
                for (const auto &[tensor, d] : content.distributions)
                    QVERIFY(d.cancels == first.cancels && d.isNear == first.isNear);
                shares.push_back(first.cancels);
                near.insert(first.isNear);
            }
        }
        QVERIFY(shares.size() >= 30);
        std::sort(shares.begin(), shares.end());
        QVERIFY(shares.front() >= least && shares.back() <= most);
        QVERIFY(shares.front() < least * std::pow(most / least, 0.25));
        QVERIFY(shares.back() > least * std::pow(most / least, 0.75));
        QCOMPARE(near, far ? (std::set<bool>{false, true}) : (std::set<bool>{true}));
    }

    /// A share is what is left of the sums, in units of the root of their number, and elements are as large as ever.
    void aShareIsLeft_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<double>("more"); // what eight bits round away of pairs is left too
        QTest::newRow("bf16") << "deep-gemm" << 0.0;
        QTest::newRow("half precision") << "half-gemm" << 0.0;
        QTest::newRow("bytes") << "small-fp8" << 0.04;
    }
    void aShareIsLeft()
    {
        QFETCH(QString, name);
        QFETCH(double, more);
        const auto workload = smaller(corpusWorkload(name.toLatin1().constData()));
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            for (const auto &content : allNamed(workload, seed, "cancelling")) {
                const auto instance = makeInstance(workload, content, seed).value();
                const HostTensor &x = tensorOf(*instance, "x");
                const double left = rootMeanSquare(instance->expected.at("y"))
                                    / std::sqrt(static_cast<double>(x.rowLength()));
                const double drawn = content.distributions.at("x").cancels;
                const double share = drawn / std::sqrt(1 + drawn * drawn); // elements are as large as others
                QVERIFY2(left > 0.75 * share && left < 1.2 * share + more,
                         qPrintable(QString("%1 of %2").arg(left).arg(share)));
                double squares = 0;
                const auto values = toFloats(x);
                for (const float value : values)
                    squares += static_cast<double>(value) * value / static_cast<double>(values.size());
                QVERIFY2(std::abs(squares - 1.0625) < 0.07, qPrintable(QString::number(squares)));
            }
        }
    }

    /// Near pairs share aligned terms, so many as the seed has it.
    void pairsMayBeNear()
    {
        std::set<std::size_t> windows;
        workload::Distribution d;
        d.cancels = 0.5;
        QCOMPARE(pairWindow(d, kernel::DType::BF16, 1), std::size_t{0});
        d.isNear = true;
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            QCOMPARE(pairWindow(d, kernel::DType::F8E4M3, seed), std::size_t{16});
            const Pairing pairing = pairingOf(2088, seed, pairWindow(d, kernel::DType::BF16, seed));
            std::size_t window = 16;
            for (std::size_t i = 0; i < pairing.partner.size(); ++i) {
                QCOMPARE(pairing.partner[pairing.partner[i]], i);
                while (window < 4096 && i / window != pairing.partner[i] / window)
                    window *= 2;
            }
            windows.insert(window);
        }
        QCOMPARE(windows, (std::set<std::size_t>{16, 32, 64}));
    }

    /// Where the two large terms of a row are near each other, they are of the same two, four, eight or sixteen, each in some of the rows.
    void largePairsOfAllWidths()
    {
        auto workload = corpusWorkload("deep-gemm");
        workload.cases.front().axes["M"] = 512;
        std::map<std::size_t, int> widths;
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            const auto instance =
                makeInstance(workload, allNamed(workload, seed, "near large pairs").front(), seed).value();
            const HostTensor &x = tensorOf(*instance, "x");
            const auto values = toFloats(x);
            for (std::size_t row = 0; row < 512; ++row) {
                std::vector<std::size_t> large;
                for (std::size_t i = 0; i < x.rowLength(); ++i) {
                    if (std::abs(values[row * x.rowLength() + i]) > 100)
                        large.push_back(i);
                }
                if (large.empty())
                    continue;
                QCOMPARE(large.size(), std::size_t{2});
                std::size_t width = 2;
                while (large[0] / width != large[1] / width)
                    width *= 2;
                ++widths[width];
            }
        }
        QVERIFY(widths[2] > 0 && widths[4] > 0 && widths[8] > 0 && widths[16] > 0);
        QCOMPARE(widths.size(), std::size_t{4});
    }

    /// Sums of so many products in half precision are wrong on some content of each seed, and seem right on usual content but for what
    /// rounding hides; whoever adds up as devices do is right on all, with room.
    void halfSumsAreWrong_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("run");
        QTest::addColumn<int>("step");
        QTest::addColumn<int>("bits");
        QTest::newRow("bf16, 64") << "deep-gemm" << 32 << 16 << 23;
        QTest::newRow("half precision, 16") << "half-gemm" << 8 << 16 << 23;
        QTest::newRow("half precision, 4") << "half-gemm" << 2 << 16 << 23;
        QTest::newRow("bytes, 64") << "small-fp8" << 32 << 32 << 13;
        QTest::newRow("bytes, 32") << "small-fp8" << 16 << 32 << 13;
    }
    void halfSumsAreWrong()
    {
        QFETCH(QString, name);
        QFETCH(int, run);
        QFETCH(int, step);
        QFETCH(int, bits);
        const auto workload = smaller(corpusWorkload(name.toLatin1().constData()));
        const Sum cheap = inHalf(static_cast<std::size_t>(run));
        const Sum cores = inSteps(static_cast<std::size_t>(step), bits);
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            const auto usual = makeInstance(workload, workload.cases.front(), seed).value();
            const OutputCheck seen = judge(workload, *usual, cheap);
            // Of 16 bits only what results were before they were rounded tells them there.
            QVERIFY(
                seen.failure
                == (name == "small-fp8" ? OutputCheck::Failure::None : OutputCheck::Failure::BeforeRounding));
            for (const char *content : {"cancelling", "low means"}) {
                for (const auto &hard : allNamed(workload, seed, content)) {
                    const auto instance = makeInstance(workload, hard, seed).value();
                    if (content == std::string("cancelling"))
                        QVERIFY(judge(workload, *instance, cheap).failure != OutputCheck::Failure::None);
                    for (const Sum &honest : {cores, Sum(inOrder)}) {
                        const OutputCheck check = judge(workload, *instance, honest);
                        QVERIFY(check.failure == OutputCheck::Failure::None);
                        QVERIFY2(check.relativeL2 < 0.8 * instance->tolerance.relL2,
                                 qPrintable(QString::number(check.relativeL2)));
                    }
                }
            }
        }
    }

    /// Means are drawn between none and nearly the usual ones; of single precision, far from these, and in proportion to rows and columns
    /// elements may be off as those of Strassen's are.
    void meansAreLow()
    {
        for (const char *name : {"deep-gemm", "half-gemm", "small-conv", "small-sgemm"}) {
            const auto workload = corpusWorkload(name);
            std::set<double> means;
            for (std::uint64_t seed = 0; seed < 20; ++seed) {
                for (const auto &content : allNamed(workload, seed, "low means")) {
                    for (const auto &[tensor, d] : content.distributions)
                        means.insert(d.mean);
                }
            }
            const bool isSingle =
                name == std::string("small-sgemm"); // of so few terms that only none is far from usual
            QVERIFY2(isSingle || means.size() >= 10, name);
            QVERIFY(*means.begin() >= 0 && *means.rbegin() < 0.24);
        }
        const auto workload = corpusWorkload("small-sgemm");
        const auto low = makeInstance(workload, allNamed(workload, 3, "low means").front(), 3).value();
        const auto usual = makeInstance(workload, workload.cases.front(), 3).value();
        QVERIFY(low->tolerance.atol > usual->tolerance.atol);
        QVERIFY(low->tolerance.atol < 4 * usual->tolerance.atol);
        QCOMPARE(low->tolerance.relL2, usual->tolerance.relL2);
        const auto centred = corpusWorkload("centred-gemm");
        QVERIFY(allNamed(centred, 3, "low means").empty()); // they are none already
    }
};

QTEST_APPLESS_MAIN(TestCancelling)
#include "tst_cancelling.moc"
