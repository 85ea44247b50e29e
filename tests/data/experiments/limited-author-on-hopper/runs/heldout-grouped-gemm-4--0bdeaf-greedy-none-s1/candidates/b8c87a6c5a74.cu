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
// A block makes a 128x256 tile of one group with wgmma, two warpgroups of 64x256, from four swizzled slabs that a third fills with cp.async;
// still missing are a deeper pipeline, fragments loaded ahead of use, an order of tiles that minds the L2 cache, and all that is Hopper's own
// (TMA, clusters, persistence).

#include <cuda_bf16.h>

constexpr int BM = 128;
constexpr int BN = 256;
constexpr int BK = 64;
constexpr int THREADS = 128; // that copy: the last warpgroup, after the 256 that multiply
constexpr int A_SLAB = BM * BK * 2; // bytes: rows of 128, swizzled
constexpr int B_SLAB = BK * BN * 2; // bytes: four panels of 64 columns, each BK rows of 128, swizzled
#define D4(i) "+f"(d[(i) / 8][(i) % 8][0]), "+f"(d[(i) / 8][(i) % 8][1]), "+f"(d[(i) / 8][(i) % 8][2]), "+f"(d[(i) / 8][(i) % 8][3])
#define D32(i) D4(i), D4(i + 1), D4(i + 2), D4(i + 3), D4(i + 4), D4(i + 5), D4(i + 6), D4(i + 7)

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    unsigned long long s;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(s) : "l"(p));
    return static_cast<unsigned>(s);
}

__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (done == 0);
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

__device__ __forceinline__ void mma(float (&d)[4][8][4], unsigned long long x, unsigned long long w)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}\n"
                 : D32(0), D32(8), D32(16), D32(24)
                 : "l"(x), "l"(w), "r"(1) : "memory");
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
    const int t = threadIdx.x % THREADS;
#pragma unroll
    for (int i = 0; i < BM * BK / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int r = v / (BK / 8);
        const int k = (v % (BK / 8)) * 8;
        const bool inside = first + r < end && k0 + k < K;
        copy_async(as + 128 * r + 16 * ((k / 8) ^ (r % 8)), inside ? a + size_t(first + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < BK * BN / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int k = v / (BN / 8);
        const int c = (v % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy_async(bs + 128 * (c / 64 * BK + k) + 16 * ((c / 8 % 8) ^ (k % 8)), inside ? b + size_t(k0 + k) * N + col0 + c : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(256 + THREADS) multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets,
                                                               __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ __align__(16) unsigned char slabs[]; // 4 * (A_SLAB + B_SLAB), and 1 KiB to align
    __shared__ __align__(8) unsigned long long barriers[8]; // of the four slabs: full, then empty

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
    const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0); // the same in every lane, as the compiler can see
    const int wm = (warp / 4) * 64;
    const int col0 = blockIdx.x * BN;

    const unsigned as = (shared_address(slabs) + 1023) / 1024 * 1024;
    const unsigned bs = as + 4 * A_SLAB;
    // Of descriptors: the 128-byte swizzle; 1024 bytes from eight rows to the next, 8192 from a panel of b to the next (not looked at for a).
    const unsigned long long swizzled = (1ull << 62) | (64ull << 32) | (512ull << 16);

    const unsigned full = shared_address(barriers);
    const unsigned empty = full + 32;
    if (threadIdx.x < 8) // every copying thread arrives at full, one lane of every multiplying warp at empty
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < 4 ? THREADS : 8) : "memory");
    __syncthreads();

    float sum[4][8][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int steps = (K + BK - 1) / BK;
    if (warp >= 8) {
        for (int step = 0; step < steps; ++step) {
            const int now = step % 4;
            wait_for(empty + 8 * now, (step / 4 + 1) % 2); // at once in the first round
            start_slabs(as + now * A_SLAB, bs + now * B_SLAB, a, b, first, end, col0, step * BK, N, K);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" : : "r"(full + 8 * now) : "memory"); // once they are there
        }
        asm volatile("cp.async.wait_all;" : : : "memory");
        return;
    }

    for (int step = 0; step < steps; ++step) {
        const int now = step % 4;
        wait_for(full + 8 * now, step / 4 % 2);
        asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); // wgmma reads what cp.async wrote

        const unsigned long long x = swizzled + (as + now * A_SLAB + 128 * wm) / 16;
        const unsigned long long w = swizzled + (bs + now * B_SLAB) / 16;
        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
        for (int k = 0; k < BK; k += 16)
            mma(sum, x + k / 8, w + k * 8); // 32 bytes further in the rows of a, 16 rows of 128 bytes further in b
        asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");
        if (step > 0 && lane == 0) // the slab of the step before has been read
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(empty + 8 * ((step + 3) % 4)) : "memory");
    }
    asm volatile("cp.async.wait_all;\nwgmma.wait_group.sync.aligned 0;" : : : "memory");

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int col = col0 + i * 64 + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + wm + warp % 4 * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}
