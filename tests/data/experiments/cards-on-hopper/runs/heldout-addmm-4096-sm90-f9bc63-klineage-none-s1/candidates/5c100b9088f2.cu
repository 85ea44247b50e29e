/*klineage
surface = "cuda"

[[workspace]]
name = "maps"
dtype = "bf16"
shape = ["132 * 128 + 64"]
init = "poison"

[[tensormap]]
name = "map_a"
tensor = "a"
box = ["64", "64"]

[[tensormap]]
name = "map_b"
tensor = "b"
box = ["64", "64"]

[[launch]]
kernel = "multiply"
grid = ["2 * min(66, ceil_div(M, 1024) * ceil_div(N, 256))"]
block = ["512"]
cluster = ["2"]
shared = "232256"
args = ["map_a", "map_b", "bias", "y", "maps", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] + bias[N], bf16 in and out, f32 sums.
//
// A cluster of two blocks owns 1024 x 256 of y, in three parts of 384, 384 and 256 rows; each block computes half of a part's rows,
// that is three or two strips of 64 x 256. Warpgroup 0 produces: one thread each for a and b keeps four stages of 64 along K in
// flight by TMA; each block loads its own part of a and half of the common part of b, the latter for both blocks. Warpgroups 1 to 3
// consume: each multiplies one strip with wgmma (the third one only hands the stages back where there are two strips), adds the
// bias and stores from registers. They run somewhat apart, so that the epilogue of one overlaps with the products of the others.
// The tensor maps come without a swizzle; every block puts copies with the swizzle of 128 bytes in its own slots of `maps`.

#include <cuda_bf16.h>

struct alignas(64) TensorMap
{
    unsigned word[32];
};

#define STAGES 4
#define BOX_BYTES 8192u                    // 64 x 64 of bf16
#define A_BYTES (3u * BOX_BYTES)           // 192 rows, 64 along K
#define B_BYTES (4u * BOX_BYTES)           // 64 along K, 256 columns
#define STAGE_BYTES (A_BYTES + B_BYTES)    // 57344
#define MAPS_AT (STAGES * STAGE_BYTES)     // 229376: two tensor maps
#define BIAS_AT (MAPS_AT + 256u)           // 229632: 256 of bf16 for each consumer
#define FULL_AT (BIAS_AT + 1536u)          // 231168
#define EMPTY_AT (FULL_AT + 8u * STAGES)   // 231200, the end is 231232
#define STAGGER 400u                       // cycles from the start of one consumer to that of the next one

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

// Without a release at cluster scope, which would be a fence of the whole device: a consumer has written nothing that the
// producers look at, and its reads by wgmma are over when it comes here.
__device__ __forceinline__ void barrier_arrive_cluster(unsigned address)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ unsigned cycles()
{
    unsigned now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
    return now;
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

// Exchanges x of the lanes whose `bit` is set with y of the lanes whose `bit` is not, between lanes that differ by `bit`.
__device__ __forceinline__ void exchange(unsigned &x, unsigned &y, int bit, bool upper)
{
    const unsigned received = __shfl_xor_sync(0xffffffffu, upper ? x : y, bit);
    x = upper ? received : x;
    y = upper ? y : received;
}

// Word i of lane q (of four) goes to word q of lane i.
__device__ __forceinline__ void transpose(unsigned (&x)[4], bool odd, bool high)
{
    exchange(x[0], x[1], 1, odd);
    exchange(x[2], x[3], 1, odd);
    exchange(x[0], x[2], 2, high);
    exchange(x[1], x[3], 2, high);
}

// The address field of a wgmma descriptor: 14 bits, in units of 16 bytes. The shared address of a block within a cluster carries
// the block's rank above the offset (from bit 24 on), and that must not reach the descriptor's other fields.
__device__ __forceinline__ unsigned long long descriptor_address(unsigned address)
{
    return static_cast<unsigned long long>((address & 0x3ffffu) >> 4);
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

extern "C" __global__ void __launch_bounds__(512, 1)
    multiply(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __nv_bfloat16 *bias,
             __nv_bfloat16 *y, unsigned char *maps, int M, int N, int K)
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

    // This block's two tensor maps.
    unsigned char *slots = reinterpret_cast<unsigned char *>((reinterpret_cast<unsigned long long>(maps) + 127ull) & ~127ull) +
                           static_cast<unsigned long long>(blockIdx.x) * 256ull;

    if (warp == 3 && lane == 0)
    {
        for (int i = 0; i < STAGES; ++i)
        {
            barrier_init(full + 8u * i, 2);   // the two producers of this block, and the bytes
            barrier_init(empty + 8u * i, 24); // twelve consuming warps in each of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    cluster_arrive();

    // Each producing warp makes the map that it alone uses.
    if (warp < 2)
    {
        unsigned word;
        if (warp == 0)
            word = map_a.word[lane];
        else
            word = map_b.word[lane];
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
        __syncwarp();
    }
    cluster_wait();

    const int chunks = (M + 1023) / 1024;
    const int items = chunks * ((N + 255) / 256);
    const int steps = (K + 63) / 64;
    const int clusters = gridDim.x / 2;

    if (group == 0)
    {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (warp < 2 && lane == 0)
        {
            const unsigned char *const map = slots + warp * 128;
            map_acquire(map);

            unsigned stage = 0;
            unsigned parity = 0;
            for (int item = blockIdx.x / 2; item < items; item += clusters)
            {
                const int tile_n = item / chunks;
                const int chunk = item - tile_n * chunks;
                const int col = tile_n * 256 + static_cast<int>(rank) * 128;
#pragma unroll 1
                for (int part = 0; part < 3; ++part)
                {
                    const int first = chunk * 1024 + part * 384;
                    if (first >= M)
                        break;
                    const int strips = part < 2 ? 3 : 2;
                    const int row = first + static_cast<int>(rank) * strips * 64;
                    // The second part walks K backwards: it begins with what the first one has used last.
                    int k = (part & 1) ? (steps - 1) * 64 : 0;
                    const int k_step = (part & 1) ? -64 : 64;
#pragma unroll 1
                    for (int step = 0; step < steps; ++step)
                    {
                        barrier_wait(empty + 8u * stage, parity ^ 1u);
                        const unsigned barrier = full + 8u * stage;
                        const unsigned a_to = base + stage * STAGE_BYTES;
                        if (warp == 0)
                        {
                            barrier_expect(barrier, static_cast<unsigned>(strips) * BOX_BYTES);
                            load_box(a_to, map, barrier, k, row);
                            load_box(a_to + BOX_BYTES, map, barrier, k, row + 64);
                            if (strips == 3)
                                load_box(a_to + 2u * BOX_BYTES, map, barrier, k, row + 128);
                        }
                        else
                        {
                            const unsigned b_to = a_to + A_BYTES + rank * 2u * BOX_BYTES;
                            barrier_expect(barrier, B_BYTES);
                            load_box_for_both(b_to, map, barrier, col, k);
                            load_box_for_both(b_to + BOX_BYTES, map, barrier, col + 64, k);
                        }
                        k += k_step;
                        if (++stage == STAGES)
                        {
                            stage = 0;
                            parity ^= 1u;
                        }
                    }
                }
            }
        }
        __syncwarp();
    }
    else
    {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        const int consumer = group - 1;
        const int thread = threadIdx.x & 127;

        // Lanes 0 and 1 of each warp hand stages back, to the blocks 0 and 1 of the cluster.
        unsigned empty_there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(empty_there) : "r"(empty), "r"(lane & 1));

        // Both swizzled by 128 bytes, groups of eight rows 1024 bytes apart; b's blocks of 64 columns lie 8192 bytes apart.
        const unsigned long long common = (1ull << 62) | (static_cast<unsigned long long>(1024u >> 4) << 32);
        const unsigned long long a_first =
            common | (1ull << 16) | descriptor_address(base + static_cast<unsigned>(consumer) * BOX_BYTES);
        const unsigned long long b_first =
            common | (static_cast<unsigned long long>(BOX_BYTES >> 4) << 16) | descriptor_address(base + A_BYTES);

        const unsigned bias_here = base + BIAS_AT + static_cast<unsigned>(consumer) * 512u;

        // The consumers start one after the other, once, so that they do not all come to their epilogues at the same time.
        // Every block has a tile and every tile a step, so the first stage does fill.
        if (consumer > 0)
        {
            barrier_wait(full, 0);
            const unsigned wait = static_cast<unsigned>(consumer) * STAGGER;
            const unsigned start = cycles();
            while (cycles() - start < wait)
            {
            }
        }
        __syncwarp();

        unsigned stage = 0;
        unsigned parity = 0;
        for (int item = blockIdx.x / 2; item < items; item += clusters)
        {
            const int tile_n = item / chunks;
            const int chunk = item - tile_n * chunks;
            const int col = tile_n * 256;
#pragma unroll 1
            for (int part = 0; part < 3; ++part)
            {
                const int first = chunk * 1024 + part * 384;
                if (first >= M)
                    break;
                const int strips = part < 2 ? 3 : 2;

                if (consumer >= strips)
                {
                    // Nothing to multiply here; the stages are handed back as soon as they are full.
#pragma unroll 1
                    for (int step = 0; step < steps; ++step)
                    {
                        barrier_wait(full + 8u * stage, parity);
                        __syncwarp();
                        if (lane < 2)
                            barrier_arrive_cluster(empty_there + 8u * stage);
                        if (++stage == STAGES)
                        {
                            stage = 0;
                            parity ^= 1u;
                        }
                    }
                    __syncwarp();
                    continue;
                }

                unsigned bias_pair = 0;
                if (col + 2 * thread < N)
                    bias_pair = __ldg(reinterpret_cast<const unsigned *>(bias + col + 2 * thread));

                float d[128];
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

                // The bias of the tile before has been read by all four warps; then this one's is there for all of them.
                group_sync(1 + consumer);
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(bias_here + static_cast<unsigned>(thread) * 4u), "r"(bias_pair)
                             : "memory");
                group_sync(1 + consumer);

                // A quad holds a row's 32 columns as pairs, eight columns a register; transposed, every lane has eight in a row.
                const int quad = lane & 3;
                const bool odd = (lane & 1) != 0;
                const bool high = (lane & 2) != 0;
                const int row = first + (static_cast<int>(rank) * strips + consumer) * 64 + (warp & 3) * 16 + (lane >> 2);
                const unsigned bias_lane = bias_here + static_cast<unsigned>(quad) * 4u;
                __nv_bfloat16 *const y0 = y + size_t(row) * N + col + quad * 8;
                __nv_bfloat16 *const y8 = y0 + size_t(8) * N;
                const int room = N - col - quad * 8;
#pragma unroll
                for (int g = 0; g < 8; ++g)
                {
                    unsigned upper[4];
                    unsigned lower[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                    {
                        const int j = g * 4 + i;
                        unsigned pair;
                        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(pair) : "r"(bias_lane + static_cast<unsigned>(j * 16)) : "memory");
                        const float b0 = __uint_as_float(pair << 16);
                        const float b1 = __uint_as_float(pair & 0xffff0000u);
                        upper[i] = pack(d[4 * j + 0] + b0, d[4 * j + 1] + b1);
                        lower[i] = pack(d[4 * j + 2] + b0, d[4 * j + 3] + b1);
                    }
                    transpose(upper, odd, high);
                    transpose(lower, odd, high);
                    if (g * 32 < room)
                    {
                        if (row < M)
                            __stcs(reinterpret_cast<uint4 *>(y0 + g * 32), make_uint4(upper[0], upper[1], upper[2], upper[3]));
                        if (row + 8 < M)
                            __stcs(reinterpret_cast<uint4 *>(y8 + g * 32), make_uint4(lower[0], lower[1], lower[2], lower[3]));
                    }
                    __syncwarp();
                }
            }
        }
        __syncwarp();
    }

    // No block leaves while the other one may still write to its memory or arrive at its barriers.
    cluster_arrive();
    cluster_wait();
}
