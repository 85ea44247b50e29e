/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 64
values = [8, 16, 32, 64, 128]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

static float sum16(float16 s)
{
    float8 h = s.lo + s.hi;
    float4 q = h.lo + h.hi;
    float2 p = q.lo + q.hi;
    return p.x + p.y;
}

static float row_squares(__global const float *xr, int C)
{
    int c16 = C & ~15;
    int c64 = C & ~63;
    float16 s0 = (float16)(0.0f);
    float16 s1 = (float16)(0.0f);
    float16 s2 = (float16)(0.0f);
    float16 s3 = (float16)(0.0f);
    int c = 0;
    for (; c < c64; c += 64) {
        float16 a0 = vload16(0, xr + c);
        float16 a1 = vload16(0, xr + c + 16);
        float16 a2 = vload16(0, xr + c + 32);
        float16 a3 = vload16(0, xr + c + 48);
        s0 += a0 * a0;
        s1 += a1 * a1;
        s2 += a2 * a2;
        s3 += a3 * a3;
    }
    for (; c < c16; c += 16) {
        float16 a0 = vload16(0, xr + c);
        s0 += a0 * a0;
    }
    float rest = 0.0f;
    for (; c < C; ++c)
        rest += xr[c] * xr[c];
    return sum16((s0 + s1) + (s2 + s3)) + rest;
}

// One work-item a group; it computes ROWS contiguous rows with 16-lane vectors.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict gamma, __global float *restrict y, int R, int C)
{
    int first = (int)get_group_id(0) * ROWS;
    int last = min(first + ROWS, R);
    if (first >= last)
        return;
    size_t n = (size_t)C;

    if ((C & 31) == 0 && (((size_t)y) & 63) == 0) {
        // Row r is written while row r + 1 is summed and row r + 2 is fetched.
        __global const float *x0 = x + (size_t)first * n;
        __global const float *x1 = x + (size_t)min(first + 1, R - 1) * n;
        float16 t0 = (float16)(0.0f);
        float16 t1 = (float16)(0.0f);
        for (int c = 0; c < C; c += 32) {
            __builtin_prefetch(x1 + c, 0, 3);
            __builtin_prefetch(x1 + c + 16, 0, 3);
            float16 a0 = vload16(0, x0 + c);
            float16 a1 = vload16(0, x0 + c + 16);
            t0 += a0 * a0;
            t1 += a1 * a1;
        }
        float squares = sum16(t0 + t1);

        for (int row = first; row < last; ++row) {
            __global const float *xr = x + (size_t)row * n;
            __global const float *xp = x + (size_t)min(row + 2, R - 1) * n;
            __global float *yr = y + (size_t)row * n;
            float inv = 1.0f / sqrt(squares / (float)C + 1e-5f);

            if (row + 1 < last) {
                __global const float *xn = xr + n;
                float16 s0 = (float16)(0.0f);
                float16 s1 = (float16)(0.0f);
                for (int c = 0; c < C; c += 32) {
                    __builtin_prefetch(xp + c, 0, 3);
                    __builtin_prefetch(xp + c + 16, 0, 3);
                    float16 a0 = vload16(0, xn + c);
                    float16 a1 = vload16(0, xn + c + 16);
                    float16 v0 = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                    float16 v1 = vload16(0, xr + c + 16) * inv * vload16(0, gamma + c + 16);
                    s0 += a0 * a0;
                    s1 += a1 * a1;
                    __builtin_nontemporal_store(v0, (__global float16 *)(yr + c));
                    __builtin_nontemporal_store(v1, (__global float16 *)(yr + c + 16));
                }
                squares = sum16(s0 + s1);
            } else {
                for (int c = 0; c < C; c += 32) {
                    __builtin_prefetch(xp + c, 0, 3);
                    __builtin_prefetch(xp + c + 16, 0, 3);
                    float16 v0 = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                    float16 v1 = vload16(0, xr + c + 16) * inv * vload16(0, gamma + c + 16);
                    __builtin_nontemporal_store(v0, (__global float16 *)(yr + c));
                    __builtin_nontemporal_store(v1, (__global float16 *)(yr + c + 16));
                }
            }
        }
    } else {
        int c16 = C & ~15;
        for (int row = first; row < last; ++row) {
            __global const float *xr = x + (size_t)row * n;
            __global float *yr = y + (size_t)row * n;
            float inv = 1.0f / sqrt(row_squares(xr, C) / (float)C + 1e-5f);
            int c = 0;
            for (; c < c16; c += 16) {
                float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                vstore16(v, 0, yr + c);
            }
            for (; c < C; ++c)
                yr[c] = xr[c] * inv * gamma[c];
        }
    }
}
