/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
cluster = ["1", "2"]
block = ["384"]
shared = "196672"
args = ["tm_a", "tm_b", "bias", "y", "int M", "int N", "int K"]
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
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: two warpgroups make 128×256 of y with wgmma; a thread of a third fills four buffers by TMA; two blocks share b's tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int DEPTH = 64, STAGES = 4; // of K a step; buffers
constexpr int PITCH_A = DEPTH;        // 128 bytes; their 16-byte pieces are swizzled as wgmma's 128-byte mode has it
constexpr int THREADS = 256;

typedef __nv_bfloat16 TileA[TILE_M][PITCH_A]; // [row][k]
typedef __nv_bfloat16 TileB[TILE_N / 64][DEPTH][64]; // [64 columns][k][column], swizzled likewise
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void wait_barrier(unsigned bar, unsigned parity) { asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}\n" : : "r"(bar), "r"(parity) : "memory"); }

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
        copy_async(&tile_a[r][k ^ (r % 8 * 8)], inside ? a + size_t(row0 + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < DEPTH * TILE_N / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x);
        const int k = c / (TILE_N / 8);
        const int n = c % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        copy_async(&tile_b[n / 64][k][(n % 64) ^ (k % 8 * 8)], inside ? b + size_t(k0 + k) * N + col0 + n : b, inside);
    }
}

#define TEN(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define ACC4(j) "+f"(acc[0][j][0]), "+f"(acc[0][j][1]), "+f"(acc[0][j][2]), "+f"(acc[0][j][3])
#define ACC32(j) ACC4(j), ACC4(j + 1), ACC4(j + 2), ACC4(j + 3), ACC4(j + 4), ACC4(j + 5), ACC4(j + 6), ACC4(j + 7)
extern "C" __global__ void __launch_bounds__(384, 1)
multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(1024) TileA tile_a[];                  // STAGES of 16384 bytes, and behind them
    TileB *const tile_b = reinterpret_cast<TileB *>(tile_a + STAGES); // STAGES of 32768 bytes

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp * 16, warp_col = 0; // of a warpgroup's 64 rows, each warp has 16, and all columns
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[1][32][4];
#pragma unroll
    for (int i = 0; i < 1; ++i)
#pragma unroll
        for (int j = 0; j < 32; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int steps = (K + DEPTH - 1) / DEPTH;
    const unsigned full = shared_address(tile_b + STAGES), empty = full + STAGES * 8; // barriers: a buffer is filled; it is free in both blocks
    for (int i = 0; i < STAGES && threadIdx.x == 0; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], %2;\nmbarrier.init.shared::cta.b64 [%1], %3;\nfence.mbarrier_init.release.cluster;\n" : : "r"(full + i * 8), "r"(empty + i * 8), "r"(1), "r"(16) : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : : : "memory");
    if (warp >= THREADS / 32) { // one thread starts all copies of a block; its half of b's tile goes to both blocks of the cluster
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        for (int step = 0, now = 0; step < steps && threadIdx.x == THREADS; now = ++step % STAGES) {
            wait_barrier(empty + now * 8, step / STAGES % 2 ^ 1); // the first time round, this does not wait
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%4], %5;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" : : "r"(shared_address(tile_a[now])), "l"(&tm_a), "r"(step * DEPTH), "r"(row0), "r"(full + now * 8), "r"(int(sizeof(TileA) + sizeof(TileB))) : "memory");
            for (int i = blockIdx.y % 2 * 2, end = i + 2; i < end; ++i)
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n" : : "r"(shared_address(tile_b[now][i])), "l"(&tm_b), "r"(col0 + i * 64), "r"(step * DEPTH), "r"(full + now * 8), "h"(short(3)) : "memory");
        }
        asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : : : "memory");
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");

    for (int step = 0; step < steps; ++step) {
        const int now = step % STAGES;
        wait_barrier(full + now * 8, step / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");

#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" TEN() TEN(1) TEN(2)
                         TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127}, "
                         "%128, %129, p, 1, 1, 0, 1;\n}\n" : ACC32(0), ACC32(8), ACC32(16), ACC32(24) : "l"(0x4000004000010000ull +
                         (shared_address(tile_a[now][warp / 4 * 64]) % 0x40000u + k * 2) / 16), "l"(0x4000004002000000ull + shared_address(tile_b[now][0][k]) % 0x40000u / 16), "r"(1)); // without the block's rank
#if 0 // what wgmma replaces
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
#endif
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory"); // the step before is done
        asm volatile("{\n.reg .pred p;\n.reg .b32 r;\nsetp.ne.b32 p, %2, 0;\nmapa.shared::cluster.u32 r, %0, %1;\n@p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}\n" : : "r"(empty + (step + STAGES - 1) % STAGES * 8), "r"(lane % 2), "r"(int(step > 0 && lane < 2)) : "memory"); // its buffer is free: told to both blocks
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" : ACC32(0), ACC32(8), ACC32(16), ACC32(24) : : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : : : "memory"); // neither block ends while the other one still writes to it

#pragma unroll
    for (int j = 0; j < 32; ++j) {
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
#pragma unroll
        for (int i = 0; i < 1; ++i) {
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
