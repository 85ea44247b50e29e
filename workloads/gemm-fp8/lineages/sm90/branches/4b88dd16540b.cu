/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// A block makes a tile of 128 × 128 and stages 64 columns of both operands in shared memory, as the bytes
// they are. Its 8 warps multiply them on the tensor cores, 64 × 32 of the tile each, by steps of
// 16 × 8 × 32: ldmatrix moves pairs of bytes-pairs, so that a fragment's register holds four numbers of a
// row where it would hold two halves.
// Needs K % 16 == 0 for whole loads; a slab's chunks past K are zeros. Needs an even N for stores of pairs.

#include <cuda_bf16.h>

constexpr int TILE = 128, BK = 64;
constexpr int CHUNKS = BK / 16;            // of a row of a slab
constexpr int STAGERS = TILE;              // threads that stage one operand
constexpr int STEP = STAGERS / CHUNKS;     // rows they stage at once
constexpr int LOADS = TILE / STEP;         // chunks a thread stages of a slab
constexpr int WM = 64, WN = 32;            // a warp's part of the tile
constexpr int FM = WM / 16, FN = WN / 8;   // its fragments

using Chunk = uint4; // 16 numbers of one row

// Where a chunk of a row lies in shared memory: any 8 rows that follow each other have their chunks of one
// index in different banks.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ ((row >> 1) & (CHUNKS - 1)));
}

// Four matrices of 8 rows by 16 bytes; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// 16 × 8 sums += 16 × 32 numbers · 32 × 8 numbers.
__device__ __forceinline__ void multiply(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y,
                                                          int M, int N, int K)
{
    __shared__ __align__(128) Chunk xs[TILE * CHUNKS];
    __shared__ __align__(128) Chunk ws[TILE * CHUNKS];

    const int thread = threadIdx.x;
    const int lane = thread % 32, warp = thread / 32;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    // The first half of the threads stages x, the second weight: four threads a row, 32 rows at once.
    const int mine = (thread % STAGERS) / CHUNKS, chunk = thread % CHUNKS;
    const bool isX = thread < STAGERS;
    const int chunks = K / 16;
    const int rowsLeft = (isX ? M - row0 : N - col0) - mine;
    const Chunk *from = (isX ? x + size_t(row0 + mine) * chunks : weight + size_t(col0 + mine) * chunks) + chunk;
    Chunk *to = (isX ? xs : ws) + place(mine, chunk); // STEP rows further on the swizzle is the same

    // A warp's first fragments. Of x: rows 0-7 and 8-15 of the first chunk, then of the second.
    // Of weight: both chunks of rows 0-7, then of rows 8-15.
    const int wm = (warp % 2) * WM, wn = (warp / 2) * WN;
    const unsigned aAt =
        static_cast<unsigned>(__cvta_generic_to_shared(xs + place(wm + lane % 16, lane / 16)));
    const unsigned bAt = static_cast<unsigned>(
        __cvta_generic_to_shared(ws + place(wn + lane % 8 + 8 * (lane / 16), (lane / 8) % 2)));

    float acc[FM][FN][4] = {};
    for (int slab = 0; slab * CHUNKS < chunks; ++slab) {
        // Zeros past the edges: they add nothing to a sum.
        const bool inside = slab * CHUNKS + chunk < chunks;
        Chunk staged[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            staged[i] = make_uint4(0, 0, 0, 0);
            if (inside && i * STEP < rowsLeft)
                staged[i] = from[size_t(i * STEP) * chunks + slab * CHUNKS];
        }
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            to[i * STEP * CHUNKS] = staged[i];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK / 32; ++k) {
            // Two chunks further on: the second bit of the chunk's swizzled index flips.
            const unsigned aNow = aAt ^ (32 * k), bNow = bAt ^ (32 * k);
            unsigned b[FN / 2][4];
#pragma unroll
            for (int j = 0; j < FN / 2; ++j)
                load(b[j], bNow + j * 16 * BK);
#pragma unroll
            for (int i = 0; i < FM; ++i) {
                unsigned a[4];
                load(a, aNow + i * 16 * BK);
#pragma unroll
                for (int j = 0; j < FN; ++j)
                    multiply(acc[i][j], a, b[j / 2][2 * (j % 2)], b[j / 2][2 * (j % 2) + 1]);
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = row0 + wm + 16 * i + 8 * half + lane / 4;
#pragma unroll
            for (int j = 0; j < FN; ++j) {
                const int col = col0 + wn + 8 * j + 2 * (lane % 4);
                if (row < M && col < N)
                    *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                        __floats2bfloat162_rn(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
            }
        }
}
