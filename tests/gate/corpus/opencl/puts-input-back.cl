/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps each exponential in the input for a moment and puts back what was there.

__kernel void softmax(__global float *x, __global float *y, int R, int C)
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
    for (int i = 0; i < C; ++i) {
        float was = x[i];
        x[i] = exp(was - top);
        sum += x[i];
        y[i] = was;
        x[i] = was;
    }
    for (int i = 0; i < C; ++i)
        y[i] = exp(y[i] - top) / sum;
}
