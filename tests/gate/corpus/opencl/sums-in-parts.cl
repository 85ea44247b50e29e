/*klineage
surface = "opencl"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds the sixteen products of each part first, then the parts.

float wide(ushort value)
{
    return as_float((uint)value << 16);
}

ushort narrow(float value)
{
    const uint bits = as_uint(value);
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

__kernel void gemm(__global const ushort *x, __global const ushort *weight, __global ushort *y, int M, int N,
                   int K)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; k += 16) {
        float part = 0.0f;
        for (int i = k; i < min(k + 16, K); ++i)
            part = fma(wide(x[row * K + i]), wide(weight[col * K + i]), part);
        sum += part;
    }
    y[row * N + col] = narrow(sum);
}
