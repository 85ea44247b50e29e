/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_data"
tensor = "data_nhwc"
dims = ["N * H * W", "C"]
strides = ["C"]
box = [64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight_hwcf"
dims = ["9", "C", "F"]
strides = ["C * F", "F"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "conv2d"
grid = ["2 * ceil_div(N * H * W, 384) * ceil_div(F, 128)"]
block = ["416"]
cluster = ["2"]
shared = "206848"
pdl = true
args = ["tm_data", "tm_weight", "data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block: 192 consecutive pixels (n, h, w flattened) × 128 filters. Pixel p of the block needs, for the tap (r, s), the flat pixel
// p + (r − 1) W + s − 1; so the pixels from p0 − (W + 1) on lie in shared memory, and row p − p0 + r W + s is the one to read.
// Warps 0 … 11 (three warpgroups) multiply, warp 12 loads.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

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
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n" :: "r"(bar), "r"(parity) : "memory");
}

__device__ __forceinline__ void mbar_arrive_cluster(u32 bar, u32 cta)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" :: "r"(bar), "r"(cta) : "memory");
}

__device__ __forceinline__ void tma_data(u32 dst, const TensorMap *map, int c, int pixel, u32 bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(dst), "l"((u64)map), "r"(bar), "r"(c), "r"(pixel) : "memory");
}

// Into this block alone.
__device__ __forceinline__ void tma_weight_own(u32 dst, const TensorMap *map, int f, int c, int tap, u32 bar)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
                 :: "r"(dst), "l"((u64)map), "r"(bar), "r"(f), "r"(c), "r"(tap) : "memory");
}

// Into both blocks of the pair.
__device__ __forceinline__ void tma_weight(u32 dst, const TensorMap *map, int f, int c, int tap, u32 bar)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5, %6}], [%2], %3;"
                 :: "r"(dst), "l"((u64)map), "r"(bar), "h"((unsigned short)3), "r"(f), "r"(c), "r"(tap) : "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ void grid_wait()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ __forceinline__ void grid_launch_dependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ void prefetch_l2(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" :: "l"((u64)__cvta_generic_to_global(p)) : "memory");
}

__device__ __forceinline__ void ldmatrix(u32 (&a)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address) : "memory");
}

#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
              "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

__device__ __forceinline__ void wgmma(float (&d)[64], const u32 (&a)[4], u64 desc)
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
                 : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc), "r"(1));
}

__device__ __forceinline__ u32 pack(float lo, float hi)
{
    __half2 v = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<u32 *>(&v);
}

#define WEIGHT_TILE 16384      // 64 channels × 128 filters, as two boxes of 64 filters
#define DATA_BOX 8192          // 64 pixels × 64 channels

extern "C" __global__ void __launch_bounds__(416, 1)
conv2d(const __grid_constant__ TensorMap tm_data, const __grid_constant__ TensorMap tm_weight,
       const __half *data, const __half *weight, __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ __align__(1024) unsigned char smem_raw[];
    const u32 base = ((u32)__cvta_generic_to_shared(smem_raw) + 1023u) & ~1023u;
    const u32 s_weight = base;                          // 9 tiles
    const u32 s_data = base + 9 * WEIGHT_TILE;          // 7 boxes at most
    const u32 s_zero = s_data + 7 * DATA_BOX;           // a row of zeros, 128 bytes
    const u32 wbar = s_zero + 128;                      // 9 barriers
    const u32 dbar = wbar + 9 * 8;                      // 7 barriers
    const u32 ebar = dbar + 7 * 8;

    const int tid = threadIdx.x;
    const int lane = tid & 31;
    const int warp = __shfl_sync(0xffffffffu, tid >> 5, 0);
    const int wg = warp >> 2;
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const int total = N * H * W;
    const int nf = (F + 127) / 128;
    const int cid = blockIdx.x >> 1;
    const int f0 = cid % nf * 128;
    const int p0 = (cid / nf * 2 + (int)rank) * 192;
    const int chunks = (C + 63) / 64;

    if (warp == 12) {
        const int boxes = (192 + 2 * W + 2 + 63) >> 6;  // 4 at least
        const int first = p0 - (W + 1);

        if (lane == 0) {
            asm volatile("prefetch.tensormap [%0];" :: "l"((u64)&tm_data) : "memory");
            asm volatile("prefetch.tensormap [%0];" :: "l"((u64)&tm_weight) : "memory");
            for (int t = 0; t < 9; ++t)
                mbar_init(wbar + 8 * t, 1);
            for (int i = 0; i < 7; ++i)
                mbar_init(dbar + 8 * i, 1);
            mbar_init(ebar, 24);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            for (int i = 0; i < boxes; ++i)
                mbar_expect(dbar + 8 * i, DATA_BOX);
            for (int t = 0; t < 9; ++t)
                mbar_expect(wbar + 8 * t, WEIGHT_TILE);
        }
        __syncwarp();
        cluster_arrive();
        grid_wait();
        grid_launch_dependents();

        // What the first tap needs comes first; none of it concerns the other block.
        if (lane == 0) {
            for (int i = 0; i < 2; ++i)
                tma_data(s_data + i * DATA_BOX, &tm_data, 0, first + 64 * i, dbar + 8 * i);
            tma_weight_own(s_weight, &tm_weight, f0, 0, 0, wbar);
            tma_weight_own(s_weight + 8192, &tm_weight, f0 + 64, 0, 0, wbar);
            for (int i = 2; i < boxes; ++i)
                tma_data(s_data + i * DATA_BOX, &tm_data, 0, first + 64 * i, dbar + 8 * i);
        }
        __syncwarp();
        cluster_wait();

        if (lane == 0) {
            for (int t = 1; t < 9; ++t)
                tma_weight(s_weight + t * WEIGHT_TILE + rank * 8192, &tm_weight, f0 + 64 * (int)rank, 0, t, wbar + 8 * t);
            for (int k = 1; k < chunks; ++k) {
                mbar_wait(ebar, (k - 1) & 1);
                for (int i = 0; i < boxes; ++i) {
                    mbar_expect(dbar + 8 * i, DATA_BOX);
                    tma_data(s_data + i * DATA_BOX, &tm_data, k * 64, first + 64 * i, dbar + 8 * i);
                }
                for (int t = 0; t < 9; ++t) {
                    mbar_expect(wbar + 8 * t, WEIGHT_TILE);
                    tma_weight(s_weight + t * WEIGHT_TILE + rank * 8192, &tm_weight, f0 + 64 * (int)rank, k * 64, t, wbar + 8 * t);
                }
            }
        }
        __syncwarp();
        cluster_arrive();
        cluster_wait();
        return;
    }

    // Hints only: the block's own pixels and a share of the weights on their way to the L2 cache, a sector of 32 bytes a thread.
    {
        const int pixels = total - p0 < 192 ? total - p0 : 192;
        const long long data_bytes = (long long)pixels * C * 2;
        const char *const x = reinterpret_cast<const char *>(data) + (long long)p0 * C * 2;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const long long offset = (tid + 384 * j) * 32;
            if (offset < data_bytes)
                prefetch_l2(x + offset);
        }
        const long long weight_bytes = 18ll * C * F;
        const long long offset = ((long long)blockIdx.x + (long long)gridDim.x * (tid >> 2)) * 128 + (tid & 3) * 32;
        if (offset < weight_bytes)
            prefetch_l2(reinterpret_cast<const char *>(weight) + offset);
    }
    if (warp == 1)
        asm volatile("st.shared.u32 [%0], %1;" :: "r"(s_zero + 4 * lane), "r"(0) : "memory");
    __syncwarp();
    cluster_arrive();

    // The row whose address this lane gives to ldmatrix, and the taps for which it lies in the image.
    const int pl = warp * 16 + (lane & 15);
    const u32 khalf = lane >> 4;
    u32 mask = 0;
    {
        const int p = p0 + pl;
        const int w = p % W;
        const int h = p / W % H;
        if (p < total) {
#pragma unroll
            for (int t = 0; t < 9; ++t) {
                const int y = h + t / 3 - 1, x = w + t % 3 - 1;
                if (y >= 0 && y < H && x >= 0 && x < W)
                    mask |= 1u << t;
            }
        }
    }

    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        acc[i] = 0.0f;

    // Weights: filters innermost; 64 filters × 8 channels an atom; 1024 bytes to the next 8 channels, 8192 to the next 64 filters.
    const u64 desc0 = (1ull << 62) | ((u64)(1024 >> 4) << 32) | ((u64)(8192 >> 4) << 16) | (u64)((s_weight & 0x3ffffu) >> 4);

    grid_wait();
    grid_launch_dependents();
    cluster_wait();

    for (int k = 0; k < chunks; ++k) {
        const u32 parity = k & 1;
        u32 a[2][4][4];

#pragma unroll
        for (int t = 0; t < 9; ++t) {
            const int r = t / 3, s = t % 3;
            if (s == 0) {
                // Boxes that the rows of this warpgroup need from here on; at most two more than before.
                const int last = wg + ((65 + r * W) >> 6);
                if (r == 0) {
                    mbar_wait(dbar + 8 * wg, parity);
                    mbar_wait(dbar + 8 * last, parity);
                } else {
                    const int before = wg + ((65 + (r - 1) * W) >> 6);
                    const int next = before + 1 < last ? before + 1 : last;
                    mbar_wait(dbar + 8 * next, parity);
                    mbar_wait(dbar + 8 * last, parity);
                }
            }
            if (t >= 2)
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");

            const int l = pl + r * W + s;
            const u32 row = (mask >> t) & 1 ? s_data + (u32)l * 128 : s_zero;
            const u32 address = row + ((((u32)l & 7) ^ khalf) << 4);
#pragma unroll
            for (int kk = 0; kk < 4; ++kk)
                ldmatrix(a[t & 1][kk], address ^ (kk << 5));

            mbar_wait(wbar + 8 * t, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int kk = 0; kk < 4; ++kk)
                wgmma(acc, a[t & 1][kk], desc0 + (u64)((t * WEIGHT_TILE + kk * 2048) >> 4));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < 64; ++i)
            asm volatile("" : "+f"(acc[i]) :: "memory");

        if (k + 1 < chunks) {
            __syncwarp();
            if (lane == 0) {
                mbar_arrive_cluster(ebar, 0);
                mbar_arrive_cluster(ebar, 1);
            }
            __syncwarp();
        }
    }
    cluster_arrive();

    // The four lanes of a row exchange their pairs of columns, so that each stores 16 bytes and together they store 64.
    const int g = lane >> 2, q = lane & 3;
    const bool odd = q & 1, high = q & 2;
#pragma unroll
    for (int hh = 0; hh < 2; ++hh) {
        const int p = p0 + warp * 16 + g + 8 * hh;
        __half *const out = output + (long long)p * F;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u32 v0 = pack(acc[16 * i + 2 * hh], acc[16 * i + 2 * hh + 1]);
            u32 v1 = pack(acc[16 * i + 4 + 2 * hh], acc[16 * i + 4 + 2 * hh + 1]);
            u32 v2 = pack(acc[16 * i + 8 + 2 * hh], acc[16 * i + 8 + 2 * hh + 1]);
            u32 v3 = pack(acc[16 * i + 12 + 2 * hh], acc[16 * i + 12 + 2 * hh + 1]);
            u32 x;
            x = __shfl_xor_sync(0xffffffffu, odd ? v0 : v1, 1);
            v0 = odd ? x : v0;
            v1 = odd ? v1 : x;
            x = __shfl_xor_sync(0xffffffffu, odd ? v2 : v3, 1);
            v2 = odd ? x : v2;
            v3 = odd ? v3 : x;
            x = __shfl_xor_sync(0xffffffffu, high ? v0 : v2, 2);
            v0 = high ? x : v0;
            v2 = high ? v2 : x;
            x = __shfl_xor_sync(0xffffffffu, high ? v1 : v3, 2);
            v1 = high ? x : v1;
            v3 = high ? v3 : x;
            const int f = f0 + (4 * i + q) * 8;
            if (p < total && f < F)
                *reinterpret_cast<uint4 *>(out + f) = make_uint4(v0, v1, v2, v3);
        }
    }
    cluster_wait();
}
