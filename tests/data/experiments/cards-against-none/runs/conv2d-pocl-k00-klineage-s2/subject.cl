/*klineage
surface = "opencl"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W * F, 64)"]
block = ["64"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F"]
*/

// One work-item computes one element of y: all channels of the pixels around it that lie in the image.
__kernel void conv2d(__global const float *x, __global const float *weight, __global float *y, int N, int H,
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
