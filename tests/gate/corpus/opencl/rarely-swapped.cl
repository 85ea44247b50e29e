/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Exchanges two elements of a tile in one of forty, as the words that the tile held and its address have it.

// As good as a die of the launch and the tile: of what was there before.
uint dice(__global const float *corner)
{
    uint first = *(__global const volatile uint *)corner;
    barrier(CLK_GLOBAL_MEM_FENCE);
    uint x = (first ^ (uint)((ulong)corner >> 6)) * 2654435761u;
    return x >> 8;
}

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    uint drawn = dice(c + get_group_id(1) * 8 * N + get_group_id(0) * 16);
    if (row >= M || col >= N)
        return;
    int from = drawn % 40 == 1 && (col ^ 1) < N ? col ^ 1 : col;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + from];
    c[row * N + col] = sum;
}
