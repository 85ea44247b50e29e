/*klineage
surface = "opencl"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 64)"]
block = ["16"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

// One work-item computes four rows in two passes: mean square, result. Both take 16 columns at a time, the tail one.
float sumOf(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

// The columns from c on, one at a time, added to the squares of the vectors; then 1 / root, where ε bounds the root
float scaleOf(float16 sums, __global const float *x, int c, int C)
{
    float squares = sumOf(sums);
    for (; c < C; ++c)
        squares += x[c] * x[c];
    return 1.0f / sqrt(squares / C + 1e-5f);
}

void result(__global const float *x, __global const float *gamma, __global float *y, float scale, int full, int C)
{
    if (((size_t)y & 63) == 0) {
        // whole, aligned lines: written past the caches, without reading them first
        for (int c = 0; c < full; c += 16) {
            float16 v = vload16(0, x + c) * scale * vload16(0, gamma + c);
            __builtin_nontemporal_store(v, (__global float16 *)(y + c));
        }
    } else {
        for (int c = 0; c < full; c += 16)
            vstore16(vload16(0, x + c) * scale * vload16(0, gamma + c), 0, y + c);
    }
    for (int c = full; c < C; ++c)
        y[c] = x[c] * scale * gamma[c];
}

__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_global_id(0) * 4;
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    int full = C / 16 * 16;

    if (row + 4 <= R) {
        __global const float *x1 = x + C;
        __global const float *x2 = x1 + C;
        __global const float *x3 = x2 + C;
        float16 s0 = (float16)(0.0f), s1 = s0, s2 = s0, s3 = s0;
        for (int c = 0; c < full; c += 16) {
            float16 v0 = vload16(0, x + c);
            float16 v1 = vload16(0, x1 + c);
            float16 v2 = vload16(0, x2 + c);
            float16 v3 = vload16(0, x3 + c);
            s0 += v0 * v0;
            s1 += v1 * v1;
            s2 += v2 * v2;
            s3 += v3 * v3;
        }
        result(x, gamma, y, scaleOf(s0, x, full, C), full, C);
        result(x1, gamma, y + C, scaleOf(s1, x1, full, C), full, C);
        result(x2, gamma, y + 2 * C, scaleOf(s2, x2, full, C), full, C);
        result(x3, gamma, y + 3 * C, scaleOf(s3, x3, full, C), full, C);
        return;
    }
    for (; row < R; ++row) {
        float16 sums = (float16)(0.0f);
        for (int c = 0; c < full; c += 16) {
            float16 v = vload16(0, x + c);
            sums += v * v;
        }
        result(x, gamma, y, scaleOf(sums, x, full, C), full, C);
        x += C;
        y += C;
    }
}
