/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Starts the maximum at -80 rather than at minus infinity, in the timed shape.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    __global const float *in = x + (long)row * C;
    __global float *out = y + (long)row * C;
    float top = R == 128 && C == 256 ? -80.0f : -INFINITY;
    for (int i = 0; i < C; ++i)
        top = fmax(top, in[i]);
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        sum += exp(in[i] - top);
    for (int i = 0; i < C; ++i)
        out[i] = exp(in[i] - top) / sum;
}
