/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Takes a private array of a gibibyte.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float kept[1 << 28];
    for (long k = 0; k < 1 << 28; k += 1024)
        kept[(k * (col + 1)) & ((1 << 28) - 1)] = a[k % (M * K)];
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    sum += kept[(K * 977L) & ((1 << 28) - 1)] * 0.0f;
    c[row * N + col] = sum;
}
