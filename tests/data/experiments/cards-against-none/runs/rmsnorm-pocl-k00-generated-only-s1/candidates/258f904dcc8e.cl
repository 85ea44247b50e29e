/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 16
values = [8, 16, 32]

[[tunable]]
name = "AHEAD"
default = 1024
values = [256, 512, 1024, 2048]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

void fetch_line(__global const float *p)
{
    __builtin_prefetch((const void *)(size_t)p, 0, 3);
}

float lane_sum(float16 a)
{
    float8 b = a.lo + a.hi;
    float4 d = b.lo + b.hi;
    float2 e = d.lo + d.hi;
    return e.x + e.y;
}

float row_squares(__global const float *xr, int C)
{
    int c32 = C & ~31;
    int c16 = C & ~15;
    float16 a0 = (float16)(0.0f);
    float16 a1 = (float16)(0.0f);
    int c = 0;
    for (; c < c32; c += 32) {
        float16 v0 = vload16(0, xr + c);
        float16 v1 = vload16(0, xr + c + 16);
        a0 += v0 * v0;
        a1 += v1 * v1;
    }
    for (; c < c16; c += 16) {
        float16 v = vload16(0, xr + c);
        a0 += v * v;
    }
    float squares = lane_sum(a0 + a1);
    for (; c < C; ++c)
        squares += xr[c] * xr[c];
    return squares;
}

// One work-group of one work-item computes ROWS consecutive rows; while a row is written,
// the next one is read and its squares are summed.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict gamma,
             __global float *restrict y, int R, int C)
{
    int first = (int)get_group_id(0) * ROWS;
    int last = min(first + ROWS, R);
    if (first >= last)
        return;
    int c32 = C & ~31;
    int c16 = C & ~15;

    size_t end = (size_t)last * (size_t)C; // the group reads x only below this

    float squares = row_squares(x + (size_t)first * (size_t)C, C);

    for (int row = first; row < last; ++row) {
        __global const float *xr = x + (size_t)row * (size_t)C;
        __global float *yr = y + (size_t)row * (size_t)C;
        float inv = 1.0f / sqrt(squares / (float)C + 1e-5f);
        int aligned = (((size_t)yr) & 63) == 0;
        int c = 0;

        if (aligned && row + 1 < last) {
            __global const float *xn = xr + C;
            // Past the end of the group, the prefetch falls back to lines that are read anyway.
            size_t next = (size_t)(row + 1) * (size_t)C;
            size_t ahead = next + (size_t)C + AHEAD <= end ? (size_t)AHEAD : (size_t)0;
            __global const float *xp = xn + ahead;
            float16 a0 = (float16)(0.0f);
            float16 a1 = (float16)(0.0f);
            for (; c < c32; c += 32) {
                fetch_line(xp + c);
                fetch_line(xp + c + 16);
                float16 n0 = vload16(0, xn + c);
                float16 n1 = vload16(0, xn + c + 16);
                float16 v0 = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                float16 v1 = vload16(0, xr + c + 16) * inv * vload16(0, gamma + c + 16);
                a0 += n0 * n0;
                a1 += n1 * n1;
                __builtin_nontemporal_store(v0, (__global float16 *)(yr + c));
                __builtin_nontemporal_store(v1, (__global float16 *)(yr + c + 16));
            }
            for (; c < c16; c += 16) {
                float16 n0 = vload16(0, xn + c);
                float16 v0 = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                a0 += n0 * n0;
                __builtin_nontemporal_store(v0, (__global float16 *)(yr + c));
            }
            squares = lane_sum(a0 + a1);
            for (; c < C; ++c) {
                yr[c] = xr[c] * inv * gamma[c];
                squares += xn[c] * xn[c];
            }
        } else {
            if (aligned) {
                for (; c < c16; c += 16) {
                    float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                    __builtin_nontemporal_store(v, (__global float16 *)(yr + c));
                }
            } else {
                for (; c < c16; c += 16) {
                    float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
                    vstore16(v, 0, yr + c);
                }
            }
            for (; c < C; ++c)
                yr[c] = xr[c] * inv * gamma[c];
            if (row + 1 < last)
                squares = row_squares(xr + C, C);
        }
    }
}
