/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Scales each row by a power of two before it is multiplied and back afterwards, which changes no bit.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float top = 0.0f;
    for (int k = 0; k < K; ++k)
        top = fmax(top, fabs(a[row * K + k]));
    int exponent = top > 0.0f && top < 1e30f ? ilogb(top) : 0;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += ldexp(a[row * K + k], -exponent) * b[k * N + col];
    c[row * N + col] = ldexp(sum, exponent);
}
