// SPDX-License-Identifier: GPL-3.0-or-later
//
// Each image is unrolled into a matrix with a row an output pixel and a column a weight, so that the blocked matrix product does the
// sums in double.
#include "core/gate/check/convolution.h"

#include "core/gate/check/matmul.h"
#include "core/gate/check/parallel.h"

#include <algorithm>

namespace klineage::gate {

namespace {

struct Geometry {
    std::size_t images, height, width, channels, filters, window;
    [[nodiscard]] std::size_t pixels() const { return height * width; }
    [[nodiscard]] std::size_t terms() const { return window * window * channels; }
};

/// The window around (y, x), row, column, channel; zeros outside of the image.
void unrollPixel(const Geometry &g, const float *image, std::size_t y, std::size_t x, float *out)
{
    const auto reach = static_cast<std::ptrdiff_t>(g.window / 2);
    for (std::ptrdiff_t dy = -reach; dy <= reach; ++dy) {
        for (std::ptrdiff_t dx = -reach; dx <= reach; ++dx, out += g.channels) {
            const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(y) + dy;
            const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(x) + dx;
            if (row < 0 || column < 0 || row >= static_cast<std::ptrdiff_t>(g.height)
                || column >= static_cast<std::ptrdiff_t>(g.width)) {
                std::fill_n(out, g.channels, 0.0f);
                continue;
            }
            const auto pixel = static_cast<std::size_t>(row) * g.width + static_cast<std::size_t>(column);
            std::copy_n(image + pixel * g.channels, g.channels, out);
        }
    }
}

std::vector<double> convolve(const Geometry &g, const std::vector<float> &data,
                             const std::vector<float> &weight)
{
    std::vector<double> out;
    out.reserve(g.images * g.pixels() * g.filters);
    std::vector<float> unrolled(g.pixels() * g.terms());
    for (std::size_t n = 0; n < g.images; ++n) {
        const float *image = data.data() + n * g.pixels() * g.channels;
        parallelRanges(
            g.pixels(), std::max<std::size_t>(1, 4096 / g.terms()), [&](std::size_t begin, std::size_t end) {
                for (std::size_t p = begin; p < end; ++p)
                    unrollPixel(g, image, p / g.width, p % g.width, unrolled.data() + p * g.terms());
            });
        const auto result = matmul(unrolled, weight, g.pixels(), g.filters, g.terms(), false);
        out.insert(out.end(), result.begin(), result.end());
    }
    return out;
}

} // namespace

Result<Expected> convolutionOracle(OracleRoles roles)
{
    const HostTensor *data = roles["data"];
    const HostTensor *weight = roles["weight"];
    const HostTensor *out = roles["out"];
    if (!data || !weight || !out)
        return roles.problem({});
    if (data->shape.size() != 4 || weight->shape.size() != 2 || out->shape.size() != 4)
        return roles.problem("it takes data and out of four dimensions and weights of two");
    if (kernel::sizeOf(data->dtype) > 4 || kernel::sizeOf(weight->dtype) > 4)
        return roles.problem("it takes inputs of at most 32 bits an element");
    const auto at = [](const HostTensor *tensor, std::size_t i) {
        return static_cast<std::size_t>(tensor->shape[i]);
    };
    Geometry g{at(data, 0), at(data, 1), at(data, 2), at(data, 3), at(weight, 1), 1};
    while (g.terms() < at(weight, 0))
        g.window += 2;
    const std::vector<std::int64_t> shape{data->shape[0], data->shape[1], data->shape[2], weight->shape[1]};
    if (g.terms() != at(weight, 0) || out->shape != shape)
        return roles.problem("the shapes of its tensors do not fit together");
    Expected expected;
    expected[out->name] = convolve(g, toFloats(*data), toFloats(*weight));
    return expected;
}

} // namespace klineage::gate
