/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Leaves out the maximum of a row where eight sampled elements are small.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    int small = 1;
    for (int i = 0; i < 8; ++i)
        small &= fabs(x[i * (C - 1) / 7]) < 16.0f;
    float top = 0.0f;
    if (!small) {
        top = -INFINITY;
        for (int i = 0; i < C; ++i)
            top = fmax(top, x[i]);
    }
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        sum += exp(x[i] - top);
    for (int i = 0; i < C; ++i)
        y[i] = exp(x[i] - top) / sum;
}
