/*klineage
surface = "cuda"

[[launch]]
kernel = "multiplyBatch"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)", "B"]
block = ["16", "16"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[b,M,N] = x[b,M,K] · weight[b,N,K]ᵀ for every b, bf16 in and out, fp32 sums. blockIdx.z is b.
//
// A thread owns an 8 × 8 patch of y in registers, strided by 16 rows and columns. Operands move in chunks of
// 16 bytes (8 numbers), from global to shared memory and from there to registers: 8 + 8 chunks make 512 products.
// The chunks of a shared row are swizzled, so that 8 neighbouring rows are read without a bank conflict.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int TM = BM / 16, TN = BN / 16;
constexpr int CHUNK = 8;            // elements a chunk: 16 bytes
constexpr int CHUNKS = BK / CHUNK;  // chunks a shared row: 128 bytes, once around the banks
constexpr int XLOADS = BM * CHUNKS / 256, WLOADS = BN * CHUNKS / 256;

static_assert(CHUNKS == 8, "the swizzle takes a shared row of 8 chunks");

// Row r keeps chunk c at place c ^ (r % 8): eight neighbouring rows cover all 32 banks, with no padding.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row & 7));
}

__device__ __forceinline__ uint4 chunkAt(const __nv_bfloat16 *p)
{
    return *reinterpret_cast<const uint4 *>(p);
}

// w is a constant wherever this is called, once the loops are unrolled.
__device__ __forceinline__ unsigned word(const uint4 &chunk, int w)
{
    return w == 0 ? chunk.x : w == 1 ? chunk.y : w == 2 ? chunk.z : chunk.w;
}

// bf16 is the upper half of an fp32.
__device__ __forceinline__ float lower(unsigned pair)
{
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float upper(unsigned pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

// The chunks' registers leave room for one resident block.
extern "C" __global__ __launch_bounds__(256, 1) void multiplyBatch(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                                   __nv_bfloat16 *y, int M, int N, int K)
{
    x += size_t(blockIdx.z) * M * K;
    weight += size_t(blockIdx.z) * N * K;
    y += size_t(blockIdx.z) * M * N;

    __shared__ uint4 xs[BM * CHUNKS];
    __shared__ uint4 ws[BN * CHUNKS];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int loadRow = thread / CHUNKS, loadChunk = thread % CHUNKS;
    constexpr int ROWS = 256 / CHUNKS;  // rows that all threads load at once

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        // K % 8 == 0: a chunk is inside the matrix or outside, never half.
        const int k = k0 + loadChunk * CHUNK;
        uint4 xr[XLOADS], wr[WLOADS];
#pragma unroll
        for (int i = 0; i < XLOADS; ++i) {
            const int r = loadRow + ROWS * i;
            xr[i] = make_uint4(0u, 0u, 0u, 0u);
            if (row0 + r < M && k < K)
                xr[i] = chunkAt(x + size_t(row0 + r) * K + k);
        }
#pragma unroll
        for (int i = 0; i < WLOADS; ++i) {
            const int r = loadRow + ROWS * i;
            wr[i] = make_uint4(0u, 0u, 0u, 0u);
            if (col0 + r < N && k < K)
                wr[i] = chunkAt(weight + size_t(col0 + r) * K + k);
        }
#pragma unroll
        for (int i = 0; i < XLOADS; ++i)
            xs[place(loadRow + ROWS * i, loadChunk)] = xr[i];
#pragma unroll
        for (int i = 0; i < WLOADS; ++i)
            ws[place(loadRow + ROWS * i, loadChunk)] = wr[i];
        __syncthreads();

#pragma unroll 2
        for (int c = 0; c < CHUNKS; ++c) {
            uint4 a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                a[i] = xs[place(ty + 16 * i, c)];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b[j] = ws[place(tx + 16 * j, c)];
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                float av[TM], bv[TN];
#pragma unroll
                for (int i = 0; i < TM; ++i)
                    av[i] = lower(word(a[i], w));
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    bv[j] = lower(word(b[j], w));
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        acc[i][j] += av[i] * bv[j];
#pragma unroll
                for (int i = 0; i < TM; ++i)
                    av[i] = upper(word(a[i], w));
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    bv[j] = upper(word(b[j], w));
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        acc[i][j] += av[i] * bv[j];
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
