/*klineage
surface = "cuda"

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

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["256"]
shared = "196640"
args = ["map_a", "map_b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (wgmma m64n256k16): two warpgroups share a 128 x 256 tile of y, 64 x 256 each, while
// TMA brings the slices of 64 of K into a ring of four buffers; still missing are multicast, an order of
// the blocks that is kind to L2, and a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int TILE_K = 64;
constexpr int THREADS = 256;
constexpr int A_PITCH = TILE_K; // 128 bytes a row, chunks of 16 bytes XORed with row % 8: the 128-byte swizzle of wgmma
constexpr int B_PITCH = TILE_N; // as four quarters of 64 columns, each of TILE_K rows of 128 bytes, swizzled likewise
constexpr int A_SIZE = TILE_M * A_PITCH;
constexpr int B_SIZE = TILE_K * B_PITCH;

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

struct alignas(64) TensorMap { unsigned long long words[16]; };

// Copies a box of 64 x 64, swizzled, with zeros for what lies outside of the tensor; x is the coordinate along a row.
__device__ __forceinline__ void copy_box(__nv_bfloat16 *to, const TensorMap &map, int x, int y, unsigned full)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(to)), "l"(&map), "r"(x), "r"(y), "r"(full)
                 : "memory");
}

__device__ __forceinline__ void load4(unsigned (&r)[4], const __nv_bfloat16 *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void load4_transposed(unsigned (&r)[4], const __nv_bfloat16 *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void mma(float (&c)[8][4][4], unsigned long long a, unsigned long long b)
{
#define ACC(i) "+f"(c[i][0][0]), "+f"(c[i][0][1]), "+f"(c[i][0][2]), "+f"(c[i][0][3]), "+f"(c[i][1][0]), "+f"(c[i][1][1]), "+f"(c[i][1][2]), "+f"(c[i][1][3]), "+f"(c[i][2][0]), "+f"(c[i][2][1]), "+f"(c[i][2][2]), "+f"(c[i][2][3]), "+f"(c[i][3][0]), "+f"(c[i][3][1]), "+f"(c[i][3][2]), "+f"(c[i][3][3])
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1; }"
                 : ACC(0), ACC(1), ACC(2), ACC(3), ACC(4), ACC(5), ACC(6), ACC(7) : "l"(a), "l"(b), "r"(1));
}

// Starts the copy of one slice of K, if there is such a slice; one thread does it for all.
__device__ __forceinline__ void bring(__nv_bfloat16 *as, __nv_bfloat16 *bs, const TensorMap &a, const TensorMap &b,
                                      unsigned full, int row0, int col0, int k0, int K)
{
    if (threadIdx.x == 0 && k0 < K) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"((A_SIZE + B_SIZE) * 2) : "memory");
#pragma unroll
        for (int i = 0; i < TILE_M / 64; ++i)
            copy_box(as + i * 64 * A_PITCH, a, k0, row0 + i * 64, full);
#pragma unroll
        for (int i = 0; i < TILE_N / 64; ++i)
            copy_box(bs + i * 64 * TILE_K, b, col0 + i * 64, k0, full);
    }
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(256, 1)
    multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, __nv_bfloat16 *__restrict__ y,
             int M, int N, int K)
{
    extern __shared__ __align__(1024) __nv_bfloat16 as[]; // four buffers of 16384 bytes, then four of 32768 for b
    __nv_bfloat16 *bs = as + 4 * A_SIZE;
    const unsigned full = shared_address(bs + 4 * B_SIZE); // four barriers of 8 bytes, one a buffer

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp * 16; // a warpgroup has 64 rows, all 256 columns
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[8][4][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int slices = (K + TILE_K - 1) / TILE_K;
    if (threadIdx.x < 4)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;" ::"r"(full + threadIdx.x * 8) : "memory");
    __syncthreads();
    bring(as, bs, a, b, full, row0, col0, 0, K);
    bring(as + A_SIZE, bs + B_SIZE, a, b, full + 8, row0, col0, TILE_K, K);

    for (int s = 0; s < slices; ++s) {
        // This slice has arrived, for all threads; and all are done with the last but one, whose buffer is filled next.
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(full + s % 4 * 8), "r"(s / 4 % 2) : "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");

        const unsigned long long at = (1ull << 62 | 64ull << 32 | 1ull << 16) + (shared_address(as + s % 4 * A_SIZE + warp / 4 * 64 * A_PITCH) >> 4);
        const unsigned long long bt = (1ull << 62 | 64ull << 32 | 512ull << 16) + (shared_address(bs + s % 4 * B_SIZE) >> 4);
#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            mma(acc, at + k / 8, bt + k * 8);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        bring(as + (s + 2) % 4 * A_SIZE, bs + (s + 2) % 4 * B_SIZE, a, b, full + (s + 2) % 4 * 8, row0, col0, (s + 2) * TILE_K, K);
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // this slice goes on while the next is awaited
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 128; ++i) // no use of the sums moves above the wait
        asm volatile("" : "+f"(acc[i / 16][i / 4 % 4][i % 4])::"memory");

#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row0 + warp_row + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + i * 32 + j * 8 + lane % 4 * 2;
            if (col >= N) // even, as N is: the two columns are inside together
                continue;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0], acc[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2], acc[i][j][3]);
        }
    }
}
