/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 6
values = [3, 4, 5, 6]

[[launch]]
kernel = "gemm"
grid = ["2 * ceil_div(N, 128)", "ceil_div(M, 16)"]
block = ["320"]
cluster = ["2"]
shared = "STAGES * 8 * (4096 + 64) + 2 * 8 * 512 + 8 * 512"
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// From K07, which reads 512 bytes of 64 rows that lie 16 KB apart, and x once for 64 rows. Here a cluster of two blocks
// takes 128 rows of weight, 8 at a time, and each block half of K: what a warp multiplies of x is always the same, and
// stays in registers. So weight streams in pieces of 4096 neighbouring bytes, which fill the pages of device memory, by
// bulk copies without descriptors into padded rows; x costs half as many bytes on the way in, and no shared memory. A
// warp of its own adds up the sums of 8 rows while the next come, and sends those of the other block's rows to it.
// Needs K % 64 == 0, K <= 8192 and N % 8 == 0.

#include <cuda_bf16.h>

constexpr int ROWS = 8, BM = 16, BK = 2048; // rows and numbers of K a stage
constexpr int WARPS = 8, GROUPS = 16;       // groups of 8 rows a cluster
constexpr int PIECES = 2;                   // stages a group, a block
// Rows lie 64 bytes further than they are long: 16-byte loads of two rows and four chunks meet no conflict.
constexpr unsigned PITCH = BK * 2 + 64, STAGE_BYTES = ROWS * PITCH;

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives at a barrier of the other block; what this thread wrote there before is seen by who waits.
__device__ __forceinline__ void arriveThere(unsigned barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one).
__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// The same, for what another block of the cluster wrote.
__device__ __forceinline__ void waitPhaseOfCluster(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// Starts the copy of `bytes` neighbouring bytes.
__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// 16 bytes: 8 neighbouring numbers of a row.
__device__ __forceinline__ void loadChunk(unsigned (&to)[4], unsigned from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

__device__ __forceinline__ float4 loadSums(unsigned from)
{
    float4 sums;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(sums.x), "=f"(sums.y), "=f"(sums.z), "=f"(sums.w) : "r"(from) : "memory");
    return sums;
}

__device__ __forceinline__ void storeSums(unsigned to, float a, float b, float c, float d)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

__device__ __forceinline__ void storeSumsThere(unsigned to, float4 sums)
{
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "f"(sums.x), "f"(sums.y), "f"(sums.z), "f"(sums.w) : "memory");
}

// The same place in the block of this rank.
__device__ __forceinline__ unsigned placeThere(unsigned here, unsigned rank)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    return there;
}

__device__ __forceinline__ float4 add(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// d += 16 rows of x · 8 rows of weight, over 16 numbers of K.
__device__ __forceinline__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Of each two groups a block has one to store. The other block's comes first, so that nobody waits at the end.
__device__ __forceinline__ int groupOf(int turn, int rank)
{
    return turn / 2 * 2 + (turn % 2 == 0 ? 1 - rank : rank);
}

extern "C" __global__ __launch_bounds__(32 * (WARPS + 2), 1) void gemm(const __nv_bfloat16 *x,
                                                                       const __nv_bfloat16 *weight,
                                                                       __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(128) unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 4 + GROUPS / 2];
    const unsigned ring = unsigned(__cvta_generic_to_shared(dynamicShared));
    const unsigned parts = ring + STAGES * STAGE_BYTES; // two lots of one 512-byte set of sums a warp
    const unsigned inbox = parts + 2 * WARPS * 512;     // what the other block sends: a set for each two groups
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;
    const unsigned partsFull = empty + 8 * STAGES, partsEmpty = partsFull + 16, sent = partsEmpty + 16;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, t = lane % 4;
    const int rank = blockIdx.x % 2, row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x / 2 * (GROUPS * ROWS);
    const int k0 = rank * PIECES * BK; // this block's half of K, which may be empty
    const int pieces = min(PIECES, max(0, (K - k0 + BK - 1) / BK));

    if (warp == WARPS) {
        if (lane == 0) {
            for (int stage = 0; stage < STAGES; ++stage) {
                initBarrier(full + 8 * stage, 1);
                initBarrier(empty + 8 * stage, WARPS);
            }
            for (int i = 0; i < 2; ++i) {
                initBarrier(partsFull + 8 * i, WARPS);
                initBarrier(partsEmpty + 8 * i, 1);
            }
            for (int i = 0; i < GROUPS / 2; ++i)
                initBarrier(sent + 8 * i, 32);
            // The copy engine and the other block see them too.
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncwarp();
        asm volatile("barrier.cluster.arrive.release;" ::: "memory");
        if (lane == 0) {
            int stage = 0;
            unsigned parity = 1; // the first lap waits for nobody
            for (int turn = 0; turn < GROUPS; ++turn) {
                const int col = col0 + groupOf(turn, rank) * ROWS;
                if (col >= N)
                    continue;
                for (int piece = 0; piece < pieces; ++piece) {
                    const int k = k0 + piece * BK;
                    const unsigned bytes = min(BK, K - k) * 2, barrier = full + 8 * stage;
                    waitPhase(empty + 8 * stage, parity);
                    expectBytes(barrier, ROWS * bytes);
#pragma unroll
                    for (int row = 0; row < ROWS; ++row)
                        copyBytes(ring + stage * STAGE_BYTES + row * PITCH, weight + size_t(col + row) * K + k, bytes,
                                  barrier);
                    if (++stage == STAGES) {
                        stage = 0;
                        parity ^= 1;
                    }
                }
            }
        }
        __syncwarp();
        asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    } else if (warp < WARPS) {
        // Every warp takes 256 of a piece's numbers of K. A lane brings 8 neighbouring numbers of a row. The instruction
        // wants pairs that lie 8 apart, but a sum does not care which k is called which, as long as both operands agree:
        // words 0 and 1 make one step of 16, words 2 and 3 the next.
        unsigned a[PIECES][8][2][4];
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece)
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int k = k0 + piece * BK + warp * 256 + i * 32 + t * 8, row = row0 + group + 8 * half;
                    unsigned(&to)[4] = a[piece][i][half];
                    to[0] = to[1] = to[2] = to[3] = 0;
                    if (k < K && row < M)
                        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                                     : "l"(x + size_t(row) * K + k));
                }
        asm volatile("barrier.cluster.arrive.release;\n"
                     "barrier.cluster.wait.acquire;" ::: "memory");

        const unsigned mine = ring + group * PITCH + warp * 512 + t * 16;
        int stage = 0, lot = 0;
        unsigned parity = 0, lotParity = 1;
        for (int turn = 0; turn < GROUPS; ++turn) {
            if (col0 + groupOf(turn, rank) * ROWS >= N)
                continue;
            float acc[2][4] = {};
#pragma unroll
            for (int piece = 0; piece < PIECES; ++piece) {
                if (piece >= pieces)
                    continue;
                waitPhase(full + 8 * stage, parity);
                // Past the end of K there is whatever was there before.
                const int blocks = (K - k0 - piece * BK - warp * 256) / 32;
#pragma unroll
                for (int begin = 0; begin < 8; begin += 4) {
                    unsigned w[4][4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        loadChunk(w[i], mine + stage * STAGE_BYTES + (begin + i) * 64);
                    if (begin == 4) {
                        __syncwarp();
                        if (lane == 0)
                            arrive(empty + 8 * stage);
                    }
                    if (blocks < 8)
#pragma unroll
                        for (int i = 0; i < 4; ++i)
                            if (begin + i >= blocks)
                                w[i][0] = w[i][1] = w[i][2] = w[i][3] = 0;
#pragma unroll
                    for (int i = 0; i < 4; ++i)
#pragma unroll
                        for (int step = 0; step < 4; step += 2) {
                            const unsigned(&rows)[2][4] = a[piece][begin + i];
                            multiply(acc[step / 2], rows[0][step], rows[1][step], rows[0][step + 1],
                                     rows[1][step + 1], w[i][step], w[i][step + 1]);
                        }
                }
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
            waitPhase(partsEmpty + 8 * lot, lotParity);
            storeSums(parts + (lot * WARPS + warp) * 512 + lane * 16, acc[0][0] + acc[1][0], acc[0][1] + acc[1][1],
                      acc[0][2] + acc[1][2], acc[0][3] + acc[1][3]);
            __syncwarp();
            if (lane == 0)
                arrive(partsFull + 8 * lot);
            lot ^= 1;
            lotParity ^= lot == 0;
        }
    } else {
        asm volatile("barrier.cluster.arrive.release;\n"
                     "barrier.cluster.wait.acquire;" ::: "memory");
        // A lane has columns 2t and 2t + 1 of rows lane / 4 and the one 8 further.
        const auto finish = [&](float4 sums, int done) {
            waitPhaseOfCluster(sent + 8 * (done / 2), 0);
            sums = add(sums, loadSums(inbox + done / 2 * 512 + lane * 16));
            __nv_bfloat16 *to = y + size_t(row0 + group) * N + col0 + done * ROWS + 2 * t;
            if (row0 + group < M)
                *reinterpret_cast<__nv_bfloat162 *>(to) = __floats2bfloat162_rn(sums.x, sums.y);
            if (row0 + group + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(to + size_t(8) * N) = __floats2bfloat162_rn(sums.z, sums.w);
        };
        const unsigned inboxThere = placeThere(inbox, rank ^ 1), sentThere = placeThere(sent, rank ^ 1);
        float4 kept = {};
        int keptGroup = -1, lot = 0;
        unsigned lotParity = 0;
        for (int turn = 0; turn < GROUPS; ++turn) {
            const int now = groupOf(turn, rank);
            if (col0 + now * ROWS >= N)
                continue;
            waitPhase(partsFull + 8 * lot, lotParity);
            float4 sums = loadSums(parts + lot * WARPS * 512 + lane * 16);
#pragma unroll
            for (int part = 1; part < WARPS; ++part)
                sums = add(sums, loadSums(parts + (lot * WARPS + part) * 512 + lane * 16));
            __syncwarp();
            if (lane == 0)
                arrive(partsEmpty + 8 * lot);
            lot ^= 1;
            lotParity ^= lot == 0;
            if (turn % 2 == 0) {
                storeSumsThere(inboxThere + now / 2 * 512 + lane * 16, sums);
                arriveThere(sentThere + 8 * (now / 2));
            } else {
                // One later, so that the other block may be behind by a while.
                if (keptGroup >= 0)
                    finish(kept, keptGroup);
                kept = sums;
                keptGroup = now;
            }
        }
        if (keptGroup >= 0)
            finish(kept, keptGroup);
    }
}
