/*klineage
surface = "cuda"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(F, 32)", "H * W", "N"]
block = ["32"]
args = ["data_nhwc", "weight_hwcf", "output", "int H", "int W", "int C", "int F"]
*/
#include <cuda_fp16.h>

// One thread an output element, one term after another.
extern "C" __global__ void conv2d(const __half *data, const __half *weight, __half *output, int H, int W, int C, int F)
{
    const int f = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y / W;
    const int x = blockIdx.y % W;
    if (f >= F)
        return;
    const __half *image = data + (size_t)blockIdx.z * H * W * C;
    float sum = 0.0f;
    for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
            const int row = y + r - 1;
            const int column = x + s - 1;
            if (row < 0 || column < 0 || row >= H || column >= W)
                continue;
            for (int c = 0; c < C; ++c)
                sum += __half2float(image[((size_t)row * W + column) * C + c])
                       * __half2float(weight[((r * 3 + s) * C + c) * F + f]);
        }
    }
    output[(((size_t)blockIdx.z * H + y) * W + x) * F + f] = __float2half(sum);
}
