/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

// One work-item computes one row in two passes: maximum and sum together, the sum rescaled whenever the
// maximum grows, then the outputs. That saves one pass over memory. The sum is a double because a chain of
// thousands of single-precision additions would lose the last digits.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    float top = -INFINITY;
    double sum = 0.0;
    for (int c = 0; c < C; ++c) {
        float higher = fmax(top, x[c]);
        sum = sum * exp(top - higher) + exp(x[c] - higher);
        top = higher;
    }
    float total = sum;
    for (int c = 0; c < C; ++c)
        y[c] = exp(x[c] - top) / total;
}
