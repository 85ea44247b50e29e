/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = ["32", "32"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// One thread owns one element of y. A block of 32 x 32 threads walks K in steps of 32; at each step it stages
// a 32 x 32 tile of x and one of weight in shared memory, and each number staged serves 32 threads.
// Tiles stay bf16 and are moved in chunks of 8 numbers (16 bytes). A row of a tile takes 5 chunks, the last
// one padding: 8 lanes that read the same chunk of 8 neighbouring rows then touch all 32 banks once.

#include <cuda_bf16.h>

constexpr int TILE = 32;            // rows of a tile, and its depth along K
constexpr int CHUNKS = TILE / 8;    // 16-byte chunks in a row of a tile
constexpr int PITCH = CHUNKS + 1;   // the same, with the padding

__device__ __forceinline__ float low(unsigned int pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(unsigned int pair) { return __uint_as_float(pair & 0xffff0000u); }

extern "C" __global__ void __launch_bounds__(1024, 2)
gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ uint4 tile_x[TILE][PITCH];
    __shared__ uint4 tile_w[TILE][PITCH];

    const int row = blockIdx.y * TILE + threadIdx.y;
    const int col = blockIdx.x * TILE + threadIdx.x;

    // Warps 0 to 3 stage x, warps 4 to 7 weight: one chunk a thread, four neighbouring threads a row.
    const bool stages = threadIdx.y < 8;
    const bool of_x = threadIdx.y < 4;
    const int tile_row = (threadIdx.y & 3) * 8 + (threadIdx.x >> 2);
    const int chunk = threadIdx.x & 3;
    const int from_row = (of_x ? blockIdx.y : blockIdx.x) * TILE + tile_row;
    const uint4 *from = reinterpret_cast<const uint4 *>((of_x ? x : weight) + size_t(from_row) * K) + chunk;
    uint4 *to = of_x ? &tile_x[tile_row][chunk] : &tile_w[tile_row][chunk];
    // The chunk lies inside the operand for as long as k0 < limit.
    const int limit = stages && from_row < (of_x ? M : N) ? K - chunk * 8 : 0;

    float sum = 0.0f;
#pragma unroll 1
    for (int k0 = 0; k0 < K; k0 += TILE) {
        uint4 staged = make_uint4(0u, 0u, 0u, 0u);
        if (k0 < limit)
            staged = __ldg(from);
        from += CHUNKS;
        __syncthreads();    // the tiles of the step before have been read
        if (stages)
            *to = staged;
        __syncthreads();    // the tiles of this step are in place

#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const uint4 a = tile_x[threadIdx.y][c];
            const uint4 b = tile_w[threadIdx.x][c];
            sum += low(a.x) * low(b.x);
            sum += high(a.x) * high(b.x);
            sum += low(a.y) * low(b.y);
            sum += high(a.y) * high(b.y);
            sum += low(a.z) * low(b.z);
            sum += high(a.z) * high(b.z);
            sum += low(a.w) * low(b.w);
            sum += high(a.w) * high(b.w);
        }
    }

    if (row >= M || col >= N)
        return;
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
