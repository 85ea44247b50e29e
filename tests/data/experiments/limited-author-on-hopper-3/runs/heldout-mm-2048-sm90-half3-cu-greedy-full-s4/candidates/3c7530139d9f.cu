/*klineage
surface = "cuda"

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

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
cluster = ["1", "2"]
block = ["288"]
args = ["tm_a", "tm_b", "y", "int M", "int N", "int K"]
shared = "4 * 49152 + 1088"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (wgmma m64n256k16): two warpgroups share a 128 x 256 tile of y, 64 x 256 each, while
// a ninth warp has TMA bring slices of 64 of K into a ring of four stages; two blocks of a cluster, neighbours in M, each bring half
// of their slice of b for both; still missing are stores by TMA, an order of
// the blocks that is kind to L2, and a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int TILE_K = 64;
constexpr int STAGES = 4;
constexpr int STAGE_BYTES = (TILE_M + TILE_N) * TILE_K * 2;
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

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// Starts the copy of one box; what lies outside of the tensor arrives as zeros, whose bytes count too.
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap &map, int column, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// The same for both blocks of the cluster: to the same place in each, counted by the barrier at the same place in each.
__device__ __forceinline__ void copy_box_to_both(unsigned to, const TensorMap &map, int column, int row, unsigned barrier)
{
    const unsigned short blocks = 3;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(blocks) : "memory");
}

// Arrives at the barrier that lies at this place in the block `rank` of the cluster.
__device__ __forceinline__ void arrive_in(unsigned barrier, int rank)
{
    asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier), "r"(rank) : "memory");
}

// Waits for the end of the barrier's phase with this parity.
__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W;}" ::"r"(barrier), "r"(parity) : "memory");
}

#define SUMS4(i, j) "+f"(d[i][j][0]), "+f"(d[i][j][1]), "+f"(d[i][j][2]), "+f"(d[i][j][3])
#define SUMS32(i) SUMS4(i, 0), SUMS4(i, 1), SUMS4(i, 2), SUMS4(i, 3), SUMS4(i, 4), SUMS4(i, 5), SUMS4(i, 6), SUMS4(i, 7)
// d += 64 rows of a (K-major) · 256 columns of b (N-major, boxes of 64 columns 8192 bytes apart) over 16 of K, in the background.
__device__ __forceinline__ void multiply16(float (&d)[4][8][4], unsigned a, unsigned b)
{
    const unsigned long long both = 1ull << 62 | 64ull << 32, da = both | 1ull << 16 | a >> 4, db = both | 512ull << 16 | b >> 4;
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;}"
                 : SUMS32(0), SUMS32(1), SUMS32(2), SUMS32(3) : "l"(da), "l"(db));
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

extern "C" __global__ void __launch_bounds__(288, 1)
    multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, __nv_bfloat16 *__restrict__ y,
             int M, int N, int K)
{
    extern __shared__ unsigned char stages[];
    const unsigned ring = (shared_address(stages) + 1023) & ~1023u;
    const unsigned full = ring + STAGES * STAGE_BYTES; // for each stage a barrier "full" and, 8 bytes further, one "empty"

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = (warp / 4) * 64;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[4][8][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int slices = (K + TILE_K - 1) / TILE_K;
    if (threadIdx.x < 2 * STAGES) // full: the arrival of the thread that asks; empty: one of each of the eight warps of both blocks
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + 8 * threadIdx.x), "r"(threadIdx.x % 2 ? 16 : 1) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory"); // the barriers of both are there
    // One thread of the ninth warp asks for all slices, then waits until both blocks have freed the last stages: no block ends before.
    for (int s = 0; threadIdx.x == 256 && s < slices + STAGES; ++s) {
        const unsigned at = ring + s % STAGES * STAGE_BYTES, arrived = full + s % STAGES * 16;
        wait_phase(arrived + 8, (s / STAGES + 1) % 2);
        if (s >= slices)
            continue;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived), "r"(STAGE_BYTES) : "memory");
        copy_box(at, a, s * TILE_K, row0, arrived);
        const int half = blockIdx.y % 2 * (TILE_N / 2); // the other half comes from the other block
        for (int c = half; c < half + TILE_N / 2; c += 64)
            copy_box_to_both(at + (TILE_M + c) * TILE_K * 2, b, col0 + c, s * TILE_K, arrived);
    }
    if (warp == 8) return;

    for (int s = 0; s < slices; ++s) {
        const unsigned at = ring + s % STAGES * STAGE_BYTES;
        wait_phase(full + s % STAGES * 16, s / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");

#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            multiply16(acc, at + warp_row * TILE_K * 2 + k * 2, at + TILE_M * TILE_K * 2 + k * 128);
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (s > 0 && lane < 2) // the products of the slice before have ended: its stage is free, which both blocks are told
            arrive_in(full + (s - 1) % STAGES * 16 + 8, lane);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (lane < 2)
        arrive_in(full + (slices - 1) % STAGES * 16 + 8, lane);

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + warp_row + warp % 4 * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int col = col0 + i * 64 + j * 8 + lane % 4 * 2;
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
