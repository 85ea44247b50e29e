/*klineage
surface = "cuda"

[[tunable]]
name = "SPLIT"
default = 8
values = [2, 4, 8]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 64)", "ceil_div(M, 16)"]
block = ["128 * SPLIT"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// The products move to the tensor cores, with the operands swapped: the rows of weight are the 16 rows of
// an m16n8k16 product and the rows of x its 8 columns, so that 16 rows of x fill two of them. Fragments are
// loaded straight from global memory, 16 bytes a lane and row. A warp takes 16 rows of weight and one of
// SPLIT parts of K: the warps take turns at pieces of 64 numbers, a line of 128 bytes of each row. Their sums
// meet in shared memory.
// Needs K % 64 == 0.

#include <cuda_bf16.h>

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

__device__ __forceinline__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// acc += 16 rows of weight · 16 rows of x over 32 numbers of K. A lane brings 8 neighbouring numbers of two
// rows of each. The instruction wants pairs that lie 8 apart, but a sum does not care which k is called
// which, as long as both operands agree: words 0 and 1 make one step of 16, words 2 and 3 the next.
__device__ __forceinline__ void multiply32(float (&acc)[2][4], const Chunk (&w)[2], const Chunk (&x)[2])
{
#pragma unroll
    for (int step = 0; step < 4; step += 2)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            multiply(acc[i], w[0].words[step], w[1].words[step], w[0].words[step + 1], w[1].words[step + 1],
                     x[i].words[step], x[i].words[step + 1]);
}

extern "C" __global__ __launch_bounds__(128 * SPLIT) void gemm(const Chunk *x, const Chunk *weight,
                                                               __nv_bfloat16 *y, int M, int N, int K)
{
    // The sums of each part of K, 16 rows of 64 columns. With a pitch of 68 the two rows of neighbouring t
    // lie 8 banks apart, so that the 32 lanes of a warp write to 32 banks.
    __shared__ float sums[SPLIT][16][68];

    const int warp = threadIdx.x / 32 % 4, part = threadIdx.x / 128, lane = threadIdx.x % 32;
    const int group = lane / 4, t = lane % 4;
    const int col0 = (blockIdx.x * 4 + warp) * 16, row0 = blockIdx.y * 16;
    const int chunks = K / 8;
    // Rows past the last repeat it; they are not stored.
    const Chunk *ws[2], *xs[2];
    for (int half = 0; half < 2; ++half) {
        ws[half] = weight + size_t(min(col0 + group + 8 * half, N - 1)) * chunks + t;
        xs[half] = x + size_t(min(row0 + group + 8 * half, M - 1)) * chunks + t;
    }

    // A part that K is too short for stays zero.
    float acc[2][4] = {};
    for (int line = 8 * part; line < chunks; line += 8 * SPLIT)
#pragma unroll
        for (int chunk = line; chunk < line + 8; chunk += 4) {
            const Chunk w[2] = {ws[0][chunk], ws[1][chunk]};
            const Chunk a[2] = {xs[0][chunk], xs[1][chunk]};
            multiply32(acc, w, a);
        }

    // A lane holds columns group and group + 8 of rows 2t and 2t + 1, and of the two rows 8 below.
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sums[part][8 * tile + 2 * t + i % 2][16 * warp + group + 8 * (i / 2)] = acc[tile][i];
    __syncthreads();

    // Each thread adds the parts of 8 / SPLIT outputs; neighbouring threads have neighbouring columns.
#pragma unroll
    for (int output = threadIdx.x; output < 16 * 64; output += 128 * SPLIT) {
        const int i = output / 64, j = output % 64;
        float sum = 0;
#pragma unroll
        for (int p = 0; p < SPLIT; ++p)
            sum += sums[p][i][j];
        const int row = row0 + i, col = blockIdx.x * 64 + j;
        if (row < M && col < N)
            y[size_t(row) * N + col] = __float2bfloat16(sum);
    }
}
