/*klineage
surface = "opencl"

[[tunable]]
name = "PW"
default = 8
values = [4, 8, 14]

[[launch]]
kernel = "conv2d_narrow"
when = "F < 16"
grid = ["ceil_div(F, 16)", "N * H * ceil_div(W, PW)"]
block = ["16", "1"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]

[[launch]]
kernel = "conv2d"
when = "F >= 16"
grid = ["ceil_div(F, 64)", "N * H * ceil_div(W, PW)"]
block = ["4", "1"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]
*/

// Fewer filters than a vector has lanes: one filter a work-item.
__kernel void conv2d_narrow(__global const float *x, __global const float *weight, __global float *y, int N, int H,
                     int W, int C, int F)
{
    int f = get_global_id(0);
    int tile = get_global_id(1);
    int tiles = (W + PW - 1) / PW;
    int w = tile % tiles * PW;
    int line = tile / tiles;            // n * H + h
    if (f >= F || line >= N * H)
        return;
    int h = line % H;

    float sum[PW];
#pragma unroll
    for (int i = 0; i < PW; ++i)
        sum[i] = 0.0f;

    for (int r = 0; r < 3; ++r) {
        int row = h + r - 1;
        if (row < 0 || row >= H)
            continue;
        __global const float *xr = x + (line + r - 1) * W * C;
        for (int s = 0; s < 3; ++s) {
            int col = w + s - 1;
            __global const float *wp = weight + (r * 3 + s) * C * F + f;
            if (col >= 0 && col + PW <= W) {
                __global const float *xp = xr + col * C;
                for (int c = 0; c < C; ++c) {
                    float b = wp[c * F];
#pragma unroll
                    for (int i = 0; i < PW; ++i)
                        sum[i] += xp[i * C + c] * b;
                }
            } else {
                for (int c = 0; c < C; ++c) {
                    float b = wp[c * F];
#pragma unroll
                    for (int i = 0; i < PW; ++i) {
                        int q = clamp(col + i, 0, W - 1);
                        float v = xr[q * C + c];
                        sum[i] += (q == col + i ? v : 0.0f) * b;
                    }
                }
            }
        }
    }

    __global float *yp = y + (line * W + w) * F + f;
#pragma unroll
    for (int i = 0; i < PW; ++i)
        if (w + i < W)
            yp[i * F] = sum[i];
}

// 16 neighbouring filters of PW neighbouring pixels a work-item; the last vector slides back (F >= 16).
__kernel void conv2d(__global const float *x, __global const float *weight, __global float *y, int N, int H,
                     int W, int C, int F)
{
    int f = get_global_id(0) * 16;
    int tile = get_global_id(1);
    int tiles = (W + PW - 1) / PW;
    int w = tile % tiles * PW;
    int line = tile / tiles;            // n * H + h
    if (f >= F || line >= N * H)
        return;
    f = min(f, F - 16);
    int h = line % H;

    float16 sum[PW];
#pragma unroll
    for (int i = 0; i < PW; ++i)
        sum[i] = 0.0f;

    for (int r = 0; r < 3; ++r) {
        int row = h + r - 1;
        if (row < 0 || row >= H)
            continue;
        __global const float *xr = x + (line + r - 1) * W * C;
        for (int s = 0; s < 3; ++s) {
            int col = w + s - 1;
            __global const float *wp = weight + (r * 3 + s) * C * F + f;
            if (col >= 0 && col + PW <= W) {
                __global const float *xp = xr + col * C;
                for (int c = 0; c < C; ++c) {
                    float16 b = vload16(0, wp + c * F);
#pragma unroll
                    for (int i = 0; i < PW; ++i)
                        sum[i] += xp[i * C + c] * b;
                }
            } else {
                for (int c = 0; c < C; ++c) {
                    float16 b = vload16(0, wp + c * F);
#pragma unroll
                    for (int i = 0; i < PW; ++i) {
                        int q = clamp(col + i, 0, W - 1);
                        float v = xr[q * C + c];
                        sum[i] += (q == col + i ? v : 0.0f) * b;
                    }
                }
            }
        }
    }

    __global float *yp = y + (line * W + w) * F + f;
#pragma unroll
    for (int i = 0; i < PW; ++i)
        if (w + i < W)
            vstore16(sum[i], 0, yp + i * F);
}
