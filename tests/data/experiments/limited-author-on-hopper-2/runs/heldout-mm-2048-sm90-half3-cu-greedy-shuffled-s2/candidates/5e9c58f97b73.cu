/*klineage
surface = "cuda"
tensormap = [{ name = "tm_a", tensor = "a", box = [128, 64], swizzle = "128B", l2_promotion = "256B" },
    { name = "tm_b", tensor = "b", box = [64, 64], swizzle = "128B", l2_promotion = "256B" },
    { name = "tm_y", tensor = "y", box = [16, 64], swizzle = "128B" }]

[[launch]]
kernel = "multiply_wgmma"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
block = ["256"]
cluster = ["1", "2"]
shared = "197696"
pdl = true
args = ["tm_a", "tm_b", "tm_y", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Launched is multiply_wgmma, at the end (wgmma, TMA, clusters of two); the following is of multiply, the state before it:
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

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define EIGHT(c, i) c(acc[i]), c(acc[(i) + 1]), c(acc[(i) + 2]), c(acc[(i) + 3]), c(acc[(i) + 4]), c(acc[(i) + 5]), c(acc[(i) + 6]), c(acc[(i) + 7])
// One of four stages: 128 x 64 of a, then four boxes of 64 x 64 of b, of which each block of the cluster brings two to both.
__device__ __forceinline__ void fill(const TensorMap &tm_a, const TensorMap &tm_b, unsigned base, int s, int row0, int col0) {
    const unsigned to = base + s % 4 * 49152, bt = to + 16384 + blockIdx.y % 2 * 16384, col = col0 + blockIdx.y % 2 * 128;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 49152;\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2, {%3, %4}], [%0];\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%5], [%6, {%7, %3}], [%0], %8;\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%9], [%6, {%10, %3}], [%0], %8;\n"
                 ::"r"(base + 4 * 49152 + s % 4 * 8), "r"(to), "l"(&tm_a), "r"(s * 64), "r"(row0), "r"(bt), "l"(&tm_b), "r"(col), "h"(static_cast<unsigned short>(3)), "r"(bt + 8192), "r"(col + 64) : "memory");
}
extern "C" __global__ void __launch_bounds__(256, 1)
    multiply_wgmma(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y, int K) {
    extern __shared__ unsigned char raw[];
    const int lane = threadIdx.x % 32, warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), row0 = blockIdx.y * 128, col0 = blockIdx.x * 256, slices = (K + 63) / 64;
    const unsigned base = (shared_address(raw) + 1023) / 1024 * 1024, bars = base + 4 * 49152, out = base + warp * 8192;
    float acc[128] = {};
    if (threadIdx.x < 4) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(bars + threadIdx.x * 8) : "memory");
    if (threadIdx.x == 32) asm volatile("prefetch.tensormap [%0];\n prefetch.tensormap [%1];\n prefetch.tensormap [%2];" ::"l"(&tm_a), "l"(&tm_b), "l"(&tm_y) : "memory");
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("griddepcontrol.wait;\n griddepcontrol.launch_dependents;" ::: "memory"); // all before touches no tensor: it overlaps the launch before
    for (int s = 0; threadIdx.x == 0 && s < 4 && s < slices; ++s) fill(tm_a, tm_b, base, s, row0, col0);
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); // waited for in the loop, as is that at the end of each round
    for (int s = 0; s < slices; ++s) {
        asm volatile("{\n .reg .pred p;\n W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra W;\n }\n wgmma.fence.sync.aligned;" ::"r"(bars + s % 4 * 8), "r"(s / 4 % 2) : "memory");
        const unsigned at = (base + s % 4 * 49152) & 0x3ffff; // without the rank in the cluster, which the upper bits of an address hold
        const unsigned long long da = 0x4000004000010000ull | (at + warp / 4 * 8192) >> 4; // K-major, 128B swizzle
        const unsigned long long db = 0x4000004002000000ull | (at + 16384) >> 4;           // N-major: 8192 to the next 64 of N
#pragma unroll
        for (int k = 0; k < 4; ++k)
            asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %130, 0;\n wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                         "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n }"
                         : EIGHT("+f", 0), EIGHT("+f", 8), EIGHT("+f", 16), EIGHT("+f", 24), EIGHT("+f", 32), EIGHT("+f", 40), EIGHT("+f", 48), EIGHT("+f", 56), EIGHT("+f", 64), EIGHT("+f", 72), EIGHT("+f", 80), EIGHT("+f", 88), EIGHT("+f", 96), EIGHT("+f", 104), EIGHT("+f", 112), EIGHT("+f", 120) : "l"(da + 2 * k), "l"(db + 128 * k), "r"(1));
        asm volatile("wgmma.commit_group.sync.aligned;\n barrier.cluster.wait.aligned;" ::: "memory"); // both blocks are done with s - 2
        if (threadIdx.x == 0 && s >= 2 && s + 2 < slices) fill(tm_a, tm_b, base, s + 2, row0, col0); // into the stage of s - 2
        __syncwarp();
        asm volatile("wgmma.wait_group.sync.aligned 1;\n barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); // done with s - 1
    }
    asm volatile("barrier.cluster.wait.aligned;\n wgmma.wait_group.sync.aligned 0;\n bar.sync 0;" ::: "memory"); // stages become room for y
#pragma unroll
    for (int i = 0; i < 16; ++i)
        asm volatile("{\n .reg .b32 r<4>;\n cvt.rn.bf16x2.f32 r0, %2, %1;\n cvt.rn.bf16x2.f32 r1, %4, %3;\n cvt.rn.bf16x2.f32 r2, %6, %5;\n cvt.rn.bf16x2.f32 r3, %8, %7;\n stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {r0, r1, r2, r3};\n }"
                     ::"r"(out + i / 4 * 2048 + lane % 16 * 128 + ((i % 4 * 2 + lane / 16) ^ (lane % 8)) * 16), EIGHT("f", 8 * i) : "memory");
    asm volatile("fence.proxy.async.shared::cta;\n bar.warp.sync 0xffffffff;" ::: "memory");
    if (lane < 4) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n cp.async.bulk.commit_group;\n cp.async.bulk.wait_group.read 0;" ::"l"(&tm_y), "r"(col0 + lane * 64), "r"(row0 + warp * 16), "r"(out + lane * 2048) : "memory");
}
