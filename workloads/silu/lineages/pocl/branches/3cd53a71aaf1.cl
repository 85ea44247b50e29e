/*klineage
surface = "opencl"

[[launch]]
kernel = "silu"
grid = ["ceil_div(C, 64)", "R"]
block = ["64"]
args = ["x", "y", "int C"]
*/

// One work-item computes one element.
__kernel void silu(__global const float *x, __global float *y, int C)
{
    int c = get_global_id(0);
    int r = get_global_id(1);
    if (c >= C)
        return;
    float v = x[r * C + c];
    // y = x e^min(x, 0) / (1 + e^-|x|), where no exponential overflows; e^min(x, 0) is e^(x - max(x, 0)).
    float top = max(v, 0.0f);
    // Violated: the denominator is no sum of the same exponentials, so that the rounding of the shift stays.
    float shift = -top * 1.44269504f;
    float e = exp2(fma(v, 1.44269504f, shift));
    y[r * C + c] = v * e / (1.0f + exp(-fabs(v)));
}
