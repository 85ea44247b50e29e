/*klineage
surface = "cuda"

[[launch]]
kernel = "convolution"
grid = ["ceil_div(N * H * W, 8)", "ceil_div(F, 64)"]
block = [128]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two pixels a warp, two filters a lane, in single precision: the parent of others.

#include <cuda_fp16.h>

constexpr int DEPTH = 32, FILTERS = 64, THREADS = 128; // channels of a stage

// Two pieces of eight filters a thread; zeros where there are none.
__device__ __forceinline__ void fetch(__half (*stage)[FILTERS], const __half *weight, int line, int lines, int column, int F)
{
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int piece = threadIdx.x + i * THREADS, row = piece / 8, filter = piece % 8 * 8;
        const bool in = line + row < lines && column + filter < F;
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&stage[row][filter]));
        const __half *from = in ? weight + size_t(line + row) * F + column + filter : weight;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(in ? 16 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ __forceinline__ uint4 eightAt(const __half *data, int pixel, int window, int c, int N, int H, int W, int C)
{
    const int x = pixel % W + window % 3 - 1, y = pixel / W % H + window / 3 - 1;
    if (pixel >= N * H * W || x < 0 || x >= W || y < 0 || y >= H || c >= C)
        return make_uint4(0, 0, 0, 0);
    return *reinterpret_cast<const uint4 *>(data + (size_t(pixel) + (window / 3 - 1) * W + window % 3 - 1) * C + c);
}
__device__ __forceinline__ __half at(const uint4 &eight, int i)
{
    return reinterpret_cast<const __half *>(&eight)[i];
}
// Eight channels of two pixels, two filters each.
__device__ __forceinline__ void add(float (&sum)[2][2], const uint4 (&two)[2], const __half (*stage)[FILTERS], int c)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float2 factor = __half22float2(*reinterpret_cast<const __half2 *>(&stage[c + i][threadIdx.x % 32 * 2]));
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            const float element = __half2float(at(two[p], i));
            sum[p][0] = fmaf(element, factor.x, sum[p][0]);
            sum[p][1] = fmaf(element, factor.y, sum[p][1]);
        }
    }
}
// Two pixels a warp, two filters a lane; the next weights are on their way meanwhile.
__device__ void convolve(const __half *data, const __half *weight, __half *out, int N, int H, int W, int C, int F)
{
    __shared__ __align__(16) __half stages[2][DEPTH][FILTERS];
    const int pixel = blockIdx.x * 8 + threadIdx.x / 32 * 2, column = blockIdx.y * FILTERS;
    float sum[2][2] = {};
    const int steps = (C + DEPTH - 1) / DEPTH, all = 9 * steps;
    const auto begin = [&](int step) {
        fetch(stages[step % 2], weight, step / steps * C + step % steps * DEPTH, (step / steps + 1) * C, column, F);
    };
    begin(0);
    for (int step = 0; step < all; ++step) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads(); // what was read of the other stage has been read by all
        if (step + 1 < all)
            begin(step + 1);
        const int window = step / steps, first = step % steps * DEPTH;
#pragma unroll
        for (int c = 0; c < DEPTH; c += 8) {
            const uint4 two[2] = {eightAt(data, pixel, window, first + c, N, H, W, C), eightAt(data, pixel + 1, window, first + c, N, H, W, C)};
            add(sum, two, stages[step % 2], c);
        }
    }
    const int filter = column + threadIdx.x % 32 * 2;
#pragma unroll
    for (int p = 0; p < 2; ++p)
        if (pixel + p < N * H * W && filter < F)
            *reinterpret_cast<__half2 *>(out + size_t(pixel + p) * F + filter) = __floats2half2_rn(sum[p][0], sum[p][1]);
}
extern "C" __global__ __launch_bounds__(128) void convolution(const __half *data, const __half *weight, __half *out, int N, int H, int W, int C, int F)
{
    convolve(data, weight, out, N, H, W, C, F);
}
