/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
when = "min(2 * M, N) < 256"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["a", "b", "bias", "y", "int M", "int N", "int K"]

[[launch]]
kernel = "multiply_large"
when = "min(2 * M, N) >= 256"
grid = ["min(2 * ceil_div(M, 256) * ceil_div(N, 256), sm_count)"]
block = ["288"]
cluster = ["2"]
shared = "4 * 49152 + 8 * 4096 + 1024"
args = ["tm_a", "tm_b", "tm_y", "bias", "int M", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [64, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_y"
tensor = "y"
box = [16, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block of eight warps makes 128×128 of y with mma.sync, 64×32 a warp, while cp.async fills the other of two
// buffers. That is for small products; those that hold a tile of 128×256 go to multiply_large, with wgmma and TMA.

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

// The larger products: two blocks of a cluster make 128×256 of y each, one below the other, and share their columns of b. A warp
// copies boxes by TMA to a ring of stages, and two warpgroups multiply them by wgmma, 64×256 each; blocks stay for several tiles.
constexpr int STAGES = 4;
constexpr int STAGE = 49152; // bytes: 128 rows by 64 of K of a, then four boxes of b, 64 of K by 64 columns each
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;           // a: rows of 128 swizzled bytes of K
constexpr unsigned long long ACROSS = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62; // b: rows of 64 columns, boxes of 8192
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define ACC4(j) "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
#define ACC32(j) ACC4(j), ACC4(j + 1), ACC4(j + 2), ACC4(j + 3), ACC4(j + 4), ACC4(j + 5), ACC4(j + 6), ACC4(j + 7)
#define TEN(x) "%" #x "0, %" #x "1, %" #x "2, %" #x "3, %" #x "4, %" #x "5, %" #x "6, %" #x "7, %" #x "8, %" #x "9, "
__device__ __forceinline__ void multiply_add_async(float (&acc)[32][4], unsigned long long a, unsigned long long b, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" TEN() TEN(1) TEN(2)
                 TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}\n"
                 : ACC32(0), ACC32(8), ACC32(16), ACC32(24) : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void wait_for(unsigned barrier, int parity)
{
    asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}\n" : : "r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void leave(unsigned barrier, int block)
{
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" : : "r"(barrier), "r"(block) : "memory");
}

__device__ __forceinline__ void copy_box(unsigned to, const TensorMap &map, int x, int y, unsigned barrier, int blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n"
                 : : "r"(to), "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(static_cast<unsigned short>(blocks)) : "memory");
}
__device__ __forceinline__ unsigned pack(float low, float high) { unsigned r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(high), "f"(low)); return r; }

// A box from shared memory to y; what lies outside of y is not written. A group of its own for the thread that calls it.
__device__ __forceinline__ void store_box(const TensorMap &map, int x, int y, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\ncp.async.bulk.commit_group;\n"
                 : : "l"(&map), "r"(x), "r"(y), "r"(from) : "memory");
}

extern "C" __global__ void __launch_bounds__(288)
multiply_large(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b,
               const __grid_constant__ TensorMap tm_y, const __nv_bfloat16 *bias, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char pool[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES]; // stages are full; stages were left, by 8 warps of both blocks
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0); // warps 0 to 7 multiply, warp 8 copies
    const int rank = blockIdx.x % 2;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const unsigned ring = (shared_address(pool) + 1023) / 1024 * 1024;
    const int down = (M + 255) / 256 * 2, tiles = (N + 255) / 256 * down; // even, so that a cluster's two tiles are in one column
    const int steps = (K + 63) / 64;
    for (int s = 0; threadIdx.x == 0 && s < STAGES; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 16;\n" : : "r"(full + 8 * s), "r"(empty + 8 * s) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" : : : "memory");
    for (int tile = warp == 8 && lane == 0 ? int(blockIdx.x) : tiles, i = 0; tile < tiles; tile += gridDim.x)
        for (int step = 0; step < steps; ++step, ++i) {
            const unsigned to = ring + i % STAGES * STAGE, ready = full + i % STAGES * 8;
            wait_for(empty + i % STAGES * 8, (i / STAGES + 1) % 2);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(ready), "r"(STAGE) : "memory");
            copy_box(to, tm_a, step * 64, tile % down * 128, ready, 1 << rank);
            for (int c = 2 * rank; c < 2 * rank + 2; ++c) // half of the columns, for both blocks; the other block copies the rest
                copy_box(to + 16384 + c * 8192, tm_b, tile / down * 256 + c * 64, step * 64, ready, 3);
        }
    for (int tile = warp < 8 ? int(blockIdx.x) : tiles, i = 0; tile < tiles; tile += gridDim.x) {
        float acc[32][4]; // the first product of a tile does not read it
        for (int step = 0; step < steps; ++step, ++i) {
            const unsigned from = (ring + i % STAGES * STAGE) >> 4 & 0x3fff; // in units of 16 bytes
            wait_for(full + i % STAGES * 8, i / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply_add_async(acc, ALONG + from + warp / 4 * 512 + k * 2, ACROSS + from + 1024 + k * 128, step + k > 0);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory");
            if (step > 0 && lane < 2) leave(empty + (i - 1) % STAGES * 8, lane); // the step before is done: tell both blocks
        }
        unsigned add[32]; // the bias of this lane's columns, fetched while the last products run
#pragma unroll
        for (int j = 0; j < 32; ++j) {
            const int col = tile / down * 256 + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
            add[j] = col < N ? *reinterpret_cast<const unsigned *>(bias + col) : 0u;
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" : : : "memory");
        asm volatile("" : ACC32(0), ACC32(8), ACC32(16), ACC32(24) : : "memory"); // no sum is read before the wait
        if (lane < 2) leave(empty + (i - 1) % STAGES * 8, lane);
        // A warp's 16 rows leave in four boxes of 64 columns, through two places behind the ring that are its own, swizzled as tm_y is.
        const unsigned places = ring + STAGES * STAGE + warp * 4096;
#pragma unroll
        for (int j = 0; j < 32; j += 2) {
            const unsigned place = places + j / 8 % 2 * 2048;
            if (j % 8 == 0) { // a new box: the store of the last but one, from the same place, has read it
                if (lane == 0) asm volatile("cp.async.bulk.wait_group.read 1;\n" : : : "memory");
                __syncwarp();
            }
            unsigned r[4]; // upper and lower 8 rows of 8 columns, then of the next 8
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const unsigned two = add[j + e / 2];
                r[e] = pack(acc[j + e / 2][e % 2 * 2] + __uint_as_float(two << 16),
                            acc[j + e / 2][e % 2 * 2 + 1] + __uint_as_float(two & 0xffff0000u));
            }
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n"
                         : : "r"(place + lane % 16 * 128 + ((j % 8 + lane / 16) ^ (lane % 8)) * 16), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
            if (j % 8 == 6) { // the box is whole
                asm volatile("fence.proxy.async.shared::cta;\n" : : : "memory");
                __syncwarp();
                if (lane == 0) store_box(tm_y, tile / down * 256 + j / 8 * 64, tile % down * 128 + warp * 16, place);
            }
        }
        __syncwarp();
    }
    asm volatile("cp.async.bulk.wait_group 0;\n" : : : "memory"); // this thread's stores are done
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" : : : "memory"); // the other block may still write here
}
