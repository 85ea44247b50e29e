/*klineage
surface = "cuda"

[[tunable]]
name = "WARPS"
default = 8
values = [4, 8, 16]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 32)", "ceil_div(M, 16)"]
block = ["32 * WARPS"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// A warp takes 32 rows of weight: the rows of x that it brings serve two tiles, so that a byte of x is fetched
// for two of weight and not for one. The next line of weight is under way while one is multiplied, and
// leaves L1 to x.
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

// 16 bytes that nobody reads a second time: they need no place in L1.
__device__ __forceinline__ Chunk loadOnce(const Chunk *from)
{
    Chunk chunk;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(chunk.words[0]), "=r"(chunk.words[1]), "=r"(chunk.words[2]), "=r"(chunk.words[3]) : "l"(from));
    return chunk;
}

extern "C" __global__ __launch_bounds__(32 * WARPS) void gemm(const Chunk *x, const Chunk *weight,
                                                              __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ float parts[WARPS][16][33];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, t = lane % 4;
    const int col0 = blockIdx.x * 32, row0 = blockIdx.y * 16;
    const int chunks = K / 8, lines = K / 64;
    // Rows past the last repeat it; they are not stored.
    const Chunk *ws[4], *xs[2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        ws[i] = weight + size_t(min(col0 + group + 8 * i, N - 1)) * chunks + t;
#pragma unroll
    for (int half = 0; half < 2; ++half)
        xs[half] = x + size_t(min(row0 + group + 8 * half, M - 1)) * chunks + t;

    using Line = Chunk[2][2][2]; // [32 numbers of K][tile][row and the one 8 below]
    const auto load = [&](Line &to, int line) {
        if (line < lines)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                to[i % 2][i / 4][i / 2 % 2] = loadOnce(ws[i / 2] + 8 * line + 4 * (i % 2));
    };
    float acc[2][2][4] = {};
    const auto use = [&](const Line &from, int line) {
        if (line < lines)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const Chunk a[2] = {xs[0][8 * line + 4 * half], xs[1][8 * line + 4 * half]};
                multiply32(acc[0], from[half][0], a);
                multiply32(acc[1], from[half][1], a);
            }
    };

    Line even, odd;
    load(even, warp);
    for (int line = warp; line < lines; line += 2 * WARPS) {
        load(odd, line + WARPS);
        use(even, line);
        load(even, line + 2 * WARPS);
        use(odd, line + WARPS);
    }

    // A lane holds columns group and group + 8 of rows 2t and 2t + 1, and of the two rows 8 below.
#pragma unroll
    for (int i = 0; i < 16; ++i)
        parts[warp][8 * (i / 4 % 2) + 2 * t + i % 2][16 * (i / 8) + group + 8 * (i / 2 % 2)] =
            acc[i / 8][i / 4 % 2][i % 4];
    __syncthreads();
    for (int i = threadIdx.x; i < 512; i += 32 * WARPS) {
        const int row = i / 32, col = i % 32;
        float sum = 0.0f;
        for (int part = 0; part < WARPS; ++part)
            sum += parts[part][row][col];
        if (row0 + row < M && col0 + col < N)
            y[size_t(row0 + row) * N + col0 + col] = __float2bfloat16(sum);
    }
}
