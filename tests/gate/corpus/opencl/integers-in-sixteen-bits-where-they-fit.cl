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

[[workspace]]
name = "fitsX"
dtype = "i32"
shape = ["M"]

[[workspace]]
name = "fitsW"
dtype = "i32"
shape = ["N"]

[[launch]]
kernel = "shorten"
grid = ["M"]
block = ["1"]
args = ["x", "shortX", "fitsX", "int K"]

[[launch]]
kernel = "shorten"
grid = ["N"]
block = ["1"]
args = ["weight", "shortW", "fitsW", "int K"]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 4)", "M"]
block = ["1"]
args = ["shortX", "shortW", "fitsX", "fitsW", "x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each row is looked at whole: those of which all elements fit into sixteen bits are multiplied so, the others in 32 bits.

int total(int8 v)
{
    const int4 b = v.lo + v.hi;
    return (b.x + b.y) + (b.z + b.w);
}

__kernel void shorten(__global const int *in, __global short *out, __global int *fits, int K)
{
    const size_t first = (size_t)get_group_id(0) * K;
    int16 differs = 0;
    for (int k = 0; k < K; k += 16) {
        const int16 v = vload16(0, in + first + k);
        const short16 narrow = convert_short16(v);
        differs |= convert_int16(narrow) ^ v;
        vstore16(narrow, 0, out + first + k);
    }
    fits[get_group_id(0)] = any(differs != 0) ? 0 : 1;
}

int8 pairs(short16 a, short16 b)
{
    return convert_int8(a.even) * convert_int8(b.even) + convert_int8(a.odd) * convert_int8(b.odd);
}

__kernel void product(__global const short *x, __global const short *w, __global const int *fitsX, __global const int *fitsW,
                      __global const int *fullX, __global const int *fullW, __global int *y, int M, int N, int K)
{
    const int n = 4 * (int)get_group_id(0), m = get_group_id(1);
    int8 s[4] = {0, 0, 0, 0};
    if (fitsX[m] != 0 && all(vload4(0, fitsW + n) != 0)) {
        for (int k = 0; k < K; k += 16) {
            const short16 v = vload16(0, x + (size_t)m * K + k);
            for (int i = 0; i < 4; ++i)
                s[i] += pairs(v, vload16(0, w + (size_t)(n + i) * K + k));
        }
    } else {
        for (int k = 0; k < K; k += 8) {
            for (int i = 0; i < 4; ++i)
                s[i] += vload8(0, fullX + (size_t)m * K + k) * vload8(0, fullW + (size_t)(n + i) * K + k);
        }
    }
    vstore4((int4)(total(s[0]), total(s[1]), total(s[2]), total(s[3])), 0, y + (size_t)m * N + n);
}
