/*klineage
surface = "opencl"

[[tunable]]
name = "WG"                      # work-items that share a row
default = 64
values = [16, 64, 256]

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["WG"]
args = ["x", "y", "int C"]
*/

// One work-group computes one row: each work-item takes every WG-th column, and the maxima and sums of the
// work-items are combined by a tree in local memory.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int C)
{
    __local float part[WG];
    int lane = get_local_id(0);
    x += get_group_id(0) * C;
    y += get_group_id(0) * C;

    float top = -INFINITY;
    for (int c = lane; c < C; c += WG)
        top = fmax(top, x[c]);
    part[lane] = top;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = WG / 2; step > 0; step /= 2) {
        if (lane < step)
            part[lane] = fmax(part[lane], part[lane + step]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    top = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum = 0.0f;
    for (int c = lane; c < C; c += WG) {
        y[c] = exp(x[c] - top);
        sum += y[c];
    }
    part[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = WG / 2; step > 0; step /= 2) {
        if (lane < step)
            part[lane] += part[lane + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = part[0];

    for (int c = lane; c < C; c += WG)
        y[c] /= sum;
}
