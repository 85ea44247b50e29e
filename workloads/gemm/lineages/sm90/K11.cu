/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [2, 3, 4]

[[tunable]]
name = "GROUP"
default = 16
values = [4, 8, 16, 32]

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
box = [16, 64]
swizzle = "128B"

[[launch]]
kernel = "gemm"
grid = ["min(sm_count, ceil_div(M, 128) * ceil_div(N, 256))"]
block = ["384"]
shared = "STAGES * (128 + 256) * 64 * 2 + 2 * 2 * 64 * 64 * 2 + 1024"
args = ["tm_x", "tm_weight", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// From K10: the store of a tile runs under the products of the next one. A consumer packs its sums into 64
// registers and at once starts the next tile's products (whose first ones overwrite the sums, so that nothing
// is set to zero); the packed ones go to shared memory and y while the tensor cores work on the first two slabs.
// The tensor cores pause for the packing alone, not for four rounds of stores, barriers and waits. Each warp
// stores its own 16 rows, without a barrier of the warpgroup. Descriptors are added to, not made anew.
// Needs K % 8 == 0 and N % 8 == 0 for the engine's row pitches.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 64;
constexpr unsigned X_BYTES = BM * BK * 2, W_BYTES = BN * BK * 2, STAGE_BYTES = X_BYTES + W_BYTES;
constexpr unsigned BOX_BYTES = 16 * 64 * 2; // of one warp

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
// the next, swizzle code 1. The field at bit 16 is unused with this swizzle. One more is 16 bytes further on.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (1024ull >> 4 << 32 | 1ull << 62 | 1ull << 16) + (address >> 4);
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d += 64 rows of x · 256 rows of weight, over 16 numbers of K; in the background, by a whole warpgroup.
// Without `accumulate` d is overwritten.
__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long x, unsigned long long weight,
                                         int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %130, 0;\n"
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
        : "l"(x), "l"(weight), "r"(accumulate));
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

__device__ __forceinline__ void syncWarpgroup(int warpgroup)
{
    asm volatile("bar.sync %0, 128;" :: "r"(warpgroup + 1) : "memory");
}

// Rounds the sums to pairs. The empty statements keep the compiler from moving any of it over products.
__device__ __forceinline__ void packSums(unsigned (&packed)[64], float (&acc)[128])
{
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(acc[i]) :: "memory");
#pragma unroll
    for (int i = 0; i < 64; ++i)
        packed[i] = pack(acc[2 * i], acc[2 * i + 1]);
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+r"(packed[i]) :: "memory");
}

// Sends columns 128 · PART to 128 · PART + 127 of the warp's 16 rows to y, through a box at `first` and one
// at `second`.
template <int PART, int PENDING = 0>
__device__ __forceinline__ void storePart(const unsigned (&packed)[64], const TensorMap &mapY, int row0,
                                          int col0, unsigned first, unsigned second)
{
    const int lane = threadIdx.x % 32;
    if (lane == 0)
        waitStoresRead<PENDING>(); // what this warp stored before has left the boxes; long ago
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const unsigned box = half == 0 ? first : second;
#pragma unroll
        for (int chunk = 0; chunk < 8; chunk += 2) {
            // The four 8 × 8 matrices: rows 0-7 and 8-15, then the same of the next 8 columns.
            const int i = 32 * PART + 16 * half + 2 * chunk;
            const unsigned four[4] = {packed[i], packed[i + 1], packed[i + 2], packed[i + 3]};
            storeMatrices(box + place(lane % 16, chunk + lane / 16), four);
        }
    }
    // The copy engine reads by another path: every writer makes its stores visible to that path first.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0) {
        storeBox(mapY, col0 + 128 * PART, row0, first);
        storeBox(mapY, col0 + 128 * PART + 64, row0, second);
    }
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
    const unsigned boxes = ring + STAGES * STAGE_BYTES;

    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0), warpgroup = warp / 4; // the same in all lanes: says the shuffle
    const int tileRows = (M + BM - 1) / BM, tileCols = (N + BN - 1) / BN;
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
        giveRegisters<24>();
        if (thread == 0) {
            int turn = 0; // slabs so far, over all tiles
            for (int t = blockIdx.x; t < tileRows * tileCols; t += gridDim.x) {
                const Tile tile = locate(t, tileRows, tileCols);
                for (int slab = 0; slab < slabs; ++slab, ++turn) {
                    const int stage = turn % STAGES;
                    const unsigned xs = ring + stage * STAGE_BYTES;
                    waitPhase(empty + 8 * stage, turn / STAGES % 2 ^ 1); // passes at first
                    expectBytes(full + 8 * stage, STAGE_BYTES);
                    copyBox(xs, mapX, slab * BK, tile.row0, full + 8 * stage);
                    copyBox(xs + X_BYTES, mapWeight, slab * BK, tile.col0, full + 8 * stage);
                }
            }
        }
    } else {
        takeRegisters<240>();
        const int consumer = warpgroup - 1, rows = consumer * 64 + warp % 4 * 16;
        const unsigned ownBoxes = boxes + (consumer * 4 + warp % 4) * 2 * BOX_BYTES;

        float acc[128] = {};
        unsigned packed[64] = {};
        int packedRow = 0, packedCol = -1; // where the packed sums belong; -1: none yet
        int stage = 0;
        unsigned parity = 0;
        for (int t = blockIdx.x; t < tileRows * tileCols; t += gridDim.x) {
            const Tile tile = locate(t, tileRows, tileCols);

            for (int slab = 0; slab < slabs; ++slab) {
                waitPhase(full + 8 * stage, parity);

                const unsigned long long x = describe(ring + stage * STAGE_BYTES + consumer * 64 * BK * 2);
                const unsigned long long w = describe(ring + stage * STAGE_BYTES + X_BYTES);
                fenceProducts();
                multiply(acc, x, w, slab);
#pragma unroll
                for (int k = 1; k < BK / 16; ++k)
                    multiply(acc, x + 2 * k, w + 2 * k, 1);
                commitProducts();

                // Under these products: the store of the tile before, half of it a slab.
                if (slab < 2 && packedCol >= 0) {
                    if (slab == 0)
                        storePart<0>(packed, mapY, packedRow, packedCol, ownBoxes, ownBoxes + BOX_BYTES);
                    else
                        storePart<1>(packed, mapY, packedRow, packedCol, ownBoxes, ownBoxes + BOX_BYTES);
                }

                // This warp's products of this slab have ended.
                waitProducts<0>();
                if (lane == 0)
                    arrive(empty + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
            if (slabs < 2 && packedCol >= 0)
                storePart<1>(packed, mapY, packedRow, packedCol, ownBoxes, ownBoxes + BOX_BYTES);

            packSums(packed, acc);
            packedRow = tile.row0 + rows;
            packedCol = tile.col0;
        }
        if (packedCol >= 0) {
            // The ring is left: what only this warpgroup read of it, its rows of x, gives two more boxes.
            syncWarpgroup(consumer);
            const unsigned left = ring + rows * BK * 2;
            storePart<0>(packed, mapY, packedRow, packedCol, left, left + STAGE_BYTES);
            storePart<1, 2>(packed, mapY, packedRow, packedCol, ownBoxes, ownBoxes + BOX_BYTES);
        }
        if (lane == 0)
            waitStoresRead<0>(); // shared memory goes away with the block
    }
}
