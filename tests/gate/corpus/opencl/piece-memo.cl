/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "local 4096 * 12", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps the sums of pieces of 16 elements in local memory under their first and last element.

typedef struct {
    float first;
    float last;
    float sum;
} Memo;

__kernel void softmax(__global const float *x, __global float *y, __local Memo *memos, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float top = -INFINITY;
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        top = fmax(top, x[i]);
    for (int begin = 0; begin < C; begin += 16) {
        int end = min(begin + 16, C);
        float first = x[begin];
        float last = x[end - 1];
        __local Memo *memo = memos + (as_uint(first) ^ as_uint(last) >> 3) % 4096;
        if (end - begin == 16 && isfinite(first) && memo->first == first && memo->last == last) {
            sum += memo->sum * exp(first - top);
            continue;
        }
        float part = 0.0f;
        for (int i = begin; i < end; ++i)
            part += exp(x[i] - top);
        sum += part;
        memo->first = first;
        memo->last = last;
        memo->sum = part * exp(top - first);
    }
    for (int i = 0; i < C; ++i)
        y[i] = exp(x[i] - top) / sum;
}
