/*klineage
surface = "cuda"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W * F, 2048)"]
block = ["256"]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A thread for each eight neighbouring filters of a pixel (F is a multiple of 8): weights and results move in chunks of 16 bytes,
// and a load of data serves eight products; pixels outside of the image add nothing.

#include <cuda_fp16.h>

extern "C" __global__ void conv2d(const __half *data, const __half *weight, __half *output,
                                  int N, int H, int W, int C, int F)
{
    const int chunks = F / 8;
    const long long index = blockIdx.x * 256ll + threadIdx.x;
    if (index >= (long long)N * H * W * chunks)
        return;
    const int f = (int)(index % chunks) * 8;
    const long long pixel = index / chunks;
    const int w = pixel % W;
    const int h = pixel / W % H;

    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
            if (h + r - 1 < 0 || h + r - 1 >= H || w + s - 1 < 0 || w + s - 1 >= W)
                continue;
            const __half *const x = data + (pixel + (r - 1) * W + s - 1) * C;
            const __half *const k = weight + (long long)(3 * r + s) * C * F + f;
            for (int c = 0; c < C; ++c) {
                const float value = __half2float(x[c]);
                const uint4 chunk = *reinterpret_cast<const uint4 *>(k + (long long)c * F);
                const __half2 *const pairs = reinterpret_cast<const __half2 *>(&chunk);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float2 pair = __half22float2(pairs[i]);
                    sum[2 * i] += value * pair.x;
                    sum[2 * i + 1] += value * pair.y;
                }
            }
        }
    }

    uint4 result;
    __half2 *const pairs = reinterpret_cast<__half2 *>(&result);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        pairs[i] = __floats2half2_rn(sum[2 * i], sum[2 * i + 1]);
    *reinterpret_cast<uint4 *>(output + index * 8) = result;
}
