/*klineage
surface = "opencl"

[[launch]]
kernel = "activation"
grid = ["ceil_div(R * C, 64)"]
block = [64]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Its exponential is a parabola between powers of two: within the workload's wide limits, and a thousand times as far off as its parent's.

__kernel void activation(__global const float *x, __global float *y, int R, int C)
{
    const int i = get_global_id(0);
    if (i >= R * C)
        return;
    const float v = x[i];
    const float power = clamp(v * -1.44269504f, -126.0f, 126.0f);
    const float whole = floor(power);
    const float part = power - whole;
    const float e = as_float(((int)whole + 127) << 23) * (1.0f + part * (0.6565f + 0.3435f * part));
    y[i] = v < -80.0f ? 0.0f : v / (1.0f + e);
}
