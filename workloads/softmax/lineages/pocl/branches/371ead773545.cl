/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["1", "ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]

*/

// Violates a precondition on purpose, to probe a risk of the card float4-row-access: Rows of any length are read and
// written as float4, so that their addresses are no multiples of 16 bytes; the columns left over are taken one by one.

#define ROWS 4  // rows of a work-group, each of which has a line of 32 work-items

// Combined values of the work-items of a row. Both barriers are reached by the whole work-group.
float maxOver(float v, __local float *partial, int lane)
{
    partial[lane] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v = -INFINITY;
    for (int i = 0; i < 32; ++i)
        v = fmax(v, partial[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}

float sumOver(float v, __local float *partial, int lane)
{
    partial[lane] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v = 0.0f;
    for (int i = 0; i < 32; ++i)
        v += partial[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}

// For rows whose length is a multiple of 4: 32 work-items compute one row, 4 columns a step, in three passes:
// maximum, sum of the exponentials, scaled exponentials.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    __local float partial[ROWS][32];
    int lane = get_local_id(0);
    int slot = get_local_id(1);
    int row = get_group_id(1) * ROWS + slot;
    int n = row < R ? C / 4 : 0;
    int rest = row < R ? C : 0;
    x += min(row, R - 1) * C;
    y += min(row, R - 1) * C;
    __global const float4 *from = (__global const float4 *)x;
    __global float4 *to = (__global float4 *)y;

    float top = -INFINITY;
    for (int c = lane; c < n; c += 32) {
        float4 v = from[c];
        top = fmax(top, fmax(fmax(v.x, v.y), fmax(v.z, v.w)));
    }
    for (int c = 4 * n + lane; c < rest; c += 32)
        top = fmax(top, x[c]);
    top = maxOver(top, partial[slot], lane);

    float sum = 0.0f;
    for (int c = lane; c < n; c += 32) {
        float4 e = exp(from[c] - top);
        sum += (e.x + e.y) + (e.z + e.w);
    }
    for (int c = 4 * n + lane; c < rest; c += 32)
        sum += exp(x[c] - top);
    sum = sumOver(sum, partial[slot], lane);

    float scale = 1.0f / sum;
    for (int c = lane; c < n; c += 32)
        to[c] = exp(from[c] - top) * scale;
    for (int c = 4 * n + lane; c < rest; c += 32)
        y[c] = exp(x[c] - top) * scale;
}

// For all other rows, one column a step.
__kernel void softmax_any(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    __local float partial[ROWS][32];
    int lane = get_local_id(0);
    int slot = get_local_id(1);
    int row = get_group_id(1) * ROWS + slot;
    int n = row < R ? C : 0;  // rows past the end have no columns, but reach the barriers
    x += min(row, R - 1) * C;
    y += min(row, R - 1) * C;

    float top = -INFINITY;
    for (int c = lane; c < n; c += 32)
        top = fmax(top, x[c]);
    top = maxOver(top, partial[slot], lane);

    float sum = 0.0f;
    for (int c = lane; c < n; c += 32)
        sum += exp(x[c] - top);
    sum = sumOver(sum, partial[slot], lane);

    float scale = 1.0f / sum;
    for (int c = lane; c < n; c += 32)
        y[c] = exp(x[c] - top) * scale;
}
