/*klineage
surface = "cuda"

[[launch]]
kernel = "convolution"
grid = ["ceil_div(N * H * W, 8)", "ceil_div(F, 64)"]
block = [256]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two filters a thread, straight from memory; others are compared with it.

#include <cuda_fp16.h>

constexpr int PIXELS = 8, FILTERS = 64;
// Eight pixels and 64 filters a block of 256 threads, two filters a thread; zeros outside of the image.
__device__ void convolve(const __half *data, const __half *weight, __half *out, int group, int column, int N, int H, int W, int C, int F)
{
    const int pixel = group * PIXELS + threadIdx.x / 32, filter = column * FILTERS + threadIdx.x % 32 * 2;
    if (pixel >= N * H * W || filter >= F)
        return;
    const int x = pixel % W, y = pixel / W % H;
    float first = 0, second = 0;
    for (int window = 0; window < 9; ++window) {
        const int row = y + window / 3 - 1, at = x + window % 3 - 1;
        if (row < 0 || row >= H || at < 0 || at >= W)
            continue;
        const __half *from = data + (size_t(pixel) + (window / 3 - 1) * W + window % 3 - 1) * C;
        const __half *factors = weight + size_t(window) * C * F + filter;
        for (int c = 0; c < C; c += 8) {
            const uint4 raw = *reinterpret_cast<const uint4 *>(from + c);
            const __half *eight = reinterpret_cast<const __half *>(&raw);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float2 two = __half22float2(*reinterpret_cast<const __half2 *>(factors + size_t(c + i) * F));
                const float element = __half2float(eight[i]);
                first = fmaf(element, two.x, first);
                second = fmaf(element, two.y, second);
            }
        }
    }
    *reinterpret_cast<__half2 *>(out + size_t(pixel) * F + filter) = __floats2half2_rn(first, second);
}
extern "C" __global__ __launch_bounds__(256) void convolution(const __half *data, const __half *weight, __half *out, int N, int H, int W, int C, int F)
{
    convolve(data, weight, out, blockIdx.x, blockIdx.y, N, H, W, C, F);
}
