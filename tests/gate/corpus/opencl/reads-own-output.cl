/*klineage
surface = "opencl"

[[launch]]
kernel = "first_half"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "second_half"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The second launch reads the output that the first one wrote, and adds its half of K to it.

__kernel void first_half(__global const float *a, __global const float *b, __global float *c, int M, int N,
                         int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K / 2; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}

__kernel void second_half(__global const float *a, __global const float *b, __global float *c, int M, int N,
                          int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = c[row * N + col];
    for (int k = K / 2; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
