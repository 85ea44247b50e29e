/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

// Violates a precondition on purpose, to probe a risk of the card exp2-with-folded-scale: The factor log2(e) is left
// out: 2^(x - m) in place of e^(x - m).

// One work-item computes one row, one column at a time, in three passes: maximum, sum of the exponentials,
// division of each exponential by it. e^(x - m) is 2^(x log2(e) - m log2(e)), with m log2(e) formed once.
#define LOG2E 1.0f

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

    float shift = -top * LOG2E;
    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        sum += exp2(fma(x[c], LOG2E, shift));

    for (int c = 0; c < C; ++c)
        y[c] = exp2(fma(x[c], LOG2E, shift)) / sum;
}
