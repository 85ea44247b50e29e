/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 64)", "ceil_div(M, 64)"]
block = ["256"]
args = ["a", "b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] with 64 x 64 tiles of y: slices of 16 of K are widened to f32 in shared memory and every thread
// sums 4 x 4 elements in registers; still missing are the tensor cores and any overlap of the loads with the arithmetic.

#include <cuda_bf16.h>

constexpr int TILE_M = 64;
constexpr int TILE_N = 64;
constexpr int TILE_K = 16;

// Eight bf16 of one 16-byte word, as f32 (a bf16 is the upper half of an f32).
__device__ __forceinline__ void widen(const uint4 v, float *f)
{
    const unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        f[2 * i] = __uint_as_float(w[i] << 16);
        f[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    multiply(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, __nv_bfloat16 *__restrict__ y,
             int M, int N, int K)
{
    __shared__ __align__(16) float as[TILE_K][TILE_M + 4]; // transposed
    __shared__ __align__(16) float bs[TILE_K][TILE_N];

    const int t = threadIdx.x;
    const int tx = t % 16;
    const int ty = t / 16;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            acc[i][j] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        // N and K are multiples of 8, so a group of eight along a row is wholly inside or wholly outside.
        uint4 v = make_uint4(0u, 0u, 0u, 0u);
        float f[8];
        if (t < 128) { // the first four warps bring a: 64 rows of two groups
            const int r = t / 2;
            const int k = (t % 2) * 8;
            if (row0 + r < M && k0 + k < K)
                v = *reinterpret_cast<const uint4 *>(a + size_t(row0 + r) * K + (k0 + k));
            widen(v, f);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                as[k + i][r] = f[i];
        } else { // the others bring b: 16 rows of eight groups
            const int k = (t - 128) / 8;
            const int c = (t % 8) * 8;
            if (k0 + k < K && col0 + c < N)
                v = *reinterpret_cast<const uint4 *>(b + size_t(k0 + k) * N + (col0 + c));
            widen(v, f);
            *reinterpret_cast<float4 *>(&bs[k][c]) = make_float4(f[0], f[1], f[2], f[3]);
            *reinterpret_cast<float4 *>(&bs[k][c + 4]) = make_float4(f[4], f[5], f[6], f[7]);
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            const float4 av = *reinterpret_cast<const float4 *>(&as[k][ty * 4]);
            const float4 bv = *reinterpret_cast<const float4 *>(&bs[k][tx * 4]);
            const float ar[4] = {av.x, av.y, av.z, av.w};
            const float br[4] = {bv.x, bv.y, bv.z, bv.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    acc[i][j] += ar[i] * br[j];
        }
        __syncthreads();
    }

    const int col = col0 + tx * 4;
    if (col >= N) // a multiple of 4, as N is: the four columns are inside together
        return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + ty * 4 + i;
        if (row < M) {
            __nv_bfloat162 *out = reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col);
            out[0] = __floats2bfloat162_rn(acc[i][0], acc[i][1]);
            out[1] = __floats2bfloat162_rn(acc[i][2], acc[i][3]);
        }
    }
}
