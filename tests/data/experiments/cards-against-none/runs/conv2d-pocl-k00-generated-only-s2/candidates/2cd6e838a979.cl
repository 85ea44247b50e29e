/*klineage
surface = "opencl"

[[tunable]]
name = "TILES"
default = 14
values = [14, 28]

[[workspace]]
name = "U"
dtype = "f32"
shape = ["16 * round_up(C, 16) * round_up(F, 32)"]
init = "poison"

[[launch]]
kernel = "weights"
grid = ["round_up(C, 16)"]
block = ["1"]
args = ["weight", "U", "int C", "int F"]

[[launch]]
kernel = "winograd"
grid = ["1 + ceil_div(N * ceil_div(H, 2) * ceil_div(W, 2), TILES)"]
block = ["1"]
args = ["x", "U", "y", "int N", "int H", "int W", "int C", "int F", "local 64 * TILES * round_up(C, 16)", "local 2048 * TILES"]
*/

#pragma OPENCL FP_CONTRACT ON

static inline float16 load_some(__global const float *p, int left)
{
    if (left >= 16)
        return vload16(0, p);
    float t[16];
    for (int i = 0; i < 16; ++i)
        t[i] = i < left ? p[i] : 0.0f;
    return vload16(0, t);
}

static inline void store_some(float16 v, __global float *p, int left)
{
    if (left >= 16) {
        vstore16(v, 0, p);
        return;
    }
    float t[16];
    vstore16(v, 0, t);
    for (int i = 0; i < left; ++i)
        p[i] = t[i];
}

#define GROW(i, a, b, d)                                                  \
    {                                                                     \
        vstore16(a, 0, out + (4 * (i)) * step);                           \
        vstore16(0.5f * (a + b + d), 0, out + (4 * (i) + 1) * step);      \
        vstore16(0.5f * (a - b + d), 0, out + (4 * (i) + 2) * step);      \
        vstore16(d, 0, out + (4 * (i) + 3) * step);                       \
    }
#define GCOL(s)                                                           \
    float16 a##s = (float16)(0.0f), b##s = a##s, d##s = a##s;             \
    if (left > 0 && c < C) {                                              \
        a##s = load_some(weight + (size_t)((s) * C + c) * F + f, left);   \
        b##s = load_some(weight + (size_t)((3 + s) * C + c) * F + f, left); \
        d##s = load_some(weight + (size_t)((6 + s) * C + c) * F + f, left); \
    }                                                                     \
    float16 u##s = 0.5f * (a##s + b##s + d##s);                           \
    float16 v##s = 0.5f * (a##s - b##s + d##s);

// U[filter block][point][channel][32]
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void weights(__global const float *weight,
                                                                     __global float *U, int C, int F)
{
    int c = get_group_id(0);
    int Fp = (F + 31) / 32 * 32;
    int Cp = (C + 15) / 16 * 16;
    size_t step = (size_t)Cp * 32;
    for (int f = 0; f < Fp; f += 16) {
        int left = F - f;
        __global float *out = U + ((size_t)(f / 32) * 16 * Cp + c) * 32 + f % 32;
        GCOL(0) GCOL(1) GCOL(2)
        GROW(0, a0, a1, a2)
        GROW(1, u0, u1, u2)
        GROW(2, v0, v1, v2)
        GROW(3, d0, d1, d2)
    }
}

#define BCOL(j, LOAD)                                                     \
    {                                                                     \
        float16 d0 = LOAD(0, j), d1 = LOAD(1, j), d2 = LOAD(2, j), d3 = LOAD(3, j); \
        e0##j = d0 - d2;                                                  \
        e1##j = d1 + d2;                                                  \
        e2##j = d2 - d1;                                                  \
        e3##j = d1 - d3;                                                  \
    }
#define BROW(i)                                                           \
    vstore16(e##i##0 - e##i##2, 0, out + (4 * i) * step);                 \
    vstore16(e##i##1 + e##i##2, 0, out + (4 * i + 1) * step);             \
    vstore16(e##i##2 - e##i##1, 0, out + (4 * i + 2) * step);             \
    vstore16(e##i##1 - e##i##3, 0, out + (4 * i + 3) * step);
#define FAST(i, j) vload16(0, src + (i) * line + (j) * C)
#define SLOW(i, j) vload16((i) * 4 + (j), patch)

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define INIT(i) float16 p##i = (float16)(0.0f), q##i = (float16)(0.0f);
#define ROW(i)                                  \
    {                                           \
        float16 a = (float16)(v[(i) * 16 + c]); \
        p##i = a * b0 + p##i;                   \
        q##i = a * b1 + q##i;                   \
    }
#define PUT(i)                         \
    vstore16(p##i, 0, out + (i) * 32); \
    vstore16(q##i, 0, out + (i) * 32 + 16);

#define ACOL(j)                                                           \
    {                                                                     \
        float16 m0 = vload16(0, m + (j) * mstep);                         \
        float16 m1 = vload16(0, m + (4 + j) * mstep);                     \
        float16 m2 = vload16(0, m + (8 + j) * mstep);                     \
        float16 m3 = vload16(0, m + (12 + j) * mstep);                    \
        g##j = m0 + m1 + m2;                                              \
        h##j = m1 - m2 - m3;                                              \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd(__global const float *x,
    __global const float *U, __global float *y, int N, int H, int W, int C, int F, __local float *V,
    __local float *M)
{
    // Group 0 is empty: the thread that starts first takes one group more than its share.
    if (get_group_id(0) == 0)
        return;
    int TH = (H + 1) / 2, TW = (W + 1) / 2;
    int total = N * TH * TW;
    int first = ((int)get_group_id(0) - 1) * TILES;
    int blocks = (C + 15) / 16;
    int step = blocks * TILES * 16;
    const int mstep = TILES * 32;

    // V[point][channel block][tile][16]
    for (int t = 0; t < TILES; ++t) {
        int tile = first + t;
        int ok = tile < total;
        int tw = tile % TW, th = tile / TW % TH, n = tile / (TW * TH);
        int y0 = 2 * th - 1, x0 = 2 * tw - 1;
        int inside = ok && y0 >= 0 && x0 >= 0 && y0 + 3 < H && x0 + 3 < W;
        size_t line = (size_t)W * C;
        for (int cb = 0; cb < blocks; ++cb) {
            int left = C - cb * 16;
            __local float *out = V + (cb * TILES + t) * 16;
            float16 e00, e01, e02, e03, e10, e11, e12, e13, e20, e21, e22, e23, e30, e31, e32, e33;
            if (inside && left >= 16) {
                __global const float *src = x + ((size_t)(n * H + y0) * W + x0) * C + cb * 16;
                BCOL(0, FAST) BCOL(1, FAST) BCOL(2, FAST) BCOL(3, FAST)
            } else {
                float patch[256];
                for (int k = 0; k < 16; ++k) {
                    int row = y0 + k / 4, col = x0 + k % 4;
                    float16 z = (float16)(0.0f);
                    if (ok && row >= 0 && row < H && col >= 0 && col < W)
                        z = load_some(x + ((size_t)(n * H + row) * W + col) * C + cb * 16, left);
                    vstore16(z, k, patch);
                }
                BCOL(0, SLOW) BCOL(1, SLOW) BCOL(2, SLOW) BCOL(3, SLOW)
            }
            BROW(0) BROW(1) BROW(2) BROW(3)
        }
    }

    for (int f = 0; f < F; f += 32) {
        // M[point][tile][32]
        for (int k = 0; k < 16; ++k) {
            for (int t = 0; t < TILES; t += 14) {
                __global const float *b = U + ((size_t)(f / 32) * 16 + k) * blocks * 512;
                __local const float *v = V + k * step + t * 16;
                __local float *out = M + k * mstep + t * 32;
                EACH(INIT)
                for (int cb = 0; cb < blocks; ++cb) {
                    for (int c = 0; c < 16; ++c) {
                        float16 b0 = vload16(0, b);
                        float16 b1 = vload16(1, b);
                        EACH(ROW)
                        b += 32;
                    }
                    v += TILES * 16;
                }
                EACH(PUT)
            }
        }
        for (int t = 0; t < TILES && first + t < total; ++t) {
            int tile = first + t;
            int tw = tile % TW, th = tile / TW % TH, n = tile / (TW * TH);
            int row = 2 * th, col = 2 * tw;
            for (int part = 0; part < 32 && f + part < F; part += 16) {
                int left = F - f - part;
                __local const float *m = M + t * 32 + part;
                float16 g0, g1, g2, g3, h0, h1, h2, h3;
                ACOL(0) ACOL(1) ACOL(2) ACOL(3)
                __global float *out = y + ((size_t)(n * H + row) * W + col) * F + f + part;
                store_some(g0 + g1 + g2, out, left);
                if (col + 1 < W)
                    store_some(g1 - g2 - g3, out + F, left);
                if (row + 1 < H) {
                    out += (size_t)W * F;
                    store_some(h0 + h1 + h2, out, left);
                    if (col + 1 < W)
                        store_some(h1 - h2 - h3, out + F, left);
                }
            }
        }
    }
}
