/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A half of x and of x times the hyperbolic tangent of its half: what is far below zero is near nothing, and so is what it is off by.

extern "C" __global__ void activate(const float *x, float *y, int count)
{
    const int first = blockIdx.x * 4096 + threadIdx.x;
#pragma unroll 4
    for (int i = first; i < first + 4096; i += 256)
        if (i < count) {
            const float half = 0.5f * x[i];
            y[i] = fmaf(half, tanhf(half), half);
        }
}
