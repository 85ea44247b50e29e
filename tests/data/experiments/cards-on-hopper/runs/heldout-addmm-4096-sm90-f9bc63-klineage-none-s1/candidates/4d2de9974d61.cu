/*klineage
surface = "cuda"

[[workspace]]
name = "maps"
dtype = "bf16"
shape = ["132 * 192 + 64"]
init = "poison"

[[tensormap]]
name = "map_a"
tensor = "a"
box = ["64", "64"]

[[tensormap]]
name = "map_b"
tensor = "b"
box = ["64", "64"]

[[tensormap]]
name = "map_y"
tensor = "y"
box = ["64", "64"]

[[launch]]
kernel = "multiply"
grid = ["2 * ceil_div(ceil_div(M, 256) * ceil_div(N, 256), ceil_div(ceil_div(M, 256) * ceil_div(N, 256), 66))"]
block = ["384"]
cluster = ["2"]
shared = "231872"
args = ["map_a", "map_b", "map_y", "bias", "maps", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] + bias[N], bf16 in and out, f32 sums.
//
// A cluster of two blocks owns 256 x 256 of y at a time, each block 128 x 256 of it. Warpgroup 0 produces: one thread of it keeps
// four stages of 64 along K in flight by TMA; each block loads its own part of a and half of the common part of b, the latter for
// both blocks. Warpgroups 1 and 2 consume: each multiplies 64 x 256 with wgmma, adds the bias and stores by TMA.
// The tensor maps come without a swizzle; every block puts copies with the swizzle of 128 bytes in its own slots of `maps`.

#include <cuda_bf16.h>

struct alignas(64) TensorMap
{
    unsigned word[32];
};

#define STAGES 4
#define BOX_BYTES 8192u                       // 64 x 64 of bf16
#define A_BYTES (2u * BOX_BYTES)              // 128 rows, 64 along K
#define B_BYTES (4u * BOX_BYTES)              // 64 along K, 256 columns
#define STAGE_BYTES (A_BYTES + B_BYTES)       // 49152
#define STAGING_AT (STAGES * STAGE_BYTES)     // 196608: two boxes for each consumer
#define MAPS_AT (STAGING_AT + 4u * BOX_BYTES) // 229376: three tensor maps
#define BIAS_AT (MAPS_AT + 384u)              // 229760: 256 of bf16 for each consumer
#define FULL_AT (BIAS_AT + 1024u)             // 230784
#define EMPTY_AT (FULL_AT + 8u * STAGES)      // 230816, the end is 230848

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity)
{
    unsigned done;
    do
    {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (done == 0);
}

__device__ __forceinline__ void barrier_arrive_cluster(unsigned address)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;\n" ::
                     : "memory");
}

__device__ __forceinline__ void map_acquire(const unsigned char *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

__device__ __forceinline__ void load_box(unsigned to, const unsigned char *map, unsigned barrier, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
}

__device__ __forceinline__ void load_box_for_both(unsigned to, const unsigned char *map, unsigned barrier, int x, int y)
{
    const unsigned short both = 3;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5}], "
                 "[%2], %3;" ::"r"(to),
                 "l"(map), "r"(barrier), "h"(both), "r"(x), "r"(y)
                 : "memory");
}

__device__ __forceinline__ void store_box(const unsigned char *map, unsigned from, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(x), "r"(y)
                 : "memory");
}

__device__ __forceinline__ void group_sync(int id)
{
    asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory");
}

// Two floats to two bf16, the first one in the lower half.
__device__ __forceinline__ unsigned pack(float first, float second)
{
    unsigned result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(second), "f"(first));
    return result;
}

#define D8(i)                                                                                                                          \
    "+f"(d[(i) + 0]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), "+f"(d[(i) + 5]), "+f"(d[(i) + 6]),      \
        "+f"(d[(i) + 7])

// d = a · b (+ d where `accumulate` is not 0): a is 64 x 16, K contiguous; b is 16 x 256, N contiguous.
__device__ __forceinline__ void multiply_add(float (&d)[128], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, "
                 "%72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, "
                 "%88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, "
                 "%104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, "
                 "%120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 1;\n"
                 "}\n"
                 : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56), D8(64), D8(72), D8(80), D8(88), D8(96), D8(104),
                   D8(112), D8(120)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// Which 256 x 256 part of y is the number `tile`: bands of eight along M, each walked along N.
__device__ __forceinline__ void place(int tile, int tiles_m, int tiles_n, int &tile_m, int &tile_n)
{
    const int band = tile / (8 * tiles_n);
    const int first = band * 8;
    const int height = min(8, tiles_m - first);
    const int rest = tile - band * 8 * tiles_n;
    tile_n = rest / height;
    tile_m = first + rest - tile_n * height;
}

extern "C" __global__ void __launch_bounds__(384, 1)
    multiply(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_y,
             const __nv_bfloat16 *bias, unsigned char *maps, int M, int N, int K)
{
    extern __shared__ unsigned char raw[];
    const unsigned base = (static_cast<unsigned>(__cvta_generic_to_shared(raw)) + 1023u) & ~1023u;
    const unsigned full = base + FULL_AT;
    const unsigned empty = base + EMPTY_AT;

    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    const int lane = threadIdx.x & 31;
    const int group = warp / 4;

    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    // This block's three tensor maps.
    unsigned char *slots = reinterpret_cast<unsigned char *>((reinterpret_cast<unsigned long long>(maps) + 127ull) & ~127ull) +
                           static_cast<unsigned long long>(blockIdx.x) * 384ull;

    if (warp < 3)
    {
        unsigned word;
        if (warp == 0)
            word = map_a.word[lane];
        else if (warp == 1)
            word = map_b.word[lane];
        else
            word = map_y.word[lane];
        const unsigned here = base + MAPS_AT + static_cast<unsigned>(warp) * 128u;
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(here + static_cast<unsigned>(lane) * 4u), "r"(word) : "memory");
        __syncwarp();
        if (lane == 0)
            asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"r"(here) : "memory");
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
                         slots + warp * 128),
                     "r"(here)
                     : "memory");
    }
    else if (warp == 3 && lane == 0)
    {
        for (int i = 0; i < STAGES; ++i)
        {
            barrier_init(full + 8u * i, 1);   // the producer of this block, and the bytes
            barrier_init(empty + 8u * i, 16); // eight consuming warps in each of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    cluster_sync();

    const int tiles_m = (M + 255) / 256;
    const int tiles_n = (N + 255) / 256;
    const int tiles = tiles_m * tiles_n;
    const int steps = (K + 63) / 64;
    const int clusters = gridDim.x / 2;

    if (group == 0)
    {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && lane == 0)
        {
            const unsigned char *const a_map = slots;
            const unsigned char *const b_map = slots + 128;
            map_acquire(a_map);
            map_acquire(b_map);

            unsigned stage = 0;
            unsigned parity = 0;
            for (int tile = blockIdx.x / 2; tile < tiles; tile += clusters)
            {
                int tile_m, tile_n;
                place(tile, tiles_m, tiles_n, tile_m, tile_n);
                const int row = tile_m * 256 + static_cast<int>(rank) * 128;
                const int col = tile_n * 256 + static_cast<int>(rank) * 128;
#pragma unroll 1
                for (int step = 0; step < steps; ++step)
                {
                    barrier_wait(empty + 8u * stage, parity ^ 1u);
                    const unsigned barrier = full + 8u * stage;
                    const unsigned a_to = base + stage * STAGE_BYTES;
                    const unsigned b_to = a_to + A_BYTES + rank * 2u * BOX_BYTES;
                    const int k = step * 64;
                    barrier_expect(barrier, STAGE_BYTES);
                    load_box(a_to, a_map, barrier, k, row);
                    load_box_for_both(b_to, b_map, barrier, col, k);
                    load_box(a_to + BOX_BYTES, a_map, barrier, k, row + 64);
                    load_box_for_both(b_to + BOX_BYTES, b_map, barrier, col + 64, k);
                    if (++stage == STAGES)
                    {
                        stage = 0;
                        parity ^= 1u;
                    }
                }
            }
        }
        __syncwarp();
    }
    else
    {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int consumer = group - 1;
        const int thread = threadIdx.x & 127;
        const unsigned char *const y_map = slots + 256;
        if (thread == 0)
            map_acquire(y_map);

        // Lanes 0 and 1 of each warp hand stages back, to the blocks 0 and 1 of the cluster.
        unsigned empty_there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(empty_there) : "r"(empty), "r"(lane & 1));

        // Both swizzled by 128 bytes, groups of eight rows 1024 bytes apart; b's blocks of 64 columns lie 8192 bytes apart.
        const unsigned long long common = (1ull << 62) | (static_cast<unsigned long long>(1024u >> 4) << 32);
        const unsigned long long a_first =
            common | (1ull << 16) | static_cast<unsigned long long>((base + static_cast<unsigned>(consumer) * BOX_BYTES) >> 4);
        const unsigned long long b_first = common | (static_cast<unsigned long long>(BOX_BYTES >> 4) << 16) |
                                           static_cast<unsigned long long>((base + A_BYTES) >> 4);

        const unsigned staging = base + STAGING_AT + static_cast<unsigned>(consumer) * 2u * BOX_BYTES;
        const unsigned bias_here = base + BIAS_AT + static_cast<unsigned>(consumer) * 512u;

        // Where this lane's row of its 8 x 8 matrix begins, and which 16 bytes of it (before the swizzle) it writes.
        const unsigned matrix_row = static_cast<unsigned>((warp & 3) * 16 + ((lane >> 3) & 1) * 8 + (lane & 7));
        const unsigned matrix_chunk = static_cast<unsigned>(lane >> 4);
        const unsigned matrix_swizzle = static_cast<unsigned>(lane & 7);

        float d[128];
        unsigned stage = 0;
        unsigned parity = 0;
        for (int tile = blockIdx.x / 2; tile < tiles; tile += clusters)
        {
            int tile_m, tile_n;
            place(tile, tiles_m, tiles_n, tile_m, tile_n);
            const int row = tile_m * 256 + static_cast<int>(rank) * 128 + consumer * 64;
            const int col = tile_n * 256;

            unsigned bias_pair = 0;
            if (col + 2 * thread < N)
                bias_pair = __ldg(reinterpret_cast<const unsigned *>(bias + col + 2 * thread));

#pragma unroll 1
            for (int step = 0; step < steps; ++step)
            {
                barrier_wait(full + 8u * stage, parity);
                const unsigned long long a = a_first + static_cast<unsigned long long>(stage * (STAGE_BYTES >> 4));
                const unsigned long long b = b_first + static_cast<unsigned long long>(stage * (STAGE_BYTES >> 4));
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                multiply_add(d, a, b, step);
                multiply_add(d, a + 2, b + 128, 1);
                multiply_add(d, a + 4, b + 256, 1);
                multiply_add(d, a + 6, b + 384, 1);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (step > 0 && lane < 2)
                    barrier_arrive_cluster(empty_there + 8u * ((stage + STAGES - 1) % STAGES));
                if (++stage == STAGES)
                {
                    stage = 0;
                    parity ^= 1u;
                }
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(d[i])::"memory");
            if (lane < 2)
                barrier_arrive_cluster(empty_there + 8u * ((stage + STAGES - 1) % STAGES));
            __syncwarp();

            asm volatile("st.shared.u32 [%0], %1;" ::"r"(bias_here + static_cast<unsigned>(thread) * 4u), "r"(bias_pair) : "memory");

#pragma unroll
            for (int box = 0; box < 4; ++box)
            {
                const unsigned buffer = staging + static_cast<unsigned>(box & 1) * BOX_BYTES;
                // The store before the last one has read this buffer.
                if (thread == 0)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                __syncwarp();
                group_sync(1 + consumer);
#pragma unroll
                for (int half = 0; half < 4; ++half)
                {
                    const int j = box * 8 + half * 2; // the first of two blocks of eight columns
                    unsigned bias0, bias1;
                    asm volatile("ld.shared.u32 %0, [%1];"
                                 : "=r"(bias0)
                                 : "r"(bias_here + static_cast<unsigned>(j * 16 + (lane & 3) * 4))
                                 : "memory");
                    asm volatile("ld.shared.u32 %0, [%1];"
                                 : "=r"(bias1)
                                 : "r"(bias_here + static_cast<unsigned>(j * 16 + 16 + (lane & 3) * 4))
                                 : "memory");
                    const float b00 = __uint_as_float(bias0 << 16);
                    const float b01 = __uint_as_float(bias0 & 0xffff0000u);
                    const float b10 = __uint_as_float(bias1 << 16);
                    const float b11 = __uint_as_float(bias1 & 0xffff0000u);
                    const unsigned r0 = pack(d[4 * j + 0] + b00, d[4 * j + 1] + b01);
                    const unsigned r1 = pack(d[4 * j + 2] + b00, d[4 * j + 3] + b01);
                    const unsigned r2 = pack(d[4 * j + 4] + b10, d[4 * j + 5] + b11);
                    const unsigned r3 = pack(d[4 * j + 6] + b10, d[4 * j + 7] + b11);
                    const unsigned chunk = (static_cast<unsigned>(half * 2) + matrix_chunk) ^ matrix_swizzle;
                    const unsigned to = buffer + matrix_row * 128u + chunk * 16u;
                    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r0), "r"(r1), "r"(r2),
                                 "r"(r3)
                                 : "memory");
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                group_sync(1 + consumer);
                if (thread == 0)
                {
                    if (row < M && col + box * 64 < N)
                        store_box(y_map, buffer, col + box * 64, row);
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
                __syncwarp();
            }
        }
        if (thread == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // No block leaves while the other one may still write to its memory or arrive at its barriers.
    cluster_sync();
}
