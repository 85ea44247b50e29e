/*klineage
surface = "opencl"

[[workspace]]
name = "top"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "sum"
dtype = "f32"
shape = ["R"]

[[launch]]
kernel = "maxima"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "top", "int R", "int C"]

[[launch]]
kernel = "sums"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "top", "sum", "int R", "int C"]

[[launch]]
kernel = "divide"
grid = ["ceil_div(R * C, 64)"]
block = ["64"]
args = ["x", "top", "sum", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Three launches: maxima, sums, and the division, through two workspaces.

__kernel void maxima(__global const float *x, __global float *top, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    float most = -INFINITY;
    for (int i = 0; i < C; ++i)
        most = fmax(most, x[row * C + i]);
    top[row] = most;
}

__kernel void sums(__global const float *x, __global const float *top, __global float *sum, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    float total = 0.0f;
    for (int i = 0; i < C; ++i)
        total += exp(x[row * C + i] - top[row]);
    sum[row] = total;
}

__kernel void divide(__global const float *x, __global const float *top, __global const float *sum,
                     __global float *y, int R, int C)
{
    int i = get_global_id(0);
    if (i < R * C)
        y[i] = exp(x[i] - top[i / C]) / sum[i / C];
}
