/*klineage
surface = "cuda"

[[workspace]]
name = "maps"
dtype = "bf16"
shape = ["256 * ceil_div(M, 256) * ceil_div(N, 256) + 64"]
init = "poison"

[[launch]]
kernel = "multiply"
grid = ["2 * ceil_div(M, 256)", "ceil_div(N, 256)", "1"]
block = ["384", "1", "1"]
cluster = ["2", "1", "1"]
shared = "198656"
args = ["a", "b", "y", "maps", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N], bf16 in and out, f32 sums.
//
// A block owns 128×256 elements of y. Warpgroups 0 and 1 multiply (64 rows each), warp 8 loads b, warp 9 loads a. Two blocks that are
// neighbours along M form a cluster and share their tile of b: each fetches half of it for both. The ring has four stages of 64 elements
// of K; the first two are filled by the consumers with cp.async, while warps 8 and 9 make the tensor maps; all later ones come by TMA.
// Warps 9 and 10 bring the block's share of a and b into L2 ahead of all loads.

#include <cuda_bf16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int STAGES = 4;
constexpr int PRE = 2; // stages that come by cp.async
constexpr u32 A_BYTES = 128 * 64 * 2;
constexpr u32 B_BYTES = 64 * 256 * 2;
constexpr u32 STAGE_BYTES = A_BYTES + B_BYTES;
constexpr u32 RING_BYTES = STAGES * STAGE_BYTES;

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

// No explicit scope here: a release to the cluster would wait on a memory barrier at each step of K, and what is handed over are
// finished reads of wgmma only.
__device__ __forceinline__ void mbar_arrive_at(u32 bar, u32 rank)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void named_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------- loads

__device__ __forceinline__ void copy16(u32 dst, const __nv_bfloat16 *src, bool valid)
{
    const u32 bytes = valid ? 16u : 0u;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

template <int LEFT> __device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ void tma_load(u32 dst, u64 map, int c0, int c1, u32 bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(dst),
                 "l"(map), "r"(c0), "r"(c1), "r"(bar)
                 : "memory");
}

__device__ __forceinline__ void tma_load_both(u32 dst, u64 map, int c0, int c1, u32 bar)
{
    const unsigned short mask = 3;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(dst),
                 "l"(map), "r"(c0), "r"(c1), "r"(bar), "h"(mask)
                 : "memory");
}

__device__ __forceinline__ void prefetch(const __nv_bfloat16 *src, u32 bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(reinterpret_cast<u64>(src)), "r"(bytes) : "memory");
}

// By a whole warp: this block's share of the columns from..to of a and of the same rows of b, into L2.
__device__ __forceinline__ void warm(const __nv_bfloat16 *a, const __nv_bfloat16 *b, int M, int N, int K, int from, int to, int lane)
{
    const int end = to < K ? to : K;
    if (from >= end)
        return;
    const int slot = int(blockIdx.y * gridDim.x + blockIdx.x) * 16 + (lane & 15);
    const int slots = int(gridDim.x * gridDim.y) * 16;
    if (lane < 16) {
        const u32 bytes = u32(end - from) * 2;
#pragma unroll 1
        for (int r = slot; r < M; r += slots)
            prefetch(a + size_t(r) * K + from, bytes);
    } else {
        const int chunks = int(gridDim.y); // of 256 columns
        const int units = (end - from) * chunks;
#pragma unroll 1
        for (int u = slot; u < units; u += slots) {
            const int row = u / chunks;
            const int column = (u - row * chunks) * 256;
            const int width = N - column < 256 ? N - column : 256;
            prefetch(b + size_t(from + row) * N + column, u32(width) * 2);
        }
    }
}

// Makes, in zeroed shared memory, the map of a row-major matrix of 16-bit elements: boxes of 64 columns, 128-byte swizzle, zeros outside.
__device__ __forceinline__ void make_map(u32 where, const void *matrix, u32 columns, u32 rows, u32 box_rows)
{
    const u64 at = where;
    const u64 address = reinterpret_cast<u64>(matrix);
    u64 stride = u64(columns) * 2;
#if !((__CUDACC_VER_MAJOR__ > 12) || ((__CUDACC_VER_MAJOR__ == 12) && (__CUDACC_VER_MINOR__ >= 5)))
    stride >>= 4; // older assemblers take the stride without its four low bits
#endif
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"l"(at), "l"(address) : "memory");
    asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], %1;" ::"l"(at), "r"(1u) : "memory"); // dimensions less one
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(at), "r"(64u) : "memory");
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(at), "r"(box_rows) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(at), "r"(columns) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(at), "r"(rows) : "memory");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"l"(at), "l"(stride) : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(at), "r"(1u) : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(at), "r"(1u) : "memory");
    asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 1;" ::"l"(at) : "memory");          // 16-bit words
    asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"l"(at) : "memory"); // none
    asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"l"(at) : "memory");      // 128 bytes
    asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"l"(at) : "memory");         // zeros
}

// By a whole warp: copies a map to global memory and makes it visible to the TMA.
__device__ __forceinline__ void publish_map(u64 global, u32 where)
{
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(global),
                 "r"(where)
                 : "memory");
}

__device__ __forceinline__ void acquire_map(u64 global)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(global) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------- products

#define ACC4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(i) ACC4(i), ACC4((i) + 4), ACC4((i) + 8), ACC4((i) + 12)

// d[64,256] += a[64,16] · b[16,256]; a is K-major, b is N-major.
__device__ __forceinline__ void mma(float (&d)[128], u64 da, u64 db)
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
                 : ACC16(0), ACC16(16), ACC16(32), ACC16(48), ACC16(64), ACC16(80), ACC16(96), ACC16(112)
                 : "l"(da), "l"(db), "r"(1)
                 : "memory");
}

__device__ __forceinline__ void mma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> __device__ __forceinline__ void mma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// A descriptor of a 128-byte-swizzled operand; offsets in bytes.
__device__ __forceinline__ u64 descriptor(u32 address, u32 leading, u32 stride)
{
    return u64((address & 0x3FFFFu) >> 4) | (u64(leading >> 4) << 16) | (u64(stride >> 4) << 32) | (u64(1) << 62);
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// ---------------------------------------------------------------------------------------------------------------- kernel

extern "C" __global__ void __launch_bounds__(384, 1)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, unsigned char *maps, int M, int N, int K)
{
    extern __shared__ unsigned char raw[];
    const u32 smem = (u32(__cvta_generic_to_shared(raw)) + 1023u) & ~1023u;
    const u32 map_a = smem + RING_BYTES;
    const u32 map_b = map_a + 128;
    const u32 full = map_b + 128;
    const u32 empty = full + 8 * STAGES;

    const int warp = __shfl_sync(0xFFFFFFFFu, int(threadIdx.x >> 5), 0);
    const int lane = threadIdx.x & 31;
    const int wg = warp >> 2;
    const int m0 = blockIdx.x * 128;
    const int n0 = blockIdx.y * 256;
    const int tiles = (K + 63) / 64;

    if (wg == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");

        if (warp == 8) {
            if (lane == 0) {
                for (int s = 0; s < STAGES; ++s) {
                    mbar_init(full + 8 * s, 2);   // the producers of a and of b
                    mbar_init(empty + 8 * s, 16); // eight consumer warps in each of two blocks
                }
                asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            }
            __syncwarp();
        }
        cluster_arrive();

        const bool loads = warp <= 9 && tiles > PRE;
        const u64 map = ((reinterpret_cast<u64>(maps) + 127) & ~u64(127)) + (u64(blockIdx.y) * gridDim.x + blockIdx.x) * 256 +
                        (warp == 8 ? 128 : 0);
        if (loads) {
            const bool is_b = warp == 8;
            const u32 where = is_b ? map_b : map_a;
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(where + 4 * lane), "r"(0u) : "memory");
            __syncwarp();
            if (lane == 0)
                make_map(where, is_b ? b : a, u32(is_b ? N : K), u32(is_b ? K : M), is_b ? 64u : 128u);
            __syncwarp();
            publish_map(map, where);
            acquire_map(map);
            __syncwarp();
        } else if (warp == 10 && tiles > PRE) {
            warm(a, b, M, N, K, PRE * 64, 256, lane);
            warm(a, b, M, N, K, 256, 512, lane);
        }
        __syncwarp();

        cluster_wait();

        if (loads) {
            if (warp == 8) {
                if (lane == 0) {
                    u32 rank;
                    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
                    const int column = n0 + int(rank) * 128;
#pragma unroll 1
                    for (int kt = PRE; kt < tiles; ++kt) {
                        const int s = kt & (STAGES - 1);
                        const u32 bar = full + 8 * s;
                        const u32 half = smem + s * STAGE_BYTES + A_BYTES + rank * 16384u;
                        if (kt >= STAGES)
                            mbar_wait(empty + 8 * s, u32((kt / STAGES) - 1) & 1u);
                        mbar_expect(bar, B_BYTES);
                        tma_load_both(half, map, column, kt * 64, bar);
                        tma_load_both(half + 8192u, map, column + 64, kt * 64, bar);
                    }
                }
            } else {
#pragma unroll 1
                for (int kt = PRE; kt < tiles; ++kt) {
                    if (lane == 0) {
                        const int s = kt & (STAGES - 1);
                        const u32 bar = full + 8 * s;
                        if (kt >= STAGES)
                            mbar_wait(empty + 8 * s, u32((kt / STAGES) - 1) & 1u);
                        mbar_expect(bar, A_BYTES);
                        tma_load(smem + s * STAGE_BYTES, map, kt * 64, m0, bar);
                    }
                    __syncwarp();
                    if (kt == PRE || (kt & 3) == 0) {
                        const int from = (kt / 4 + 2) * 256;
                        warm(a, b, M, N, K, from, from + 256, lane);
                        __syncwarp();
                    }
                }
            }
            __syncwarp();
        }

        cluster_arrive();
        cluster_wait();
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    cluster_arrive();

    // The first stages, by all 256 consumers, in the layout that the TMA would write: in each row of 128 bytes, the 16-byte piece c of
    // row r lies at c ^ (r % 8).
    {
        const int t = threadIdx.x;
        const int a_row = t >> 3, a_piece = t & 7;
        const int b_row = t >> 5, b_piece = t & 31;
        const u32 a_dst = smem + a_row * 128 + ((a_piece ^ (a_row & 7)) << 4);
        const u32 b_dst = smem + A_BYTES + (b_piece >> 3) * 8192 + b_row * 128 + (((b_piece & 7) ^ b_row) << 4);
        const bool b_column = n0 + b_piece * 8 < N;
        const __nv_bfloat16 *a_src = a + size_t(m0 + a_row) * K + a_piece * 8;
        const __nv_bfloat16 *b_src = b + size_t(b_row) * N + n0 + b_piece * 8;

#pragma unroll
        for (int s = 0; s < PRE; ++s) {
            if (s < tiles) {
                const bool a_column = s * 64 + a_piece * 8 < K;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const bool valid = a_column && m0 + a_row + 32 * i < M;
                    const __nv_bfloat16 *src = a_src + size_t(32 * i) * K + s * 64;
                    copy16(a_dst + s * STAGE_BYTES + i * 4096, valid ? src : a, valid);
                }
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const bool valid = b_column && s * 64 + b_row + 8 * i < K;
                    const __nv_bfloat16 *src = b_src + size_t(s * 64 + 8 * i) * N;
                    copy16(b_dst + s * STAGE_BYTES + i * 1024, valid ? src : b, valid);
                }
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
    }

    float d[128];
#pragma unroll
    for (int i = 0; i < 128; ++i)
        d[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(d[i])::"memory");

    const u64 da0 = descriptor(smem + wg * 8192, 16, 1024);
    const u64 db0 = descriptor(smem + A_BYTES, 8192, 1024);

    cluster_wait();

#pragma unroll 1
    for (int kt = 0; kt < tiles; ++kt) {
        const int s = kt & (STAGES - 1);
        if (kt < PRE) {
            if (kt == 0)
                copy_wait<PRE - 1>();
            else
                copy_wait<0>();
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            named_sync(1, 256);
        } else {
            // The stages that began with cp.async are one phase behind the others.
            mbar_wait(full + 8 * s, u32(kt / STAGES - (s < PRE ? 1 : 0)) & 1u);
        }

        const u64 offset = u64(u32(s) * (STAGE_BYTES >> 4));
        const u64 da = da0 + offset;
        const u64 db = db0 + offset;
        mma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            mma(d, da + u64(k * 2), db + u64(k * 128));
        mma_commit();
        mma_wait<1>();

        // The products of the stage before are done: both blocks may fill it anew.
        if (kt > 0 && kt + STAGES - 1 < tiles && lane < 2)
            mbar_arrive_at(empty + 8 * ((kt - 1) & (STAGES - 1)), u32(lane));
        __syncwarp();
    }
    mma_wait<0>();
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(d[i])::"memory");

    copy_wait<0>();
    cluster_arrive(); // from here on nothing of the other block is touched

    // Both writers and readers of this warpgroup's rows of a, in all four stages, are done: 64×256 elements of y fit there, 64 columns a
    // stage, swizzled in the same way.
    asm volatile("bar.sync %0, %1;" ::"r"(2 + wg), "r"(128) : "memory");
    {
        const u32 rows_at = smem + wg * 8192;
        const int first = (warp & 3) * 16;
        const int put_row = first + (lane & 15);
        const u32 put_at = rows_at + put_row * 128;
#pragma unroll
        for (int j = 0; j < 32; j += 2) {
            const u32 piece = u32(((j & 7) + (lane >> 4)) ^ (put_row & 7));
            const u32 at = put_at + (j >> 3) * STAGE_BYTES + (piece << 4);
            const u32 r0 = pack(d[4 * j], d[4 * j + 1]);
            const u32 r1 = pack(d[4 * j + 2], d[4 * j + 3]);
            const u32 r2 = pack(d[4 * j + 4], d[4 * j + 5]);
            const u32 r3 = pack(d[4 * j + 6], d[4 * j + 7]);
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r0), "r"(r1), "r"(r2),
                         "r"(r3)
                         : "memory");
        }
        __syncwarp();

        const u32 get_at = rows_at + (lane >> 3) * STAGE_BYTES + first * 128;
        uint4 v[16];
#pragma unroll
        for (int r = 0; r < 16; ++r) {
            const u32 at = get_at + r * 128 + (((lane & 7) ^ (r & 7)) << 4);
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v[r].x), "=r"(v[r].y), "=r"(v[r].z), "=r"(v[r].w)
                         : "r"(at)
                         : "memory");
        }

        const int row = m0 + wg * 64 + first;
        const int column = n0 + lane * 8;
        if (column < N) {
            __nv_bfloat16 *out = y + size_t(row) * N + column;
#pragma unroll
            for (int r = 0; r < 16; ++r) {
                if (row + r < M)
                    *reinterpret_cast<uint4 *>(out + size_t(r) * N) = v[r];
            }
        }
    }

    cluster_wait();
}
