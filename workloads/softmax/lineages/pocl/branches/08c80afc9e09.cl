/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

// Violates a precondition on purpose, to probe a risk of the card fuse-reduction-into-producer-pass: The sum is fused
// into a scalar pass over the exponentials, one ordered addition an element, which had been left to the compiler to
// vectorize.

// One work-item computes one row, one column at a time, in three passes: maximum, exponentials and their
// sum, division.
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

    float sum = 0.0f;
    for (int c = 0; c < C; ++c) {
        float e = exp(x[c] - top);
        y[c] = e;
        sum += e;
    }

    for (int c = 0; c < C; ++c)
        y[c] = y[c] / sum;
}
