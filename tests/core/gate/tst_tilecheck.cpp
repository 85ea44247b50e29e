// SPDX-License-Identifier: GPL-3.0-or-later
//
// What fingerprints of outputs let pass and what they do not.
#include "core/gate/check/tilecheck.h"

#include <QtTest>

#include <cmath>
#include <cstring>
#include <random>

using namespace klineage;
using namespace klineage::gate;
using kernel::DType;

namespace {

constexpr std::uint32_t key = 0x1234567;
constexpr std::uint32_t word = 0x7ff37ff5;

struct Output {
    Output(DType type, std::size_t elements, std::size_t tiles, unsigned seed = 1)
        : layout(tileLayout(type, elements, tiles))
        , bytes(elements * kernel::sizeOf(type) + 8)
        , tolerance(workload::classTolerance(type))
    {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal(0.25, 1);
        for (std::size_t i = 0; i < elements; ++i) {
            exact.push_back(normal(random));
            set(i, exact.back());
        }
    }
    void set(std::size_t i, double value) { kernel::storeElement(bytes.data(), layout.dtype, i, value); }
    void unwrite(std::size_t first, std::size_t count)
    {
        const std::size_t size = kernel::sizeOf(layout.dtype);
        for (std::size_t byte = first * size; byte < (first + count) * size; ++byte)
            bytes[byte] = static_cast<std::byte>(word >> (8 * (byte % 4)));
    }
    std::vector<TilePrint> prints() const
    {
        std::vector<TilePrint> made;
        for (std::size_t first = 0; first < layout.elements; first += layout.tileElements)
            made.push_back(tilePrintOf(bytes.data(), layout.dtype, first,
                                       std::min(layout.tileElements, layout.elements - first), key, word));
        return made;
    }
    /// The first tile that is wrong.
    std::optional<std::size_t> fault(TileRule rule = TileRule::Full) const
    {
        const auto expected = expectedTiles(exact, layout, tolerance, key);
        const auto got = prints();
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (tileFault(got[i], expected[i], rule, layout.dtype))
                return i;
        }
        return std::nullopt;
    }

    TileLayout layout;
    std::vector<std::byte> bytes;
    std::vector<double> exact;
    workload::Tolerance tolerance;
};

} // namespace

class TestTileCheck : public QObject
{
    Q_OBJECT

private slots:
    void types_data();
    void types();
    void layouts();
    void errorsWithinTheTolerancePass();
    void oneElement();
    void orderOfRows();
    void choicesHaveToBeWritten();
    void specials();
    void likeAnotherRun();
    void hashesTellBitsApart();
};

void TestTileCheck::types_data()
{
    QTest::addColumn<DType>("type");
    for (const DType type : {DType::F64, DType::F32, DType::F16, DType::BF16})
        QTest::newRow(kernel::toString(type)) << type;
}

void TestTileCheck::types()
{
    QFETCH(DType, type);
    for (const std::size_t elements : {1u, 63u, 1000u, 5001u}) {
        Output output(type, elements, 7);
        QVERIFY(!output.fault());
        const std::size_t tile = output.layout.tiles() - 1;
        Output partly = output;
        partly.unwrite(elements - 1, 1);
        QCOMPARE(partly.fault().value_or(99), tile);
        Output zeros = output;
        for (std::size_t i = tile * output.layout.tileElements; i < elements; ++i)
            zeros.set(i, 0);
        QCOMPARE(zeros.fault().value_or(99), tile);
    }
}

void TestTileCheck::layouts()
{
    for (const std::size_t elements : {1u, 64u, 65u, 100000u}) {
        for (const std::size_t tiles : {1u, 3u, 128u}) {
            const TileLayout layout = tileLayout(DType::F32, elements, tiles);
            QVERIFY(layout.tiles() >= 1 && layout.tiles() <= tiles);
            QCOMPARE(layout.tileElements % 16, std::size_t{0});
        }
    }
}

void TestTileCheck::errorsWithinTheTolerancePass()
{
    // As wrong as the elementwise limits and the one on relative L2 let them be, all to one side.
    for (const DType type : {DType::F32, DType::BF16}) {
        Output output(type, 20000, 9);
        double squares = 0;
        for (const double value : output.exact)
            squares += value * value;
        const double error = 0.9 * std::min(output.tolerance.atol, output.tolerance.relL2)
                             * std::sqrt(squares / static_cast<double>(output.exact.size()));
        for (double &value : output.exact)
            value -= error;
        QVERIFY(!output.fault());
    }
}

void TestTileCheck::oneElement()
{
    Output output(DType::F32, 4096, 4);
    output.set(2000, output.exact[2000] + 1);
    QCOMPARE(output.fault().value_or(99), std::size_t{1});
    Output swapped(DType::F32, 4096, 4); // sum and squares stay
    swapped.set(10, swapped.exact[700]);
    swapped.set(700, swapped.exact[10]);
    QCOMPARE(swapped.fault().value_or(99), std::size_t{0});
}

void TestTileCheck::orderOfRows()
{
    Output output(DType::F32, 4096, 1);
    for (std::size_t i = 0; i < 4096; i += 2) {
        output.set(i, output.exact[i + 1]);
        output.set(i + 1, output.exact[i]);
    }
    QVERIFY(output.fault());
    QVERIFY(!output.fault(TileRule::AnyOrder));
    output.set(5, 100);
    QVERIFY(output.fault(TileRule::AnyOrder));
    QVERIFY(!output.fault(TileRule::Written));
}

void TestTileCheck::choicesHaveToBeWritten()
{
    Output columns(DType::I32, 4096, 4);
    for (std::size_t i = 0; i < 4096; ++i)
        columns.set(i, static_cast<double>(7 * i % 4096)); // whichever
    QVERIFY(!columns.fault(TileRule::Written));
    columns.unwrite(3000, 1);
    QCOMPARE(columns.fault(TileRule::Written).value_or(99), std::size_t{2});
    Output bytes(DType::U8, 4096, 4);
    bytes.unwrite(1, 3); // which they may be by chance
    QVERIFY(!bytes.fault(TileRule::Written));
    bytes.unwrite(1024, 1024);
    QCOMPARE(bytes.fault(TileRule::Written).value_or(99), std::size_t{1});
}

void TestTileCheck::specials()
{
    Output output(DType::F32, 300, 3);
    output.exact[7] = -std::numeric_limits<double>::infinity();
    QCOMPARE(output.fault().value_or(99), std::size_t{0});
    output.set(7, output.exact[7]);
    QVERIFY(!output.fault());
}

void TestTileCheck::likeAnotherRun()
{
    const Output one(DType::F32, 5000, 5);
    Output other = one;
    for (std::size_t i = 0; i < 5000; ++i)
        other.set(i, one.exact[i] * (1 + (i % 2 == 0 ? 1e-6 : -1e-6)));
    const auto like = tilesLike(one.prints(), one.layout, one.tolerance, 1.03);
    const auto near = other.prints();
    for (std::size_t i = 0; i < near.size(); ++i)
        QVERIFY(!tileFault(near[i], like[i], TileRule::Full, DType::F32));
    other.set(4999, 0.5 + other.exact[4999]);
    QVERIFY(tileFault(other.prints().back(), like.back(), TileRule::Full, DType::F32));
}

void TestTileCheck::hashesTellBitsApart()
{
    const Output one(DType::BF16, 777, 1);
    Output other = one;
    QVERIFY(one.prints() == other.prints());
    other.bytes[1500] ^= std::byte{1};
    QVERIFY(one.prints().front().hash != other.prints().front().hash);
}

QTEST_GUILESS_MAIN(TestTileCheck)
#include "tst_tilecheck.moc"
