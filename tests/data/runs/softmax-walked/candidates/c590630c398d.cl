/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

#pragma OPENCL FP_CONTRACT ON

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

// exp(v) for v <= 0, -infinity included: 2^n * 2^f with n the integer nearest to v * log2(e), |f| <= 0.5.
// Below the clamp n is -127, whose biased exponent is 0: the power of two is then 0.0f, and so is the result.
float16 expOfNonPositive(float16 v)
{
    // 1.5 * 2^23 + 127: adding it rounds to an integer and leaves n + 127 in the low bits.
    const float magic = 12583039.0f;
    const float log2e = 1.44269504f;

    float16 d = max(v, (float16)(-88.03f));
    float16 z = d * log2e + magic;
    float16 n = z - magic;
    float16 f = d * log2e - n;

    float16 p = f * 1.34002888e-3f + 9.67589235e-3f;
    p = p * f + 5.55032745e-2f;
    p = p * f + 2.40221092e-1f;
    p = p * f + 6.93147207e-1f;
    p = p * f + 1.0f;

    return p * as_float16(as_uint16(z) << 23);
}

// One work-item computes one row, 16 columns at a time, in four passes: maximum, exponentials, their sum,
// scaling.
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

    tail = expOfNonPositive(tail - top);
    for (int c = 0; c < full; c += 16)
        vstore16(expOfNonPositive(vload16(0, x + c) - top), 0, y + c);

    float16 sums = tail;
    for (int c = 0; c < full; c += 16)
        sums += vload16(0, y + c);
    float scale = 1.0f / sumOf(sums);

    for (int c = 0; c < full; c += 16)
        vstore16(vload16(0, y + c) * scale, 0, y + c);
    storeTail(tail * scale, y + full, rest);
}
