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
shared = "4 * 49152 + 32768 + 1024"
args = ["tm_x", "tm_weight", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums. Needs sm_90a.
//
// Persistent blocks; warpgroup 0 copies by TMA, warpgroups 1 and 2 own 64 rows each of a tile of 128 × 256.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int BM = 128, BN = 256, BK = 64;
constexpr int STAGES = 4;
constexpr int GROUP = 16;                              // rows of tiles walked down before the next column
constexpr unsigned X_BYTES = BM * BK * 2;
constexpr unsigned STAGE_BYTES = (BM + BN) * BK * 2;
constexpr unsigned BOX_BYTES = 64 * 64 * 2;

__device__ __forceinline__ unsigned sharedAddress(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (done == 0);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int inner, int outer, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(map)), "r"(inner), "r"(outer), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap *map, int inner, int outer, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(reinterpret_cast<unsigned long long>(map)), "r"(from), "r"(inner), "r"(outer)
                 : "memory");
}

// K-major rows of 128 swizzled bytes: start address, 1024 bytes from one group of 8 rows to the next, swizzle code 1.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return static_cast<unsigned long long>((address & 0x3ffffu) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

#define SUMS_8(i)                                                                                                    \
    "+f"(d[(i) + 0]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]),                                          \
    "+f"(d[(i) + 4]), "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define SUMS_32(i) SUMS_8((i) + 0), SUMS_8((i) + 8), SUMS_8((i) + 16), SUMS_8((i) + 24)

__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, "
                 "%72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, "
                 "%88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, "
                 "%104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, "
                 "%120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : SUMS_32(0), SUMS_32(32), SUMS_32(64), SUMS_32(96)
                 : "l"(a), "l"(b), "r"(1));
}

// Keeps the compiler from moving accesses to the sums across this point.
__device__ __forceinline__ void pinSums(float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

struct Tile { int row, col; };

__device__ __forceinline__ Tile locate(int tile, int tileRows, int tileCols)
{
    const int first = tile / (GROUP * tileCols) * GROUP;
    const int rows = min(GROUP, tileRows - first);     // the last group may be lower
    const int step = tile % (GROUP * tileCols);
    Tile result;
    result.row = (first + step % rows) * BM;
    result.col = step / rows * BN;
    return result;
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap mapX, const __grid_constant__ TensorMap mapWeight,
     const __grid_constant__ TensorMap mapY, int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];

    const unsigned ring = (sharedAddress(dynamicShared) + 1023u) & ~1023u;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
    const int thread = static_cast<int>(threadIdx.x) % 128;          // within the warpgroup

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);                        // the producer's expectBytes
            initBarrier(empty + 8 * stage, 8);                       // one arrival a consumer warp
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    const int tileRows = (M + BM - 1) / BM, tileCols = (N + BN - 1) / BN;
    const int tiles = tileRows * tileCols;
    const int slabs = (K + BK - 1) / BK;

    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (thread == 0) {
            unsigned turn = 0;                                       // slabs so far, over all tiles
            for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
                const Tile tile = locate(t, tileRows, tileCols);
#pragma unroll 1
                for (int slab = 0; slab < slabs; ++slab, ++turn) {
                    const unsigned stage = turn % STAGES;
                    const unsigned to = ring + stage * STAGE_BYTES;
                    waitPhase(empty + 8 * stage, (turn / STAGES % 2) ^ 1);   // the first round passes at once
                    expectBytes(full + 8 * stage, STAGE_BYTES);
                    copyBox(to, &mapX, slab * BK, tile.row, full + 8 * stage);
                    copyBox(to + X_BYTES, &mapWeight, slab * BK, tile.col, full + 8 * stage);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int consumer = warpgroup - 1;
        const int lane = thread % 32;
        const int boxRow = thread / 32 * 16 + lane % 16;             // of this consumer's 64 rows
        const unsigned boxes = ring + STAGES * STAGE_BYTES + consumer * 2 * BOX_BYTES;
        unsigned turn = 0;

        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            const Tile tile = locate(t, tileRows, tileCols);
            float acc[128];
#pragma unroll
            for (int i = 0; i < 128; ++i)
                acc[i] = 0.0f;
            pinSums(acc);

#pragma unroll 1
            for (int slab = 0; slab < slabs; ++slab, ++turn) {
                const unsigned stage = turn % STAGES;
                const unsigned from = ring + stage * STAGE_BYTES;
                const unsigned long long xs = describe(from + consumer * (64 * BK * 2));
                const unsigned long long ws = describe(from + X_BYTES);
                waitPhase(full + 8 * stage, turn / STAGES % 2);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int k = 0; k < BK / 16; ++k)                    // 32 bytes further in the swizzled row: 2 units
                    multiply(acc, xs + 2 * k, ws + 2 * k);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                if (lane == 0)
                    arrive(empty + 8 * stage);                       // this warp's reads of the stage have ended
            }
            pinSums(acc);

            const int row0 = tile.row + consumer * 64;
#pragma unroll
            for (int col = 0; col < BN; col += 64) {
                const unsigned box = boxes + col / 64 % 2 * BOX_BYTES;
                if (thread == 0)                                     // the copy before the last has read this box
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                asm volatile("bar.sync %0, 128;" :: "r"(warpgroup) : "memory");
#pragma unroll
                for (int chunk = 0; chunk < 8; chunk += 2) {         // 16 columns: four 8 × 8 matrices
                    const int i = col / 2 + 4 * chunk;
                    const unsigned to = box + boxRow * 128 + ((chunk + lane / 16) ^ (boxRow % 8)) * 16;
                    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                                 :: "r"(to), "r"(pack(acc[i], acc[i + 1])), "r"(pack(acc[i + 2], acc[i + 3])),
                                    "r"(pack(acc[i + 4], acc[i + 5])), "r"(pack(acc[i + 6], acc[i + 7]))
                                 : "memory");
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                asm volatile("bar.sync %0, 128;" :: "r"(warpgroup) : "memory");
                if (thread == 0) {
                    if (row0 < M && tile.col + col < N)
                        storeBox(&mapY, tile.col + col, row0, box);  // clipped at the edges
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
            }
        }
        if (thread == 0)                                             // shared memory goes away with the block
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
