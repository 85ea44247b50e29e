/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

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

// e^x for x <= 0, and 0 below -88: 2^n * 2^f with x * log2(e) = n + f and |f| <= 0.5. The polynomial for
// 2^f is the minimax one of degree 5 through 1 at 0; its relative error is below 1e-7.
float16 expOf(float16 x)
{
    const float log2e = 1.44269504f;
    const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the low bits
    x = max(x, -88.0f);
    float16 shifted = x * log2e + shift;
    float16 f = x * log2e - (shifted - shift);
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
// sum, scaling. The last pass also fetches rows of x.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    __global const float *from = x;
    x += row * C;
    y += row * C;
    int full = C / 16 * 16;
    int rest = C - full;

    float16 tail = loadTail(x + full, rest);
    float16 tops = tail;
    for (int c = 0; c < full; c += 16)
        tops = max(tops, vload16(0, x + c));
    float top = maxOf(tops);

    tail = expOf(tail - top);
    float16 sums = tail;
    for (int c = 0; c < full; c += 16) {
        float16 e = expOf(vload16(0, x + c) - top);
        vstore16(e, 0, y + c);
        sums += e;
    }
    float scale = 1.0f / sumOf(sums);

    for (int c = 0; c < full; c += 16) {
        // Violated: 64 rows, 8 apart, which do not fit into the cache of a core.
        for (int i = 0; i < 64; ++i)
            __builtin_prefetch(from + min(row + 1 + 8 * i, R - 1) * C + c);
        vstore16(vload16(0, y + c) * scale, 0, y + c);
    }
    storeTail(tail * scale, y + full, rest);
}
