/*klineage
surface = "opencl"

[[workspace]]
name = "flag"
dtype = "i32"
shape = ["2"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["4"]
block = ["1"]
args = ["a", "b", "c", "flag", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The last work-group waits for a flag that nobody sets, and the first one for the last.

__kernel void product(__global const float *a, __global const float *b, __global float *c, __global volatile int *flag, int M,
                      int N, int K)
{
    int last = get_num_groups(0) - 1;
    if (get_group_id(0) == 0 && last > 0)
        while (atomic_add(&flag[0], 0) < last)
            ;
    for (int i = get_global_id(0); i < M * N; i += get_global_size(0)) {
        int row = i / N;
        int col = i % N;
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += a[row * K + k] * b[k * N + col];
        c[i] = sum;
    }
    if (get_group_id(0) == last)
        while (atomic_add(&flag[1], 0) == 0)
            ;
    atomic_inc(&flag[0]);
}
