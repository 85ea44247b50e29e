/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 5
values = [3, 4, 5]

[[tensormap]]
name = "tm_x"
tensor = "x"
dims = ["K / 64", "M", 64]
strides = [64, "K"]
box = [4, 16, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
dims = ["N / 8", "K / 64", 8, 64]
strides = ["8 * K", 64, "K"]
box = [8, 4, 8, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 64)", "ceil_div(M, 16)"]
block = ["160"]
shared = "STAGES * (64 + 16) * 256 * 2 + 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// From K07, whose eight warps each bring fragments to registers and then meet for the sums of a block: here one warpgroup
// multiplies 64 rows of weight by 16 of x with wgmma, straight from the ring, a twentieth of the instructions (less power,
// more clock for L2), and its sums are complete: they go from registers to y with no barrier of the block at the end. The
// map of weight sees 8 rows as a dimension below the lines, so that a box still brings 512 bytes of each row, as swizzled
// groups of 8 rows that wgmma reads.
// Needs K % 64 == 0 for whole boxes, and N % 8 == 0.

#include <cuda_bf16.h>

constexpr int BN = 64, BM = 16, BK = 256;
constexpr int WARPS = 4;
// A stage: 8 groups of 8 rows of weight, each 4 lines of 64 numbers of K, 1024 bytes a line; then 4 lines of 16 rows of x.
constexpr unsigned W_LINE = 1024, W_GROUP = 4 * W_LINE, X_LINE = BM * 128, X_GROUP = 1024;
constexpr unsigned W_BYTES = BN / 8 * W_GROUP, X_BYTES = 4 * X_LINE, STAGE_BYTES = W_BYTES + X_BYTES;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

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

// Starts the copy of one box of x, from line `line` of row `row`.
__device__ __forceinline__ void copyX(unsigned to, const TensorMap &map, int line, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(0), "r"(row), "r"(line), "r"(barrier) : "memory");
}

// Of weight, from group `group` of 8 rows.
__device__ __forceinline__ void copyWeight(unsigned to, const TensorMap &map, int line, int group, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(&map), "r"(0), "r"(0), "r"(line), "r"(group), "r"(barrier) : "memory");
}

// Describes rows of 128 swizzled bytes to wgmma: where they start, `pitch` bytes from one group of 8 rows to the next,
// swizzle code 1. The field at bit 16 is unused with this swizzle.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned pitch)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | (unsigned long long)(pitch >> 4) << 32 | 1ull << 62;
}

// d += 64 rows of weight · 16 rows of x, over 16 numbers of K; in the background, by a whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[8], unsigned long long weight, unsigned long long x)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, accumulate, 1, 1, 0, 0;\n"
                 "}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                 : "l"(weight), "l"(x));
}

// Waits until all products have ended.
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

extern "C" __global__ __launch_bounds__(32 * (WARPS + 1), 1) void gemm(const __grid_constant__ TensorMap mapX,
                                                                       const __grid_constant__ TensorMap mapWeight,
                                                                       __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];
    // A swizzled box starts at a multiple of 1024 bytes.
    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int col0 = blockIdx.x * BN, row0 = blockIdx.y * BM;
    const int slabs = (K + BK - 1) / BK;

    const auto fetch = [&](int slab) {
        const int stage = slab % STAGES;
        const unsigned to = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
        expectBytes(barrier, STAGE_BYTES);
        copyWeight(to, mapWeight, slab * (BK / 64), col0 / 8, barrier);
        copyX(to + W_BYTES, mapX, slab * (BK / 64), row0, barrier);
    };
    const bool producer = warp == WARPS && lane == 0;
    if (producer) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
        // The ring is empty: its first copies wait for nobody.
        for (int slab = 0; slab < min(STAGES, slabs); ++slab)
            fetch(slab);
    }
    __syncthreads();

    if (producer) {
        for (int slab = STAGES; slab < slabs; ++slab) {
            waitPhase(empty + 8 * (slab % STAGES), slab / STAGES % 2 ^ 1);
            fetch(slab);
        }
    } else if (warp < WARPS) {
        float acc[8] = {};
        for (int slab = 0; slab < slabs; ++slab) {
            const unsigned weight = ring + slab % STAGES * STAGE_BYTES, x = weight + W_BYTES;
            waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int i = 0; i < BK / 16; ++i)
                multiply(acc, describe(weight + i / 4 * W_LINE + i % 4 * 32, W_GROUP),
                         describe(x + i / 4 * X_LINE + i % 4 * 32, X_GROUP));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // This warp's products of the slab have ended: they take a quarter of the time that the slab took to come.
            waitProducts();
            if (lane == 0)
                arrive(empty + 8 * (slab % STAGES));
        }

        // A lane holds rows 2t and 2t + 1 of x of columns lane / 4 and the one 8 further, and the two rows 8 below. It and
        // its neighbour in the next column exchange one, so that both have two columns of a row.
        const int group = lane / 4, t = lane % 4, odd = group % 2;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float low = acc[2 * i], high = acc[2 * i + 1];
            const float other = __shfl_xor_sync(0xffffffffu, odd ? low : high, 4);
            const int row = row0 + i / 2 * 8 + 2 * t + odd, col = col0 + warp * 16 + i % 2 * 8 + group - odd;
            if (row < M && col < N)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    odd ? __floats2bfloat162_rn(other, high) : __floats2bfloat162_rn(low, other);
        }
    }
}
