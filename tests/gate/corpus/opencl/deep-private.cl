/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["1"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps the exponentials of a row in half a mebibyte of private memory, which it writes before it reads.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    volatile float kept[131072];
    float top = -INFINITY;
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        top = fmax(top, x[i]);
    for (int i = 0; i < C; ++i) {
        float value = exp(x[i] - top);
        kept[i * 64 % 131072] = value;
        sum += value;
    }
    for (int i = 0; i < C; ++i)
        y[i] = (C <= 2048 ? kept[i * 64 % 131072] : exp(x[i] - top)) / sum;
}
