/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["256"]
shared = "196608"
args = ["a", "b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (wgmma m64n256k16): two warpgroups share a 128 x 256 tile of y, 64 x 256 each, while
// cp.async brings the slices of 64 of K into a ring of four buffers; still missing are TMA, multicast, an order of
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

// Copies 16 bytes, or writes 16 bytes of zeros and reads nothing where not `inside`.
__device__ __forceinline__ void copy16(__nv_bfloat16 *to, const __nv_bfloat16 *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
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

// Starts the copy of one slice of K. N and K are multiples of 8, so a group of eight along a row is wholly inside or wholly
// outside; where it is outside, the address is that of the tensor, and nothing is read.
__device__ __forceinline__ void bring(__nv_bfloat16 *as, __nv_bfloat16 *bs, const __nv_bfloat16 *a,
                                      const __nv_bfloat16 *b, int row0, int col0, int k0, int M, int N, int K)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < TILE_M * TILE_K / 8 / THREADS; ++i) {
        const int g = t + i * THREADS;
        const int r = g / (TILE_K / 8);
        const int k = g % (TILE_K / 8) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        copy16(as + r * A_PITCH + (k ^ r % 8 * 8), inside ? a + size_t(row0 + r) * K + (k0 + k) : a, inside);
    }
#pragma unroll
    for (int i = 0; i < TILE_K * TILE_N / 8 / THREADS; ++i) {
        const int g = t + i * THREADS;
        const int k = g / (TILE_N / 8);
        const int c = g % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy16(bs + (c / 64 * TILE_K + k) * 64 + (c % 64 ^ k % 8 * 8), inside ? b + size_t(k0 + k) * N + (col0 + c) : b, inside);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(256, 1)
    multiply(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, __nv_bfloat16 *__restrict__ y,
             int M, int N, int K)
{
    extern __shared__ __align__(1024) __nv_bfloat16 as[]; // four buffers of 16384 bytes, then four of 32768 for b
    __nv_bfloat16 *bs = as + 4 * A_SIZE;

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
    bring(as, bs, a, b, row0, col0, 0, M, N, K);
    bring(as + A_SIZE, bs + B_SIZE, a, b, row0, col0, TILE_K, M, N, K);

    for (int s = 0; s < slices; ++s) {
        // This slice has arrived, for all threads; and all are done with the last but one, whose buffer is filled next.
        asm volatile("cp.async.wait_group 1; fence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");

        const unsigned long long at = (1ull << 62 | 64ull << 32 | 1ull << 16) + (shared_address(as + s % 4 * A_SIZE + warp / 4 * 64 * A_PITCH) >> 4);
        const unsigned long long bt = (1ull << 62 | 64ull << 32 | 512ull << 16) + (shared_address(bs + s % 4 * B_SIZE) >> 4);
#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            mma(acc, at + k / 8, bt + k * 8);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        bring(as + (s + 2) % 4 * A_SIZE, bs + (s + 2) % 4 * B_SIZE, a, b, row0, col0, (s + 2) * TILE_K, M, N, K);
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
