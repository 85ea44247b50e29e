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
fill = "zero"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
shared = "STAGES * ((128 + 128) * 64 * 2 + 8)"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// The products move to the tensor cores: 2 × 4 warps, each with a 64 × 32 patch of y made of 16 × 8
// mma.sync tiles. ldmatrix hands out fragments straight from the bf16 chunks in shared memory (both
// operands are K-major, so neither needs .trans), and nothing is unpacked to fp32 any more.
// One thread has TMA copy whole slabs; an mbarrier a stage counts the bytes that have landed.
// Needs K % 8 == 0 for the tensor maps, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int WM = 64, WN = 32;
constexpr int TM = WM / 16, TN = WN / 8;
constexpr int CHUNKS = BK / 8;
constexpr int STAGE_CHUNKS = (BM + BN) * CHUNKS;

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

// Row r keeps chunk c at place c ^ (r % 8): eight neighbouring rows cover all 32 banks.
// This is TMA's 128-byte swizzle, for slabs that begin at multiples of 1024 bytes.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Each phase of the barrier takes one arrival and the bytes announced with it.
__device__ __forceinline__ void initBarrier(unsigned long long *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(sharedAddress(barrier)) : "memory");
}

// Makes fresh barriers known to TMA.
__device__ __forceinline__ void publishBarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void expectBytes(unsigned long long *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(sharedAddress(barrier)), "r"(bytes) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned long long *barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done) : "r"(sharedAddress(barrier)), "r"(parity) : "memory");
    } while (!done);
}

// Starts the copy of BM (= BN) rows of BK numbers, from row0 and k0 of a matrix. What lies outside the
// matrix is filled with zeros, and counts as landed too.
__device__ __forceinline__ void copySlab(Chunk *to, const TensorMap *map, int row0, int k0,
                                         unsigned long long *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(sharedAddress(to)), "l"(map), "r"(k0), "r"(row0), "r"(sharedAddress(barrier))
                 : "memory");
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], const Chunk *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const __grid_constant__ TensorMap xMap,
                                                          const __grid_constant__ TensorMap weightMap,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(1024) Chunk ring[];
    // Behind the ring, a barrier a stage: its phase ends when both slabs of the stage have landed.
    unsigned long long *const landed = reinterpret_cast<unsigned long long *>(ring + STAGES * STAGE_CHUNKS);

    const int thread = threadIdx.x, lane = thread % 32;
    const int warpRow = thread / 128 * WM, warpCol = thread / 32 % 4 * WN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    const TensorMap *const xFrom = &xMap;
    const TensorMap *const weightFrom = &weightMap;

    // For one thread.
    const auto fetch = [&](int slab) {
        if (slab < slabs) {
            Chunk *stage = ring + slab % STAGES * STAGE_CHUNKS;
            unsigned long long *barrier = landed + slab % STAGES;
            expectBytes(barrier, STAGE_CHUNKS * sizeof(Chunk));
            copySlab(stage, xFrom, row0, slab * BK, barrier);
            copySlab(stage + BM * CHUNKS, weightFrom, col0, slab * BK, barrier);
        }
    };
    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            initBarrier(landed + stage);
        publishBarriers();
        for (int slab = 0; slab < STAGES - 1; ++slab)
            fetch(slab);
    }

    float acc[TM][TN][4] = {};
    for (int slab = 0; slab < slabs; ++slab) {
        // Everyone is done with the slab before this one (and, at first, sees the barriers set up).
        __syncthreads();
        if (thread == 0)
            fetch(slab + STAGES - 1);
        waitPhase(landed + slab % STAGES, slab / STAGES % 2);

        const Chunk *xs = ring + slab % STAGES * STAGE_CHUNKS;
        const Chunk *ws = xs + BM * CHUNKS;
#pragma unroll
        for (int c = 0; c < CHUNKS; c += 2) {
            unsigned a[TM][4], b[TN / 2][4];
            for (int i = 0; i < TM; ++i)
                loadMatrices(a[i], xs + place(warpRow + 16 * i + lane % 16, c + lane / 16));
            for (int j = 0; j < TN / 2; ++j)
                loadMatrices(b[j], ws + place(warpCol + 16 * j + lane / 16 * 8 + lane % 8, c + lane / 8 % 2));
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    multiply(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }

    // In a 16 × 8 tile a lane holds two neighbouring numbers of row lane / 4, and two of the row 8 below.
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j)
            for (int half = 0; half < 2; ++half) {
                const int row = row0 + warpRow + 16 * i + 8 * half + lane / 4;
                const int col = col0 + warpCol + 8 * j + lane % 4 * 2;
                if (row < M && col < N)
                    *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                        __floats2bfloat162_rn(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
            }
}
