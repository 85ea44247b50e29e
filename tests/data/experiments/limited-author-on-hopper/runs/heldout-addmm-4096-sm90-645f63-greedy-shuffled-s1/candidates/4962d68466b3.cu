/*klineage
surface = "cuda"
tensormap = [{ name = "map_a", tensor = "a", box = ["64", "64"] }, { name = "map_b", tensor = "b", box = ["64", "64"] }]
workspace = [{ name = "maps", dtype = "bf16", shape = ["256"], init = "poison" }]

[[launch]]
kernel = "prepare"
grid = ["1"]
block = ["32"]
args = ["map_a", "map_b", "maps"]
[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["384"]
shared = "196672"
args = ["maps", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: two warpgroups of a block make 128×256 of y with wgmma, 64×256 each, while a thread of a third fills the four buffers with TMA,
// and mbarriers tell what is full and what is free; what is still missing is an order of blocks that suits the L2 cache, and wide stores.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256, DEPTH = 64, STAGES = 4, PITCH_A = DEPTH, PITCH_B = TILE_N; // no padding: 16-byte chunks are swizzled
constexpr int THREADS = 128; // of the producer; 256 others multiply

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

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" : : "r"(barrier) : "memory");
}

__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    while (!done);
}

// Starts the copies of one step. N and K are multiples of 8 (the workload says so): 8 neighbours are aligned, and inside or
// outside together. Where they are outside, the address is that of the tensor, which is valid and not read.
__device__ __forceinline__ void start_copies(TileA &tile_a, TileB &tile_b, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int row0,
                                             int col0, int k0, int M, int N, int K)
{
#pragma unroll
    for (int i = 0; i < TILE_M * DEPTH / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x) % THREADS;
        const int r = c / (DEPTH / 8);
        const int k = c % (DEPTH / 8) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        copy_async(&tile_a[r][k ^ r % 8 * 8], inside ? a + size_t(row0 + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < DEPTH * TILE_N / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x) % THREADS;
        const int k = c / (TILE_N / 8);
        const int n = c % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        copy_async(&tile_b[0][0] + (n / 64 * DEPTH + k) * 64 + (n % 64 ^ k % 8 * 8), inside ? b + size_t(k0 + k) * N + col0 + n : b, inside);
    }
}

struct __align__(64) Map { unsigned words[32]; }; // what a CUtensorMap holds
// 64 rows of 64 columns to shared memory, zeros outside; its bytes are counted by the barrier.
__device__ __forceinline__ void copy_box(unsigned to, const Map *map, int column, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" : : "r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// The maps, with the swizzle of 128 bytes that wgmma's descriptors name.
extern "C" __global__ void prepare(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, Map *maps)
{
    maps = reinterpret_cast<Map *>((size_t(maps) + 127) / 128 * 128);
    maps[0].words[threadIdx.x] = map_a.words[threadIdx.x];
    maps[1].words[threadIdx.x] = map_b.words[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 2)
        asm volatile("tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%0], 3;\nfence.proxy.tensormap::generic.release.gpu;\n" : : "l"(maps + threadIdx.x) : "memory");
}

#define FOUR(j) "+f"(acc[0][j][0]), "+f"(acc[0][j][1]), "+f"(acc[0][j][2]), "+f"(acc[0][j][3])
#define SUMS FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7), FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15), FOUR(16), FOUR(17), FOUR(18), FOUR(19), FOUR(20), FOUR(21), FOUR(22), FOUR(23), FOUR(24), FOUR(25), FOUR(26), FOUR(27), FOUR(28), FOUR(29), FOUR(30), FOUR(31)
extern "C" __global__ void __launch_bounds__(384, 1)
multiply(const Map *maps, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(1024) TileA tile_a[]; // STAGES × 16384 bytes, then STAGES × 32768 of b: panels of [k][64 columns]
    TileB *tile_b = reinterpret_cast<TileB *>(tile_a + STAGES);
    const unsigned full = shared_address(tile_b + STAGES), empty = full + 8 * STAGES; // barriers, one of each a stage
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; ++i) // full: the producer's threads; empty: the consumers' warps
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %2;\nmbarrier.init.shared::cta.b64 [%1], 8;\n"
                         : : "r"(full + 8 * i), "r"(empty + 8 * i), "r"(1) : "memory"); // one thread of the producer
    __syncthreads();

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp * 16, warp_col = 0;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[1][TILE_N / 8][4];
#pragma unroll
    for (int i = 0; i < 1; ++i)
#pragma unroll
        for (int j = 0; j < TILE_N / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int steps = (K + DEPTH - 1) / DEPTH;
    if (warp >= 8) { // the producer, one thread: it runs ahead as far as slabs are free; the copies tell when a slab is full
        if (threadIdx.x != 256) return;
        maps = reinterpret_cast<const Map *>((size_t(maps) + 127) / 128 * 128);
        asm volatile("fence.proxy.async.shared::cta;\nfence.proxy.tensormap::generic.acquire.gpu [%0], 128;\nfence.proxy.tensormap::generic.acquire.gpu [%1], 128;\n" : : "l"(maps), "l"(maps + 1) : "memory");
        for (int step = 0; step < steps; ++step) {
            const int now = step % STAGES;
            wait_phase(empty + 8 * now, step / STAGES % 2 ^ 1); // the first round passes at once
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(full + 8 * now), "r"(unsigned(sizeof(TileA) + sizeof(TileB))) : "memory");
            for (int i = 0; i < TILE_M / 64; ++i)
                copy_box(shared_address(&tile_a[now][i * 64][0]), maps, step * DEPTH, row0 + i * 64, full + 8 * now);
            for (int i = 0; i < TILE_N / 64; ++i) // panels of 64 columns
                copy_box(shared_address(&tile_b[now][i * (DEPTH / 4)][0]), maps + 1, col0 + i * 64, step * DEPTH, full + 8 * now);
        }
        return;
    }

    for (int step = 0; step < steps; ++step) {
        const int now = step % STAGES;
        wait_phase(full + 8 * now, step / STAGES % 2);

        asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}\n"
                         : SUMS : "l"(1ull << 62 | 64ull << 32 | shared_address(&tile_a[now][warp / 4 * 64][k]) >> 4), "l"(1ull << 62 | 64ull << 32 | 512ull << 16 | shared_address(&tile_b[now][k / 4][0]) >> 4), "r"(1) : "memory");
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory"); // this step's are in flight
        if (step > 0 && lane == 0)
            arrive(empty + 8 * ((step - 1) % STAGES)); // the products of the step before are done with its slab
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" : SUMS : : "memory");

#pragma unroll
    for (int j = 0; j < TILE_N / 8; ++j) {
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
#pragma unroll
        for (int i = 0; i < 1; ++i) {
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
