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
// A block makes a tile of 128 × 128 and stages 128 columns of both operands in shared memory, as the bytes
// they are. Its 8 warps multiply them on the tensor cores, 64 × 32 of the tile each, by steps of 16 columns.
// ldmatrix moves four bytes of a row where it would move two halves. Hopper's mma.sync multiplies no 8-bit
// floats itself, so a fragment is widened to halves in registers, without loss and once for all its products.
// Needs K % 16 == 0 for whole loads; a slab's chunks past K are zeros. Needs an even N for stores of pairs.

#include <cuda_bf16.h>

constexpr int TILE = 128, BK = 128;
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
    return row * CHUNKS + (chunk ^ (row & (CHUNKS - 1)));
}

// Four matrices of 8 rows by 16 bytes; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// Four e4m3 numbers as two pairs of halves, without loss.
__device__ __forceinline__ void widen(unsigned &low, unsigned &high, unsigned four)
{
    asm("{\n\t"
        ".reg .b16 first, second;\n\t"
        "mov.b32 {first, second}, %2;\n\t"
        "cvt.rn.f16x2.e4m3x2 %0, first;\n\t"
        "cvt.rn.f16x2.e4m3x2 %1, second;\n\t"
        "}"
        : "=r"(low), "=r"(high)
        : "r"(four));
}

// 16 × 8 sums += 16 × 16 numbers · 16 × 8 numbers.
__device__ __forceinline__ void multiply(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y,
                                                          int M, int N, int K)
{
    __shared__ __align__(128) Chunk xs[TILE * CHUNKS];
    __shared__ __align__(128) Chunk ws[TILE * CHUNKS];

    const int thread = threadIdx.x;
    const int lane = thread % 32, warp = thread / 32;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    // The first half of the threads stages x, the second weight: eight threads a row, 16 rows at once.
    const int mine = (thread % STAGERS) / CHUNKS, chunk = thread % CHUNKS;
    const bool isX = thread < STAGERS;
    const int chunks = K / 16;
    const int rowsLeft = (isX ? M - row0 : N - col0) - mine;
    const Chunk *from = (isX ? x + size_t(row0 + mine) * chunks : weight + size_t(col0 + mine) * chunks) + chunk;
    const int step = STEP * chunks;
    Chunk *to = (isX ? xs : ws) + place(mine, chunk); // STEP rows further on the swizzle is the same

    // A warp's first matrices: one chunk of 32 rows of x, which are two fragments, and of 32 rows of weight,
    // which are four.
    const int wm = (warp % 2) * WM, wn = (warp / 2) * WN;
    const unsigned aAt = static_cast<unsigned>(__cvta_generic_to_shared(xs + place(wm + lane, 0)));
    const unsigned bAt = static_cast<unsigned>(__cvta_generic_to_shared(ws + place(wn + lane, 0)));

    float acc[FM][FN][4] = {};
    for (int slab = 0; slab * CHUNKS < chunks; ++slab) {
        // Zeros past the edges: they add nothing to a sum.
        const int rows = slab * CHUNKS + chunk < chunks ? rowsLeft : 0;
        const Chunk *at = from + slab * CHUNKS;
        Chunk staged[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            staged[i] = make_uint4(0, 0, 0, 0);
            if (i * STEP < rows)
                staged[i] = *at;
            at += step;
        }
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            to[i * STEP * CHUNKS] = staged[i];
        __syncthreads();
#pragma unroll 2
        for (int k = 0; k < CHUNKS; ++k) {
            // A later chunk: its index is swizzled by the same bits of the row.
            const unsigned aNow = aAt ^ (16 * k), bNow = bAt ^ (16 * k);
            unsigned bytes[FN];
            load(bytes, bNow);
            // Of four bytes in a register the first two are at the k of a fragment's first half, the last
            // two at the k of its second: another order of k, the same for both operands.
            unsigned b[FN][2];
#pragma unroll
            for (int j = 0; j < FN; ++j)
                widen(b[j][0], b[j][1], bytes[j]);
#pragma unroll
            for (int pair = 0; pair < FM / 2; ++pair) {
                unsigned four[4];
                load(four, aNow + pair * 32 * BK);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    unsigned a[4];
                    widen(a[0], a[2], four[2 * i]);
                    widen(a[1], a[3], four[2 * i + 1]);
#pragma unroll
                    for (int j = 0; j < FN; ++j)
                        multiply(acc[2 * pair + i][j], a, b[j]);
                }
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
