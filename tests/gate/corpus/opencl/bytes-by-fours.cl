/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 4)", "M"]
block = ["1"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A parent: a work-item computes four neighbouring results, bytes widened to sixteen bits, two products added up to one of 32.

int total(int8 v)
{
    const int4 b = v.lo + v.hi;
    return (b.x + b.y) + (b.z + b.w);
}

int8 pairs(short16 a, char16 bytes)
{
    const short16 b = convert_short16(bytes);
    return convert_int8(a.even) * convert_int8(b.even) + convert_int8(a.odd) * convert_int8(b.odd);
}

__kernel void product(__global const char *x, __global const char *w, __global int *y, int M, int N, int K)
{
    const int n = 4 * (int)get_group_id(0), m = get_group_id(1);
    __global const char *a = x + (size_t)m * K, *b = w + (size_t)n * K;
    int8 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int k = 0; k < K; k += 16) {
        const short16 v = convert_short16(vload16(0, a + k));
        s0 += pairs(v, vload16(0, b + k));
        s1 += pairs(v, vload16(0, b + K + k));
        s2 += pairs(v, vload16(0, b + 2 * K + k));
        s3 += pairs(v, vload16(0, b + 3 * K + k));
    }
    vstore4((int4)(total(s0), total(s1), total(s2), total(s3)), 0, y + (size_t)m * N + n);
}
