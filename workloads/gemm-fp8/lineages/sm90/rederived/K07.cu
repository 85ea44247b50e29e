/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [2, 3, 4]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 128]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [256, 128]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_y"
tensor = "y"
box = [16, 64]
swizzle = "128B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["384"]
shared = "STAGES * (128 + 256) * 128 + (4 - STAGES) * 128 * 128 + 1024"
args = ["tm_x", "tm_weight", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// Copying and multiplying become roles. Warpgroup 0 does nothing but ask for slabs as soon as a stage is
// empty; warpgroups 1 and 2 do nothing but multiply. Two mbarriers a stage (full, empty) replace the
// barrier of the whole block, so the consumers no longer march in step: while one waits for its products
// to end and for the next slab, the other's keep the tensor cores busy. The producer gives its registers
// to the consumers (setmaxnreg).
// The sums leave through shared memory: every warp packs them with stmatrix into swizzled boxes of 16 rows
// of 64 numbers, and the copy engine writes a box to y while the warp packs the next.
// Needs K % 16 == 0 and N % 8 == 0 for the engine's row pitches.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 128;
constexpr unsigned X_BYTES = BM * BK, W_BYTES = BN * BK, STAGE_BYTES = X_BYTES + W_BYTES;
// A box of y: 16 rows (a warp's) of 64 numbers (128 bytes).
constexpr int BOX_ROWS = 16, BOX_COLS = 64, BOXES = BN / BOX_COLS;
static_assert(64 * BOX_COLS * 2 == 64 * BK, "a consumer's boxes of 64 columns fill its rows of x in a stage");
static_assert(STAGES <= BOXES, "the plan's shared memory");

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

// d += 64 rows of x · 256 rows of weight, over 32 numbers of K; in the background, by a whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long x, unsigned long long weight)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, accumulate, 1, 1;\n"
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

// Fetches a tensor map before it is needed.
__device__ __forceinline__ void prefetchMap(const TensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory");
}

// Starts the write of one box of y, to column col of row `row`; what lies outside of y is left out.
__device__ __forceinline__ void writeBox(const TensorMap &map, unsigned from, int col, int row)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&map), "r"(col), "r"(row), "r"(from) : "memory");
}

__device__ __forceinline__ unsigned packPair(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

// Stores four 8 × 8 matrices; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ __forceinline__ void storeMatrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// Writes the warpgroup's 64 × BN sums to y, from row0 and col0 on, through the rows of x that only this
// consumer has read, one group of BOX_COLS columns a stage; groups without a stage lie behind the ring.
__device__ __forceinline__ void storeSums(const float (&acc)[BN / 2], const TensorMap &mapY, unsigned ring,
                                          int consumer, int row0, int col0, int M, int N)
{
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int row = row0 + warp * BOX_ROWS;
    const unsigned own = ring + consumer * 64 * BK + warp * (BOX_ROWS * BOX_COLS * 2);
    // Lane i addresses row i % 16, in the first 8 columns of a pair of 8 (i < 16) or the second; the 16
    // bytes of 8 columns lie where the swizzle puts them, at their number xor row % 8.
    const unsigned offset = lane % 16 * 128 + ((lane / 16 ^ lane % 8) << 4);

    // The products of all four warps have ended: nobody reads these rows of x any longer.
    asm volatile("bar.sync %0, 128;" :: "r"(1 + consumer) : "memory");

#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
        const unsigned from = own + (box < STAGES ? box * STAGE_BYTES
                                                  : STAGES * STAGE_BYTES + (box - STAGES) * X_BYTES);
        // In every 8 columns a lane holds two neighbouring numbers of row lane / 4, and two of the row 8 below.
#pragma unroll
        for (int pair = 0; pair < BOX_COLS / 16; ++pair) {
            const int i = box * (BOX_COLS / 2) + pair * 8;
            storeMatrices(from + (offset ^ pair << 5),
                          packPair(acc[i], acc[i + 1]), packPair(acc[i + 2], acc[i + 3]),
                          packPair(acc[i + 4], acc[i + 5]), packPair(acc[i + 6], acc[i + 7]));
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // the copy engine sees the numbers
        __syncwarp();
        const int col = col0 + box * BOX_COLS;
        if (lane == 0 && row < M && col < N) {
            writeBox(mapY, from, col, row);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }

    // The shared memory must last until the engine has read it.
    if (lane == 0)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
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
        if (thread == 128)
            prefetchMap(mapY);

        float acc[128] = {};
        for (int slab = 0; slab < slabs; ++slab) {
            waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);

            const unsigned xs = ring + slab % STAGES * STAGE_BYTES + consumer * 64 * BK;
            const unsigned ws = ring + slab % STAGES * STAGE_BYTES + X_BYTES;
            fenceProducts();
#pragma unroll
            for (int k = 0; k < BK; k += 32)
                multiply(acc, describe(xs + k), describe(ws + k));
            commitProducts();

            // This warp's products of this slab have ended.
            waitProducts<0>();
            if (lane == 0)
                arrive(empty + 8 * (slab % STAGES));
        }

        storeSums(acc, mapY, ring, consumer, row0 + consumer * 64, col0, M, N);
    }
}
