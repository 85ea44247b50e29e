/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "data_nhwc"
box = [1, 10, 10, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_w"
tensor = "weight_hwcf"
dims = ["9", "C", "F"]
strides = ["C * F", "F"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_y"
tensor = "output"
box = [1, 2, 8, 64]
swizzle = "128B"

[[launch]]
kernel = "conv2d"
grid = ["2 * ceil_div(N * ceil_div(H, 8) * ceil_div(W, 8), 6)", "ceil_div(F, 128)"]
block = ["384"]
cluster = ["2", "1"]
shared = "197760"
pdl = true
args = ["tm_x", "tm_w", "tm_y", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has three warpgroups. Each computes 8 × 8 pixels times 128 filters. For every 64 channels:
//   - a warpgroup's pixels with their halo, 10 × 10 × 64 channels, come by one TMA load (zero outside of the image);
//   - the weights of all nine taps, 64 × 128 each, come in two halves of 64 filters, one loaded by each block of the
//     cluster and multicast to both;
//   - for each tap the shifted pixels are read by ldmatrix (A in registers), and wgmma takes B from shared memory.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

static constexpr u32 SLOT = 16384;              // weights of a tap: 2 halves of 64 rows × 128 bytes
static constexpr u32 HALF = 8192;
static constexpr u32 PATCH = 16384;             // room for a patch, later for the output of its warpgroup
static constexpr u32 PATCH_BYTES = 10 * 10 * 128;
static constexpr u32 PATCH_BASE = 9 * SLOT;
static constexpr u32 BAR_BASE = PATCH_BASE + 3 * PATCH;

__device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void prefetch_map(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

__device__ __forceinline__ void load_patch(u32 dst, const TensorMap *map, u32 bar, int c, int w, int h, int n)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(c), "r"(w), "r"(h), "r"(n) : "memory");
}

__device__ __forceinline__ void load_weights(u32 dst, const TensorMap *map, u32 bar, int f, int c, int tap)
{
    const unsigned short mask = 3;
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%4, %5, %6}], [%2], %3;"
                 :: "r"(dst), "l"(map), "r"(bar), "h"(mask), "r"(f), "r"(c), "r"(tap) : "memory");
}

__device__ __forceinline__ void store_tile(const TensorMap *map, u32 src, int f, int w, int h, int n)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 :: "l"(map), "r"(src), "r"(f), "r"(w), "r"(h), "r"(n) : "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

__device__ __forceinline__ void ldmatrix(u32 (&a)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void stmatrix(u32 address, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    __half2 v = __floats2half2_rn(low, high);
    return *reinterpret_cast<u32 *>(&v);
}

// The A operands of four steps of 16 channels; pixel is the one of the patch that this lane points to.
__device__ __forceinline__ void fragments(u32 (&a)[4][4], u32 patch, u32 pixel, u32 high)
{
    const u32 address = patch + pixel * 128 + ((high ^ (pixel & 7)) << 4);
#pragma unroll
    for (u32 k = 0; k < 4; ++k)
        ldmatrix(a[k], address ^ (k << 5));
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])

__device__ __forceinline__ void mma(float (&d)[64], const u32 (&a)[4], u64 desc)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, "
                 "%68, p, 1, 1, 1;\n"
                 "}\n"
                 : D4(0), D4(4), D4(8), D4(12), D4(16), D4(20), D4(24), D4(28),
                   D4(32), D4(36), D4(40), D4(44), D4(48), D4(52), D4(56), D4(60)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc), "r"(1));
}

extern "C" __global__ void __launch_bounds__(384, 1)
conv2d(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w,
       const __grid_constant__ TensorMap tm_y, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamic_shared[];
    const u32 shared = ((u32)__cvta_generic_to_shared(dynamic_shared) + 1023u) & ~1023u;

    const u32 wg = threadIdx.x >> 7;
    const u32 warp = (threadIdx.x >> 5) & 3;
    const u32 lane = threadIdx.x & 31;
    const bool leader = (threadIdx.x & 127) == 0;

    const u32 bar_b = shared + BAR_BASE;                    // nine, one for each tap
    const u32 bar_a = shared + BAR_BASE + 72 + 8 * wg;      // one for each warpgroup
    const u32 patch = shared + PATCH_BASE + wg * PATCH;

    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    if (leader) {
        mbar_init(bar_a, 1);
        if (threadIdx.x == 0) {
            for (u32 t = 0; t < 9; ++t)
                mbar_init(bar_b + 8 * t, 1);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        mbar_expect(bar_a, PATCH_BYTES);
        if (threadIdx.x == 0) {
            for (u32 t = 0; t < 9; ++t)
                mbar_expect(bar_b + 8 * t, SLOT);
            prefetch_map(&tm_x);
            prefetch_map(&tm_w);
            prefetch_map(&tm_y);
        }
    }
    __syncwarp();
    cluster_arrive();

    const int tiles_x = (W + 7) >> 3;
    const int tiles_y = (H + 7) >> 3;
    const int tile = blockIdx.x * 3 + wg;
    const int n = tile / (tiles_x * tiles_y);               // N or more: no tile, reads zeros and stores nothing
    const int rest = tile - n * (tiles_x * tiles_y);
    const int h0 = rest / tiles_x * 8;
    const int w0 = rest % tiles_x * 8;
    const int f0 = blockIdx.y * 128;

    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    if (leader)
        load_patch(patch, &tm_x, bar_a, 0, w0 - 1, h0 - 1, n);
    __syncwarp();
    cluster_wait();
    if (threadIdx.x == 0) {
        for (u32 t = 0; t < 9; ++t)
            load_weights(shared + t * SLOT + rank * HALF, &tm_w, bar_b + 8 * t, f0 + 64 * (int)rank, 0, (int)t);
    }
    __syncwarp();

    // B is MN-major with 128-byte swizzle: 64 filters a row, 8 rows of channels to 1024 bytes, halves 8192 bytes apart.
    const u64 desc = (u64)((shared & 0x3ffffu) >> 4)
                   | (u64)(HALF >> 4) << 16
                   | (u64)(1024 >> 4) << 32
                   | (u64)1 << 62;

    const u32 pixel = (2 * warp + ((lane >> 3) & 1)) * 10 + (lane & 7);
    const u32 high = lane >> 4;

    float d[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        d[i] = 0.0f;

    u32 a[2][4][4];
    const int blocks = (C + 63) >> 6;
    for (int block = 0; block < blocks; ++block) {
        const u32 parity = block & 1;

        mbar_wait(bar_a, parity);
        fragments(a[0], patch, pixel, high);
#pragma unroll
        for (int t = 0; t < 9; ++t) {
            mbar_wait(bar_b + 8 * t, parity);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                mma(d, a[t & 1][k], desc + (u64)(t * (SLOT >> 4) + k * 128));
            wgmma_commit();
            if (t < 8) {
                wgmma_wait<1>();        // the tap before has been read out of the registers that are loaded now
                fragments(a[(t + 1) & 1], patch, pixel + (t + 1) / 3 * 10 + (t + 1) % 3, high);
            }
        }
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < 64; ++i)
            asm volatile("" : "+f"(d[i]) :: "memory");

        if (block + 1 < blocks) {
            if (leader) {
                mbar_expect(bar_a, PATCH_BYTES);
                if (threadIdx.x == 0) {
                    for (u32 t = 0; t < 9; ++t)
                        mbar_expect(bar_b + 8 * t, SLOT);
                }
            }
            __syncwarp();
            cluster_arrive();
            cluster_wait();
            if (leader) {
                const int c = (block + 1) * 64;
                load_patch(patch, &tm_x, bar_a, c, w0 - 1, h0 - 1, n);
                if (threadIdx.x == 0) {
                    for (u32 t = 0; t < 9; ++t)
                        load_weights(shared + t * SLOT + rank * HALF, &tm_w, bar_b + 8 * t,
                                     f0 + 64 * (int)rank, c, (int)t);
                }
            }
            __syncwarp();
        }
    }

    // No block of the cluster ends before both have received all weights.
    __syncwarp();
    cluster_arrive();

    // All four warps have read the patch: its room takes the output, 4096 bytes for each warp.
    asm volatile("bar.sync %0, 128;" :: "r"(wg + 1) : "memory");

    const u32 stage = patch + warp * 4096;
    const u32 row = lane & 15;
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
        const u32 chunk = 2 * (j & 3) + high;
        stmatrix(stage + (j >> 2) * 2048 + row * 128 + ((chunk ^ (row & 7)) << 4),
                 pack(d[8 * j + 0], d[8 * j + 1]), pack(d[8 * j + 2], d[8 * j + 3]),
                 pack(d[8 * j + 4], d[8 * j + 5]), pack(d[8 * j + 6], d[8 * j + 7]));
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();

    const int h = h0 + 2 * (int)warp;
    if (lane == 0 && n < N && h < H) {
        store_tile(&tm_y, stage, f0, w0, h, n);
        if (f0 + 64 < F)
            store_tile(&tm_y, stage + 2048, f0 + 64, w0, h, n);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncwarp();
    cluster_wait();
}
