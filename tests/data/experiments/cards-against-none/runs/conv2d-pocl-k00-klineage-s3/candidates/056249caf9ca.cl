/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 8
values = [4, 7, 8, 14]

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * ceil_div(W, MR) * F, 64)"]
block = ["64"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]
*/

// One work-item computes MR neighbouring pixels of a row of y for one filter: a weight is loaded once for all of them.
__kernel void conv2d(__global const float *x, __global const float *weight, __global float *y, int N, int H,
                     int W, int C, int F)
{
    int i = get_global_id(0);
    int strips = (W + MR - 1) / MR;
    if (i >= N * H * strips * F)
        return;
    int f = i % F;
    int w = i / F % strips * MR;
    int h = i / (F * strips) % H;
    int n = i / (F * strips * H);

    float sum[MR];
#pragma unroll
    for (int j = 0; j < MR; ++j)
        sum[j] = 0.0f;

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
                    float wv = wp[c * F];
#pragma unroll
                    for (int j = 0; j < MR; ++j)
                        sum[j] += p[j * C + c] * wv;
                }
            } else {
                for (int c = 0; c < C; ++c) {
                    float wv = wp[c * F];
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
            yp[j * F] = sum[j];
}
