/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [4, 5, 6]

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
// Shared memory is a ring of STAGES slabs (BK columns of both operands), filled by cp.async STAGES - 2 slabs
// ahead of the products. A warp says that it is done with a slab, and that its copies of the slab two further
// on have landed, on one of two mbarriers in turn; that is waited for two slabs later, when it has long been
// so. The warps thus keep their distances, and one's loads lie behind another's products.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int TM = BM / 16, TN = BN / 16;
constexpr int CHUNKS = BK / 8;
constexpr int SLAB = (BM + BN) * CHUNKS; // chunks of a slab: those of x, then those of weight
constexpr int PASS = 256 / CHUNKS;       // rows that the block copies with one chunk a thread
constexpr int WARPS = 256 / 32;
constexpr unsigned STAGGER = 160;        // cycles between the warps' starts: about a WARPS-th of a step of the products

static_assert(STAGES >= 4, "two slabs that may be in use, two or more that are there or on the way");
static_assert(PASS % 8 == 0, "a thread's rows share their place in the swizzle");

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

extern __shared__ __align__(128) Chunk ring[]; // [STAGES][SLAB]

__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// Starts the copy of a chunk.
__device__ __forceinline__ void copyChunk(unsigned to, const __nv_bfloat16 *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// As above; zeros are written, and nothing is read, where the chunk lies outside.
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

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ bool passed(unsigned barrier, unsigned parity)
{
    unsigned yes;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(yes)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return yes != 0;
}

__device__ __forceinline__ unsigned cycles()
{
    unsigned now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
    return now;
}

// One operand's part of a slab that lies inside. "from" is this thread's chunk of its first row.
template <int ROWS> __device__ __forceinline__ void copyWholeRows(unsigned to, const __nv_bfloat16 *from, int K)
{
#pragma unroll
    for (int i = 0; i < ROWS / PASS; ++i)
        copyChunk(to + unsigned(i * PASS * CHUNKS * int(sizeof(Chunk))), from + size_t(i * PASS) * K);
}

// The same at the edges: rowsLeft counts the matrix's rows from this thread's first row on, "valid" is any
// address that may be named for a chunk outside.
template <int ROWS>
__device__ __forceinline__ void copyRows(unsigned to, const __nv_bfloat16 *from, const __nv_bfloat16 *valid,
                                         int rowsLeft, bool insideK, int K)
{
#pragma unroll
    for (int i = 0; i < ROWS / PASS; ++i) {
        const bool inside = insideK && i * PASS < rowsLeft;
        copyChunk(to + unsigned(i * PASS * CHUNKS * int(sizeof(Chunk))), inside ? from + size_t(i * PASS) * K : valid,
                  inside);
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
    __shared__ unsigned long long doneBarriers[2]; // of the even slabs and of the odd ones

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    const unsigned done0 = unsigned(__cvta_generic_to_shared(doneBarriers));
    if (thread == 0) {
        initBarrier(done0, WARPS);
        initBarrier(done0 + 8, WARPS);
    }

    // This thread copies chunk copyC of the rows copyR, copyR + PASS, ... of both operands.
    const int copyR = thread / CHUNKS, copyC = thread % CHUNKS;
    const __nv_bfloat16 *const xFrom = x + size_t(row0 + copyR) * K + copyC * 8;
    const __nv_bfloat16 *const wFrom = weight + size_t(col0 + copyR) * K + copyC * 8;
    const int xLeft = M - row0 - copyR, wLeft = N - col0 - copyR;
    const bool whole = row0 + BM <= M && col0 + BN <= N;
    const unsigned copyTo = unsigned(__cvta_generic_to_shared(ring)) + unsigned(place(copyR, copyC) * int(sizeof(Chunk)));

    // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
    auto fill = [=](int slot, int k0) {
        const unsigned xTo = copyTo + unsigned(slot * int(sizeof(Chunk)));
        const unsigned wTo = xTo + unsigned(BM * CHUNKS * int(sizeof(Chunk)));
        if (whole && k0 + BK <= K) {
            copyWholeRows<BM>(xTo, xFrom + k0, K);
            copyWholeRows<BN>(wTo, wFrom + k0, K);
        } else {
            const bool insideK = k0 + copyC * 8 < K;
            copyRows<BM>(xTo, xFrom + k0, x, xLeft, insideK, K);
            copyRows<BN>(wTo, wFrom + k0, weight, wLeft, insideK, K);
        }
    };

    // One group a slab, empty past the last one, so that the count of groups tells which slabs are there.
#pragma unroll 1
    for (int s = 0; s < STAGES - 2; ++s) {
        if (s * BK < K)
            fill(s * SLAB, s * BK);
        commitCopies();
    }

    // The first two slabs have no barrier to wait for: they are there before anyone starts.
    awaitCopies<STAGES - 4>();
    __syncthreads();

    // Evenly apart, the warps of a scheduler load at different times, and so do those of different schedulers.
    const unsigned start = cycles(), delay = unsigned(thread / 32) * STAGGER;
    while (cycles() - start < delay) {
    }
    __syncwarp();

    int slot = 0;                       // of the slab in use
    int fillSlot = (STAGES - 2) * SLAB; // of the slab STAGES - 2 further on: the place of the last slab but one

    float acc[TM][TN] = {};
    unsigned slab = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        // All warps are done with the last slab but one, whose place is filled again, and their copies of this
        // slab are there. (A new barrier lets the odd parity pass: the first two slabs do not wait.)
        const unsigned done = done0 + (slab & 1) * 8;
        while (!passed(done, ((slab >> 1) & 1) ^ 1)) {
        }
        if (k0 + (STAGES - 2) * BK < K)
            fill(fillSlot, k0 + (STAGES - 2) * BK);
        commitCopies();

        const Chunk *const xs = ring + slot, *const ws = xs + BM * CHUNKS;
        for (int c = 0; c < CHUNKS; ++c) {
            // Rows 16 apart share their place in the swizzle.
            const Chunk *const xc = xs + place(ty, c), *const wc = ws + place(tx, c);
            Chunk a[TM], b[TN];
            for (int i = 0; i < TM; ++i)
                a[i] = xc[i * 16 * CHUNKS];
            for (int j = 0; j < TN; ++j)
                b[j] = wc[j * 16 * CHUNKS];
#pragma unroll
            for (int w = 0; w < 4; ++w)
                for (int i = 0; i < TM; ++i)
                    for (int j = 0; j < TN; ++j) {
                        const unsigned aw = a[i].words[w], bw = b[j].words[w];
                        acc[i][j] += lower(aw) * lower(bw);
                        acc[i][j] += upper(aw) * upper(bw);
                    }
        }

        // This warp has read the slab, and its copies of the slab two further on have landed.
        awaitCopies<STAGES - 4>();
        __syncwarp();
        if (thread % 32 == 0)
            arrive(done);

        slot = slot == (STAGES - 1) * SLAB ? 0 : slot + SLAB;
        fillSlot = fillSlot == (STAGES - 1) * SLAB ? 0 : fillSlot + SLAB;
        ++slab;
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
