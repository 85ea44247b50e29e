/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 16
values = [4, 8, 16, 32, 64]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

// One work-item a group; it computes ROWS contiguous rows with 16-lane vectors.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict gamma, __global float *restrict y, int R, int C)
{
    int first = (int)get_group_id(0) * ROWS;
    int last = min(first + ROWS, R);
    int c16 = C & ~15;
    int c64 = C & ~63;
    int stream = ((C & 15) == 0) && ((((size_t)y) & 63) == 0);

    for (int row = first; row < last; ++row) {
        __global const float *xr = x + (size_t)row * (size_t)C;
        __global float *yr = y + (size_t)row * (size_t)C;

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
        float16 s = (s0 + s1) + (s2 + s3);
        float8 h = s.lo + s.hi;
        float4 q = h.lo + h.hi;
        float2 p = q.lo + q.hi;
        float squares = p.x + p.y;
        float rest = 0.0f;
        for (; c < C; ++c)
            rest += xr[c] * xr[c];
        squares += rest;

        float inv = 1.0f / sqrt(squares / (float)C + 1e-5f);

        if (stream) {
            for (c = 0; c < C; c += 16) {
                float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                __builtin_nontemporal_store(v, (__global float16 *)(yr + c));
            }
        } else {
            for (c = 0; c < c16; c += 16) {
                float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                vstore16(v, 0, yr + c);
            }
            for (; c < C; ++c)
                yr[c] = xr[c] * inv * gamma[c];
        }
    }
}
