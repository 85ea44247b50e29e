/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["32"]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A work-group a row: partial maxima and sums meet in a tree in local memory, an order of its own but
// always the same.

float combine(__local float *cell, int mine, float value, int isMax)
{
    cell[mine] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int span = 16; span > 0; span /= 2) {
        if (mine < span)
            cell[mine] = isMax ? fmax(cell[mine], cell[mine + span]) : cell[mine] + cell[mine + span];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float result = cell[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

__kernel void softmax(__global const float *x, __global float *y, int C)
{
    __local float cell[32];
    int mine = get_local_id(0);
    x += get_group_id(0) * C;
    y += get_group_id(0) * C;
    float top = -INFINITY;
    for (int i = mine; i < C; i += 32)
        top = fmax(top, x[i]);
    top = combine(cell, mine, top, 1);
    float sum = 0.0f;
    for (int i = mine; i < C; i += 32)
        sum += exp(x[i] - top);
    sum = combine(cell, mine, sum, 0);
    for (int i = mine; i < C; i += 32)
        y[i] = exp(x[i] - top) / sum;
}
