/*klineage
surface = "cuda"
tensormap = [{ name = "tm_a", tensor = "a", box = [128, 64], swizzle = "128B", l2_promotion = "256B" }, { name = "tm_b", tensor = "b", box = [64, 64], swizzle = "128B", l2_promotion = "256B" }, { name = "tm_y", tensor = "y", box = [16, 64], swizzle = "128B" }]

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(M, 256) * 2"]
cluster = ["1", "2"]
block = ["288"]
shared = "197696"
args = ["tm_a", "tm_b", "tm_y", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (wgmma m64n256k16): two warpgroups share a 128 x 256 tile of y, 64 rows each, while a
// ninth warp brings slices of 64 of K into four buffers by TMA, and half of b's slice for both blocks of a cluster; still missing is
// a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

#if 0 // the kernel before, on mma.sync; to be taken out
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
#endif
constexpr int TILE_M = 128, TILE_N = 256, TILE_K = 64, STAGES = 4, A_BYTES = TILE_M * TILE_K * 2, STAGE_BYTES = A_BYTES + TILE_N * TILE_K * 2;
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define R10(d) "%" #d "0, %" #d "1, %" #d "2, %" #d "3, %" #d "4, %" #d "5, %" #d "6, %" #d "7, %" #d "8, %" #d "9, "
#define F8(i) "+f"(acc[i][0]), "+f"(acc[i][1]), "+f"(acc[i][2]), "+f"(acc[i][3]), "+f"(acc[i + 1][0]), "+f"(acc[i + 1][1]), "+f"(acc[i + 1][2]), "+f"(acc[i + 1][3])
#define ACC F8(0), F8(2), F8(4), F8(6), F8(8), F8(10), F8(12), F8(14), F8(16), F8(18), F8(20), F8(22), F8(24), F8(26), F8(28), F8(30)
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity) { asm volatile("{.reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra AGAIN;}" ::"r"(barrier), "r"(parity) : "memory"); }
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap &map, int x, int y, unsigned barrier, int blocks) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"((unsigned short)blocks) : "memory"); }
extern "C" __global__ void __launch_bounds__(288, 1) multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y, int K) {
    extern __shared__ unsigned char stages[]; // four buffers of 48 KiB, from the next multiple of 1024 on, then four barriers "full" and four "empty"
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = blockIdx.y % 2, slices = (K + TILE_K - 1) / TILE_K;
    const int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;
    const unsigned base = (static_cast<unsigned>(__cvta_generic_to_shared(stages)) + 1023) / 1024 * 1024, barriers = base + STAGES * STAGE_BYTES;
    if (threadIdx.x < 2 * STAGES) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;" ::"r"(barriers + threadIdx.x * 8), "r"(threadIdx.x < STAGES ? 1 : 16) : "memory");
    asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
    for (int s = 0; warp == 8 && lane == 0 && s < slices; ++s) { // one thread: the block's own part of a, and half of b for both blocks, once both are done with the buffer
        const unsigned to = base + s % STAGES * STAGE_BYTES, full = barriers + s % STAGES * 8;
        wait_for(full + STAGES * 8, (s / STAGES % 2) ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(STAGE_BYTES) : "memory");
        copy_box(to, tm_a, s * TILE_K, row0, full, 1 << rank);
        for (int j = rank * 2; j < rank * 2 + 2; ++j) copy_box(to + A_BYTES + j * 8192, tm_b, col0 + j * 64, s * TILE_K, full, 3);
    }
    if (warp < 8) {
        float acc[32][4] = {};
        for (int s = 0; s < slices; ++s) {
            const unsigned at = (base + s % STAGES * STAGE_BYTES) % 262144 / 16; // in the descriptors' unit, without the block's rank, which is in bit 24
            wait_for(barriers + s % STAGES * 8, s / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            _Pragma("unroll") for (int k = 0; k < TILE_K / 16; ++k) // 128-byte swizzle, 1024 bytes from eight rows to the next, 8192 between 64 columns of b
                asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" R10() R10(1) R10(2) R10(3) R10(4) R10(5) R10(6) R10(7) R10(8) R10(9) R10(10) R10(11) "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;}"
                             : ACC : "l"(0x4000004000010000ull + (at + warp / 4 * 512 + k * 2)), "l"(0x4000004002000000ull + (at + A_BYTES / 16 + k * 128)), "r"(1) : "memory");
            asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" ::: "memory"); // the slice before is done with: both blocks are told, with no fence of the device (.release.cluster), as nothing is published
            if (s > 0 && lane < 2) asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barriers + STAGES * 8 + (s - 1) % STAGES * 8), "r"(lane) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0; bar.sync 1, 256;" : ACC : : "memory"); // no buffer is in use any more: y goes through them, 8 KiB a warp
        _Pragma("unroll") for (int j = 0; j < 16; ++j)
            asm volatile("{.reg .b32 r<4>; cvt.rn.bf16x2.f32 r0, %2, %1; cvt.rn.bf16x2.f32 r1, %4, %3; cvt.rn.bf16x2.f32 r2, %6, %5; cvt.rn.bf16x2.f32 r3, %8, %7; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {r0, r1, r2, r3};}" ::"r"(base + warp * 8192 + j / 4 * 2048 + lane % 16 * 128 + ((j % 4 * 2 + lane / 16) ^ (lane % 8)) * 16),
                         "f"(acc[j * 2][0]), "f"(acc[j * 2][1]), "f"(acc[j * 2][2]), "f"(acc[j * 2][3]), "f"(acc[j * 2 + 1][0]), "f"(acc[j * 2 + 1][1]), "f"(acc[j * 2 + 1][2]), "f"(acc[j * 2 + 1][3]) : "memory");
        asm volatile("fence.proxy.async.shared::cta; bar.warp.sync 0xffffffff;" ::: "memory");
        if (lane < 4) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3]; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::"l"(&tm_y), "r"(col0 + lane * 64), "r"(row0 + warp * 16), "r"(base + warp * 8192 + lane * 2048) : "memory");
    }
    asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory"); // no block ends while the other may still reach its barriers
}
