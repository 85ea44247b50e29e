/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 5
values = [3, 4, 5]

[[tensormap]]
name = "tm_x"
tensor = "x"
dims = ["M", "K / 64", 64]
strides = ["K", 64]
box = [16, 4, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
dims = ["N", "K / 64", 64]
strides = ["K", 64]
box = [64, 4, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 64)", "ceil_div(M, 16)"]
block = ["288"]
shared = "STAGES * (64 + 16) * 256 * 2 + 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// From K07, whose first box of x waits for its descriptor and holds up the weight behind it: here both descriptors are
// fetched before anything else, the ring is first filled with weight, which comes from device memory, and then with x,
// which one block in 128 has to bring to L2. Weight leaves L2 first (it is read once), x last.
// Needs K % 64 == 0 for whole boxes, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BN = 64, BM = 16, BK = 256;
constexpr int WARPS = BK / 32;
// A stage: a box of 4 lines of 64 numbers of K from 64 rows of weight, then one of x.
constexpr unsigned PITCH = BK * 2, W_BYTES = BN * PITCH, X_BYTES = BM * PITCH, STAGE_BYTES = W_BYTES + X_BYTES;

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

// Starts the copy of one box, from line `line` of row `row`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int line, int row, unsigned barrier,
                                        unsigned long long policy)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%2, %3, %4}], [%5], %6;"
                 :: "r"(to), "l"(&map), "r"(0), "r"(line), "r"(row), "r"(barrier), "l"(policy) : "memory");
}

__device__ __forceinline__ void prefetchMap(const TensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory");
}

// 16 bytes: 8 neighbouring numbers of a row.
__device__ __forceinline__ void loadChunk(unsigned (&to)[4], unsigned from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

// d += 16 rows of x · 8 rows of weight, over 16 numbers of K.
__device__ __forceinline__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Where the 128-byte swizzle keeps a 16-byte chunk of a row's line: it looks at the address alone, and rows are four
// lines apart.
__device__ __forceinline__ unsigned place(int row, int line, int chunk)
{
    return row * PITCH + line * 128 + (chunk ^ ((4 * row + line) % 8)) * 16;
}

extern "C" __global__ __launch_bounds__(32 * (WARPS + 1), 1) void gemm(const __grid_constant__ TensorMap mapX,
                                                                       const __grid_constant__ TensorMap mapWeight,
                                                                       __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];
    // A swizzled box starts at a multiple of 1024 bytes.
    const unsigned base = unsigned(__cvta_generic_to_shared(dynamicShared));
    const unsigned ring = (base + 1023) & ~1023u;
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int col0 = blockIdx.x * BN, row0 = blockIdx.y * BM;
    const int slabs = (K + BK - 1) / BK;

    unsigned long long once, often;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(often));
    const auto fetchWeight = [&](int slab) {
        const int stage = slab % STAGES;
        expectBytes(full + 8 * stage, STAGE_BYTES); // of x too
        copyBox(ring + stage * STAGE_BYTES, mapWeight, slab * (BK / 64), col0, full + 8 * stage, once);
    };
    const auto fetchX = [&](int slab) {
        const int stage = slab % STAGES;
        copyBox(ring + stage * STAGE_BYTES + W_BYTES, mapX, slab * (BK / 64), row0, full + 8 * stage, often);
    };
    const bool producer = warp == WARPS && lane == 0;
    if (producer) {
        prefetchMap(mapWeight);
        prefetchMap(mapX);
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
        // The ring is empty: its first copies wait for nobody.
        for (int slab = 0; slab < min(STAGES, slabs); ++slab)
            fetchWeight(slab);
        for (int slab = 0; slab < min(STAGES, slabs); ++slab)
            fetchX(slab);
    }
    __syncthreads();

    float acc[BN / 8][4] = {};
    if (producer) {
        for (int slab = STAGES; slab < slabs; ++slab) {
            waitPhase(empty + 8 * (slab % STAGES), slab / STAGES % 2 ^ 1);
            fetchWeight(slab);
            fetchX(slab);
        }
    } else if (warp < WARPS) {
        // Every warp takes 32 of a slab's numbers of K, for all rows. A lane brings 8 neighbouring numbers of a row. The
        // instruction wants pairs that lie 8 apart, but a sum does not care which k is called which, as long as both
        // operands agree: words 0 and 1 make one step of 16, words 2 and 3 the next.
        const unsigned mine = place(lane / 4, warp / 2, warp % 2 * 4 + lane % 4);
        for (int slab = 0; slab < slabs; ++slab) {
            const unsigned stage = ring + slab % STAGES * STAGE_BYTES;
            waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);
            unsigned w[BN / 8][4], a[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                loadChunk(a[i], stage + W_BYTES + mine + i * 8 * PITCH);
#pragma unroll
            for (int i = 0; i < BN / 8; ++i)
                loadChunk(w[i], stage + mine + i * 8 * PITCH);
            __syncwarp();
            if (lane == 0)
                arrive(empty + 8 * (slab % STAGES));
#pragma unroll
            for (int step = 0; step < 4; step += 2)
#pragma unroll
                for (int i = 0; i < BN / 8; ++i)
                    multiply(acc[i], a[0][step], a[1][step], a[0][step + 1], a[1][step + 1], w[i][step],
                             w[i][step + 1]);
        }
    }

    // The warps' sums meet in the ring, which has come to rest.
    __syncthreads();
    float(*parts)[BM][BN + 8] = reinterpret_cast<float(*)[BM][BN + 8]>(dynamicShared + (ring - base));
    if (warp < WARPS) {
        // A lane holds columns 2t and 2t + 1 of rows lane / 4 and the one 8 further, for each 8 columns.
#pragma unroll
        for (int i = 0; i < BN / 4; ++i)
            *reinterpret_cast<float2 *>(&parts[warp][lane / 4 + i % 2 * 8][i / 2 * 8 + lane % 4 * 2]) =
                make_float2(acc[i / 2][i % 2 * 2], acc[i / 2][i % 2 * 2 + 1]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BM * BN / 2; i += 32 * (WARPS + 1)) {
        const int row = i / (BN / 2), col = i % (BN / 2) * 2;
        float2 sum = {};
#pragma unroll
        for (int part = 0; part < WARPS; ++part) {
            const float2 two = *reinterpret_cast<const float2 *>(&parts[part][row][col]);
            sum.x += two.x;
            sum.y += two.y;
        }
        if (row0 + row < M && col0 + col < N)
            *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row0 + row) * N + col0 + col) =
                __floats2bfloat162_rn(sum.x, sum.y);
    }
}
