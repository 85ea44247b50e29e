/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
when = "N <= 128"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["a", "b", "bias", "y", "int M", "int N", "int K"]

[[launch]]
kernel = "multiply_wide"
when = "N > 128"
grid = ["2 * min(ceil_div(sm_count, 2), ceil_div(N, 256) * ceil_div(M, 256))"]
cluster = ["2"]
block = ["384"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "bias", "y", "int M", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [64, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block of eight warps makes 128×128 of y with mma.sync, 64×32 a warp, while cp.async fills the other of two
// buffers. That is for up to 128 columns; multiply_wide, below, makes wider outputs with wgmma and TMA.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int DEPTH = 32;           // of K a step
constexpr int PITCH_A = DEPTH + 8;  // 80 bytes: eight rows of ldmatrix fall into different banks
constexpr int PITCH_B = TILE_N + 8; // 272 bytes: likewise
constexpr int THREADS = 256;

typedef __nv_bfloat16 TileA[TILE_M][PITCH_A]; // [row][k]
typedef __nv_bfloat16 TileB[DEPTH][PITCH_B];  // [k][column]

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Sixteen bytes to shared memory; zeros, and no read of global memory, where `inside` is false.
__device__ __forceinline__ void copy_async(void *to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" : : "r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Starts the copies of one step. N and K are multiples of 8 (the workload says so): 8 neighbours are aligned, and inside or
// outside together. Where they are outside, the address is that of the tensor, which is valid and not read.
__device__ __forceinline__ void start_copies(TileA &tile_a, TileB &tile_b, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int row0,
                                             int col0, int k0, int M, int N, int K)
{
#pragma unroll
    for (int i = 0; i < TILE_M * DEPTH / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x);
        const int r = c / (DEPTH / 8);
        const int k = c % (DEPTH / 8) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        copy_async(&tile_a[r][k], inside ? a + size_t(row0 + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < DEPTH * TILE_N / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x);
        const int k = c / (TILE_N / 8);
        const int n = c % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        copy_async(&tile_b[k][n], inside ? b + size_t(k0 + k) * N + col0 + n : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(256)
multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) TileA tile_a[2]; // 20480 bytes
    __shared__ __align__(16) TileB tile_b[2]; // 17408 bytes

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = (warp / 4) * 64;
    const int warp_col = (warp % 4) * 32;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int steps = (K + DEPTH - 1) / DEPTH;
    start_copies(tile_a[0], tile_b[0], a, b, row0, col0, 0, M, N, K);
    asm volatile("cp.async.commit_group;\n" : : : "memory");

    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        if (step + 1 < steps)
            start_copies(tile_a[1 - now], tile_b[1 - now], a, b, row0, col0, (step + 1) * DEPTH, M, N, K);
        asm volatile("cp.async.commit_group;\n" : : : "memory"); // empty after the last step, so that the count below holds
        asm volatile("cp.async.wait_group 1;\n" : : : "memory");
        __syncthreads();

#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned fa[4][4]; // 16 rows × 16 of K each
            unsigned fb[2][4]; // 16 of K × 16 columns each: {0, 1} the left 8 columns, {2, 3} the right 8
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(fa[i], &tile_a[now][warp_row + i * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], &tile_b[now][k + lane % 16][warp_col + j * 16 + lane / 16 * 8]);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads(); // the next step's copies overwrite what was just read
    }

#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + warp_row + i * 16 + lane / 4;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0] + add0, acc[i][j][1] + add1);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2] + add0, acc[i][j][3] + add1);
        }
    }
}

// Wider outputs: two warpgroups multiply 64×256 each from a ring of slabs, which one thread of a third warpgroup fills by TMA: a as
// 128 rows of 64 of K, b as four boxes of 64 of K × 64 columns, all in rows of 128 swizzled bytes. The two blocks of a cluster
// make tiles one above the other: each copies its own slab of a, and two of the boxes of b for both.
constexpr int WIDE_N = 256, SLAB = 64, STAGES = 4; // columns a block, of K a step, slabs in the ring
constexpr int BYTES_A = TILE_M * SLAB * 2, BYTES = BYTES_A + SLAB * WIDE_N * 2; // 16384 of 49152 a stage
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred ended;\nmbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\nselp.u32 %0, 1, 0, ended;\n}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap &map, int x, int y, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n"
                 : : "r"(to), "l"(&map), "r"(x), "r"(y), "r"(barrier) : "memory");
}
// The same to both blocks of the cluster, at the same place in the shared memory of each, counted by the barrier of each.
__device__ __forceinline__ void copy_box_to_both(unsigned to, const TensorMap &map, int x, int y, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;\n"
                 : : "r"(to), "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(static_cast<unsigned short>(3)) : "memory");
}
// All threads of both blocks.
__device__ __forceinline__ void meet_cluster()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" : : : "memory");
}
// Rows of 128 swizzled bytes, 1024 bytes from eight rows to the next eight; `leading` bytes from 64 columns of b to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading)
{
    return (address & 0x3ffff) >> 4 | leading >> 4 << 16 | 64ull << 32 | 1ull << 62;
}
#define SUMS2(d, j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]), "+f"(d[j + 1][0]), "+f"(d[j + 1][1]), "+f"(d[j + 1][2]), "+f"(d[j + 1][3])
#define SUMS8(d, j) SUMS2(d, j), SUMS2(d, j + 2), SUMS2(d, j + 4), SUMS2(d, j + 6)
#define SUMS(d) SUMS8(d, 0), SUMS8(d, 8), SUMS8(d, 16), SUMS8(d, 24)
// d += 64×16 of a · 16×256 of b, whose columns are contiguous (the 1 at the end); by a warpgroup, in the background.
__device__ __forceinline__ void multiply_sixteen(float (&d)[32][4], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 1, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
                 "}, %128, %129, accumulate, 1, 1, 0, 1;\n}\n"
                 : SUMS(d) : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(384, 1)
multiply_wide(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __nv_bfloat16 *bias,
              __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ unsigned char slabs[];
    __shared__ unsigned long long barriers[2 * STAGES]; // of full stages, then of empty ones
    const unsigned ring = (shared_address(slabs) + 1023) & ~1023u, full = shared_address(barriers);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int rank = blockIdx.x % 2, first = blockIdx.x / 2, clusters = gridDim.x / 2; // of a pair of tiles, the block makes one
    const int columns = (N + WIDE_N - 1) / WIDE_N, pairs = columns * ((M + 2 * TILE_M - 1) / (2 * TILE_M));
    const int steps = (K + SLAB - 1) / SLAB;
    unsigned count = 0; // slabs so far, over all tiles of the block: says the stage and the parity
    if (threadIdx.x < 2 * STAGES) // one thread fills a stage, eight warps of each of the two blocks empty it
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;\n"
                     : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < STAGES ? 1 : 16) : "memory");
    meet_cluster(); // the other block's barriers are there too
    if (warp >= 8) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        for (int pair = first; threadIdx.x == 256 && pair < pairs; pair += clusters)
            for (int step = 0; step < steps; ++step, ++count) {
                const unsigned at = ring + count % STAGES * BYTES, barrier = full + count % STAGES * 8;
                wait_phase(barrier + 8 * STAGES, (count / STAGES + 1) % 2); // the first round does not wait
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(barrier), "r"(BYTES) : "memory");
                copy_box(at, tm_a, step * SLAB, (pair / columns * 2 + rank) * TILE_M, barrier);
                for (int c = 2 * rank; c < 2 * rank + 2; ++c) // the other two come from the other block
                    copy_box_to_both(at + BYTES_A + c * 8192, tm_b, pair % columns * WIDE_N + c * 64, step * SLAB, barrier);
            }
        meet_cluster();
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
    for (int pair = first; pair < pairs; pair += clusters) {
        const int row0 = (pair / columns * 2 + rank) * TILE_M + warp * 16 + lane / 4, col0 = pair % columns * WIDE_N + lane % 4 * 2;
        float acc[32][4]; // of 8 columns each, as mma.sync lays them out; the sums begin with the bias
#pragma unroll
        for (int j = 0; j < 32; ++j) {
            acc[j][0] = acc[j][2] = __bfloat162float(bias[min(col0 + j * 8, N - 2)]);
            acc[j][1] = acc[j][3] = __bfloat162float(bias[min(col0 + j * 8, N - 2) + 1]);
        }
        for (int step = 0; step < steps; ++step, ++count) {
            const unsigned at = ring + count % STAGES * BYTES;
            wait_phase(full + count % STAGES * 8, count / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
#pragma unroll
            for (int k = 0; k < SLAB / 16; ++k) // 32 bytes further in the rows of a, 16 rows further in b
                multiply_sixteen(acc, describe(at + warp / 4 * 8192 + k * 32, 16), describe(at + BYTES_A + k * 2048, 8192));
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory");
            if (count > 0 && lane < 2) // the products of the slab before have ended: both blocks may fill its stage again
                asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                             "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}\n"
                             : : "r"(full + 8 * STAGES + (count - 1) % STAGES * 8), "r"(lane) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" : SUMS(acc) : : "memory");
#pragma unroll
        for (int e = 0; e < 128; e += 2) {
            const int row = row0 + e / 2 % 2 * 8, col = col0 + e / 4 * 8;
            if (row < M && col < N)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) = __floats2bfloat162_rn(acc[e / 4][e % 4], acc[e / 4][e % 4 + 1]);
        }
    }
    meet_cluster(); // neither block leaves while the other may still arrive at its barriers
}
