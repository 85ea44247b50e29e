/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
when = "M < 128"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["a", "b", "y", "int M", "int N", "int K"]

[[launch]]
kernel = "multiply_wide"
when = "M >= 128"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
cluster = ["1", "2"]
block = ["288"]
shared = "197632"
args = ["tm_a", "tm_b", "y", "int M", "int N", "int K"]

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
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (mma.sync m16n8k16): eight warps share a 128 x 128 tile of y, 64 x 32 each, while
// cp.async brings the next slice of 32 of K into a second buffer. With 128 rows or more, multiply_wide does it by wgmma and TMA;
// still missing is a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int TILE_K = 32;
constexpr int THREADS = 256;
constexpr int A_PITCH = TILE_K + 8; // eight more, so that the eight rows of an ldmatrix lie in different banks
constexpr int B_PITCH = TILE_N + 8;
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

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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
        copy16(as + r * A_PITCH + k, inside ? a + size_t(row0 + r) * K + (k0 + k) : a, inside);
    }
#pragma unroll
    for (int i = 0; i < TILE_K * TILE_N / 8 / THREADS; ++i) {
        const int g = t + i * THREADS;
        const int k = g / (TILE_N / 8);
        const int c = g % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy16(bs + k * B_PITCH + c, inside ? b + size_t(k0 + k) * N + (col0 + c) : b, inside);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(256, 2)
    multiply(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, __nv_bfloat16 *__restrict__ y,
             int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 as[2 * A_SIZE]; // 20480 bytes
    __shared__ __align__(16) __nv_bfloat16 bs[2 * B_SIZE]; // 17408 bytes

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

    const int slices = (K + TILE_K - 1) / TILE_K;
    bring(as, bs, a, b, row0, col0, 0, M, N, K);

    for (int s = 0; s < slices; ++s) {
        // This slice has arrived, for all threads; and all are done with the one before, whose buffer is filled next.
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        if (s + 1 < slices)
            bring(as + (s + 1) % 2 * A_SIZE, bs + (s + 1) % 2 * B_SIZE, a, b, row0, col0, (s + 1) * TILE_K, M, N, K);

        const __nv_bfloat16 *at = as + s % 2 * A_SIZE;
        const __nv_bfloat16 *bt = bs + s % 2 * B_SIZE;
#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            unsigned af[4][4];
            unsigned bf[2][4]; // each: two n-tiles of 8, of two registers
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load4(af[i], at + (warp_row + i * 16 + lane % 16) * A_PITCH + k + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load4_transposed(bf[j], bt + (k + lane % 16) * B_PITCH + warp_col + j * 16 + lane / 16 * 8);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    mma(acc[i][j], af[i], bf[j / 2][j % 2 * 2], bf[j / 2][j % 2 * 2 + 1]);
        }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + warp_col + j * 8 + lane % 4 * 2;
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

// multiply_wide: two warpgroups share a 128 x 256 tile of y, 64 x 256 each, by wgmma; a ninth warp fills a ring of four slices of
// 64 of K by TMA. The two blocks of a cluster lie one above the other: each brings half of their slice of b, to both.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr int STAGES = 4;
constexpr int STAGE_BYTES = 49152; // 128 x 64 of a, then four boxes of 64 x 64 of b
constexpr int Y_PITCH = 264;       // 256 and eight more, so that the eight rows of a store lie in different banks

__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier),
                 "r"(parity) : "memory");
}
#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)
#define SUMS64(i) SUMS16(i), SUMS16(i + 16), SUMS16(i + 32), SUMS16(i + 48)
__device__ __forceinline__ void multiply_slab(float (&d)[128], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "
                 "%123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}" : SUMS64(0), SUMS64(64) : "l"(a), "l"(b), "r"(1) : "memory");
}

extern "C" __global__ void __launch_bounds__(288, 1)
    multiply_wide(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b,
                  __nv_bfloat16 *__restrict__ y, int M, int N, int K)
{
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * STAGES]; // a slice is there; then: the eight warps of both blocks are done with it
    const unsigned ring = (shared_address(dynamic) + 1023) / 1024 * 1024;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const int lane = threadIdx.x % 32, warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), rank = blockIdx.y % 2;
    const int row0 = blockIdx.y * 128, col0 = blockIdx.x * 256, slices = (K + 63) / 64;
    if (threadIdx.x < 2 * STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;" ::"r"(full + 8 * threadIdx.x),
                     "r"(threadIdx.x < STAGES ? 1 : 16) : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    if (warp == 8) {
        for (int s = 0; s < slices && lane == 0; ++s) {
            const unsigned to = ring + s % STAGES * STAGE_BYTES, barrier = full + s % STAGES * 8;
            wait_for(empty + s % STAGES * 8, (s / STAGES + 1) % 2); // returns at once in the first round
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE_BYTES) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                         ::"r"(to), "l"(&tm_a), "r"(s * 64), "r"(row0), "r"(barrier) : "memory");
            for (int i = 2 * rank; i < 2 * rank + 2; ++i)
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                             "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to + 16384 + i * 8192), "l"(&tm_b), "r"(col0 + i * 64),
                             "r"(s * 64), "r"(barrier), "h"(static_cast<unsigned short>(3)) : "memory");
        }
        asm volatile("barrier.cluster.arrive;" ::: "memory");
    } else {
        float d[128] = {}; // descriptors: swizzle of 128 bytes, eight rows every 1024 bytes; of b, 64 columns every 8192 bytes
        const unsigned base = ring & 0x3ffff; // without the block's rank in the cluster, which would reach into the next field
        const unsigned long long at = 1ull << 62 | 64ull << 32 | 1ull << 16 | ((base + warp / 4 * 8192) >> 4);
        const unsigned long long bt = 1ull << 62 | 64ull << 32 | 512ull << 16 | ((base + 16384) >> 4);
#pragma unroll 1
        for (int s = 0; s < slices; ++s) {
            wait_for(full + s % STAGES * 8, s / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply_slab(d, at + s % STAGES * (STAGE_BYTES / 16) + k * 2, bt + s % STAGES * (STAGE_BYTES / 16) + k * 128);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (s > 0 && lane < 2) // this warp is done with the slice before: both blocks are told
                asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                             "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(empty + (s - 1) % STAGES * 8),
                             "r"(lane) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS64(0), SUMS64(64) : : "memory");
        asm volatile("barrier.cluster.arrive;\nbar.sync 1, 256;" ::: "memory"); // the ring is free, and takes y
        __nv_bfloat16 *rows = reinterpret_cast<__nv_bfloat16 *>(dynamic + (ring - shared_address(dynamic))) + warp * 16 * Y_PITCH;
#pragma unroll
        for (int e = 0; e < 128; e += 2) // four sums for each eight columns: two of a row, two of the eighth row below
            *reinterpret_cast<__nv_bfloat162 *>(rows + (lane / 4 + e % 4 * 4) * Y_PITCH + e / 4 * 8 + lane % 4 * 2) =
                __floats2bfloat162_rn(d[e], d[e + 1]);
        __syncwarp();
        for (int r = 0; r < 16 && row0 + warp * 16 + r < M; ++r)
            if (col0 + lane * 8 < N)
                *reinterpret_cast<uint4 *>(y + size_t(row0 + warp * 16 + r) * N + col0 + lane * 8) =
                    *reinterpret_cast<const uint4 *>(rows + r * Y_PITCH + lane * 8);
    }
    asm volatile("barrier.cluster.wait;" ::: "memory"); // until here the other block may still reach this one's barriers
}
