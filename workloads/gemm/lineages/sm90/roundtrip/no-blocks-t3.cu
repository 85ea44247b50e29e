/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["min(sm_count, ceil_div(M, 128) * ceil_div(N, 256))"]
block = ["384"]
shared = "STAGES * 49152 + 32768 + 1024"
args = ["tm_x", "tm_weight", "tm_y", "int M", "int N", "int K"]

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
box = [64, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// Persistent blocks walk over tiles of 128 × 256. Warpgroup 0 produces: one thread copies slabs of 64 numbers of K by TMA
// to a ring. Warpgroups 1 and 2 consume: 64 rows each, wgmma m64n256k16 from swizzled shared memory. Results go out by
// stmatrix and TMA stores through boxes of their own, so that the ring fills for the next tile meanwhile.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int BM = 128, BN = 256, BK = 64;
constexpr int X_BYTES = BM * BK * 2;                    // 16 KiB
constexpr int W_BYTES = BN * BK * 2;                    // 32 KiB
constexpr int STAGE_BYTES = X_BYTES + W_BYTES;          // 48 KiB
constexpr int BOX_BYTES = 64 * 64 * 2;                  // 8 KiB

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}"
                 :: "r"(barrier), "r"(parity) : "memory");
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

__device__ __forceinline__ void syncWarpgroup(int id)
{
    asm volatile("bar.sync %0, 128;" :: "r"(id) : "memory");
}

// Two neighbours of a row: the lower half is the first.
__device__ __forceinline__ unsigned pack(float first, float second)
{
    unsigned packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
    return packed;
}

// K-major rows of 128 swizzled bytes: start address, 1024 bytes from one group of 8 rows to the next, swizzle code 1.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return static_cast<unsigned long long>((address & 0x3ffffu) >> 4) | (1ull << 16) | ((1024ull >> 4) << 32) | (1ull << 62);
}

#define SUMS4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define SUMS16(i) SUMS4(i), SUMS4((i) + 4), SUMS4((i) + 8), SUMS4((i) + 12)

// 64 × 256 sums of a warpgroup; with keep == 0 what they held before is dropped.
__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long a, unsigned long long b, int keep)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : SUMS16(0), SUMS16(16), SUMS16(32), SUMS16(48), SUMS16(64), SUMS16(80), SUMS16(96), SUMS16(112)
                 : "l"(a), "l"(b), "r"(keep));
}

struct Tile { int row, col; };

// Down GROUP rows of tiles, then to the next column: what is in flight is a compact patch of y.
__device__ __forceinline__ Tile locate(int tile, int tileRows, int tileCols)
{
    const int first = tile / (GROUP * tileCols) * GROUP;
    const int left = tileRows - first;
    const int rows = left < GROUP ? left : GROUP;
    const int step = tile % (GROUP * tileCols);
    Tile place;
    place.row = (first + step % rows) * BM;
    place.col = step / rows * BN;
    return place;
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap mapX, const __grid_constant__ TensorMap mapWeight,
     const __grid_constant__ TensorMap mapY, int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];

    const int warpgroup = threadIdx.x / 128;
    const unsigned ring = (sharedAddress(dynamicShared) + 1023u) & ~1023u;
    const unsigned full = sharedAddress(barriers);
    const unsigned empty = full + 8 * STAGES;

    const int tileRows = (M + BM - 1) / BM;
    const int tileCols = (N + BN - 1) / BN;
    const int tiles = tileRows * tileCols;
    const int slabs = (K + BK - 1) / BK;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);           // the producer's expectBytes
            initBarrier(empty + 8 * stage, 8);          // one arrival a warp of the consumers
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");
        if (threadIdx.x == 0) {
            int turn = 0;                               // slabs so far, over all tiles
            for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
                const Tile tile = locate(t, tileRows, tileCols);
                for (int slab = 0; slab < slabs; ++slab, ++turn) {
                    const int stage = turn % STAGES;
                    const unsigned to = ring + stage * STAGE_BYTES;
                    waitPhase(empty + 8 * stage, ((turn / STAGES) & 1) ^ 1);    // passes at once in the first round
                    expectBytes(full + 8 * stage, STAGE_BYTES);                 // clipped boxes count at full size
                    copyBox(to, &mapX, slab * BK, tile.row, full + 8 * stage);
                    copyBox(to + X_BYTES, &mapWeight, slab * BK, tile.col, full + 8 * stage);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory");
        const int consumer = warpgroup - 1;
        const int thread = threadIdx.x % 128;
        const int lane = thread % 32;
        const unsigned boxes = ring + STAGES * STAGE_BYTES + consumer * 2 * BOX_BYTES;
        const int boxRow = thread / 32 * 16 + lane % 16;    // the row whose address this lane gives to stmatrix

        float acc[128];
#pragma unroll
        for (int i = 0; i < 128; ++i)
            acc[i] = 0.0f;

        int turn = 0;
        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            const Tile tile = locate(t, tileRows, tileCols);

            for (int slab = 0; slab < slabs; ++slab, ++turn) {
                const int stage = turn % STAGES;
                const unsigned xs = ring + stage * STAGE_BYTES + consumer * (64 * BK * 2);
                const unsigned ws = ring + stage * STAGE_BYTES + X_BYTES;
                waitPhase(full + 8 * stage, (turn / STAGES) & 1);

                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int k = 0; k < BK; k += 16)        // 16 numbers of K: 32 bytes further in the swizzled row
                    multiply(acc, describe(xs + k * 2), describe(ws + k * 2), k > 0 ? 1 : (slab > 0 ? 1 : 0));
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

                if (lane == 0)                          // this warp's reads of the stage have ended
                    arrive(empty + 8 * stage);
            }

            // The sums are read below, not before the products have been waited for. No instructions.
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(acc[i]) :: "memory");

            const int row = tile.row + consumer * 64;
#pragma unroll
            for (int col = 0; col < BN; col += 64) {
                const unsigned box = boxes + (col / 64 % 2) * BOX_BYTES;    // two boxes take turns
                if (thread == 0)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  // this box has been read
                syncWarpgroup(1 + consumer);
#pragma unroll
                for (int chunk = 0; chunk < 8; chunk += 2) {                // 16 columns: four 8 × 8 matrices
                    const int i = col / 2 + 4 * chunk;
                    const unsigned p0 = pack(acc[i], acc[i + 1]);           // rows 0-7 of chunk
                    const unsigned p1 = pack(acc[i + 2], acc[i + 3]);       // rows 8-15 of chunk
                    const unsigned p2 = pack(acc[i + 4], acc[i + 5]);       // rows 0-7 of chunk + 1
                    const unsigned p3 = pack(acc[i + 6], acc[i + 7]);       // rows 8-15 of chunk + 1
                    const unsigned to = box + boxRow * 128 + (((chunk + lane / 16) ^ (boxRow % 8)) * 16);
                    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                                 :: "r"(to), "r"(p0), "r"(p1), "r"(p2), "r"(p3) : "memory");
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");    // by every thread that wrote
                syncWarpgroup(1 + consumer);
                if (thread == 0) {
                    if (row < M && tile.col + col < N)
                        storeBox(&mapY, tile.col + col, row, box);          // clipped at the edges
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");   // empty outside: groups are counted
                }
            }
        }
        if (thread == 0)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // shared memory goes away with the block
    }
}
