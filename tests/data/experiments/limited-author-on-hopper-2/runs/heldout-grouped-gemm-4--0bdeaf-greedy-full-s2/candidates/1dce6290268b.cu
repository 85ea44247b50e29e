/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["min(sm_count, ceil_div(N, 256) * (ceil_div(T, 128) + G))"]
block = ["384"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes a 128x256 tile of one group with wgmma, two warpgroups of 64x256, from a ring of swizzled slabs in shared memory that a thread
// of a third warpgroup fills by TMA, then the next tile of its walk, for which the ring fills already; start_slabs is left over. Still missing
// are TMA stores. The helpers of mma.sync below are not used any more.

#include <cuda_bf16.h>

constexpr int BM = 128;
constexpr int BN = 256;
constexpr int BK = 64;
constexpr int THREADS = 256;
constexpr int STAGES = 4; // of 48 KiB: one multiplied, one whose products may still run, two being filled
constexpr int A_SLAB = BM * BK;
constexpr int B_SLAB = BK * BN;
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define SUMS4(i, j) "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
#define SUMS16(i) SUMS4(i, 0), SUMS4(i, 1), SUMS4(i, 2), SUMS4(i, 3)

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    unsigned long long s;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(s) : "l"(p));
    return static_cast<unsigned>(s);
}

// Copies 16 bytes, or writes 16 bytes of zeros where `inside` is false; then nothing is read.
__device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&x)[4], unsigned w0, unsigned w1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w0), "r"(w1));
}

__device__ __forceinline__ unsigned narrow(float low, float high)
{
    const unsigned l = __bfloat16_as_ushort(__float2bfloat16(low));
    const unsigned h = __bfloat16_as_ushort(__float2bfloat16(high));
    return l | (h << 16);
}

// Starts the copies of the slabs that begin at k0. N and K are multiples of 8: a vector of 8 elements is aligned, and all inside or all outside.
// Rows have 128 bytes, chunk c of row r at c ^ (r % 8): for a, 64 of k; for b, 64 columns, and after BK such rows the next 64 columns.
__device__ __forceinline__ void start_slabs(unsigned as, unsigned bs, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int first, int end,
                                            int col0, int k0, int N, int K)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < BM * BK / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int r = v / (BK / 8);
        const int k = (v % (BK / 8)) * 8;
        const bool inside = first + r < end && k0 + k < K;
        copy_async(as + 2 * (r * BK + ((k / 8) ^ (r % 8)) * 8), inside ? a + size_t(first + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < BK * BN / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int k = v / (BN / 8);
        const int c = (v % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy_async(bs + 2 * ((c / 64) * 64 * BK + k * 64 + ((c / 8 % 8) ^ (k % 8)) * 8), inside ? b + size_t(k0 + k) * N + col0 + c : b, inside);
    }
}

__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity) // returns when the phase of this parity, 0 for the first, has ended
{
    asm volatile("{\n.reg .pred p;\nwaiting:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra waiting;\n}" : : "r"(barrier), "r"(parity) : "memory");
}

constexpr int PATCH = 16; // rows of tiles that are walked down before the next column: what is in flight is a compact patch of y
struct Tile { int group, first, end, col0; };
// Where tile t of the walk is, t < tile_rows * tile_cols. The rows of tiles are those of all groups; the last of a group may be part-filled.
__device__ __forceinline__ Tile locate(int t, int tile_rows, int tile_cols, const int *offsets, int G)
{
    const int from = t / (PATCH * tile_cols) * PATCH, step = t % (PATCH * tile_cols);
    const int rows = min(PATCH, tile_rows - from); // the last patch may be lower
    int tile = from + step % rows;
    int group = 0, first = 0, end = 0;
    for (; group < G; ++group) {
        const int lo = offsets[group];
        const int hi = offsets[group + 1];
        const int tiles = (hi - lo + BM - 1) / BM;
        if (tile < tiles) {
            first = lo + tile * BM;
            end = hi;
            break;
        }
        tile -= tiles;
    }
    return {group, first, end, step / rows * BN};
}

extern "C" __global__ void __launch_bounds__(THREADS + 128, 1) multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const int *offsets,
                                                               __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ __align__(16) unsigned char ring[]; // STAGES slabs of a, then as many of b, from a multiple of 1024 bytes

    int tile_rows = 0;
    for (int group = 0; group < G; ++group)
        tile_rows += (offsets[group + 1] - offsets[group] + BM - 1) / BM;
    const int tile_cols = (N + BN - 1) / BN, tiles = tile_rows * tile_cols;
    __shared__ unsigned long long barriers[2 * STAGES]; // a full one a stage (one arrival, and bytes), then an empty one a stage (8 warps)
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x < 2 * STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;" : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < STAGES ? 1 : 8) : "memory");
    __syncthreads();

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int wm = (warp / 4) * 64;

    const unsigned as = (shared_address(ring) + 1023) & ~1023u;
    const unsigned bs = as + 2 * STAGES * A_SLAB;
    // What wgmma is told of the first slabs: 128-byte swizzle, 1024 bytes from 8 rows to the next; for b, 8192 from 64 columns to the next.
    const unsigned long long a_slab = (1ull << 62) | (64ull << 32) | (1ull << 16) | ((as + 2 * wm * BK) >> 4);
    const unsigned long long b_slab = (1ull << 62) | (64ull << 32) | (512ull << 16) | (bs >> 4);

    float sum[8][4][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    if (warp >= THREADS / 32) { // the producer; what lies outside of a tensor arrives as zeros and is counted
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" : : : "memory");
        for (int t = threadIdx.x == THREADS ? int(blockIdx.x) : tiles, step = 0; t < tiles; t += gridDim.x) { // step counts over all tiles
        const Tile at = locate(t, tile_rows, tile_cols, offsets, G);
        for (int k0 = 0; k0 < K; k0 += BK, ++step) {
            const unsigned now = step % STAGES, ready = full + 8 * now;
            wait_phase(empty + 8 * now, step / STAGES % 2 ^ 1); // passes at once in the first round
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3, {%4, %5}], [%0];" : : "r"(ready), "r"(2 * (A_SLAB + B_SLAB)), "r"(as + 2 * now * A_SLAB), "l"(&a), "r"(k0), "r"(at.first) : "memory");
            for (int c = 0; c < BN; c += 64)
                asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" : : "r"(bs + 2 * now * B_SLAB + 2 * c * BK), "l"(&b), "r"(at.col0 + c), "r"(k0), "r"(at.group), "r"(ready) : "memory");
        }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" : : : "memory");

    for (int t = blockIdx.x, step = 0; t < tiles; t += gridDim.x) { // the same tiles in the same order
    for (int k0 = 0; k0 < K; k0 += BK, ++step) {
        const int now = step % STAGES;
        wait_phase(full + 8 * now, step / STAGES % 2);

        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
        for (int k = 0; k < BK; k += 16)
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                         "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                         "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                         "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                         "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                         "%128, %129, p, 1, 1, 0, 1;\n}"
                         : SUMS16(0), SUMS16(1), SUMS16(2), SUMS16(3), SUMS16(4), SUMS16(5), SUMS16(6), SUMS16(7)
                         : "l"(a_slab + now * (A_SLAB / 8) + k / 8), "l"(b_slab + now * (B_SLAB / 8) + k * 8), "r"(int(k > 0 || k0 > 0))); // a tile's first overwrites the sums
        asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); // the products of the step before have ended
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" : : "r"(empty + 8 * ((step + STAGES - 1) % STAGES)), "r"(int(step > 0 && lane == 0)) : "memory");
    }
    const Tile at = locate(t, tile_rows, tile_cols, offsets, G); // while the last products run
    const int first = at.first, end = at.end, col0 = at.col0;
    asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");

#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + i * 32 + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + warp * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
    }
}
