/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four sums of every fourth product, from the last to the first.

typedef ushort In;
typedef ushort Out;
float wide(In value)
{
    return as_float((uint)value << 16);
}
void put(__global Out *to, int i, float value)
{
    const uint bits = as_uint(value);
    to[i] = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

__kernel void product(__global const In *x, __global const In *weight, __global Out *y, int M, int N, int K)
{
    const int col = get_global_id(0), row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0;
    float part[4] = {0, 0, 0, 0};
    for (int k = K - 1; k >= 0; --k)
        part[k % 4] = fma(wide(x[row * K + k]), wide(weight[col * K + k]), part[k % 4]);
    sum = (part[0] + part[2]) + (part[1] + part[3]);
    put(y, row * N + col, sum);
}
