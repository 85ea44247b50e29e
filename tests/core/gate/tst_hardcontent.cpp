// SPDX-License-Identifier: GPL-3.0-or-later
//
// The timed shape with what the other cases are filled with, and how far off a result may be there.
#include "core/gate/check/hardcontent.h"

#include "core/gate/check/comparison.h"
#include "tests/core/gate/corpusworkload.h"
#include "tests/core/gate/namedcontent.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

using namespace klineage;
using namespace klineage::gate;
using klineage::test::corpusWorkload;
using klineage::test::named;
using klineage::test::tensorOf;

class TestHardContent : public QObject
{
    Q_OBJECT

private slots:
    /// Rows of a softmax are those of all its cases, some masked, some large, some both, some far below 0 as a whole, and half of them as
    /// ordinary as timed ones.
    void rowsOfAllCases()
    {
        const auto workload = corpusWorkload("small-softmax");
        const auto contents = hardContents(workload, 5);
        QCOMPARE(contents.size(), std::size_t{7});
        const auto *hard = &contents.front();
        QCOMPARE(hard->axes, workload.cases.front().axes);
        QCOMPARE(hard->name, std::string("timed (as large, masked, mostly-masked, mixed)"));
        const auto instance = makeInstance(workload, *hard, 5).value();
        const HostTensor &x = tensorOf(*instance, "x");
        int masked = 0;
        int large = 0;
        int low = 0;
        int ordinary = 0;
        for (std::size_t row = 0; row < 128; ++row) {
            bool hasMask = false;
            bool isLarge = false;
            bool hasFinite = false;
            double largest = -std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < 256; ++i) {
                const double value = kernel::loadElement(x.bytes.data(), x.dtype, row * 256 + i);
                largest = std::max(largest, value);
                hasMask |= std::isinf(value);
                hasFinite |= std::isfinite(value);
                isLarge |= std::isfinite(value) && std::abs(value) > 500;
            }
            QVERIFY(hasFinite);
            masked += hasMask ? 1 : 0;
            large += isLarge ? 1 : 0;
            const bool isLow = largest < -60; // as a whole, by 88 at least
            low += isLow && !isLarge ? 1 : 0;
            ordinary += !hasMask && !isLarge && !isLow ? 1 : 0;
        }
        QVERIFY2(ordinary > 50 && ordinary < 100, qPrintable(QString::number(ordinary)));
        QVERIFY(masked > 24 && masked < 120); // of five kinds, not four
        QVERIFY(low > 4 && low < 40);
        QVERIFY(large > 15 && large < 100);
        // In the others few pieces of few rows are hard, one in some.
        std::set<std::pair<int, int>> drawings;
        for (const auto &content : contents) {
            const auto &filled = content.distributions.at("x");
            QCOMPARE(filled.pieces == 0, &content == hard);
            drawings.insert({filled.pieces, filled.drawing});
        }
        QCOMPARE(drawings.size(), contents.size());
        QCOMPARE(contents.back().name, hard->name + ", in 16 pieces");
        // The same seed, the same content.
        QVERIFY(tensorOf(*makeInstance(workload, *hard, 5).value(), "x").bytes == x.bytes);
        QVERIFY(tensorOf(*makeInstance(workload, *hard, 6).value(), "x").bytes != x.bytes);
    }

    /// Of a product half of the rows are mixed and the operands are scaled against each other; or all are whole numbers.
    void productsAreMixedOrWhole()
    {
        const auto workload = corpusWorkload("small-sgemm");
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            const auto contents = hardContents(workload, seed);
            QCOMPARE(contents.size(), std::size_t{10});
            const workload::Case mixed = named(workload, seed, "mixed");
            const auto &a = mixed.distributions.at("a").parts;
            const auto &b = mixed.distributions.at("b").parts;
            QCOMPARE(a.size(), std::size_t{2});
            QVERIFY(a[0].kind == workload::DistributionKind::Mixed);
            QVERIFY(a[1].kind == workload::DistributionKind::Normal);
            QCOMPARE(a[1].factor * b[1].factor, 1.0);
            QVERIFY(std::max(a[1].factor, b[1].factor) >= 0x1p17);
            QVERIFY(!mixed.exact);
            QVERIFY(contents.back().exact);
            QCOMPARE(contents.back().axes, workload.cases.front().axes);
            QVERIFY(contents.back().distributions.at("a").kind == workload::DistributionKind::Integers);
            const workload::Case small = named(workload, seed, "both small");
            QCOMPARE(small.distributions.at("a").factor * small.distributions.at("b").factor, 0x1p-26);
            int withOne = 0;
            for (const workload::Case &content : contents) {
                if (content.name.find("one operand") == std::string::npos)
                    continue;
                const bool butOne = content.name.find("but for a term") != std::string::npos;
                withOne += butOne ? 1 : 0;
                double factor = 1;
                double spike = 1; // products of the term that is not small are
                for (const auto &[name, distribution] : content.distributions) {
                    factor *= distribution.factor;
                    spike *= butOne ? distribution.spike : 1;
                }
                QCOMPARE(content.distributions.size(), std::size_t{butOne ? 2u : 1u});
                QVERIFY(factor <= 0x1p-3 && factor >= 0x1p-12);
                QCOMPARE(spike, 1.0);
            }
            QCOMPARE(withOne, 0); // rows may be added in single precision before they are multiplied
        }
    }

    /// Of bf16 the first content looks like any other, and its sums are so small that half precision's would be off by more than a
    /// hundredth; what each operand is like along the sum, or across it, is told by no element, row or part of one.
    void sumsCancel_data()
    {
        QTest::addColumn<QString>("oracle");
        QTest::addColumn<bool>("down");
        QTest::newRow("nt") << "matmul_nt" << false;
        QTest::newRow("nn") << "matmul_nn" << true;
    }
    void sumsCancel()
    {
        QFETCH(QString, oracle);
        QFETCH(bool, down);
        auto workload = corpusWorkload("small-gemm");
        workload.oracle = oracle.toStdString();
        if (down)
            std::swap(workload.tensors[1].shape[0], workload.tensors[1].shape[1]);
        const workload::Case hard = named(workload, 3, "timed (cancelling)");
        const auto instance = makeInstance(workload, hard, 3).value();
        const auto usual = makeInstance(workload, workload.cases.front(), 3).value();
        const double terms = static_cast<double>(workload.cases.front().axes.at("K"));
        const double rms = rootMeanSquare(instance->expected.at("y"));
        const double share = hard.distributions.at("x").cancels;
        QVERIFY(share >= 1.0 / 32 && share <= 1.0 / 16);
        QVERIFY2(rms > 0.7 * std::sqrt(terms) * share && rms < 1.3 * std::sqrt(terms) * share,
                 qPrintable(QString::number(rms)));
        QVERIFY(rootMeanSquare(usual->expected.at("y")) > 8 * rms);
        for (const char *name : {"x", "weight"}) {
            const HostTensor &tensor = tensorOf(*instance, name);
            double sum = 0;
            double squares = 0;
            const auto values = toFloats(tensor);
            for (const float value : values) {
                sum += value;
                squares += static_cast<double>(value) * value;
            }
            const auto count = static_cast<double>(values.size());
            QVERIFY2(std::abs(sum / count - 0.25) < 0.08, qPrintable(QString::number(sum / count)));
            QVERIFY2(std::abs(squares / count - 1.0625) < 0.06, qPrintable(QString::number(squares / count)));
        }
        QVERIFY(tensorOf(*makeInstance(workload, hard, 3).value(), "weight").bytes
                == tensorOf(*instance, "weight").bytes);
    }

    /// Each term has a partner, but for an odd one out.
    void termsArePaired()
    {
        for (const std::size_t terms : {std::size_t{1}, std::size_t{8}, std::size_t{77}}) {
            const Pairing pairing = pairingOf(terms, 9);
            std::size_t firsts = 0;
            std::size_t alone = 0;
            for (std::size_t i = 0; i < terms; ++i) {
                QCOMPARE(pairing.partner[pairing.partner[i]], i);
                QCOMPARE(pairing.equalInSecond[pairing.partner[i]], pairing.equalInSecond[i]);
                firsts += pairing.isFirst[i] ? 1 : 0;
                alone += pairing.partner[i] == i ? 1 : 0;
            }
            QCOMPARE(firsts, (terms + 1) / 2);
            QCOMPARE(alone, terms % 2);
        }
    }

    /// Where groups begin is no content, but how long they are is drawn in one of two.
    void offsetsStayWhatTheyAre()
    {
        const auto workload = workload::readWorkload(std::filesystem::path(klineage::test::sourcePath())
                                                     / "workloads/heldout-grouped-gemm-4");
        QVERIFY(workload);
        std::set<bool> uneven;
        for (std::uint64_t seed = 1; seed < 5; ++seed) {
            const auto contents = hardContents(*workload, seed);
            QVERIFY(contents.size() >= 2);
            QVERIFY(contents.front().name.find("cancelling") != std::string::npos
                    || contents.front().name.find("low means") != std::string::npos);
            for (const auto &content : contents) {
                const auto offsets = content.distributions.find("offsets");
                uneven.insert(offsets != content.distributions.end());
                if (offsets == content.distributions.end())
                    continue;
                QVERIFY(offsets->second.kind == workload::DistributionKind::Offsets);
                QVERIFY(!offsets->second.even);
                QCOMPARE(offsets->second.end, std::string("T"));
            }
        }
        QCOMPARE(uneven, (std::set<bool>{false, true}));
    }

    /// What half precision cannot hold is not asked of it.
    void halvesAreNotScaled()
    {
        auto workload = corpusWorkload("small-sgemm");
        for (auto &tensor : workload.tensors)
            tensor.dtype = kernel::DType::F16;
        for (std::uint64_t seed = 0; seed < 8; ++seed)
            QCOMPARE(named(workload, seed, "mixed").distributions.at("a").parts[1].factor, 1.0);
    }

    /// Operands of eight bits are as large as they can be, somewhat larger than usual, or one of them is subnormal.
    void bytesAreScaled()
    {
        const auto workload = workload::readWorkload(std::filesystem::path(klineage::test::sourcePath())
                                                     / "workloads/gemm-fp8");
        QVERIFY(workload);
        std::set<std::pair<double, double>> factors;
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            const auto contents = hardContents(*workload, seed);
            QVERIFY(contents.size() >= 3);
            for (std::size_t i = contents.size() - 3; i < contents.size(); ++i) {
                const auto &distributions = contents[i].distributions;
                factors.emplace(distributions.at(workload->oracleArgs.at("a")).factor,
                                distributions.at(workload->oracleArgs.at("b")).factor);
            }
        }
        std::set<std::pair<double, double>> expected{{128, 128}, {0x1p-7, 128}, {128, 0x1p-7}};
        for (double between = 2; between < 128; between *= 2)
            expected.emplace(between, between);
        QVERIFY(factors == expected);
    }

    /// Some queries have one key that outweighs all, and sequences are of unlike lengths.
    void attentionIsPeakedAndUneven()
    {
        const auto workload =
            workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads/fmha");
        QVERIFY(workload);
        std::set<bool> even;
        std::set<std::size_t> shares;
        int smallOnes = 0;
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            for (const auto &content : hardContents(*workload, seed)) {
                const auto offsets = content.distributions.find("cu_seqlens_q");
                even.insert(offsets == content.distributions.end() || offsets->second.even);
            }
            const auto other = hardContents(*workload, seed)[1].distributions;
            const auto &keys = other.at("k");
            shares.insert(keys.parts.size());
            QCOMPARE((keys.pair > 0 && keys.isSecond) || keys.factor < 1, keys.parts.empty());
            if (keys.factor < 1) { // scores are as usual, and values are small too
                QCOMPARE(other.at("q").factor * keys.factor, 1.0);
                QVERIFY(other.at("v").factor < 0.1);
                ++smallOnes;
            }
        }
        QVERIFY(smallOnes > 2 && smallOnes < 25);
        QCOMPARE(even, (std::set<bool>{false, true}));         // their lengths say nothing
        QCOMPARE(shares, (std::set<std::size_t>{0, 16, 512})); // large pairs alone, or two of them are large
        std::uint64_t seed = 1;
        while (hardContents(*workload, seed)[1].distributions.at("k").parts.empty())
            ++seed;
        const auto contents = hardContents(*workload, seed);
        QCOMPARE(contents.size(), std::size_t{2});
        const auto &distributions = contents.front().distributions;
        const auto &keys = contents[1].distributions.at("k").parts;
        for (std::size_t i = 0; i < 2; ++i)
            QVERIFY(keys[i] == distributions.at("q").parts[i]);
        for (std::size_t i = 2; i < keys.size(); ++i)
            QVERIFY(keys[i].kind == workload::DistributionKind::Normal);
        QVERIFY(contents[1].distributions.at("q").parts == distributions.at("k").parts);
        QCOMPARE(distributions.at("q").parts.size(), std::size_t{4});
        QVERIFY(distributions.at("q").parts[0].kind == workload::DistributionKind::Large);
        QVERIFY(distributions.at("q").parts[3].kind == workload::DistributionKind::Normal);
    }

    /// One weight in sixteen is as usual: the others leave the state as it is.
    void theDeltaRuleRemembers()
    {
        const auto workload =
            workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads/gdn");
        QVERIFY(workload);
        std::set<std::string> names;
        for (std::uint64_t seed = 0; seed < 60; ++seed) {
            const auto contents = hardContents(*workload, seed);
            QCOMPARE(contents.size(), std::size_t{2}); // of so much work
            for (const auto &content : contents) {
                names.insert(content.name);
                QVERIFY(content.blended);
            }
        }
        QCOMPARE(names, (std::set<std::string>{"timed (alike keys)", "timed (alike keys), in a stretch",
                                               "timed (keys alike but for the sign)", "timed (large state)",
                                               "timed (long memory)", "timed (long memory), in a stretch",
                                               "timed (small state)"}));
        auto seed = std::uint64_t{0};
        while (hardContents(*workload, seed).front().name != "timed (long memory)")
            ++seed;
        const workload::Case whole = hardContents(*workload, seed).front();
        const auto &beta = whole.distributions.at("beta").parts;
        QCOMPARE(beta.size(), std::size_t{16});
        QCOMPARE(beta.front().mean, -5.0);
        QCOMPARE(beta.back().mean, 0.0);
        // Keys of 128 that are alike enough to be kept over 4096 tokens, and no gate that forgets them.
        while (hardContents(*workload, seed).back().name != "timed (alike keys)")
            ++seed;
        const workload::Case alike = hardContents(*workload, seed).back();
        QCOMPARE(alike.distributions.at("k").mean, std::sqrt(4096 / (4.0 * 128)));
        QCOMPARE(alike.distributions.at("g").mean, 0.0);
        QCOMPARE(alike.distributions.at("g").stddev, 0.0);
        QVERIFY(!alike.distributions.contains("beta"));
        while (hardContents(*workload, seed).back().name != "timed (keys alike but for the sign)")
            ++seed;
        const auto signs = hardContents(*workload, seed).back().distributions.at("k").parts;
        QCOMPARE(signs.size(), std::size_t{2});
        QCOMPARE(signs[0].mean, alike.distributions.at("k").mean);
        QCOMPARE(signs[1].mean, -signs[0].mean);
    }

    /// One group of heads over a stretch of tokens, the same in all tensors of a case; all else as it was.
    void aStretchIsOneOfManyHeads()
    {
        workload::Distribution zero;
        zero.mean = zero.stddev = 0;
        workload::Distribution d;
        d.parts = {zero, workload::Distribution()};
        d.headGroups = 2;
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            std::set<std::pair<std::int64_t, std::int64_t>> stretches;
            for (const std::vector<std::int64_t> &shape :
                 {std::vector<std::int64_t>{2, 64, 4}, std::vector<std::int64_t>{2, 64, 2, 8}}) {
                HostTensor tensor;
                tensor.dtype = kernel::DType::F32;
                tensor.shape = shape;
                generate(tensor, d, seed, shape.size());
                const auto values = toFloats(tensor);
                const std::size_t across = values.size() / 128;
                const std::size_t half = across / 2;
                std::int64_t first = -1;
                std::int64_t count = 0;
                std::int64_t group = -1;
                for (std::size_t i = 0; i < 64 * across; ++i) {
                    if (values[i] != 0)
                        continue;
                    const auto token = static_cast<std::int64_t>(i / across);
                    const auto own = static_cast<std::int64_t>(i % across / half);
                    QVERIFY(group == -1 || group == own);
                    group = own;
                    first = first == -1 ? token : first;
                    ++count;
                }
                QVERIFY(count > 0 && count % static_cast<std::int64_t>(half) == 0);
                stretches.insert({100 * group + first, count / static_cast<std::int64_t>(half)});
            }
            QCOMPARE(stretches.size(), std::size_t{1});
        }
    }

    /// Of half precision, of a convolution and beside a bias sums cancel too; single precision adds them up as before.
    void sumsCancelElsewhere_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<double>("smaller");
        QTest::newRow("convolution") << "small-conv" << 4.0;
        QTest::newRow("half precision") << "small-gemm" << 4.0;
    }
    void sumsCancelElsewhere()
    {
        QFETCH(QString, name);
        QFETCH(double, smaller);
        auto workload = corpusWorkload(name.toLatin1().constData());
        for (auto &tensor : workload.tensors)
            tensor.dtype = kernel::DType::F16;
        const auto hard = makeInstance(workload, named(workload, 7, "cancelling"), 7).value();
        const auto usual = makeInstance(workload, workload.cases.front(), 7).value();
        const std::string out = workload.oracleArgs.at("out");
        QVERIFY2(rootMeanSquare(usual->expected.at(out)) > smaller * rootMeanSquare(hard->expected.at(out)),
                 qPrintable(QString::number(rootMeanSquare(hard->expected.at(out)))));
    }

    /// The results are as usual, but half precision loses as much as they are where one row in sixteen has a large pair.
    void fewRowsHaveLargePairs_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("oracle");
        QTest::newRow("nt") << "small-gemm"
                            << "matmul_nt";
        QTest::newRow("nn") << "small-gemm"
                            << "matmul_nn";
        QTest::newRow("convolution") << "small-conv"
                                     << "conv2d_nhwc";
    }
    void fewRowsHaveLargePairs()
    {
        QFETCH(QString, name);
        QFETCH(QString, oracle);
        auto workload = corpusWorkload(name.toLatin1().constData());
        workload.oracle = oracle.toStdString();
        if (oracle == "matmul_nn")
            std::swap(workload.tensors[1].shape[0], workload.tensors[1].shape[1]);
        const workload::Case hard = named(workload, 5, "large pairs");
        const auto instance = makeInstance(workload, hard, 5).value();
        const auto usual = makeInstance(workload, workload.cases.front(), 5).value();
        const std::string out = workload.oracleArgs.at("out");
        const double ratio =
            rootMeanSquare(instance->expected.at(out)) / rootMeanSquare(usual->expected.at(out));
        QVERIFY2(ratio > 0.9 && ratio < 1.1, qPrintable(QString::number(ratio)));
        const HostTensor &first = tensorOf(*instance, name == "small-conv" ? "data_nhwc" : "x");
        const auto values = toFloats(first);
        const std::size_t across = first.rowLength();
        std::size_t rows = 0;
        for (std::size_t row = 0; row < values.size() / across; ++row) {
            const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * across);
            const auto end = begin + static_cast<std::ptrdiff_t>(across);
            const auto large = std::count_if(begin, end, [](float value) { return std::abs(value) > 25; });
            QVERIFY(large == 0 || large == 2);
            rows += large == 2 ? 1 : 0;
            if (large == 2)
                QVERIFY(std::abs(std::accumulate(begin, end, 0.0)) < 120);
        }
        const double share = static_cast<double>(rows * across) / static_cast<double>(values.size());
        QVERIFY2(share > 0.02 && share < 0.12, qPrintable(QString::number(share)));
    }

    /// Two large terms of few queries meet the same element of a key, whichever key it is: scores are as usual.
    void scoresOfFewQueriesHaveLargePairs()
    {
        const auto workload = corpusWorkload("small-attention");
        const auto instance = makeInstance(workload, named(workload, 5, "(large pairs"), 5).value();
        const auto queries = toFloats(tensorOf(*instance, "q"));
        const auto keys = toFloats(tensorOf(*instance, "k"));
        const std::size_t across = tensorOf(*instance, "q").rowLength();
        QVERIFY(*std::max_element(keys.begin(), keys.end()) < 10); // nothing else is large
        std::size_t rows = 0;
        for (std::size_t row = 0; row < queries.size() / across; ++row) {
            std::vector<std::size_t> large;
            for (std::size_t i = 0; i < across; ++i) {
                if (std::abs(queries[row * across + i]) > 1000)
                    large.push_back(i);
            }
            if (large.empty())
                continue;
            ++rows;
            QCOMPARE(large.size(), std::size_t{2});
            QCOMPARE(queries[row * across + large[0]], -queries[row * across + large[1]]);
            for (std::size_t key = 0; key < keys.size() / across; ++key)
                QCOMPARE(keys[key * across + large[0]], keys[key * across + large[1]]);
        }
        const double share = static_cast<double>(rows * across) / static_cast<double>(queries.size());
        QVERIFY2(share > 0.03 && share < 0.1, qPrintable(QString::number(share)));
    }

    /// The same term in both operands, and in no other place.
    void oneTermIsLarge()
    {
        const auto workload = corpusWorkload("small-sgemm");
        const auto instance = makeInstance(workload, named(workload, 4, "one large term"), 4).value();
        const auto a = toFloats(tensorOf(*instance, "a"));
        const auto b = toFloats(tensorOf(*instance, "b"));
        const auto terms = static_cast<std::size_t>(workload.cases.front().axes.at("K"));
        std::set<std::size_t> large;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (std::abs(a[i]) > 100)
                large.insert(i % terms);
        }
        QCOMPARE(large.size(), std::size_t{1});
        const std::size_t across = b.size() / terms;
        for (std::size_t i = 0; i < b.size(); ++i)
            QVERIFY(std::abs(b[i]) < 100 || i / across == *large.begin());
    }

    /// What nothing is done to is made of two contents, as in timed runs; what is hard in few places is so there still.
    void theRestIsBlended()
    {
        const auto workload = corpusWorkload("small-sgemm");
        workload::Case plain = named(workload, 4, "one large term");
        plain.distributions.erase("b");
        const auto blended = makeInstance(workload, plain, 4).value();
        plain.blended = false;
        const auto drawn = makeInstance(workload, plain, 4).value();
        const auto largeTerms = [&](const CaseInstance &instance) {
            std::set<std::size_t> terms;
            const auto a = toFloats(tensorOf(instance, "a"));
            for (std::size_t i = 0; i < a.size(); ++i) {
                if (std::abs(a[i]) > 100)
                    terms.insert(i % tensorOf(instance, "a").rowLength());
            }
            return terms;
        };
        QVERIFY(tensorOf(*blended, "a").bytes != tensorOf(*drawn, "a").bytes);
        QCOMPARE(largeTerms(*blended).size(), std::size_t{1});
        QCOMPARE(largeTerms(*blended), largeTerms(*drawn));
        QVERIFY(tensorOf(*blended, "b").bytes != tensorOf(*drawn, "b").bytes);
        plain.blended = true;
        QVERIFY(tensorOf(*makeInstance(workload, plain, 4).value(), "b").bytes
                == tensorOf(*blended, "b").bytes);
        double squares = 0;
        const auto values = toFloats(tensorOf(*blended, "b"));
        for (const float value : values)
            squares += static_cast<double>(value) * value;
        QVERIFY(std::abs(squares / static_cast<double>(values.size()) - 1.0625) < 0.1);
    }

    void rowsLongerThanAny()
    {
        const auto workload = corpusWorkload("small-softmax");
        std::int64_t longest = 0;
        for (const auto &c : workload.cases) {
            longest = std::max(longest, c.axes.at("C"));
            if (const auto drawn = c.drawn.find("C"); drawn != c.drawn.end())
                longest = std::max(longest, drawn->second.high);
        }
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const auto longer = longerRows(workload, seed);
            QVERIFY(longer);
            QVERIFY(longer->axes.at("C") > longest);
            QVERIFY(longer->axes.at("C") <= 4 * longest + 1);
            QVERIFY(longer->axes.at("R") <= 8);
            QVERIFY(longer->drawn.empty());
            // A row that is added up one element after another is off by more the longer it is.
            const double stretch = static_cast<double>(longer->axes.at("C")) / static_cast<double>(longest);
            const auto limits = workload.toleranceFor(*longer);
            QVERIFY(limits);
            QVERIFY(std::abs(limits->rtol / workload.tolerance.rtol - std::sqrt(stretch)) < 1e-12);
            QVERIFY(std::abs(limits->atol / workload.tolerance.atol - std::sqrt(stretch)) < 1e-12);
        }
        QVERIFY(!longerRows(corpusWorkload("small-sgemm"), 1));
    }

    /// Where there are no other contents there is nothing to check, and nothing where a case's content need make no sense at that length.
    void notForAll()
    {
        auto workload = corpusWorkload("small-softmax");
        workload.cases.resize(5);
        QVERIFY(hardContents(workload, 1).empty());
        QVERIFY(!longerRows(workload, 1));
        workload = corpusWorkload("small-softmax");
    }

    /// A product of mixed content may be off by what adding rows beforehand costs, not by what fewer bits do.
    void productsMayAddFirst()
    {
        const auto workload = corpusWorkload("small-sgemm");
        const auto hard = makeInstance(workload, named(workload, 3, "mixed"), 3).value();
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
