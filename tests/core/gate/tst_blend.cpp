// SPDX-License-Identifier: GPL-3.0-or-later
//
// New content that is made of two others: of the same kind, never the same twice, and the same bits for the same key.
#include "core/device/blend.h"

#include "core/gate/check/inputs.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <utility>

using namespace klineage;
using namespace klineage::gate;
using kernel::DType;

namespace {

HostTensor filled(DType dtype, std::vector<std::int64_t> shape, workload::Distribution distribution, int seed)
{
    HostTensor tensor;
    tensor.name = "x";
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    generate(tensor, distribution, static_cast<std::uint64_t>(seed), 0);
    return tensor;
}

std::vector<std::byte> blended(const Blend &blend, const HostTensor &a, const HostTensor &b)
{
    std::vector<std::byte> out(a.bytes.size());
    blendPieces(blend, a.bytes, b.bytes, out, 0, pieceCount(blend, a.elements()));
    return out;
}

std::vector<double> valuesOf(std::span<const std::byte> bytes, DType dtype)
{
    std::vector<double> values;
    for (std::size_t i = 0; i < bytes.size() / kernel::sizeOf(dtype); ++i)
        values.push_back(kernel::loadElement(bytes.data(), dtype, i));
    return values;
}

} // namespace

class TestBlend : public QObject
{
    Q_OBJECT

private slots:
    void mixturesAreNormal_data()
    {
        QTest::addColumn<int>("dtype");
        for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
            QTest::newRow(kernel::toString(dtype)) << static_cast<int>(dtype);
    }
    void mixturesAreNormal()
    {
        QFETCH(int, dtype);
        const auto type = static_cast<DType>(dtype);
        workload::Distribution normal;
        normal.mean = 0.5;
        normal.stddev = 2;
        const auto a = filled(type, {100, 1001}, normal, 1);
        const auto b = filled(type, {100, 1001}, normal, 2);
        const Blend blend{Blend::Kind::Mix, type, 7, 0.5, 1000, 1};
        const auto values = valuesOf(blended(blend, a, b), type);
        double sum = 0;
        double squares = 0;
        for (const double value : values) {
            sum += value;
            squares += value * value;
        }
        const auto count = static_cast<double>(values.size());
        QVERIFY(std::abs(sum / count - 0.5) < 0.1);
        QVERIFY(std::abs(squares / count - 4.25) < 0.2);
        // Hardly any element is one of its sources'.
        const auto of = valuesOf(a.bytes, type);
        const std::set<double> known(of.begin(), of.end());
        const auto old =
            std::count_if(values.begin(), values.end(), [&](double v) { return known.contains(v); });
        QVERIFY(type != DType::F32 || old < 2000);
    }

    void theKeySaysAll()
    {
        const auto a = filled(DType::F32, {64, 64}, {}, 1);
        const auto b = filled(DType::F32, {64, 64}, {}, 2);
        std::set<std::vector<std::byte>> rows;
        constexpr std::size_t rowBytes = 64 * sizeof(float);
        for (std::uint64_t key = 0; key < 50; ++key) {
            const Blend blend{Blend::Kind::Mix, DType::F32, key, 0.25, 256, 1};
            const auto content = blended(blend, a, b);
            QVERIFY(content == blended(blend, a, b));
            for (auto row = content.begin(); row != content.end(); row += rowBytes)
                QVERIFY(rows.insert({row, row + rowBytes}).second); // no row twice
        }
    }

    void piecesCanBeMadeApart()
    {
        const auto a = filled(DType::BF16, {33, 77}, {}, 1);
        const auto b = filled(DType::BF16, {33, 77}, {}, 2);
        const Blend blend{Blend::Kind::Mix, DType::BF16, 3, 0.25, 100, 1};
        const auto whole = blended(blend, a, b);
        std::vector<std::byte> parts(whole.size());
        for (std::size_t i = 0; i < pieceCount(blend, a.elements()); ++i)
            blendPieces(blend, a.bytes, b.bytes, parts, i, i + 1);
        QVERIFY(parts == whole);
    }

    void turnedRowsKeepTheirNorm()
    {
        workload::Distribution unit;
        unit.kind = workload::DistributionKind::UnitRows;
        const auto a = filled(DType::F32, {50, 32}, unit, 1);
        const auto b = filled(DType::F32, {50, 32}, unit, 2);
        const auto values =
            valuesOf(blended({Blend::Kind::Turned, DType::F32, 5, 0, 32, 32}, a, b), DType::F32);
        for (std::size_t row = 0; row < 50; ++row) {
            double squares = 0;
            for (std::size_t i = 0; i < 32; ++i)
                squares += values[32 * row + i] * values[32 * row + i];
            QVERIFY(std::abs(squares - 1) < 1e-4);
        }
    }

    /// Rows of few kinds come again turned; what is off in each element of its own does not, and what is not finite stays.
    void variedRowsNeverComeAgain()
    {
        workload::Distribution masked;
        masked.kind = workload::DistributionKind::NegInfinity;
        for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
            const auto a = filled(dtype, {2, 64}, masked, 1);
            const auto b = filled(dtype, {2, 64}, masked, 2);
            const Blend blend{Blend::Kind::Varied, dtype, 5, 0, 64, 64};
            std::set<double> sums;
            for (std::uint64_t key = 0; key < 50; ++key) {
                Blend own = blend;
                own.key = key;
                const auto values = valuesOf(blended(own, a, b), dtype);
                for (std::size_t row = 0; row < 2; ++row) {
                    double sum = 0;
                    int finite = 0;
                    for (std::size_t i = 0; i < 64; ++i) {
                        const double value = values[64 * row + i];
                        QVERIFY(!std::isnan(value));
                        sum += std::isfinite(value) ? value : 0;
                        finite += std::isfinite(value) ? 1 : 0;
                    }
                    QVERIFY(finite > 30 && finite < 64);
                    sums.insert(sum);
                }
            }
            QVERIFY(sums.size() > 90);
        }
    }

    void piecesAreOfTheirSources()
    {
        workload::Distribution bits;
        bits.kind = workload::DistributionKind::Integers;
        bits.low = 3;
        bits.high = 9;
        for (const DType dtype : {DType::F8E4M3, DType::F16, DType::F32, DType::F64}) {
            const auto a = filled(dtype, {40, 40}, bits, 1);
            const auto b = filled(dtype, {40, 40}, bits, 2);
            for (const double value :
                 valuesOf(blended({Blend::Kind::Pieces, dtype, 5, 0, 100, 1}, a, b), dtype))
                QVERIFY(value >= 3 && value <= 9);
        }
    }

    /// By the steps of what was added to them, elements near zero would tell one kind of content from the other.
    void nearZeroNothingLiesOnSteps()
    {
        const workload::Distribution normal;
        const auto a = filled(DType::F32, {512, 512}, normal, 1);
        const auto b = filled(DType::F32, {512, 512}, normal, 2);
        const Blend blend{Blend::Kind::Mix, DType::F32, 5, normal.mean, 256, 1};
        const auto mixed = blended(blend, a, b);
        for (const std::span<const std::byte> content :
             {std::span(std::as_const(a.bytes)), std::span(mixed)}) {
            int near = 0;
            int onSteps = 0;
            for (const double value : valuesOf(content, DType::F32)) {
                if (std::abs(value) > 0x1p-8)
                    continue;
                ++near;
                const double steps = value * 0x1p28;
                onSteps += steps == std::round(steps) ? 1 : 0;
            }
            QVERIFY2(near > 400, qPrintable(QString::number(near)));
            QVERIFY2(10 * onSteps < near, qPrintable(QString::number(onSteps)));
        }
    }

    /// What the device makes has to be this: klineage_blend was written from the same definition, and this is a witness of it.
    void knownBits()
    {
        const Blend blend{Blend::Kind::Mix, DType::F32, 1234567, 0.25, 1024, 1};
        const PieceSource source = sourceOf(blend, 1 << 20, 17);
        QCOMPARE(source.first, std::size_t{knownFirst});
        QCOMPARE(source.second, std::size_t{knownSecond});
        QVERIFY(source.c > 0.28f && source.c < 0.89f);
        QVERIFY(std::abs(source.c * source.c + source.s * source.s - 1) < 1e-6f);
        const double rest = 1 - static_cast<double>(source.c) - static_cast<double>(source.s);
        QCOMPARE(source.shift, static_cast<float>(0.25 * rest));
        std::set<float> offs;
        for (std::uint32_t i = 0; i < 256; ++i)
            offs.insert(offOf(source.salt, source.step, i));
        QCOMPARE(offs.size(), std::size_t{256});
        QCOMPARE(*offs.begin(), 1 - 127.5f * 0x1p-17f);
        // Far from zero a part of the mean would be more than the elements differ by.
        const PieceSource far =
            sourceOf({Blend::Kind::FarMix, DType::F32, 1234567, 1e4, 1024, 1}, 1 << 20, 17);
        QCOMPARE(far.c, source.c);
        QCOMPARE(offOf(far.salt, far.step, 5), 1.0f);
    }

private:
    static constexpr std::size_t knownFirst = 280439;
    static constexpr std::size_t knownSecond = 639158;
};

QTEST_GUILESS_MAIN(TestBlend)
#include "tst_blend.moc"
