/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_wide"
grid = ["min(sm_count, ceil_div(N, 256) * ceil_div(M, 128))"]
block = ["384"]
args = ["tm_a", "tm_b", "bias", "y", "int M", "int N", "int K"]
shared = "196672"
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
// y = a · b + bias: a block of eight warps makes 128×128 of y with mma.sync, 64×32 a warp, while cp.async fills the other of two
// buffers; what is still missing is a deeper pipeline, an order of blocks that suits the L2 cache, wide stores, and wgmma with TMA.

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

// Launched in its place: wgmma, 128×256 a block, 64×256 a warpgroup; a buffer has 128 rows of a, then 4 slabs of 64 of K × 64 columns of b.
#define SUMS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
__device__ __forceinline__ void multiply_add_wide(float (&d)[32][4], const void *a, const void *b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}\n"
                 : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7), SUMS(8), SUMS(9), SUMS(10), SUMS(11), SUMS(12), SUMS(13), SUMS(14), SUMS(15), SUMS(16), SUMS(17), SUMS(18), SUMS(19), SUMS(20), SUMS(21), SUMS(22), SUMS(23), SUMS(24), SUMS(25), SUMS(26), SUMS(27), SUMS(28), SUMS(29), SUMS(30), SUMS(31)
                 : "l"(0x4000004000010000ull | shared_address(a) >> 4), "l"(0x4000004002000000ull | shared_address(b) >> 4), "r"(1));
}

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define LOAD "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
extern "C" __global__ void __launch_bounds__(384, 1)
multiply_wide(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char tiles[]; // four buffers of 384 rows of 128 bytes, 16-byte units swizzled by row % 8
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0); // warps 0 to 7 multiply, a thread of warp 8 copies
    const unsigned full = shared_address(tiles) + 196608, empty = full + 32; // four barriers each
    if (threadIdx.x < 8) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async;\n" : : "r"(full + threadIdx.x * 8), "r"(threadIdx.x < 4 ? 1 : 8) : "memory");
    __syncthreads();
    const auto wait_for = [](unsigned barrier, int parity) { asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}\n" : : "r"(barrier), "r"(parity) : "memory"); };
    const auto arrive = [](unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" : : "r"(barrier) : "memory"); };
    const int steps = (K + 63) / 64, high = (M + 127) / 128, wide = (N + 255) / 256;
    const auto place = [&](int unit) { // row and column of a tile; 16 rows of tiles are done before the next 16
        const int first = unit / (16 * wide) * 16, rows = min(high - first, 16), in = unit - first * wide;
        return make_int2((first + in % rows) * 128, in / rows * 256);
    };
    if (warp >= 8) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        for (int unit = blockIdx.x, step = 0; unit < high * wide && threadIdx.x == 256; unit += gridDim.x) {
            const int2 at = place(unit);
            for (int k = 0; k < K; k += 64, ++step) {
                wait_for(empty + step % 4 * 8, step / 4 % 2 ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 49152;\n" LOAD "[%1], [%2, {%3, %4}], [%0];\n" LOAD "[%1+16384], [%5, {%6, %3}], [%0];\n" LOAD "[%1+24576], [%5, {%7, %3}], [%0];\n" LOAD "[%1+32768], [%5, {%8, %3}], [%0];\n" LOAD "[%1+40960], [%5, {%9, %3}], [%0];\n"
                             : : "r"(full + step % 4 * 8), "r"(full - 196608 + step % 4 * 49152), "l"(&tm_a), "r"(k), "r"(at.x), "l"(&tm_b), "r"(at.y), "r"(at.y + 64), "r"(at.y + 128), "r"(at.y + 192) : "memory");
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
    for (int unit = blockIdx.x, n = 0; unit < high * wide; unit += gridDim.x, n += steps) { // n counts the steps of earlier tiles
    const int row0 = place(unit).x, col0 = place(unit).y;
    float acc[32][4];
#pragma unroll
    for (int j = 0; j < 32; ++j) { // the sums begin with the bias; past N any value does
        const float2 add = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(bias + min(col0 + j * 8 + lane % 4 * 2, N - 2)));
        acc[j][0] = acc[j][2] = add.x, acc[j][1] = acc[j][3] = add.y;
    }
    for (int step = n; step < n + steps; ++step) {
        const unsigned char *const tile = tiles + step % 4 * 49152;
        wait_for(full + step % 4 * 8, step / 4 % 2); // this step's tiles are there
        asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
#pragma unroll
        for (int k = 0; k < 4; ++k)
            multiply_add_wide(acc, tile + warp / 4 * 8192 + k * 32, tile + 16384 + k * 2048);
        asm volatile("wgmma.commit_group.sync.aligned;\n" : : : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;\n" : : : "memory");
        if (lane == 0 && step > n) arrive(empty + (step - 1) % 4 * 8); // the products of the step before are done
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" : : : "memory");
    if (lane == 0) arrive(empty + (n + steps - 1) % 4 * 8);
#pragma unroll
    for (int j = 0; j < 32; ++j) {
        const int row = row0 + warp * 16 + lane / 4, col = col0 + j * 8 + lane % 4 * 2;
        if (row < M && col < N) *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) = __floats2bfloat162_rn(acc[j][0], acc[j][1]);
        if (row + 8 < M && col < N) *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) = __floats2bfloat162_rn(acc[j][2], acc[j][3]);
    }
    }
}
