/*klineage
surface = "cuda"

[[launch]]
kernel = "convolution"
grid = ["N * ceil_div(H, 2) * ceil_div(W, 2)", "ceil_div(F, 64)"]
block = [64]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Winograd's F(2 x 2, 3 x 3) in single precision: sixteen products for each channel instead of thirty-six, a filter a thread.

#include <cuda_fp16.h>

__device__ __forceinline__ void transformedRow(float a, float b, float c, float d, float (&to)[4])
{
    to[0] = a - c;
    to[1] = b + c;
    to[2] = c - b;
    to[3] = b - d;
}
extern "C" __global__ __launch_bounds__(64) void convolution(const __half *data, const __half *weight, __half *out, int N, int H, int W, int C, int F)
{
    __shared__ float patch[16]; // of one channel, transformed
    const int across = (W + 1) / 2, down = (H + 1) / 2, tile = blockIdx.x, filter = blockIdx.y * 64 + threadIdx.x;
    const int x0 = tile % across * 2, y0 = tile / across % down * 2, image = tile / across / down;
    float sum[16] = {};
    for (int c = 0; c < C; ++c) {
        __syncthreads();
        if (threadIdx.x < 4) { // a column of the patch each, then a row
            float column[4], made[4];
            const int x = x0 + int(threadIdx.x) - 1;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int y = y0 + i - 1;
                const bool in = x >= 0 && x < W && y >= 0 && y < H;
                column[i] = in ? __half2float(data[((size_t(image) * H + y) * W + x) * C + c]) : 0.0f;
            }
            transformedRow(column[0], column[1], column[2], column[3], made);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                patch[4 * i + threadIdx.x] = made[i];
            __syncwarp(0xfu);
            float row[4];
            transformedRow(patch[4 * threadIdx.x], patch[4 * threadIdx.x + 1], patch[4 * threadIdx.x + 2], patch[4 * threadIdx.x + 3], row);
            __syncwarp(0xfu);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                patch[4 * threadIdx.x + i] = row[i];
        }
        __syncthreads();
        if (filter >= F)
            continue;
        float g[3][3], half[4][3];
#pragma unroll
        for (int i = 0; i < 9; ++i)
            g[i / 3][i % 3] = __half2float(weight[(size_t(i) * C + c) * F + filter]);
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            half[0][j] = g[0][j];
            half[1][j] = 0.5f * (g[0][j] + g[1][j] + g[2][j]);
            half[2][j] = 0.5f * (g[0][j] - g[1][j] + g[2][j]);
            half[3][j] = g[2][j];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float u0 = half[i][0], u1 = 0.5f * (half[i][0] + half[i][1] + half[i][2]), u2 = 0.5f * (half[i][0] - half[i][1] + half[i][2]), u3 = half[i][2];
            sum[4 * i] = fmaf(u0, patch[4 * i], sum[4 * i]);
            sum[4 * i + 1] = fmaf(u1, patch[4 * i + 1], sum[4 * i + 1]);
            sum[4 * i + 2] = fmaf(u2, patch[4 * i + 2], sum[4 * i + 2]);
            sum[4 * i + 3] = fmaf(u3, patch[4 * i + 3], sum[4 * i + 3]);
        }
    }
    if (filter >= F)
        return;
    float rows[2][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        rows[0][j] = sum[j] + sum[4 + j] + sum[8 + j];
        rows[1][j] = sum[4 + j] - sum[8 + j] - sum[12 + j];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float first = rows[i][0] + rows[i][1] + rows[i][2], second = rows[i][1] - rows[i][2] - rows[i][3];
        if (y0 + i < H) {
            out[((size_t(image) * H + y0 + i) * W + x0) * F + filter] = __float2half(first);
            if (x0 + 1 < W)
                out[((size_t(image) * H + y0 + i) * W + x0 + 1) * F + filter] = __float2half(second);
        }
    }
}
