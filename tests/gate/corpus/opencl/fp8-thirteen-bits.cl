/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds as eight-bit tensor cores do: steps of 32 products and the sum are cut off thirteen bits behind the first one of the largest.

typedef uchar In;
typedef ushort Out;
// A number of eight bits, four for the exponent and three for what follows the point.
float wide(In value)
{
    const uint exponent = (value >> 3) & 15u;
    const float mantissa = exponent ? 8u + (value & 7u) : value & 7u;
    return copysign(ldexp(mantissa, (int)max(exponent, 1u) - 10), as_float((uint)value << 24));
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
    for (int k = 0; k < K; k += 32) {
        const int end = min(k + 32, K);
        float largest = fmax(fabs(sum), 1e-30f);
        for (int i = k; i < end; ++i)
            largest = fmax(largest, fabs(wide(x[row * K + i]) * wide(weight[col * K + i])));
        const int last = 13 - ilogb(largest);
        float step = trunc(ldexp(sum, last));
        for (int i = k; i < end; ++i)
            step += trunc(ldexp(wide(x[row * K + i]) * wide(weight[col * K + i]), last));
        sum = ldexp(step, -last);
    }
    put(y, row * N + col, sum);
}
