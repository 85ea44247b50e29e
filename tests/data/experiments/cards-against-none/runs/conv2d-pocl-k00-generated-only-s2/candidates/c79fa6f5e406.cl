/*klineage
surface = "opencl"

[[tunable]]
name = "TILES"
default = 12
values = [6, 12, 24]

[[workspace]]
name = "U"
dtype = "f32"
shape = ["16 * C * round_up(F, 32)"]
init = "poison"

[[launch]]
kernel = "weights"
grid = ["C"]
block = ["1"]
args = ["weight", "U", "int C", "int F"]

[[launch]]
kernel = "winograd"
grid = ["ceil_div(N * ceil_div(H, 2) * ceil_div(W, 2), TILES)"]
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

// U[filter block][point][channel][32]
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void weights(__global const float *weight,
                                                                     __global float *U, int C, int F)
{
    int c = get_group_id(0);
    int Fp = (F + 31) / 32 * 32;
    for (int f = 0; f < Fp; f += 16) {
        float16 t[4][3];
        int left = F - f;
        for (int s = 0; s < 3; ++s) {
            float16 a = (float16)(0.0f), b = (float16)(0.0f), d = (float16)(0.0f);
            if (left > 0) {
                a = load_some(weight + (size_t)(s * C + c) * F + f, left);
                b = load_some(weight + (size_t)((3 + s) * C + c) * F + f, left);
                d = load_some(weight + (size_t)((6 + s) * C + c) * F + f, left);
            }
            t[0][s] = a;
            t[1][s] = 0.5f * (a + b + d);
            t[2][s] = 0.5f * (a - b + d);
            t[3][s] = d;
        }
        __global float *out = U + ((size_t)(f / 32) * 16 * C + c) * 32 + f % 32;
        size_t step = (size_t)C * 32;
        for (int i = 0; i < 4; ++i) {
            float16 a = t[i][0], b = t[i][1], d = t[i][2];
            vstore16(a, 0, out + (4 * i) * step);
            vstore16(0.5f * (a + b + d), 0, out + (4 * i + 1) * step);
            vstore16(0.5f * (a - b + d), 0, out + (4 * i + 2) * step);
            vstore16(d, 0, out + (4 * i + 3) * step);
        }
    }
}

#define ROW(i)                                  \
    {                                           \
        float16 a = (float16)(v[(i) * Cp + c]); \
        p##i = a * b0 + p##i;                   \
        q##i = a * b1 + q##i;                   \
    }
#define PUT(i)                           \
    vstore16(p##i, 0, out + (i) * 32);   \
    vstore16(q##i, 0, out + (i) * 32 + 16);

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd(__global const float *x,
    __global const float *U, __global float *y, int N, int H, int W, int C, int F, __local float *V,
    __local float *M)
{
    int TH = (H + 1) / 2, TW = (W + 1) / 2;
    int total = N * TH * TW;
    int first = (int)get_group_id(0) * TILES;
    int Cp = (C + 15) / 16 * 16;

    // V[point][tile][channel]
    for (int t = 0; t < TILES; ++t) {
        int tile = first + t;
        int ok = tile < total;
        int tw = tile % TW, th = tile / TW % TH, n = tile / (TW * TH);
        int h = 2 * th - 1, w = 2 * tw - 1;
        int inside = ok && h >= 0 && w >= 0 && h + 3 < H && w + 3 < W;
        for (int c = 0; c < Cp; c += 16) {
            int left = C - c;
            float16 d[4][4];
            if (inside && left >= 16) {
                __global const float *src = x + ((size_t)(n * H + h) * W + w) * C + c;
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j)
                        d[i][j] = vload16(0, src + ((size_t)i * W + j) * C);
                }
            } else {
                for (int i = 0; i < 4; ++i)
                    for (int j = 0; j < 4; ++j) {
                        int row = h + i, col = w + j;
                        float16 e = (float16)(0.0f);
                        if (ok && row >= 0 && row < H && col >= 0 && col < W)
                            e = load_some(x + ((size_t)(n * H + row) * W + col) * C + c, left);
                        d[i][j] = e;
                    }
            }
            __local float *out = V + t * Cp + c;
            int step = TILES * Cp;
            float16 e[4][4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                e[0][j] = d[0][j] - d[2][j];
                e[1][j] = d[1][j] + d[2][j];
                e[2][j] = d[2][j] - d[1][j];
                e[3][j] = d[1][j] - d[3][j];
            }
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                vstore16(e[i][0] - e[i][2], 0, out + (4 * i) * step);
                vstore16(e[i][1] + e[i][2], 0, out + (4 * i + 1) * step);
                vstore16(e[i][2] - e[i][1], 0, out + (4 * i + 2) * step);
                vstore16(e[i][1] - e[i][3], 0, out + (4 * i + 3) * step);
            }
        }
    }

    for (int f = 0; f < F; f += 32) {
        // M[point][tile][32]
        for (int k = 0; k < 16; ++k) {
            __global const float *panel = U + ((size_t)(f / 32) * 16 + k) * C * 32;
            for (int t = 0; t < TILES; t += 6) {
                __local const float *v = V + (k * TILES + t) * Cp;
                __local float *out = M + (k * TILES + t) * 32;
                float16 p0 = (float16)(0.0f), p1 = p0, p2 = p0, p3 = p0, p4 = p0, p5 = p0;
                float16 q0 = p0, q1 = p0, q2 = p0, q3 = p0, q4 = p0, q5 = p0;
                for (int c = 0; c < C; ++c) {
                    float16 b0 = vload16(0, panel + c * 32);
                    float16 b1 = vload16(0, panel + c * 32 + 16);
                    ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)
                }
                PUT(0) PUT(1) PUT(2) PUT(3) PUT(4) PUT(5)
            }
        }
        for (int t = 0; t < TILES; ++t) {
            int tile = first + t;
            if (tile >= total)
                break;
            int tw = tile % TW, th = tile / TW % TH, n = tile / (TW * TH);
            int h = 2 * th, w = 2 * tw;
            for (int g = 0; g < 32; g += 16) {
                int left = F - f - g;
                if (left <= 0)
                    break;
                __local const float *m = M + t * 32 + g;
                float16 a[2][4];
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    float16 m0 = vload16(0, m + j * TILES * 32);
                    float16 m1 = vload16(0, m + (4 + j) * TILES * 32);
                    float16 m2 = vload16(0, m + (8 + j) * TILES * 32);
                    float16 m3 = vload16(0, m + (12 + j) * TILES * 32);
                    a[0][j] = m0 + m1 + m2;
                    a[1][j] = m1 - m2 - m3;
                }
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    if (h + i < H) {
                        __global float *out = y + ((size_t)(n * H + h + i) * W + w) * F + f + g;
                        store_some(a[i][0] + a[i][1] + a[i][2], out, left);
                        if (w + 1 < W)
                            store_some(a[i][1] - a[i][2] - a[i][3], out + F, left);
                    }
                }
            }
        }
    }
}
