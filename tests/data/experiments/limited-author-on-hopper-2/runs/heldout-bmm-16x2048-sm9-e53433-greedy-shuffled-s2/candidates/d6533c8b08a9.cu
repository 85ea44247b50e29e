/*klineage
surface = "cuda"
tensormap = [{ name = "tm_a", tensor = "a", box = [1, 128, 64], swizzle = "128B", l2_promotion = "256B" }, { name = "tm_b", tensor = "b", box = [1, 64, 64], swizzle = "128B", l2_promotion = "256B" }, { name = "tm_y", tensor = "y", box = [1, 16, 64], swizzle = "128B" }]

[[launch]]
kernel = "multiply_wide"
grid = ["min(round_up(sm_count, 2), ceil_div(M, 256) * 2 * ceil_div(N, 256) * B)"]
cluster = ["2"]
block = ["32", "12"]
shared = "230464"
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
// Launched in place of multiply: wgmma fed by TMA; persistent blocks of 128 x 256, one producer warp, two consuming warpgroups of 64 x 256, four stages, y stored by TMA.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define R8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define R128(d) R8(d, 0), R8(d, 8), R8(d, 16), R8(d, 24), R8(d, 32), R8(d, 40), R8(d, 48), R8(d, 56), R8(d, 64), R8(d, 72), R8(d, 80), R8(d, 88), R8(d, 96), R8(d, 104), R8(d, 112), R8(d, 120)
static __device__ __forceinline__ void multiply_add_wide(float (&d)[128], unsigned long long a, unsigned long long b, int keep) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1; }" : R128(d) : "l"(a), "l"(b), "r"(keep) : "memory"); }
static __device__ __forceinline__ void wait_for_phase(unsigned bar, int parity) { asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(bar), "r"(parity) : "memory"); }
// Arrives at the barrier of that block of the pair, where here is not 0.
static __device__ __forceinline__ void arrive_if(unsigned bar, int block, int here) { asm volatile("{ .reg .pred p; .reg .b32 r; setp.ne.b32 p, %2, 0; @p mapa.shared::cluster.u32 r, %0, %1; @p mbarrier.arrive.shared::cluster.b64 _, [r]; }" ::"r"(bar), "r"(block), "r"(here) : "memory"); }
static __device__ __forceinline__ void meet_pair() { __syncwarp(); asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
static __device__ __forceinline__ void copy_box(unsigned to, const TensorMap *map, int x, int y, int z, unsigned bar) { asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar) : "memory"); }
static __device__ __forceinline__ void copy_box_to_both(unsigned to, const TensorMap *map, int x, int y, int z, unsigned bar) { asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar), "h"((unsigned short)3) : "memory"); }
extern "C" __global__ void __launch_bounds__(384, 1) multiply_wide(const __grid_constant__ TensorMap ta, const __grid_constant__ TensorMap tb, const __grid_constant__ TensorMap ty, int B, int M, int N, int K) {
    extern __shared__ __align__(1024) unsigned char room[]; // four slices of a (16 KB) and b (four boxes of 8 KB), 4 KB of y a warp, four barriers "full" and four "empty"
    // down is even, so that the two blocks of a cluster have the same columns of the same product, and share b
    const int lane = threadIdx.x, warp = __shfl_sync(0xffffffffu, int(threadIdx.y), 0), slices = (K + 63) / 64, down = (M + 255) / 256 * 2, across = (N + 255) / 256, tiles = down * across * B;
    const unsigned ring = (shared_address(room) + 1023u) & ~1023u, full = ring + 4 * 49152 + 32768, empty = full + 32;
    if (warp == 0 && lane < 8) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + lane * 8), "r"(lane < 4 ? 1 : 16) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory"); __syncthreads(); meet_pair();
    int q = 0; // slices so far, counted on from tile to tile; slice q lies in place q & 3
    if (warp >= 8) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int tile = warp == 8 && lane == 0 ? int(blockIdx.x) : tiles; tile < tiles; tile += int(gridDim.x))
            for (int t = 0; t < slices; ++t, ++q) {
                const int m = tile % down * 128, n = tile / down % across * 256, i = tile / down / across, to = ring + (q & 3) * 49152, bar = full + (q & 3) * 8;
                wait_for_phase(empty + (q & 3) * 8, (q >> 2 & 1) ^ 1); asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(49152) : "memory");
                copy_box(to, &ta, t * 64, m, i, bar); // what lies outside arrives as zeros and counts as bytes
                const int half = int(blockIdx.x & 1) * 2; // this block fetches two of b's boxes for both, the other block the other two
                _Pragma("unroll") for (int j = 0; j < 2; ++j) copy_box_to_both(to + 16384 + (half + j) * 8192, &tb, n + (half + j) * 64, t * 64, i, bar); }
        meet_pair(); return; }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); float sum[128] = {};
    for (int tile = blockIdx.x; tile < tiles; tile += int(gridDim.x)) {
        for (int t = 0; t < slices; ++t, ++q) {
            wait_for_phase(full + (q & 3) * 8, q >> 2 & 1); asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            const unsigned long long at = (1ull << 62 | 64ull << 32) + ((ring + (q & 3) * 49152) >> 4); // 128-byte swizzle, 1024 bytes from eight rows to the next; b: 8192 from box to box
            _Pragma("unroll") for (int k = 0; k < 4; ++k) multiply_add_wide(sum, at + (1ull << 16) + warp / 4 * 512 + k * 2, at + (512ull << 16) + 1024 + k * 128, t + k);
            asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" ::: "memory");
            arrive_if(empty + ((q + 3) & 3) * 8, lane, t > 0 && lane < 2); } // this warp has read slice q - 1: lane 0 tells the one block, lane 1 the other
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); _Pragma("unroll") for (int e = 0; e < 128; ++e) asm volatile("" : "+f"(sum[e]) : : "memory");
        arrive_if(empty + ((q + 3) & 3) * 8, lane, lane < 2); // and the last one of the tile
        const int row = tile % down * 128 + warp * 16, col = tile / down % across * 256, i = tile / down / across;
        _Pragma("unroll") for (int c = 0; c < 4; ++c) { // 16 rows of 64 columns at a time, in one of the warp's two rooms of 2 KB
            const unsigned at = ring + 4 * 49152 + warp * 4096 + (c & 1) * 2048;
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); __syncwarp(); // the room's last store has been read
            _Pragma("unroll") for (int p = 0; p < 4; ++p) asm volatile("{ .reg .b32 w<4>; cvt.rn.bf16x2.f32 w0, %2, %1; cvt.rn.bf16x2.f32 w1, %4, %3; cvt.rn.bf16x2.f32 w2, %6, %5; cvt.rn.bf16x2.f32 w3, %8, %7; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {w0, w1, w2, w3}; }" ::"r"(at + lane % 16 * 128 + ((p * 2 + lane / 16) ^ (lane % 8)) * 16), "f"(sum[c * 32 + p * 8]), "f"(sum[c * 32 + p * 8 + 1]), "f"(sum[c * 32 + p * 8 + 2]), "f"(sum[c * 32 + p * 8 + 3]), "f"(sum[c * 32 + p * 8 + 4]), "f"(sum[c * 32 + p * 8 + 5]), "f"(sum[c * 32 + p * 8 + 6]), "f"(sum[c * 32 + p * 8 + 7]) : "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncwarp();
            if (lane == 0) asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4]; cp.async.bulk.commit_group;" ::"l"(&ty), "r"(col + c * 64), "r"(row), "r"(i), "r"(at) : "memory");
        } __syncwarp(); }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); meet_pair(); } // neither block leaves while the other may still arrive at its barriers
