/*klineage
surface = "opencl"

[[workspace]]
name = "u"
dtype = "f32"
shape = ["ceil_div(F, 16)", "16", "C", "16"]
init = "poison"

[[launch]]
kernel = "weights"
grid = ["ceil_div(F, 16) * C"]
block = ["1"]
args = ["weight", "u", "int C", "int F"]

[[launch]]
kernel = "conv2d"
grid = ["N * ceil_div(H, 2) * ceil_div(W, 28)"]
block = ["1"]
args = ["x", "u", "y", "int N", "int H", "int W", "int C", "int F", "local 4 * 16 * 14 * round_up(C, 16)"]
*/

#pragma OPENCL FP_CONTRACT ON

// u[fb][4 i + j][c][16] = (G g G^T)[i][j], zero where there is no filter.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights(__global const float *restrict weight, __global float *restrict u, int C, int F)
{
    int id = get_group_id(0);
    int fb = id / C;
    int c = id % C;
    int rem = F - fb * 16;
    float16 t[4][3];
    for (int s = 0; s < 3; ++s) {
        float16 g[3];
        for (int r = 0; r < 3; ++r) {
            __global const float *p = weight + (size_t)((r * 3 + s) * C + c) * F + fb * 16;
            if (rem >= 16) {
                g[r] = vload16(0, p);
            } else {
                float b[16];
                for (int k = 0; k < 16; ++k)
                    b[k] = k < rem ? p[k] : 0.0f;
                g[r] = vload16(0, b);
            }
        }
        t[0][s] = g[0];
        t[1][s] = 0.5f * (g[0] + g[1] + g[2]);
        t[2][s] = 0.5f * (g[0] - g[1] + g[2]);
        t[3][s] = g[2];
    }
    __global float *o = u + ((size_t)fb * 16 * C + c) * 16;
    for (int i = 0; i < 4; ++i) {
        vstore16(t[i][0], 0, o + (size_t)(4 * i + 0) * C * 16);
        vstore16(0.5f * (t[i][0] + t[i][1] + t[i][2]), 0, o + (size_t)(4 * i + 1) * C * 16);
        vstore16(0.5f * (t[i][0] - t[i][1] + t[i][2]), 0, o + (size_t)(4 * i + 2) * C * 16);
        vstore16(t[i][2], 0, o + (size_t)(4 * i + 3) * C * 16);
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
        float16 d0 = pixel(x, n, h0 - 1, (col), H, W, C, cb * 16); \
        float16 d1 = pixel(x, n, h0, (col), H, W, C, cb * 16); \
        float16 d2 = pixel(x, n, h0 + 1, (col), H, W, C, cb * 16); \
        float16 d3 = pixel(x, n, h0 + 2, (col), H, W, C, cb * 16); \
        q##0 = d0 - d2; q##1 = d1 + d2; q##2 = d2 - d1; q##3 = d1 - d3; }

#define ROW(i) \
        vstore16(p##i - r##i, 0, o + (4 * i + 0) * plane); \
        vstore16(q##i + r##i, 0, o + (4 * i + 1) * plane); \
        vstore16(r##i - q##i, 0, o + (4 * i + 2) * plane); \
        vstore16(q##i - s##i, 0, o + (4 * i + 3) * plane);

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define ZERO(t) float16 a##t = (float16)(0.0f);
#define STEP(t) a##t = (float16)(v[t * 16]) * b + a##t;
#define KEEP(t) m[t][xi] = a##t;

// One work-group of one work-item: 14 tiles of 2 x 2 pixels of a row of tiles, all filters.
// v[4 i + j][channel block][tile][16 channels]
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void conv2d(__global const float *restrict x, __global const float *restrict u, __global float *restrict y,
                     int N, int H, int W, int C, int F, __local float *restrict vs)
{
    int strips = (W + 27) / 28;
    int rows = (H + 1) / 2;
    int id = get_group_id(0);
    int w0 = id % strips * 28;
    int h0 = id / strips % rows * 2;
    int n = id / strips / rows;
    int cbs = (C + 15) / 16;
    int fbs = (F + 15) / 16;
    int plane = cbs * 14 * 16;

    for (int cb = 0; cb < cbs; ++cb) {
        float16 p0, p1, p2, p3, q0, q1, q2, q3, r0, r1, r2, r3, s0, s1, s2, s3;
        COLUMN(p, w0 - 1)
        COLUMN(q, w0)
        for (int t = 0; t < 14; ++t) {
            COLUMN(r, w0 + 2 * t + 1)
            COLUMN(s, w0 + 2 * t + 2)
            __local float *o = vs + (cb * 14 + t) * 16;
            ROW(0)
            ROW(1)
            ROW(2)
            ROW(3)
            p0 = r0; p1 = r1; p2 = r2; p3 = r3;
            q0 = s0; q1 = s1; q2 = s2; q3 = s3;
        }
    }

    for (int fb = 0; fb < fbs; ++fb) {
        float16 m[14][16];
        for (int xi = 0; xi < 16; ++xi) {
            __global const float *g = u + (size_t)(fb * 16 + xi) * C * 16;
            EACH(ZERO)
            for (int cb = 0; cb < cbs; ++cb) {
                __local const float *v = vs + xi * plane + cb * 14 * 16;
                int count = min(16, C - cb * 16);
                for (int k = 0; k < count; ++k) {
                    float16 b = vload16(0, g);
                    EACH(STEP)
                    g += 16;
                    v += 1;
                }
            }
            EACH(KEEP)
        }
        for (int t = 0; t < 14; ++t) {
            int w = w0 + 2 * t;
            if (w >= W)
                break;
            float16 e[4], d[4];
            for (int j = 0; j < 4; ++j) {
                e[j] = m[t][j] + m[t][4 + j] + m[t][8 + j];
                d[j] = m[t][4 + j] - m[t][8 + j] - m[t][12 + j];
            }
            put(y, n, h0, w, H, W, F, fb * 16, e[0] + e[1] + e[2]);
            put(y, n, h0, w + 1, H, W, F, fb * 16, e[1] - e[2] - e[3]);
            put(y, n, h0 + 1, w, H, W, F, fb * 16, d[0] + d[1] + d[2]);
            put(y, n, h0 + 1, w + 1, H, W, F, fb * 16, d[1] - d[2] - d[3]);
        }
    }
}
