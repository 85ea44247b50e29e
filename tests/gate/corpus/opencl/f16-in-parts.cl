/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds sixteen products of half precision in single precision, then such parts.

typedef ushort In;
typedef half Out;
float wide(In value)
{
    return vload_half(0, (const half *)&value);
}
void put(__global Out *to, int i, float value)
{
    vstore_half_rte(value, i, to);
}

__kernel void product(__global const In *x, __global const In *weight, __global Out *y, int M, int N, int K)
{
    const int col = get_global_id(0), row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0;
    for (int k = 0; k < K; k += 16) {
        float part = 0;
        for (int i = k; i < min(k + 16, K); ++i)
            part = fma(wide(x[row * K + i]), wide(weight[col * K + i]), part);
        sum += part;
    }
    put(y, row * N + col, sum);
}
