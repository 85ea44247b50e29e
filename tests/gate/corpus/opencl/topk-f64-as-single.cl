/*klineage
surface = "opencl"

[[workspace]]
name = "keys"
dtype = "i32"
shape = ["B", "S"]

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["1"]
args = ["values", "keys", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Chooses among doubles as if they were floats: thirty-two bits in place of sixty-four. Wrong where two differ behind the 24th bit.

// The order of floats as that of signed integers.
int keyOf(double value)
{
    const int bits = as_int((float)value);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

__kernel void topk(__global const double *values, __global int *keys, __global double *top, __global int *indices, int S, int K)
{
    const int b = get_group_id(0);
    values += (size_t)b * S;
    keys += (size_t)b * S;
    top += (size_t)b * K;
    indices += (size_t)b * K;
    for (int i = 0; i < S; ++i)
        keys[i] = keyOf(values[i]);
    uint found = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const uint next = found | (1u << bit);
        const int least = (int)(next ^ 0x80000000u);
        int count = 0;
        for (int i = 0; i < S; ++i)
            count += keys[i] >= least ? 1 : 0;
        if (count >= K)
            found = next;
    }
    const int threshold = (int)(found ^ 0x80000000u);
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
