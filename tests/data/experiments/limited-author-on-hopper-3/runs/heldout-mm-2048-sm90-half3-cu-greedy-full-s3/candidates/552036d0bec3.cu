/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
cluster = ["1", "2"]
block = ["288"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "tm_y", "int K"]
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
[[tensormap]]
name = "tm_y"
tensor = "y"
box = [16, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (wgmma m64n256k16): two warpgroups share a 128 x 256 tile of y, 64 x 256 each, while
// a ninth warp fills a ring of slices of 64 of K by TMA, those of b for two blocks at once, and has L2 fetch slices further on;
// still missing are an order of the blocks that is kind to L2, and a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int TILE_K = 64;
constexpr int STAGES = 4;
constexpr int AHEAD = 16; // slices from the one that is copied to those that L2 is asked for
constexpr int A_BYTES = TILE_M * TILE_K * 2;
constexpr int STAGE_BYTES = A_BYTES + TILE_K * TILE_N * 2;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// Waits for the end of the phase with this parity (0 for the first one).
__device__ __forceinline__ void wait_phase(unsigned barrier, int parity)
{
    unsigned ended = 0;
    while (!ended)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(ended) : "r"(barrier), "r"(parity) : "memory");
}

// Has L2 fetch this block's share of a slice: the blocks of a row take turns with its box of a, those of a column with its boxes of b.
__device__ __forceinline__ void ask_l2(const TensorMap *a, const TensorMap *b, int slice, int row0, int col0)
{
    if (static_cast<unsigned>(slice) % gridDim.x == blockIdx.x)
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(a), "r"(slice * TILE_K), "r"(row0) : "memory");
    for (int i = 0; i < TILE_N / 64; ++i)
        if (static_cast<unsigned>(slice * (TILE_N / 64) + i) % gridDim.y == blockIdx.y)
            asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(b), "r"(col0 + i * 64), "r"(slice * TILE_K) : "memory");
}

#define SUMS8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)
#define SUMS SUMS32(0), SUMS32(32), SUMS32(64), SUMS32(96)
// d += 64 rows of a · 256 columns of b, over 16 of K, in the background; the last 1 says that b's columns lie side by side.
__device__ __forceinline__ void wgmma(float (&d)[128], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 1, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, accumulate, 1, 1, 0, 1;\n}" : SUMS : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(288, 1)
    multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y, int K)
{
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * STAGES]; // those of full stages, then those of empty ones
    const unsigned ring = (static_cast<unsigned>(__cvta_generic_to_shared(dynamic)) + 1023) & ~1023u;
    const unsigned full = static_cast<unsigned>(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;
    const int slices = (K + TILE_K - 1) / TILE_K;
    int ahead = 0; // the next slice to ask L2 for, in the thread that asks
    if (threadIdx.x == 0)
        for (int i = 0; i < 2 * STAGES; ++i) // a stage is empty when the eight warps of both blocks have left it
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + 8 * i), "r"(i < STAGES ? 1 : 16) : "memory");
    if (threadIdx.x == 256) { // the first slices are on their way to L2 while the blocks of the cluster meet
        asm volatile("prefetch.tensormap [%0];\nprefetch.tensormap [%1];\nprefetch.tensormap [%2];" ::"l"(&tm_a), "l"(&tm_b), "l"(&tm_y) : "memory");
        for (; ahead < STAGES && ahead < slices; ++ahead)
            ask_l2(&tm_a, &tm_b, ahead, row0, col0);
    }
    asm volatile("fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
    if (warp == 8) { // one thread asks for the copies: rows of a for this block, half of the columns of b for both
        for (int s = 0; lane == 0 && s < slices; ++s) {
            const unsigned stage = ring + s % STAGES * STAGE_BYTES, barrier = full + s % STAGES * 8;
            if (s >= STAGES)
                wait_phase(empty + s % STAGES * 8, (s / STAGES + 1) % 2);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE_BYTES) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                         ::"r"(stage), "l"(&tm_a), "r"(s * TILE_K), "r"(row0), "r"(barrier) : "memory");
            for (int i = blockIdx.y % 2 * 2, end = i + 2; i < end; ++i)
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                             ::"r"(stage + A_BYTES + i * 8192), "l"(&tm_b), "r"(col0 + i * 64), "r"(s * TILE_K), "r"(barrier), "h"(static_cast<unsigned short>(3)) : "memory");
            if (s >= STAGES - 1) // behind the copies that fill the ring
                for (; ahead < slices && ahead < s + AHEAD; ++ahead)
                    ask_l2(&tm_a, &tm_b, ahead, row0, col0);
        }
    } else {
        const unsigned long long form = 1024ull >> 4 << 32 | 1ull << 62; // swizzled rows of 128 bytes, eight of them every 1024
        float d[128] = {};
        for (int s = 0; s < slices; ++s) {
            const unsigned bs = ring + s % STAGES * STAGE_BYTES + A_BYTES, as = bs - A_BYTES + warp / 4 * 8192;
            wait_phase(full + s % STAGES * 8, s / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < TILE_K / 16; ++k) // b: 8192 bytes from one block of 64 columns to the next
                wgmma(d, form | 1ull << 16 | ((as + k * 32) & 0x3ffff) >> 4, form | 8192ull >> 4 << 16 | ((bs + k * 2048) & 0x3ffff) >> 4);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (s > 0 && lane < 2) // the products of the slice before have ended: tells each block that its stage is left
                asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(empty + (s - 1) % STAGES * 8), "r"(lane) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;\nbar.sync 1, 256;" : SUMS : : "memory"); // nobody needs the ring any more
        const unsigned mine = ring + warp * 8192; // the warp's 16 rows of y: four swizzled boxes of 64 columns
#pragma unroll
        for (int i = 0; i < 64; ++i) // two columns of row lane / 4, or of the row eight below
            asm volatile("{\n.reg .b32 pair;\ncvt.rn.bf16x2.f32 pair, %2, %1;\nst.shared.b32 [%0], pair;\n}" ::"r"(mine + i / 16 * 2048 + i % 2 * 1024 + lane / 4 * 128 + ((i / 2 % 8) ^ (lane / 4)) * 16 + lane % 4 * 4), "f"(d[2 * i]), "f"(d[2 * i + 1]) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane < 4)
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(&tm_y), "r"(col0 + lane * 64), "r"(row0 + warp * 16), "r"(mine + lane * 2048) : "memory");
    }
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory"); // until then the other may arrive here
}

#if 0 // the kernel before, not compiled
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
#endif
