/*klineage
surface = "opencl"

[[tunable]]
name = "T"
default = 12
values = [12, 24]

[[workspace]]
name = "U"
dtype = "f32"
shape = ["16", "ceil_div(F, 32)", "C", "32"]
init = "poison"

[[launch]]
kernel = "wino_weight"
grid = ["ceil_div(C, 4)"]
block = ["1"]
args = ["weight", "U", "int C", "int F"]

[[launch]]
kernel = "wino_conv"
grid = ["ceil_div(N * ceil_div(H, 2) * ceil_div(W, 2), T)"]
block = ["1"]
args = ["x", "U", "y", "int N", "int H", "int W", "int C", "int F", "local 64 * T * round_up(C, 16)"]
*/
#pragma OPENCL FP_CONTRACT ON

inline float16 load_part(__global const float *p, int n)
{
    if (n >= 16)
        return vload16(0, p);
    float b[16];
    for (int i = 0; i < 16; ++i)
        b[i] = 0.0f;
    for (int i = 0; i < n; ++i)
        b[i] = p[i];
    return vload16(0, b);
}

inline void store_part(float16 v, __global float *p, int n)
{
    if (n >= 16) {
        vstore16(v, 0, p);
        return;
    }
    float b[16];
    vstore16(v, 0, b);
    for (int i = 0; i < n; ++i)
        p[i] = b[i];
}

// Whole aligned lines of y go past the caches: nothing reads them here.
inline void stream_part(float16 v, __global float *p, int n)
{
    if (n >= 16 && ((size_t)p & 63) == 0)
        __builtin_nontemporal_store(v, (__global float16 *)p);
    else
        store_part(v, p, n);
}

// U[p][fb][c][32] = G g G^T
__kernel __attribute__((reqd_work_group_size(1, 1, 1), min_vector_width(512)))
void wino_weight(__global const float *weight, __global float *U, int C, int F)
{
    int FB = (F + 31) / 32;
    int c0 = get_group_id(0) * 4;
    int c1 = min(c0 + 4, C);
    size_t step = (size_t)FB * C * 32;
    // everything this group touches is asked for at once
    for (int k = 0; k < 9; ++k)
        for (int i = c0 * F; i < c1 * F; i += 16)
            __builtin_prefetch((const void *)(size_t)(weight + k * C * F + i), 0, 3);
    for (int p = 0; p < 16; ++p)
        for (int fb = 0; fb < FB; ++fb)
            for (int i = c0 * 32; i < c1 * 32; i += 16)
                __builtin_prefetch((const void *)(size_t)(U + p * step + (size_t)fb * C * 32 + i), 1, 3);
    for (int c = c0; c < c1; ++c) {
        for (int f0 = 0; f0 < FB * 32; f0 += 16) {
            int rem = F - f0;
            float16 t[4][3];
#pragma unroll
            for (int s = 0; s < 3; ++s) {
                float16 g0 = (float16)(0.0f), g1 = g0, g2 = g0;
                if (rem > 0) {
                    g0 = load_part(weight + ((0 + s) * C + c) * F + f0, rem);
                    g1 = load_part(weight + ((3 + s) * C + c) * F + f0, rem);
                    g2 = load_part(weight + ((6 + s) * C + c) * F + f0, rem);
                }
                float16 e = g0 + g2;
                t[0][s] = g0;
                t[1][s] = (e + g1) * 0.5f;
                t[2][s] = (e - g1) * 0.5f;
                t[3][s] = g2;
            }
            __global float *u = U + ((size_t)(f0 / 32) * C + c) * 32 + f0 % 32;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float16 e = t[i][0] + t[i][2];
                vstore16(t[i][0], 0, u);
                vstore16((e + t[i][1]) * 0.5f, 0, u + step);
                vstore16((e - t[i][1]) * 0.5f, 0, u + 2 * step);
                vstore16(t[i][2], 0, u + 3 * step);
                u += 4 * step;
            }
        }
    }
}

#define STEP(c)                                                     \
    {                                                               \
        float16 p0 = vload16(0, u + (c) * 32);                      \
        float16 p1 = vload16(1, u + (c) * 32);                      \
        float16 s;                                                  \
        s = (float16)(v0[c]); a0 = s * p0 + a0; b0 = s * p1 + b0;   \
        s = (float16)(v1[c]); a1 = s * p0 + a1; b1 = s * p1 + b1;   \
        s = (float16)(v2[c]); a2 = s * p0 + a2; b2 = s * p1 + b2;   \
        s = (float16)(v3[c]); a3 = s * p0 + a3; b3 = s * p1 + b3;   \
        s = (float16)(v4[c]); a4 = s * p0 + a4; b4 = s * p1 + b4;   \
        s = (float16)(v5[c]); a5 = s * p0 + a5; b5 = s * p1 + b5;   \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1), min_vector_width(512)))
void wino_conv(__global const float *restrict x, __global const float *restrict U, __global float *restrict y,
               int N, int H, int W, int C, int F, __local float *restrict V)
{
    float16 M[16 * T * 2];
    int TH = (H + 1) / 2;
    int TW = (W + 1) / 2;
    int tiles = N * TH * TW;
    int t0 = get_group_id(0) * T;
    int CP = (C + 15) / 16 * 16;
    int FB = (F + 31) / 32;
    int vstep = T * CP;

    // V[p][t][c] = B^T d B
    for (int t = 0; t < T; ++t) {
        int id = min(t0 + t, tiles - 1);
        int tw = id % TW;
        int th = id / TW % TH;
        int n = id / (TW * TH);
        int h0 = 2 * th - 1;
        int w0 = 2 * tw - 1;
        if (h0 >= 0 && h0 + 3 < H && w0 >= 0 && w0 + 3 < W && C % 16 == 0) {
            int rs = W * C;
            __global const float *q = x + ((n * H + h0) * W + w0) * C;
            __local float *v = V + t * CP;
            for (int c = 0; c < C; c += 16, q += 16, v += 16) {
                float16 a[4][4];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    float16 d0 = vload16(0, q + j * C);
                    float16 d1 = vload16(0, q + j * C + rs);
                    float16 d2 = vload16(0, q + j * C + 2 * rs);
                    float16 d3 = vload16(0, q + j * C + 3 * rs);
                    a[0][j] = d0 - d2;
                    a[1][j] = d1 + d2;
                    a[2][j] = d2 - d1;
                    a[3][j] = d1 - d3;
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    vstore16(a[i][0] - a[i][2], 0, v + (i * 4 + 0) * vstep);
                    vstore16(a[i][1] + a[i][2], 0, v + (i * 4 + 1) * vstep);
                    vstore16(a[i][2] - a[i][1], 0, v + (i * 4 + 2) * vstep);
                    vstore16(a[i][1] - a[i][3], 0, v + (i * 4 + 3) * vstep);
                }
            }
            continue;
        }
        for (int c = 0; c < C; c += 16) {
            float16 a[4][4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                int col = w0 + j;
                int okc = col >= 0 && col < W;
                float16 d[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    int row = h0 + i;
                    d[i] = (float16)(0.0f);
                    if (okc && row >= 0 && row < H)
                        d[i] = load_part(x + ((n * H + row) * W + col) * C + c, C - c);
                }
                a[0][j] = d[0] - d[2];
                a[1][j] = d[1] + d[2];
                a[2][j] = d[2] - d[1];
                a[3][j] = d[1] - d[3];
            }
            __local float *v = V + t * CP + c;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                vstore16(a[i][0] - a[i][2], 0, v + (i * 4 + 0) * vstep);
                vstore16(a[i][1] + a[i][2], 0, v + (i * 4 + 1) * vstep);
                vstore16(a[i][2] - a[i][1], 0, v + (i * 4 + 2) * vstep);
                vstore16(a[i][1] - a[i][3], 0, v + (i * 4 + 3) * vstep);
            }
        }
    }

    for (int fb = 0; fb < FB; ++fb) {
        for (int p = 0; p < 16; ++p) {
            __global const float *ub = U + (size_t)(p * FB + fb) * C * 32;
            if (fb == 0) {
                // rows of x that the next group's tiles need first, into L2 while this one multiplies
                for (int t = p; t < T; t += 16) {
                    int id = min(t0 + T + t, tiles - 1);
                    int w = id % TW * 2 + 1;
                    int h = id / TW % TH * 2 + 1;
                    int n = id / (TW * TH);
                    for (int i = 0; i < 2; ++i) {
                        __global const float *q = x + ((n * H + min(h + i, H - 1)) * W + min(w, W - 1)) * C;
                        int len = min(2, W - min(w, W - 1)) * C;
                        for (int k = 0; k < len; k += 16)
                            __builtin_prefetch((const void *)(size_t)(q + k), 0, 2);
                    }
                }
            }
            for (int g = 0; g < T; g += 6) {
                __local const float *v0 = V + p * vstep + g * CP;
                __local const float *v1 = v0 + CP;
                __local const float *v2 = v1 + CP;
                __local const float *v3 = v2 + CP;
                __local const float *v4 = v3 + CP;
                __local const float *v5 = v4 + CP;
                float16 z = (float16)(0.0f);
                float16 a0 = z, a1 = z, a2 = z, a3 = z, a4 = z, a5 = z;
                float16 b0 = z, b1 = z, b2 = z, b3 = z, b4 = z, b5 = z;
                __global const float *u = ub;
                // half of the next slice of U a pass
                __global const float *un = ub + (size_t)FB * C * 32 + g / 6 % 2 * 16;
                int c = 0;
                for (; c + 8 <= C; c += 8) {
#pragma unroll
                    for (int k = 0; k < 8; ++k) {
                        __builtin_prefetch((const void *)(size_t)(un + (c + k) * 32), 0, 3);
                        STEP(c + k)
                    }
                }
                for (; c < C; ++c)
                    STEP(c)
                float16 *m = M + (p * T + g) * 2;
                m[0] = a0; m[1] = b0;
                m[2] = a1; m[3] = b1;
                m[4] = a2; m[5] = b2;
                m[6] = a3; m[7] = b3;
                m[8] = a4; m[9] = b4;
                m[10] = a5; m[11] = b5;
            }
        }
        // y = A^T m A
        for (int t = 0; t < T && t0 + t < tiles; ++t) {
            int id = t0 + t;
            int tw = id % TW;
            int th = id / TW % TH;
            int n = id / (TW * TH);
            int h = 2 * th;
            int w = 2 * tw;
            for (int q = 0; q < 2; ++q) {
                int f0 = fb * 32 + q * 16;
                int rem = F - f0;
                if (rem <= 0)
                    break;
                float16 r0[4], r1[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    float16 m0 = M[((0 + j) * T + t) * 2 + q];
                    float16 m1 = M[((4 + j) * T + t) * 2 + q];
                    float16 m2 = M[((8 + j) * T + t) * 2 + q];
                    float16 m3 = M[((12 + j) * T + t) * 2 + q];
                    r0[j] = m0 + m1 + m2;
                    r1[j] = m1 - m2 - m3;
                }
                __global float *o = y + ((n * H + h) * W + w) * F + f0;
                stream_part(r0[0] + r0[1] + r0[2], o, rem);
                if (w + 1 < W)
                    stream_part(r0[1] - r0[2] - r0[3], o + F, rem);
                if (h + 1 < H) {
                    o += W * F;
                    stream_part(r1[0] + r1[1] + r1[2], o, rem);
                    if (w + 1 < W)
                        stream_part(r1[1] - r1[2] - r1[3], o + F, rem);
                }
            }
        }
    }
}
