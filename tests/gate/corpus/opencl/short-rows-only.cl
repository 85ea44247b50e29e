/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps a row in 1024 private elements and forgets what is behind them.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float kept[1024];
    int n = min(C, 1024);
    float top = x[0];
    for (int i = 0; i < n; ++i) {
        kept[i] = x[i];
        top = fmax(top, kept[i]);
    }
    float sum = 0.0f;
    for (int i = 0; i < n; ++i)
        sum += exp(kept[i] - top);
    for (int i = 0; i < C; ++i)
        y[i] = i < n ? exp(kept[i] - top) / sum : 0.0f;
}
