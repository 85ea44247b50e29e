/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_wgmma"
grid = ["1", "2 * min(ceil_div(sm_count, 2), ceil_div(N, 256) * ceil_div(M, 256))"]
block = ["288"]
cluster = ["1", "2"]
shared = "4 * 49152 + 8 * 4096 + 1024"
args = ["tm_a", "tm_b", "tm_y", "bias", "int M", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [64, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_y"
tensor = "y"
box = [16, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block of eight warps makes 128×128 of y with mma.sync, 64×32 a warp, while cp.async fills the other of two
// buffers; what is still missing is a deeper pipeline, an order of blocks that suits the L2 cache, wide stores, and wgmma with TMA.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int DEPTH = 32;           // of K a step
constexpr int PITCH_A = DEPTH + 8;  // 80 bytes: eight rows of ldmatrix fall into different banks
constexpr int PITCH_B = TILE_N + 8; // 272 bytes: likewise
constexpr int THREADS = 256;

typedef __nv_bfloat16 TileA[TILE_M][PITCH_A]; // [row][k]
typedef __nv_bfloat16 TileB[DEPTH][PITCH_B];  // [k][column]

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Sixteen bytes to shared memory; zeros, and no read of global memory, where `inside` is false.
__device__ __forceinline__ void copy_async(void *to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" : : "r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Starts the copies of one step. N and K are multiples of 8 (the workload says so): 8 neighbours are aligned, and inside or
// outside together. Where they are outside, the address is that of the tensor, which is valid and not read.
__device__ __forceinline__ void start_copies(TileA &tile_a, TileB &tile_b, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int row0,
                                             int col0, int k0, int M, int N, int K)
{
#pragma unroll
    for (int i = 0; i < TILE_M * DEPTH / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x);
        const int r = c / (DEPTH / 8);
        const int k = c % (DEPTH / 8) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        copy_async(&tile_a[r][k], inside ? a + size_t(row0 + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < DEPTH * TILE_N / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x);
        const int k = c / (TILE_N / 8);
        const int n = c % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        copy_async(&tile_b[k][n], inside ? b + size_t(k0 + k) * N + col0 + n : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(256)
multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) TileA tile_a[2]; // 20480 bytes
    __shared__ __align__(16) TileB tile_b[2]; // 17408 bytes

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

    const int steps = (K + DEPTH - 1) / DEPTH;
    start_copies(tile_a[0], tile_b[0], a, b, row0, col0, 0, M, N, K);
    asm volatile("cp.async.commit_group;\n" : : : "memory");

    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        if (step + 1 < steps)
            start_copies(tile_a[1 - now], tile_b[1 - now], a, b, row0, col0, (step + 1) * DEPTH, M, N, K);
        asm volatile("cp.async.commit_group;\n" : : : "memory"); // empty after the last step, so that the count below holds
        asm volatile("cp.async.wait_group 1;\n" : : : "memory");
        __syncthreads();

#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned fa[4][4]; // 16 rows × 16 of K each
            unsigned fb[2][4]; // 16 of K × 16 columns each: {0, 1} the left 8 columns, {2, 3} the right 8
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(fa[i], &tile_a[now][warp_row + i * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], &tile_b[now][k + lane % 16][warp_col + j * 16 + lane / 16 * 8]);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads(); // the next step's copies overwrite what was just read
    }

#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + warp_row + i * 16 + lane / 4;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0] + add0, acc[i][j][1] + add1);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2] + add0, acc[i][j][3] + add1);
        }
    }
}
// The kernel launched: 128×256 a block by wgmma, 64×256 a warpgroup; a ninth warp fills a ring of 4 slabs by TMA; 2 blocks share b's boxes.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ void wait_phase(unsigned barrier, int parity) { asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@!P1 bra LAB_WAIT;\n}\n" : : "r"(barrier), "r"(parity) : "memory"); }
__device__ __forceinline__ void copy_to_both(unsigned to, const TensorMap &map, int column, int row, unsigned barrier) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n" : : "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"((unsigned short)3) : "memory"); }
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned long long leading) { return (unsigned long long)((address & 0x3ffff) >> 4) | ((leading >> 4) << 16) | (64ull << 32) | (1ull << 62); }
#define SUMS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define SUMS8(j) SUMS(j), SUMS(j + 1), SUMS(j + 2), SUMS(j + 3), SUMS(j + 4), SUMS(j + 5), SUMS(j + 6), SUMS(j + 7)
__device__ __forceinline__ void multiply_slice(float (&d)[32][4], unsigned long long a, unsigned long long b, int keep) { asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}\n" : SUMS8(0), SUMS8(8), SUMS8(16), SUMS8(24) : "l"(a), "l"(b), "r"(keep)); }
// Tells both blocks that this warp has left a slab. Only products read it, and they have ended: no other access has to be released.
__device__ __forceinline__ void give_back(unsigned barrier, int lane) { if (lane < 2) asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" : : "r"(barrier), "r"(lane) : "memory"); }
// Where a tile of the walk lies: groups of 8 pairs of rows of tiles, column after column, so that what runs at a time is nearly a square.
__device__ __forceinline__ void place(int tile, int rank, int M, int N, int &row0, int &col0) {
    const int group = 8 * ((N + 255) / 256), first = tile / group * 8, rest = tile % group, size = min((M + 255) / 256 - first, 8);
    row0 = (first + rest % size) * 256 + rank * 128, col0 = rest / size * 256;
}
// Two neighbouring sums with their bias (two bf16 in a register), rounded once and packed.
__device__ __forceinline__ unsigned finish(float left, float right, unsigned add) {
    const __nv_bfloat162 sums = __floats2bfloat162_rn(left + __uint_as_float(add << 16), right + __uint_as_float(add & 0xffff0000u));
    return *reinterpret_cast<const unsigned *>(&sums);
}
extern "C" __global__ void __launch_bounds__(288) multiply_wgmma(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y, const __nv_bfloat16 *__restrict__ bias, int M, int N, int K) {
    extern __shared__ unsigned char dynamic[]; __shared__ unsigned long long barriers[8]; // 4 of full slabs, then 4 of empty ones
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = blockIdx.y % 2, steps = (K + 63) / 64, tiles = ((M + 255) / 256) * ((N + 255) / 256), walkers = gridDim.y / 2;
    const unsigned full = shared_address(barriers), ring = (shared_address(dynamic) + 1023) & ~1023u;
    if (threadIdx.x < 8) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;\n" : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < 4 ? 1 : 16) : "memory"); // empty: 8 warps of 2 blocks
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" : : : "memory");
    int row0, col0, turn = 0; // the ring turns on from tile to tile
    for (int tile = blockIdx.y / 2; threadIdx.x == 256 && tile < tiles; tile += walkers) {
      place(tile, rank, M, N, row0, col0);
      for (int step = 0; step < steps; ++step, ++turn) {
        const unsigned to = ring + turn % 4 * 49152, barrier = full + turn % 4 * 8;
        wait_phase(barrier + 32, (turn / 4 % 2) ^ 1); // both blocks have left the slab before
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(barrier), "r"(49152) : "memory"); // the other block's half of b with them
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" : : "r"(to), "l"(&tm_a), "r"(step * 64), "r"(row0), "r"(barrier) : "memory");
        for (int box = 2 * rank; box < 2 * rank + 2; ++box) copy_to_both(to + 16384 + box * 8192, tm_b, col0 + box * 64, step * 64, barrier);
      }
    }
    if (warp == 8) return;
    float d[32][4] = {};
    for (int tile = blockIdx.y / 2; tile < tiles; tile += walkers) {
      for (int step = 0; step < steps; ++step, ++turn) {
        const unsigned long long da = describe(ring + turn % 4 * 49152 + warp / 4 * 8192, 16), db = describe(ring + turn % 4 * 49152 + 16384, 8192);
        wait_phase(full + turn % 4 * 8, turn / 4 % 2); asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
        multiply_slice(d, da, db, step > 0); multiply_slice(d, da + 2, db + 128, 1); multiply_slice(d, da + 4, db + 256, 1); multiply_slice(d, da + 6, db + 384, 1); // a tile's first overwrites
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory"); // the step before has been read …
        if (step > 0) give_back(full + 32 + (turn + 3) % 4 * 8, lane); // … tell both blocks
      }
    place(tile, rank, M, N, row0, col0);
    unsigned add[32]; // the bias of this thread's columns, two a register, read while the last products run
#pragma unroll
    for (int j = 0; j < 32; ++j) // a column is even, and N is
        asm volatile("ld.global.nc.b32 %0, [%1];\n" : "=r"(add[j]) : "l"(bias + min(col0 + j * 8 + lane % 4 * 2, N - 2)));
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" : SUMS8(0), SUMS8(8), SUMS8(16), SUMS8(24) : : "memory");
    give_back(full + 32 + (turn + 3) % 4 * 8, lane); // the tile's last slab: the next tile's are copied while the sums are stored
#pragma unroll
    for (int c = 0; c < 4; ++c) { // 16 rows × 64 columns at a time, through one and the other of this warp's two swizzled buffers
        const unsigned buffer = ring + 4 * 49152 + warp * 4096 + c % 2 * 2048;
        if (lane == 0) asm volatile("cp.async.bulk.wait_group.read 1;\n" : : : "memory"); // the store before the last has read this buffer
        __syncwarp();
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            const int j = c * 8 + p * 2; // lanes 0 to 15 point at the rows of column group j, the others at those of j + 1
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" : : "r"(buffer + lane % 16 * 128 + (((p * 2 + lane / 16) ^ (lane % 8)) << 4)), "r"(finish(d[j][0], d[j][1], add[j])), "r"(finish(d[j][2], d[j][3], add[j])), "r"(finish(d[j + 1][0], d[j + 1][1], add[j + 1])), "r"(finish(d[j + 1][2], d[j + 1][3], add[j + 1])) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;\n" : : : "memory");
        __syncwarp();
        if (lane == 0) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\ncp.async.bulk.commit_group;\n" : : "l"(&tm_y), "r"(col0 + c * 64), "r"(row0 + warp * 16), "r"(buffer) : "memory");
    }
    }
    if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;\n" : : : "memory"); // the last stores have ended
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" : : : "memory"); // the other block may still tell this one
}
