/*klineage
surface = "opencl"

[[tunable]]
name = "T"
default = 12
values = [7, 8, 12, 14]

[[workspace]]
name = "u"
dtype = "f32"
shape = ["ceil_div(F, 16)", "16", "round_up(C, 16)", "16"]
init = "poison"

[[launch]]
kernel = "transform_weights"
grid = ["ceil_div(ceil_div(F, 16) * round_up(C, 16), 16)"]
block = ["16"]
args = ["weight", "u", "int C", "int F"]

[[launch]]
kernel = "winograd"
grid = ["ceil_div(N * ceil_div(H, 2) * ceil_div(W, 2), T)"]
block = ["1"]
args = ["x", "u", "y", "int N", "int H", "int W", "int C", "int F", "local 1024 * T * ceil_div(C, 16)", "local 1024 * T"]
*/

// n < 16 elements, the other lanes zero
float16 load_part(__global const float *p, int n)
{
    float part[16];
    for (int i = 0; i < 16; ++i)
        part[i] = 0.0f;
    for (int i = 0; i < n; ++i)
        part[i] = p[i];
    return vload16(0, part);
}

// u[f / 16][k][c][f % 16] = (G g Gᵀ)[k], zero beyond the channels and filters. One work-item: one channel, 16 filters.
__kernel void transform_weights(__global const float *weight, __global float *u, int C, int F)
{
    int channels = (C + 15) / 16 * 16;
    int i = get_global_id(0);
    if (i >= (F + 15) / 16 * channels)
        return;
    int c = i % channels;
    int f = i / channels * 16;

    float16 g[9];
    #pragma unroll
    for (int k = 0; k < 9; ++k) {
        __global const float *p = weight + (k * C + c) * F + f;
        if (c >= C)
            g[k] = (float16)(0.0f);
        else if (f + 16 <= F)
            g[k] = vload16(0, p);
        else
            g[k] = load_part(p, F - f);
    }
    float16 a[12];
    #pragma unroll
    for (int s = 0; s < 3; ++s) {
        float16 even = g[s] + g[6 + s];
        a[s] = g[s];
        a[3 + s] = 0.5f * (even + g[3 + s]);
        a[6 + s] = 0.5f * (even - g[3 + s]);
        a[9 + s] = g[6 + s];
    }
    __global float *out = u + (i / channels * 16 * channels + c) * 16;
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        float16 even = a[r * 3] + a[r * 3 + 2];
        vstore16(a[r * 3], 0, out + (r * 4) * channels * 16);
        vstore16(0.5f * (even + a[r * 3 + 1]), 0, out + (r * 4 + 1) * channels * 16);
        vstore16(0.5f * (even - a[r * 3 + 1]), 0, out + (r * 4 + 2) * channels * 16);
        vstore16(a[r * 3 + 2], 0, out + (r * 4 + 3) * channels * 16);
    }
}

// v[k] = (Bᵀ d B)[k] of a patch d of 4 × 4 pixels, 16 channels; LOAD yields the pixel of row r and column s
#define TRANSFORM(LOAD)                                                              \
    float16 a[16];                                                                   \
    _Pragma("unroll")                                                                \
    for (int s = 0; s < 4; ++s) {                                                    \
        float16 d[4];                                                                \
        _Pragma("unroll")                                                            \
        for (int r = 0; r < 4; ++r)                                                  \
            d[r] = LOAD;                                                             \
        a[s] = d[0] - d[2];                                                          \
        a[4 + s] = d[1] + d[2];                                                      \
        a[8 + s] = d[2] - d[1];                                                      \
        a[12 + s] = d[1] - d[3];                                                     \
    }                                                                                \
    _Pragma("unroll")                                                                \
    for (int r = 0; r < 4; ++r) {                                                    \
        vstore16(a[r * 4] - a[r * 4 + 2], 0, out + (r * 4) * step);                  \
        vstore16(a[r * 4 + 1] + a[r * 4 + 2], 0, out + (r * 4 + 1) * step);          \
        vstore16(a[r * 4 + 2] - a[r * 4 + 1], 0, out + (r * 4 + 2) * step);          \
        vstore16(a[r * 4 + 1] - a[r * 4 + 3], 0, out + (r * 4 + 3) * step);          \
    }

// One work-item computes T tiles of 2 × 2 pixels for all filters.
// v[k][c / 16][t][c % 16]: transformed pixels; m[k][t][f % 16]: products, for 16 filters at a time.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void winograd(__global const float *x, __global const float *u, __global float *y, int N, int H, int W,
                       int C, int F, __local float *v, __local float *m)
{
    int chunks = (C + 15) / 16;
    int across = (W + 1) / 2;
    int down = (H + 1) / 2;
    int tiles = N * down * across;
    int first = get_group_id(0) * T;
    int step = chunks * T * 16;

    for (int t = 0; t < T; ++t) {
        int tile = min(first + t, tiles - 1);
        int w = tile % across * 2 - 1;
        int h = tile / across % down * 2 - 1;
        int n = tile / (across * down);
        for (int ch = 0; ch < chunks; ++ch) {
            int left = C - ch * 16;
            __local float *out = v + (ch * T + t) * 16;
            __global const float *p = x + ((n * H + h) * W + w) * C + ch * 16;
            if (left >= 16 && h >= 0 && w >= 0 && h + 4 <= H && w + 4 <= W) {
                TRANSFORM(vload16(0, p + (r * W + s) * C))
            } else {
                // at the border: the patch is gathered into m, which is free here, with zeros outside of the image
                for (int i = 0; i < 16; ++i) {
                    int row = h + i / 4;
                    int col = w + i % 4;
                    int valid = row >= 0 && row < H && col >= 0 && col < W ? min(left, 16) : 0;
                    __global const float *q = x + ((n * H + row) * W + col) * C + ch * 16;
                    if (valid == 16) {
                        vstore16(vload16(0, q), 0, m + i * 16);
                    } else {
                        vstore16((float16)(0.0f), 0, m + i * 16);
                        for (int j = 0; j < valid; ++j)
                            m[i * 16 + j] = q[j];
                    }
                }
                TRANSFORM(vload16(0, m + (r * 4 + s) * 16))
            }
        }
    }

    for (int f = 0; f < F; f += 16) {
        __global const float *up = u + f * 16 * chunks * 16;
        __local const float *vp = v;
        for (int k = 0; k < 16; ++k) {
            float16 sum[T];
            #pragma unroll
            for (int t = 0; t < T; ++t)
                sum[t] = (float16)(0.0f);
            for (int ch = 0; ch < chunks; ++ch) {
                for (int c = 0; c < 16; ++c) {
                    float16 uk = vload16(0, up + c * 16);
                    #pragma unroll
                    for (int t = 0; t < T; ++t)
                        sum[t] += vp[t * 16 + c] * uk;
                }
                up += 256;
                vp += T * 16;
            }
            #pragma unroll
            for (int t = 0; t < T; ++t)
                vstore16(sum[t], 0, m + (k * T + t) * 16);
        }

        for (int t = 0; t < T; ++t) {
            int tile = first + t;
            if (tile >= tiles)
                break;
            int w = tile % across * 2;
            int h = tile / across % down * 2;
            int n = tile / (across * down);
            float16 a[8];
            #pragma unroll
            for (int s = 0; s < 4; ++s) {
                float16 m0 = vload16(0, m + (s * T + t) * 16);
                float16 m1 = vload16(0, m + ((4 + s) * T + t) * 16);
                float16 m2 = vload16(0, m + ((8 + s) * T + t) * 16);
                float16 m3 = vload16(0, m + ((12 + s) * T + t) * 16);
                a[s] = m0 + m1 + m2;
                a[4 + s] = m1 - m2 - m3;
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int s = 0; s < 2; ++s) {
                    if (h + r >= H || w + s >= W)
                        continue;
                    float16 o = s == 0 ? a[r * 4] + a[r * 4 + 1] + a[r * 4 + 2]
                                       : a[r * 4 + 1] - a[r * 4 + 2] - a[r * 4 + 3];
                    __global float *out = y + ((n * H + h + r) * W + w + s) * F + f;
                    if (f + 16 <= F) {
                        vstore16(o, 0, out);
                    } else {
                        float part[16];
                        vstore16(o, 0, part);
                        for (int i = 0; i < F - f; ++i)
                            out[i] = part[i];
                    }
                }
            }
        }
    }
}
