/*klineage
surface = "cuda"

[[tunable]]
name = "SPLIT"
default = 4
values = [2, 4]

[[tunable]]
name = "DEPTH"
default = 2
values = [1, 2, 3]

[[launch]]
kernel = "gemm"
grid = ["SPLIT * ceil_div(N, 64 * SPLIT)", "ceil_div(M, 16)"]
block = ["128 * SPLIT"]
cluster = ["SPLIT"]
shared = "16 * (ceil_div(K / 64, SPLIT) * 128 + 64) + 4 * SPLIT * 1024"
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// Attempt from K04: K is split among the blocks of a cluster, so that a block's part of x fits its shared
// memory: it is read from L2 once, and all that the loop asks of global memory is weight. A warp takes 16
// rows of weight and keeps the loads of the next DEPTH lines of 128 bytes under way while it multiplies the
// last. A block sends its sums to the block of the cluster that adds them up, through distributed memory.
// Needs K % 64 == 0.

#include <cuda_bf16.h>

constexpr int GROUPS = 4 * SPLIT; // of 16 columns, a warp each

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

__device__ __forceinline__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// acc += 16 rows of weight · 16 rows of x over 32 numbers of K. A lane brings 8 neighbouring numbers of two
// rows of each. The instruction wants pairs that lie 8 apart, but a sum does not care which k is called
// which, as long as both operands agree: words 0 and 1 make one step of 16, words 2 and 3 the next.
__device__ __forceinline__ void multiply32(float (&acc)[2][4], const Chunk (&w)[2], const Chunk (&x)[2])
{
#pragma unroll
    for (int step = 0; step < 4; step += 2)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            multiply(acc[i], w[0].words[step], w[1].words[step], w[0].words[step + 1], w[1].words[step + 1],
                     x[i].words[step], x[i].words[step + 1]);
}

__device__ __forceinline__ unsigned clusterRank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void arriveAtCluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void waitForCluster()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Stores to the same place of shared memory in block `rank` of the cluster.
__device__ __forceinline__ void storeRemote(unsigned to, unsigned rank, float value)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "st.shared::cluster.f32 [remote], %2;\n"
                 "}" :: "r"(to), "r"(rank), "f"(value) : "memory");
}

// Sends a warp's sums of 16 columns to the block that adds them up: part `from` of its slot.
__device__ __forceinline__ void sendSums(const float (&acc)[2][4], unsigned slots, int slot, unsigned to,
                                         unsigned from)
{
    const int lane = threadIdx.x % 32;
    const unsigned part = slots + (slot * SPLIT + from) * 1024;
    // A lane holds columns lane / 4 and the one 8 further of rows 2t and 2t + 1, and of the two rows 8 below.
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = 8 * tile + lane % 4 * 2 + i % 2, col = lane / 4 + 8 * (i / 2);
            storeRemote(part + (row * 16 + col) * 4, to, acc[tile][i]);
        }
}

// Adds up the parts of this block's slots, two columns a thread, and stores them in y.
__device__ __forceinline__ void storeSlots(const float *slots, __nv_bfloat16 *y, int row0, int col0, unsigned rank,
                                           int M, int N)
{
    for (int i = threadIdx.x; i < GROUPS / SPLIT * 128; i += blockDim.x) {
        const int slot = i / 128, row = i / 8 % 16, pair = i % 8;
        const float *part = slots + slot * SPLIT * 256 + row * 16 + 2 * pair;
        float2 sum = {};
#pragma unroll
        for (int from = 0; from < SPLIT; ++from) {
            const float2 two = *reinterpret_cast<const float2 *>(part + 256 * from);
            sum.x += two.x;
            sum.y += two.y;
        }
        const int col = col0 + (slot * SPLIT + rank) * 16 + 2 * pair;
        if (row0 + row < M && col < N)
            *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row0 + row) * N + col) =
                __floats2bfloat162_rn(sum.x, sum.y);
    }
}

// 16 bytes that nobody reads a second time: they need no place in L1.
__device__ __forceinline__ Chunk loadOnce(const Chunk *from)
{
    Chunk chunk;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(chunk.words[0]), "=r"(chunk.words[1]), "=r"(chunk.words[2]), "=r"(chunk.words[3]) : "l"(from));
    return chunk;
}

extern "C" __global__ __launch_bounds__(128 * SPLIT, 1) void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y,
                                                          int M, int N, int K)
{
    extern __shared__ Chunk dynamicShared[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, t = lane % 4;
    const unsigned rank = clusterRank();
    const int col0 = blockIdx.x / SPLIT * 64 * SPLIT, row0 = blockIdx.y * 16;
    const int chunks = K / 8;
    // This block's part of K, in lines of 8 chunks; the last one's may be shorter or empty.
    const int slice = (K / 64 + SPLIT - 1) / SPLIT;
    const int first = min(int(rank) * slice, K / 64);
    const int lines = min(slice, K / 64 - first);
    // Rows of x lie half a line of banks apart: two rows by four chunks are read without a conflict.
    const int pitch = 8 * slice + 4;
    Chunk *const xs = dynamicShared;
    float *const slots = reinterpret_cast<float *>(xs + 16 * pitch);
    arriveAtCluster();

    // Rows past the last repeat it; they are not stored.
    const Chunk *ws[2];
    for (int half = 0; half < 2; ++half)
        ws[half] = weight + size_t(min(col0 + 16 * warp + group + 8 * half, N - 1)) * chunks + 8 * first + t;

    using Lines = Chunk[DEPTH][2][2];
    const auto load = [&](Lines &to, int line) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i)
            if (line + i < lines)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    to[i][j / 2][j % 2] = loadOnce(ws[j % 2] + 8 * (line + i) + 4 * (j / 2));
    };
    float acc[2][4] = {};
    const auto use = [&](const Lines &from, int line) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i)
            if (line + i < lines)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const Chunk *at = xs + group * pitch + 8 * (line + i) + 4 * j + t;
                    const Chunk a[2] = {at[0], at[8 * pitch]};
                    multiply32(acc, from[i][j], a);
                }
    };

    Lines even, odd;
    load(even, 0);
    for (int i = threadIdx.x; i < 16 * 8 * lines; i += 128 * SPLIT) {
        const int row = i / (8 * lines), chunk = i % (8 * lines);
        xs[row * pitch + chunk] = x[size_t(min(row0 + row, M - 1)) * chunks + 8 * first + chunk];
    }
    __syncthreads();
    for (int line = 0; line < lines; line += 2 * DEPTH) {
        load(odd, line + DEPTH);
        use(even, line);
        load(even, line + 2 * DEPTH);
        use(odd, line + DEPTH);
    }

    waitForCluster(); // the others have begun, so that their shared memory is there
    sendSums(acc, unsigned(__cvta_generic_to_shared(slots)), warp / SPLIT, warp % SPLIT, rank);
    arriveAtCluster();
    waitForCluster(); // everyone's parts have arrived
    storeSlots(slots, y, row0, col0, rank, M, N);
}
