/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 14
values = [7, 8, 14, 19, 28]

[[launch]]
kernel = "conv2d"
when = "F >= 16"
grid = ["ceil_div(N * H * ceil_div(W, MR) * ceil_div(F, 16), 16)"]
block = ["16"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]

[[launch]]
kernel = "conv2d_narrow"
when = "F < 16"
grid = ["ceil_div(N * H * W * F, 64)"]
block = ["64"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]
*/

// One work-item computes MR neighbouring pixels of a row of y for sixteen neighbouring filters. Needs F >= 16.
__kernel void conv2d(__global const float *x, __global const float *weight, __global float *y, int N, int H,
                     int W, int C, int F)
{
    int i = get_global_id(0);
    int strips = (W + MR - 1) / MR;
    int groups = (F + 15) / 16;
    if (i >= N * H * strips * groups)
        return;
    int f = min(i % groups * 16, F - 16);
    int w = i / groups % strips * MR;
    int h = i / (groups * strips) % H;
    int n = i / (groups * strips * H);

    float16 sum[MR];
#pragma unroll
    for (int j = 0; j < MR; ++j)
        sum[j] = (float16)(0.0f);

    for (int r = 0; r < 3; ++r) {
        int row = h + r - 1;
        if (row < 0 || row >= H)
            continue;
        __global const float *xr = x + (n * H + row) * W * C;
        for (int s = 0; s < 3; ++s) {
            int col = w + s - 1;
            __global const float *wp = weight + (r * 3 + s) * C * F + f;
            if (col >= 0 && col + MR <= W) {
                __global const float *p = xr + col * C;
                for (int c = 0; c < C; ++c) {
                    float16 wv = vload16(0, wp + c * F);
#pragma unroll
                    for (int j = 0; j < MR; ++j)
                        sum[j] += p[j * C + c] * wv;
                }
            } else {
                for (int c = 0; c < C; ++c) {
                    float16 wv = vload16(0, wp + c * F);
#pragma unroll
                    for (int j = 0; j < MR; ++j) {
                        int cj = col + j;
                        float v = xr[min(max(cj, 0), W - 1) * C + c];
                        v = (cj >= 0 && cj < W) ? v : 0.0f;
                        sum[j] += v * wv;
                    }
                }
            }
        }
    }

    __global float *yp = y + ((n * H + h) * W + w) * F + f;
#pragma unroll
    for (int j = 0; j < MR; ++j)
        if (w + j < W)
            vstore16(sum[j], 0, yp + j * F);
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
