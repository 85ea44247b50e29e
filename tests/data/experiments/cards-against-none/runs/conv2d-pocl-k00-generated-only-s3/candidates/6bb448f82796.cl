/*klineage
surface = "opencl"

[[tunable]]
name = "T"
default = 12
values = [12, 24]

[[workspace]]
name = "U"
dtype = "f32"
shape = ["sm_count", "16", "ceil_div(F, 32)", "C", "32"]
init = "poison"

[[launch]]
kernel = "wino_conv"
grid = ["sm_count"]
block = ["1"]
args = ["x", "weight", "U", "y", "int N", "int H", "int W", "int C", "int F", "local 64 * T * round_up(C, 16)"]
*/
#pragma OPENCL FP_CONTRACT ON

inline float8 load8_part(__global const float *p, int n)
{
    if (n >= 8)
        return vload8(0, p);
    float b[8];
    for (int i = 0; i < 8; ++i)
        b[i] = 0.0f;
    for (int i = 0; i < n; ++i)
        b[i] = p[i];
    return vload8(0, b);
}

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

#define COLUMN(j, D0, D1, D2, D3)                                   \
    {                                                               \
        float8 d0 = D0, d1 = D1, d2 = D2, d3 = D3;                  \
        a[0][j] = d0 - d2;                                          \
        a[1][j] = d1 + d2;                                          \
        a[2][j] = d2 - d1;                                          \
        a[3][j] = d1 - d3;                                          \
    }
#define ROW(i)                                                      \
    {                                                               \
        vstore8(a[i][0] - a[i][2], 0, v + (i * 4 + 0) * vstep);     \
        vstore8(a[i][1] + a[i][2], 0, v + (i * 4 + 1) * vstep);     \
        vstore8(a[i][2] - a[i][1], 0, v + (i * 4 + 2) * vstep);     \
        vstore8(a[i][1] - a[i][3], 0, v + (i * 4 + 3) * vstep);     \
    }
#define FAST(j)                                                     \
    COLUMN(j, vload8(0, q + j * C), vload8(0, q + rs + j * C),      \
           vload8(0, q + 2 * rs + j * C), vload8(0, q + 3 * rs + j * C))
#define EDGE1(i, j)                                                 \
    ((h0 + i >= 0 && h0 + i < H && w0 + j >= 0 && w0 + j < W)       \
         ? load8_part(x + ((n * H + h0 + i) * W + w0 + j) * C + c, C - c) : (float8)(0.0f))
#define EDGE(j) COLUMN(j, EDGE1(0, j), EDGE1(1, j), EDGE1(2, j), EDGE1(3, j))

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void wino_conv(__global const float *x, __global const float *weight, __global float *Uall,
               __global float *y, int N, int H, int W, int C, int F, __local float *V)
{
    float16 M[16 * T * 2];
    int TH = (H + 1) / 2;
    int TW = (W + 1) / 2;
    int tiles = N * TH * TW;
    int CP = (C + 15) / 16 * 16;
    int FB = (F + 31) / 32;
    int vstep = T * CP;
    int chunks = (tiles + T - 1) / T;
    int groups = get_num_groups(0);
    int me = get_group_id(0);
    int first = (int)((long)chunks * me / groups);
    int last = (int)((long)chunks * (me + 1) / groups);
    if (first >= last)
        return;

    // U[p][fb][c][32] = G g G^T, this group's own copy
    size_t step = (size_t)FB * C * 32;
    __global float *U = Uall + (size_t)me * 16 * step;
    for (int c = 0; c < C; ++c) {
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

    for (int chunk = first; chunk < last; ++chunk) {
        int t0 = chunk * T;
        // V[p][t][c] = B^T d B
        for (int t = 0; t < T; ++t) {
            int id = min(t0 + t, tiles - 1);
            int tw = id % TW;
            int th = id / TW % TH;
            int n = id / (TW * TH);
            int h0 = 2 * th - 1;
            int w0 = 2 * tw - 1;
            if (h0 >= 0 && h0 + 3 < H && w0 >= 0 && w0 + 3 < W && C % 8 == 0) {
                int rs = W * C;
                __global const float *q = x + ((n * H + h0) * W + w0) * C;
                __local float *v = V + t * CP;
                for (int c = 0; c < C; c += 8) {
                    float8 a[4][4];
                    FAST(0) FAST(1) FAST(2) FAST(3)
                    ROW(0) ROW(1) ROW(2) ROW(3)
                    q += 8;
                    v += 8;
                }
            } else {
                for (int c = 0; c < C; c += 8) {
                    float8 a[4][4];
                    EDGE(0) EDGE(1) EDGE(2) EDGE(3)
                    __local float *v = V + t * CP + c;
                    ROW(0) ROW(1) ROW(2) ROW(3)
                }
            }
        }

        for (int fb = 0; fb < FB; ++fb) {
            for (int p = 0; p < 16; ++p) {
                __global const float *ub = U + (size_t)(p * FB + fb) * C * 32;
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
                    for (int c = 0; c < C; ++c) {
                        float16 p0 = vload16(0, u);
                        float16 p1 = vload16(1, u);
                        u += 32;
                        float16 s;
                        s = (float16)(v0[c]); a0 = s * p0 + a0; b0 = s * p1 + b0;
                        s = (float16)(v1[c]); a1 = s * p0 + a1; b1 = s * p1 + b1;
                        s = (float16)(v2[c]); a2 = s * p0 + a2; b2 = s * p1 + b2;
                        s = (float16)(v3[c]); a3 = s * p0 + a3; b3 = s * p1 + b3;
                        s = (float16)(v4[c]); a4 = s * p0 + a4; b4 = s * p1 + b4;
                        s = (float16)(v5[c]); a5 = s * p0 + a5; b5 = s * p1 + b5;
                    }
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
                    store_part(r0[0] + r0[1] + r0[2], o, rem);
                    if (w + 1 < W)
                        store_part(r0[1] - r0[2] - r0[3], o + F, rem);
                    if (h + 1 < H) {
                        o += W * F;
                        store_part(r1[0] + r1[1] + r1[2], o, rem);
                        if (w + 1 < W)
                            store_part(r1[1] - r1[2] - r1[3], o + F, rem);
                    }
                }
            }
        }
    }
}
