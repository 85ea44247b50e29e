/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 16
values = [4, 8, 16, 32]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

float16 loadTail(__global const float *p, int n)
{
    float lanes[16];
    for (int i = 0; i < 16; ++i)
        lanes[i] = 0.0f;
    for (int i = 0; i < n; ++i)
        lanes[i] = p[i];
    return vload16(0, lanes);
}

float sumOf(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

// One work-item computes ROWS rows, two at a time. While a pair is scaled and stored, the squares of the next one are summed.
__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_global_id(0) * ROWS;
    if (row >= R)
        return;
    int end = min(row + ROWS, R);
    int last = end - 1;

    int full = C / 16 * 16;

    __global const float *x0 = x + row * C;
    __global const float *x1 = x + min(row + 1, last) * C;
    float16 squares0 = 0.0f;
    float16 squares1 = 0.0f;
    for (int c = 0; c < full; c += 16) {
        float16 v0 = vload16(0, x0 + c);
        float16 v1 = vload16(0, x1 + c);
        squares0 += v0 * v0;
        squares1 += v1 * v1;
    }

    for (; row < end; row += 2) {
        if (full < C) {
            float16 tail0 = loadTail(x0 + full, C - full);
            float16 tail1 = loadTail(x1 + full, C - full);
            squares0 += tail0 * tail0;
            squares1 += tail1 * tail1;
        }
        float scale0 = 1.0f / sqrt(sumOf(squares0) / C + 1e-5f); // the root is at least sqrt(1e-5)
        float scale1 = 1.0f / sqrt(sumOf(squares1) / C + 1e-5f);

        __global float *y0 = y + row * C;
        __global float *y1 = y + min(row + 1, last) * C; // an odd last row is its own neighbour
        __global const float *next0 = x + min(row + 2, last) * C; // after the last pair: unused
        __global const float *next1 = x + min(row + 3, last) * C;
        squares0 = 0.0f;
        squares1 = 0.0f;
        if ((((size_t)y0 | (size_t)y1) & 63) == 0) {
            // Whole, aligned cache lines: stored past the cache, without reading them first.
            for (int c = 0; c < full; c += 16) {
                float16 n0 = vload16(0, next0 + c);
                float16 n1 = vload16(0, next1 + c);
                float16 g = vload16(0, gamma + c);
                float16 v0 = vload16(0, x0 + c) * scale0 * g;
                float16 v1 = vload16(0, x1 + c) * scale1 * g;
                __builtin_nontemporal_store(v0, (__global float16 *)(y0 + c));
                __builtin_nontemporal_store(v1, (__global float16 *)(y1 + c));
                squares0 += n0 * n0;
                squares1 += n1 * n1;
            }
        } else {
            for (int c = 0; c < full; c += 16) {
                float16 n0 = vload16(0, next0 + c);
                float16 n1 = vload16(0, next1 + c);
                float16 g = vload16(0, gamma + c);
                float16 v0 = vload16(0, x0 + c) * scale0 * g;
                float16 v1 = vload16(0, x1 + c) * scale1 * g;
                vstore16(v0, 0, y0 + c);
                vstore16(v1, 0, y1 + c);
                squares0 += n0 * n0;
                squares1 += n1 * n1;
            }
        }
        for (int c = full; c < C; ++c) {
            y0[c] = x0[c] * scale0 * gamma[c];
            y1[c] = x1[c] * scale1 * gamma[c];
        }
        x0 = next0;
        x1 = next1;
    }
}
