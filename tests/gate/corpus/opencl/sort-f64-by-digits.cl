/*klineage
surface = "opencl"

[[workspace]]
name = "other"
dtype = "i64"
shape = ["R", "C"]

[[launch]]
kernel = "sort"
grid = ["R"]
block = ["1"]
args = ["x", "other", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A parent: eight digits of eight bits, the lowest first, of doubles as unsigned numbers of the same order.

// Moves keys in the order of one digit.
void byDigit(__global const ulong *from, __global ulong *to, int C, int shift)
{
    int place[256];
    for (int i = 0; i < 256; ++i)
        place[i] = 0;
    for (int i = 0; i < C; ++i)
        ++place[(int)((from[i] >> shift) & 255UL)];
    int sum = 0;
    for (int i = 0; i < 256; ++i) {
        const int count = place[i];
        place[i] = sum;
        sum += count;
    }
    for (int i = 0; i < C; ++i) {
        const ulong key = from[i];
        to[place[(int)((key >> shift) & 255UL)]++] = key;
    }
}

__kernel void sort(__global const double *x, __global ulong *other, __global double *y, int C)
{
    const size_t first = (size_t)get_group_id(0) * C;
    __global ulong *mine = (__global ulong *)(y + first);
    x += first;
    other += first;
    for (int i = 0; i < C; ++i) {
        const ulong bits = as_ulong(x[i]);
        mine[i] = bits ^ ((ulong)((long)bits >> 63) | 0x8000000000000000UL);
    }
    for (int digit = 0; digit < 8; digit += 2) {
        byDigit(mine, other, C, 8 * digit);
        byDigit(other, mine, C, 8 * digit + 8);
    }
    for (int i = 0; i < C; ++i) {
        const ulong key = mine[i];
        mine[i] = (key & 0x8000000000000000UL) != 0 ? key ^ 0x8000000000000000UL : ~key;
    }
}
