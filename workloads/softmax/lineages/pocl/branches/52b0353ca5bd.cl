/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["64"]
args = ["x", "y", "int C"]
*/

// Violates a precondition on purpose, to probe a risk of the card stage-recomputed-values-in-output: The work-items of
// a row add up exponentials that others of them staged in the output, without a barrier in between.

// A work-group computes one row. Its work-items take the maximum and stage the exponentials in y by every 64th
// column, and add them up by 64 runs of neighbouring columns, most of which other work-items staged.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int C)
{
    __local float partial[64];
    int lane = get_local_id(0);
    x += get_group_id(0) * C;
    y += get_group_id(0) * C;

    float top = -INFINITY;
    for (int c = lane; c < C; c += 64)
        top = fmax(top, x[c]);
    partial[lane] = top;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 64; ++i)
        top = fmax(top, partial[i]);
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int c = lane; c < C; c += 64)
        y[c] = exp(x[c] - top);

    int run = (C + 63) / 64;
    float sum = 0.0f;
    for (int c = lane * run; c < min(C, (lane + 1) * run); ++c)
        sum += y[c];
    partial[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    sum = 0.0f;
    for (int i = 0; i < 64; ++i)
        sum += partial[i];

    for (int c = lane; c < C; c += 64)
        y[c] = y[c] / sum;
}
