/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

// Violates a precondition on purpose, to probe a risk of the card specialize-exp-range: The maximum is scaled by
// log2(e) and folded into the multiply-add of each element, in place of being subtracted first.

// The last, incomplete vector of a row: n of 16 elements, padded with -infinity, which changes neither
// maximum nor sum.
float16 loadTail(__global const float *p, int n)
{
    float lane[16];
    for (int i = 0; i < 16; ++i)
        lane[i] = i < n ? p[i] : -INFINITY;
    return vload16(0, lane);
}

void storeTail(float16 v, __global float *p, int n)
{
    float lane[16];
    vstore16(v, 0, lane);
    for (int i = 0; i < n; ++i)
        p[i] = lane[i];
}

float maxOf(float16 v)
{
    float8 m8 = max(v.lo, v.hi);
    float4 m4 = max(m8.lo, m8.hi);
    float2 m2 = max(m4.lo, m4.hi);
    return max(m2.x, m2.y);
}

float sumOf(float16 v)
{
    float8 s8 = v.lo + v.hi;
    float4 s4 = s8.lo + s8.hi;
    float2 s2 = s4.lo + s4.hi;
    return s2.x + s2.y;
}

// 2^t for t <= 0 but for rounding, and 0 below -127: 2^n * 2^f with t = n + f and |f| <= 0.5. The polynomial for
// 2^f is the minimax one of degree 5 through 1 at 0; its relative error is below 1e-7.
float16 exp2Of(float16 t)
{
    const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the low bits
    t = max(t, -127.0f);
    float16 shifted = t + shift;
    float16 f = t - (shifted - shift);
    float16 p = 0.00132647273f;
    p = p * f + 0.00967151299f;
    p = p * f + 0.0555073358f;
    p = p * f + 0.240222424f;
    p = p * f + 0.693147004f;
    p = p * f + 1.0f;
    int16 exponent = (as_int16(shifted) + 127) << 23;
    return p * as_float16(exponent);
}

// One work-item computes one row, 16 columns at a time, in three passes: maximum, exponentials and their
// sum, scaling.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    int full = C / 16 * 16;
    int rest = C - full;

    float16 tail = loadTail(x + full, rest);
    float16 tops = tail;
    for (int c = 0; c < full; c += 16)
        tops = max(tops, vload16(0, x + c));
    float top = maxOf(tops);

    const float16 log2e = 1.44269504f;
    float16 fold = -top * log2e;  // rounded once, where it may be large
    tail = exp2Of(fma(tail, log2e, fold));
    float16 sums = tail;
    for (int c = 0; c < full; c += 16) {
        float16 e = exp2Of(fma(vload16(0, x + c), log2e, fold));
        vstore16(e, 0, y + c);
        sums += e;
    }
    float scale = 1.0f / sumOf(sums);

    for (int c = 0; c < full; c += 16)
        vstore16(vload16(0, y + c) * scale, 0, y + c);
    storeTail(tail * scale, y + full, rest);
}
