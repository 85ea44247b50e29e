/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "M"]
block = [16]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One product of rows a work-item, one term after another.

float widened(ushort x)
{
    return as_float((uint)x << 16);
}
ushort narrowed(float x)
{
    const uint bits = as_uint(x);
    return isnan(x) ? (ushort)0x7fc0 : (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

kernel void product(global const ushort *x, global const ushort *weight, global ushort *y, int M, int N,
                    int K)
{
    const int n = get_global_id(0), m = get_global_id(1);
    if (n >= N)
        return;
    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += widened(x[m * K + k]) * widened(weight[n * K + k]);
    y[m * N + n] = narrowed(sum);
}
