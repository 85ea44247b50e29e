/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_w"
tensor = "weight_hwcf"
dims = ["9", "C", "F"]
strides = ["C * F", "F"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "conv2d"
grid = ["2 * ceil_div(N * ceil_div(H, 8) * ceil_div(W, 8), 6)", "ceil_div(F, 128)"]
block = ["416"]
cluster = ["2", "1"]
shared = "197760"
args = ["tm_w", "data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has three warpgroups and a warp that loads. Each warpgroup computes 8 × 8 pixels times 128 filters.
// For every 64 channels:
//   - a warpgroup copies its pixels with their halo, 10 × 10 × 64 channels, by cp.async (zero outside of the image);
//   - nine slots hold the weights of the nine taps, 64 × 128 each; a cluster begins with a tap of its own.
//     Slot 0 is copied by warpgroups 1 and 2; the others come by TMA in two halves of 64 filters, one loaded by each
//     block of the cluster and multicast to both;
//   - for each tap the shifted pixels are read by ldmatrix (A in registers), and wgmma takes B from shared memory.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

static constexpr u32 SLOT = 16384;              // weights of a tap: 2 halves of 64 rows × 128 bytes
static constexpr u32 HALF = 8192;
static constexpr u32 PATCH = 16384;             // room for a patch, later for the output of its warpgroup
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

__device__ __forceinline__ void mbar_arrive(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
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

__device__ __forceinline__ void load_weights(u32 dst, const TensorMap *map, u32 bar, int f, int c, int tap)
{
    const unsigned short mask = 3;
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%4, %5, %6}], [%2], %3;"
                 :: "r"(dst), "l"(map), "r"(bar), "h"(mask), "r"(f), "r"(c), "r"(tap) : "memory");
}

// 16 bytes, or zeros where bytes is 0.
__device__ __forceinline__ void copy16(u32 dst, const __half *src, u32 bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(dst), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void warpgroup_sync(u32 wg)
{
    asm volatile("bar.sync %0, 128;" :: "r"(wg + 1) : "memory");
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

__device__ __forceinline__ uint4 load_shared(u32 address)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
    return v;
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    __half2 v = __floats2half2_rn(low, high);
    return *reinterpret_cast<u32 *>(&v);
}

// a / b, for 0 <= a < 2^24 and b > 0
__device__ __forceinline__ int divide(int a, int b)
{
    int q = (int)__fdividef((float)a + 0.5f, (float)b);
    const int rest = a - q * b;
    if (rest < 0)
        --q;
    else if (rest >= b)
        ++q;
    return q;
}

// The pixel of the patch that a tap, 3r + s, shifts a pixel to: 10r + s further.
__device__ __forceinline__ u32 shifted(u32 pixel, u32 tap)
{
    return pixel + tap + 7 * ((tap * 11) >> 5);
}

// The A operands of four steps of 16 channels; address is that of the first step.
__device__ __forceinline__ void fragments(u32 (&a)[4][4], u32 address)
{
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

extern "C" __global__ void __launch_bounds__(416, 1)
conv2d(const __grid_constant__ TensorMap tm_w, const __half *data, const __half *weight, __half *output,
       int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamic_shared[];
    const u32 shared = ((u32)__cvta_generic_to_shared(dynamic_shared) + 1023u) & ~1023u;

    const u32 wg = threadIdx.x >> 7;                        // 3: the warp that loads
    const u32 lane = threadIdx.x & 31;
    const u32 bar = shared + BAR_BASE;                      // nine, one for each slot
    const int f0 = blockIdx.y * 128;
    const u32 first = (blockIdx.x >> 1) % 9u;               // the tap of slot 0, the same in both blocks of a cluster
    const int blocks = (C + 63) >> 6;

    if (wg == 3) {
        if (lane == 0)
            prefetch_map(&tm_w);
        if (lane < 9) {
            mbar_init(bar + 8 * lane, lane == 0 ? 256 : 1);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("fence.proxy.async;" ::: "memory");
            if (lane > 0)
                mbar_expect(bar + 8 * lane, SLOT);
        }
        __syncwarp();
        cluster_arrive();

        u32 rank;
        asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        cluster_wait();

        for (int block = 0; block < blocks; ++block) {
            if (block > 0) {
                if (lane > 0 && lane < 9) {
                    mbar_wait(bar + 8 * lane, (block - 1) & 1);
                    mbar_expect(bar + 8 * lane, SLOT);
                }
                __syncwarp();
                cluster_arrive();
                cluster_wait();
            }
            if (lane == 0) {
                u32 tap = first;
                for (u32 i = 1; i < 9; ++i) {
                    tap = tap == 8 ? 0 : tap + 1;
                    load_weights(shared + i * SLOT + rank * HALF, &tm_w, bar + 8 * i, f0 + 64 * (int)rank,
                                 block * 64, (int)tap);
                }
            }
            __syncwarp();
        }
        cluster_arrive();
        cluster_wait();
        return;
    }

    cluster_arrive();       // waited for when the first copies are on their way

    const u32 warp = (threadIdx.x >> 5) & 3;
    const u32 patch = shared + PATCH_BASE + wg * PATCH;

    const int tiles_x = (W + 7) >> 3;
    const int tiles_y = (H + 7) >> 3;
    const int tile = blockIdx.x * 3 + wg;
    const int n = divide(tile, tiles_x * tiles_y);          // N or more: no tile, reads zeros and stores nothing
    const int rest = tile - n * (tiles_x * tiles_y);
    const int tile_y = divide(rest, tiles_x);
    const int h0 = tile_y * 8;
    const int w0 = (rest - tile_y * tiles_x) * 8;
    const int rows = n < N ? H : 0;

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
    for (int block = 0; block < blocks; ++block) {
        const u32 parity = block & 1;
        const int c0 = block * 64;

        if (wg > 0) {
            // Weights of slot 0: 64 rows of 16 pieces; 256 threads take four pieces each.
            const u32 u = threadIdx.x - 128;
            const u32 piece = u & 15;
            const u32 row = u >> 4;
            const u32 dst = shared + (piece >> 3) * HALF + row * 128 + (((piece & 7) ^ (row & 7)) << 4);
            const int f = f0 + 8 * (int)piece;
#pragma unroll
            for (u32 j = 0; j < 4; ++j) {
                const int c = c0 + (int)(row + 16 * j);
                const bool inside = c < C && f < F;
                const __half *const src = weight + ((long long)((int)first * C + c) * F + f);
                copy16(dst + j * 2048, inside ? src : weight, inside ? 16 : 0);
            }
            copy_commit();
        }
        {
            // The patch: 100 pixels of 8 pieces; 128 threads take 16 pixels at a time.
            const u32 piece = threadIdx.x & 7;
            const u32 p0 = (threadIdx.x & 127) >> 3;
            const u32 dst = patch + p0 * 128 + ((piece ^ (p0 & 7)) << 4);
            const int c = c0 + 8 * (int)piece;
#pragma unroll
            for (u32 i = 0; i < 7; ++i) {
                const u32 p = p0 + 16 * i;
                const u32 row = p / 10;
                const int y = h0 - 1 + (int)row;
                const int x = w0 - 1 + (int)(p - 10 * row);
                const bool inside = y >= 0 && y < rows && x >= 0 && x < W && c < C;
                const __half *const src = data + ((long long)((n * H + y) * W + x) * C + c);
                if (p < 100)
                    copy16(dst + i * 2048, inside ? src : data, inside ? 16 : 0);
            }
            copy_commit();
        }
        __syncwarp();
        if (block == 0)
            cluster_wait();         // the barriers are there
        if (wg > 0) {
            copy_wait<1>();
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            mbar_arrive(bar);
        }
        copy_wait<0>();
        warpgroup_sync(wg);

        u32 tap = first;
        u32 at = shifted(pixel, tap);
        fragments(a[0], patch + at * 128 + ((high ^ (at & 7)) << 4));
#pragma unroll
        for (int t = 0; t < 9; ++t) {
            mbar_wait(bar + 8 * t, parity);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                mma(d, a[t & 1][k], desc + (u64)(t * (SLOT >> 4) + k * 128));
            wgmma_commit();
            if (t < 8) {
                tap = tap == 8 ? 0 : tap + 1;
                at = shifted(pixel, tap);
                const u32 address = patch + at * 128 + ((high ^ (at & 7)) << 4);
                wgmma_wait<1>();        // the slot before has been read out of the registers that are loaded now
                fragments(a[(t + 1) & 1], address);
            }
        }
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < 64; ++i)
            asm volatile("" : "+f"(d[i]) :: "memory");

        if (block + 1 < blocks) {
            __syncwarp();
            cluster_arrive();
            cluster_wait();
        }
    }

    // No block of the cluster ends before both have received all weights.
    __syncwarp();
    cluster_arrive();

    // All four warps have read the patch: its room takes the output, 4096 bytes for each warp.
    warpgroup_sync(wg);

    const u32 stage = patch + warp * 4096;
    {
        const u32 row = lane & 15;
#pragma unroll
        for (u32 j = 0; j < 8; ++j) {
            const u32 chunk = 2 * (j & 3) + high;
            stmatrix(stage + (j >> 2) * 2048 + row * 128 + ((chunk ^ (row & 7)) << 4),
                     pack(d[8 * j + 0], d[8 * j + 1]), pack(d[8 * j + 2], d[8 * j + 3]),
                     pack(d[8 * j + 4], d[8 * j + 5]), pack(d[8 * j + 6], d[8 * j + 7]));
        }
    }
    __syncwarp();

    // 16 lanes write the 128 filters of a pixel, two pixels at a time.
    const u32 piece = lane & 15;
    uint4 v[8];
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
        const u32 row = 2 * j + high;
        v[j] = load_shared(stage + (piece >> 3) * 2048 + row * 128 + (((piece & 7) ^ (row & 7)) << 4));
    }
    const int h = h0 + 2 * (int)warp;
    const int w = w0 + (int)high;
    const int f = f0 + 8 * (int)piece;
    __half *const out = output + ((long long)((n * H + h) * W + w) * F + f);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int dy = j >> 2;
        const int dx = 2 * (j & 3);
        if (h + dy < rows && w + dx < W && f < F)
            *reinterpret_cast<uint4 *>(out + (long long)(dy * W + dx) * F) = v[j];
    }
    __syncwarp();
    cluster_wait();
}
