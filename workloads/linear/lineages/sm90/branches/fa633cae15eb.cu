/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3, 4]

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
shared = "STAGES * (128 + 128) * 64 * 2"
args = ["x", "weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// Operands move in 16-byte chunks of 8 numbers, from global to shared memory and from there to registers:
// an eighth of the load instructions. Rows of 8 chunks (128 bytes) would put chunk c of every row into the
// same banks, so row r keeps chunk c at place c ^ (r % 8): 8 neighbouring rows then cover all 32 banks.
// Needs K % 8 == 0, so that a chunk is inside the matrix or outside, never half.
//
// The slabs of both operands lie in a ring of STAGES stages, filled STAGES - 1 slabs ahead by cp.async:
// the copies bypass the registers and run while earlier slabs are multiplied; one barrier a slab.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int TM = BM / 16, TN = BN / 16;
constexpr int CHUNKS = BK / 8;
constexpr int STAGE_CHUNKS = (BM + BN) * CHUNKS;

static_assert(STAGES >= 2, "one slab is multiplied while others are copied");
static_assert(BM == BN, "one loop copies the rows of both operands");

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// Copies 16 bytes in the background. A chunk outside the matrix is filled with zeros and not read,
// but `from` has to be a valid address all the same.
__device__ __forceinline__ void copyAsync(Chunk *to, const __nv_bfloat16 *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
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

extern "C" __global__ __launch_bounds__(256, 1) void linear(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                            const __nv_bfloat16 *bias, __nv_bfloat16 *y,
                                                            int M, int N, int K)
{
    extern __shared__ Chunk ring[]; // STAGES times: BM rows of x, then BN rows of weight

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    const auto fetch = [&](int slab) {
        if (slab < slabs) {
            Chunk *xs = ring + slab % STAGES * STAGE_CHUNKS;
            Chunk *ws = xs + BM * CHUNKS;
            const int k0 = slab * BK;
            // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
#pragma unroll
            for (int i = 0; i < BM * CHUNKS / 256; ++i) {
                const int r = (thread + 256 * i) / CHUNKS, c = thread % CHUNKS, k = k0 + c * 8;
                const bool xInside = row0 + r < M && k < K;
                const bool wInside = col0 + r < N && k < K;
                copyAsync(xs + place(r, c), xInside ? x + size_t(row0 + r) * K + k : x, xInside);
                copyAsync(ws + place(r, c), wInside ? weight + size_t(col0 + r) * K + k : weight, wInside);
            }
        }
        commitCopies(); // empty past the end: groups are counted
    };

#pragma unroll
    for (int slab = 0; slab < STAGES - 1; ++slab)
        fetch(slab);

    float acc[TM][TN] = {};
#pragma unroll 1
    for (int slab = 0; slab < slabs; ++slab) {
        waitCopies<STAGES - 2>();
        // After it everyone's copies of this slab have landed, and everyone has left the slab before it,
        // whose stage is the one filled now.
        __syncthreads();
        fetch(slab + STAGES - 1);

        const Chunk *xs = ring + slab % STAGES * STAGE_CHUNKS;
        const Chunk *ws = xs + BM * CHUNKS;
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
    }

    float added[TN];
    for (int j = 0; j < TN; ++j) {
        const int col = col0 + tx + 16 * j;
        added[j] = col < N ? __bfloat162float(bias[col]) : 0.0f;
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j] + added[j]);
        }
}
