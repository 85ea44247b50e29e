/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3, 4]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
shared = "STAGES * (128 + 128) * 64 * 2 + 1024"
args = ["tm_x", "tm_weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// 2 × 4 warps, each with a 64 × 32 patch of y made of 16 × 8 mma.sync tiles. Slabs of x and weight are
// copied by TMA: thread 0 asks for two boxes, and an mbarrier for each stage of the ring counts their bytes.
// The engine fills with zeros what lies past the edges of the matrices.
// Needs K % 8 == 0 for pitches of whole 16 bytes, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int WM = 64, WN = 32;
constexpr int TM = WM / 16, TN = WN / 8;
constexpr int CHUNKS = BK / 8;
constexpr unsigned X_BYTES = BM * BK * 2;
constexpr unsigned STAGE_BYTES = (BM + BN) * BK * 2; // a multiple of 1024

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Row r keeps chunk c at place c ^ (r % 8), as the engine's 128-byte swizzle does: eight neighbouring rows
// cover all 32 banks. In bytes from the start of the operand's tile.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return unsigned(row * CHUNKS + (chunk ^ (row % 8))) * 16u;
}

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
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two neighbouring numbers of bias; zeros past the edge.
__device__ __forceinline__ __nv_bfloat162 biasPair(const __nv_bfloat16 *bias, int col, int N)
{
    return col < N ? *reinterpret_cast<const __nv_bfloat162 *>(bias + col) : __nv_bfloat162{};
}

extern "C" __global__ __launch_bounds__(256, 2) void linear(const __grid_constant__ TensorMap mapX,
                                                            const __grid_constant__ TensorMap mapWeight,
                                                            const __nv_bfloat16 *bias, __nv_bfloat16 *y,
                                                            int M, int N, int K)
{
    extern __shared__ Chunk dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[STAGES];

    const int thread = threadIdx.x, lane = thread % 32;
    const int warpRow = thread / 128 * WM, warpCol = thread / 32 % 4 * WN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    // A swizzled box starts at a multiple of 1024 bytes.
    const unsigned ring = (sharedAddress(dynamicShared) + 1023u) & ~1023u;
    const unsigned full = sharedAddress(barriers);

    // For thread 0 only.
    const auto fetch = [&](int slab) {
        if (slab < slabs) {
            const unsigned stage = unsigned(slab) % STAGES;
            const unsigned to = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
            expectBytes(barrier, STAGE_BYTES); // both boxes; clipped ones count at full size
            copyBox(to, mapX, slab * BK, row0, barrier);
            copyBox(to + X_BYTES, mapWeight, slab * BK, col0, barrier);
        }
    };
    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            initBarrier(full + 8 * stage, 1); // one arrival: that of expectBytes
        // For the engine to see them. The others see them after the first barrier of the loop.
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int slab = 0; slab < STAGES - 1; ++slab)
            fetch(slab);
    }

    float acc[TM][TN][4] = {};
    for (int slab = 0; slab < slabs; ++slab) {
        // Everyone is done with the slab before this one, so that its stage may be filled.
        __syncthreads();
        if (thread == 0)
            fetch(slab + STAGES - 1);

        // Each thread waits for the bytes of this slab itself; the parity flips when the ring wraps.
        const unsigned stage = unsigned(slab) % STAGES;
        waitPhase(full + 8 * stage, unsigned(slab) / STAGES % 2);
        __syncwarp();

        const unsigned xs = ring + stage * STAGE_BYTES;
        const unsigned ws = xs + X_BYTES;
#pragma unroll
        for (int c = 0; c < CHUNKS; c += 2) {
            unsigned a[TM][4], b[TN / 2][4];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                loadMatrices(a[i], xs + place(warpRow + 16 * i + lane % 16, c + lane / 16));
#pragma unroll
            for (int j = 0; j < TN / 2; ++j)
                loadMatrices(b[j], ws + place(warpCol + 16 * j + lane / 16 * 8 + lane % 8, c + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    multiply(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }

    __nv_bfloat162 added[TN];
#pragma unroll
    for (int j = 0; j < TN; ++j)
        added[j] = biasPair(bias, col0 + warpCol + 8 * j + lane % 4 * 2, N);

    // In a 16 × 8 tile a lane holds two neighbouring numbers of row lane / 4, and two of the row 8 below.
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = row0 + warpRow + 16 * i + 8 * half + lane / 4;
                const int col = col0 + warpCol + 8 * j + lane % 4 * 2;
                const float2 b = __bfloat1622float2(added[j]);
                if (row < M && col < N)
                    *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                        __floats2bfloat162_rn(acc[i][j][2 * half] + b.x, acc[i][j][2 * half + 1] + b.y);
            }
}
