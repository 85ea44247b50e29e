/*klineage
surface = "opencl"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Rounds the running sum to bf16 after every product.

float toBf16(float value)
{
    uint bits = as_uint(value);
    return as_float((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

__kernel void gemm(__global const ushort *x, __global const ushort *weight, __global ushort *y, int M, int N,
                   int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = toBf16(sum + as_float((uint)x[row * K + k] << 16) * as_float((uint)weight[col * K + k] << 16));
    y[row * N + col] = as_uint(sum) >> 16;
}
