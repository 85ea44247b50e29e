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
box = [128, 128]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [256, 128]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "gemm"
grid = ["min(sm_count, ceil_div(M, 128) * ceil_div(N, 256))"]
block = ["384"]
shared = "STAGES * (128 + 256) * 128 + 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// The sums of a tile wait as 64 packed words in registers, and leave beside the products of the next tile's first four
// slabs, a quarter each, by K09's exchange in quads and stores of 16 bytes: K09's consumers spend some 2300 cycles
// a tile of 35000 on them, and 290 on zeros, which a first product without addition spares. No boxes, no engine.
// Needs K % 16 == 0 for the engine's row pitch, and N % 8 == 0 for stores of 16 bytes.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 128;
constexpr unsigned X_BYTES = BM * BK, W_BYTES = BN * BK, STAGE_BYTES = X_BYTES + W_BYTES;

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

// d = (ADD: d +=) 64 rows of x · 256 rows of weight, over 32 numbers of K; in the background, by a whole warpgroup.
template <int ADD> __device__ __forceinline__ void multiply(float (&d)[128], unsigned long long x, unsigned long long weight)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %130, 0;\n"
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
        : "l"(x), "l"(weight), "n"(ADD));
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

// Volatile, so that it stays in front of the products that overwrite its operands.
__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// All sums as pairs of bf16: columns 8j + 2t and the next of row lane / 4 in word 2j, of the row 8 below in 2j + 1.
__device__ __forceinline__ void packSums(unsigned (&words)[64], float (&acc)[128])
{
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(acc[i]) :: "memory"); // read them after the wait, not before
#pragma unroll
    for (int i = 0; i < 64; ++i)
        words[i] = pack(acc[2 * i], acc[2 * i + 1]);
}

// Exchanges between the four lanes of a quad: word i of lane t becomes word t of lane i.
__device__ __forceinline__ void transposeQuad(unsigned (&words)[4], int t)
{
#pragma unroll
    for (int step = 1; step < 4; step *= 2)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (!(i & step)) {
                const bool upper = t & step;
                const unsigned got = __shfl_xor_sync(~0u, upper ? words[i] : words[i + step], step);
                words[i] = upper ? got : words[i];
                words[i + step] = upper ? words[i + step] : got;
            }
}

// Writes 64 columns of the warp's 16 rows to y, whose sums begin at row0 and col0.
template <int QUARTER>
__device__ __forceinline__ void storeQuarter(const unsigned (&all)[64], __nv_bfloat16 *y, int row0, int col0, int M, int N)
{
    const int lane = threadIdx.x % 32, t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = row0 + 8 * half + lane / 4;
        __nv_bfloat16 *to = y + size_t(row) * N + col0 + 8 * t;
#pragma unroll
        for (int j = 8 * QUARTER; j < 8 * QUARTER + 8; j += 4) {
            unsigned words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                words[i] = all[2 * (j + i) + half];
            transposeQuad(words, t);
            if (row < M && col0 + 8 * (j + t) < N)
                *reinterpret_cast<uint4 *>(to + 8 * j) = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

// Starts the products of a slab as soon as it has landed. ADD: to the sums so far, else in place of them.
template <int ADD>
__device__ __forceinline__ void startSlab(float (&acc)[128], unsigned ring, unsigned full, int turn, int consumer)
{
    waitPhase(full + 8 * (turn % STAGES), turn / STAGES % 2);

    const unsigned xs = ring + turn % STAGES * STAGE_BYTES + consumer * 64 * BK;
    const unsigned ws = ring + turn % STAGES * STAGE_BYTES + X_BYTES;
    fenceProducts();
    multiply<ADD>(acc, describe(xs), describe(ws));
#pragma unroll
    for (int k = 32; k < BK; k += 32)
        multiply<1>(acc, describe(xs + k), describe(ws + k));
    commitProducts();
}

// Waits until this warp's products of the slab have ended, and gives its stage back.
__device__ __forceinline__ void endSlab(unsigned empty, int turn, int lane)
{
    waitProducts<0>();
    if (lane == 0)
        arrive(empty + 8 * (turn % STAGES));
}

extern "C" __global__ __launch_bounds__(384, 1) void gemm(const __grid_constant__ TensorMap mapX,
                                                          const __grid_constant__ TensorMap mapWeight,
                                                          __nv_bfloat16 *y,
                                                          int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];
    // A swizzled box starts at a multiple of 1024 bytes.
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    const int thread = threadIdx.x, lane = thread % 32, warpgroup = thread / 128;
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
        giveRegisters<40>();
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
        takeRegisters<232>();
        const int consumer = warpgroup - 1, warp = thread / 32 - 4;

        float acc[128];
        unsigned words[64] = {}; // of the tile before, not sent yet
        int row = 0, col = 0;    // where they belong
        bool waiting = false;
        int turn = 0;
        for (int t = blockIdx.x; t < tileRows * tileCols; t += gridDim.x) {
            const Tile tile = locate(t, tileRows, tileCols);

            // The first four slabs: a quarter of the tile before leaves beside the products of each.
            startSlab<0>(acc, ring, full, turn, consumer);
            if (waiting)
                storeQuarter<0>(words, y, row, col, M, N);
            endSlab(empty, turn, lane);
            ++turn;

            if (slabs > 1) {
                startSlab<1>(acc, ring, full, turn, consumer);
                if (waiting)
                    storeQuarter<1>(words, y, row, col, M, N);
                endSlab(empty, turn, lane);
                ++turn;
            } else if (waiting) {
                storeQuarter<1>(words, y, row, col, M, N);
            }

            if (slabs > 2) {
                startSlab<1>(acc, ring, full, turn, consumer);
                if (waiting)
                    storeQuarter<2>(words, y, row, col, M, N);
                endSlab(empty, turn, lane);
                ++turn;
            } else if (waiting) {
                storeQuarter<2>(words, y, row, col, M, N);
            }

            if (slabs > 3) {
                startSlab<1>(acc, ring, full, turn, consumer);
                if (waiting)
                    storeQuarter<3>(words, y, row, col, M, N);
                endSlab(empty, turn, lane);
                ++turn;
            } else if (waiting) {
                storeQuarter<3>(words, y, row, col, M, N);
            }

            for (int slab = 4; slab < slabs; ++slab, ++turn) {
                startSlab<1>(acc, ring, full, turn, consumer);
                endSlab(empty, turn, lane);
            }

            packSums(words, acc);
            row = tile.row0 + warp * 16;
            col = tile.col0;
            waiting = true;
        }

        if (waiting) {
            storeQuarter<0>(words, y, row, col, M, N);
            storeQuarter<1>(words, y, row, col, M, N);
            storeQuarter<2>(words, y, row, col, M, N);
            storeQuarter<3>(words, y, row, col, M, N);
        }
    }
}
