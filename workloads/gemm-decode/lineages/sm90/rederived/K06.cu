/*klineage
surface = "cuda"

[[tunable]]
name = "WARPS"
default = 8
values = [4, 8, 16]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [8, 64]
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
grid = ["2 * ceil_div(N, 128)", "ceil_div(M, 16)"]
block = ["32 * WARPS + 32"]
cluster = [2]
shared = "222 * 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// A block takes 64 rows of weight and 16 of x. One thread keeps a ring of 220 KB filled with slabs of both, by TMA;
// WARPS warps split each slab along K, 16 numbers a warp, and add up their parts at the end.
// Two neighbouring blocks share x: each brings 8 rows of it for both.
// Needs K % 64 == 0 and N % 4 == 0.

#include <cuda_bf16.h>

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

struct alignas(8) Four {
    __nv_bfloat162 low, high;
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

__device__ __forceinline__ void prefetchMap(const TensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<unsigned long long>(&map)) : "memory");
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// The address, in the cluster, of what lies at `address` in the block of that rank.
__device__ __forceinline__ unsigned inBlock(unsigned address, unsigned rank)
{
    unsigned mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

__device__ __forceinline__ void arriveInCluster(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
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

__device__ __forceinline__ void clusterArrive()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void clusterWait()
{
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// The weight of a slab, which nobody reads a second time. What lies past the last row or the last number of a row
// arrives as zeros and counts as bytes like the rest.
__device__ __forceinline__ void loadWeight(unsigned slab, const TensorMap &map, int k, int row, unsigned barrier,
                                           unsigned long long policy)
{
#pragma unroll
    for (int box = 0; box < BOXES; ++box)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                     "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(slab + box * BOX_BYTES),
                     "l"(reinterpret_cast<unsigned long long>(&map)), "r"(k + 64 * box), "r"(row), "r"(barrier),
                     "l"(policy)
                     : "memory");
}

// 8 rows of x of a slab, to the same place of both blocks.
__device__ __forceinline__ void loadX(unsigned slab, const TensorMap &map, int k, int row, unsigned barrier)
{
    const unsigned short both = 3;
#pragma unroll
    for (int box = 0; box < BOXES; ++box)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(slab + box * BOX_BYTES),
                     "l"(reinterpret_cast<unsigned long long>(&map)), "r"(k + 64 * box), "r"(row), "r"(barrier),
                     "h"(both)
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
    const int rank = blockIdx.x % 2;
    const int slabs = (K + SLAB_K - 1) / SLAB_K;
    // Each pair of blocks begins elsewhere and goes around, so that they do not all want the same lines at once.
    int k = int(blockIdx.x / 2) % slabs * SLAB_K;

    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));

    if (threadIdx.x == 0) {
        prefetchMap(weightMap);
        prefetchMap(xMap);
    }
    if (threadIdx.x == 32 * WARPS) {
#pragma unroll
        for (int slot = 0; slot < STAGES; ++slot) {
            initBarrier(full + 8 * slot, 1);
            initBarrier(empty + 8 * slot, 2 * WARPS); // the warps of both blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        // The first slab's weight need not wait for the other block; x does.
        arriveExpecting(full, SLAB_BYTES);
        loadWeight(ring, weightMap, k, col0, full, policy);
    }
    __syncwarp();
    clusterArrive();
    clusterWait();

    float acc[4][2][4] = {}; // [16 rows of weight][8 rows of x]
    int slot = 0;
    unsigned phase = 0;
    if (warp == WARPS) {
        if (lane == 0)
            for (int i = 0; i < slabs; ++i) {
                const unsigned barrier = full + 8 * slot, slab = ring + slot * SLAB_BYTES;
                wait(empty + 8 * slot, phase ^ 1); // the first lap does not wait
                if (i > 0) {
                    arriveExpecting(barrier, SLAB_BYTES);
                    loadWeight(slab, weightMap, k, col0, barrier, policy);
                }
                loadX(slab + (64 + 8 * rank) * 128, xMap, k, row0 + 8 * rank, barrier);
                k += SLAB_K;
                if (k >= K)
                    k = 0;
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
        // Lanes 0 and 1 tell the one block and the other that a slot is read.
        const unsigned emptyThere = inBlock(empty, lane % 2);
        for (int i = 0; i < slabs; ++i) {
            wait(full + 8 * slot, phase);
            const unsigned slab = slot * SLAB_BYTES;
            unsigned b[4], a[4][4];
            loadMatrices(b, xs + slab);
#pragma unroll
            for (int j = 0; j < 4; ++j)
                loadMatrices(a[j], ws + slab + 16 * 128 * j);
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    multiply(acc[j][half], a[j][0], a[j][1], a[j][2], a[j][3], b[2 * half], b[2 * half + 1]);
            __syncwarp();
            if (lane < 2 && i + STAGES < slabs) // nobody waits for the last lap
                arriveInCluster(emptyThere + 8 * slot);
            if (++slot == STAGES) {
                slot = 0;
                phase ^= 1;
            }
        }
    }

    // Every slab has come and has been read: the ring is free for the sums.
    __syncthreads();
    clusterArrive();
    // A lane holds columns group and group + 8 of rows 2t and 2t + 1, and of the two rows 8 below.
    if (warp < WARPS)
#pragma unroll
        for (int i = 0; i < 32; ++i)
            parts[warp][8 * (i / 4 % 2) + 2 * t + i % 2][16 * (i / 8) + group + 8 * (i / 2 % 2)] =
                acc[i / 8][i / 4 % 2][i % 4];
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 32 * WARPS + 32) {
        const int row = i / 16, col = i % 16 * 4;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int part = 0; part < WARPS; ++part) {
            const float4 more = *reinterpret_cast<const float4 *>(&parts[part][row][col]);
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        if (row0 + row < M && col0 + col < N)
            *reinterpret_cast<Four *>(y + size_t(row0 + row) * N + col0 + col) =
                Four{__floats2bfloat162_rn(sum.x, sum.y), __floats2bfloat162_rn(sum.z, sum.w)};
    }
    // What this block has sent has reached the other one before this one ends.
    __syncwarp();
    clusterWait();
}
