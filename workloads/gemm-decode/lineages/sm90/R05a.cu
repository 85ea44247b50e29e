/*klineage
surface = "cuda"

[[tunable]]
name = "SPLIT"
default = 4
values = [2, 4, 8]

[[tunable]]
name = "WARPS"
default = 8
values = [4, 8, 16]

[[tunable]]
name = "LENGTH"
default = 256
values = [64, 128, 256, 512]

[[tunable]]
name = "STAGES"
default = 2
values = [1, 2, 3, 4, 5, 6]

[[launch]]
kernel = "gemm"
grid = ["SPLIT * ceil_div(N, 64 * SPLIT)", "ceil_div(M, 16)"]
block = ["32 * WARPS"]
cluster = ["SPLIT"]
shared = "WARPS * STAGES * 16 * (LENGTH * 2 + 16) + 16 * (ceil_div(K / 64, SPLIT) * 128 + 16) + 4 * SPLIT * 1024"
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// Attempt from K05: K is split in a cluster, x lies in shared memory, and weights come by bulk copies. Every
// warp keeps a ring of its own, STAGES pieces of 16 rows by LENGTH numbers, asks the copy engine for the next
// piece as soon as it has left one, and waits for nobody else. What comes next is said by K alone, so that
// the ring runs on from one group of 16 columns to the next.
// Needs K % 64 == 0.

#include <cuda_bf16.h>

constexpr int GROUPS = 4 * SPLIT; // of 16 columns, for a cluster
constexpr int PART = 512; // numbers of K of x that a barrier stands for
constexpr int PARTS = 8;
// Rows lie 16 bytes more than a multiple of 128 apart: ldmatrix reads 8 of them without a conflict.
constexpr unsigned PITCH = LENGTH * 2 + 16, STAGE_BYTES = 16 * PITCH;

// d += 16 rows of weight · 8 rows of x, over 16 numbers of K.
__device__ __forceinline__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

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

// Starts the copy of a row's piece; the length is a multiple of 16 bytes.
__device__ __forceinline__ void copyPiece(unsigned to, const __nv_bfloat16 *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

__device__ __forceinline__ unsigned clusterRank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void arriveAtCluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void waitForCluster()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Stores to the same place of shared memory in block `rank` of the cluster.
__device__ __forceinline__ void storeRemote(unsigned to, unsigned rank, float value)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "st.shared::cluster.f32 [remote], %2;\n"
                 "}" :: "r"(to), "r"(rank), "f"(value) : "memory");
}

// Sends a warp's sums of 16 columns to the block that adds them up: part `from` of its slot.
__device__ __forceinline__ void sendSums(const float (&acc)[2][4], unsigned slots, int slot, unsigned to,
                                         unsigned from)
{
    const int lane = threadIdx.x % 32;
    const unsigned part = slots + (slot * SPLIT + from) * 1024;
    // A lane holds columns lane / 4 and the one 8 further of rows 2t and 2t + 1, and of the two rows 8 below.
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = 8 * tile + lane % 4 * 2 + i % 2, col = lane / 4 + 8 * (i / 2);
            storeRemote(part + (row * 16 + col) * 4, to, acc[tile][i]);
        }
}

// Adds up the parts of this block's slots, two columns a thread, and stores them in y.
__device__ __forceinline__ void storeSlots(const float *slots, __nv_bfloat16 *y, int row0, int col0, unsigned rank,
                                           int M, int N)
{
    for (int i = threadIdx.x; i < GROUPS / SPLIT * 128; i += blockDim.x) {
        const int slot = i / 128, row = i / 8 % 16, pair = i % 8;
        const float *part = slots + slot * SPLIT * 256 + row * 16 + 2 * pair;
        float2 sum = {};
#pragma unroll
        for (int from = 0; from < SPLIT; ++from) {
            const float2 two = *reinterpret_cast<const float2 *>(part + 256 * from);
            sum.x += two.x;
            sum.y += two.y;
        }
        const int col = col0 + (slot * SPLIT + rank) * 16 + 2 * pair;
        if (row0 + row < M && col < N)
            *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row0 + row) * N + col) =
                __floats2bfloat162_rn(sum.x, sum.y);
    }
}

extern "C" __global__ __launch_bounds__(32 * WARPS, 1) void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                                 __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(16) unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[WARPS * STAGES + PARTS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned rank = clusterRank();
    const int col0 = blockIdx.x / SPLIT * 64 * SPLIT, row0 = blockIdx.y * 16;
    // This block's part of K; the last one's may be shorter or empty.
    const int slice = (K / 64 + SPLIT - 1) / SPLIT * 64;
    const int first = min(int(rank) * slice, K);
    const int length = min(slice, K - first);
    const unsigned pitchX = slice * 2 + 16;

    const unsigned rings = unsigned(__cvta_generic_to_shared(dynamicShared));
    const unsigned xs = rings + WARPS * STAGES * STAGE_BYTES;
    const unsigned slots = xs + 16 * pitchX;
    const unsigned ring = rings + warp * STAGES * STAGE_BYTES;
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers)) + warp * STAGES * 8;
    const unsigned arrived = unsigned(__cvta_generic_to_shared(barriers)) + WARPS * STAGES * 8;

    arriveAtCluster();
    if (lane == 0)
        for (int stage = 0; stage < STAGES; ++stage)
            initBarrier(full + 8 * stage, 1);
    if (threadIdx.x == 0)
        for (int part = 0; part < PARTS; ++part)
            initBarrier(arrived + 8 * part, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
    __syncthreads();

    // A warp's turns: the pieces of its first 16 columns, then those of the next.
    const int pieces = (length + LENGTH - 1) / LENGTH;
    int groups = 0;
    while (warp + groups * WARPS < GROUPS && col0 + 16 * (warp + groups * WARPS) < N)
        ++groups;
    const int turns = groups * pieces;
    const auto fetch = [&](int turn) {
        if (turn >= turns)
            return;
        const int k = turn % pieces * LENGTH;
        const unsigned bytes = min(LENGTH, length - k) * 2;
        const unsigned barrier = full + turn % STAGES * 8;
        if (lane == 0)
            expectBytes(barrier, 16 * bytes);
        __syncwarp();
        if (lane < 16) {
            // Rows past the last repeat it; they are not stored.
            const int row = min(col0 + 16 * (warp + turn / pieces * WARPS) + lane, N - 1);
            copyPiece(ring + turn % STAGES * STAGE_BYTES + lane * PITCH, weight + size_t(row) * K + first + k,
                      bytes, barrier);
        }
    };
    for (int turn = 0; turn < STAGES; ++turn)
        fetch(turn);

    // x follows in parts, so that the first products need not wait for all of it.
    if (warp == 0)
        for (int part = 0; part * PART < length; ++part) {
            const unsigned bytes = min(PART, length - part * PART) * 2;
            if (lane == 0)
                expectBytes(arrived + 8 * part, 16 * bytes);
            __syncwarp();
            if (lane < 16)
                copyPiece(xs + lane * pitchX + part * PART * 2,
                          x + size_t(min(row0 + lane, M - 1)) * K + first + part * PART, bytes, arrived + 8 * part);
        }

    // Where this lane's rows of fragments lie in a piece, and in x.
    const unsigned weightRow = lane % 16 * PITCH + lane / 16 * 16;
    const unsigned xRow = xs + (lane / 16 * 8 + lane % 8) * pitchX + lane / 8 % 2 * 16;
    bool othersBegun = false;
    int turn = 0;
    for (int group = 0; group < groups; ++group) {
        float acc[2][4] = {};
        for (int piece = 0; piece < pieces; ++piece, ++turn) {
            const int k0 = piece * LENGTH;
            waitPhase(arrived + k0 / PART * 8, 0);
            waitPhase(full + turn % STAGES * 8, turn / STAGES % 2);
            const unsigned from = ring + turn % STAGES * STAGE_BYTES + weightRow;
            for (int k = 0; k < min(LENGTH, length - k0); k += 64) {
#pragma unroll
                for (int step = 0; step < 64; step += 16) {
                    unsigned w[4], a[4];
                    loadMatrices(w, from + (k + step) * 2);
                    loadMatrices(a, xRow + (k0 + k + step) * 2);
                    multiply(acc[0], w[0], w[1], w[2], w[3], a[0], a[1]);
                    multiply(acc[1], w[0], w[1], w[2], w[3], a[2], a[3]);
                }
            }
            __syncwarp(); // all lanes have left the stage
            fetch(turn + STAGES);
        }
        if (!othersBegun)
            waitForCluster(); // their shared memory is there
        othersBegun = true;
        const int which = warp + group * WARPS;
        sendSums(acc, slots, which / SPLIT, which % SPLIT, rank);
    }
    if (!othersBegun)
        waitForCluster();
    arriveAtCluster();
    waitForCluster(); // everyone's parts have arrived
    storeSlots(reinterpret_cast<const float *>(dynamicShared + (slots - rings)), y, row0, col0, rank, M, N);
}
