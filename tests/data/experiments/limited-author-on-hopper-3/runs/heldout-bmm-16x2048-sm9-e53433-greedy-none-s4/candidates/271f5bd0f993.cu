/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_a"
tensor = "a"
box = [1, 128, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_y"
tensor = "y"
box = [1, 16, 64]
swizzle = "128B"
[[launch]]
kernel = "multiply_tiles"
grid = ["2 * min(ceil_div(sm_count, 2), B * ceil_div(M, 256) * ceil_div(N, 256))"]
cluster = ["2"]
block = ["384"]
shared = "4 * 49152 + 8 * 4096 + 1024"
args = ["tm_a", "tm_b", "tm_y", "int B", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with mma.sync: 128 x 128 blocks of y, eight warps of 64 x 32, 32-deep slices double-buffered in shared memory by cp.async;
// still missing are wgmma fed by TMA, a deeper pipeline with specialized warps, an order of blocks that suits L2, and wide stores of y.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#define BM 128
#define BN 128
#define BK 32
#define THREADS 256
#define LDA (BK + 8) // 80 bytes a row: eight rows of ldmatrix fall into different banks
#define LDB (BN + 8) // 272 bytes a row: likewise
#define A_ELEMENTS (BM * LDA)
#define B_ELEMENTS (BK * LDB)

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return unsigned(__cvta_generic_to_shared(p));
}

// Sixteen bytes from global to shared memory; zeros, and nothing read, where inside is false.
static __device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all groups but the newest have arrived.
static __device__ __forceinline__ void wait_for_all_but_one()
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

static __device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ unsigned narrow(float low, float high)
{
    return unsigned(__bfloat16_as_ushort(__float2bfloat16(low))) |
           (unsigned(__bfloat16_as_ushort(__float2bfloat16(high))) << 16);
}

// Starts the copies of the slices of a and b that begin at k0.
static __device__ __forceinline__ void start_slice(unsigned sa, unsigned sb, const __nv_bfloat16 *a,
                                                   const __nv_bfloat16 *b, int tid, int row0, int col0, int k0, int M,
                                                   int N, int K)
{
#pragma unroll
    for (int s = 0; s < BM * (BK / 8) / THREADS; ++s) { // a: 128 rows of 4 chunks
        const int c = s * THREADS + tid;
        const int r = c / (BK / 8);
        const int k = (c % (BK / 8)) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        const __nv_bfloat16 *from = inside ? a + size_t(row0 + r) * K + k0 + k : a;
        copy_async(sa + (r * LDA + k) * 2, from, inside);
    }
#pragma unroll
    for (int s = 0; s < BK * (BN / 8) / THREADS; ++s) { // b: 32 rows of 16 chunks
        const int c = s * THREADS + tid;
        const int k = c / (BN / 8);
        const int n = (c % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        const __nv_bfloat16 *from = inside ? b + size_t(k0 + k) * N + col0 + n : b;
        copy_async(sb + (k * LDB + n) * 2, from, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 sa[2 * A_ELEMENTS]; // both together: 37888 bytes
    __shared__ __align__(16) __nv_bfloat16 sb[2 * B_ELEMENTS];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int warp_row = (warp / 4) * 64;
    const int warp_col = (warp % 4) * 32;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    a += size_t(blockIdx.z) * M * K;
    b += size_t(blockIdx.z) * K * N;
    y += size_t(blockIdx.z) * M * N;

    const unsigned sa0 = shared_address(sa);
    const unsigned sb0 = shared_address(sb);
    // Where in a slice this lane points ldmatrix, in bytes.
    const unsigned a_lane = ((warp_row + lane % 16) * LDA + (lane / 16) * 8) * 2;
    const unsigned b_lane = ((lane % 16) * LDB + warp_col + (lane / 16) * 8) * 2;

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int slices = (K + BK - 1) / BK;
    start_slice(sa0, sb0, a, b, tid, row0, col0, 0, M, N, K);
    commit_copies();

    for (int t = 0; t < slices; ++t) {
        const int now = t & 1;
        const int next = now ^ 1;
        if (t + 1 < slices)
            start_slice(sa0 + next * (A_ELEMENTS * 2), sb0 + next * (B_ELEMENTS * 2), a, b, tid, row0, col0,
                        (t + 1) * BK, M, N, K);
        commit_copies(); // an empty group after the last slice keeps the count right
        wait_for_all_but_one();
        __syncthreads();

        const unsigned a_now = sa0 + now * (A_ELEMENTS * 2) + a_lane;
        const unsigned b_now = sb0 + now * (B_ELEMENTS * 2) + b_lane;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[4][4];
            unsigned fb[2][4]; // each holds two column groups of eight
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(fa[i], a_now + (i * 16 * LDA + k) * 2);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], b_now + (k * LDB + j * 16) * 2);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(sum[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads(); // the next turn overwrites the slice just read
    }

    // A lane holds two neighbours of row lane / 4 and two of the row eight below; N is even, so pairs are not cut.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + warp_col + j * 8 + (lane % 4) * 2;
            if (col >= N)
                continue;
            if (row < M)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}

// What is launched: tiles of 128 x 256, two warpgroups of wgmma fed by TMA; the two blocks of a cluster lie one above the other and share b.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define STAGES 4
#define STAGE 49152u // bytes: 128 rows of 64 of a, then four panels of b, each 64 rows of 64
static __device__ __forceinline__ void wait_for_barrier(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra AGAIN; }" : : "r"(barrier), "r"(parity) : "memory");
}
static __device__ __forceinline__ void load_box(const TensorMap &map, unsigned to, unsigned barrier, int x, int y, int z, int blocks)
{
    if (blocks == 0) // to this block alone
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" : : "r"(to), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier) : "memory");
    else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" : : "r"(to), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"((unsigned short)blocks) : "memory");
}
static __device__ __forceinline__ void release_stage(unsigned barrier, unsigned block)
{
    asm volatile("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r]; }" : : "r"(barrier), "r"(block) : "memory");
}
static __device__ __forceinline__ void store_matrices(unsigned to, const float (&d)[128], int i)
{
    asm volatile("{ .reg .b32 r0, r1, r2, r3; cvt.rn.bf16x2.f32 r0, %2, %1; cvt.rn.bf16x2.f32 r1, %4, %3; cvt.rn.bf16x2.f32 r2, %6, %5; cvt.rn.bf16x2.f32 r3, %8, %7; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {r0, r1, r2, r3}; }" : : "r"(to), "f"(d[i]), "f"(d[i + 1]), "f"(d[i + 2]), "f"(d[i + 3]), "f"(d[i + 4]), "f"(d[i + 5]), "f"(d[i + 6]), "f"(d[i + 7]) : "memory");
}
#define F8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define F32(i) F8(i), F8(i + 8), F8(i + 16), F8(i + 24)
static __device__ __forceinline__ void wgmma(float (&d)[128], unsigned a, unsigned b, unsigned add)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
                 "}, %128, %129, p, 1, 1, 0, 1; }"
                 : F32(0), F32(32), F32(64), F32(96) : "l"(0x4000004000010000ull | a >> 4), "l"(0x4000004002000000ull | b >> 4), "r"(add) : "memory");
}
extern "C" __global__ void __launch_bounds__(384, 1)
    multiply_tiles(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y, int B, int M, int N, int K)
{
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * STAGES]; // full: one arrival and the bytes; empty: the eight warps of both blocks
    const unsigned base = (shared_address(dynamic) + 1023) & ~1023u;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32, rank = blockIdx.x % 2;
    const unsigned down = (M + 255) / 256, across = (N + 255) / 256, slices = (K + 63) / 64;
    if (threadIdx.x < STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 [%1], 16; fence.mbarrier_init.release.cluster;" : : "r"(full + 8 * threadIdx.x), "r"(empty + 8 * threadIdx.x) : "memory");
    asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" : : : "memory");
    if (warp >= 8) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (unsigned tile = blockIdx.x / 2, turn = 0; threadIdx.x == 256 && tile < down * across * B; tile += gridDim.x / 2)
            for (unsigned t = 0; t < slices; ++t, ++turn) {
                const unsigned to = base + turn % STAGES * STAGE, bar = full + turn % STAGES * 8;
                const unsigned col = tile / down % across * 256 + rank * 128, i = tile / down / across;
                wait_for_barrier(bar + 8 * STAGES, ~(turn / STAGES) & 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(bar), "r"(STAGE) : "memory");
                load_box(tm_a, to, bar, t * 64, (tile % down * 2 + rank) * 128, i, 0);
                load_box(tm_b, to + 16384 + rank * 16384, bar, col, t * 64, i, 3); // half of b, to both blocks
                load_box(tm_b, to + 24576 + rank * 16384, bar, col + 64, t * 64, i, 3);
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[128] = {};
        if (warp >= 4 && slices > 2)
            wait_for_barrier(full + 16, 0); // start two slices late: one warpgroup stores while the other multiplies
        for (unsigned tile = blockIdx.x / 2, turn = 0; tile < down * across * B; tile += gridDim.x / 2) {
            const unsigned row = (tile % down * 2 + rank) * 128 + warp * 16, col = tile / down % across * 256, i = tile / down / across;
            for (unsigned t = 0; t < slices; ++t, ++turn) {
                const unsigned from = (base + turn % STAGES * STAGE) & 0x3ffff; // without the rank in bit 24, which would reach a descriptor's stride
                wait_for_barrier(full + turn % STAGES * 8, turn / STAGES & 1);
                asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
                for (unsigned k = 0; k < 4; ++k)
                    wgmma(d, from + warp / 4 * 8192 + k * 32, from + 16384 + k * 2048, t | k);
                asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" : : : "memory");
                if (t > 0 && lane < 2) release_stage(empty + (turn - 1) % STAGES * 8, lane);
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" : F32(0), F32(32), F32(64), F32(96) : : "memory");
            if (lane < 2) release_stage(empty + (turn - 1) % STAGES * 8, lane);
#pragma unroll
            for (int p = 0; p < 4; ++p) { // panels of 64 columns, through two buffers a warp
                const unsigned to = base + STAGES * STAGE + warp * 4096 + p % 2 * 2048;
                asm volatile("cp.async.bulk.wait_group.read 1;" : : : "memory"); __syncwarp();
#pragma unroll
                for (int j = 0; j < 8; j += 2)
                    store_matrices(to + lane % 16 * 128 + ((j + lane / 16) ^ (lane % 8)) * 16, d, p * 32 + j * 4);
                asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); __syncwarp();
                if (lane == 0)
                    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4]; cp.async.bulk.commit_group;" : : "l"(&tm_y), "r"(col + p * 64), "r"(row), "r"(i), "r"(to) : "memory");
            }
        }
    }
    asm volatile("cp.async.bulk.wait_group 0; barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" : : : "memory");
}
