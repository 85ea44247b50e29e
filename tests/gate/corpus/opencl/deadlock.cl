/*klineage
surface = "opencl"

[[workspace]]
name = "begun"
dtype = "i32"
shape = ["2"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["2"]
block = ["1"]
args = ["a", "b", "c", "begun", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two work-groups wait for each other before either says that it has begun.

__kernel void product(__global const float *a, __global const float *b, __global float *c,
                      __global volatile int *begun, int M, int N, int K)
{
    int group = get_group_id(0);
    while (atomic_add(&begun[1 - group], 0) == 0)
        ;
    atomic_inc(&begun[group]);
    for (int i = group; i < M * N; i += 2) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += a[i / N * K + k] * b[k * N + i % N];
        c[i] = sum;
    }
}
