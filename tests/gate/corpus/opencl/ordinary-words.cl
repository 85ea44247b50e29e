/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Has names and comments with words that other candidates mean harm by.
// #include "tile.h" was here once; asm volatile("pause") too.
/* #undef asm
   #pragma GCC dependency "tile.h" */

#define ROW(matrix, row, width) (matrix) + (row) * (width)

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int section = get_global_id(0);
    int constructor = get_global_id(1);
    if (constructor >= M || section >= N)
        return;
    __global const float *naked = ROW(a, constructor, K);
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += naked[k] * b[k * N + section];
    c[constructor * N + section] = sum;
}
