/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 4
values = [1, 2, 4, 8, 16]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

#ifndef ROWS
#define ROWS 4
#endif

#define OUT(o) (vload16(0, xr + c + (o)) * inv * vload16(0, gamma + c + (o)))
#define STREAM(o, v) __builtin_nontemporal_store((v), (__global float16 *)(yr + c + (o)))

// One work-item computes ROWS consecutive rows, each in two vector passes, the second from the cache.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict gamma, __global float *restrict y, int R, int C)
{
    int row = (int)get_group_id(0) * ROWS;
    int last = min(row + ROWS, R);

    for (; row < last; ++row) {
        __global const float *xr = x + (size_t)row * (size_t)C;
        __global float *yr = y + (size_t)row * (size_t)C;

        float16 s0 = (float16)(0.0f);
        float16 s1 = (float16)(0.0f);
        float16 s2 = (float16)(0.0f);
        float16 s3 = (float16)(0.0f);
        int c = 0;
        for (; c + 64 <= C; c += 64) {
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

        float16 s = (s0 + s1) + (s2 + s3);
        float8 h = s.lo + s.hi;
        float4 q = h.lo + h.hi;
        float2 d = q.lo + q.hi;
        float inv = 1.0f / sqrt((d.x + d.y + tail) / (float)C + 1e-5f);

        c = 0;
        if (((size_t)yr & 63) == 0) {
            for (; c + 64 <= C; c += 64) {
                float16 v0 = OUT(0);
                float16 v1 = OUT(16);
                float16 v2 = OUT(32);
                float16 v3 = OUT(48);
                STREAM(0, v0);
                STREAM(16, v1);
                STREAM(32, v2);
                STREAM(48, v3);
            }
        }
        for (; c + 16 <= C; c += 16)
            vstore16(OUT(0), 0, yr + c);
        for (; c < C; ++c)
            yr[c] = xr[c] * inv * gamma[c];
    }
}
