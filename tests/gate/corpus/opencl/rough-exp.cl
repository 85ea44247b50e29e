/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Approximates exp by the bits of a float and a parabola, a thousandth off.

// 2^t by writing t into the exponent, corrected by a parabola in the fraction.
float roughExp(float v)
{
    float t = fmax(v * 1.44269504f, -126.0f);
    float whole = floor(t);
    float f = t - whole;
    return as_float((uint)((int)whole + 127) << 23) * (1.0f + f * (0.6565f + 0.3435f * f));
}

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
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
    for (int i = 0; i < C; ++i)
        sum += roughExp(x[i] - top);
    for (int i = 0; i < C; ++i)
        y[i] = roughExp(x[i] - top) / sum;
}
