/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 8
values = [4, 8, 14]

[[launch]]
kernel = "conv2d_vector"
when = "F >= 16"
grid = ["ceil_div(N * H * ceil_div(W, MR) * ceil_div(F, 16), 16)"]
block = ["16"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]

[[launch]]
kernel = "conv2d"
when = "F < 16"
grid = ["ceil_div(N * H * ceil_div(W, MR) * F, 64)"]
block = ["64"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]
*/

// One work-item computes MR neighbouring pixels of a row for 16 neighbouring filters: the weights are a vector, x is broadcast.
__kernel void conv2d_vector(__global const float *x, __global const float *weight, __global float *y, int N, int H,
                            int W, int C, int F)
{
    int blocks = (W + MR - 1) / MR;
    int vectors = (F + 15) / 16;
    int i = get_global_id(0);
    if (i >= N * H * blocks * vectors)
        return;
    int f = min(i % vectors * 16, F - 16);    // the last vector slides back and stores the same values again
    int w = i / vectors % blocks * MR;
    int h = i / (vectors * blocks) % H;
    int n = i / (vectors * blocks * H);

    float16 sum[MR];
    #pragma unroll
    for (int j = 0; j < MR; ++j)
        sum[j] = (float16)(0.0f);

    for (int r = 0; r < 3; ++r) {
        int row = h + r - 1;
        if (row < 0 || row >= H)
            continue;
        __global const float *line = x + (n * H + row) * W * C;
        for (int s = 0; s < 3; ++s) {
            int col = w + s - 1;
            __global const float *wp = weight + (r * 3 + s) * C * F + f;
            if (col >= 0 && col + MR <= W) {
                __global const float *p = line + col * C;
                for (int c = 0; c < C; ++c) {
                    float16 wk = vload16(0, wp + c * F);
                    #pragma unroll
                    for (int j = 0; j < MR; ++j)
                        sum[j] += p[j * C + c] * wk;
                }
            } else {
                for (int c = 0; c < C; ++c) {
                    float16 wk = vload16(0, wp + c * F);
                    #pragma unroll
                    for (int j = 0; j < MR; ++j) {
                        int at = col + j;
                        float v = line[clamp(at, 0, W - 1) * C + c];
                        v = at >= 0 && at < W ? v : 0.0f;
                        sum[j] += v * wk;
                    }
                }
            }
        }
    }

    __global float *out = y + ((n * H + h) * W + w) * F + f;
    #pragma unroll
    for (int j = 0; j < MR; ++j) {
        if (w + j < W)
            vstore16(sum[j], 0, out + j * F);
    }
}

// Fewer filters than a vector has lanes: one filter a work-item.
__kernel void conv2d(__global const float *x, __global const float *weight, __global float *y, int N, int H,
                     int W, int C, int F)
{
    int blocks = (W + MR - 1) / MR;
    int i = get_global_id(0);
    if (i >= N * H * blocks * F)
        return;
    int f = i % F;
    int w = i / F % blocks * MR;
    int h = i / (F * blocks) % H;
    int n = i / (F * blocks * H);

    float sum[MR];
    #pragma unroll
    for (int j = 0; j < MR; ++j)
        sum[j] = 0.0f;

    for (int r = 0; r < 3; ++r) {
        int row = h + r - 1;
        if (row < 0 || row >= H)
            continue;
        __global const float *line = x + (n * H + row) * W * C;
        for (int s = 0; s < 3; ++s) {
            int col = w + s - 1;
            __global const float *wp = weight + (r * 3 + s) * C * F + f;
            if (col >= 0 && col + MR <= W) {
                __global const float *p = line + col * C;
                for (int c = 0; c < C; ++c) {
                    float wk = wp[c * F];
                    #pragma unroll
                    for (int j = 0; j < MR; ++j)
                        sum[j] += p[j * C + c] * wk;
                }
            } else {
                for (int c = 0; c < C; ++c) {
                    float wk = wp[c * F];
                    #pragma unroll
                    for (int j = 0; j < MR; ++j) {
                        int at = col + j;
                        float v = line[clamp(at, 0, W - 1) * C + c];
                        sum[j] += (at >= 0 && at < W ? v : 0.0f) * wk;
                    }
                }
            }
        }
    }

    __global float *out = y + ((n * H + h) * W + w) * F + f;
    #pragma unroll
    for (int j = 0; j < MR; ++j) {
        if (w + j < W)
            out[j * F] = sum[j];
    }
}
