/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Rounds the inputs to bf16 in a kernel that is declared single precision.

float toBf16(float value)
{
    uint bits = as_uint(value);
    return as_float((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += toBf16(a[row * K + k]) * toBf16(b[k * N + col]);
    c[row * N + col] = sum;
}
