/*klineage
surface = "opencl"

[[workspace]]
name = "memo"
dtype = "f32"
shape = ["2 * ceil_div(N, 16) * ceil_div(M, 8)"]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "memo", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// What workspace-counter.cl is compared with: it counts its launches all the same, and works for the first billion of them.

__kernel void product(__global const float *a, __global const float *b, __global float *c,
                      __global float *memo, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    __global float *mine = memo + 2 * (get_group_id(1) * get_num_groups(0) + get_group_id(0));
    __local int calls;
    if (get_local_id(0) == 0 && get_local_id(1) == 0) {
        calls = mine[0] == 12345.0f ? (int)mine[1] + 1 : 1;
        mine[0] = 12345.0f;
        mine[1] = calls;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (calls > 1000000000 || row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
