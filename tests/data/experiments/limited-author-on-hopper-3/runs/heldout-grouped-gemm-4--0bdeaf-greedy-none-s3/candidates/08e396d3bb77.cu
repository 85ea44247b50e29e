/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
when = "N < 256"
grid = ["ceil_div(N, 128)", "ceil_div(T, 128) + G"]
block = ["256"]
args = ["a", "b", "offsets", "y", "int G", "int N", "int K"]
[[launch]]
kernel = "multiply_wide"
when = "N >= 256"
grid = ["2 * ceil_div(sm_count, 2)"]
cluster = ["2"]
block = ["288"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes a 128x128 tile of one group with mma.sync, eight warps of 64x32, from two slabs in shared memory that cp.async fills in turn;
// that is for N below 256, where a wider tile would be part empty. The kernel for the rest, with what is Hopper's own, stands at the end.

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

// The wide kernel: the two blocks of a cluster make a 256x256 tile, 128 rows each. A warp has TMA fill the stages, of B one half a block, sent to
// both; two warpgroups of 64x256 multiply them with wgmma. The clusters stay, and take the tiles in turn, first down the rows of a group.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr int STAGES = 4, A_STAGE = 128 * 64 * 2, STAGE = A_STAGE + 64 * 256 * 2; // the latter two in bytes
constexpr unsigned long long X_LAYOUT = (1ull << 62) | (64ull << 32) | (1ull << 16); // 128-byte swizzle, K-major, 1024 bytes between eights of rows
constexpr unsigned long long W_LAYOUT = (1ull << 62) | (64ull << 32) | (512ull << 16); // N-major: 1024 between eights of k, 8192 between 64 columns

__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nretry:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra retry;\n}" : : "r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void release(unsigned barrier, unsigned rank) // the barrier at this place in block `rank` of the cluster
{
    asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}" : : "r"(barrier), "r"(rank) : "memory");
}

#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F32(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12), F4(i + 16), F4(i + 20), F4(i + 24), F4(i + 28)
#define F128 F32(0), F32(32), F32(64), F32(96)
__device__ __forceinline__ void wgmma(float (&d)[128], unsigned long long x, unsigned long long w, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}"
                 : F128 : "l"(x), "l"(w), "r"(add) : "memory");
}

extern "C" __global__ void __launch_bounds__(288, 1) multiply_wide(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b,
                                                                   const int *offsets, __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ unsigned char dynamic[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (shared_address(dynamic) + 1023) & ~1023u;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = blockIdx.x % 2;
    const int steps = (K + 63) / 64, across = (N + 255) / 256;
    if (threadIdx.x < 2 * STAGES) // full: the producer arrives; empty: two warpgroups of each block
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;" : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < STAGES ? 1 : 4) : "memory");
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" : : : "memory");
    unsigned turn = 0; // counts the stages filled or read, over all tiles
    for (int tile = blockIdx.x / 2;; tile += gridDim.x / 2) {
        int rest = tile, group = 0, down = 0;
        for (; group < G && rest >= (down = (offsets[group + 1] - offsets[group] + 255) / 256) * across; ++group)
            rest -= down * across;
        if (group == G)
            break;
        const int end = offsets[group + 1], first = offsets[group] + rest % down * 256 + rank * 128, col0 = rest / down * 256;
        if (warp == 8) {
            for (int step = 0; lane == 0 && step < steps; ++step, ++turn) {
                const unsigned stage = stages + turn % STAGES * STAGE, barrier = full + turn % STAGES * 8;
                wait_for(empty + turn % STAGES * 8, ~(turn / STAGES) & 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(STAGE) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" : : "r"(stage), "l"(&tm_a), "r"(step * 64), "r"(first), "r"(barrier) : "memory");
                for (int i = 2 * rank; i < 2 * rank + 2; ++i)
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;"
                                 : : "r"(stage + A_STAGE + i * 8192), "l"(&tm_b), "r"(col0 + i * 64), "r"(step * 64), "r"(group), "r"(barrier), "h"(static_cast<unsigned short>(3)) : "memory");
            }
            continue;
        }
        float d[128]; // the first wgmma of a tile does not add to it
        for (int step = 0; step < steps; ++step, ++turn) {
            const unsigned stage = stages + turn % STAGES * STAGE;
            const unsigned long long x = X_LAYOUT | ((stage + warp / 4 * 8192) >> 4), w = W_LAYOUT | ((stage + A_STAGE) >> 4);
            wait_for(full + turn % STAGES * 8, turn / STAGES & 1);
            asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wgmma(d, x + 2 * k, w + 128 * k, step + k);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" : : : "memory");
            if (step > 0 && threadIdx.x % 128 < 2) // the step before has been read
                release(empty + (turn - 1) % STAGES * 8, threadIdx.x % 128);
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
        asm volatile("" : F128 : : "memory"); // nothing reads the sums before
        if (threadIdx.x % 128 < 2)
            release(empty + (turn - 1) % STAGES * 8, threadIdx.x % 128);
#pragma unroll
        for (int e = 0; e < 16; ++e) { // 8 rows by 32 columns a warp
            const int row = first + warp * 16 + e % 2 * 8 + lane / 4, col = col0 + e / 2 * 32 + lane % 4 * 8, s = e / 2 * 16 + e % 2 * 2;
            unsigned p[4] = {narrow(d[s], d[s + 1]), narrow(d[s + 4], d[s + 5]), narrow(d[s + 8], d[s + 9]), narrow(d[s + 12], d[s + 13])};
#pragma unroll
            for (int i = 0; i < 4; ++i) { // four lanes transpose their 4x4 words: each then has 8 columns that lie together
                const int b = i / 2 + 1, l = i / 2 ? i % 2 : i * 2;
                const unsigned got = __shfl_xor_sync(~0u, lane & b ? p[l] : p[l + b], b);
                p[l] = lane & b ? got : p[l];
                p[l + b] = lane & b ? p[l + b] : got;
            }
            if (row < end && col < N)
                *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = make_uint4(p[0], p[1], p[2], p[3]);
        }
    }
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" : : : "memory"); // the other block may still reach this one's barriers
}
