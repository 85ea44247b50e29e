/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 5
values = [3, 4, 5]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 64)", "ceil_div(M, 16)"]
block = ["288"]
shared = "STAGES * (64 + 16) * (256 * 2 + 16)"
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// No tensor maps: a warp asks for every row's piece of a slab by itself, 512 bytes each, with addresses of its
// own. The first bytes are under way as soon as the block has begun, where a box waits for its descriptor to
// be fetched from memory first. Rows are padded to lie in different banks.
// Needs K % 64 == 0.

#include <cuda_bf16.h>

constexpr int BN = 64, BM = 16, BK = 256;
constexpr int WARPS = BK / 32;
// Rows lie 16 bytes more than a multiple of 128 apart: ldmatrix reads 8 of them without a conflict.
constexpr unsigned PITCH = BK * 2 + 16, STAGE_BYTES = (BN + BM) * PITCH;

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

// Starts the copy of a row's piece; the length is a multiple of 16 bytes.
__device__ __forceinline__ void copyPiece(unsigned to, const __nv_bfloat16 *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
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

extern "C" __global__ __launch_bounds__(32 * (WARPS + 1), 1) void gemm(const __nv_bfloat16 *x,
                                                                       const __nv_bfloat16 *weight,
                                                                       __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(16) unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];
    const unsigned ring = unsigned(__cvta_generic_to_shared(dynamicShared));
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int col0 = blockIdx.x * BN, row0 = blockIdx.y * BM;
    const int slabs = (K + BK - 1) / BK;
    const bool producer = warp == WARPS;

    // A lane of the producer copies two rows of weight, and half of the lanes one of x. Rows past the last
    // repeat it; they are not stored.
    const __nv_bfloat16 *ws[2], *xs;
    for (int i = 0; i < 2; ++i)
        ws[i] = weight + size_t(min(col0 + lane + 32 * i, N - 1)) * K;
    xs = x + size_t(min(row0 + lane % BM, M - 1)) * K;
    const auto fetch = [&](int slab) {
        const int stage = slab % STAGES, k = slab * BK;
        const unsigned bytes = (K - k < BK ? K - k : BK) * 2;
        const unsigned to = ring + stage * STAGE_BYTES + lane * PITCH, barrier = full + 8 * stage;
        if (lane == 0)
            expectBytes(barrier, (BN + BM) * bytes);
        __syncwarp();
        copyPiece(to, ws[0] + k, bytes, barrier);
        copyPiece(to + 32 * PITCH, ws[1] + k, bytes, barrier);
        if (lane < BM)
            copyPiece(to + BN * PITCH, xs + k, bytes, barrier);
    };
    if (producer) {
        if (lane == 0) {
            for (int stage = 0; stage < STAGES; ++stage) {
                initBarrier(full + 8 * stage, 1);
                initBarrier(empty + 8 * stage, WARPS);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
        }
        __syncwarp();
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
    } else {
        // Every warp takes 32 of a slab's numbers of K, for all rows.
        const unsigned weightRow = lane % 16 * PITCH + warp * 64 + lane / 16 * 16;
        const unsigned xRow = (BN + lane / 16 * 8 + lane % 8) * PITCH + warp * 64 + lane / 8 % 2 * 16;
        for (int slab = 0; slab < slabs; ++slab) {
            const unsigned stage = ring + slab % STAGES * STAGE_BYTES;
            waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);
            if (slab * BK + warp * 32 < K)
#pragma unroll
                for (int step = 0; step < 2; ++step) {
                    unsigned w[4], a[4];
                    loadMatrices(a, stage + xRow + 32 * step);
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        loadMatrices(w, stage + weightRow + 32 * step + i * 16 * PITCH);
                        multiply(acc[i][0], w[0], w[1], w[2], w[3], a[0], a[1]);
                        multiply(acc[i][1], w[0], w[1], w[2], w[3], a[2], a[3]);
                    }
                }
            __syncwarp();
            if (lane == 0)
                arrive(empty + 8 * (slab % STAGES));
        }
    }

    // The warps' sums meet in the ring, which has come to rest.
    __syncthreads();
    float(*parts)[BM][BN + 4] = reinterpret_cast<float(*)[BM][BN + 4]>(dynamicShared);
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
