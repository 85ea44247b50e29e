/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
when = "C <= 8192"
grid = ["R"]
block = ["64"]
args = ["x", "y", "int C"]

[[launch]]
kernel = "softmax_long"
when = "C > 8192"
grid = ["R"]
block = ["64"]
args = ["x", "y", "int C"]
*/

// Violates a precondition on purpose, to probe a risk of the card row-in-registers: The launch condition admits rows
// of up to 8192 columns while the arrays of the work-items of a row hold 1024.

#define HELD 16  // columns that a work-item holds: 64 * 16 = 1024 at most

float maxOver(float v, __local float *partial, int lane)
{
    partial[lane] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v = -INFINITY;
    for (int i = 0; i < 64; ++i)
        v = fmax(v, partial[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}

float sumOver(float v, __local float *partial, int lane)
{
    partial[lane] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v = 0.0f;
    for (int i = 0; i < 64; ++i)
        v += partial[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}

// A work-group computes one row, of which each work-item holds every 64th column from the one load on.
// What a row does not fill is -infinity, which changes neither the maximum nor the sum of the exponentials.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int C)
{
    __local float partial[64];
    int lane = get_local_id(0);
    x += get_group_id(0) * C;
    y += get_group_id(0) * C;

    float v[HELD];
#pragma unroll
    for (int i = 0; i < HELD; ++i)
        v[i] = lane + 64 * i < C ? x[lane + 64 * i] : -INFINITY;

    float top = -INFINITY;
#pragma unroll
    for (int i = 0; i < HELD; ++i)
        top = fmax(top, v[i]);
    top = maxOver(top, partial, lane);

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
        v[i] = exp(v[i] - top);
        sum += v[i];
    }
    float scale = 1.0f / sumOver(sum, partial, lane);

#pragma unroll
    for (int i = 0; i < HELD; ++i) {
        if (lane + 64 * i < C)
            y[lane + 64 * i] = v[i] * scale;
    }
}

// For rows that do not fit: a pass over the row each time.
__kernel void softmax_long(__global const float *restrict x, __global float *restrict y, int C)
{
    __local float partial[64];
    int lane = get_local_id(0);
    x += get_group_id(0) * C;
    y += get_group_id(0) * C;

    float top = -INFINITY;
    for (int c = lane; c < C; c += 64)
        top = fmax(top, x[c]);
    top = maxOver(top, partial, lane);

    float sum = 0.0f;
    for (int c = lane; c < C; c += 64)
        sum += exp(x[c] - top);
    float scale = 1.0f / sumOver(sum, partial, lane);

    for (int c = lane; c < C; c += 64)
        y[c] = exp(x[c] - top) * scale;
}
