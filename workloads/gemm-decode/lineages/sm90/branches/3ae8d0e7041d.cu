/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = ["32", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// A load takes 16 bytes: 8 numbers of a row. A warp owns a row of weight and its lanes lie along K, so that a load
// of the warp takes 512 neighbouring bytes. A weight is fetched once for 16 rows of x, each with a sum of its own in
// every lane; the lanes' sums are added up at the end.
// Needs K % 8 == 0 for whole loads.

#include <cuda_bf16.h>

constexpr int ROWS = 16; // rows of x a warp
constexpr int WARPS = 8; // rows of weight a block

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// Half of a word as a float: bf16 is the upper half of one.
__device__ __forceinline__ float low(unsigned word)
{
    return __uint_as_float(word << 16);
}

__device__ __forceinline__ float high(unsigned word)
{
    return __uint_as_float(word & 0xffff0000u);
}

// Of 2 * HALF sums a lane keeps one half, the upper one if its bit 2 * HALF is set, and gives the other half to the
// lane that differs in that bit.
template <int HALF>
__device__ __forceinline__ void fold(float (&sums)[ROWS], int lane)
{
    const bool upper = (lane & (2 * HALF)) != 0;
#pragma unroll
    for (int m = 0; m < HALF; ++m) {
        const float keep = upper ? sums[m + HALF] : sums[m];
        const float give = upper ? sums[m] : sums[m + HALF];
        sums[m] = keep + __shfl_xor_sync(0xffffffffu, give, 2 * HALF);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 2)
gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int lane = threadIdx.x;
    const int first = blockIdx.y * ROWS;
    const int col = blockIdx.x * WARPS + threadIdx.y;
    if (col >= N) // of a whole warp
        return;

    const unsigned chunks = unsigned(K) / 8;
    const Chunk *ws = weight + size_t(col) * chunks;

    // Rows that do not exist read the last one; their sums are dropped.
    unsigned offsets[ROWS];
    float sums[ROWS];
#pragma unroll
    for (int m = 0; m < ROWS; ++m) {
        offsets[m] = unsigned(min(first + m, M - 1)) * chunks;
        sums[m] = 0.0f;
    }

#pragma unroll 1
    for (unsigned chunk = lane; chunk < chunks; chunk += 32) {
        const Chunk b = ws[chunk];
#pragma unroll
        for (int m = 0; m < ROWS; ++m) {
            const Chunk a = x[offsets[m] + chunk];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums[m] += low(a.words[i]) * low(b.words[i]);
                sums[m] += high(a.words[i]) * high(b.words[i]);
            }
        }
    }
    __syncwarp();

    // Bits 4 to 1 of the lane come to name its row, bit 0 the half of the sum that is left.
    fold<8>(sums, lane);
    fold<4>(sums, lane);
    fold<2>(sums, lane);
    fold<1>(sums, lane);
    const float sum = sums[0] + __shfl_xor_sync(0xffffffffu, sums[0], 1);

    const int row = first + lane / 2;
    if (lane % 2 == 0 && row < M)
        y[size_t(row) * N + col] = __float2bfloat16(sum);
}
