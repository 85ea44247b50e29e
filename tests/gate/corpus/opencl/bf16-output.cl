/*klineage
surface = "opencl"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Products of bf16 numbers in integer storage, added in single precision in pairs and rounded once.

float fromBf16(ushort bits)
{
    return as_float((uint)bits << 16);
}

ushort toBf16(float value)
{
    uint bits = as_uint(value);
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

__kernel void gemm(__global const ushort *x, __global const ushort *weight, __global ushort *y, int M, int N,
                   int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float even = 0.0f;
    float odd = 0.0f;
    for (int k = 0; k < K; k += 2) {
        even += fromBf16(x[row * K + k]) * fromBf16(weight[col * K + k]);
        odd += fromBf16(x[row * K + k + 1]) * fromBf16(weight[col * K + k + 1]);
    }
    y[row * N + col] = toBf16(even + odd);
}
