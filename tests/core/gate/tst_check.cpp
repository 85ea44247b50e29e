// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"
#include "core/gate/check/bufferimage.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/matmul.h"
#include "core/gate/check/oracle.h"

#include "gatefixture.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using kernel::DType;
using workload::DistributionKind;

namespace {

HostTensor tensorOf(std::vector<std::int64_t> shape, DType dtype = DType::F32)
{
    return {"x", workload::Role::Input, dtype, std::move(shape), {}};
}

std::vector<double> valuesOf(const HostTensor &tensor)
{
    std::vector<double> values;
    for (std::size_t i = 0; i < tensor.elements(); ++i)
        values.push_back(kernel::loadElement(tensor.bytes.data(), tensor.dtype, i));
    return values;
}

HostTensor generated(DistributionKind kind, std::uint64_t seed, std::vector<std::int64_t> shape = {300, 501},
                     DType dtype = DType::F32)
{
    workload::Distribution distribution;
    distribution.kind = kind;
    HostTensor tensor = tensorOf(std::move(shape), dtype);
    generate(tensor, distribution, seed, 0);
    return tensor;
}

std::vector<std::byte> bytesOf(const std::vector<float> &values)
{
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

const workload::Tolerance strict{1e-5, 1.3e-6, 1e-5, 0.0, {}, {}};

} // namespace

class TestCheck : public QObject
{
    Q_OBJECT
private slots:
    void inputsFollowFromTheSeed();
    void normalMoments();
    void uniformAndBits();
    void integersAreWhole();
    void negativeInfinityLeavesEachRowAlive();
    void mixedRowsDoNotTellOfEachOther();
    void aHardRowMayBeAlone();
    void roundedToTheType();
    void entropyDiffers();
    void matmulAgainstNaive_data();
    void matmulAgainstNaive();
    void oracleChecksShapes();
    void softmaxOracleWithInfinities();
    void comparesEveryElement();
    void comparesSpecialValues();
    void relativeL2CatchesASmallErrorEverywhere();
    void exactCasesTakeNothingElse();
    void lowerPrecisionShowsInExactCases_data();
    void lowerPrecisionShowsInExactCases();
    void rowSums();
    void unwrittenElementsAreTold();
    void elementNames();
    void imagesKeepTheirContent();
    void redZoneByteByByte();
    void redZonesAreNaNsForInputs();
    void poisonsDiffer();
};

void TestCheck::inputsFollowFromTheSeed()
{
    QVERIFY(generated(DistributionKind::Normal, 1).bytes == generated(DistributionKind::Normal, 1).bytes);
    QVERIFY(generated(DistributionKind::Normal, 1).bytes != generated(DistributionKind::Normal, 2).bytes);
    // Elements are counted, not drawn in turn: a longer tensor begins with the shorter one.
    const auto small = valuesOf(generated(DistributionKind::Uniform, 7, {1000}));
    const auto large = valuesOf(generated(DistributionKind::Uniform, 7, {200000}));
    QVERIFY(std::equal(small.begin(), small.end(), large.begin()));
}

void TestCheck::normalMoments()
{
    const auto values = valuesOf(generated(DistributionKind::Normal, 3));
    double sum = 0;
    double squares = 0;
    std::set<double> distinct(values.begin(), values.end());
    for (const double value : values)
        sum += value;
    const double mean = sum / static_cast<double>(values.size());
    for (const double value : values)
        squares += (value - mean) * (value - mean);
    QVERIFY(std::abs(mean - 0.25) < 0.02);
    QVERIFY(std::abs(std::sqrt(squares / static_cast<double>(values.size())) - 1.0) < 0.02);
    QVERIFY(distinct.size() > values.size() * 9 / 10);
    const auto big = valuesOf(generated(DistributionKind::Large, 3));
    QVERIFY(*std::max_element(big.begin(), big.end()) > 1e4);
}

void TestCheck::uniformAndBits()
{
    for (const double value : valuesOf(generated(DistributionKind::Uniform, 4)))
        QVERIFY(value >= 0.0 && value < 1.0);
    double ones = 0;
    const auto bits = valuesOf(generated(DistributionKind::Bits, 4));
    for (const double value : bits) {
        QVERIFY(value == 0.0 || value == 1.0);
        ones += value;
    }
    QVERIFY(std::abs(ones / static_cast<double>(bits.size()) - 0.5) < 0.01);
}

void TestCheck::integersAreWhole()
{
    workload::Distribution distribution;
    distribution.kind = DistributionKind::Integers;
    distribution.low = -3;
    distribution.high = 4;
    for (const DType dtype : {DType::F32, DType::BF16, DType::I8}) {
        HostTensor tensor = tensorOf({4000}, dtype);
        generate(tensor, distribution, 6, 0);
        std::map<double, int> counts;
        for (const double value : valuesOf(tensor))
            ++counts[value];
        QCOMPARE(counts.size(), std::size_t{8});
        QCOMPARE(counts.begin()->first, -3.0);
        QCOMPARE(counts.rbegin()->first, 4.0);
        for (const auto &[value, count] : counts)
            QVERIFY2(count > 400 && count < 600, qPrintable(QString::number(value)));
    }
}

void TestCheck::negativeInfinityLeavesEachRowAlive()
{
    workload::Distribution distribution;
    distribution.kind = DistributionKind::NegInfinity;
    distribution.fraction = 0.97;
    HostTensor tensor = tensorOf({2000, 7});
    generate(tensor, distribution, 5, 1);
    const auto values = valuesOf(tensor);
    std::size_t infinite = 0;
    for (std::size_t row = 0; row < 2000; ++row) {
        std::size_t alive = 0;
        for (std::size_t i = 0; i < 7; ++i) {
            QVERIFY(!std::isnan(values[row * 7 + i]));
            alive += std::isfinite(values[row * 7 + i]);
        }
        QVERIFY(alive >= 1);
        infinite += 7 - alive;
    }
    QVERIFY(infinite > 2000 * 7 * 3 / 4);
    distribution.fraction = 1.0;
    HostTensor column = tensorOf({50, 1});
    generate(column, distribution, 5, 1);
    for (const double value : valuesOf(column))
        QVERIFY(std::isfinite(value));
}

void TestCheck::mixedRowsDoNotTellOfEachOther()
{
    workload::Distribution distribution;
    distribution.kind = DistributionKind::Mixed;
    distribution.spread = 1.5;
    distribution.outliers = 0.002;
    distribution.scale = 3000;
    distribution.tails = 0.5;
    constexpr std::size_t rows = 4000;
    constexpr std::size_t columns = 100;
    for (const std::uint64_t seed : {1, 2, 3}) {
        HostTensor tensor = tensorOf({rows, columns});
        generate(tensor, distribution, seed, 0);
        const auto values = valuesOf(tensor);
        std::size_t ended = 0;
        std::size_t outliers = 0;
        std::size_t withOutliers = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            std::size_t large = 0;
            for (std::size_t i = 0; i < columns; ++i)
                large += std::isfinite(values[row * columns + i]) && std::abs(values[row * columns + i]) > 40;
            const bool ends = std::isinf(values[row * columns + columns - 1]);
            if (row == 0)
                QVERIFY(large == 0 && !ends);
            outliers += large;
            withOutliers += large > 0;
            ended += ends;
        }
        QVERIFY2(ended > 1900 && ended < 2100, qPrintable(QString::number(ended)));
        QVERIFY2(outliers > 450 && outliers < 750, qPrintable(QString::number(outliers)));
        QVERIFY2(withOutliers < 500,
                 qPrintable(QString::number(withOutliers))); // 0.2 of 0.75 of a quarter, had each its own
    }
    HostTensor row = tensorOf({1, 20000});
    generate(row, distribution, 1, 0);
    QVERIFY(std::ranges::any_of(valuesOf(row), [](double value) { return std::abs(value) > 40; }));
}

/// All is ordinary but for a piece of one row, which may be a single element.
void TestCheck::aHardRowMayBeAlone()
{
    workload::Distribution large;
    large.mean = 1e6;
    workload::Distribution all;
    all.parts = {large, workload::Distribution()};
    all.pieces = 1;
    int single = 0;
    int extended = 0;
    std::set<std::size_t> rows;
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
        all.drawing = seed % 2 == 0 ? 0 : 1;
        HostTensor tensor = tensorOf({64, 32});
        generate(tensor, all, seed / 2, 1);
        const auto values = valuesOf(tensor);
        std::size_t count = 0;
        std::size_t last = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] < 1e5)
                continue;
            QVERIFY(count == 0 || last == i - 1);
            last = i;
            ++count;
        }
        QVERIFY(count > 0 && count <= 32 && last % 32 >= count - 1);
        rows.insert(last / 32);
        single += count == 1 ? 1 : 0;
        extended += count >= 8 ? 1 : 0;
    }
    QVERIFY2(single >= 6 && single <= 35, qPrintable(QString::number(single)));
    QVERIFY2(extended >= 10, qPrintable(QString::number(extended)));
    QVERIFY(rows.size() > 30);
    all.pieces = 5;
    HostTensor tensor = tensorOf({64, 32});
    generate(tensor, all, 3, 1);
    rows.clear();
    const auto values = valuesOf(tensor);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] > 1e5)
            rows.insert(i / 32);
    }
    QVERIFY(rows.size() > 2 && rows.size() <= 5);
    // Copies of an element are many, and nothing is hard.
    all.copies = true;
    generate(tensor, all, 3, 1);
    const auto copied = valuesOf(tensor);
    const std::set<double> distinct(copied.begin(), copied.end());
    QVERIFY(distinct.size() < copied.size() - 5 && distinct.size() > copied.size() / 2);
    QVERIFY(*distinct.rbegin() < 1e5);
}

void TestCheck::roundedToTheType()
{
    const auto wide = valuesOf(generated(DistributionKind::Normal, 9, {1000}));
    const auto narrow = valuesOf(generated(DistributionKind::Normal, 9, {1000}, DType::BF16));
    for (std::size_t i = 0; i < wide.size(); ++i)
        QCOMPARE(static_cast<float>(narrow[i]),
                 kernel::bf16ToFloat(kernel::floatToBf16(static_cast<float>(wide[i]))));
    QCOMPARE(generated(DistributionKind::Normal, 9, {1000}, DType::F16).bytes.size(), std::size_t{2000});
}

void TestCheck::entropyDiffers()
{
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 100; ++i)
        seen.insert(entropy());
    QCOMPARE(seen.size(), std::size_t{100});
}

void TestCheck::matmulAgainstNaive_data()
{
    QTest::addColumn<int>("m");
    QTest::addColumn<int>("n");
    QTest::addColumn<int>("k");
    QTest::addColumn<bool>("transposed");
    for (const bool transposed : {false, true}) {
        const char *name = transposed ? "nt" : "nn";
        QTest::addRow("%s one", name) << 1 << 1 << 1 << transposed;
        QTest::addRow("%s odd", name) << 7 << 9 << 1030 << transposed;
        QTest::addRow("%s tails", name) << 101 << 515 << 33 << transposed;
        QTest::addRow("%s blocks", name) << 96 << 512 << 512 << transposed;
    }
}

void TestCheck::matmulAgainstNaive()
{
    QFETCH(int, m);
    QFETCH(int, n);
    QFETCH(int, k);
    QFETCH(bool, transposed);
    const auto rows = static_cast<std::size_t>(m);
    const auto columns = static_cast<std::size_t>(n);
    const auto depth = static_cast<std::size_t>(k);
    std::vector<float> a(rows * depth);
    std::vector<float> b(depth * columns);
    const CounterRandom random(1);
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<float>(random.uniform(i)) - 0.3f;
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<float>(random.uniform(i + 1000000)) - 0.6f;
    const auto c = matmul(a, b, rows, columns, depth, transposed);
    double worst = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (std::size_t l = 0; l < depth; ++l)
                sum += static_cast<double>(a[i * depth + l])
                       * static_cast<double>(transposed ? b[j * depth + l] : b[l * columns + j]);
            worst = std::max(worst, std::abs(sum - c[i * columns + j]));
        }
    }
    QVERIFY2(worst < 1e-10, qPrintable(QString::number(worst)));
}

void TestCheck::oracleChecksShapes()
{
    auto workload = test::parsed(test::smallMatmul);
    auto tensors = generateCase(workload, workload.cases[1], 1);
    QVERIFY(tensors);
    const auto expected = computeOracle(workload, *tensors);
    QVERIFY(expected);
    QCOMPARE(expected->at("c").size(), std::size_t{17 * 9});
    (*tensors)[1].shape = {6, 9};
    QVERIFY(!computeOracle(workload, *tensors));
    workload.oracle = "nothing";
    const auto unknown = computeOracle(workload, *tensors);
    QVERIFY(!unknown);
    QVERIFY(unknown.error().message.find("no such oracle") != std::string::npos);
}

void TestCheck::softmaxOracleWithInfinities()
{
    const auto workload = test::parsed(test::smallSoftmax);
    auto tensors = generateCase(workload, workload.cases[0], 1);
    QVERIFY(tensors);
    auto &x = (*tensors)[0];
    x.shape = (*tensors)[1].shape = {1, 4};
    const float row[4] = {-std::numeric_limits<float>::infinity(), 3e4f, 3e4f, 0.0f};
    x.bytes.assign(reinterpret_cast<const std::byte *>(row), reinterpret_cast<const std::byte *>(row + 4));
    const auto expected = computeOracle(workload, *tensors);
    QVERIFY(expected);
    QCOMPARE(expected->at("y"), (std::vector<double>{0.0, 0.5, 0.5, 0.0}));
}

void TestCheck::comparesEveryElement()
{
    std::vector<double> expected(200'000);
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = std::sin(static_cast<double>(i));
    std::vector<float> out(expected.begin(), expected.end());
    QVERIFY(compareOutput(bytesOf(out), DType::F32, 1000, expected, strict).ok());
    for (const std::size_t index :
         {std::size_t{0}, std::size_t{65535}, std::size_t{65536}, expected.size() - 1}) {
        auto wrong = out;
        wrong[index] += 0.001f;
        const OutputCheck check = compareOutput(bytesOf(wrong), DType::F32, 1000, expected, strict);
        QCOMPARE(check.failure, OutputCheck::Failure::Element);
        QCOMPARE(check.index, index);
        QCOMPARE(check.mismatches, std::size_t{1});
        QVERIFY(std::abs(check.got - check.expected - 0.001) < 1e-6);
    }
}

void TestCheck::comparesSpecialValues()
{
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto ok = [](std::vector<double> expected, std::vector<float> out) {
        return compareOutput(bytesOf(out), DType::F32, out.size(), expected, strict).ok();
    };
    const auto infF = std::numeric_limits<float>::infinity();
    const auto nanF = std::numeric_limits<float>::quiet_NaN();
    QVERIFY(ok({1, -inf, nan}, {1, -infF, nanF}));
    QVERIFY(!ok({1, -inf}, {1, infF}));
    QVERIFY(!ok({1, -inf}, {1, -3e38f}));
    QVERIFY(!ok({1, 2}, {1, nanF}));
    // No error is said to be none because it cannot be counted.
    QVERIFY(std::isinf(
        compareOutput(bytesOf({nanF, nanF}), DType::F32, 2, std::vector<double>{1, 2}, strict).relativeL2));
    QVERIFY(!ok({1, 2}, {1, infF}));
    QVERIFY(!ok({1, nan}, {1, 0}));
    QVERIFY(ok({0, 0}, {0, -0.0f}));
    QVERIFY(!ok({0, 0}, {0, 1e-30f}));
}

void TestCheck::relativeL2CatchesASmallErrorEverywhere()
{
    std::vector<double> expected(10'000, 1.0);
    std::vector<float> out(expected.size(), 1.0f + 3e-5f);
    workload::Tolerance loose = strict;
    loose.rtol = 1e-3;
    const OutputCheck check = compareOutput(bytesOf(out), DType::F32, 100, expected, loose);
    QCOMPARE(check.failure, OutputCheck::Failure::RelativeL2);
    QVERIFY(std::abs(check.relativeL2 - 3e-5) < 1e-6);
}

void TestCheck::exactCasesTakeNothingElse()
{
    workload::Tolerance exact{0, 0, 0, 0.0, {}, {}, true};
    const std::vector<double> expected = {16777215, 0, -3};
    QVERIFY(compareOutput(bytesOf({16777215.0f, -0.0f, -3.0f}), DType::F32, 3, expected, exact).ok());
    const OutputCheck off =
        compareOutput(bytesOf({16777214.0f, 0.0f, -3.0f}), DType::F32, 3, expected, exact);
    QCOMPARE(off.failure, OutputCheck::Failure::Element);
    QCOMPARE(off.index, std::size_t{0});
    // The oracle is rounded to the type, to nearest even: 257 is halfway between 256 and 258.
    for (const auto &[value, ok] : {std::pair{256.0f, true}, std::pair{258.0f, false}}) {
        const std::uint16_t bits = kernel::floatToBf16(value);
        std::vector<std::byte> out(sizeof bits);
        std::memcpy(out.data(), &bits, sizeof bits);
        const OutputCheck check = compareOutput(out, DType::BF16, 1, std::vector<double>{257}, exact);
        QCOMPARE(check.ok(), ok);
        if (!ok)
            QCOMPARE(check.expected, 256.0);
    }
}

void TestCheck::lowerPrecisionShowsInExactCases_data()
{
    QTest::addColumn<QString>("workload");
    QTest::addColumn<int>("bits"); // significant bits of a's elements, or of the running sum (negative)
    QTest::addColumn<bool>("ok");
    for (const char *name : {"workloads/sgemm", "tests/gate/corpus/workloads/small-sgemm"}) {
        QTest::addRow("%s f32", name) << name << 24 << true;
        QTest::addRow("%s tf32 inputs", name) << name << 11 << false;
        QTest::addRow("%s bf16 inputs", name) << name << 8 << false;
        QTest::addRow("%s f16 sums", name) << name << -11 << false;
        QTest::addRow("%s tf32 sums", name) << name << -11 << false;
    }
    for (const char *name : {"workloads/gemm", "tests/gate/corpus/workloads/small-gemm"}) {
        QTest::addRow("%s f32 sums", name) << name << -24 << true;
        QTest::addRow("%s f16 sums", name) << name << -11 << false;
        QTest::addRow("%s bf16 sums", name) << name << -8 << false;
    }
}

/// A product whose inputs, or sums, keep only so many bits, judged in the workload's case of whole numbers.
void TestCheck::lowerPrecisionShowsInExactCases()
{
    QFETCH(QString, workload);
    QFETCH(int, bits);
    const auto shipped =
        workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / workload.toStdString());
    QVERIFY2(shipped, shipped ? "" : shipped.error().message.c_str());
    const workload::Case &c = *shipped->findCase("integers");
    auto tensors = generateCase(*shipped, c, 77).value();
    const auto expected = computeOracle(*shipped, tensors).value();
    const HostTensor &output = tensors[2];
    const auto a = valuesOf(tensors[0]);
    const auto b = valuesOf(tensors[1]);
    const bool transposed = shipped->oracle == "matmul_nt";
    const auto keep = [](double value, int kept) {
        int exponent = 0;
        const double fraction = std::frexp(value, &exponent);
        return std::ldexp(std::nearbyint(std::ldexp(fraction, kept)), exponent - kept);
    };
    const auto m = static_cast<std::size_t>(c.axes.at("M"));
    const auto n = static_cast<std::size_t>(c.axes.at("N"));
    const auto k = static_cast<std::size_t>(c.axes.at("K"));
    std::vector<std::byte> out(m * n * kernel::sizeOf(output.dtype));
    for (std::size_t i = 0; i < m * n; ++i) {
        double sum = 0;
        for (std::size_t l = 0; l < k; ++l) {
            const double left = a[i / n * k + l];
            const double right = transposed ? b[i % n * k + l] : b[l * n + i % n];
            sum = keep(sum + (bits > 0 ? keep(left, bits) : left) * right, bits < 0 ? -bits : 24);
        }
        kernel::storeElement(out.data(), output.dtype, i, sum);
    }
    const auto limits = shipped->toleranceFor(c).value();
    QVERIFY(limits.exact);
    QTEST(compareOutput(out, output.dtype, n, expected.at(output.name), limits).ok(), "ok");
}

void TestCheck::rowSums()
{
    std::vector<double> expected(400, 0.25);
    std::vector<float> out(400, 0.25f);
    workload::Tolerance tolerance{1, 1, 1, 1e-3, {}, {}};
    QVERIFY(compareOutput(bytesOf(out), DType::F32, 4, expected, tolerance).ok());
    out[9] = 0.3f;
    const OutputCheck check = compareOutput(bytesOf(out), DType::F32, 4, expected, tolerance);
    QCOMPARE(check.failure, OutputCheck::Failure::RowSum);
    QCOMPARE(check.index, std::size_t{8});
    QVERIFY(std::abs(check.got - 1.05) < 1e-6);
}

void TestCheck::unwrittenElementsAreTold()
{
    const BufferLayout layout{"c", BufferKind::Output, DType::F32, 400};
    const auto before = poison(layout, 1, Fill::Garbage);
    RawBytes after = before;
    std::memset(after.data(), 0, 200);
    const OutputCheck check =
        compareOutput(after, DType::F32, 10, std::vector<double>(100, 0.0), strict, before);
    QCOMPARE(check.mismatches, std::size_t{50});
    QCOMPARE(check.unwritten, std::size_t{50});
    QCOMPARE(check.index, std::size_t{50});
}

void TestCheck::elementNames()
{
    QCOMPARE(elementName("c", {10, 20}, 77), std::string("c[3, 17]"));
    QCOMPARE(elementName("v", {5}, 4), std::string("v[4]"));
    QCOMPARE(elementName("t", {2, 3, 4}, 23), std::string("t[1, 2, 3]"));
}

void TestCheck::imagesKeepTheirContent()
{
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{100'000}}) {
        const BufferLayout layout{"x", BufferKind::Input, DType::U8, bytes};
        std::vector<std::byte> content(bytes, std::byte{42});
        std::vector<std::byte> image(layout.total());
        composeImage(layout, 7, content, image);
        QVERIFY(layout.total() >= bytes + 2 * redZoneBytes && layout.total() < bytes + 3 * redZoneBytes);
        QVERIFY(std::memcmp(contentOf(layout, image).data(), content.data(), bytes) == 0);
        QVERIFY(!findRedZoneHit(layout, 7, image));
        QVERIFY(findRedZoneHit(layout, 8, image));
    }
}

void TestCheck::redZoneByteByByte()
{
    const BufferLayout layout{"c", BufferKind::Output, DType::F32, 1000};
    std::vector<std::byte> image(layout.total());
    composeImage(layout, 3, poison(layout, 3, Fill::Nan), image);
    const auto hitAt = [&](std::size_t position) {
        auto changed = image;
        changed[position] ^= std::byte{1};
        return findRedZoneHit(layout, 3, changed);
    };
    QVERIFY(!hitAt(layout.offset()));
    QVERIFY(!hitAt(layout.offset() + layout.bytes - 1));
    const auto before = hitAt(layout.offset() - 1);
    QVERIFY(before && before->before);
    QCOMPARE(before->distance, std::size_t{0});
    const auto after = hitAt(layout.offset() + layout.bytes + 4);
    QVERIFY(after && !after->before);
    QCOMPARE(after->distance, std::size_t{4});
    QCOMPARE(after->changed, std::size_t{1});
    QVERIFY(hitAt(0));
    QVERIFY(hitAt(layout.total() - 1));
}

void TestCheck::redZonesAreNaNsForInputs()
{
    for (const DType dtype :
         {DType::F32, DType::BF16, DType::F16, DType::F64, DType::F8E4M3, DType::F8E5M2}) {
        const BufferLayout layout{"x", BufferKind::Input, dtype, 64 * kernel::sizeOf(dtype)};
        std::vector<std::byte> image(layout.total());
        composeImage(layout, 11, std::vector<std::byte>(layout.bytes), image);
        for (const std::size_t index : {std::size_t{0}, redZoneBytes / kernel::sizeOf(dtype) - 1})
            QVERIFY(std::isnan(kernel::loadElement(image.data(), dtype, index)));
        const auto *after = image.data() + layout.offset() + layout.bytes;
        QVERIFY(std::isnan(kernel::loadElement(after, dtype, 0)));
    }
}

void TestCheck::poisonsDiffer()
{
    const BufferLayout layout{"c", BufferKind::Output, DType::F32, 4000};
    const auto nans = poison(layout, 1, Fill::Nan);
    const auto garbage = poison(layout, 1, Fill::Garbage);
    for (std::size_t i = 0; i < 1000; ++i) {
        QVERIFY(std::isnan(kernel::loadElement(nans.data(), DType::F32, i)));
        const double value = kernel::loadElement(garbage.data(), DType::F32, i);
        QVERIFY(std::isfinite(value) && std::abs(value) >= 1 << 20);
    }
    QVERIFY(poison(layout, 2, Fill::Garbage) != garbage);
}

QTEST_GUILESS_MAIN(TestCheck)
#include "tst_check.moc"
