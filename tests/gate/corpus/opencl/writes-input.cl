/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "scale"
grid = ["ceil_div(M * K, 64)"]
block = ["64"]
args = ["a", "int M * K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Scales an operand in place after the result is made.

__kernel void product(__global float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}

__kernel void scale(__global float *a, int count)
{
    int i = get_global_id(0);
    if (i < count)
        a[i] *= 0.5f;
}
