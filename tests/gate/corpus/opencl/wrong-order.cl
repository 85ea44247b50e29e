/*klineage
surface = "opencl"

[[workspace]]
name = "partial"
dtype = "f32"
shape = ["2", "M", "N"]

[[launch]]
kernel = "reduce"
grid = ["ceil_div(M * N, 64)"]
block = ["64"]
args = ["partial", "c", "int M * N"]

[[launch]]
kernel = "parts"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)", "2"]
block = ["16", "8", "1"]
args = ["a", "b", "partial", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sums the partial products before the launch that makes them.

__kernel void parts(__global const float *a, __global const float *b, __global float *partial, int M, int N,
                    int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    int part = get_global_id(2);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = part; k < K; k += 2)
        sum += a[row * K + k] * b[k * N + col];
    partial[(part * M + row) * N + col] = sum;
}

__kernel void reduce(__global const float *partial, __global float *c, int count)
{
    int i = get_global_id(0);
    if (i < count)
        c[i] = partial[i] + partial[count + i];
}
