/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "local 4096", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Reads of its local memory what it wrote in the same launch, and leaves the rest of it as it is.

__kernel void product(__global const float *a, __global const float *b, __global float *c,
                      __local float *tile, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    int ly = get_local_id(1);
    int lx = get_local_id(0);
    float sum = 0.0f;
    for (int first = 0; first < K; first += 16) {
        if (row < M && first + lx < K)
            tile[ly * 16 + lx] = a[row * K + first + lx];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = first; k < min(K, first + 16) && row < M && col < N; ++k)
            sum += tile[ly * 16 + k - first] * b[k * N + col];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < M && col < N)
        c[row * N + col] = sum;
}
