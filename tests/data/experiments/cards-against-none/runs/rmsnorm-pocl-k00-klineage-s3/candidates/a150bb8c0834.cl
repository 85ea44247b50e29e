/*klineage
surface = "opencl"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 32)"]
block = ["32"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

// One work-item computes one row in two passes: mean square (64 columns a step), result (16 columns a step).
float sumOf(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    int full = C / 16 * 16;

    // the row that this group takes next, or this one again where there is none
    int more = get_local_id(0) + 1 < get_local_size(0) && row + 1 < R;
    __global const float *next = more ? x + C : x;

    float16 s0 = (float16)(0.0f), s1 = s0, s2 = s0, s3 = s0;
    int c = 0;
    for (; c + 64 <= full; c += 64) {
        __builtin_prefetch(next + c, 0, 3);
        __builtin_prefetch(next + c + 16, 0, 3);
        __builtin_prefetch(next + c + 32, 0, 3);
        __builtin_prefetch(next + c + 48, 0, 3);
        float16 v0 = vload16(0, x + c);
        float16 v1 = vload16(0, x + c + 16);
        float16 v2 = vload16(0, x + c + 32);
        float16 v3 = vload16(0, x + c + 48);
        s0 = fma(v0, v0, s0);
        s1 = fma(v1, v1, s1);
        s2 = fma(v2, v2, s2);
        s3 = fma(v3, v3, s3);
    }
    for (; c < full; c += 16) {
        float16 v = vload16(0, x + c);
        s0 = fma(v, v, s0);
    }
    float squares = sumOf((s0 + s1) + (s2 + s3));
    for (; c < C; ++c)
        squares += x[c] * x[c];

    float scale = 1.0f / sqrt(squares / C + 1e-5f);            // the root is at least 3e-3: ε bounds it

    int i = 0;
    if (((size_t)y & 63) == 0) {
        // whole, aligned lines: written past the caches, without reading them first
        for (; i < full; i += 16) {
            float16 v = vload16(0, x + i) * scale * vload16(0, gamma + i);
            __builtin_nontemporal_store(v, (__global float16 *)(y + i));
        }
    }
    for (; i < full; i += 16)
        vstore16(vload16(0, x + i) * scale * vload16(0, gamma + i), 0, y + i);
    for (; i < C; ++i)
        y[i] = x[i] * scale * gamma[i];
}
