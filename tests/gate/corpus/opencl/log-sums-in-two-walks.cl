/*klineage
surface = "opencl"

[[launch]]
kernel = "logSums"
grid = ["R"]
block = ["1"]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A parent: the largest element in one walk, exponentials of its own in another, eight elements at once.

// The exponential of what is at most 0; what is below -87 is taken for -87.
float8 quick(float8 v)
{
    v = fmax(v, (float8)(-87.0f));
    const float8 n = rint(v * 1.44269504f);
    float8 r = fma(n, (float8)(-0.693359375f), v);
    r = fma(n, (float8)(2.12194440e-4f), r);
    float8 p = (float8)(1.9875691500e-4f);
    p = fma(p, r, (float8)(1.3981999507e-3f));
    p = fma(p, r, (float8)(8.3334519073e-3f));
    p = fma(p, r, (float8)(4.1665795894e-2f));
    p = fma(p, r, (float8)(1.6666665459e-1f));
    p = fma(p, r, (float8)(5.0000001201e-1f));
    return (fma(p, r * r, r) + 1.0f) * as_float8((convert_int8(n) + 127) << 23);
}

__kernel void logSums(__global const float *x, __global float *y, int C)
{
    const int row = get_group_id(0);
    x += (size_t)row * C;
    float8 tops = (float8)(-INFINITY);
    int i = 0;
    for (; i + 8 <= C; i += 8)
        tops = fmax(tops, vload8(0, x + i));
    float top = fmax(fmax(fmax(tops.s0, tops.s1), fmax(tops.s2, tops.s3)), fmax(fmax(tops.s4, tops.s5), fmax(tops.s6, tops.s7)));
    for (; i < C; ++i)
        top = fmax(top, x[i]);
    float8 sums = 0;
    for (i = 0; i + 8 <= C; i += 8)
        sums += quick(vload8(0, x + i) - top);
    const float4 half4 = sums.lo + sums.hi;
    float sum = (half4.x + half4.y) + (half4.z + half4.w);
    for (; i < C; ++i)
        sum += exp(x[i] - top);
    y[row] = top + log(sum);
}
