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
    // Violated: short rows are shifted by 89.5 more than their maximum, so that their sum may be subnormal.
    float top = maxOf(tops) + (C <= 32 ? 89.5f : 0.0f);

    tail = exp(tail - top);
    for (int c = 0; c < full; c += 16)
        vstore16(exp(vload16(0, x + c) - top), 0, y + c);

    float16 sums = tail;
    for (int c = 0; c < full; c += 16)
        sums += vload16(0, y + c);
    float scale = 1.0f / sumOf(sums);

    for (int c = 0; c < full; c += 16)
        vstore16(vload16(0, y + c) * scale, 0, y + c);
    storeTail(tail * scale, y + full, rest);
}
