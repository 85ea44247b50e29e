/*klineage
surface = "opencl"

[[launch]]
kernel = "clear"
grid = ["ceil_div(M * N, 64)"]
block = ["64"]
args = ["c", "int M * N"]

[[launch]]
kernel = "product"
grid = ["ceil_div(M * N, 16)"]
block = ["4", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The four work-items of an element read its sum, wait for each other, and write it back: three updates are
// lost.

__kernel void clear(__global float *c, int count)
{
    int i = get_global_id(0);
    if (i < count)
        c[i] = 0.0f;
}

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int part = get_local_id(0);
    int element = get_group_id(0) * 16 + get_local_id(1);
    int row = element / N;
    int col = element % N;
    float sum = 0.0f;
    for (int k = part; k < K && row < M; k += 4)
        sum += a[row * K + k] * b[k * N + col];
    float before = row < M ? c[element] : 0.0f;
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (row < M)
        c[element] = before + sum;
}
