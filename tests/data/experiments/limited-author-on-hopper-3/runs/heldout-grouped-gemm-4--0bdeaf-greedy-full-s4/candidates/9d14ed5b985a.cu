/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["sm_count"]
block = ["288"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]

[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"

[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes 128x256 tiles of the groups, one after another, with wgmma, two warpgroups of 64x256, from a ring of slabs in shared memory that a ninth
// warp has filled by TMA, over the ends of tiles; still missing are slabs shared in a cluster,
// and a store of the sums by way of shared memory.

#include <cuda_bf16.h>

constexpr int BM = 128;
constexpr int BN = 256;
constexpr int BK = 64;
constexpr int THREADS = 288; // two warpgroups that multiply, one warp that asks for copies
constexpr int STAGES = 4;
constexpr int A_SLAB = 2 * BM * BK; // bytes: 128 rows of 64 of k
constexpr int B_SLAB = 2 * BK * BN; // bytes: four boxes, each 64 of k by 64 columns

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    unsigned long long s;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(s) : "l"(p));
    return static_cast<unsigned>(s);
}

// Waits for the end of the barrier's phase of this parity.
__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra WAIT;\n}"
                 : : "r"(barrier), "r"(parity) : "memory");
}

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

#define SUMS4(i, j) "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
#define SUMS32(i) SUMS4(i, 0), SUMS4(i, 1), SUMS4(i, 2), SUMS4(i, 3), SUMS4(i, 4), SUMS4(i, 5), SUMS4(i, 6), SUMS4(i, 7)

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&x)[4], unsigned w0, unsigned w1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w0), "r"(w1));
}

__device__ __forceinline__ unsigned narrow(float low, float high)
{
    const unsigned l = __bfloat16_as_ushort(__float2bfloat16(low));
    const unsigned h = __bfloat16_as_ushort(__float2bfloat16(high));
    return l | (h << 16);
}

// Starts the copies of the slabs that begin at k0, boxes of 128 swizzled bytes a row; what lies outside of a or of the group's b becomes zero.
__device__ __forceinline__ void start_slabs(unsigned as, const TensorMap &a, const TensorMap &b, int first, int group,
                                            int col0, int k0, unsigned full)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(full), "r"(A_SLAB + B_SLAB) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 : : "r"(as), "l"(&a), "r"(k0), "r"(first), "r"(full) : "memory");
#pragma unroll
    for (int c = 0; c < BN; c += 64)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                     : : "r"(as + A_SLAB + 2 * c * BK), "l"(&b), "r"(col0 + c), "r"(k0), "r"(group), "r"(full) : "memory");
}

// Adds 64 rows at x, along k, times 256 columns at w, across k, over 16 of k. Eight rows are 1024 bytes; 64 columns of w are 8192 bytes.
__device__ __forceinline__ void multiply_16(float (&sum)[4][8][4], unsigned x, unsigned w)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}"
                 : SUMS32(0), SUMS32(1), SUMS32(2), SUMS32(3)
                 : "l"(1ull << 62 | 64ull << 32 | 1ull << 16 | (x & 0x3ffff) >> 4), "l"(1ull << 62 | 64ull << 32 | 512ull << 16 | (w & 0x3ffff) >> 4));
}

// Finds the rows and columns of a tile that is counted from the first one of the group, and goes on to later groups where it lies beyond. Within a
// group, rows go first. False after the last tile. The answer is the same for the whole block.
__device__ __forceinline__ bool find_tile(int &tile, int &group, int &first, int &end, int &col0, const int *offsets, int G, int N)
{
    const int columns = (N + BN - 1) / BN;
    for (; group < G; ++group) {
        const int lo = offsets[group];
        const int hi = offsets[group + 1];
        const int tiles = (hi - lo + BM - 1) / BM;
        if (tile < tiles * columns) {
            first = lo + tile % tiles * BM;
            end = hi;
            col0 = tile / tiles * BN;
            return true;
        }
        tile -= tiles * columns;
    }
    return false;
}

__device__ __forceinline__ void multiply_tile(__nv_bfloat16 *y, int first, int end, int col0, int N, int steps, unsigned slab, unsigned as, unsigned full);

extern "C" __global__ void __launch_bounds__(THREADS, 1) multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                                                                  const int *offsets, __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ unsigned char slabs[];
    __shared__ unsigned long long barriers[2 * STAGES]; // of each stage: it is full; and then: it is empty

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    const unsigned as = (shared_address(slabs) + 1023) & ~1023u;
    const unsigned full = shared_address(barriers);
    if (threadIdx.x < 2 * STAGES) // a stage is filled by one arrival and its bytes, and emptied by eight warps
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;" : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < STAGES ? 1 : 8) : "memory");
    __syncthreads();

    const int steps = (K + BK - 1) / BK;
    int tile = blockIdx.x, group = 0, first = 0, end = 0, col0 = 0;
    unsigned slab = 0; // counted over all of the block's tiles
    if (warp == 8) {
        for (; lane == 0 && find_tile(tile, group, first, end, col0, offsets, G, N); tile += gridDim.x)
            for (int step = 0; step < steps; ++step, ++slab) {
                wait_phase(full + 8 * (STAGES + slab % STAGES), (slab / STAGES + 1) % 2); // the first round finds all stages empty
                start_slabs(as + slab % STAGES * (A_SLAB + B_SLAB), a, b, first, group, col0, step * BK, full + 8 * (slab % STAGES));
            }
        return;
    }

    for (; find_tile(tile, group, first, end, col0, offsets, G, N); tile += gridDim.x, slab += steps)
        multiply_tile(y, first, end, col0, N, steps, slab, as, full);
}

// Makes this warpgroup's half of a tile from the ring's slabs, of which the tile's first one is number slab.
__device__ __forceinline__ void multiply_tile(__nv_bfloat16 *y, int first, int end, int col0, int N, int steps, unsigned slab, unsigned as, unsigned full)
{
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int wm = (warp / 4) * 64;

    float sum[4][8][4]; // four times 64 columns, of eight times 8
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    __syncwarp(); // lanes part where they store the tile before
    for (int step = 0; step < steps; ++step) {
        const unsigned now = (slab + step) % STAGES;
        wait_phase(full + 8 * now, (slab + step) / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");

        const unsigned a_address = as + now * (A_SLAB + B_SLAB) + 2 * wm * BK;
        const unsigned b_address = as + now * (A_SLAB + B_SLAB) + A_SLAB;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            multiply_16(sum, a_address + 2 * k, b_address + 128 * k);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); // the products of the step before have ended: its stage is empty
        if (step > 0 && lane == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(full + 8 * (STAGES + (slab + step - 1) % STAGES)) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS32(0), SUMS32(1), SUMS32(2), SUMS32(3) : : "memory");
    if (lane == 0) // the tile's last stage is empty too: the next tile's slabs come while the sums are stored
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(full + 8 * (STAGES + (slab + steps - 1) % STAGES)) : "memory");

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int col = col0 + i * 64 + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + warp * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}
