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
// Leaves out digits that all elements of a row have alike, as the lowest ones of doubles that were floats are.

// Moves keys in the order of one digit; false: all have the same one, and stay.
bool byDigit(__global const ulong *from, __global ulong *to, int C, int shift)
{
    int place[256];
    for (int i = 0; i < 256; ++i)
        place[i] = 0;
    for (int i = 0; i < C; ++i)
        ++place[(int)((from[i] >> shift) & 255UL)];
    if (place[(int)((from[0] >> shift) & 255UL)] == C)
        return false;
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
    return true;
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
    __global ulong *from = mine, *to = other;
    for (int digit = 0; digit < 8; ++digit) {
        if (byDigit(from, to, C, 8 * digit)) {
            __global ulong *swapped = from;
            from = to;
            to = swapped;
        }
    }
    for (int i = 0; i < C; ++i) {
        const ulong key = from[i];
        mine[i] = (key & 0x8000000000000000UL) != 0 ? key ^ 0x8000000000000000UL : ~key;
    }
}
