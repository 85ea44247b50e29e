/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [3, 4, 6]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
shared = "STAGES * (128 + 128) * 64 * 2"
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
//
// Shared memory is a ring of STAGES slabs (BK columns of both operands), filled by cp.async STAGES - 1 slabs
// ahead of the products: the copies need no registers, and no thread waits for a slab it has just asked for.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int TM = BM / 16, TN = BN / 16;
constexpr int CHUNKS = BK / 8;
constexpr int SLAB = (BM + BN) * CHUNKS; // chunks of a slab: those of x, then those of weight
constexpr int PASS = 256 / CHUNKS;       // rows that the block copies with one chunk a thread

static_assert(STAGES >= 2, "one slab in use, one or more on the way");
static_assert(PASS % 8 == 0, "a thread's rows share their place in the swizzle");

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

extern __shared__ Chunk ring[]; // [STAGES][SLAB]

__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// Starts the copy of a chunk; zeros are written, and nothing is read, where it lies outside.
__device__ __forceinline__ void copyChunk(unsigned to, const __nv_bfloat16 *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until no more than PENDING of this thread's latest groups are on the way.
template <int PENDING> __device__ __forceinline__ void awaitCopies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// One operand's part of a slab. "from" is this thread's chunk of its first row at k0, rowsLeft counts the
// matrix's rows from that row on, "valid" is any address that may be named for a chunk outside.
template <int ROWS>
__device__ __forceinline__ void copyRows(unsigned to, const __nv_bfloat16 *from, const __nv_bfloat16 *valid,
                                         int rowsLeft, bool insideK, int K)
{
#pragma unroll
    for (int i = 0; i < ROWS / PASS; ++i) {
        const bool inside = insideK && i * PASS < rowsLeft;
        copyChunk(to + i * PASS * CHUNKS * int(sizeof(Chunk)), inside ? from + size_t(i * PASS) * K : valid, inside);
    }
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

extern "C" __global__ __launch_bounds__(256, 1) void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    // This thread copies chunk copyC of the rows copyR, copyR + PASS, ... of both operands.
    const int copyR = thread / CHUNKS, copyC = thread % CHUNKS;
    const __nv_bfloat16 *const xFrom = x + size_t(row0 + copyR) * K + copyC * 8;
    const __nv_bfloat16 *const wFrom = weight + size_t(col0 + copyR) * K + copyC * 8;
    const int xLeft = M - row0 - copyR, wLeft = N - col0 - copyR;
    const unsigned copyTo = unsigned(__cvta_generic_to_shared(ring)) + unsigned(place(copyR, copyC) * int(sizeof(Chunk)));

    // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
    auto fill = [=](int slot, int k0) {
        const bool insideK = k0 + copyC * 8 < K;
        const unsigned to = copyTo + unsigned(slot * int(sizeof(Chunk)));
        copyRows<BM>(to, xFrom + k0, x, xLeft, insideK, K);
        copyRows<BN>(to + unsigned(BM * CHUNKS * int(sizeof(Chunk))), wFrom + k0, weight, wLeft, insideK, K);
    };

    // One group a slab, empty past the last one, so that the count of groups tells which slabs are there.
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s * BK < K)
            fill(s * SLAB, s * BK);
        commitCopies();
    }

    int slot = 0;                       // of the slab in use
    int fillSlot = (STAGES - 1) * SLAB; // of the slab STAGES - 1 further on

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Past the barrier this slab is there for all threads, and all are done with the slab before it,
        // whose place in the ring is the one to fill.
        awaitCopies<STAGES - 2>();
        __syncthreads();
        if (k0 + (STAGES - 1) * BK < K)
            fill(fillSlot, k0 + (STAGES - 1) * BK);
        commitCopies();

        const int xs = slot, ws = slot + BM * CHUNKS;
        for (int c = 0; c < CHUNKS; ++c) {
            Chunk a[TM], b[TN];
            for (int i = 0; i < TM; ++i)
                a[i] = ring[xs + place(ty + 16 * i, c)];
            for (int j = 0; j < TN; ++j)
                b[j] = ring[ws + place(tx + 16 * j, c)];
#pragma unroll
            for (int w = 0; w < 4; ++w)
                for (int i = 0; i < TM; ++i)
                    for (int j = 0; j < TN; ++j) {
                        const unsigned aw = a[i].words[w], bw = b[j].words[w];
                        acc[i][j] += lower(aw) * lower(bw);
                        acc[i][j] += upper(aw) * upper(bw);
                    }
        }

        fillSlot = slot;
        slot = slot == (STAGES - 1) * SLAB ? 0 : slot + SLAB;
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
