/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3, 4]

[[launch]]
kernel = "multiplyBatch"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)", "B"]
block = ["16", "16"]
shared = "STAGES * 32768"
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[b,M,N] = x[b,M,K] · weight[b,N,K]ᵀ for every b, bf16 in and out, fp32 sums. blockIdx.z is b.
//
// Operands move in 16-byte chunks of 8 numbers, from global to shared memory and from there to registers:
// an eighth of the load instructions. Rows of 8 chunks (128 bytes) would put chunk c of every row into the
// same banks, so row r keeps chunk c at place c ^ (r % 8): 8 neighbouring rows then cover all 32 banks.
// Needs K % 8 == 0, so that a chunk is inside the matrix or outside, never half.
//
// Shared memory is a ring of STAGES slabs, filled by cp.async STAGES - 1 slabs ahead of the products: the copies
// bypass the registers and run while earlier slabs are multiplied, and one barrier a slab is enough.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int TM = BM / 16, TN = BN / 16;
constexpr int CHUNKS = BK / 8;
constexpr int STAGE_CHUNKS = (BM + BN) * CHUNKS; // x's rows, then weight's

static_assert(BM == BN, "one copy loop serves both operands");
static_assert(STAGES >= 2, "the ring needs a stage to fill and a stage to read");
static_assert(STAGE_CHUNKS * 16 == 32768, "the launch plan counts 32768 bytes a stage");

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// Copies 16 bytes in the background; a chunk outside the matrix is filled with zeros and not read,
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

extern "C" __global__ __launch_bounds__(256, 1) void multiplyBatch(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                                   __nv_bfloat16 *y, int M, int N, int K)
{
    x += size_t(blockIdx.z) * M * K;
    weight += size_t(blockIdx.z) * N * K;
    y += size_t(blockIdx.z) * M * N;

    extern __shared__ Chunk ring[];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    const auto fetch = [&](int slab) {
        if (slab < slabs) {
            Chunk *const xs = ring + slab % STAGES * STAGE_CHUNKS;
            Chunk *const ws = xs + BM * CHUNKS;
            const int c = thread % CHUNKS, k = slab * BK + c * 8;
            // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
#pragma unroll
            for (int i = 0; i < BM * CHUNKS / 256; ++i) {
                const int r = (thread + 256 * i) / CHUNKS;
                const bool inX = row0 + r < M && k < K, inW = col0 + r < N && k < K;
                copyAsync(xs + place(r, c), inX ? x + (size_t(row0 + r) * K + k) : x, inX);
                copyAsync(ws + place(r, c), inW ? weight + (size_t(col0 + r) * K + k) : weight, inW);
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
        // After it: everyone's copies of this slab have landed, and everyone has left the slab before it,
        // whose stage is the one that is filled now.
        __syncthreads();
        fetch(slab + STAGES - 1);

        const Chunk *const xs = ring + slab % STAGES * STAGE_CHUNKS;
        const Chunk *const ws = xs + BM * CHUNKS;
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

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
