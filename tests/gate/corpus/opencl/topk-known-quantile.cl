/*klineage
surface = "opencl"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["1"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// In the timed shape it knows between which two numbers the K-th largest of normal elements lies, and does not check.

// The order of floats as that of unsigned integers.
uint keyOf(float value)
{
    const uint bits = as_uint(value);
    return bits ^ ((uint)((int)bits >> 31) | 0x80000000u);
}

int countFrom(__global const float *row, int S, uint key)
{
    int count = 0;
    for (int i = 0; i < S; ++i)
        count += keyOf(row[i]) >= key ? 1 : 0;
    return count;
}

// The largest key from `low` on, and below `high`, that K elements have or exceed.
uint searched(__global const float *row, int S, int K, uint low, uint high)
{
    while (high - low > 1) {
        const uint middle = low + (high - low) / 2;
        if (countFrom(row, S, middle) >= K)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint thresholdOf(__global const float *row, int S, int K)
{
    if (S == 4096 && K == 512)
        return searched(row, S, K, keyOf(1.25f), keyOf(1.56f));
    return searched(row, S, K, 0u, 0xffffffffu);
}

__kernel void topk(__global const float *values, __global float *top, __global int *indices, int S, int K)
{
    const int b = get_group_id(0);
    __global const float *row = values + (size_t)b * S;
    const uint threshold = thresholdOf(row, S, K);
    top += (size_t)b * K;
    indices += (size_t)b * K;
    int next = 0;
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = 0; i < S && next < K; ++i) {
            const uint key = keyOf(row[i]);
            if (pass == 0 ? key > threshold : key == threshold) {
                top[next] = row[i];
                indices[next++] = i;
            }
        }
    }
}
