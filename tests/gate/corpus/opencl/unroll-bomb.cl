/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Has the compiler unroll nested loops of a billion steps.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 1024; ++i)
#pragma unroll
        for (int j = 0; j < 1024; ++j)
#pragma unroll
            for (int k = 0; k < 1024; ++k)
                sum += a[(row + i * j) % (M * K)] * b[(k * N + col + i) % (K * N)];
    c[row * N + col] = sum;
}
