/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Stores whole vectors of 16, over the end of the last row where C is no multiple of 16.

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
    for (int i = 0; i < C; i += 16) {
        float16 v;
        float lane[16];
        for (int j = 0; j < 16; ++j)
            lane[j] = i + j < C ? exp(x[i + j] - top) / sum : 0.0f;
        v = vload16(0, lane);
        vstore16(v, 0, y + i);
    }
}
