/*klineage
surface = "opencl"

[[tunable]]
name = "TB"
default = 8
values = [7, 8, 12, 14]

[[workspace]]
name = "u"
dtype = "f32"
shape = ["16 * C * round_up(F, 32)"]
init = "poison"

[[launch]]
kernel = "wino_weights"
when = "F >= 16"
grid = ["ceil_div(C * ceil_div(F, 32), 8)"]
block = ["16"]
args = ["weight", "u", "int C", "int F"]

[[launch]]
kernel = "conv2d_wino"
when = "F >= 16"
grid = ["ceil_div(N * ceil_div(H, 2) * ceil_div(W, 2), TB)"]
block = ["1"]
args = ["x", "u", "y", "local 64 * TB * round_up(C, 16) + 1024", "int N", "int H", "int W", "int C", "int F"]

[[launch]]
kernel = "conv2d_narrow"
when = "F < 16"
grid = ["ceil_div(N * H * W * F, 64)"]
block = ["64"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]
*/

// u[xi][pair][c][2][16] = G g G^T; a pair is two groups of 16 filters. Groups at the end slide back to F - 16.
__kernel void wino_weights(__global const float *weight, __global float *u, int C, int F)
{
    int i = get_global_id(0);
    int pairs = (F + 31) / 32;
    if (i >= C * pairs * 2)
        return;
    int g = i / C;
    int c = i % C;
    int f = min(g * 16, F - 16);
    float16 a[4][3];
#pragma unroll
    for (int s = 0; s < 3; ++s) {
        float16 g0 = vload16(0, weight + (s * C + c) * F + f);
        float16 g1 = vload16(0, weight + ((3 + s) * C + c) * F + f);
        float16 g2 = vload16(0, weight + ((6 + s) * C + c) * F + f);
        a[0][s] = g0;
        a[1][s] = 0.5f * (g0 + g2 + g1);
        a[2][s] = 0.5f * (g0 + g2 - g1);
        a[3][s] = g2;
    }
    int step = pairs * C * 32;
    __global float *p = u + ((g / 2 * C + c) * 2 + g % 2) * 16;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float16 e = a[k][0] + a[k][2];
        vstore16(a[k][0], 0, p + (4 * k) * step);
        vstore16(0.5f * (e + a[k][1]), 0, p + (4 * k + 1) * step);
        vstore16(0.5f * (e - a[k][1]), 0, p + (4 * k + 2) * step);
        vstore16(a[k][2], 0, p + (4 * k + 3) * step);
    }
}

// Up to 16 channels of a pixel; what lies past the last channel is 0.
static inline float16 loadChannels(__global const float *p, int n)
{
    if (n >= 16)
        return vload16(0, p);
    float t[16];
    for (int k = 0; k < 16; ++k)
        t[k] = k < n ? p[k] : 0.0f;
    return vload16(0, t);
}

// One channel of the product: two vectors of weights, TB numbers of v, 2 TB multiply-adds.
#define STEP(c) \
    { \
        float16 w0 = vload16(0, up + (c) * 32); \
        float16 w1 = vload16(0, up + (c) * 32 + 16); \
        _Pragma("unroll") for (int t = 0; t < TB; ++t) \
        { \
            float e = vp[t * 16 + (c)]; \
            sum0[t] += e * w0; \
            sum1[t] += e * w1; \
        } \
    }

// One work-item: TB tiles of 2 x 2 pixels, all filters. v[xi][chunk of 16 channels][tile][16]. Needs F >= 16.
__kernel void conv2d_wino(__global const float *x, __global const float *u, __global float *y, __local float *v,
                          int N, int H, int W, int C, int F)
{
    int th = (H + 1) / 2;
    int tw = (W + 1) / 2;
    int tiles = N * th * tw;
    int first = get_group_id(0) * TB;
    int chunks = (C + 15) / 16;
    int pairs = (F + 31) / 32;
    int vstep = chunks * TB * 16 + 16; // a line more, so that the 16 stores of a tile spread over the sets of the cache

    int pixel[TB]; // the first pixel of each tile, and whether the image has a row below and a column beside it
    int below[TB];
    int beside[TB];
    for (int t = 0; t < TB; ++t) {
        int tile = min(first + t, tiles - 1);
        int row = tile / tw;
        int w = (tile - row * tw) * 2 - 1;
        int n = row / th;
        int h = (row - n * th) * 2 - 1;
        int corner = (n * H + h) * W + w;
        pixel[t] = corner + W + 1;
        below[t] = h + 2 < H;
        beside[t] = w + 2 < W;
        int inside = h >= 0 && h + 3 < H && w >= 0 && w + 3 < W;
        for (int k = 0; k < chunks; ++k) {
            int left = C - k * 16;
            __global const float *xp = x + k * 16;
            float16 d[4][4];
            float16 b[4][4];
            if (inside && left >= 16) {
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        d[i][j] = vload16(0, xp + (corner + i * W + j) * C);
            } else {
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        d[i][j] = (float16)(0.0f);
                        if (h + i >= 0 && h + i < H && w + j >= 0 && w + j < W)
                            d[i][j] = loadChannels(xp + (corner + i * W + j) * C, left);
                    }
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                b[0][j] = d[0][j] - d[2][j];
                b[1][j] = d[1][j] + d[2][j];
                b[2][j] = d[2][j] - d[1][j];
                b[3][j] = d[1][j] - d[3][j];
            }
            __local float *p = v + (k * TB + t) * 16;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                vstore16(b[i][0] - b[i][2], 0, p + (4 * i) * vstep);
                vstore16(b[i][1] + b[i][2], 0, p + (4 * i + 1) * vstep);
                vstore16(b[i][2] - b[i][1], 0, p + (4 * i + 2) * vstep);
                vstore16(b[i][1] - b[i][3], 0, p + (4 * i + 3) * vstep);
            }
        }
    }

    float16 m[2][16][TB];
    for (int g = 0; g < pairs; ++g) {
        for (int xi = 0; xi < 16; ++xi) {
            float16 sum0[TB], sum1[TB];
#pragma unroll
            for (int t = 0; t < TB; ++t) {
                sum0[t] = (float16)(0.0f);
                sum1[t] = (float16)(0.0f);
            }
            __global const float *up = u + (xi * pairs + g) * C * 32;
            __local const float *vp = v + xi * vstep;
            int left = C;
            for (; left >= 16; left -= 16) {
#pragma unroll 4
                for (int c = 0; c < 16; ++c)
                    STEP(c)
                up += 512;
                vp += TB * 16;
            }
            for (int c = 0; c < left; ++c)
                STEP(c)
#pragma unroll
            for (int t = 0; t < TB; ++t) {
                m[0][xi][t] = sum0[t];
                m[1][xi][t] = sum1[t];
            }
        }
        for (int q = 0; q < 2; ++q) {
            int f = min((g * 2 + q) * 16, F - 16); // past the end: the same values again
            for (int t = 0; t < TB && first + t < tiles; ++t) {
                float16 a[2][4];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    a[0][j] = m[q][j][t] + m[q][4 + j][t] + m[q][8 + j][t];
                    a[1][j] = m[q][4 + j][t] - m[q][8 + j][t] - m[q][12 + j][t];
                }
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    if (i == 0 || below[t]) {
                        __global float *yp = y + (pixel[t] + i * W) * F + f;
                        vstore16(a[i][0] + a[i][1] + a[i][2], 0, yp);
                        if (beside[t])
                            vstore16(a[i][1] - a[i][2] - a[i][3], 0, yp + F);
                    }
                }
            }
        }
    }
}

// For fewer than sixteen filters: one work-item computes one element of y.
__kernel void conv2d_narrow(__global const float *x, __global const float *weight, __global float *y, int N, int H,
                            int W, int C, int F)
{
    int i = get_global_id(0);
    if (i >= N * H * W * F)
        return;
    int f = i % F;
    int w = i / F % W;
    int h = i / (F * W) % H;
    int n = i / (F * W * H);

    float sum = 0.0f;
    for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
            int row = h + r - 1;
            int col = w + s - 1;
            if (row < 0 || row >= H || col < 0 || col >= W)
                continue;
            for (int c = 0; c < C; ++c)
                sum += x[((n * H + row) * W + col) * C + c] * weight[((r * 3 + s) * C + c) * F + f];
        }
    }
    y[i] = sum;
}
