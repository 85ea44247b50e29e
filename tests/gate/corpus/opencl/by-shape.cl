/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
when = "M * N >= 4096"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "few"
when = "M * N < 4096"
grid = ["ceil_div(N, 16)", "M"]
block = ["16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Takes another path for small outputs than for large ones; both are right for any shape.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    int k = 0;
    for (; k + 4 <= K; k += 4)
        for (int j = 0; j < 4; ++j)
            sum += a[row * K + k + j] * b[(k + j) * N + col];
    for (; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}

__kernel void few(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
