/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 4)", "ceil_div(M, 4)", "1"]
block = ["4", "4", "4"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Work-groups of three dimensions: the third one has a quarter of the products each, added up in local memory.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    __local float parts[4][4][4];
    const int lx = get_local_id(0), ly = get_local_id(1), lz = get_local_id(2);
    const int col = get_group_id(0) * 4 + lx, row = get_group_id(1) * 4 + ly;
    float sum = 0.0f;
    if (row < M && col < N) {
        for (int k = lz; k < K; k += 4)
            sum += a[row * K + k] * b[k * N + col];
    }
    parts[lz][ly][lx] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lz == 0 && row < M && col < N)
        c[row * N + col] = (parts[0][ly][lx] + parts[1][ly][lx]) + (parts[2][ly][lx] + parts[3][ly][lx]);
}
