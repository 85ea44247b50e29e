/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Divides each row by a power of two near its largest element before exp, and multiplies again.

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float top = -INFINITY;
    for (int i = 0; i < C; ++i)
        top = fmax(top, x[i]);
    int power = clamp(ilogb(top == 0.0f ? 1.0f : top), -60, 60);
    float down = ldexp(1.0f, -power);
    float up = ldexp(1.0f, power);
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        sum += exp((x[i] * down - top * down) * up);
    for (int i = 0; i < C; ++i)
        y[i] = exp((x[i] * down - top * down) * up) / sum;
}
