/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// An online softmax whose running maximum begins at the first element: −inf minus −inf is NaN.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float top = x[0];
    float sum = 0.0f;
    for (int i = 0; i < C; ++i) {
        float next = fmax(top, x[i]);
        sum = sum * exp(top - next) + exp(x[i] - next);
        top = next;
    }
    for (int i = 0; i < C; ++i)
        y[i] = exp(x[i] - top) / sum;
}
