/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 16
values = [8, 16, 32, 64]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

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

float inverse_root(float squares, int C)
{
    return 1.0f / sqrt(squares / (float)C + 1e-5f);
}

// One work-group of one work-item computes ROWS consecutive rows; while two rows are written,
// the next two are read and their squares are summed.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict gamma,
             __global float *restrict y, int R, int C)
{
    int first = (int)get_group_id(0) * ROWS;
    int last = min(first + ROWS, R);
    if (first >= last)
        return;
    int row = first;

    if ((C & 15) == 0 && (((size_t)y) & 63) == 0 && last - first >= 2) {
        __global const float *xa = x + (size_t)row * (size_t)C;
        __global float *ya = y + (size_t)row * (size_t)C;
        float sa = row_squares(xa, C);
        float sb = row_squares(xa + C, C);

        for (; row + 1 < last; row += 2) {
            __global const float *xb = xa + C;
            __global float *yb = ya + C;
            float ia = inverse_root(sa, C);
            float ib = inverse_root(sb, C);

            if (row + 3 < last) {
                __global const float *na = xb + C;
                __global const float *nb = na + C;
                float16 aa = (float16)(0.0f);
                float16 ab = (float16)(0.0f);
                for (int c = 0; c < C; c += 16) {
                    float16 pa = vload16(0, na + c);
                    float16 pb = vload16(0, nb + c);
                    float16 g = vload16(0, gamma + c);
                    float16 va = vload16(0, xa + c) * ia * g;
                    float16 vb = vload16(0, xb + c) * ib * g;
                    aa += pa * pa;
                    ab += pb * pb;
                    __builtin_nontemporal_store(va, (__global float16 *)(ya + c));
                    __builtin_nontemporal_store(vb, (__global float16 *)(yb + c));
                }
                sa = lane_sum(aa);
                sb = lane_sum(ab);
            } else {
                for (int c = 0; c < C; c += 16) {
                    float16 g = vload16(0, gamma + c);
                    float16 va = vload16(0, xa + c) * ia * g;
                    float16 vb = vload16(0, xb + c) * ib * g;
                    __builtin_nontemporal_store(va, (__global float16 *)(ya + c));
                    __builtin_nontemporal_store(vb, (__global float16 *)(yb + c));
                }
            }
            xa = xb + C;
            ya = yb + C;
        }
    }

    // What is left: an odd last row, or all rows of shapes that the pairs do not take.
    int c16 = C & ~15;
    for (; row < last; ++row) {
        __global const float *xr = x + (size_t)row * (size_t)C;
        __global float *yr = y + (size_t)row * (size_t)C;
        float inv = inverse_root(row_squares(xr, C), C);
        int c = 0;
        for (; c < c16; c += 16) {
            float16 v = vload16(0, xr + c) * inv * vload16(0, gamma + c);
            vstore16(v, 0, yr + c);
        }
        for (; c < C; ++c)
            yr[c] = xr[c] * inv * gamma[c];
    }
}
