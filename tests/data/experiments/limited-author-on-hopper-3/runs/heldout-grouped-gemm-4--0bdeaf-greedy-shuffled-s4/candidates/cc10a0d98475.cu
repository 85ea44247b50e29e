/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_pairs"
grid = ["sm_count"]
cluster = ["2"]
block = ["384"]
shared = "197696"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]

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
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes a 128x128 tile of one group with mma.sync, eight warps of 64x32, from two slabs in shared memory that cp.async fills in turn;
// still missing are a deeper pipeline, fragments loaded ahead of use, an order of tiles that minds the L2 cache, and all that is Hopper's own
// (TMA, wgmma, specialized warps, persistence).

#include <cuda_bf16.h>

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

// What is launched: a pair of blocks makes 256x256 tiles of one group, each block 128 rows of them, from a ring of slabs that TMA fills:
// 128 rows by 64 of k of a, then four boxes of 64 of k by 64 columns of b, of which each block of the pair fetches two for both.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr int STAGES = 4, A_BYTES = 128 * 64 * 2, STAGE = A_BYTES + 64 * 256 * 2;
__device__ __forceinline__ void wait_barrier(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra LAB_DONE;\nbra LAB_WAIT;\nLAB_DONE:\n}" : : "r"(barrier), "r"(parity) : "memory");
}
// A warp's products from a slab are done: lanes 0 and 1 tell the two blocks of the pair, since both write to it.
__device__ __forceinline__ void release(unsigned barrier)
{
    if (threadIdx.x % 32 < 2)
        asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" : : "r"(barrier), "r"(threadIdx.x % 32) : "memory");
}
#define SUMS8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS64(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24), SUMS8(i + 32), SUMS8(i + 40), SUMS8(i + 48), SUMS8(i + 56)
// 64 rows by 256 columns by 16 of k; the rows lie along k, the columns across it.
__device__ __forceinline__ void multiply_slabs(float (&d)[128], unsigned long long x, unsigned long long w, int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"
                 ", %128, %129, p, 1, 1, 0, 1;\n}" : SUMS64(0), SUMS64(64) : "l"(x), "l"(w), "r"(accumulate) : "memory");
}
// Where a tile lies, rows first; false beyond the last one.
__device__ __forceinline__ bool find_tile(int tile, const int *offsets, int G, int N, int &group, int &first, int &end, int &col0)
{
    for (group = 0; group < G; ++group) {
        first = offsets[group], end = offsets[group + 1];
        const int rows = (end - first + 255) / 256, tiles = rows * ((N + 255) / 256);
        if (tile < tiles)
            return first += tile % rows * 256, col0 = tile / rows * 256, true;
        tile -= tiles;
    }
    return false;
}
extern "C" __global__ void __launch_bounds__(384, 1) multiply_pairs(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const int *offsets, __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ unsigned char slabs[];
    const unsigned base = (shared_address(slabs) + 1023) / 1024 * 1024, full = base + STAGES * STAGE, empty = full + 8 * STAGES;
    const int rank = blockIdx.x % 2, lane = threadIdx.x % 32, warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    int group = 0, first = 0, end = 0, col0 = 0;
    unsigned step = 0; // runs on from tile to tile: its slab is step % STAGES
    if (threadIdx.x < STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 16;\nfence.mbarrier_init.release.cluster;" : : "r"(full + 8 * threadIdx.x), "r"(empty + 8 * threadIdx.x) : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" : : : "memory");
    if (warp < 8) {
        for (int tile = blockIdx.x / 2; find_tile(tile, offsets, G, N, group, first, end, col0); tile += gridDim.x / 2) {
            float d[128]; // a tile's first product sets them
            for (int k = 0; k < K; k += 64, ++step) {
                const unsigned from = base + step % STAGES * STAGE;
                const unsigned long long x = (1ull << 62 | 64ull << 32 | 1ull << 16) + ((from + warp / 4 * 8192) >> 4);
                const unsigned long long w = (1ull << 62 | 64ull << 32 | 512ull << 16) + ((from + A_BYTES) >> 4);
                wait_barrier(full + 8 * (step % STAGES), step / STAGES % 2);
                asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    multiply_slabs(d, x + 2 * i, w + 128 * i, k + i);
                asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" : : : "memory");
                if (k > 0) // the step before is done, this one is not
                    release(empty + 8 * ((step - 1) % STAGES));
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(d[i]) : : "memory"); // no sum is read before the wait
            release(empty + 8 * ((step - 1) % STAGES));
#pragma unroll
            for (int e = 0; e < 128; e += 8) // 16 columns: the even lane of two takes the left 8 of them, the odd one the right 8
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const unsigned l = narrow(d[e + 2 * h], d[e + 2 * h + 1]), r = narrow(d[e + 2 * h + 4], d[e + 2 * h + 5]);
                    const unsigned other = __shfl_xor_sync(0xffffffffu, lane % 2 ? l : r, 1);
                    const int row = first + rank * 128 + warp * 16 + lane / 4 + 8 * h, col = col0 + 2 * e + lane % 2 * 8 + lane % 4 / 2 * 4;
                    if (row < end && col < N)
                        *reinterpret_cast<uint2 *>(y + size_t(row) * N + col) = lane % 2 ? make_uint2(other, r) : make_uint2(l, other);
                }
        }
    } else if (warp == 8 && lane == 0) {
        for (int tile = blockIdx.x / 2; find_tile(tile, offsets, G, N, group, first, end, col0); tile += gridDim.x / 2)
            for (int k = 0; k < K; k += 64, ++step) {
                const unsigned from = base + step % STAGES * STAGE, barrier = full + 8 * (step % STAGES);
                wait_barrier(empty + 8 * (step % STAGES), (step / STAGES + 1) % 2);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(STAGE) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" : : "r"(from), "l"(&tm_a), "r"(k), "r"(first + rank * 128), "r"(barrier) : "memory");
                for (int box = 2 * rank; box < 2 * rank + 2; ++box)
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" : : "r"(from + A_BYTES + box * 8192), "l"(&tm_b), "r"(col0 + box * 64), "r"(k), "r"(group), "r"(barrier), "h"(static_cast<unsigned short>(3)) : "memory");
            }
    }
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" : : : "memory"); // the other block may still write to this one
}
