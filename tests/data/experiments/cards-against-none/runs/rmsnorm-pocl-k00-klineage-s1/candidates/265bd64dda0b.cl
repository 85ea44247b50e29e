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
    int bursts = C / 64 * 64;

    float16 even = 0.0f;
    float16 odd = 0.0f;
    for (int c = 0; c < bursts; c += 64) {
        float16 n0 = vload16(0, x + c);
        float16 n1 = vload16(0, x + c + 16);
        float16 n2 = vload16(0, x + c + 32);
        float16 n3 = vload16(0, x + c + 48);
        even += n0 * n0;
        odd += n1 * n1;
        even += n2 * n2;
        odd += n3 * n3;
    }
    for (int c = bursts; c < full; c += 16) {
        float16 n = vload16(0, x + c);
        even += n * n;
    }

    for (; row < end; ++row) {
        if (full < C) {
            float16 tail = loadTail(x + full, C - full);
            odd += tail * tail;
        }
        float scale = 1.0f / sqrt(sumOf(even + odd) / C + 1e-5f); // the root is at least sqrt(1e-5)

        __global const float *next = row + 1 < end ? x + C : x; // after the last row: itself, unused
        even = 0.0f;
        odd = 0.0f;
        int c = 0;
        if (((size_t)y & 63) == 0) {
            // Whole, aligned cache lines: stored past the cache, without reading them first.
            for (; c < bursts; c += 64) {
                float16 n0 = vload16(0, next + c);
                float16 n1 = vload16(0, next + c + 16);
                float16 n2 = vload16(0, next + c + 32);
                float16 n3 = vload16(0, next + c + 48);
                even += n0 * n0;
                odd += n1 * n1;
                even += n2 * n2;
                odd += n3 * n3;
                float16 v0 = vload16(0, x + c) * scale * vload16(0, gamma + c);
                float16 v1 = vload16(0, x + c + 16) * scale * vload16(0, gamma + c + 16);
                float16 v2 = vload16(0, x + c + 32) * scale * vload16(0, gamma + c + 32);
                float16 v3 = vload16(0, x + c + 48) * scale * vload16(0, gamma + c + 48);
                __builtin_nontemporal_store(v0, (__global float16 *)(y + c));
                __builtin_nontemporal_store(v1, (__global float16 *)(y + c + 16));
                __builtin_nontemporal_store(v2, (__global float16 *)(y + c + 32));
                __builtin_nontemporal_store(v3, (__global float16 *)(y + c + 48));
            }
        }
        for (; c < full; c += 16) {
            float16 n = vload16(0, next + c);
            float16 v = vload16(0, x + c) * scale * vload16(0, gamma + c);
            vstore16(v, 0, y + c);
            even += n * n;
        }
        for (; c < C; ++c)
            y[c] = x[c] * scale * gamma[c];
        x = next;
        y += C;
    }
}
