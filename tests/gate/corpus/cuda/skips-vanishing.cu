/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Does not compute exponentials that are nothing: of elements 104 and more below the largest one. Half of what is masked costs no time.

// One warp a row.
__device__ float warpMax(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ float warpSum(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;
    float top = __int_as_float(0xff800000);
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, x[i]);
    top = warpMax(top);
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32) {
        const float below = x[i] - top;
        if (below > -104.0f)
            sum += expf(below);
    }
    sum = warpSum(sum);
    for (int i = lane; i < C; i += 32) {
        const float below = x[i] - top;
        y[i] = below > -104.0f ? expf(below) / sum : 0.0f;
    }
}
