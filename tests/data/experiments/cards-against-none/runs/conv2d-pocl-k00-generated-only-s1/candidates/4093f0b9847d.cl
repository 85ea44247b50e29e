/*klineage
surface = "opencl"

[[workspace]]
name = "u"
dtype = "f32"
shape = ["ceil_div(F, 32)", "16", "C + 1", "32"]
init = "poison"

[[launch]]
kernel = "weights"
grid = ["C"]
block = ["1"]
args = ["weight", "u", "int C", "int F"]

[[launch]]
kernel = "conv2d"
grid = ["N * ceil_div(H, 2) * ceil_div(W, 14)"]
block = ["1"]
args = ["x", "u", "y", "int N", "int H", "int W", "int C", "int F", "local 64 * (7 * round_up(C, 16) + 16)"]
*/

#pragma OPENCL FP_CONTRACT ON

#define WIDE __attribute__((min_vector_width(512)))

// u[fb][4 i + j][c][32] = (G g G^T)[i][j], zero where there is no filter; a row of padding after each plane
// keeps the 16 planes out of the same cache sets.
WIDE __attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights(__global const float *restrict weight, __global float *restrict u, int C, int F)
{
    int c = get_group_id(0);
    size_t plane = (size_t)(C + 1) * 32;
    for (int part = 0; part < (F + 31) / 32 * 2; ++part) {
        int f = part * 16;
        int rem = F - f;
        float16 t[4][3];
        for (int s = 0; s < 3; ++s) {
            float16 g[3];
            for (int r = 0; r < 3; ++r) {
                __global const float *p = weight + (size_t)((r * 3 + s) * C + c) * F;
                if (rem >= 16) {
                    g[r] = vload16(0, p + f);
                } else {
                    float b[16];
                    for (int k = 0; k < 16; ++k)
                        b[k] = k < rem ? p[f + k] : 0.0f;
                    g[r] = vload16(0, b);
                }
            }
            t[0][s] = g[0];
            t[1][s] = 0.5f * (g[0] + g[1] + g[2]);
            t[2][s] = 0.5f * (g[0] - g[1] + g[2]);
            t[3][s] = g[2];
        }
        __global float *o = u + (size_t)(part / 2) * 16 * plane + c * 32 + part % 2 * 16;
        for (int i = 0; i < 4; ++i) {
            vstore16(t[i][0], 0, o + (4 * i + 0) * plane);
            vstore16(0.5f * (t[i][0] + t[i][1] + t[i][2]), 0, o + (4 * i + 1) * plane);
            vstore16(0.5f * (t[i][0] - t[i][1] + t[i][2]), 0, o + (4 * i + 2) * plane);
            vstore16(t[i][2], 0, o + (4 * i + 3) * plane);
        }
    }
}

inline float16 pixel(__global const float *x, int n, int h, int w, int H, int W, int C, int c)
{
    if (h < 0 || h >= H || w < 0 || w >= W)
        return (float16)(0.0f);
    __global const float *p = x + ((size_t)(n * H + h) * W + w) * C + c;
    int rem = C - c;
    if (rem >= 16)
        return vload16(0, p);
    float b[16];
    for (int k = 0; k < 16; ++k)
        b[k] = k < rem ? p[k] : 0.0f;
    return vload16(0, b);
}

inline void put(__global float *y, int n, int h, int w, int H, int W, int F, int f, float16 v)
{
    if (h >= H || w >= W)
        return;
    __global float *p = y + ((size_t)(n * H + h) * W + w) * F + f;
    int rem = F - f;
    if (rem >= 16) {
        vstore16(v, 0, p);
    } else {
        float b[16];
        vstore16(v, 0, b);
        for (int k = 0; k < rem; ++k)
            p[k] = b[k];
    }
}

#define COLUMN(q, col) { \
        float16 d0, d1, d2, d3; \
        int at = (col); \
        if (inside && at >= 0 && at < W) { \
            __global const float *from = x + ((size_t)(n * H + h0 - 1) * W + at) * C + cb * 16; \
            d0 = vload16(0, from); \
            d1 = vload16(0, from + line); \
            d2 = vload16(0, from + 2 * line); \
            d3 = vload16(0, from + 3 * line); \
        } else { \
            d0 = pixel(x, n, h0 - 1, at, H, W, C, cb * 16); \
            d1 = pixel(x, n, h0, at, H, W, C, cb * 16); \
            d2 = pixel(x, n, h0 + 1, at, H, W, C, cb * 16); \
            d3 = pixel(x, n, h0 + 2, at, H, W, C, cb * 16); \
        } \
        q##0 = d0 - d2; q##1 = d1 + d2; q##2 = d2 - d1; q##3 = d1 - d3; }

#define ROW(i) \
        vstore16(p##i - r##i, 0, o + (4 * i + 0) * plane); \
        vstore16(q##i + r##i, 0, o + (4 * i + 1) * plane); \
        vstore16(r##i - q##i, 0, o + (4 * i + 2) * plane); \
        vstore16(q##i - s##i, 0, o + (4 * i + 3) * plane);

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6)
#define ZERO(t) float16 a##t = (float16)(0.0f), e##t = (float16)(0.0f);
#define STEP(t) { float16 z = (float16)(v[t * 16]); a##t = z * b0 + a##t; e##t = z * b1 + e##t; }
#define KEEP(t) m[0][t][xi] = a##t; m[1][t][xi] = e##t;

// One work-group of one work-item: 7 tiles of 2 x 2 pixels of a row of tiles, all filters.
// v[4 i + j][channel block][tile][16 channels]
WIDE __attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void conv2d(__global const float *restrict x, __global const float *restrict u, __global float *restrict y,
                     int N, int H, int W, int C, int F, __local float *restrict vs)
{
    int strips = (W + 13) / 14;
    int rows = (H + 1) / 2;
    int id = get_group_id(0);
    int w0 = id % strips * 14;
    int h0 = id / strips % rows * 2;
    int n = id / strips / rows;
    int cbs = (C + 15) / 16;
    int fbs = (F + 31) / 32;
    int nw = (id + 1) % strips * 14;
    int nh = (id + 1) / strips / rows * H + (id + 1) / strips % rows * 2 - 1;
    int plane = cbs * 7 * 16 + 16;

    size_t line = (size_t)W * C;
    for (int cb = 0; cb < cbs; ++cb) {
        bool inside = h0 >= 1 && h0 + 2 < H && cb * 16 + 16 <= C;
        float16 p0, p1, p2, p3, q0, q1, q2, q3, r0, r1, r2, r3, s0, s1, s2, s3;
        COLUMN(p, w0 - 1)
        COLUMN(q, w0)
        for (int t = 0; t < 7; ++t) {
            COLUMN(r, w0 + 2 * t + 1)
            COLUMN(s, w0 + 2 * t + 2)
            __local float *o = vs + (cb * 7 + t) * 16;
            ROW(0)
            ROW(1)
            ROW(2)
            ROW(3)
            p0 = r0; p1 = r1; p2 = r2; p3 = r3;
            q0 = s0; q1 = s1; q2 = s2; q3 = s3;
        }
    }

    for (int fb = 0; fb < fbs; ++fb) {
        float16 m[2][7][16];
        for (int xi = 0; xi < 16; ++xi) {
            __global const float *g = u + (size_t)(fb * 16 + xi) * (C + 1) * 32;
            if (fb == 0) { // the pixels of the next group come from memory while this one multiplies
                int row = min(nh + xi % 4, N * H - 1);
                int col = min(nw + xi / 4 * 4, W - 1);
                __global const float *next = x + ((size_t)max(row, 0) * W + col) * C;
                int count = min(4, W - col) * C;
                for (int k = 0; k < count; k += 16)
                    __builtin_prefetch(next + k, 0, 2);
            }
            { // the lines of y that this block of filters will fill
                int row = h0 + xi % 2;
                int col = w0 + xi / 2 * 2;
                if (xi < 14 && row < H && col + 1 < W) {
                    __global float *to = y + ((size_t)(n * H + row) * W + col) * F + fb * 32;
                    __builtin_prefetch(to, 1, 3);
                    __builtin_prefetch(to + min(16, F - fb * 32 - 1), 1, 3);
                    __builtin_prefetch(to + F, 1, 3);
                    __builtin_prefetch(to + F + min(16, F - fb * 32 - 1), 1, 3);
                }
            }
            EACH(ZERO)
            for (int cb = 0; cb < cbs; ++cb) {
                __local const float *v = vs + xi * plane + cb * 7 * 16;
                int count = min(16, C - cb * 16);
                for (int k = 0; k < count; ++k) {
                    float16 b0 = vload16(0, g);
                    float16 b1 = vload16(1, g);
                    EACH(STEP)
                    g += 32;
                    v += 1;
                }
            }
            EACH(KEEP)
        }
        for (int part = 0; part < 2; ++part) {
            int f = fb * 32 + part * 16;
            if (f >= F)
                break;
            for (int t = 0; t < 7; ++t) {
                int w = w0 + 2 * t;
                if (w >= W)
                    break;
                float16 e[4], d[4];
                for (int j = 0; j < 4; ++j) {
                    float16 m1 = m[part][t][4 + j], m2 = m[part][t][8 + j];
                    e[j] = m[part][t][j] + m1 + m2;
                    d[j] = m1 - m2 - m[part][t][12 + j];
                }
                put(y, n, h0, w, H, W, F, f, e[0] + e[1] + e[2]);
                put(y, n, h0, w + 1, H, W, F, f, e[1] - e[2] - e[3]);
                put(y, n, h0 + 1, w, H, W, F, f, d[0] + d[1] + d[2]);
                put(y, n, h0 + 1, w + 1, H, W, F, f, d[1] - d[2] - d[3]);
            }
        }
    }
}
