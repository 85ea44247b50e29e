/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["min(sm_count, ceil_div(N, 256) * ceil_div(M, 128) * B)"]
block = ["32", "9"]
shared = "4 * 49152 + 64"
args = ["tm_a", "tm_b", "y", "int M", "int N", "int K", "int B"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [1, 64, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with wgmma: 128 x 256 tiles of y, two warpgroups of 64 x 256, a ring of four 64-deep slabs filled by TMA from a warp of its own, across the tiles of a resident block;
// still missing are multicast in clusters, and wide stores of y.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#define BM 128
#define BN 256
#define BK 64
#define THREADS 256
#define LDA (BK + 8) // 80 bytes a row: eight rows of ldmatrix fall into different banks
#define LDB (BN + 8) // 272 bytes a row: likewise
#define A_ELEMENTS (BM * LDA)
#define B_ELEMENTS (BK * LDB)

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
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
    asm volatile("cp.async.wait_group 2; fence.proxy.async.shared::cta;" ::: "memory"); // three stages: but two, shown to wgmma
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

#define ROW(r) "+f"(r[0][0]), "+f"(r[0][1]), "+f"(r[0][2]), "+f"(r[0][3]), "+f"(r[1][0]), "+f"(r[1][1]), "+f"(r[1][2]), "+f"(r[1][3]), "+f"(r[2][0]), "+f"(r[2][1]), "+f"(r[2][2]), "+f"(r[2][3]), "+f"(r[3][0]), "+f"(r[3][1]), "+f"(r[3][2]), "+f"(r[3][3])
static __device__ __forceinline__ void multiply_add(float (&c)[8][4][4], unsigned a, unsigned b, int accumulate) // a: K-major; b: N-major, panels of 64
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1; }"
                 : ROW(c[0]), ROW(c[1]), ROW(c[2]), ROW(c[3]), ROW(c[4]), ROW(c[5]), ROW(c[6]), ROW(c[7])
                 : "l"(a >> 4 | 1ull << 62 | 64ull << 32 | 1ull << 16), "l"(b >> 4 | 1ull << 62 | 64ull << 32 | 512ull << 16), "r"(accumulate));
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
        copy_async(sa + r * 128 + ((k * 2) ^ ((r & 7) << 4)), from, inside);
    }
#pragma unroll
    for (int s = 0; s < BK * (BN / 8) / THREADS; ++s) { // b: 32 rows of 16 chunks
        const int c = s * THREADS + tid;
        const int k = c / (BN / 8);
        const int n = (c % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        const __nv_bfloat16 *from = inside ? b + size_t(k0 + k) * N + col0 + n : b;
        copy_async(sb + n / 64 * 8192 + k * 128 + ((n % 64 * 2) ^ ((k & 7) << 4)), from, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS + 32, 1)
    multiply(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, __nv_bfloat16 *out, int M, int N, int K, int B)
{
    extern __shared__ __align__(1024) __nv_bfloat16 sa[]; // four stages of 16384 bytes of a and 32768 of b, then their barriers
    const unsigned full = shared_address(sa) + 4 * 49152, empty = full + 32;

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int warp_row = (warp / 4) * 64;
    const int warp_col = (warp % 4) * 32;
    const int columns = (N + BN - 1) / BN, rows = (M + BM - 1) / BM;
    const int slices = (K + BK - 1) / BK; // of a tile

    if (tid < 8) // full: one arrival, and the bytes; empty: an arrival of each multiplying warp
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;" : : "r"(full + tid * 8), "r"(tid < 4 ? 1 : 8) : "memory");
    __syncthreads();

    const unsigned sa0 = shared_address(sa);
    // Where in a slice this lane points ldmatrix, in bytes.
    const unsigned a_lane = warp_row * 128; // the 64 rows of this warpgroup

    if (warp == 8) { // the ninth warp: one lane fills the ring with the slabs of this block's tiles, which follow one another without a gap
        for (int tile = blockIdx.x, g = 0; lane == 0 && tile < columns * rows * B; tile += gridDim.x) {
            const int m = tile / columns % rows * BM, n = tile % columns * BN, batch = tile / columns / rows;
            for (int t = 0; t < slices; ++t, ++g) {
                const unsigned stage = sa0 + g % 4 * 49152, landed = full + g % 4 * 8;
                const int k = t * BK;
                asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" : : "r"(empty + g % 4 * 8), "r"((g / 4 & 1) ^ 1) : "memory"); // at once in the first round
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(landed), "r"(49152) : "memory");
#pragma unroll
                for (int p = 0; p < 6; ++p) // two boxes of a, four of b; zeros past the edges
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" : : "r"(stage + p * 8192), "l"(p < 2 ? &map_a : &map_b), "r"(p < 2 ? k : n + p * 64 - 128), "r"(p < 2 ? m + p * 64 : k), "r"(batch), "r"(landed) : "memory");
            }
        }
        return;
    }

    float sum[8][4][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const auto release = [&](int g) { // this warp has left slab g
        if (lane == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(empty + g % 4 * 8) : "memory");
        __syncwarp();
    };
    for (int tile = blockIdx.x, g = 0; tile < columns * rows * B; tile += gridDim.x) {
    const int row0 = tile / columns % rows * BM, col0 = tile % columns * BN;
    __nv_bfloat16 *const y = out + size_t(tile / columns / rows) * M * N;
    for (int t = 0; t < slices; ++t, ++g) {
        asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}\nwgmma.fence.sync.aligned;" : : "r"(full + g % 4 * 8), "r"(g / 4 & 1) : "memory");
        const unsigned a_now = sa0 + g % 4 * 49152 + a_lane;
        const unsigned b_now = sa0 + g % 4 * 49152 + 16384;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            multiply_add(sum, a_now + k * 2, b_now + k * 128, t + k > 0);
        }
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" : : : "memory"); // all but this slab's
        if (t > 0) // the last slab of a tile is released below
            release(g - 1);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : ROW(sum[0]), ROW(sum[1]), ROW(sum[2]), ROW(sum[3]), ROW(sum[4]), ROW(sum[5]), ROW(sum[6]), ROW(sum[7]) : : "memory");
    release(g - 1); // before the stores, so that the ring is full again after them

    // A lane holds two neighbours of row lane / 4 and two of the row eight below; N is even, so pairs are not cut.
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row0 + warp_row + warp_col / 2 + lane / 4; // 16 rows a warp
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + i * 32 + j * 8 + (lane % 4) * 2;
            if (col >= N)
                continue;
            if (row < M)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
    }
}
