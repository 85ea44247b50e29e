/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 11
values = [4, 6, 8, 11]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [16, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 64)", "ceil_div(M, 16)"]
block = ["288"]
shared = "STAGES * (64 + 16) * 128 * 2 + 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// Attempt from K06: each block begins elsewhere along K and goes round, so that what they ask for at a moment
// does not lie 16 KB apart. But then no two blocks want the same slab of x at once.
// Needs K % 64 == 0 for whole boxes, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BN = 64, BM = 16, BK = 128;
constexpr int WARPS = BK / 16;
// A stage: two boxes of 64 numbers of K from 64 rows of weight, then the two of x.
constexpr unsigned W_BYTES = BN * 128, X_BYTES = BM * 128, STAGE_BYTES = 2 * (W_BYTES + X_BYTES);

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

// Starts the copy of one box, from column k of row `row`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int k, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(k), "r"(row), "r"(barrier) : "memory");
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// d += 16 rows of weight · 8 rows of x, over 16 numbers of K.
__device__ __forceinline__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Where the 128-byte swizzle keeps a 16-byte chunk of a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
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
    // Each block begins elsewhere along K, and goes round.
    const int begin = int(blockIdx.x * unsigned(slabs) / gridDim.x);

    const auto fetch = [&](int slab) {
        const int stage = slab % STAGES;
        const unsigned to = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
        const int k = (begin + slab) % slabs * BK;
        expectBytes(barrier, STAGE_BYTES);
        copyBox(to, mapWeight, k, col0, barrier);
        copyBox(to + W_BYTES, mapWeight, k + 64, col0, barrier);
        copyBox(to + 2 * W_BYTES, mapX, k, row0, barrier);
        copyBox(to + 2 * W_BYTES + X_BYTES, mapX, k + 64, row0, barrier);
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

    float acc[4][2][4] = {};
    if (producer) {
        for (int slab = STAGES; slab < slabs; ++slab) {
            waitPhase(empty + 8 * (slab % STAGES), slab / STAGES % 2 ^ 1);
            fetch(slab);
        }
    } else if (warp < WARPS) {
        // Every warp takes 16 of a slab's numbers of K, for all rows.
        const int chunk = warp % 4 * 2;
        const unsigned weightRow = warp / 4 * W_BYTES + place(lane % 16, chunk + lane / 16);
        const unsigned xRow =
            2 * W_BYTES + warp / 4 * X_BYTES + place(lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2);
        for (int slab = 0; slab < slabs; ++slab) {
            const unsigned stage = ring + slab % STAGES * STAGE_BYTES;
            waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);
            unsigned w[4][4], a[4];
            loadMatrices(a, stage + xRow);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                loadMatrices(w[i], stage + weightRow + i * 16 * 128);
            __syncwarp();
            if (lane == 0)
                arrive(empty + 8 * (slab % STAGES));
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                multiply(acc[i][0], w[i][0], w[i][1], w[i][2], w[i][3], a[0], a[1]);
                multiply(acc[i][1], w[i][0], w[i][1], w[i][2], w[i][3], a[2], a[3]);
            }
        }
    }

    // The warps' sums meet in the ring, which has come to rest.
    __syncthreads();
    float(*parts)[BM][BN + 4] = reinterpret_cast<float(*)[BM][BN + 4]>(dynamicShared + (ring - base));
    if (warp < WARPS) {
        // A lane holds columns lane / 4 and the one 8 further of rows 2t and 2t + 1, and of the two rows 8 below.
#pragma unroll
        for (int i = 0; i < 32; ++i)
            parts[warp][8 * (i / 4 % 2) + lane % 4 * 2 + i % 2][16 * (i / 8) + lane / 4 + 8 * (i / 2 % 2)] =
                acc[i / 8][i / 4 % 2][i % 4];
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
