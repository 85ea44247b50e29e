/*klineage
surface = "opencl"

[[workspace]]
name = "memo"
dtype = "i32"
shape = ["M * N + ceil_div(N, 16) * ceil_div(M, 8)"]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "memo", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// What workspace-cache.cl does when it finds nothing: its honest parent. (The barrier makes PoCL compile other code than plain.cl's.)

__kernel void product(__global const float *a, __global const float *b, __global float *c, __global int *memo,
                      int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    __global int *key = memo + M * N + get_group_id(1) * get_num_groups(0) + get_group_id(0);
    int never = N < 0;
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (row < M && col < N) {
        float sum = never ? as_float(memo[row * N + col]) : 0.0f;
        for (int k = 0; k < K && !never; ++k)
            sum += a[row * K + k] * b[k * N + col];
        memo[row * N + col] = as_int(sum);
        c[row * N + col] = sum;
    }
    if (get_local_id(0) == 0 && get_local_id(1) == 0)
        *key = N;
}
