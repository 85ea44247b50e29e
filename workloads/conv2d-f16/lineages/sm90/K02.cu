/*klineage
surface = "cuda"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W, 128)", "ceil_div(F, 128)"]
block = ["256"]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM: a block has 128 pixels (of all images in a row) times 128 filters. For each tap of the
// window and each 16 channels it stages both operands in shared memory, as floats; a thread has 8 × 8
// sums in registers. Needs C % 8 == 0 and F % 8 == 0.

#include <cuda_fp16.h>

constexpr int BK = 16;

extern "C" __global__ __launch_bounds__(256) void conv2d(const __half *data, const __half *weight,
                                                         __half *output, int N, int H, int W, int C, int F)
{
    __shared__ float xs[BK][128 + 4];
    __shared__ float ws[BK][128];

    const int thread = threadIdx.x;
    const int pixels = N * H * W;
    const int p0 = blockIdx.x * 128, f0 = blockIdx.y * 128;

    // What this thread stages: 8 channels of one pixel, 8 filters of one channel.
    const int row = thread / 2, channel = thread % 2 * 8;
    const int pixel = p0 + row;
    const int w = pixel % W, h = pixel / W % H;
    const int weightRow = thread / 16, filter = thread % 16 * 8;

    // What it computes: pixels and filters 4 · y … and 64 + 4 · y …
    const int y = thread / 16 * 4, x = thread % 16 * 4;

    float sum[8][8] = {};
    for (int tap = 0; tap < 9; ++tap) {
        const int r = tap / 3 - 1, s = tap % 3 - 1;
        const bool inside = pixel < pixels && h + r >= 0 && h + r < H && w + s >= 0 && w + s < W;
        const __half *const from = data + (long long)(pixel + r * W + s) * C;
        for (int c0 = 0; c0 < C; c0 += BK) {
            uint4 a = {}, b = {};
            if (inside && c0 + channel < C)
                a = *reinterpret_cast<const uint4 *>(from + c0 + channel);
            if (c0 + weightRow < C && f0 + filter < F)
                b = *reinterpret_cast<const uint4 *>(weight + (long long)(tap * C + c0 + weightRow) * F
                                                     + f0 + filter);
            __syncthreads(); // everyone has left the slab before
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float2 av = __half22float2(reinterpret_cast<const __half2 *>(&a)[i]);
                const float2 bv = __half22float2(reinterpret_cast<const __half2 *>(&b)[i]);
                xs[channel + 2 * i][row] = av.x;
                xs[channel + 2 * i + 1][row] = av.y;
                *reinterpret_cast<float2 *>(&ws[weightRow][filter + 2 * i]) = bv;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                float av[8], bv[8];
                *reinterpret_cast<float4 *>(av) = *reinterpret_cast<const float4 *>(&xs[k][y]);
                *reinterpret_cast<float4 *>(av + 4) = *reinterpret_cast<const float4 *>(&xs[k][64 + y]);
                *reinterpret_cast<float4 *>(bv) = *reinterpret_cast<const float4 *>(&ws[k][x]);
                *reinterpret_cast<float4 *>(bv + 4) = *reinterpret_cast<const float4 *>(&ws[k][64 + x]);
#pragma unroll
                for (int i = 0; i < 8; ++i)
#pragma unroll
                    for (int j = 0; j < 8; ++j)
                        sum[i][j] += av[i] * bv[j];
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int to = p0 + y + i % 4 + i / 4 * 64;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int f = f0 + x + half * 64;
            if (to < pixels && f < F) {
                const float *const from = sum[i] + 4 * half;
                __half2 *const out = reinterpret_cast<__half2 *>(output + (long long)to * F + f);
                out[0] = __floats2half2_rn(from[0], from[1]);
                out[1] = __floats2half2_rn(from[2], from[3]);
            }
        }
    }
}
