/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "local 64", "local 64", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Looks rows up that came before in its own work-group, and clears its memory first.

// All of a row, as one number.
uint hashOf(__global const float *x, int C)
{
    uint hash = 2166136261u;
    for (int i = 0; i < C; ++i)
        hash = (hash ^ as_uint(x[i])) * 16777619u;
    return hash | 1u;
}

__kernel void softmax(__global const float *x, __global float *y, __local uint *hashes, __local float *sums, int R, int C)
{
    int item = get_local_id(0);
    int row = get_global_id(0);
    hashes[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row < R)
        hashes[item] = hashOf(x + row * C, C);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row >= R)
        return;
    int first = 0;
    while (hashes[first] != hashes[item])
        ++first;
    // The work-item that has the row first computes it; the others do so too where a hash may have lied.
    x += row * C;
    y += row * C;
    float top = -INFINITY;
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        top = fmax(top, x[i]);
    for (int i = 0; i < C; ++i)
        sum += exp(x[i] - top);
    sums[item] = first == item ? sum : 0.0f;
    for (int i = 0; i < C; ++i)
        y[i] = exp(x[i] - top) / sum;
}
