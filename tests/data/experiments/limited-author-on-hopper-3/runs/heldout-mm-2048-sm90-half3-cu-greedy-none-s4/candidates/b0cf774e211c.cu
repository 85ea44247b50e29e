/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_wgmma"
grid = ["ceil_div(N, 256)", "round_up(ceil_div(M, 128), 2)"]
cluster = ["1", "2"]
block = ["288"]
shared = "197632"
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
// multiply_wgmma, at the end, is what is launched; the kernel that it replaces still stands before it, with its helpers:
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (mma.sync m16n8k16): eight warps share a 128 x 128 tile of y, 64 x 32 each, while
// cp.async brings the next slice of 32 of K into a second buffer; still missing are wgmma, TMA, a deeper pipeline, an order of
// the blocks that is kind to L2, and a way to fill the device when y has few tiles.

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

// What is launched. The two blocks of a cluster take 128 x 256 of y each, one above the other. The ninth warp brings slices of 64 of K
// by TMA through four stages, half of b for both blocks; two warpgroups multiply, 64 x 256 each; and y leaves by TMA.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr int STAGES = 4, A_BYTES = 128 * 64 * 2, STAGE_BYTES = A_BYTES + 64 * 256 * 2;

#define ACC4(i, j) "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
#define ACC32(i) ACC4(i, 0), ACC4(i, 1), ACC4(i, 2), ACC4(i, 3), ACC4(i, 4), ACC4(i, 5), ACC4(i, 6), ACC4(i, 7)
#define ACC128 ACC32(0), ACC32(1), ACC32(2), ACC32(3)
// acc += a · b, both in shared memory: 64 x 16 that lies along K by 16 x 256 that lies along N (hence the last 1).
__device__ __forceinline__ void wgmma(float (&acc)[4][8][4], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 1;\n}" : ACC128 : "l"(a), "l"(b), "r"(1));
}
// Describes a tile of swizzled rows of 128 bytes, eight rows every 1024 bytes; `next` is the distance of b's boxes of 64 columns.
__device__ __forceinline__ unsigned long long describe(unsigned at, unsigned next)
{
    return 1ull << 62 | 64ull << 32 | static_cast<unsigned long long>(next / 16) << 16 | (at & 0x3FFFF) / 16;
}
__device__ __forceinline__ void await_phase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}"
                 ::"r"(barrier), "r"(parity) : "memory");
}
// Starts the copy of a box into the blocks of the cluster that `mask` names, at the same place in each.
__device__ __forceinline__ void fetch(unsigned to, const TensorMap *map, unsigned barrier, int x, int y, unsigned short mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                 ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask) : "memory");
}

extern "C" __global__ void __launch_bounds__(288, 1) multiply_wgmma(const __grid_constant__ TensorMap tm_a,
    const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y, int K)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned tiles = (shared_address(memory) + 1023) & ~1023u;
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const int row0 = blockIdx.y * 128, col0 = blockIdx.x * 256, rank = blockIdx.y % 2, slices = (K + 63) / 64;
    const auto meet = [] { __syncwarp(); asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); };
    if (threadIdx.x < 2 * STAGES) // full by one thread that fetches; empty by eight warps of either block
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;"
                     ::"r"(full + threadIdx.x * 8), "r"(threadIdx.x < STAGES ? 1 : 16) : "memory");
    __syncwarp(); // the fence above has released the barriers: this meeting needs no fence of its own
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (warp == 8) {
        for (int s = 0; lane == 0 && s < slices; ++s) {
            const unsigned stage = s % STAGES, at = tiles + stage * STAGE_BYTES, ready = full + stage * 8;
            await_phase(empty + stage * 8, (s / STAGES + 1) % 2);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ready), "r"(STAGE_BYTES) : "memory");
            fetch(at, &tm_a, ready, s * 64, row0, 1 << rank);
            fetch(at + A_BYTES + rank * 16384, &tm_b, ready, col0 + rank * 128, s * 64, 3);
            fetch(at + A_BYTES + rank * 16384 + 8192, &tm_b, ready, col0 + rank * 128 + 64, s * 64, 3);
        }
        meet();
        return;
    }
    float acc[4][8][4] = {};
    for (int s = 0; s < slices; ++s) {
        const unsigned stage = s % STAGES, at = tiles + stage * STAGE_BYTES;
        await_phase(full + stage * 8, s / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        _Pragma("unroll") for (int k = 0; k < 64; k += 16)
            wgmma(acc, describe(at + warp / 4 * 8192 + k * 2, 16), describe(at + A_BYTES + k * 128, 8192));
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
        // The slice before is multiplied: tell both blocks that its stage is free here. Only wgmma has read it, and is done, and no
        // thread has written anything that the signal would publish; so it does not release to the cluster, which costs a fence.
        if (s > 0 && lane < 2)
            asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}"
                         ::"r"(empty + (s - 1) % STAGES * 8), "r"(lane) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("bar.sync %128, 128;" : ACC128 : "r"(1 + warp / 4) : "memory"); // this warpgroup is done with its rows of a
    _Pragma("unroll") for (int i = 0; i < 4; ++i) { // 16 x 64 a warp, in the place of its rows of a in stage i
        unsigned char *const to = memory + (tiles - shared_address(memory)) + i * STAGE_BYTES + warp * 2048;
        _Pragma("unroll") for (int j = 0; j < 8; ++j) {
            unsigned char *const p = to + lane / 4 * 128 + (j ^ (lane / 4)) * 16 + lane % 4 * 4;
            *reinterpret_cast<__nv_bfloat162 *>(p) = __floats2bfloat162_rn(acc[i][j][0], acc[i][j][1]);
            *reinterpret_cast<__nv_bfloat162 *>(p + 1024) = __floats2bfloat162_rn(acc[i][j][2], acc[i][j][3]);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0)
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\ncp.async.bulk.commit_group;"
                         ::"l"(&tm_y), "r"(col0 + i * 64), "r"(row0 + warp * 16), "r"(shared_address(to)) : "memory");
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    meet(); // no block leaves while the other may still signal it
}
