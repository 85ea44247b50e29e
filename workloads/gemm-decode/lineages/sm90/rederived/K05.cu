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
// K is split among the warps of a block, which share 32 rows of weight: WARPS times as many warps are at work,
// each with loads of its own under way. A warp takes every WARPS-th line of 128 bytes; what it brings of x
// serves all 32 rows, and its next line of weight is under way, past L1, while it multiplies one. Their sums
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

// acc += 32 rows of weight · 16 rows of x over 32 numbers of K. A lane brings 8 neighbouring numbers of four
// rows of weight and two of x. The instruction wants pairs that lie 8 apart, but a sum does not care which k
// is called which, as long as both operands agree: words 0 and 1 make one step of 16, words 2 and 3 the next.
__device__ __forceinline__ void multiply32(float (&acc)[2][2][4], const Chunk (&w)[4], const Chunk (&x)[2])
{
#pragma unroll
    for (int step = 0; step < 4; step += 2)
#pragma unroll
        for (int p = 0; p < 2; ++p)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                multiply(acc[p][i], w[2 * p].words[step], w[2 * p + 1].words[step], w[2 * p].words[step + 1],
                         w[2 * p + 1].words[step + 1], x[i].words[step], x[i].words[step + 1]);
}

// The same over a line of 64 numbers.
__device__ __forceinline__ void multiply64(float (&acc)[2][2][4], const Chunk (&w)[2][4], const Chunk (&x)[2][2])
{
#pragma unroll
    for (int half = 0; half < 2; ++half)
        multiply32(acc, w[half], x[half]);
}

// Weight is read once: L1 is left to x.
__device__ __forceinline__ Chunk stream(const Chunk *from)
{
    Chunk c;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(c.words[0]), "=r"(c.words[1]), "=r"(c.words[2]), "=r"(c.words[3])
                 : "l"(from));
    return c;
}

__device__ __forceinline__ void bring_weight(Chunk (&w)[2][4], const Chunk *const (&ws)[4], int at)
{
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            w[half][i] = stream(ws[i] + at + 4 * half);
}

__device__ __forceinline__ void bring_x(Chunk (&a)[2][2], const Chunk *const (&xs)[2], int at)
{
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            a[half][i] = xs[i][at + 4 * half];
}

// At most 128 registers a thread, for 16 warps on a multiprocessor.
extern "C" __global__ __launch_bounds__(32 * WARPS, 16 / WARPS) void gemm(const Chunk *x, const Chunk *weight,
                                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ float parts[WARPS][16][36];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, t = lane % 4;
    const int col0 = blockIdx.x * 32, row0 = blockIdx.y * 16;
    const int chunks = K / 8;
    constexpr int step = 8 * WARPS; // from a line of this warp to its next
    int line = 8 * warp;
    // Rows past the last repeat it; they are not stored.
    const Chunk *ws[4], *xs[2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        ws[i] = weight + size_t(min(col0 + group + 8 * i, N - 1)) * chunks + t + line;
#pragma unroll
    for (int i = 0; i < 2; ++i)
        xs[i] = x + size_t(min(row0 + group + 8 * i, M - 1)) * chunks + t + line;

    float acc[2][2][4] = {};
    if (line < chunks) {
        Chunk even[2][4], odd[2][4], a[2][2];
        bring_weight(even, ws, 0);
        // The line pointed at is always in `even`, or under way to it.
#pragma unroll 1
        for (; line + 2 * step < chunks; line += 2 * step) {
            bring_x(a, xs, 0);
            bring_weight(odd, ws, step);
            multiply64(acc, even, a);
            bring_x(a, xs, step);
            bring_weight(even, ws, 2 * step);
            multiply64(acc, odd, a);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                ws[i] += 2 * step;
#pragma unroll
            for (int i = 0; i < 2; ++i)
                xs[i] += 2 * step;
        }
        // One line is left, or two.
        bring_x(a, xs, 0);
        if (line + step < chunks) {
            bring_weight(odd, ws, step);
            multiply64(acc, even, a);
            bring_x(a, xs, step);
            multiply64(acc, odd, a);
        } else {
            multiply64(acc, even, a);
        }
    }

    // A lane holds columns group, and 8, 16 and 24 further, of rows 2t and 2t + 1, and of the two rows 8 below.
#pragma unroll
    for (int p = 0; p < 2; ++p)
#pragma unroll
        for (int tile = 0; tile < 2; ++tile)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                parts[warp][8 * tile + 2 * t + i % 2][16 * p + group + 8 * (i / 2)] = acc[p][tile][i];
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
