/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [2, 3, 4]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [256, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_y"
tensor = "y"
box = [64, 64]
swizzle = "128B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["384"]
shared = "STAGES * (128 + 256) * 64 * 2 + 1024"
args = ["tm_x", "tm_weight", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// Copying and multiplying become roles. Warpgroup 0 does nothing but ask for slabs as soon as a stage is
// empty; warpgroups 1 and 2 do nothing but multiply. Two mbarriers a stage (full, empty) replace the
// barrier of the whole block, so the consumers no longer march in step: while one waits for its products
// to end and for the next slab, the other's keep the tensor cores busy. The producer gives its registers
// to the consumers (setmaxnreg).
// The sums leave through shared memory: stmatrix packs them into swizzled boxes of 64 × 64, and the copy
// engine writes each box to y in the background while the next one is packed.
// Needs K % 8 == 0 and N % 8 == 0 for the engine's row pitch.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 64;
constexpr unsigned X_BYTES = BM * BK * 2, W_BYTES = BN * BK * 2, STAGE_BYTES = X_BYTES + W_BYTES;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
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

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
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

// Starts the copy of one box, from column k of row `row`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int k, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(k), "r"(row), "r"(barrier) : "memory");
}

// Describes rows of 128 swizzled bytes to wgmma: where they start, 1024 bytes from one group of 8 rows to
// the next, swizzle code 1. The field at bit 16 is unused with this swizzle.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d += 64 rows of x · 256 rows of weight, over 16 numbers of K; in the background, by a whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long x, unsigned long long weight)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, accumulate, 1, 1, 0, 0;\n"
        "}"
        : SUMS32(0), SUMS32(32), SUMS32(64), SUMS32(96)
        : "l"(x), "l"(weight));
}

// Orders what this thread did to the sums before the products that follow.
__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all groups of products but the last PENDING have ended.
template <int PENDING> __device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}

// Fetches a tensor map ahead of its first use.
__device__ __forceinline__ void prefetchMap(const TensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory");
}

// Waits for the other threads of this consumer.
__device__ __forceinline__ void syncConsumer(int consumer)
{
    asm volatile("bar.sync %0, %1;" :: "r"(1 + consumer), "n"(128) : "memory");
}

// Stores four 8 × 8 matrices; lane l names the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void storeMatrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// Makes this thread's stores to shared memory visible to the copy engine.
__device__ __forceinline__ void fenceStores()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Starts to write one box, to column col of row `row`; what lies beyond the tensor is left out.
__device__ __forceinline__ void writeBox(unsigned from, const TensorMap &map, int col, int row)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&map), "r"(col), "r"(row), "r"(from) : "memory");
}

__device__ __forceinline__ void commitWrites()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until all groups of this thread's writes but the last PENDING have been read from shared memory.
template <int PENDING> __device__ __forceinline__ void waitWritesRead()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(PENDING) : "memory");
}

__device__ __forceinline__ unsigned packSums(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

// Writes the warpgroup's 64 × BN sums to y, from row0 and col0 on, in boxes of 64 × 64. `slots` is its part
// of x in stage 0: each stage holds 64 rows of 128 bytes that only this warpgroup's products read, just a
// box. All slabs have been copied and this warp's products have ended.
__device__ __forceinline__ void storeSums(const float (&acc)[BN / 2], const TensorMap &mapY, unsigned slots,
                                          int consumer, int row0, int col0, int M, int N)
{
    static_assert(BK == 64, "a box of y fills a warpgroup's part of x");
    constexpr int BOXES = BN / 64;
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const bool leader = threadIdx.x % 128 == 0;
    // In every 8 columns a lane holds two neighbouring numbers of row lane / 4, and two of the row 8 below.
    // Four matrices at a time: 16 rows, 16 columns. This lane names row lane % 16 of columns lane / 16 * 8.
    const unsigned rows = slots + (warp * 16 + lane % 16) * 128;
    const unsigned chunk = lane / 16 ^ lane % 8; // the swizzle: 16-byte chunk ^ row % 8

#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
        const unsigned slot = box % STAGES * STAGE_BYTES;
        // The slot is free: the products of all four warps have ended, its last box has been read.
        if (box >= STAGES && leader)
            waitWritesRead<STAGES - 1>();
        if (box == 0 || box >= STAGES)
            syncConsumer(consumer);

#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            const int i = 32 * box + 8 * pair;
            storeMatrices(rows + slot + ((chunk ^ 2 * pair) << 4),
                          packSums(acc[i], acc[i + 1]), packSums(acc[i + 2], acc[i + 3]),
                          packSums(acc[i + 4], acc[i + 5]), packSums(acc[i + 6], acc[i + 7]));
        }

        fenceStores();
        syncConsumer(consumer);
        if (leader) {
            if (row0 < M && col0 + 64 * box < N)
                writeBox(slots + slot, mapY, col0 + 64 * box, row0);
            commitWrites();
        }
        __syncwarp();
    }

    // Shared memory must last until it has been read; the writes themselves may end later.
    if (leader)
        waitWritesRead<0>();
}

extern "C" __global__ __launch_bounds__(384, 1) void gemm(const __grid_constant__ TensorMap mapX,
                                                          const __grid_constant__ TensorMap mapWeight,
                                                          const __grid_constant__ TensorMap mapY,
                                                          int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];
    // A swizzled box starts at a multiple of 1024 bytes.
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    const int thread = threadIdx.x, lane = thread % 32, warpgroup = thread / 128;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 8); // the warps of the consumers
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
    }
    if (thread == 128)
        prefetchMap(mapY);
    __syncthreads();

    if (warpgroup == 0) {
        giveRegisters<40>();
        if (thread == 0)
            for (int slab = 0; slab < slabs; ++slab) {
                const int stage = slab % STAGES;
                const unsigned xs = ring + stage * STAGE_BYTES;
                waitPhase(empty + 8 * stage, slab / STAGES % 2 ^ 1); // passes at first
                expectBytes(full + 8 * stage, STAGE_BYTES);
                copyBox(xs, mapX, slab * BK, row0, full + 8 * stage);
                copyBox(xs + X_BYTES, mapWeight, slab * BK, col0, full + 8 * stage);
            }
    } else {
        takeRegisters<232>();
        const int consumer = warpgroup - 1;

        float acc[128] = {};
        for (int slab = 0; slab < slabs; ++slab) {
            waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);

            const unsigned xs = ring + slab % STAGES * STAGE_BYTES + consumer * 64 * BK * 2;
            const unsigned ws = ring + slab % STAGES * STAGE_BYTES + X_BYTES;
            fenceProducts();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                multiply(acc, describe(xs + k * 2), describe(ws + k * 2));
            commitProducts();

            // This warp's products of this slab have ended.
            waitProducts<0>();
            if (lane == 0)
                arrive(empty + 8 * (slab % STAGES));
        }

        storeSums(acc, mapY, ring + consumer * 64 * BK * 2, consumer, row0 + consumer * 64, col0, M, N);
    }
}
