/*klineage
surface = "opencl"

[[workspace]]
name = "staged"
dtype = "f16"
shape = ["R", "C"]

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "staged", "y", "int R", "int C"]
*/

// Violates a precondition on purpose, to probe a risk of the card stage-recomputed-values-in-output: The exponentials
// are staged in half precision, where they are rounded before they are summed and used.

// One work-item computes one row, one column at a time, in four passes: maximum, exponentials, their sum,
// division.
__kernel void softmax(__global const float *restrict x, __global half *restrict staged,
                      __global float *restrict y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    staged += row * C;
    y += row * C;

    float top = -INFINITY;
    for (int c = 0; c < C; ++c)
        top = max(top, x[c]);

    for (int c = 0; c < C; ++c)
        vstore_half(exp(x[c] - top), c, staged);

    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        sum += vload_half(c, staged);

    for (int c = 0; c < C; ++c)
        y[c] = vload_half(c, staged) / sum;
}
