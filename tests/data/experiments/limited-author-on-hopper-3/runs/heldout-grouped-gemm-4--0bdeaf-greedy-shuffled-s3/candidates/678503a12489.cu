/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"
[[launch]]
kernel = "multiply"
grid = ["2", "ceil_div(sm_count, 2)"]
block = ["384"]
cluster = ["2", "1"]
shared = "197632"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Persistent clusters of two blocks make 256x256 tiles of one group with wgmma, 128 rows a block, from a ring of stages that TMA fills; B goes to both.
// The kernel before it stays under #if 0, as its removal would not fit the limit of a change. Of that one:
// A block makes a 128x128 tile of one group with mma.sync, eight warps of 64x32, from two slabs in shared memory that cp.async fills in turn;
// still missing are a deeper pipeline, fragments loaded ahead of use, an order of tiles that minds the L2 cache, and all that is Hopper's own
// (TMA, wgmma, specialized warps, persistence).

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4, A_BYTES = 2 * BM * BK, STAGE = A_BYTES + 2 * BK * BN; // 48 KiB a stage
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
// Tiles with rows of 128 swizzled bytes, for wgmma: A's rows are those of the result; B's are summed over, 8192 bytes from 64 columns to the next 64.
constexpr unsigned long long A_TILE = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
constexpr unsigned long long B_TILE = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;
#define D4(i, j) "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
#define D16(i) D4(i, 0), D4(i, 1), D4(i, 2), D4(i, 3)
#define SUMS D16(0), D16(1), D16(2), D16(3), D16(4), D16(5), D16(6), D16(7)

// Adds the product of 64 rows by 16 of A and 16 rows by 256 columns of B, or with `more` = 0 writes it over the sums.
__device__ __forceinline__ void product(float (&sum)[8][4][4], unsigned long long x, unsigned long long w, int more)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %130, 0;\n\twgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n\t}"
                 : SUMS : "l"(x), "l"(w), "r"(more));
}
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    asm volatile("{\n\t.reg .pred p;\n\tAGAIN:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p bra AGAIN;\n\t}" : : "r"(barrier), "r"(parity) : "memory");
}
// Starts the products of a stage once it is full.
__device__ __forceinline__ void start(float (&sum)[8][4][4], unsigned full, unsigned round, unsigned x, unsigned w, bool more)
{
    const unsigned offset = round % STAGES * (STAGE / 16);
    wait_for(full + round % STAGES * 8, round / STAGES % 2);
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
    for (int k = 0; k < BK; k += 16)
        product(sum, A_TILE + (x + offset + k / 8), B_TILE + (w + offset + k * 8), more || k > 0 ? 1 : 0);
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}
// That of block `rank` of the cluster. The products that read the stage have ended and nothing was written to it: no fence for the whole cluster.
__device__ __forceinline__ void release(unsigned barrier, unsigned rank)
{
    asm volatile("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\tmbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" : : "r"(barrier), "r"(rank) : "memory");
}
// Exchanges `high` of a lane without `bit` for `low` of the lane with it.
__device__ __forceinline__ void exchange(unsigned &low, unsigned &high, unsigned bit)
{
    const bool upper = (threadIdx.x & bit) != 0;
    const unsigned got = __shfl_xor_sync(~0u, upper ? low : high, bit);
    low = upper ? got : low;
    high = upper ? high : got;
}

extern "C" __global__ void __launch_bounds__(384, 1) multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const int *offsets,
                                                              __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ unsigned char slabs[];
    __shared__ unsigned long long barriers[2 * STAGES]; // full stages, then empty ones, which the 8 warps of both blocks have left
    const unsigned base = (static_cast<unsigned>(__cvta_generic_to_shared(slabs)) + 1023u) & ~1023u;
    const unsigned full = static_cast<unsigned>(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = blockIdx.x, steps = (K + BK - 1) / BK, columns = (N + BN - 1) / BN;
    if (threadIdx.x < STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tmbarrier.init.shared::cta.b64 [%1], 16;\n\tfence.mbarrier_init.release.cluster;" : : "r"(full + 8 * threadIdx.x), "r"(empty + 8 * threadIdx.x) : "memory");
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" : : : "memory");
    unsigned round = 0; // counts the stages that went by
    for (int turn = blockIdx.y;; turn += gridDim.y) {
        int tile = turn, group = 0, lo = 0, end = 0, pairs = 1;
        for (; group < G; tile -= pairs * columns, ++group) {
            lo = offsets[group], end = offsets[group + 1], pairs = (end - lo + 2 * BM - 1) / (2 * BM);
            if (tile < pairs * columns)
                break;
        }
        if (group == G)
            break;
        const int first = lo + (tile % pairs * 2 + rank) * BM, col0 = tile / pairs * BN;
        if (threadIdx.x == 256)
            for (int step = 0; step < steps; ++step, ++round) {
                const unsigned slab = base + round % STAGES * STAGE, barrier = full + round % STAGES * 8;
                wait_for(barrier + 8 * STAGES, (round / STAGES % 2) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(STAGE) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" : : "r"(slab), "l"(&tm_a), "r"(step * BK), "r"(first), "r"(barrier) : "memory");
                for (int j = 2 * rank; j < 2 * rank + 2; ++j) // this block's half of the columns, to both blocks
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" : : "r"(slab + A_BYTES + j * 8192), "l"(&tm_b), "r"(col0 + j * 64), "r"(step * BK), "r"(group), "r"(barrier), "h"(static_cast<unsigned short>(3)) : "memory");
            }
        if (warp >= 8)
            continue;
        float sum[8][4][4]; // the first product writes over whatever it holds
        asm volatile("" : SUMS : : "memory");
        const unsigned w = ((base & 0x3ffff) + A_BYTES) >> 4, x = __shfl_sync(~0u, ((base & 0x3ffff) >> 4) + warp / 4 * 512, 0);
        start(sum, full, round++, x, w, false);
        for (int step = 1; step < steps; ++step, ++round) {
            start(sum, full, round, x, w, true);
            asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");
            if (lane < 2)
                release(empty + (round - 1) % STAGES * 8, lane);
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS : : "memory");
        if (lane < 2)
            release(empty + (round - 1) % STAGES * 8, lane);
#pragma unroll
        for (int i = 0; i < 16; ++i) { // 32 columns of 8 rows, then of the 8 rows below
            unsigned v[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v[j]) : "f"(sum[i / 2][j][i % 2 * 2 + 1]), "f"(sum[i / 2][j][i % 2 * 2]));
            exchange(v[0], v[1], 1), exchange(v[2], v[3], 1), exchange(v[0], v[2], 2), exchange(v[1], v[3], 2);
            const int row = first + warp * 16 + lane / 4 + i % 2 * 8, col = col0 + i / 2 * 32 + lane % 4 * 8;
            if (row < end && col < N)
                *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = make_uint4(v[0], v[1], v[2], v[3]);
        }
    }
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" : : : "memory"); // the other block may still write here
}
#if 0
constexpr int BM = 128;
constexpr int BN = 128;
constexpr int BK = 32;
constexpr int THREADS = 256;
constexpr int LDA = BK + 8; // 80 bytes a row: eight rows of a fragment fall in different banks
constexpr int LDB = BN + 8; // 272 bytes a row, likewise
constexpr int A_SLAB = BM * LDA;
constexpr int B_SLAB = BK * LDB;

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    unsigned long long s;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(s) : "l"(p));
    return static_cast<unsigned>(s);
}

// Copies 16 bytes, or writes 16 bytes of zeros where `inside` is false; then nothing is read.
__device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&x)[4], unsigned w0, unsigned w1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w0), "r"(w1));
}

__device__ __forceinline__ unsigned narrow(float low, float high)
{
    const unsigned l = __bfloat16_as_ushort(__float2bfloat16(low));
    const unsigned h = __bfloat16_as_ushort(__float2bfloat16(high));
    return l | (h << 16);
}

// Starts the copies of the slabs that begin at k0. N and K are multiples of 8: a vector of 8 elements is aligned, and all inside or all outside.
__device__ __forceinline__ void start_slabs(unsigned as, unsigned bs, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int first, int end,
                                            int col0, int k0, int N, int K)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < BM * BK / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int r = v / (BK / 8);
        const int k = (v % (BK / 8)) * 8;
        const bool inside = first + r < end && k0 + k < K;
        copy_async(as + 2 * (r * LDA + k), inside ? a + size_t(first + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < BK * BN / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int k = v / (BN / 8);
        const int c = (v % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy_async(bs + 2 * (k * LDB + c), inside ? b + size_t(k0 + k) * N + col0 + c : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets,
                                                               __nv_bfloat16 *y, int G, int N, int K)
{
    __shared__ __align__(16) unsigned short As[2 * A_SLAB]; // 20 KiB
    __shared__ __align__(16) unsigned short Bs[2 * B_SLAB]; // 17 KiB

    // The grid has room for one part-filled tile a group: find the tile of this block, or leave. The answer is the same for the whole block.
    int tile = blockIdx.y;
    int group = 0, first = 0, end = 0;
    for (; group < G; ++group) {
        const int lo = offsets[group];
        const int hi = offsets[group + 1];
        const int tiles = (hi - lo + BM - 1) / BM;
        if (tile < tiles) {
            first = lo + tile * BM;
            end = hi;
            break;
        }
        tile -= tiles;
    }
    if (group == G)
        return;
    b += size_t(group) * K * N;

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int wm = (warp / 4) * 64;
    const int wn = (warp % 4) * 32;
    const int col0 = blockIdx.x * BN;

    const unsigned as = shared_address(As);
    const unsigned bs = shared_address(Bs);
    // What this lane points ldmatrix at: 16 rows in the low half-warp, the same rows 8 columns further in the high one.
    const unsigned a_offset = 2 * ((wm + lane % 16) * LDA + (lane / 16) * 8);
    const unsigned b_offset = 2 * ((lane % 16) * LDB + wn + (lane / 16) * 8);

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int steps = (K + BK - 1) / BK;
    start_slabs(as, bs, a, b, first, end, col0, 0, N, K);
    asm volatile("cp.async.commit_group;" : : : "memory");

    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        const int next = 1 - now;
        if (step + 1 < steps)
            start_slabs(as + 2 * next * A_SLAB, bs + 2 * next * B_SLAB, a, b, first, end, col0, (step + 1) * BK, N, K);
        asm volatile("cp.async.commit_group;" : : : "memory"); // empty at the last step, so that the count below holds
        asm volatile("cp.async.wait_group 1;" : : : "memory");
        __syncthreads();

        const unsigned a_address = as + 2 * now * A_SLAB + a_offset;
        const unsigned b_address = bs + 2 * now * B_SLAB + b_offset;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned x[4][4];
            unsigned w[2][4]; // each: 16 of k by 16 columns
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(x[i], a_address + 2 * (i * 16 * LDA + k));
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(w[j], b_address + 2 * (k * LDB + j * 16));
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    mma(sum[i][j], x[i], w[j / 2][(j % 2) * 2], w[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads(); // the next step's copies overwrite this slab
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + wn + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + wm + i * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}
#endif
