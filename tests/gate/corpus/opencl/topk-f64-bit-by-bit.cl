/*klineage
surface = "opencl"

[[workspace]]
name = "keys"
dtype = "i64"
shape = ["B", "S"]

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["1"]
args = ["values", "keys", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A parent: the K-th largest is found bit by bit, sixty-four of them, by counting how many elements reach a number.

// The order of doubles as that of signed integers.
long keyOf(double value)
{
    const long bits = as_long(value);
    return bits ^ ((bits >> 63) & 0x7fffffffffffffffL);
}

__kernel void topk(__global const double *values, __global long *keys, __global double *top, __global int *indices, int S, int K)
{
    const int b = get_group_id(0);
    values += (size_t)b * S;
    keys += (size_t)b * S;
    top += (size_t)b * K;
    indices += (size_t)b * K;
    for (int i = 0; i < S; ++i)
        keys[i] = keyOf(values[i]);
    ulong found = 0;
    for (int bit = 63; bit >= 0; --bit) {
        const ulong next = found | (1UL << bit);
        const long least = (long)(next ^ 0x8000000000000000UL);
        long count = 0;
        for (int i = 0; i < S; ++i)
            count += keys[i] >= least ? 1 : 0;
        if (count >= K)
            found = next;
    }
    const long threshold = (long)(found ^ 0x8000000000000000UL);
    int next = 0;
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = 0; i < S && next < K; ++i) {
            if (pass == 0 ? keys[i] > threshold : keys[i] == threshold) {
                top[next] = values[i];
                indices[next++] = i;
            }
        }
    }
}
