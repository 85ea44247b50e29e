/*klineage
surface = "cuda"

[[tunable]]
name = "WARPS"
default = 8
values = [4, 8, 16]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [16, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [64, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 64)", "ceil_div(M, 16)"]
block = ["32 * WARPS + 32"]
shared = "222 * 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// A block takes 64 rows of weight and 16 of x. One thread keeps a ring of 220 KB filled with slabs of both, by TMA;
// WARPS warps split each slab along K, 16 numbers a warp, and add up their parts at the end.
// Needs K % 64 == 0.

#include <cuda_bf16.h>

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

// A box is 64 numbers of K, 128 bytes a row: 64 rows of weight, then 16 of x. 16 bytes at place c of row r lie at
// place c ^ (r % 8).
constexpr int BOX_BYTES = (64 + 16) * 128;
constexpr int BOXES = WARPS / 4;      // a slab
constexpr int STAGES = 22 / BOXES;    // slabs in the ring
constexpr int SLAB_BYTES = BOXES * BOX_BYTES;
constexpr int SLAB_K = BOXES * 64;

__device__ __forceinline__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void arriveExpecting(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void wait(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

// Rows past the last arrive as zeros and count as bytes like the others.
__device__ __forceinline__ void loadBox(unsigned to, const TensorMap &map, int k, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(reinterpret_cast<unsigned long long>(&map)), "r"(k), "r"(row), "r"(barrier)
                 : "memory");
}

extern "C" __global__ __launch_bounds__(32 * WARPS + 32) void gemm(const __grid_constant__ TensorMap xMap,
                                                                   const __grid_constant__ TensorMap weightMap,
                                                                   __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned start = unsigned(__cvta_generic_to_shared(memory));
    const unsigned ring = (start + 1023u) & ~1023u;
    const unsigned full = ring + STAGES * SLAB_BYTES, empty = full + 8 * STAGES;
    // 68: the lanes of a warp write to banks of their own.
    float (*const parts)[16][68] = reinterpret_cast<float (*)[16][68]>(memory + (ring - start));

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, t = lane % 4;
    const int col0 = blockIdx.x * 64, row0 = blockIdx.y * 16;

    if (threadIdx.x == 32 * WARPS) {
        for (int slot = 0; slot < STAGES; ++slot) {
            initBarrier(full + 8 * slot, 1);
            initBarrier(empty + 8 * slot, WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    float acc[4][2][4] = {}; // [16 rows of weight][8 rows of x]
    int slot = 0;
    unsigned phase = 0;
    if (warp == WARPS) {
        if (lane == 0)
            for (int k = 0; k < K; k += SLAB_K) {
                wait(empty + 8 * slot, phase ^ 1); // the first lap does not wait
                const int boxes = min(BOXES, (K - k) / 64);
                const unsigned barrier = full + 8 * slot, slab = ring + slot * SLAB_BYTES;
                arriveExpecting(barrier, boxes * BOX_BYTES);
#pragma unroll
                for (int box = 0; box < BOXES; ++box)
                    if (box < boxes) {
                        loadBox(slab + box * BOX_BYTES, weightMap, k + 64 * box, col0, barrier);
                        loadBox(slab + box * BOX_BYTES + 64 * 128, xMap, k + 64 * box, row0, barrier);
                    }
                if (++slot == STAGES) {
                    slot = 0;
                    phase ^= 1;
                }
            }
        __syncwarp();
    } else {
        // Where this lane's row of a matrix begins. Weight: rows 0 to 7 and 8 to 15 of the first 8 numbers, then of
        // the other 8. x: both eights of numbers of rows 0 to 7, then of rows 8 to 15.
        const int place = 2 * (warp % 4), swizzle = lane % 8;
        const unsigned box = ring + warp / 4 * BOX_BYTES;
        const unsigned ws = box + lane % 16 * 128 + ((place + lane / 16) ^ swizzle) * 16;
        const unsigned xs = box + (64 + lane / 16 * 8 + lane % 8) * 128 + ((place + lane / 8 % 2) ^ swizzle) * 16;
        for (int k = 0; k < K; k += SLAB_K) {
            wait(full + 8 * slot, phase);
            if (k + 16 * warp < K) { // the last slab may lack boxes
                const unsigned slab = slot * SLAB_BYTES;
                unsigned b[4], a[4][4];
                loadMatrices(b, xs + slab);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    loadMatrices(a[i], ws + slab + 16 * 128 * i);
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j)
                        multiply(acc[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[2 * j], b[2 * j + 1]);
            }
            __syncwarp();
            if (lane == 0)
                arrive(empty + 8 * slot);
            if (++slot == STAGES) {
                slot = 0;
                phase ^= 1;
            }
        }
    }

    // Every slab has come and has been read: the ring is free for the sums.
    __syncthreads();
    // A lane holds columns group and group + 8 of rows 2t and 2t + 1, and of the two rows 8 below.
    if (warp < WARPS)
#pragma unroll
        for (int i = 0; i < 32; ++i)
            parts[warp][8 * (i / 4 % 2) + 2 * t + i % 2][16 * (i / 8) + group + 8 * (i / 2 % 2)] =
                acc[i / 8][i / 4 % 2][i % 4];
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += 32 * WARPS + 32) {
        const int row = i / 64, col = i % 64;
        float sum = 0.0f;
#pragma unroll
        for (int part = 0; part < WARPS; ++part)
            sum += parts[part][row][col];
        if (row0 + row < M && col0 + col < N)
            y[size_t(row0 + row) * N + col0 + col] = __float2bfloat16(sum);
    }
}
