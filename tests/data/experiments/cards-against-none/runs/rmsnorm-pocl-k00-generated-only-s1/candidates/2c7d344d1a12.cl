/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 8
values = [2, 4, 8, 16, 32]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

// One work-group of one work-item computes ROWS consecutive rows, 16 lanes at a time.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict gamma,
             __global float *restrict y, int R, int C)
{
    int first = (int)get_group_id(0) * ROWS;
    int last = min(first + ROWS, R);
    int c64 = C & ~63;
    int c16 = C & ~15;

    for (int row = first; row < last; ++row) {
        __global const float *xr = x + (size_t)row * (size_t)C;
        __global float *yr = y + (size_t)row * (size_t)C;

        float16 a0 = (float16)(0.0f);
        float16 a1 = (float16)(0.0f);
        float16 a2 = (float16)(0.0f);
        float16 a3 = (float16)(0.0f);
        int c = 0;
        for (; c < c64; c += 64) {
            float16 v0 = vload16(0, xr + c);
            float16 v1 = vload16(0, xr + c + 16);
            float16 v2 = vload16(0, xr + c + 32);
            float16 v3 = vload16(0, xr + c + 48);
            a0 += v0 * v0;
            a1 += v1 * v1;
            a2 += v2 * v2;
            a3 += v3 * v3;
        }
        for (; c < c16; c += 16) {
            float16 v = vload16(0, xr + c);
            a0 += v * v;
        }
        float16 a = (a0 + a1) + (a2 + a3);
        float8 b = a.lo + a.hi;
        float4 d = b.lo + b.hi;
        float2 e = d.lo + d.hi;
        float squares = e.x + e.y;
        for (; c < C; ++c)
            squares += xr[c] * xr[c];

        float inv = 1.0f / sqrt(squares / (float)C + 1e-5f);

        if ((((size_t)yr) & 63) == 0) {
            for (c = 0; c < c16; c += 16) {
                float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                __builtin_nontemporal_store(v, (__global float16 *)(yr + c));
            }
        } else {
            for (c = 0; c < c16; c += 16) {
                float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                vstore16(v, 0, yr + c);
            }
        }
        for (c = c16; c < C; ++c)
            yr[c] = xr[c] * inv * gamma[c];
    }
}
