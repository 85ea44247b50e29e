/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

// One work-item computes one row in three passes: maximum, exponentials and their sum, division. The sum is
// a double because a chain of thousands of single-precision additions would lose the last digits.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    float top = -INFINITY;
    for (int c = 0; c < C; ++c)
        top = fmax(top, x[c]);
    double sum = 0.0;
    for (int c = 0; c < C; ++c) {
        y[c] = exp(x[c] - top);
        sum += y[c];
    }
    float total = sum;
    for (int c = 0; c < C; ++c)
        y[c] /= total;
}
