// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the shipped workload conv2d accepts and what it refuses: the definition and Winograd's F(2 × 2, 3 × 3), both in f32, pass every
// case (the exact ones too), and each common mistake fails a case that is there for it.
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/comparison.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <array>
#include <bit>

using namespace klineage;
using namespace klineage::gate;

namespace {

struct Image {
    int n, h, w, c, f;
    const float *x;
    const float *weight;
    [[nodiscard]] float at(int image, int row, int column, int channel) const
    {
        return x[((image * h + row) * w + column) * c + channel];
    }
    /// Zero outside of the image.
    [[nodiscard]] float padded(int image, int row, int column, int channel) const
    {
        const bool inside = row >= 0 && row < h && column >= 0 && column < w;
        return inside ? at(image, row, column, channel) : 0.0f;
    }
    [[nodiscard]] float weightAt(int row, int column, int channel, int filter) const
    {
        return weight[((row * 3 + column) * c + channel) * f + filter];
    }
};

using Convolve = void (*)(const Image &image, std::vector<float> &y);

/// The definition, with what `product` makes of an input (n, row, column, channel), a weight's place (r, s) and a filter.
template <typename Product>
void convolveWith(const Image &image, std::vector<float> &y, const Product &product)
{
    float *out = y.data();
    for (int n = 0; n < image.n; ++n)
        for (int h = 0; h < image.h; ++h)
            for (int w = 0; w < image.w; ++w)
                for (int f = 0; f < image.f; ++f) {
                    float sum = 0;
                    for (int r = 0; r < 3; ++r)
                        for (int s = 0; s < 3; ++s)
                            for (int c = 0; c < image.c; ++c)
                                sum += product(n, h + r - 1, w + s - 1, c, r, s, f);
                    *out++ = sum;
                }
}

void definition(const Image &i, std::vector<float> &y)
{
    convolveWith(i, y, [&](int n, int row, int column, int c, int r, int s, int f) {
        return i.padded(n, row, column, c) * i.weightAt(r, s, c, f);
    });
}

void flippedWindow(const Image &i, std::vector<float> &y)
{
    convolveWith(i, y, [&](int n, int row, int column, int c, int r, int s, int f) {
        return i.padded(n, row, column, c) * i.weightAt(2 - r, 2 - s, c, f);
    });
}

void transposedWindow(const Image &i, std::vector<float> &y)
{
    convolveWith(i, y, [&](int n, int row, int column, int c, int r, int s, int f) {
        return i.padded(n, row, column, c) * i.weightAt(s, r, c, f);
    });
}

void clampedBorder(const Image &i, std::vector<float> &y)
{
    convolveWith(i, y, [&](int n, int row, int column, int c, int r, int s, int f) {
        return i.at(n, std::clamp(row, 0, i.h - 1), std::clamp(column, 0, i.w - 1), c)
               * i.weightAt(r, s, c, f);
    });
}

/// What lies before the first column of a row is the last pixel of the row before.
void unguardedColumns(const Image &i, std::vector<float> &y)
{
    convolveWith(i, y, [&](int n, int row, int column, int c, int r, int s, int f) {
        const int pixel = row * i.w + column;
        return pixel < 0 || pixel >= i.h * i.w ? 0.0f : i.at(n, 0, pixel, c) * i.weightAt(r, s, c, f);
    });
}

/// Whole groups of four channels only, unless there are fewer.
void wholeChannelGroups(const Image &i, std::vector<float> &y)
{
    const int channels = i.c < 4 ? i.c : i.c / 4 * 4;
    convolveWith(i, y, [&](int n, int row, int column, int c, int r, int s, int f) {
        return c < channels ? i.padded(n, row, column, c) * i.weightAt(r, s, c, f) : 0.0f;
    });
}

/// As tensor cores take it: 10 bits after the point.
float toTf32(float value)
{
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000u) & 0xffffe000u);
}

void roundedInputs(const Image &i, std::vector<float> &y)
{
    convolveWith(i, y, [&](int n, int row, int column, int c, int r, int s, int f) {
        return toTf32(i.padded(n, row, column, c)) * toTf32(i.weightAt(r, s, c, f));
    });
}

using Tile = std::array<std::array<float, 4>, 4>;

/// Bᵀ · d · B.
Tile transformedInput(Tile d)
{
    const auto apply = [](float &a, float &b, float &c, float &e) {
        const std::array<float, 4> v{a - c, b + c, c - b, b - e};
        a = v[0], b = v[1], c = v[2], e = v[3];
    };
    for (std::size_t k = 0; k < 4; ++k)
        apply(d[0][k], d[1][k], d[2][k], d[3][k]);
    for (auto &row : d)
        apply(row[0], row[1], row[2], row[3]);
    return d;
}

/// G · g · Gᵀ.
Tile transformedWeight(const Image &image, int c, int f)
{
    const auto apply = [](float a, float b, float e) {
        return std::array<float, 4>{a, (a + b + e) / 2, (a - b + e) / 2, e};
    };
    std::array<std::array<float, 4>, 3> half{};
    for (int s = 0; s < 3; ++s)
        half[static_cast<std::size_t>(s)] =
            apply(image.weightAt(0, s, c, f), image.weightAt(1, s, c, f), image.weightAt(2, s, c, f));
    Tile tile{};
    for (std::size_t k = 0; k < 4; ++k)
        tile[k] = apply(half[0][k], half[1][k], half[2][k]);
    return tile;
}

/// The 2 × 2 outputs of a filter that begin at (h, w).
std::array<std::array<float, 2>, 2> winogradTile(const Image &image, int n, int h, int w, int f)
{
    Tile sums{};
    for (int c = 0; c < image.c; ++c) {
        Tile input{};
        for (int r = 0; r < 4; ++r)
            for (int s = 0; s < 4; ++s)
                input[static_cast<std::size_t>(r)][static_cast<std::size_t>(s)] =
                    image.padded(n, h + r - 1, w + s - 1, c);
        input = transformedInput(input);
        const Tile weight = transformedWeight(image, c, f);
        for (std::size_t r = 0; r < 4; ++r)
            for (std::size_t s = 0; s < 4; ++s)
                sums[r][s] += input[r][s] * weight[r][s];
    }
    std::array<std::array<float, 4>, 2> half{};
    for (std::size_t k = 0; k < 4; ++k) {
        half[0][k] = sums[0][k] + sums[1][k] + sums[2][k];
        half[1][k] = sums[1][k] - sums[2][k] - sums[3][k];
    }
    std::array<std::array<float, 2>, 2> out{};
    for (std::size_t r = 0; r < 2; ++r)
        out[r] = {half[r][0] + half[r][1] + half[r][2], half[r][1] - half[r][2] - half[r][3]};
    return out;
}

void winograd(const Image &image, std::vector<float> &y)
{
    for (int n = 0; n < image.n; ++n)
        for (int h = 0; h < image.h; h += 2)
            for (int w = 0; w < image.w; w += 2)
                for (int f = 0; f < image.f; ++f) {
                    const auto tile = winogradTile(image, n, h, w, f);
                    for (int r = 0; r < std::min(2, image.h - h); ++r)
                        for (int s = 0; s < std::min(2, image.w - w); ++s)
                            y[static_cast<std::size_t>(((n * image.h + h + r) * image.w + w + s) * image.f
                                                       + f)] =
                                tile[static_cast<std::size_t>(r)][static_cast<std::size_t>(s)];
                }
}

const workload::Workload &shippedConvolution()
{
    static const auto workload =
        workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads/conv2d");
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return *workload;
}

/// Large cases are made smaller.
OutputCheck checkCase(workload::Case c, Convolve convolve)
{
    if (!c.drawn.empty())
        c = drawnAt(c, {{"N", 1}, {"H", 10}, {"W", 6}, {"C", 16}, {"F", 4}});
    for (const auto &[axis, most] : {std::pair{"H", 15}, {"W", 17}, {"C", 40}, {"F", 12}})
        c.axes[axis] = std::min<std::int64_t>(c.axes[axis], most);
    const auto instance = makeInstance(shippedConvolution(), c, 5);
    if (!instance)
        qFatal("%s", instance.error().message.c_str());
    const auto &tensors = (*instance)->tensors; // x, weight, y
    const auto axis = [&](const char *name) { return static_cast<int>(c.axes.at(name)); };
    const Image image{axis("N"),
                      axis("H"),
                      axis("W"),
                      axis("C"),
                      axis("F"),
                      reinterpret_cast<const float *>(tensors[0].bytes.data()),
                      reinterpret_cast<const float *>(tensors[1].bytes.data())};
    std::vector<float> y(tensors[2].elements());
    convolve(image, y);
    return compareOutput(std::as_bytes(std::span(y)), kernel::DType::F32, tensors[2].rowLength(),
                         (*instance)->expected.at("y"), (*instance)->tolerance);
}

} // namespace

Q_DECLARE_METATYPE(Convolve)

class TestConvolution : public QObject
{
    Q_OBJECT
private slots:
    void honestOnesPass_data();
    void honestOnesPass();
    void mistakesFail_data();
    void mistakesFail();
};

void TestConvolution::honestOnesPass_data()
{
    QTest::addColumn<Convolve>("convolve");
    QTest::newRow("definition") << Convolve(definition);
    QTest::newRow("Winograd") << Convolve(winograd);
}

void TestConvolution::honestOnesPass()
{
    QFETCH(const Convolve, convolve);
    for (const workload::Case &c : shippedConvolution().cases) {
        const OutputCheck check = checkCase(c, convolve);
        QVERIFY2(check.ok(), c.name.c_str());
        QVERIFY2(5 * check.relativeL2 < shippedConvolution().tolerance.relL2, c.name.c_str()); // not by luck
    }
}

void TestConvolution::mistakesFail_data()
{
    QTest::addColumn<Convolve>("convolve");
    QTest::addColumn<QString>("caseName");
    const auto add = [](const char *name, Convolve convolve, std::initializer_list<const char *> cases) {
        for (const char *c : cases)
            QTest::addRow("%s: %s", name, c) << convolve << QString(c);
    };
    add("flipped window", flippedWindow, {"timed", "odd", "one-row", "one-column", "bits", "hidden"});
    add("transposed window", transposedWindow, {"timed", "odd", "one-row", "one-column", "bits", "hidden"});
    add("clamped border", clampedBorder, {"timed", "odd", "smallest", "one-pixel", "one-row", "bits"});
    add("unguarded columns", unguardedColumns, {"timed", "odd", "one-column", "bits", "integers"});
    add("whole channel groups", wholeChannelGroups, {"odd", "one-pixel"});
    add("inputs rounded to TF32", roundedInputs, {"timed", "odd", "integers", "hidden"});
}

void TestConvolution::mistakesFail()
{
    QFETCH(const Convolve, convolve);
    QFETCH(const QString, caseName);
    QVERIFY(!checkCase(*shippedConvolution().findCase(caseName.toStdString()), convolve).ok());
}

QTEST_GUILESS_MAIN(TestConvolution)
#include "tst_convolution.moc"
