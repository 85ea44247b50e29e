/*klineage
surface = "cuda"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W * F, 256)"]
block = ["256"]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// The definition: a thread for each element of the output; pixels outside of the image add nothing.

#include <cuda_fp16.h>

extern "C" __global__ void conv2d(const __half *data, const __half *weight, __half *output,
                                  int N, int H, int W, int C, int F)
{
    const long long index = blockIdx.x * 256ll + threadIdx.x;
    if (index >= (long long)N * H * W * F)
        return;
    const int f = index % F;
    const long long pixel = index / F;
    const int w = pixel % W;
    const int h = pixel / W % H;

    float sum = 0;
    for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
            if (h + r - 1 < 0 || h + r - 1 >= H || w + s - 1 < 0 || w + s - 1 >= W)
                continue;
            const __half *const x = data + (pixel + (r - 1) * W + s - 1) * C;
            const __half *const k = weight + (long long)(3 * r + s) * C * F + f;
            for (int c = 0; c < C; ++c)
                sum += __half2float(x[c]) * __half2float(k[(long long)c * F]);
        }
    }
    output[index] = __float2half_rn(sum);
}
