// SPDX-License-Identifier: GPL-3.0-or-later
// From softmax/pocl/K03: folding 16 lanes, and the end of a row.

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

// The last, incomplete vector of a row: n of 16 elements, padded with -infinity, which changes neither
// maximum nor sum.
float16 loadTail(__global const float *p, int n)
{
    float lane[16];
    for (int i = 0; i < 16; ++i)
        lane[i] = i < n ? p[i] : -INFINITY;
    return vload16(0, lane);
}
