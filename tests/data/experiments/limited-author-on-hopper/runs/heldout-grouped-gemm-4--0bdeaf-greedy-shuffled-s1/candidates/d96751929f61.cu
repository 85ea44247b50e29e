/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(T, 128) + G"]
block = ["384"]
shared = "197632"
args = ["a", "b", "offsets", "y", "int G", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes a 128x256 tile of one group with wgmma, two warpgroups of 64x256, from a ring of four slabs that a third one fills by cp.async;
// still missing are an order of tiles that minds the L2 cache, TMA,
// and persistence.

#include <cuda_bf16.h>

constexpr int BM = 128;
constexpr int BN = 256;
constexpr int BK = 64;
constexpr int STAGES = 4;
constexpr int THREADS = 128; // that copy, the first of the block; two more warpgroups multiply
constexpr int LDA = BK; // K-major rows of 128 bytes, 128-byte swizzle
constexpr int LDB = BN; // boxes of 64 columns, BK rows of 128 bytes each, 128-byte swizzle
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

#define SUMS(d, i) "+f"(d[i][0][0]), "+f"(d[i][0][1]), "+f"(d[i][0][2]), "+f"(d[i][0][3]), "+f"(d[i][1][0]), "+f"(d[i][1][1]), "+f"(d[i][1][2]), "+f"(d[i][1][3]), "+f"(d[i][2][0]), "+f"(d[i][2][1]), "+f"(d[i][2][2]), "+f"(d[i][2][3]), "+f"(d[i][3][0]), "+f"(d[i][3][1]), "+f"(d[i][3][2]), "+f"(d[i][3][3])
__device__ __forceinline__ void mma(float (&d)[8][4][4], unsigned long long x, unsigned long long w)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;}"
                 : SUMS(d, 0), SUMS(d, 1), SUMS(d, 2), SUMS(d, 3), SUMS(d, 4), SUMS(d, 5), SUMS(d, 6), SUMS(d, 7) : "l"(x), "l"(w), "r"(1));
}

// Waits for the end of the barrier's phase with this parity (0 for the first one).
__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
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
        copy_async(as + 2 * (r * LDA + (k ^ r % 8 * 8)), inside ? a + size_t(first + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < BK * BN / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int k = v / (BN / 8);
        const int c = (v % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy_async(bs + 2 * (c / 64 * BK * 64 + k * 64 + (c ^ k % 8 * 8) % 64), inside ? b + size_t(k0 + k) * N + col0 + c : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(3 * THREADS) multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets,
                                                               __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ unsigned char ring[]; // 64 KiB of a, 128 KiB of b, and room to begin at a multiple of 1024
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];

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
    const int wm = (warp / 4 - 1) * 64; // of the warpgroups that multiply
    const int col0 = blockIdx.x * BN;

    const unsigned as = (shared_address(ring) + 1023u) & ~1023u;
    const unsigned bs = as + 2 * STAGES * A_SLAB;
    const unsigned full = shared_address(barriers); // one a slab: every copying thread's copies have arrived
    const unsigned empty = full + 8 * STAGES;       // one a slab: the products of all eight warps are done
    if (threadIdx.x < STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %2; mbarrier.init.shared::cta.b64 [%1], 8;" : : "r"(full + 8 * threadIdx.x), "r"(empty + 8 * threadIdx.x), "r"(THREADS) : "memory");
    __syncthreads();

    const int steps = (K + BK - 1) / BK;
    if (warp < 4) { // the warpgroup that copies
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            const int now = step % STAGES;
            wait_phase(empty + 8 * now, step / STAGES % 2 ^ 1); // at once in the first round
            start_slabs(as + 2 * now * A_SLAB, bs + 2 * now * B_SLAB, a, b, first, end, col0, step * BK, N, K);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(full + 8 * now) : "memory");
        }
        asm volatile("cp.async.wait_all;" : : : "memory");
        return;
    }

    float sum[8][4][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    for (int step = 0; step < steps; ++step) {
        const int now = step % STAGES;
        wait_phase(full + 8 * now, step / STAGES % 2);
        asm volatile("fence.proxy.async.shared::cta;" : : : "memory");

        const unsigned long long a_slab = 1ull << 62 | 64ull << 32 | 1ull << 16 | (as + 2 * (now * A_SLAB + wm * LDA)) >> 4;
        const unsigned long long b_slab = 1ull << 62 | 64ull << 32 | 512ull << 16 | (bs + 2 * now * B_SLAB) >> 4;
        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            mma(sum, a_slab + k / 8, b_slab + k * 8);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); // the products of this slab stay in flight
        if (step > 0 && lane == 0) // those of the slab before are done: it may be filled again
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(empty + 8 * ((step - 1) % STAGES)) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS(sum, 0), SUMS(sum, 1), SUMS(sum, 2), SUMS(sum, 3), SUMS(sum, 4), SUMS(sum, 5), SUMS(sum, 6), SUMS(sum, 7) : : "memory");

#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + i * 32 + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + wm + (warp % 4) * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}
