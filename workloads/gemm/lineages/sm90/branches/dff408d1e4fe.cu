/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// Operands move in 16-byte chunks of 8 numbers, from global to shared memory and from there to registers:
// an eighth of the load instructions. Rows of 8 chunks (128 bytes) would put chunk c of every row into the
// same banks, so row r keeps chunk c at place c ^ (r % 8): 8 neighbouring rows then cover all 32 banks.
// Needs K % 8 == 0, so that a chunk is inside the matrix or outside, never half.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int TM = BM / 16, TN = BN / 16;
constexpr int CHUNKS = BK / 8;

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

__device__ __forceinline__ Chunk chunkAt(const __nv_bfloat16 *from)
{
    return *reinterpret_cast<const Chunk *>(from);
}

__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// bf16 is the upper half of an fp32: the two numbers of a word unpack with a shift and a mask.
__device__ __forceinline__ float lower(unsigned word)
{
    return __uint_as_float(word << 16);
}

__device__ __forceinline__ float upper(unsigned word)
{
    return __uint_as_float(word & 0xffff0000u);
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ Chunk xs[BM * CHUNKS];
    __shared__ Chunk ws[BN * CHUNKS];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    // Violated: two blocks a multiprocessor leave 128 registers for 64 sums and 64 words of chunks.
    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
#pragma unroll
        for (int i = 0; i < BM * CHUNKS / 256; ++i) {
            const int r = (thread + 256 * i) / CHUNKS, c = thread % CHUNKS, k = k0 + c * 8;
            xs[place(r, c)] = row0 + r < M && k < K ? chunkAt(x + size_t(row0 + r) * K + k) : Chunk{};
            ws[place(r, c)] = col0 + r < N && k < K ? chunkAt(weight + size_t(col0 + r) * K + k) : Chunk{};
        }
        __syncthreads();

        for (int c = 0; c < CHUNKS; ++c) {
            Chunk a[TM], b[TN];
            for (int i = 0; i < TM; ++i)
                a[i] = xs[place(ty + 16 * i, c)];
            for (int j = 0; j < TN; ++j)
                b[j] = ws[place(tx + 16 * j, c)];
#pragma unroll
            for (int w = 0; w < 4; ++w)
                for (int i = 0; i < TM; ++i)
                    for (int j = 0; j < TN; ++j) {
                        const unsigned aw = a[i].words[w], bw = b[j].words[w];
                        acc[i][j] += lower(aw) * lower(bw);
                        acc[i][j] += upper(aw) * upper(bw);
                    }
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
