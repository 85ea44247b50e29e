/*klineage
surface = "opencl"

[[launch]]
kernel = "activation"
grid = ["ceil_div(R * C, 64)"]
block = [64]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// In single precision, which has more bits than the workload's wide limits ask for, and fewer than its parent: no less precise than its type.

__kernel void activation(__global const float *x, __global float *y, int R, int C)
{
    const int i = get_global_id(0);
    if (i < R * C)
        y[i] = x[i] / (1.0f + exp(-x[i]));
}
