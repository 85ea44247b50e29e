/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_wide"
grid = ["min(sm_count, ceil_div(N, 256) * ceil_div(M, 128) * B)"]
block = ["32", "12"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "y", "int B", "int M", "int N", "int K"]
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
struct alignas(64) TensorMap { unsigned long long opaque[16]; }; // What is launched is multiply_wide: wgmma fed by TMA, 128 x 256 sums a block.
#define SUMS8(j) "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3]), "+f"(sum[j + 1][0]), "+f"(sum[j + 1][1]), "+f"(sum[j + 1][2]), "+f"(sum[j + 1][3])
static __device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity) // until the phase with this parity has ended
{ for (unsigned done = 0; !done;) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier), "r"(parity) : "memory"); }
static __device__ __forceinline__ void trade(unsigned &low, unsigned &high, int mask) // the high one of this lane for the low one of the lane mask above
{ const unsigned got = __shfl_xor_sync(0xffffffffu, (threadIdx.x & mask) ? low : high, mask); if (threadIdx.x & mask) low = got; else high = got; }
// Four lanes of a row trade pairs, so that each has eight neighbours; down and right: how many rows and columns of y there are from to on.
static __device__ __forceinline__ void store_sums(unsigned (&out)[16][4], __nv_bfloat16 *to, int down, int right, int N)
{
    _Pragma("unroll") for (int i = 0; i < 16; ++i) {
        trade(out[i][0], out[i][1], 1); trade(out[i][2], out[i][3], 1); trade(out[i][0], out[i][2], 2); trade(out[i][1], out[i][3], 2);
        if (down > i % 2 * 8 && right > i / 2 * 32) *reinterpret_cast<uint4 *>(to + size_t(i % 2 * 8) * N + i / 2 * 32) = make_uint4(out[i][0], out[i][1], out[i][2], out[i][3]);
    }
}
extern "C" __global__ void __launch_bounds__(384, 1) multiply_wide(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, __nv_bfloat16 *y, int B, int M, int N, int K) {
    extern __shared__ unsigned char dynamic[]; __shared__ __align__(8) unsigned long long barriers[8]; // of four stages: full, then empty
    const unsigned ring = (shared_address(dynamic) + 1023) & ~1023u, full = shared_address(barriers); // a stage: four boxes of b, then one of a
    const int lane = threadIdx.x, warp = __shfl_sync(0xffffffffu, int(threadIdx.y), 0), slices = (K + 63) / 64, cols = (N + 255) / 256, rows = (M + 127) / 128;
    for (int s = 0; s < 8 && lane + warp == 0; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(full + 8 * s), "r"(s < 4 ? 1 : 8) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); __syncthreads();
    if (warp >= 8) { // a warpgroup that gives its registers to the others
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");
        for (unsigned tile = blockIdx.x, turn = 0; warp == 8 && lane == 0 && tile < unsigned(cols * rows * B); tile += gridDim.x) { // turn: slabs so far
        const int col0 = int(tile % cols) * 256, row0 = int(tile / cols % rows) * 128, z = int(tile / cols / rows);
        for (int t = 0; t < slices; ++t, ++turn) { // one thread keeps the ring full
            const unsigned to = ring + turn % 4 * 49152, arrived = full + turn % 4 * 8;
            wait_phase(arrived + 32, (turn / 4 & 1) ^ 1); asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(arrived), "r"(49152) : "memory");
            _Pragma("unroll") for (int j = 0; j < 5; ++j)
                asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" : : "r"(to + j * 8192), "l"(j < 4 ? &tm_b : &tm_a), "r"(j < 4 ? col0 + j * 64 : t * 64), "r"(j < 4 ? t * 64 : row0), "r"(z), "r"(arrived) : "memory");
        }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory");
    const int late = slices > 1; // the slab of a tile in whose shadow the sums of the tile before are stored
    float sum[32][4] = {};
    unsigned out[16][4] = {}; // the sums of the tile before, rounded; to, down and right: where they go, nowhere yet
    __nv_bfloat16 *to = y;
    int down = 0, right = 0;
    for (unsigned tile = blockIdx.x, turn = 0; tile < unsigned(cols * rows * B); tile += gridDim.x) { // the same tiles, and turn counts alike
        _Pragma("unroll 1") for (int t = 0; t < slices; ++t, ++turn) {
            const unsigned b_now = ring + turn % 4 * 49152, a_now = b_now + 32768 + warp / 4 * 8192;
            wait_phase(full + turn % 4 * 8, turn / 4 & 1); asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            _Pragma("unroll") for (int k = 0; k < 4; ++k) // b: 1024 bytes from eight rows of K to the next, 8192 from 64 columns to the next
                asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1; }"
                             : SUMS8(0), SUMS8(2), SUMS8(4), SUMS8(6), SUMS8(8), SUMS8(10), SUMS8(12), SUMS8(14), SUMS8(16), SUMS8(18), SUMS8(20), SUMS8(22), SUMS8(24), SUMS8(26), SUMS8(28), SUMS8(30) : "l"(1ull << 62 | 64ull << 32 | 1ull << 16 | (a_now + k * 32) >> 4), "l"(1ull << 62 | 64ull << 32 | 512ull << 16 | (b_now + k * 2048) >> 4), "r"(t + k)); // t + k = 0: the old sums are left out
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            if (t == late) store_sums(out, to, down, right, N); // while the products are made
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // the slab before is done with
            if (t > 0 && lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(full + 32 + (turn - 1) % 4 * 8) : "memory");
        }
        const int row = int(tile / cols % rows) * 128 + warp * 16 + lane / 4, col = int(tile % cols) * 256 + lane % 4 * 8;
        to = y + (size_t(tile / cols / rows) * M + row) * N + col; down = M - row; right = N - col;
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(full + 32 + (turn - 1) % 4 * 8) : "memory"); // the last slab of the tile
        _Pragma("unroll") for (int i = 0; i < 64; ++i) // out[2 * g + h]: of row h * 8, four pairs, each of the next eight columns
            asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out[i / 4][i % 4]) : "f"(sum[i / 8 * 4 + i % 4][i / 4 % 2 * 2 + 1]), "f"(sum[i / 8 * 4 + i % 4][i / 4 % 2 * 2]));
    }
    store_sums(out, to, down, right, N);
}
