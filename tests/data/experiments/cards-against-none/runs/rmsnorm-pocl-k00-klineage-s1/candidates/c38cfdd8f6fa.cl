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

// One work-item computes ROWS rows. While a row is scaled and stored, the squares of the next one are summed.
__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_global_id(0) * ROWS;
    if (row >= R)
        return;
    int end = min(row + ROWS, R);
    x += row * C;
    y += row * C;

    int full = C / 16 * 16;

    float16 squares = 0.0f;
    for (int c = 0; c < full; c += 16) {
        float16 v = vload16(0, x + c);
        squares += v * v;
    }

    for (; row < end; ++row) {
        if (full < C) {
            float16 tail = loadTail(x + full, C - full);
            squares += tail * tail;
        }
        float scale = 1.0f / sqrt(sumOf(squares) / C + 1e-5f); // the root is at least sqrt(1e-5)

        __global const float *next = row + 1 < end ? x + C : x; // after the last row: itself, unused
        int ahead = row + 2 < R ? min(C, 512) : 0; // stays inside x: next + C is a row of it
        squares = 0.0f;
        if (((size_t)y & 63) == 0) {
            // Whole, aligned cache lines: stored past the cache, without reading them first.
            for (int c = 0; c < full; c += 16) {
                __builtin_prefetch(next + c + ahead);
                float16 n = vload16(0, next + c);
                float16 v = vload16(0, x + c) * scale * vload16(0, gamma + c);
                __builtin_nontemporal_store(v, (__global float16 *)(y + c));
                squares += n * n;
            }
        } else {
            for (int c = 0; c < full; c += 16) {
                float16 n = vload16(0, next + c);
                float16 v = vload16(0, x + c) * scale * vload16(0, gamma + c);
                vstore16(v, 0, y + c);
                squares += n * n;
            }
        }
        for (int c = full; c < C; ++c)
            y[c] = x[c] * scale * gamma[c];
        x = next;
        y += C;
    }
}
