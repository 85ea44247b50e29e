/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = ["32", "32"]
args = ["a", "b", "c", "local 8192", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Work-groups of 1024 work-items that share tiles in local memory.

__kernel void product(__global const float *a, __global const float *b, __global float *c,
                      __local float *tiles, int M, int N, int K)
{
    __local float *tileA = tiles;
    __local float *tileB = tiles + 1024;
    int x = get_local_id(0);
    int y = get_local_id(1);
    int col = get_global_id(0);
    int row = get_global_id(1);
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 32) {
        tileA[y * 32 + x] = row < M && k0 + x < K ? a[row * K + k0 + x] : 0.0f;
        tileB[y * 32 + x] = col < N && k0 + y < K ? b[(k0 + y) * N + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 32; ++k)
            sum += tileA[y * 32 + k] * tileB[k * 32 + x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < M && col < N)
        c[row * N + col] = sum;
}
