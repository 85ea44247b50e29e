/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 32
values = [8, 16, 32, 64]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

#ifndef ROWS
#define ROWS 32
#endif

#define AHEAD(p) __builtin_prefetch((const __global void *)(p), 0, 3)

static inline float scale_of(float16 s, float tail, int C)
{
    float8 h = s.lo + s.hi;
    float4 q = h.lo + h.hi;
    float2 d = q.lo + q.hi;
    return 1.0f / sqrt((d.x + d.y + tail) / (float)C + 1e-5f);
}

// Meanwhile the row at xn is fetched into the cache.
static inline float scale_of_row(__global const float *xr, __global const float *xn, int C)
{
    float16 s0 = (float16)(0.0f);
    float16 s1 = (float16)(0.0f);
    float16 s2 = (float16)(0.0f);
    float16 s3 = (float16)(0.0f);
    int c = 0;
    for (; c + 64 <= C; c += 64) {
        AHEAD(xn + c);
        AHEAD(xn + c + 16);
        AHEAD(xn + c + 32);
        AHEAD(xn + c + 48);
        float16 a0 = vload16(0, xr + c);
        float16 a1 = vload16(0, xr + c + 16);
        float16 a2 = vload16(0, xr + c + 32);
        float16 a3 = vload16(0, xr + c + 48);
        s0 += a0 * a0;
        s1 += a1 * a1;
        s2 += a2 * a2;
        s3 += a3 * a3;
    }
    for (; c + 16 <= C; c += 16) {
        float16 a = vload16(0, xr + c);
        s0 += a * a;
    }
    float tail = 0.0f;
    for (; c < C; ++c)
        tail += xr[c] * xr[c];
    return scale_of((s0 + s1) + (s2 + s3), tail, C);
}

#define OUT(o) (vload16(0, xr + c + (o)) * inv * vload16(0, gamma + c + (o)))
#define STREAM(o) __builtin_nontemporal_store(OUT(o), (__global float16 *)(yr + c + (o)))

// One work-item computes ROWS consecutive rows; a row is written while the squares of the next are summed.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict gamma, __global float *restrict y, int R, int C)
{
    int row = (int)get_group_id(0) * ROWS;
    int last = min(row + ROWS, R);
    if (row >= R)
        return;

    float inv = scale_of_row(x + (size_t)row * (size_t)C, x + (size_t)min(row + 1, last - 1) * (size_t)C, C);

    for (; row < last; ++row) {
        __global const float *xr = x + (size_t)row * (size_t)C;
        __global float *yr = y + (size_t)row * (size_t)C;
        int aligned = ((size_t)yr & 63) == 0;
        int c = 0;

        if (row + 1 < last) {
            __global const float *xn = xr + C;
            __global const float *xp = x + (size_t)min(row + 2, last - 1) * (size_t)C;
            float16 s0 = (float16)(0.0f);
            float16 s1 = (float16)(0.0f);
            if (aligned) {
                for (; c + 32 <= C; c += 32) {
                    AHEAD(xp + c);
                    AHEAD(xp + c + 16);
                    float16 a0 = vload16(0, xn + c);
                    float16 a1 = vload16(0, xn + c + 16);
                    STREAM(0);
                    STREAM(16);
                    s0 += a0 * a0;
                    s1 += a1 * a1;
                }
            }
            for (; c + 16 <= C; c += 16) {
                float16 a = vload16(0, xn + c);
                vstore16(OUT(0), 0, yr + c);
                s0 += a * a;
            }
            float tail = 0.0f;
            for (; c < C; ++c) {
                float a = xn[c];
                yr[c] = xr[c] * inv * gamma[c];
                tail += a * a;
            }
            inv = scale_of(s0 + s1, tail, C);
        } else {
            if (aligned) {
                for (; c + 32 <= C; c += 32) {
                    STREAM(0);
                    STREAM(16);
                }
            }
            for (; c + 16 <= C; c += 16)
                vstore16(OUT(0), 0, yr + c);
            for (; c < C; ++c)
                yr[c] = xr[c] * inv * gamma[c];
        }
    }
}
