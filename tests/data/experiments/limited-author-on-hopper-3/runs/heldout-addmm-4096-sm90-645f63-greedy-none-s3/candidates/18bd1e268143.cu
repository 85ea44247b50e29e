/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
when = "M * N < 65536"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["a", "b", "bias", "y", "int M", "int N", "int K"]
[[launch]]
kernel = "multiply_wide"
when = "M * N >= 65536"
grid = ["2 * min(ceil_div(sm_count, 2), ceil_div(M, 256) * ceil_div(N, 256))"]
cluster = ["2"]
block = ["384"]
shared = "197632"
args = ["map_a", "map_b", "bias", "y", "int M", "int N", "int K"]
[[tensormap]]
name = "map_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "map_b"
tensor = "b"
box = [64, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block of eight warps makes 128×128 of y with mma.sync, 64×32 a warp, while cp.async fills the other of two
// buffers; where y has 65536 elements or more, multiply_wide, at the end, does it with TMA, wgmma and four stages.

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

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr unsigned STAGES = 4, STAGE_BYTES = 49152; // a stage: 128 rows × 64 of K of a, then four times 64 of K × 64 columns of b
// Lines of 128 bytes, swizzled; 1024 bytes from eight lines to the next eight and, of b only, 8192 from 64 columns to the next 64.
constexpr unsigned long long DESCRIPTOR = 1ull << 62 | 64ull << 32 | 512ull << 16;
#define ACC8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define ACC128 ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56), ACC8(64), ACC8(72), ACC8(80), ACC8(88), ACC8(96), ACC8(104), ACC8(112), ACC8(120)
#define TEN(t) "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity)
{
    for (unsigned done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}

// Two blocks of a cluster make 256×256 of y, 128 rows each; each loads its own a and half of b, the latter for both. The first warpgroup
// loads, the other two make 64×256 each. Tiles go in bands of eight rows of tiles, for L2. TMA reads zeros outside of the tensors.
extern "C" __global__ void __launch_bounds__(384, 1)
multiply_wide(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __nv_bfloat16 *__restrict__ bias,
              __nv_bfloat16 *__restrict__ y, int M, int N, int K)
{
    extern __shared__ unsigned char dynamic[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES]; // "full" of every stage, then "empty": 8 warps of 2 blocks arrive
    const unsigned stages = (shared_address(dynamic) + 1023) / 1024 * 1024, full = shared_address(barriers), empty = full + 8 * STAGES;
    const int rank = blockIdx.x % 2, lane = threadIdx.x % 32, rows = (M + 255) / 256, columns = (N + 255) / 256;
    unsigned step = 0; // counted over all tiles
    if (threadIdx.x == 0)
        for (unsigned s = 0; s < STAGES; ++s)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 16;\nfence.mbarrier_init.release.cluster;\n"
                         : : "r"(full + 8 * s), "r"(empty + 8 * s) : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : : : "memory");
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        for (int tile = blockIdx.x / 2; threadIdx.x == 0 && tile < rows * columns; tile += gridDim.x / 2) {
            const int band = tile / (8 * columns), height = min(8, rows - 8 * band), rest = tile % (8 * columns);
            const int row0 = (band * 8 + rest % height) * 256 + rank * 128, col0 = rest / height * 256 + rank * 128;
            for (int k = 0; k < K; k += 64, ++step) {
                const unsigned s = step % STAGES, to = stages + s * STAGE_BYTES, to_b = to + 16384 + rank * 16384;
                barrier_wait(empty + 8 * s, (step / STAGES + 1) % 2);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %11;\n"
                             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%4, {%6, %7}], [%0];\n"
                             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%2], [%5, {%8, %6}], [%0], %10;\n"
                             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%3], [%5, {%9, %6}], [%0], %10;\n"
                             : : "r"(full + 8 * s), "r"(to), "r"(to_b), "r"(to_b + 8192), "l"(&map_a), "l"(&map_b), "r"(k), "r"(row0),
                               "r"(col0), "r"(col0 + 64), "h"(static_cast<unsigned short>(3)), "r"(STAGE_BYTES) : "memory");
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
        const int group = __shfl_sync(~0u, int(threadIdx.x) / 128 - 1, 0), warp_row = rank * 128 + (int(threadIdx.x) / 32 - 4) * 16 + lane / 4;
        for (int tile = blockIdx.x / 2; tile < rows * columns; tile += gridDim.x / 2) {
            const int band = tile / (8 * columns), height = min(8, rows - 8 * band), rest = tile % (8 * columns);
            const int row0 = (band * 8 + rest % height) * 256 + warp_row, col0 = rest / height * 256;
            float d[128] = {};
            for (int k = 0; k < K; k += 64, ++step) {
                const unsigned s = step % STAGES, from = (stages + s * STAGE_BYTES) & 0x3FFFF; // without the block's rank, in bit 24
                barrier_wait(full + 8 * s, step / STAGES % 2);
                asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                                 TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10") TEN("11")
                                 "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}\n" : ACC128
                                 : "l"(DESCRIPTOR + (from + group * 8192) / 16 + 2 * i), "l"(DESCRIPTOR + (from + 16384) / 16 + 128 * i), "r"(k + i) : "memory");
                asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory");
                if (step > 0 && lane < 2) // the step before has been read: lane 0 tells the first block, lane 1 the second
                    asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}\n"
                                 : : "r"(empty + 8 * ((step - 1) % STAGES)), "r"(lane) : "memory");
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;\n" : : : "memory");
            asm volatile("" : ACC128 : : "memory"); // no use of d moves to before the wait
#pragma unroll
            for (int j = 0; j < 16; ++j) { // 32 columns of one of the lane's two rows
                unsigned v[4];
                const int row = row0 + j % 2 * 8, col = col0 + (j / 2 * 4 + lane % 4) * 8;
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float2 add = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(bias + min(col0 + (j / 2 * 4 + e) * 8 + lane % 4 * 2, N - 2)));
                    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(v[e]) : "f"(d[(j / 2 * 4 + e) * 4 + j % 2 * 2 + 1] + add.y), "f"(d[(j / 2 * 4 + e) * 4 + j % 2 * 2] + add.x));
                }
#pragma unroll
                for (int e = 0; e < 4; ++e) { // transposes 4×4 among four lanes: each gets eight neighbours of its row
                    const int x = e < 2 ? 2 * e : e - 2, w = x + 1 + e / 2;
                    const bool upper = (lane & (1 + e / 2)) != 0;
                    const unsigned got = __shfl_xor_sync(~0u, upper ? v[x] : v[w], 1 + e / 2);
                    v[x] = upper ? got : v[x], v[w] = upper ? v[w] : got;
                }
                if (row < M && col < N)
                    *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = make_uint4(v[0], v[1], v[2], v[3]);
            }
        }
    }
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : : : "memory");
}
