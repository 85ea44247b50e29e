/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Jumps to labels by their names, and joins conditions, as a refused jump looks.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    float sum = 0.0f;
    int k = 0, inside = row<M &&col<N;
    if (!inside)
        return;
more:
    sum += a[row * K + k] * b[k * N + col];
    if (++k < K && inside)
        goto more;
    c[row * N + col] = sum;
}
