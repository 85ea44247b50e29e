/*klineage
surface = "cuda"

[[workspace]]
name = "maps"
dtype = "i32"
shape = ["round_up(sm_count, 2) * 96 + 32"]
init = "poison"

[[launch]]
kernel = "multiply"
grid = ["round_up(sm_count, 2)"]
block = ["384"]
shared = "231424"
args = ["a", "b", "offsets", "y", "maps", "int G", "int T", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Row r of y is row r of a times b[i], [K,N], where offsets[i] <= r < offsets[i + 1]; bf16 in and out, f32 sums.
//
// Persistent clusters of two blocks walk over tiles of 256 x 256 that never cross a group's end. A block owns 128 x 256
// of it: one thread feeds a ring of 4 stages by TMA (its own 128 x 64 of a, and half of the 64 x 256 of b, multicast to
// both blocks), two warpgroups multiply 64 x 256 each with wgmma; each warp writes its 16 rows of y.

#include <cuda_bf16.h>

#define STAGES 4
#define A_BYTES 16384
#define B_BYTES 32768
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define STAGING (STAGES * STAGE_BYTES)
#define MAPS (STAGING + 32768)
#define BARRIERS (MAPS + 384)

// Before CUDA 12.5, tensormap.replace took strides in units of 16 bytes.
#if defined(__CUDACC_VER_MAJOR__) && \
    (__CUDACC_VER_MAJOR__ < 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 5))
#define MAP_STRIDE(s) ((s) >> 4)
#else
#define MAP_STRIDE(s) (s)
#endif

typedef unsigned long long u64;

// ---------------------------------------------------------------------------------------------------------------------
// Tensor maps, built by one warp in shared memory and published in global memory
// ---------------------------------------------------------------------------------------------------------------------

template <int RANK>
__device__ __forceinline__ void make_map(unsigned smem, const void *slot, const void *address, unsigned dim0,
                                         unsigned dim1, unsigned dim2, u64 stride0, u64 stride1, unsigned box1)
{
    const unsigned lane = threadIdx.x & 31;
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(smem + lane * 4), "r"(0) : "memory");
    __syncwarp();
    if (lane == 0) {
        const u64 m = smem;
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"l"(m), "l"((u64)address)
                     : "memory");
        asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], %1;" ::"l"(m), "r"(RANK - 1) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(m), "r"(64) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(m), "r"(box1)
                     : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(m), "r"(dim0)
                     : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(m), "r"(dim1)
                     : "memory");
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"l"(m),
                     "l"((u64)MAP_STRIDE(stride0))
                     : "memory");
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(m), "r"(1)
                     : "memory");
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(m), "r"(1)
                     : "memory");
        if (RANK == 3) {
            asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" ::"l"(m), "r"(1)
                         : "memory");
            asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" ::"l"(m), "r"(dim2)
                         : "memory");
            asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" ::"l"(m),
                         "l"((u64)MAP_STRIDE(stride1))
                         : "memory");
            asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 2, %1;" ::"l"(m), "r"(1)
                         : "memory");
        }
        // Elements of 16 bits, not interleaved, swizzled over 128 bytes, zeros outside.
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 1;" ::"l"(m) : "memory");
        asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"l"(m) : "memory");
        asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"l"(m) : "memory");
        asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"l"(m) : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], "
                 "128;" ::"l"((u64)slot),
                 "r"(smem)
                 : "memory");
}

__device__ __forceinline__ void acquire_map(const void *slot)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"((u64)slot) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// Barriers and copies
// ---------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void init_barrier(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void wait_barrier(unsigned bar, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

__device__ __forceinline__ unsigned test_barrier(unsigned bar, unsigned parity)
{
    unsigned done;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done;
}

__device__ __forceinline__ void expect_bytes(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// What is released was read by wgmmas that have been waited for: no fence over the cluster is needed.
__device__ __forceinline__ void arrive_at(unsigned bar, unsigned cta)
{
    asm volatile("{\n\t"
                 ".reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t"
                 "}" ::"r"(bar),
                 "r"(cta)
                 : "memory");
}

__device__ __forceinline__ void load_2d(unsigned dst, const void *map, unsigned bar, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
                 "[%2];" ::"r"(dst),
                 "l"((u64)map), "r"(bar), "r"(x), "r"(y)
                 : "memory");
}

__device__ __forceinline__ void load_3d_both(unsigned dst, const void *map, unsigned bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%4, %5, %6}], [%2], %3;" ::"r"(dst),
                 "l"((u64)map), "r"(bar), "h"((unsigned short)3), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

__device__ __forceinline__ void store_2d(const void *map, unsigned src, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"((u64)map),
                 "r"(src), "r"(x), "r"(y)
                 : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// ---------------------------------------------------------------------------------------------------------------------
// wgmma
// ---------------------------------------------------------------------------------------------------------------------

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define D64(i) D16(i), D16(i + 16), D16(i + 32), D16(i + 48)

// d += A (64 x 16, K-major) times B (16 x 256, N-major)
__device__ __forceinline__ void multiply_add(float (&d)[128], u64 desc_a, u64 desc_b)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.b32 p, %130, 0;\n\t"
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
                 "%128, %129, p, 1, 1, 0, 1;\n\t"
                 "}"
                 : D64(0), D64(64)
                 : "l"(desc_a), "l"(desc_b), "r"(1)
                 : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// The walk over tiles of 256 x 256: group by group, in bands of 8 tiles of rows
// ---------------------------------------------------------------------------------------------------------------------

struct Walk {
    const int *offsets;
    int groups, across;
    int group, base, first, last, down;

    __device__ __forceinline__ Walk(const int *offsets_, int groups_, int N)
        : offsets(offsets_), groups(groups_), across((N + 255) / 256), group(0), base(0)
    {
        first = offsets[0];
        last = offsets[1];
        down = (last - first + 255) / 256;
    }

    // row: the tile's first row in a and y, col: its first column; false behind the last tile
    __device__ __forceinline__ bool seek(int tile, int &row, int &col)
    {
        while (tile - base >= down * across) {
            base += down * across;
            if (++group >= groups)
                return false;
            first = last;
            last = offsets[group + 1];
            down = (last - first + 255) / 256;
        }
        const int inside = tile - base;
        const int band = inside / (8 * across);
        const int rest = inside - band * 8 * across;
        const int height = min(8, down - band * 8);
        const int n = rest / height;
        row = first + (band * 8 + rest - n * height) * 256;
        col = n * 256;
        return true;
    }
};

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets, __nv_bfloat16 *y, int *maps, int G,
             int T, int N, int K)
{
    extern __shared__ unsigned char raw[];
    const unsigned smem = ((unsigned)__cvta_generic_to_shared(raw) + 1023u) & ~1023u;
    const unsigned full = smem + BARRIERS;
    const unsigned empty = full + 8 * STAGES;

    const unsigned char *slot = (const unsigned char *)(((u64)maps + 127ull) & ~127ull) + size_t(blockIdx.x) * 384;
    const unsigned char *map_a = slot;
    const unsigned char *map_b = slot + 128;
    const unsigned char *map_y = slot + 256;

    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const int cluster = blockIdx.x >> 1;
    const int clusters = gridDim.x >> 1;

    const int wide_warp = __shfl_sync(0xFFFFFFFFu, (int)(threadIdx.x >> 5), 0);
    if (wide_warp == 0) {
        make_map<2>(smem + MAPS, map_a, a, K, T, 1, u64(K) * 2, 0, 128);
    } else if (wide_warp == 1) {
        make_map<3>(smem + MAPS + 128, map_b, b, N, K, G, u64(N) * 2, u64(K) * u64(N) * 2, 64);
    } else if (wide_warp == 2) {
        make_map<2>(smem + MAPS + 256, map_y, y, N, T, 1, u64(N) * 2, 0, 16);
    } else if (threadIdx.x == 96) {
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, 4); // two warpgroups in each of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();

    const int steps = (K + 63) / 64;
    const int part = wide_warp >> 2;

    if (part == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            acquire_map(map_a);
            acquire_map(map_b);
            Walk walk(offsets, G, N);
            int row, col;
            int stage = 0;
            unsigned phase = 0;
            for (int tile = cluster; walk.seek(tile, row, col); tile += clusters) {
                row += rank * 128;
                col += rank * 128;
                for (int step = 0; step < steps; ++step) {
                    const unsigned bar = full + 8 * stage;
                    const unsigned at = smem + stage * STAGE_BYTES;
                    const unsigned at_b = at + A_BYTES + rank * (B_BYTES / 2);
                    wait_barrier(empty + 8 * stage, phase ^ 1);
                    expect_bytes(bar, STAGE_BYTES);
                    load_2d(at, map_a, bar, step * 64, row);
                    load_3d_both(at_b, map_b, bar, col, step * 64, walk.group);
                    load_3d_both(at_b + 8192, map_b, bar, col + 64, step * 64, walk.group);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                }
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int half = part - 1;
        const int tid = threadIdx.x & 127;
        const int warp = wide_warp & 3;
        const int lane = tid & 31;
        const unsigned staging = smem + STAGING + half * 16384 + warp * 4096;
        if (lane == 0)
            acquire_map(map_y);
        __syncwarp();

        // Swizzle of 128 bytes; 1024 bytes from 8 rows to the next. In b, 8192 bytes from 64 columns to the next.
        const u64 base_a = (u64(1) << 62) | (u64(64) << 32) | (u64(1) << 16);
        const u64 base_b = (u64(1) << 62) | (u64(64) << 32) | (u64(512) << 16);

        Walk walk(offsets, G, N);
        int row, col;
        int stage = 0;
        unsigned phase = 0;
        unsigned ready = 0;
        for (int tile = cluster; walk.seek(tile, row, col); tile += clusters) {
            float d[128];
#pragma unroll
            for (int i = 0; i < 128; ++i)
                d[i] = 0.0f;

#pragma unroll 1
            for (int step = 0; step < steps; ++step) {
                const unsigned at = smem + stage * STAGE_BYTES;
                const unsigned release = empty + 8 * stage;
                const u64 desc_a = base_a | u64(((at + half * 8192) & 0x3FFFF) >> 4);
                const u64 desc_b = base_b | u64(((at + A_BYTES) & 0x3FFFF) >> 4);
                if (!ready)
                    wait_barrier(full + 8 * stage, phase);
                __syncwarp();
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                multiply_add(d, desc_a, desc_b);
                multiply_add(d, desc_a + 2, desc_b + 128);
                multiply_add(d, desc_a + 4, desc_b + 256);
                multiply_add(d, desc_a + 6, desc_b + 384);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
                // A look at the next stage while this one is multiplied
                ready = test_barrier(full + 8 * stage, phase);
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                if (tid < 2)
                    arrive_at(release, tid);
            }
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(d[i])::"memory");

            const int top = row + int(rank) * 128 + half * 64 + warp * 16;
            if (top + 16 <= walk.last) {
                // The warp's 16 rows, 64 columns at a time, through two buffers in turn
#pragma unroll
                for (int p = 0; p < 4; ++p) {
                    const unsigned buffer = staging + (p & 1) * 2048;
                    if (lane == 0)
                        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                    __syncwarp();
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        const int i = p * 32 + q * 8;
                        const unsigned at = buffer + (lane & 15) * 128 + (((q * 2 + (lane >> 4)) ^ (lane & 7)) * 16);
                        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                                     "r"(pack(d[i], d[i + 1])), "r"(pack(d[i + 2], d[i + 3])),
                                     "r"(pack(d[i + 4], d[i + 5])), "r"(pack(d[i + 6], d[i + 7]))
                                     : "memory");
                    }
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    __syncwarp();
                    if (lane == 0) {
                        if (col + p * 64 < N)
                            store_2d(map_y, buffer, col + p * 64, top);
                        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                    }
                }
            } else {
                const int r = top + (lane >> 2);
                const int c = col + (lane & 3) * 2;
                const bool upper = r < walk.last;
                const bool lower = r + 8 < walk.last;
                __nv_bfloat16 *out = y + size_t(r) * N + c;
#pragma unroll
                for (int j = 0; j < 32; ++j) {
                    if (c + j * 8 < N) {
                        if (upper)
                            *reinterpret_cast<unsigned *>(out + j * 8) = pack(d[j * 4], d[j * 4 + 1]);
                        if (lower)
                            *reinterpret_cast<unsigned *>(out + size_t(8) * N + j * 8) =
                                pack(d[j * 4 + 2], d[j * 4 + 3]);
                    }
                }
            }
            __syncwarp();
        }
        if (lane == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // No block leaves while the other may still signal its barriers.
    cluster_sync();
}
