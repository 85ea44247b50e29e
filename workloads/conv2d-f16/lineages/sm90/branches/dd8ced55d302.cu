/*klineage
surface = "cuda"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W, 64)", "ceil_div(F, 128)"]
block = ["128"]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A product of pixels and filters: a block has 64 pixels and 128 filters, and stages slabs of 32 of the 9C terms of
// both in shared memory, as fp32. A thread has eight filters of eight pixels; the results leave in chunks of
// 16 bytes. Needs C % 8 == 0 and F % 8 == 0.
//
// Slab of pixels: term k of pixel p is at k * 64 + (p ^ (k / 8 * 8)); the swizzle spreads the transposing stores
// of a warp (8 pixels × 4 chunks of channels) over all banks.
// Slab of filters: term k of filter 8j + i is at k * 128 + i / 4 * 64 + 4j + i % 4, so that neighbouring chunks lie
// side by side for both stores and loads of 16 bytes.

#include <cuda_fp16.h>

#define PIXELS 64
#define FILTERS 128
#define SLAB 32

extern "C" __global__ void __launch_bounds__(128, 3)
conv2d(const __half *data, const __half *weight, __half *output, int N, int H, int W, int C, int F)
{
    __shared__ __align__(16) float slab_x[SLAB * PIXELS];
    __shared__ __align__(16) float slab_k[SLAB * FILTERS];

    const int thread = threadIdx.x;
    const int total = N * H * W;
    const int terms = 9 * C;
    const int first_pixel = blockIdx.x * PIXELS;
    const int first_filter = blockIdx.y * FILTERS;

    // Staging of pixels: a thread brings chunk `part` of the slab's four for two pixels.
    const int part = thread & 3;
    int top[2], left[2];
    const __half *x[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int pixel = first_pixel + thread / 4 + 32 * i;
        left[i] = pixel % W - 1;
        top[i] = pixel < total ? pixel / W % H - 1 : -8;
        x[i] = data + (long long)pixel * C;
    }
    float *const store_x = slab_x + part * 8 * PIXELS + ((thread / 4) ^ (part * 8));
    int r = 0, s = 0, c = part * 8;
    while (c >= C) {
        c -= C;
        if (++s == 3) {
            s = 0;
            ++r;
        }
    }

    // Staging of filters: a thread brings a chunk of eight filters for four terms.
    const int row = thread / 16;
    const bool has_filters = first_filter + thread % 16 * 8 < F;
    const __half *k = weight + (long long)row * F + first_filter + thread % 16 * 8;
    float *const store_k = slab_k + row * FILTERS + thread % 16 * 4;

    // The patch of the thread: a warp has 32 pixels and 64 filters. Bits of the lane are interleaved, so that
    // neighbours share an address in each load.
    const int lane = thread & 31;
    const int warp = thread / 32;
    const int patch_p = (warp >> 1) * 32 + (((lane >> 1) & 1) | ((lane >> 3) & 2)) * 4;    // and 16 further
    const int patch_j = (warp & 1) * 8 + ((lane & 1) | ((lane >> 1) & 6));

    float sum[8][8] = {};
    for (int term = 0; term < terms; term += SLAB) {
        uint4 chunk_x[2], chunk_k[4];
        const int offset = ((r - 1) * W + s - 1) * C + c;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            chunk_x[i] = make_uint4(0, 0, 0, 0);
            if (r < 3 && (unsigned)(top[i] + r) < (unsigned)H && (unsigned)(left[i] + s) < (unsigned)W)
                chunk_x[i] = *reinterpret_cast<const uint4 *>(x[i] + offset);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            chunk_k[i] = make_uint4(0, 0, 0, 0);
            if (has_filters && term + row + 8 * i < terms)
                chunk_k[i] = *reinterpret_cast<const uint4 *>(k + (long long)(8 * i) * F);
        }
        k += (long long)SLAB * F;
        c += SLAB;
        while (c >= C) {
            c -= C;
            if (++s == 3) {
                s = 0;
                ++r;
            }
        }

        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const __half2 *const pairs = reinterpret_cast<const __half2 *>(&chunk_x[i]);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 pair = __half22float2(pairs[j]);
                store_x[(2 * j) * PIXELS + 32 * i] = pair.x;
                store_x[(2 * j + 1) * PIXELS + 32 * i] = pair.y;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const __half2 *const pairs = reinterpret_cast<const __half2 *>(&chunk_k[i]);
            const float2 p0 = __half22float2(pairs[0]);
            const float2 p1 = __half22float2(pairs[1]);
            const float2 p2 = __half22float2(pairs[2]);
            const float2 p3 = __half22float2(pairs[3]);
            *reinterpret_cast<float4 *>(store_k + 8 * i * FILTERS) = make_float4(p0.x, p0.y, p1.x, p1.y);
            *reinterpret_cast<float4 *>(store_k + 8 * i * FILTERS + 64) = make_float4(p2.x, p2.y, p3.x, p3.y);
        }
        __syncthreads();

#pragma unroll 1
        for (int q = 0; q < SLAB / 8; ++q) {
            const float *const x0 = slab_x + q * 8 * PIXELS + (patch_p ^ (q * 8));
            const float *const x1 = slab_x + q * 8 * PIXELS + ((patch_p + 16) ^ (q * 8));
            const float *const k0 = slab_k + q * 8 * FILTERS + patch_j * 4;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float4 a0 = *reinterpret_cast<const float4 *>(x0 + i * PIXELS);
                const float4 a1 = *reinterpret_cast<const float4 *>(x1 + i * PIXELS);
                const float4 b0 = *reinterpret_cast<const float4 *>(k0 + i * FILTERS);
                const float4 b1 = *reinterpret_cast<const float4 *>(k0 + i * FILTERS + 64);
                const float a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
                const float b[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
                for (int m = 0; m < 8; ++m) {
#pragma unroll
                    for (int n = 0; n < 8; ++n)
                        sum[m][n] += a[m] * b[n];
                }
            }
        }
    }

    const int f = first_filter + patch_j * 8;
    if (f >= F)
        return;
#pragma unroll
    for (int m = 0; m < 8; ++m) {
        const int pixel = first_pixel + patch_p + m / 4 * 16 + m % 4;
        if (pixel < total) {
            uint4 result;
            __half2 *const pairs = reinterpret_cast<__half2 *>(&result);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                pairs[i] = __floats2half2_rn(sum[m][2 * i], sum[m][2 * i + 1]);
            *reinterpret_cast<uint4 *>(output + (long long)pixel * F + f) = result;
        }
    }
}
