/*klineage
surface = "opencl"

[[launch]]
kernel = "silu"
grid = ["ceil_div(C, 64)", "R"]
block = ["64"]
args = ["x", "y", "int C"]
*/

// Violates a precondition on purpose, to probe a risk of the card specialize-exp-range: In SiLU the exponential is
// called with arguments of either sign, which nothing bounds from above.

// exp for arguments above -88 (0 below), without branches or calls:
//   t * log2(e) = n + f,  n whole,  |f| <= 0.5   ->   e^t = 2^n * 2^f
static inline float expOf(float t)
{
    const float log2e = 1.44269504f;
    const float shift = 12582912.0f;          // 1.5 * 2^23: the sum keeps n in its low bits, rounded to nearest
    t = t > -88.0f ? t : -88.0f;              // n = -127: an exponent field of 0, a result of exactly 0
    float shifted = t * log2e + shift;
    float f = t * log2e - (shifted - shift);
    float p = 0.00132647273f;                 // minimax for 2^f on [-0.5, 0.5], through 1 at 0
    p = p * f + 0.00967151299f;
    p = p * f + 0.0555073358f;
    p = p * f + 0.240222424f;
    p = p * f + 0.693147004f;
    p = p * f + 1.0f;
    uint exponent = (as_uint(shifted) + 127u) << 23;   // what lies above the low bits is shifted out
    return p * as_float(exponent);
}

// One work-item computes one element.
__kernel void silu(__global const float *x, __global float *y, int C)
{
    int c = get_global_id(0);
    int r = get_global_id(1);
    if (c >= C)
        return;
    float v = x[r * C + c];
    y[r * C + c] = v / (1.0f + expOf(-v));
}
