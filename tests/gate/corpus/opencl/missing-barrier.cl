/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a tile of local memory without waiting for the other work-items to write it.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    __local float tile[8][8];
    int x = get_local_id(0);
    int y = get_local_id(1);
    int col = get_global_id(0);
    int row = get_global_id(1);
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 8) {
        tile[y][x] = row < M && k0 + x < K ? a[row * K + k0 + x] : 0.0f;
        for (int k = 0; k < 8 && k0 + k < K; ++k)
            sum += tile[y][k] * (col < N ? b[(k0 + k) * N + col] : 0.0f);
    }
    if (row < M && col < N)
        c[row * N + col] = sum;
}
