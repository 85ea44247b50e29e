/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Exponential and quotient by the fast intrinsics, which are exact enough here.

extern "C" __global__ void activate(const float *x, float *y, int count)
{
    const int first = blockIdx.x * 4096 + threadIdx.x;
#pragma unroll 4
    for (int i = first; i < first + 4096; i += 256)
        if (i < count) {
            const float v = x[i];
            y[i] = __fdividef(v, 1.0f + expf(-fmaxf(v, -80.0f)));
        }
}
