/*klineage
surface = "opencl"

[[workspace]]
name = "row"
dtype = "f32"
shape = ["R", "C"]

[[launch]]
kernel = "copy"
grid = ["ceil_div(R * C, 64)"]
block = ["64"]
args = ["x", "row", "int R * C"]

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["row", "row", "int R", "int C"]

[[launch]]
kernel = "copy"
grid = ["ceil_div(R * C, 64)"]
block = ["64"]
args = ["row", "y", "int R * C"]
*/

// Violates a precondition on purpose, to probe a risk of the card stage-recomputed-values-in-output: The kernel works
// in place, on a copy of the input, and its last pass reads the input again after the exponentials were staged over
// it.

__kernel void copy(__global const float *restrict from, __global float *restrict to, int n)
{
    int i = get_global_id(0);
    if (i < n)
        to[i] = from[i];
}

// One work-item computes one row: maximum, exponentials into y, their sum from y, and the result from the input again.
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
        y[c] = exp(x[c] - top) / sum;
}
