/*klineage
surface = "opencl"

[[launch]]
kernel = "clear"
grid = ["ceil_div(M * N, 64)"]
block = ["64"]
args = ["c", "int M * N"]

[[launch]]
kernel = "product"
grid = ["4 * ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four parts of K added to the output with a compare-and-swap loop: the order of additions, and so the last
// bit, is not fixed.

void atomicAdd(volatile __global float *target, float value)
{
    volatile __global int *word = (volatile __global int *)target;
    int before = *word;
    for (;;) {
        int found = atomic_cmpxchg(word, before, as_int(as_float(before) + value));
        if (found == before)
            return;
        before = found;
    }
}

__kernel void clear(__global float *c, int count)
{
    int i = get_global_id(0);
    if (i < count)
        c[i] = 0.0f;
}

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int part = get_group_id(0) % 4;
    int col = get_group_id(0) / 4 * 16 + get_local_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = part; k < K; k += 4)
        sum += a[row * K + k] * b[k * N + col];
    atomicAdd(c + row * N + col, sum);
}
