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
// buffers; where y has 256×256 elements or more, multiply_wide, at the end, does it with TMA, wgmma and four stages.

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
constexpr unsigned long long DESCRIPTOR = 1ull << 62 | 64ull << 32; // swizzled by 128 bytes; 1024 bytes from eight lines to the next eight
#define ACC8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define ACC128 ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56), ACC8(64), ACC8(72), ACC8(80), ACC8(88), ACC8(96), ACC8(104), ACC8(112), ACC8(120)

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity)
{
    for (unsigned done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}

// Two blocks of a cluster make 256×256 of y, 128 rows each; each loads its own a and half of b, the latter for both. The first warpgroup
// loads, the other two make 64×256 each. TMA reads zeros outside of the tensors, so only the stores ask where the edges are.
extern "C" __global__ void __launch_bounds__(384, 1)
multiply_wide(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __nv_bfloat16 *__restrict__ bias,
              __nv_bfloat16 *__restrict__ y, int M, int N, int K)
{
    extern __shared__ unsigned char dynamic[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES]; // "full" of every stage, then "empty": 8 warps of 2 blocks arrive
    const unsigned stages = (shared_address(dynamic) + 1023) / 1024 * 1024;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const int rank = blockIdx.x % 2, lane = threadIdx.x % 32, rows = (M + 255) / 256, tiles = rows * ((N + 255) / 256);
    unsigned step = 0; // counted over all tiles
    if (threadIdx.x == 0)
        for (unsigned s = 0; s < STAGES; ++s)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 16;\nfence.mbarrier_init.release.cluster;\n"
                         : : "r"(full + 8 * s), "r"(empty + 8 * s) : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : : : "memory");
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        for (int tile = blockIdx.x / 2; threadIdx.x == 0 && tile < tiles; tile += gridDim.x / 2) {
            const int row0 = tile % rows * 256 + rank * 128, col0 = tile / rows * 256 + rank * 128;
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
        const int group = threadIdx.x / 128 - 1, warp_row = rank * 128 + group * 64 + int(threadIdx.x) / 32 % 4 * 16 + lane / 4;
        for (int tile = blockIdx.x / 2; tile < tiles; tile += gridDim.x / 2) {
            float d[128] = {};
            for (int k = 0; k < K; k += 64, ++step) {
                const unsigned s = step % STAGES, from = stages + s * STAGE_BYTES;
                barrier_wait(full + 8 * s, step / STAGES % 2);
                asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                                 "%128, %129, p, 1, 1, 0, 1;\n}\n"
                                 : ACC128
                                 : "l"(DESCRIPTOR | 1ull << 16 | ((from + group * 8192 + i * 32) >> 4)),
                                   "l"(DESCRIPTOR | 512ull << 16 | ((from + 16384 + i * 2048) >> 4)), "r"(1));
                asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory");
                if (step > 0 && lane < 2) // the stage before this one has been read: tell both blocks
                    asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}\n"
                                 : : "r"(empty + 8 * ((step - 1) % STAGES)), "r"(lane) : "memory");
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;\n" : ACC128 : : "memory");
#pragma unroll
            for (int j = 0; j < 16; ++j) { // 32 columns each; odd ones are eight rows further down
                unsigned w[4];
#pragma unroll
                for (int t = 0; t < 4; ++t) {
                    const int e = (j / 2 * 4 + t) * 4 + j % 2 * 2, col = tile / rows * 256 + (j / 2 * 4 + t) * 8 + lane % 4 * 2;
                    const __nv_bfloat162 add = col < N ? *reinterpret_cast<const __nv_bfloat162 *>(bias + col) : __floats2bfloat162_rn(0.0f, 0.0f);
                    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(w[t]) : "f"(d[e + 1] + __high2float(add)), "f"(d[e] + __low2float(add)));
                }
#pragma unroll
                for (int e = 0; e < 4; ++e) { // transposes 4×4 words over four lanes: each gets eight neighbouring columns
                    const int m = e / 2 + 1, t = e % 2 * (3 - m);
                    const unsigned other = __shfl_xor_sync(0xffffffffu, lane & m ? w[t] : w[t + m], m);
                    w[t] = lane & m ? other : w[t];
                    w[t + m] = lane & m ? w[t + m] : other;
                }
                const int row = tile % rows * 256 + warp_row + j % 2 * 8, col = tile / rows * 256 + (j / 2 * 4 + lane % 4) * 8;
                if (row < M && col < N)
                    *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = make_uint4(w[0], w[1], w[2], w[3]);
            }
        }
    }
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : : : "memory");
}
