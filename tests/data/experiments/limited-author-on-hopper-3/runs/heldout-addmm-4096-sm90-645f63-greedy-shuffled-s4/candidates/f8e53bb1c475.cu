/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["min(sm_count, ceil_div(M, 128) * ceil_div(N, 256))"]
block = ["288"]
shared = "197632"
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
// buffers; what is still missing is a deeper pipeline, an order of blocks that suits the L2 cache, wide stores, and wgmma with TMA.

#include <cuda_bf16.h>

#if 0 // the kernel of before, as described above; the one that runs, with wgmma and TMA, comes after it
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
#endif
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr unsigned STAGES = 4, BYTES = 16384 + 32768; // a stage: 128 rows × 64 of K of a; 64 of K × 256 columns of b in four boxes
constexpr int GROUP = 16; // tiles of M that blocks take one after the other before the next tile of N, for L2
constexpr unsigned long long LAYOUT = 1ull << 62 | 64ull << 32; // 128-byte swizzle, 1024 bytes from eight lines to the next eight
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra WAIT;\nDONE:\n}\n" : : "r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void load_box(unsigned to, const TensorMap &map, int x, int y, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" : : "r"(to), "l"(&map), "r"(x), "r"(y), "r"(barrier) : "memory");
}
__device__ __forceinline__ unsigned pack(float left, float right)
{ const __nv_bfloat162 both = __floats2bfloat162_rn(left, right); return *reinterpret_cast<const unsigned *>(&both); }
// Of two words, the one off the diagonal changes places with that of the lane that differs in `bit`.
__device__ __forceinline__ void exchange(unsigned &w0, unsigned &w1, int lane, int bit)
{
    const unsigned other = __shfl_xor_sync(~0u, lane & bit ? w0 : w1, bit);
    w0 = lane & bit ? other : w0;
    w1 = lane & bit ? w1 : other;
}
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define D64(i) D16(i), D16(i + 16), D16(i + 32), D16(i + 48)
__device__ __forceinline__ void multiply_wide(float (&d)[128], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
                 "}, %128, %129, p, 1, 1, 0, 1;\n}\n" : D64(0), D64(64) : "l"(a), "l"(b), "r"(accumulate) : "memory");
}
extern "C" __global__ void __launch_bounds__(288, 1)
multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES]; // a stage is full; a stage is empty
    const unsigned ring = (unsigned(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + STAGES * 8;
    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0); // 0 to 7 multiply, 16 rows each; 8 loads
    if (threadIdx.x < STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 8;\nfence.mbarrier_init.release.cluster;\n" : : "r"(full + threadIdx.x * 8), "r"(empty + threadIdx.x * 8) : "memory");
    __syncthreads();
    const int tiles_m = (M + 127) / 128, tiles_n = (N + 255) / 256, steps = (K + 63) / 64;
    unsigned it = 0; // steps of all tiles so far
    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
        const int first = tile / (GROUP * tiles_n) * GROUP, rest = tile % (GROUP * tiles_n), height = min(GROUP, tiles_m - first);
        const int row0 = (first + rest % height) * 128, col0 = rest / height * 256;
        if (warp == 8) {
            for (int step = 0; lane == 0 && step < steps; ++step, ++it) {
                const unsigned bar = full + it % STAGES * 8, to = ring + it % STAGES * BYTES;
                wait_for(empty + it % STAGES * 8, (it / STAGES + 1) & 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(bar), "r"(BYTES) : "memory");
                load_box(to, tm_a, step * 64, row0, bar);
                for (int i = 0; i < 4; ++i) load_box(to + 16384 + i * 8192, tm_b, col0 + i * 64, step * 64, bar);
            }
            continue;
        }
        float d[128];
        for (int step = 0; step < steps; ++step, ++it) {
            const unsigned from = ring + it % STAGES * BYTES;
            const unsigned long long da = LAYOUT | (from + warp / 4 * 8192) >> 4;
            const unsigned long long db = LAYOUT | 512ull << 16 | (from + 16384) >> 4; // 8192 bytes from 64 columns to the next 64
            wait_for(full + it % STAGES * 8, it / STAGES & 1);
            asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k) // 16 of K: 32 bytes further in a line of a, 16 lines of 128 bytes further in b
                multiply_wide(d, da + k * 2, db + k * 128, step > 0 || k > 0);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory");
            if (step > 0 && lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" : : "r"(empty + (it - 1) % STAGES * 8) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" : D64(0), D64(64) : : "memory");
        if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" : : "r"(empty + (it - 1) % STAGES * 8) : "memory");
#pragma unroll
        for (int g = 0; g < 32; g += 4) { // four times 8 columns: a lane has two of each, and gets the 8 of one of them
            unsigned w[2][4];
#pragma unroll
            for (int t = 0; t < 4; ++t) {
                const int col = col0 + (g + t) * 8 + lane % 4 * 2, e = (g + t) * 4;
                const float2 add = col < N ? __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(bias + col)) : make_float2(0, 0);
                w[0][t] = pack(d[e] + add.x, d[e + 1] + add.y), w[1][t] = pack(d[e + 2] + add.x, d[e + 3] + add.y);
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                exchange(w[h][0], w[h][1], lane, 1), exchange(w[h][2], w[h][3], lane, 1);
                exchange(w[h][0], w[h][2], lane, 2), exchange(w[h][1], w[h][3], lane, 2);
                const int row = row0 + warp * 16 + h * 8 + lane / 4, col = col0 + (g + lane % 4) * 8;
                if (row < M && col < N)
                    *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = make_uint4(w[h][0], w[h][1], w[h][2], w[h][3]);
            }
        }
    }
}
