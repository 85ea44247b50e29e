/*klineage
surface = "cuda"

[[tunable]]
name = "BK"
default = 64
values = [16, 32, 64]

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
args = ["x", "weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// A thread owns an 8 × 8 patch of y in registers, strided by 16 rows and columns. Operands move in chunks of
// 16 bytes, 8 numbers along K: one load a chunk from global memory, one store to and one load from shared
// memory. The shared rows are swizzled, so that the same chunk of 8 neighbouring rows covers all 32 banks.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128;
constexpr int TM = BM / 16, TN = BN / 16;
constexpr int THREADS = 256;
constexpr int CHUNKS = BK / 8;             // chunks of 16 bytes in a shared row
constexpr int ROWS_AROUND = 8 / CHUNKS;    // rows that go once around the banks (128 bytes)
constexpr int STAGED = BM * CHUNKS / THREADS;

static_assert(CHUNKS == 2 || CHUNKS == 4 || CHUNKS == 8, "a shared row is 32, 64 or 128 bytes");
static_assert(BM == BN, "both tiles are staged by the same loop");

// Where chunk c of row r lies; with rows of 128 bytes, at c ^ (r % 8).
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ ((row / ROWS_AROUND) % CHUNKS));
}

// bf16 is the upper half of an fp32.
__device__ __forceinline__ float lower(unsigned word) { return __uint_as_float(word << 16); }
__device__ __forceinline__ float upper(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

extern "C" __global__ __launch_bounds__(256, 1) void linear(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                            const __nv_bfloat16 *bias, __nv_bfloat16 *y,
                                                            int M, int N, int K)
{
    __shared__ uint4 xs[BM * CHUNKS];
    __shared__ uint4 ws[BN * CHUNKS];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    float acc[TM][TN] = {};
#pragma unroll 1
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        // K % 8 == 0: a chunk is inside the matrix or outside, never half.
        {
            uint4 fromX[STAGED], fromW[STAGED];
            const int c = thread % CHUNKS, k = k0 + c * 8;
#pragma unroll
            for (int i = 0; i < STAGED; ++i) {
                const int r = (thread + THREADS * i) / CHUNKS;
                fromX[i] = make_uint4(0u, 0u, 0u, 0u);
                fromW[i] = make_uint4(0u, 0u, 0u, 0u);
                if (row0 + r < M && k < K)
                    fromX[i] = *reinterpret_cast<const uint4 *>(x + size_t(row0 + r) * K + k);
                if (col0 + r < N && k < K)
                    fromW[i] = *reinterpret_cast<const uint4 *>(weight + size_t(col0 + r) * K + k);
            }
#pragma unroll
            for (int i = 0; i < STAGED; ++i) {
                const int r = (thread + THREADS * i) / CHUNKS;
                xs[place(r, c)] = fromX[i];
                ws[place(r, c)] = fromW[i];
            }
        }
        __syncthreads();

#pragma unroll 1
        for (int c = 0; c < CHUNKS; ++c) {
            // 16 rows are whole periods of the swizzle: place(ty + 16 * i, c) is place(ty, c) + 16 * CHUNKS * i.
            const uint4 *xc = xs + place(ty, c);
            const uint4 *wc = ws + place(tx, c);
            unsigned a[TM][4], b[TN][4];
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                const uint4 chunk = wc[16 * CHUNKS * j];
                b[j][0] = chunk.x;
                b[j][1] = chunk.y;
                b[j][2] = chunk.z;
                b[j][3] = chunk.w;
            }
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const uint4 chunk = xc[16 * CHUNKS * i];
                a[i][0] = chunk.x;
                a[i][1] = chunk.y;
                a[i][2] = chunk.z;
                a[i][3] = chunk.w;
            }
            // Unrolled in full: w must be a constant, or a and b move to local memory.
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                float bl[TN], bu[TN];
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    bl[j] = lower(b[j][w]);
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const float al = lower(a[i][w]);
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        acc[i][j] += al * bl[j];
                }
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    bu[j] = upper(b[j][w]);
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const float au = upper(a[i][w]);
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        acc[i][j] += au * bu[j];
                }
            }
        }
        __syncthreads();
    }

    float added[TN];
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int col = col0 + tx + 16 * j;
        added[j] = col < N ? __bfloat162float(bias[col]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j] + added[j]);
        }
}
