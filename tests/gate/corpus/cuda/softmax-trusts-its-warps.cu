/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Warps reduce through shared memory as if their lanes went in step, as they once did: nothing says that a store is seen by the next load.
__device__ __forceinline__ float reduce(float *own, float v, bool largest)
{
    const int lane = threadIdx.x % 32;
    own[lane] = v;
    // no __syncwarp()
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        if (lane < step)
            own[lane] = largest ? fmaxf(own[lane], own[lane + step]) : own[lane] + own[lane + step];
        // no __syncwarp()
    }
    const float all = own[0];
    // no __syncwarp()
    return all;
}
extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int R, int C)
{
    __shared__ float stage[4][32];
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    float *own = stage[threadIdx.x / 32];
    const float *from = x + size_t(row) * C;
    float top = __int_as_float(0xff800000);
#pragma unroll 4
    for (int c = lane; c < C; c += 32)
        top = fmaxf(top, from[c]);
    top = reduce(own, top, true);
    float sum = 0;
#pragma unroll 4
    for (int c = lane; c < C; c += 32)
        sum += expf(from[c] - top);
    const float scale = 1.0f / reduce(own, sum, false);
#pragma unroll 4
    for (int c = lane; c < C; c += 32)
        y[size_t(row) * C + c] = expf(from[c] - top) * scale;
}
