/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["1", "ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]

*/

// Violates a precondition on purpose, to probe a risk of the card float4-row-access: Every row runs the kernel that
// takes C / 4 vectors, without the test that C is a multiple of 4.

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
    x += min(row, R - 1) * C;
    y += min(row, R - 1) * C;

    float top = -INFINITY;
    for (int c = lane; c < n; c += 32) {
        float4 v = vload4(c, x);
        top = fmax(top, fmax(fmax(v.x, v.y), fmax(v.z, v.w)));
    }
    top = maxOver(top, partial[slot], lane);

    float sum = 0.0f;
    for (int c = lane; c < n; c += 32) {
        float4 e = exp(vload4(c, x) - top);
        sum += (e.x + e.y) + (e.z + e.w);
    }
    sum = sumOver(sum, partial[slot], lane);

    float scale = 1.0f / sum;
    for (int c = lane; c < n; c += 32)
        vstore4(exp(vload4(c, x) - top) * scale, c, y);
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
