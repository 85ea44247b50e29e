/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_w"
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
args = ["tm_x", "tm_w", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// Persistent, specialized warpgroups: warpgroup 0 copies by TMA, warpgroups 1 and 2 own 64 × 256 sums each.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4, GROUP = 16;
constexpr unsigned X_BYTES = BM * BK * 2;
constexpr unsigned W_BYTES = BN * BK * 2;
constexpr unsigned STAGE_BYTES = X_BYTES + W_BYTES;
constexpr unsigned BOX_BYTES = 64 * 64 * 2;

struct Tile { int row, col; };

// Down GROUP rows of tiles, then to the next column.
__device__ __forceinline__ Tile locate(int tile, int tileRows, int tileCols)
{
    const int first = tile / (GROUP * tileCols) * GROUP;
    const int left = tileRows - first;
    const int rows = left < GROUP ? left : GROUP;
    const int step = tile % (GROUP * tileCols);
    Tile result;
    result.row = (first + step % rows) * BM;
    result.col = step / rows * BN;
    return result;
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
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
    } while (!done);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int inner, int outer, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(map)), "r"(barrier), "r"(inner), "r"(outer)
                 : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap *map, int inner, int outer, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(reinterpret_cast<unsigned long long>(map)), "r"(from), "r"(inner), "r"(outer)
                 : "memory");
}

// K-major rows of 128 swizzled bytes, 8 rows every 1024 bytes.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (unsigned long long)((address & 0x3ffffu) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

#define ACC4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(i) ACC4(i), ACC4((i) + 4), ACC4((i) + 8), ACC4((i) + 12)

__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long a, unsigned long long b)
{
    asm volatile(
        "{\n"
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
        : ACC16(0), ACC16(16), ACC16(32), ACC16(48), ACC16(64), ACC16(80), ACC16(96), ACC16(112)
        : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

__device__ __forceinline__ void storeMatrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

__device__ __forceinline__ void syncWarpgroup(int id)
{
    asm volatile("bar.sync %0, 128;" :: "r"(id) : "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap mapX, const __grid_constant__ TensorMap mapW, const __grid_constant__ TensorMap mapY,
     int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];

    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023u) & ~1023u;
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers));
    const unsigned empty = full + 8 * STAGES;

    const int warpgroup = __shfl_sync(0xffffffffu, int(threadIdx.x) / 128, 0);
    const int thread = int(threadIdx.x) % 128;
    const int lane = thread % 32;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);          // the producer's expectBytes
            initBarrier(empty + 8 * stage, 8);         // one arrival a warp of the consumers
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    const int slabs = (K + BK - 1) / BK;
    const int tileRows = (M + BM - 1) / BM;
    const int tileCols = (N + BN - 1) / BN;
    const int tiles = tileRows * tileCols;

    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (thread == 0) {
            unsigned turn = 0;                         // slabs so far, over all tiles
            for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
                const Tile tile = locate(t, tileRows, tileCols);
                for (int slab = 0; slab < slabs; ++slab, ++turn) {
                    const unsigned stage = turn % STAGES;
                    const unsigned to = ring + stage * STAGE_BYTES;
                    waitPhase(empty + 8 * stage, (turn / STAGES % 2) ^ 1);
                    expectBytes(full + 8 * stage, STAGE_BYTES);
                    copyBox(to, &mapX, slab * BK, tile.row, full + 8 * stage);
                    copyBox(to + X_BYTES, &mapW, slab * BK, tile.col, full + 8 * stage);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int consumer = warpgroup - 1;
        const unsigned boxes = ring + STAGES * STAGE_BYTES + consumer * 2 * BOX_BYTES;
        const int boxRow = thread / 32 * 16 + lane % 16;
        unsigned turn = 0;                             // counts like the producer's

        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            const Tile tile = locate(t, tileRows, tileCols);

            float acc[128];
#pragma unroll
            for (int i = 0; i < 128; ++i)
                acc[i] = 0.0f;

            for (int slab = 0; slab < slabs; ++slab, ++turn) {
                const unsigned stage = turn % STAGES;
                const unsigned from = ring + stage * STAGE_BYTES;
                const unsigned long long a = describe(from + consumer * (64 * BK * 2));
                const unsigned long long b = describe(from + X_BYTES);
                waitPhase(full + 8 * stage, turn / STAGES % 2);
                __syncwarp();
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int k = 0; k < BK; k += 16)       // 32 bytes further in the swizzled row: 2 units of 16 bytes
                    multiply(acc, a + k / 8, b + k / 8);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                if (lane == 0)
                    arrive(empty + 8 * stage);         // this warp's reads of the stage have ended
            }
            // Nothing that reads the sums may move up over the wait.
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(acc[i]) :: "memory");

            const int row0 = tile.row + consumer * 64;
#pragma unroll
            for (int part = 0; part < BN / 64; ++part) {
                const unsigned box = boxes + part % 2 * BOX_BYTES;
                if (thread == 0)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");   // this box has been read
                syncWarpgroup(1 + consumer);
#pragma unroll
                for (int chunk = 0; chunk < 8; chunk += 2) {
                    const int i = part * 32 + chunk * 4;
                    storeMatrices(box + boxRow * 128 + ((chunk + lane / 16) ^ (boxRow % 8)) * 16,
                                  pack(acc[i], acc[i + 1]), pack(acc[i + 2], acc[i + 3]),
                                  pack(acc[i + 4], acc[i + 5]), pack(acc[i + 6], acc[i + 7]));
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                syncWarpgroup(1 + consumer);
                if (thread == 0) {
                    if (row0 < M && tile.col + part * 64 < N)
                        storeBox(&mapY, tile.col + part * 64, row0, box);
                    // Committed even when empty: the groups are counted.
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
            }
        }
        if (thread == 0)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");           // shared memory goes away
    }
}
