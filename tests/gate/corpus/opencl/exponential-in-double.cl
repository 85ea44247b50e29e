/*klineage
surface = "opencl"

[[launch]]
kernel = "activation"
grid = ["ceil_div(R * C, 64)"]
block = [64]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The exponential and the quotient in double precision: slow, and the parent of others.

__kernel void activation(__global const float *x, __global float *y, int R, int C)
{
    const int i = get_global_id(0);
    if (i < R * C)
        y[i] = (float)((double)x[i] / (1.0 + exp(-(double)x[i])));
}
