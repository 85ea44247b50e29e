/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_ring"
grid = ["min(round_up(sm_count - 1, 2), 2 * B * ceil_div(M, 256) * ceil_div(N, 256))"]
cluster = ["2"]
block = ["32", "9"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "y", "int B", "int M", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [1, 128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with wgmma fed by TMA: clusters of two resident blocks, each 128 x 256 of y at a time, 64-deep slices in a ring of four
// stages, one warp that loads (b once for both blocks) and two warpgroups of 64 x 256. Between #if 0 and #endif: the form before, by mma.sync.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#if 0
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
#endif

#define STAGES 4
#define STAGE_BYTES 49152 // a: 128 rows of 64; from byte 16384 on b: four boxes of 64 rows of 64 columns, 8192 bytes each
#define SUMS8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(d, i) SUMS8(d, i), SUMS8(d, i + 8), SUMS8(d, i + 16), SUMS8(d, i + 24)
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

static __device__ __forceinline__ void wait_for_phase(unsigned barrier, unsigned parity) {
    for (unsigned done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}
static __device__ __forceinline__ void load_box(unsigned to, const TensorMap *map, unsigned barrier, int x, int y, int z, bool both) {
    if (both) asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" : : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"((unsigned short)3) : "memory");
    else asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" : : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}
static __device__ __forceinline__ void arrive_at(unsigned barrier, int block) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" : : "r"(barrier), "r"(block) : "memory");
}
static __device__ __forceinline__ void exchange(unsigned &low, unsigned &high, int distance, bool upper) {
    const unsigned other = __shfl_xor_sync(0xffffffffu, upper ? low : high, distance);
    low = upper ? other : low;
    high = upper ? high : other;
}
static __device__ __forceinline__ void multiply_add_64x256(float (&d)[128], unsigned long long a, unsigned long long b, int accumulate) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1; }"
                 : SUMS32(d, 0), SUMS32(d, 32), SUMS32(d, 64), SUMS32(d, 96) : "l"(a), "l"(b), "r"(accumulate));
}

extern "C" __global__ void __launch_bounds__(288, 1)
    multiply_ring(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, __nv_bfloat16 *y, int B, int M, int N, int K) {
    extern __shared__ __align__(1024) unsigned char dynamic[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES]; // that a stage is full, then that it is empty
    const int lane = threadIdx.x, warp = __shfl_sync(0xffffffffu, int(threadIdx.y), 0), rank = blockIdx.x & 1;
    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamic)) + 1023) & ~1023u, full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;
    for (int s = 0; s < STAGES && lane == 0 && warp == 0; ++s) // full: the loading thread; empty: eight warps of each block
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 [%1], 16; fence.mbarrier_init.release.cluster;" : : "r"(full + 8 * s), "r"(empty + 8 * s) : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    const int across = (N + 255) / 256, pairs = (M + 255) / 256, tiles = B * pairs * across, slices = (K + 63) / 64;
    unsigned turn = 0; // slices so far
    if (warp == 8 && lane == 0) {
        for (int tile = blockIdx.x / 2; tile < tiles; tile += gridDim.x / 2) {
            const int batch = tile / (pairs * across), row0 = tile / across % pairs * 256 + rank * 128, col0 = tile % across * 256 + rank * 128;
            for (int k = 0; k < slices; ++k, ++turn) { // a for this block; of b the two boxes of this rank, for both blocks
                const unsigned s = turn % STAGES, to = ring + s * STAGE_BYTES, b_to = to + 16384 + rank * 16384;
                wait_for_phase(empty + 8 * s, ((turn / STAGES) & 1) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(full + 8 * s), "r"(STAGE_BYTES) : "memory");
                load_box(to, &tm_a, full + 8 * s, k * 64, row0, batch, false);
                load_box(b_to, &tm_b, full + 8 * s, col0, k * 64, batch, true);
                load_box(b_to + 8192, &tm_b, full + 8 * s, col0 + 64, k * 64, batch, true);
            }
        }
    } else if (warp < 8) {
        const unsigned long long form = (1ull << 62) | (64ull << 32); // swizzle of 128 bytes; 1024 bytes from eight rows to the next
        for (int tile = blockIdx.x / 2; tile < tiles; tile += gridDim.x / 2) {
            const int batch = tile / (pairs * across), row = tile / across % pairs * 256 + rank * 128 + warp * 16 + lane / 4, col = tile % across * 256 + lane % 4 * 8;
            float d[128];
            for (int k = 0; k < slices; ++k, ++turn) {
                const unsigned s = turn % STAGES, at = ((ring + s * STAGE_BYTES) & 0x3ffffu) >> 4; // without the rank, which stands in bit 24
                wait_for_phase(full + 8 * s, (turn / STAGES) & 1);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int i = 0; i < 4; ++i) // 16 deep: 32 bytes further in the rows of a, 16 rows further in b, whose boxes are 8192 bytes apart
                    multiply_add_64x256(d, form | (1ull << 16) | (at + warp / 4 * 512 + i * 2), form | (512ull << 16) | (at + 1024 + i * 128), k + i);
                asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (k > 0 && lane < 2) arrive_at(empty + 8 * ((turn - 1) % STAGES), lane); // the slice before has been read
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(d[i]) : : "memory"); // no sum is read before the wait
            if (lane < 2) arrive_at(empty + 8 * ((turn - 1) % STAGES), lane);
#pragma unroll
            for (int i = 0; i < 16; ++i) { // 32 columns of a row, odd i those of the row eight below: four lanes swap pairs for chunks of eight
                unsigned w[4];
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w[j]) : "f"(d[i / 2 * 16 + j * 4 + i % 2 * 2 + 1]), "f"(d[i / 2 * 16 + j * 4 + i % 2 * 2]));
                exchange(w[0], w[1], 1, lane & 1), exchange(w[2], w[3], 1, lane & 1);
                exchange(w[0], w[2], 2, lane & 2), exchange(w[1], w[3], 2, lane & 2);
                const int r = row + i % 2 * 8, c = col + i / 2 * 32;
                if (r < M && c < N) *reinterpret_cast<uint4 *>(y + (size_t(batch) * M + r) * N + c) = make_uint4(w[0], w[1], w[2], w[3]);
            }
        }
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); // the other block may still arrive here
}
