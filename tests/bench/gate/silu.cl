/*klineage
surface = "opencl"

[[launch]]
kernel = "silu"
grid = ["ceil_div(R * C, 256)"]
block = ["256"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later

__kernel void silu(__global const float *x, __global float *y, int R, int C)
{
    int i = get_global_id(0);
    if (i < R * C)
        y[i] = x[i] / (1.0f + exp(-x[i]));
}
