/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["288"]
shared = "98432"
args = ["map_a", "map_b", "bias", "y", "int M", "int N", "int K"]

[[tensormap]]
name = "map_a"
tensor = "a"
box = ["64", "64"]
swizzle = "128B"

[[tensormap]]
name = "map_b"
tensor = "b"
box = ["64", "64"]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block of eight warps makes 128×128 of y with mma.sync, 64×32 a warp, while cp.async fills the other of two
// buffers; what is still missing is a deeper pipeline, an order of blocks that suits the L2 cache, wide stores, and wgmma with TMA.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int DEPTH = 64;           // of K a step
constexpr int PITCH_A = DEPTH;      // 128 bytes: a row of the 128-byte swizzle
constexpr int THREADS = 256;

typedef __nv_bfloat16 TileA[TILE_M][PITCH_A]; // [row][k]
typedef __nv_bfloat16 TileB[TILE_N / 64][DEPTH][64]; // [64 columns][k][column]
struct alignas(64) TensorMap { char bytes[128]; };

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

__device__ __forceinline__ unsigned long long descriptor(const void *p, unsigned long long leading)
{
    return (shared_address(p) >> 4 & 0x3fffu) | leading << 16 | 64ull << 32 | 1ull << 62; // 128-byte swizzle, 1024 bytes a group of 8
}
#define D(j) "+f"(d[j / 4][j % 4][0]), "+f"(d[j / 4][j % 4][1]), "+f"(d[j / 4][j % 4][2]), "+f"(d[j / 4][j % 4][3])
__device__ __forceinline__ void multiply_add_group(float (&d)[4][4][4], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, "
                 "%5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
                 "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
                 "%62, %63}, %64, %65, p, 1, 1, 0, 1;\n}\n" : D(0), D(1), D(2), D(3), D(4), D(5), D(6), D(7), D(8), D(9), D(10), D(11), D(12), D(13), D(14), D(15) : "l"(a), "l"(b), "r"(1) : "memory");
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

// One box of 64×64 by TMA, zeros where it is outside; it counts its bytes at the barrier.
__device__ __forceinline__ void copy_box(void *to, const TensorMap *map, int x, int y, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n"
                 : : "r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}\n" : : "r"(barrier), "r"(parity) : "memory");
}
extern "C" __global__ void __launch_bounds__(288, 2)
multiply(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(1024) TileA tile_a[]; // three, 49152 bytes, and then three of b, as many
    TileB *const tile_b = reinterpret_cast<TileB *>(tile_a + 3);
    const unsigned full = shared_address(tile_b + 3), empty = full + 24; // three barriers of 8 bytes each

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp * 16;
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
    if (threadIdx.x == 0) {
        for (int i = 0; i < 24; i += 8)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 8;\n" : : "r"(full + i), "r"(empty + i) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" : : : "memory");
    }
    __syncthreads();
    if (warp == 8) { // the ninth warp only starts copies
        for (int step = 0; lane == 0 && step < steps; ++step) {
            const int now = step % 3;
            const unsigned barrier = full + now * 8;
            wait(empty + now * 8, (step / 3 + 1) % 2); // passes at once in the first round
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(barrier), "r"(32768) : "memory");
            for (int i = 0; i < 2; ++i) {
                copy_box(&tile_a[now][i * 64][0], &map_a, step * DEPTH, row0 + i * 64, barrier);
                copy_box(&tile_b[now][i][0][0], &map_b, col0 + i * 64, step * DEPTH, barrier);
            }
        }
        return;
    }

    for (int step = 0; step < steps; ++step) {
        const int now = step % 3, last = (step + 2) % 3;
        wait(full + now * 8, step / 3 % 2);
        asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");

#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            multiply_add_group(acc, descriptor(&tile_a[now][warp / 4 * 64][k], 1), descriptor(&tile_b[now][0][k][0], 512));
#if 0 // mma.sync
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
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory"); // this step's goes on
        if (step > 0 && lane == 0) // the step before is done
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" : : "r"(empty + last * 8) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" : : : "memory");

#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int col = col0 + i * 32 + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
        {
            const int row = row0 + warp_row + lane / 4;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0] + add0, acc[i][j][1] + add1);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2] + add0, acc[i][j][3] + add1);
        }
    }
}
