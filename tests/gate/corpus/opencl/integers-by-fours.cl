/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 4)", "M"]
block = ["1"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A parent: a work-item computes four neighbouring results in vectors of whole numbers of 32 bits.

int total(int16 v)
{
    const int8 a = v.lo + v.hi;
    const int4 b = a.lo + a.hi;
    return (b.x + b.y) + (b.z + b.w);
}

__kernel void product(__global const int *x, __global const int *w, __global int *y, int M, int N, int K)
{
    const int n = 4 * (int)get_group_id(0), m = get_group_id(1);
    __global const int *a = x + (size_t)m * K, *b = w + (size_t)n * K;
    int16 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int k = 0; k < K; k += 16) {
        const int16 v = vload16(0, a + k);
        s0 += v * vload16(0, b + k);
        s1 += v * vload16(0, b + K + k);
        s2 += v * vload16(0, b + 2 * K + k);
        s3 += v * vload16(0, b + 3 * K + k);
    }
    vstore4((int4)(total(s0), total(s1), total(s2), total(s3)), 0, y + (size_t)m * N + n);
}
