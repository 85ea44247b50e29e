/*klineage
surface = "opencl"

[[launch]]
kernel = "convolution"
grid = ["ceil_div(F, 8)", "ceil_div(N * H * W, 8)"]
block = ["8", "8"]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A thread an element, sums in single precision.

float inSingle(__global const half *data, __global const half *weight, int pixel, int filter, int H, int W, int C, int F)
{
    float sum = 0;
    for (int place = 0; place < 9; ++place) {
        const int h = pixel / W % H + place / 3 - 1, w = pixel % W + place % 3 - 1;
        for (int c = 0; h >= 0 && h < H && w >= 0 && w < W && c < C; ++c)
            sum = fma(vload_half((pixel + (place / 3 - 1) * W + place % 3 - 1) * C + c, data),
                      vload_half((place * C + c) * F + filter, weight), sum);
    }
    return sum;
}

__kernel void convolution(__global const half *data, __global const half *weight, __global half *out, int N, int H, int W, int C, int F)
{
    const int filter = get_global_id(0), pixel = get_global_id(1);
    const bool inside = filter < F && pixel < N * H * W;
    const float sum = inside ? inSingle(data, weight, pixel, filter, H, W, C, F) : 0;
    if (inside)
        vstore_half_rte(sum, pixel * F + filter, out);
}
