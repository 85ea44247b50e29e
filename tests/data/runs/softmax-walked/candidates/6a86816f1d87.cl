/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

// One work-item computes one row, one column at a time, in four passes: maximum, exponentials, their sum,
// division.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    float top = -INFINITY;
    for (int c = 0; c < C; ++c)
        top = max(top, x[c]);

    for (int c = 0; c < C; ++c)
        y[c] = exp(x[c] - top);

    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        sum += y[c];

    for (int c = 0; c < C; ++c)
        y[c] = y[c] / sum;
}
