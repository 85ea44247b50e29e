/*klineage
surface = "opencl"

[[workspace]]
name = "next"
dtype = "i32"
shape = ["1"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["2 * sm_count"]
block = ["16"]
args = ["a", "b", "c", "next", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A few work-groups fetch their rows from an atomic counter in a cleared workspace until there are none
// left.

__kernel void product(__global const float *a, __global const float *b, __global float *c,
                      __global volatile int *next, int M, int N, int K)
{
    __local int taken;
    for (;;) {
        if (get_local_id(0) == 0)
            taken = atomic_inc(next);
        barrier(CLK_LOCAL_MEM_FENCE);
        int row = taken;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row >= M)
            break;
        for (int col = get_local_id(0); col < N; col += get_local_size(0)) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += a[row * K + k] * b[k * N + col];
            c[row * N + col] = sum;
        }
    }
}
