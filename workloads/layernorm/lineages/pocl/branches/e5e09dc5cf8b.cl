/*klineage
surface = "opencl"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/

// One work-item computes one row in three passes: mean, variance, result. The sums are doubles because a chain of a thousand
// single-precision additions would lose the last digits of the mean.
__kernel void layernorm(__global const float *x, __global const float *gamma, __global const float *beta,
                        __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    double sum = 0.0;
    for (int c = 0; c < C; ++c)
        sum += x[c];
    double mean = sum / C;

    double squares = 0.0;
    for (int c = 0; c < C; ++c)
        squares += (x[c] - mean) * (x[c] - mean);
    double variance = squares / C;

    // One square root and one division a row. The divisor is at least sqrt(1e-5), so its reciprocal is at most about 316.3. It is
    // rounded to a float once, and the pass multiplies floats; only the distance from the mean needs the double.
    float scale = (float)(1.0 / sqrt(variance + 1e-5));
    for (int c = 0; c < C; ++c)
        y[c] = (float)(x[c] - mean) * scale * gamma[c] + beta[c];
}
