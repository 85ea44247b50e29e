// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/dtype.h"

#include <QTest>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace klineage::kernel;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double stored(DType dtype, double value)
{
    std::byte bytes[8] = {};
    storeElement(bytes, dtype, 0, value);
    return loadElement(bytes, dtype, 0);
}

} // namespace

class TestDType : public QObject
{
    Q_OBJECT

private slots:
    void namesRoundTrip();
    void everyBf16PatternRoundTrips();
    void everyF16PatternRoundTrips();
    void everyF8PatternRoundTrips();
    void roundingIsToNearestEven();
    void doublesAreRoundedOnce();
    void overflowAndSpecials();
    void integersSaturate();
    void elementsLieWhereTheyShould();
};

void TestDType::namesRoundTrip()
{
    QCOMPARE(dtypeNames().size(), std::size_t{13});
    for (const std::string &name : dtypeNames()) {
        const auto dtype = dtypeFromString(name);
        QVERIFY(dtype.has_value());
        QCOMPARE(std::string(toString(*dtype)), name);
        QCOMPARE(isFloat(*dtype), name.find('f') != std::string::npos);
    }
    QVERIFY(!dtypeFromString("F32"));
    QCOMPARE(sizeOf(DType::F64), std::size_t{8});
    QCOMPARE(sizeOf(DType::TF32), std::size_t{4});
    QCOMPARE(sizeOf(DType::BF16), std::size_t{2});
    QCOMPARE(sizeOf(DType::U8), std::size_t{1});
}

void TestDType::everyBf16PatternRoundTrips()
{
    for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
        const auto bits = static_cast<std::uint16_t>(pattern);
        const float value = bf16ToFloat(bits);
        const bool isNan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
        QCOMPARE(std::isnan(value), isNan);
        // A signalling NaN becomes its quiet twin; everything else is the same pattern again.
        const unsigned expected = isNan ? bits | 0x40u : bits;
        QCOMPARE(static_cast<unsigned>(floatToBf16(value)), expected);
        if (!isNan) {
            std::uint16_t again = 0;
            storeElement(reinterpret_cast<std::byte *>(&again), DType::BF16, 0, value);
            QCOMPARE(static_cast<unsigned>(again), expected);
        }
    }
}

void TestDType::everyF16PatternRoundTrips()
{
    const std::uint16_t known[] = {0x3c00, 0x0001, 0x7bff, 0xfc00};
    const auto *bytes = reinterpret_cast<const std::byte *>(known);
    QCOMPARE(loadElement(bytes, DType::F16, 0), 1.0);
    QCOMPARE(loadElement(bytes, DType::F16, 1), 0x1p-24);
    QCOMPARE(loadElement(bytes, DType::F16, 2), 65504.0);
    QCOMPARE(loadElement(bytes, DType::F16, 3), -std::numeric_limits<double>::infinity());
    for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
        const auto bits = static_cast<std::uint16_t>(pattern);
        const double value = loadElement(reinterpret_cast<const std::byte *>(&bits), DType::F16, 0);
        const bool isNan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
        QCOMPARE(std::isnan(value), isNan);
        if (!isNan) {
            std::uint16_t again = 0;
            storeElement(reinterpret_cast<std::byte *>(&again), DType::F16, 0, value);
            QCOMPARE(static_cast<unsigned>(again), pattern);
            QCOMPARE(std::signbit(value), (bits & 0x8000) != 0);
        }
    }
}

void TestDType::everyF8PatternRoundTrips()
{
    for (const DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
        for (unsigned pattern = 0; pattern < 0x100; ++pattern) {
            const auto bits = static_cast<std::uint8_t>(pattern);
            const double value = loadElement(reinterpret_cast<const std::byte *>(&bits), dtype, 0);
            std::uint8_t again = 0;
            storeElement(reinterpret_cast<std::byte *>(&again), dtype, 0, value);
            if (std::isnan(value))
                QVERIFY(std::isnan(loadElement(reinterpret_cast<const std::byte *>(&again), dtype, 0)));
            else
                QCOMPARE(static_cast<unsigned>(again), pattern);
        }
    }
    const std::uint8_t largest = 0x7e;
    QCOMPARE(loadElement(reinterpret_cast<const std::byte *>(&largest), DType::F8E4M3, 0), 448.0);
    const std::uint8_t e5m2Largest = 0x7b;
    QCOMPARE(loadElement(reinterpret_cast<const std::byte *>(&e5m2Largest), DType::F8E5M2, 0), 57344.0);
}

void TestDType::roundingIsToNearestEven()
{
    // bf16 has steps of 2^-7 in [1, 2).
    QCOMPARE(stored(DType::BF16, 1.0 + std::ldexp(1, -8)), 1.0);                         // tie, down to even
    QCOMPARE(stored(DType::BF16, 1.0 + 3 * std::ldexp(1, -8)), 1.0 + std::ldexp(1, -6)); // tie, up to even
    QCOMPARE(stored(DType::BF16, 1.0 + std::ldexp(1, -8) * 1.001), 1.0 + std::ldexp(1, -7));
    QCOMPARE(bf16ToFloat(floatToBf16(1.00390625f)), 1.0f);
    QCOMPARE(bf16ToFloat(floatToBf16(1.99999f)), 2.0f); // the carry walks into the exponent
    // f16 has steps of 2^-10 in [1, 2); the smallest subnormal is 2^-24.
    QCOMPARE(stored(DType::F16, 1.0 + std::ldexp(1, -11)), 1.0);
    QCOMPARE(stored(DType::F16, 1.0 + 3 * std::ldexp(1, -11)), 1.0 + std::ldexp(1, -9));
    QCOMPARE(stored(DType::F16, std::ldexp(1, -25)), 0.0);
    QCOMPARE(stored(DType::F16, std::ldexp(1.01, -25)), std::ldexp(1, -24));
    QCOMPARE(stored(DType::F16, std::ldexp(1, -14) * 0.9999), std::ldexp(1, -14)); // subnormal up to normal
    QCOMPARE(stored(DType::F8E4M3, 17.0), 16.0);
    QCOMPARE(stored(DType::F8E4M3, 19.0), 20.0);
    QCOMPARE(stored(DType::F8E4M3, 127.9), 128.0);
    QCOMPARE(stored(DType::F8E4M3, 260.0), 256.0);
}

void TestDType::doublesAreRoundedOnce()
{
    // Just above a tie of bf16, by less than a float can hold: rounding to float first would make it a tie.
    const double justAbove = 1.0 + std::ldexp(1, -8) + std::ldexp(1, -40);
    QCOMPARE(stored(DType::BF16, justAbove), 1.0 + std::ldexp(1, -7));
    QCOMPARE(bf16ToFloat(floatToBf16(static_cast<float>(justAbove))), 1.0f);
    QCOMPARE(stored(DType::F16, 1.0 + std::ldexp(1, -11) + std::ldexp(1, -40)), 1.0 + std::ldexp(1, -10));
}

void TestDType::overflowAndSpecials()
{
    QCOMPARE(stored(DType::BF16, 1e39), infinity);
    QCOMPARE(stored(DType::BF16, -1e300), -infinity);
    QCOMPARE(stored(DType::F16, 65519.0), 65504.0);
    QCOMPARE(stored(DType::F16, 65520.0), infinity);
    QCOMPARE(stored(DType::F8E5M2, 1e6), infinity);
    QCOMPARE(stored(DType::F8E4M3, 1e6), 448.0); // no infinity there: finite values saturate
    QCOMPARE(stored(DType::F8E4M3, -460.0), -448.0);
    QVERIFY(std::isnan(stored(DType::F8E4M3, infinity)));
    for (const DType dtype :
         {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
        QVERIFY(std::isnan(stored(dtype, std::nan(""))));
        QVERIFY(std::signbit(stored(dtype, -0.0)));
    }
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F8E5M2})
        QCOMPARE(stored(dtype, -infinity), -infinity);
}

void TestDType::integersSaturate()
{
    QCOMPARE(stored(DType::I8, 127.4), 127.0);
    QCOMPARE(stored(DType::I8, 200.0), 127.0);
    QCOMPARE(stored(DType::I8, -1e9), -128.0);
    QCOMPARE(stored(DType::U8, -3.0), 0.0);
    QCOMPARE(stored(DType::U32, 5e9), 4294967295.0);
    QCOMPARE(stored(DType::I32, 2.5), 2.0);
    QCOMPARE(stored(DType::I16, 3.5), 4.0);
    QCOMPARE(stored(DType::I64, 1e30), 9223372036854775808.0);
    QCOMPARE(stored(DType::I32, std::nan("")), 0.0);
    QCOMPARE(stored(DType::I32, -infinity), -2147483648.0);
}

void TestDType::elementsLieWhereTheyShould()
{
    for (const std::string &name : dtypeNames()) {
        const DType dtype = *dtypeFromString(name);
        std::vector<std::byte> bytes(4 * sizeOf(dtype), std::byte{0xaa});
        storeElement(bytes.data(), dtype, 2, 3.0);
        QCOMPARE(loadElement(bytes.data(), dtype, 2), 3.0);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (i < 2 * sizeOf(dtype) || i >= 3 * sizeOf(dtype))
                QVERIFY(bytes[i] == std::byte{0xaa});
        }
    }
}

QTEST_GUILESS_MAIN(TestDType)
#include "tst_dtype.moc"
