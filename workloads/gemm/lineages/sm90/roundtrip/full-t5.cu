/*klineage
surface = "cuda"

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
grid = ["min(sm_count, ceil_div(M, 128) * ceil_div(N, 256))"]
block = ["384"]
shared = "4 * 49152 + 4 * 8192 + 1024"
args = ["tm_x", "tm_weight", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums. For sm_90a.
//
// One block a multiprocessor walks over tiles of 128 × 256. Warpgroup 0 copies slabs by TMA into a ring of four
// stages, warpgroups 1 and 2 multiply 64 rows each by wgmma and store their sums through boxes of their own.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4, GROUP = 16;
constexpr unsigned X_BYTES = BM * BK * 2;
constexpr unsigned STAGE_BYTES = (BM + BN) * BK * 2;
constexpr unsigned BOX_BYTES = 64 * 64 * 2;

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

template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}

__device__ __forceinline__ void syncWarpgroup(int warpgroup)
{
    asm volatile("bar.sync %0, 128;" :: "r"(warpgroup + 1) : "memory");
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

// Where the 128-byte swizzle keeps a 16-byte chunk of a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// Four 8 × 8 matrices of bf16; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void storeMatrices(unsigned row, const unsigned (&from)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(row), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// Starts the copy of one box from shared memory to y.
__device__ __forceinline__ void storeBox(const TensorMap &map, int col, int row, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(&map), "r"(col), "r"(row), "r"(from) : "memory");
}

// Waits until the copy engine has read all of this thread's boxes but the last PENDING.
template <int PENDING> __device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(PENDING) : "memory");
}

// Sends the warpgroup's 64 × BN sums to y, from row0 and col0 on, through two boxes of shared memory.
__device__ __forceinline__ void storeSums(const float (&acc)[BN / 2], const TensorMap &mapY,
                                          int row0, int col0, unsigned boxes, int warpgroup)
{
    const int thread = threadIdx.x % 128, lane = thread % 32;
    // The four 8 × 8 matrices: rows 0-7 and 8-15 of the warp's 16, then the same of the next 8 columns.
    const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int col = 0; col < BN; col += 64) {
        const unsigned box = boxes + col / 64 % 2 * BOX_BYTES;
        if (thread == 0)
            waitStoresRead<1>(); // the last one is in the other box; the one before it has left this one
        syncWarpgroup(warpgroup);

#pragma unroll
        for (int chunk = 0; chunk < 8; chunk += 2) {
            const float *d = acc + col / 2 + 4 * chunk;
            const unsigned packed[4] = {pack(d[0], d[1]), pack(d[2], d[3]),
                                        pack(d[4], d[5]), pack(d[6], d[7])};
            storeMatrices(box + place(row, chunk + lane / 16), packed);
        }

        // The copy engine reads by another path: every writer makes its stores visible to that path first.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        syncWarpgroup(warpgroup);
        if (thread == 0)
            storeBox(mapY, col0 + col, row0, box);
    }
}

struct Tile {
    int row0, col0;
};

// Down GROUP rows of tiles, then to the next column; the last group may be lower.
__device__ __forceinline__ Tile locate(int tile, int tileRows, int tileCols)
{
    const int first = tile / (GROUP * tileCols) * GROUP;
    const int rows = min(GROUP, tileRows - first);
    const int step = tile % (GROUP * tileCols);
    return {(first + step % rows) * BM, step / rows * BN};
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap mapX, const __grid_constant__ TensorMap mapWeight,
     const __grid_constant__ TensorMap mapY, int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];

    // Swizzled boxes start at multiples of 1024 bytes: the ring, and behind it the boxes of the two consumers.
    const unsigned ring = (sharedAddress(dynamicShared) + 1023u) & ~1023u;
    const unsigned full = sharedAddress(barriers);
    const unsigned empty = full + 8 * STAGES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);  // the producer's expectBytes
            initBarrier(empty + 8 * stage, 8); // one arrival a warp of the consumers
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    const int warpgroup = __shfl_sync(0xffffffffu, int(threadIdx.x / 128), 0);
    const int tileRows = (M + BM - 1) / BM, tileCols = (N + BN - 1) / BN;
    const int tiles = tileRows * tileCols;
    const int slabs = (K + BK - 1) / BK;

    // Stage and parity go on over all tiles, alike in both roles.
    int stage = 0;
    unsigned parity = 0;

    if (warpgroup == 0) {
        giveRegisters<40>();
        if (threadIdx.x == 0) {
            for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
                const Tile tile = locate(t, tileRows, tileCols);
                for (int slab = 0; slab < slabs; ++slab) {
                    const unsigned to = ring + stage * STAGE_BYTES;
                    waitPhase(empty + 8 * stage, parity ^ 1); // the first round passes at once
                    expectBytes(full + 8 * stage, STAGE_BYTES);
                    copyBox(to, mapX, slab * BK, tile.row0, full + 8 * stage);
                    copyBox(to + X_BYTES, mapWeight, slab * BK, tile.col0, full + 8 * stage);
                    if (++stage == STAGES) {
                        stage = 0;
                        parity ^= 1;
                    }
                }
            }
        }
    } else {
        takeRegisters<232>();
        const int consumer = warpgroup - 1;
        const unsigned boxes = ring + STAGES * STAGE_BYTES + consumer * 2 * BOX_BYTES;

        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            const Tile tile = locate(t, tileRows, tileCols);
            float acc[BN / 2];
#pragma unroll
            for (int i = 0; i < BN / 2; ++i)
                acc[i] = 0.0f;

            for (int slab = 0; slab < slabs; ++slab) {
                waitPhase(full + 8 * stage, parity);
                const unsigned xs = ring + stage * STAGE_BYTES + consumer * (64 * BK * 2);
                const unsigned ws = ring + stage * STAGE_BYTES + X_BYTES;
                fenceProducts();
#pragma unroll
                for (int k = 0; k < BK; k += 16)
                    multiply(acc, describe(xs + k * 2), describe(ws + k * 2));
                commitProducts();
                waitProducts<0>(); // this warp's reads of the stage have ended
                if (threadIdx.x % 32 == 0)
                    arrive(empty + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }

            storeSums(acc, mapY, tile.row0 + consumer * 64, tile.col0, boxes, warpgroup);
        }

        if (threadIdx.x % 128 == 0)
            waitStoresRead<0>(); // shared memory goes away with the block
    }
}
