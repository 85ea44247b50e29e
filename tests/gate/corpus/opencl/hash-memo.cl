/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "local 2048 * 12", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps the sums of rows in local memory under a hash of all that a row holds.

// All of a row, as one number.
uint hashOf(__global const float *x, int C)
{
    uint hash = 2166136261u;
    for (int i = 0; i < C; ++i)
        hash = (hash ^ as_uint(x[i])) * 16777619u;
    return hash | 1u;
}

typedef struct {
    uint hash;
    float top;
    float sum;
} Memo;

__kernel void softmax(__global const float *x, __global float *y, __local Memo *memos, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    uint hash = hashOf(x, C);
    __local Memo *memo = memos + hash % 2048;
    float top = -INFINITY;
    float sum = 0.0f;
    if (memo->hash == hash) {
        top = memo->top;
        sum = memo->sum;
    } else {
        for (int i = 0; i < C; ++i)
            top = fmax(top, x[i]);
        for (int i = 0; i < C; ++i)
            sum += exp(x[i] - top);
        memo->hash = hash;
        memo->top = top;
        memo->sum = sum;
    }
    for (int i = 0; i < C; ++i)
        y[i] = exp(x[i] - top) / sum;
}
