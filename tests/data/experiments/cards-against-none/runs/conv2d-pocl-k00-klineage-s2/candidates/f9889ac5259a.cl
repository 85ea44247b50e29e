/*klineage
surface = "opencl"

[[tunable]]
name = "T"
default = 14
values = [7, 12, 14]

[[tunable]]
name = "NV"
default = 2
values = [1, 2]

[[workspace]]
name = "U"
dtype = "f32"
shape = ["16 * C * round_up(F, 16 * NV)"]
init = "poison"

[[launch]]
kernel = "weights"
grid = ["ceil_div(C, 16)", "ceil_div(F, 16 * NV) * NV"]
block = ["16", "1"]
args = ["weight", "U", "int C", "int F"]

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * ceil_div(H, 2) * ceil_div(W, 2), T)"]
block = ["1"]
args = ["x", "U", "y", "int N", "int H", "int W", "int C", "int F", "local 4 * 16 * T * 64", "local 4 * 16 * T * 16 * NV"]
*/

#define CB 64           // channels of a pass
#define FB (16 * NV)    // filters of a pass

// The first n of 16 floats, the rest 0.
float16 loadPart(__global const float *p, int n)
{
    if (n >= 16)
        return vload16(0, p);
    float t[16];
    for (int i = 0; i < 16; ++i)
        t[i] = i < n ? p[i] : 0.0f;
    return vload16(0, t);
}

void storePart(float16 v, __global float *p, int n)
{
    if (n >= 16) {
        vstore16(v, 0, p);
        return;
    }
    float t[16];
    vstore16(v, 0, t);
    for (int i = 0; i < n; ++i)
        p[i] = t[i];
}

// U[block of FB filters][xi][c][FB] = G g G^T; filters beyond F are 0.
__kernel void weights(__global const float *weight, __global float *U, int C, int F)
{
    int c = get_global_id(0);
    int v = get_global_id(1);
    if (c >= C)
        return;
    float16 g[3][3], t[4][3];
#pragma unroll
    for (int r = 0; r < 3; ++r)
#pragma unroll
        for (int s = 0; s < 3; ++s)
            g[r][s] = loadPart(weight + ((r * 3 + s) * C + c) * F + v * 16, F - v * 16);
#pragma unroll
    for (int s = 0; s < 3; ++s) {
        float16 e = 0.5f * (g[0][s] + g[2][s]), o = 0.5f * g[1][s];
        t[0][s] = g[0][s];
        t[1][s] = e + o;
        t[2][s] = e - o;
        t[3][s] = g[2][s];
    }
    __global float *u = U + ((v / NV) * 16 * C + c) * FB + v % NV * 16;
    int step = C * FB;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        float16 e = 0.5f * (t[r][0] + t[r][2]), o = 0.5f * t[r][1];
        vstore16(t[r][0], 0, u + (r * 4 + 0) * step);
        vstore16(e + o, 0, u + (r * 4 + 1) * step);
        vstore16(e - o, 0, u + (r * 4 + 2) * step);
        vstore16(t[r][2], 0, u + (r * 4 + 3) * step);
    }
}

// V[xi][tile][channel] = B^T d B for T tiles and kc channels from c0 on.
void inputs(__global const float *x, __local float *V, int first, int tiles, int TH, int TW, int H, int W, int C,
            int c0, int kc)
{
    for (int i = 0; i < T; ++i) {
        int tile = min(first + i, tiles - 1);       // tiles beyond the last are computed again and not stored
        int col = tile % TW * 2 - 1;
        int row = tile / TW % TH * 2 - 1;
        int n = tile / (TW * TH);
        bool inner = row >= 0 && row + 4 <= H && col >= 0 && col + 4 <= W;
        for (int c = 0; c < kc; c += 16) {
            float16 d[4][4];
#pragma unroll
            for (int r = 0; r < 4; ++r)
#pragma unroll
                for (int s = 0; s < 4; ++s) {
                    d[r][s] = 0.0f;
                    if (inner || (row + r >= 0 && row + r < H && col + s >= 0 && col + s < W))
                        d[r][s] = loadPart(x + ((n * H + row + r) * W + col + s) * C + c0 + c, C - c0 - c);
                }
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                float16 a = d[0][s] - d[2][s], b = d[1][s] + d[2][s];
                float16 e = d[2][s] - d[1][s], f = d[1][s] - d[3][s];
                d[0][s] = a;
                d[1][s] = b;
                d[2][s] = e;
                d[3][s] = f;
            }
            __local float *v = V + i * CB + c;
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                vstore16(d[r][0] - d[r][2], 0, v + (r * 4 + 0) * (T * CB));
                vstore16(d[r][1] + d[r][2], 0, v + (r * 4 + 1) * (T * CB));
                vstore16(d[r][2] - d[r][1], 0, v + (r * 4 + 2) * (T * CB));
                vstore16(d[r][1] - d[r][3], 0, v + (r * 4 + 3) * (T * CB));
            }
        }
    }
}

// A work-group of one work-item computes T tiles of 2 × 2 pixels, all filters.
__kernel void conv2d(__global const float *x, __global const float *U, __global float *y, int N, int H, int W, int C,
                     int F, __local float *V, __local float *M)
{
    int TH = (H + 1) / 2, TW = (W + 1) / 2;
    int tiles = N * TH * TW;
    int first = get_group_id(0) * T;

    for (int f0 = 0; f0 < F; f0 += FB) {
        for (int c0 = 0; c0 < C; c0 += CB) {
            int kc = min(CB, C - c0);
            if (f0 == 0 || C > CB)
                inputs(x, V, first, tiles, TH, TW, H, W, C, c0, kc);
            for (int xi = 0; xi < 16; ++xi) {
                __local const float *v = V + xi * (T * CB);
                __local float *m = M + xi * (T * FB);
                __global const float *u = U + ((f0 / FB * 16 + xi) * C + c0) * FB;
                float16 sum[T * NV];
#pragma unroll
                for (int i = 0; i < T * NV; ++i)
                    sum[i] = 0.0f;
                for (int c = 0; c < kc; ++c) {
                    float16 b[NV];
#pragma unroll
                    for (int j = 0; j < NV; ++j)
                        b[j] = vload16(j, u + c * FB);
#pragma unroll
                    for (int i = 0; i < T; ++i) {
                        float a = v[i * CB + c];
#pragma unroll
                        for (int j = 0; j < NV; ++j)
                            sum[i * NV + j] += a * b[j];
                    }
                }
                if (c0 > 0) {
#pragma unroll
                    for (int i = 0; i < T * NV; ++i)
                        sum[i] += vload16(i, m);
                }
#pragma unroll
                for (int i = 0; i < T * NV; ++i)
                    vstore16(sum[i], i, m);
            }
        }
        // y = A^T M A
        for (int i = 0; i < T && first + i < tiles; ++i) {
            int tile = first + i;
            int col = tile % TW * 2;
            int row = tile / TW % TH * 2;
            int n = tile / (TW * TH);
            for (int j = 0; j < NV; ++j) {
                int f = f0 + j * 16;
                if (f >= F)
                    break;
                float16 p[4], q[4];
#pragma unroll
                for (int s = 0; s < 4; ++s) {
                    float16 m0 = vload16(((0 + s) * T + i) * NV + j, M);
                    float16 m1 = vload16(((4 + s) * T + i) * NV + j, M);
                    float16 m2 = vload16(((8 + s) * T + i) * NV + j, M);
                    float16 m3 = vload16(((12 + s) * T + i) * NV + j, M);
                    p[s] = m0 + m1 + m2;
                    q[s] = m1 - m2 - m3;
                }
                __global float *out = y + ((n * H + row) * W + col) * F + f;
                storePart(p[0] + p[1] + p[2], out, F - f);
                if (col + 1 < W)
                    storePart(p[1] - p[2] - p[3], out + F, F - f);
                if (row + 1 < H) {
                    storePart(q[0] + q[1] + q[2], out + W * F, F - f);
                    if (col + 1 < W)
                        storePart(q[1] - q[2] - q[3], out + (W + 1) * F, F - f);
                }
            }
        }
    }
}
