/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 32)", "ceil_div(M, 16)"]
block = ["256"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// A block owns 32 rows of weight and 16 rows of x. Its warps lie along K, 64 numbers each in turn, and multiply on
// the tensor cores with swapped operands: weight is the operand of 16 rows, x the one of 8 columns. Fragments
// come straight from global memory: the order of K within a product is free as long as both operands share it, so
// a lane loads 16 neighbouring bytes of a row, and takes their words for the fragments of two instructions. The
// warps' parts meet in shared memory at the end.
// Needs K % 64 == 0 for whole steps.

#include <cuda_bf16.h>

constexpr int ROWS = 16;  // of x, a block
constexpr int COLS = 32;  // rows of weight, a block
constexpr int WARPS = 8;

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// sums[16,8] += a[16,16] · b[8,16]ᵀ. top and bottom are words of rows g and g + 8 of a, b of row g, g = lane / 4.
__device__ __forceinline__ void multiply(float (&sums)[4], unsigned top0, unsigned bottom0, unsigned top1,
                                         unsigned bottom1, unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(top0), "r"(bottom0), "r"(top1), "r"(bottom1), "r"(b0), "r"(b1));
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y,
                                                          int M, int N, int K)
{
    // Padded so that a warp's fragments fall into 32 banks.
    __shared__ float parts[WARPS][ROWS][COLS + 4];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, quad = lane % 4;
    const int col0 = blockIdx.x * COLS, row0 = blockIdx.y * ROWS;

    // Rows past the last repeat it; they are not stored.
    const int chunks = K / 8;
    const Chunk *ws[COLS / 8];
    const Chunk *xs[ROWS / 8];
#pragma unroll
    for (int i = 0; i < COLS / 8; ++i)
        ws[i] = weight + size_t(min(col0 + 8 * i + group, N - 1)) * chunks + quad;
#pragma unroll
    for (int i = 0; i < ROWS / 8; ++i)
        xs[i] = x + size_t(min(row0 + 8 * i + group, M - 1)) * chunks + quad;

    float sums[COLS / 16][ROWS / 8][4] = {};
#pragma unroll 1
    for (int chunk = warp * 8; chunk < chunks; chunk += WARPS * 8) {
        // A step is 64 numbers of K: two chunks a lane and row, 128 bytes of each row together.
        Chunk a[COLS / 8][2], b[ROWS / 8][2];
#pragma unroll
        for (int i = 0; i < COLS / 8; ++i) {
            a[i][0] = ws[i][chunk];
            a[i][1] = ws[i][chunk + 4];
        }
#pragma unroll
        for (int i = 0; i < ROWS / 8; ++i) {
            b[i][0] = xs[i][chunk];
            b[i][1] = xs[i][chunk + 4];
        }
#pragma unroll
        for (int part = 0; part < 2; ++part) {
#pragma unroll
            for (int word = 0; word < 4; word += 2) {
#pragma unroll
                for (int i = 0; i < COLS / 16; ++i) {
#pragma unroll
                    for (int j = 0; j < ROWS / 8; ++j)
                        multiply(sums[i][j], a[2 * i][part].words[word], a[2 * i + 1][part].words[word],
                                 a[2 * i][part].words[word + 1], a[2 * i + 1][part].words[word + 1],
                                 b[j][part].words[word], b[j][part].words[word + 1]);
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < COLS / 16; ++i) {
#pragma unroll
        for (int j = 0; j < ROWS / 8; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                parts[warp][8 * j + 2 * quad + e % 2][16 * i + 8 * (e / 2) + group] = sums[i][j][e];
        }
    }
    __syncthreads();

#pragma unroll
    for (int step = 0; step < ROWS; step += WARPS) {
        const int row = step + warp;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < WARPS; ++i)
            sum += parts[i][row][lane];
        if (row0 + row < M && col0 + lane < N)
            y[size_t(row0 + row) * N + col0 + lane] = __float2bfloat16(sum);
    }
}
