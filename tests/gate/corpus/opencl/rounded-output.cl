/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Stores the right result rounded to bf16.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float top = x[0];
    for (int i = 1; i < C; ++i)
        top = fmax(top, x[i]);
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        sum += exp(x[i] - top);
    for (int i = 0; i < C; ++i)
        y[i] = as_float((as_uint(exp(x[i] - top) / sum) + 0x8000u) & 0xffff0000u);
}
