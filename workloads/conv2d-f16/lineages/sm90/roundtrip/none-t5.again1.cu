/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_data"
tensor = "data_nhwc"
dims = ["N * H * W", "C"]
strides = ["C"]
box = [80, 64]
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

[[tensormap]]
name = "tm_output"
tensor = "output"
dims = ["N * H * W", "F"]
strides = ["F"]
box = [16, 64]
swizzle = "128B"

[[launch]]
kernel = "conv2d"
grid = ["2 * ceil_div(N * H * W, 384)", "ceil_div(F, 128)"]
block = ["384"]
cluster = ["2", "1", "1"]
shared = "210176"
args = ["tm_data", "tm_weight", "tm_output", "int N * H * W", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block: 192 consecutive pixels × 128 filters; a warpgroup: 64 pixels × 128 filters. Per 64 channels, the pixels from W + 1 before the
// first to W + 1 after the last lie in shared memory, and so do the nine taps' weights, of which each block of a cluster of two fetches
// one half for both. Clusters differ in the column of the window that they begin with, so that not all ask for the same weights at once.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { u64 opaque[16]; };

#define TILE_PIXELS 192
#define B_SLOT 16384u
#define OFFSET_A 147456u
#define BOX_PIXELS 80
#define A_BOX 10240u
#define OFFSET_ZERO 208896u
#define OFFSET_BARRIERS 209024u

static __device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

static __device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void mbar_arrive(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
}

static __device__ __forceinline__ void mbar_wait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    } while (!done);
}

static __device__ __forceinline__ void cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

static __device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

static __device__ __forceinline__ void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ void load_pixels(u32 target, u64 map, u32 bar, int c, int pixel)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(target), "l"(map), "r"(bar), "r"(c), "r"(pixel) : "memory");
}

static __device__ __forceinline__ void load_weights(u32 target, u64 map, u32 bar, int f, int c, int tap)
{
    const unsigned short mask = 3;
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5, %6}], [%2], %3;"
                 :: "r"(target), "l"(map), "r"(bar), "h"(mask), "r"(f), "r"(c), "r"(tap) : "memory");
}

static __device__ __forceinline__ void store_tile(u64 map, u32 source, int f, int pixel)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(map), "r"(source), "r"(f), "r"(pixel) : "memory");
}

static __device__ __forceinline__ void ldmatrix4(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address) : "memory");
}

static __device__ __forceinline__ void stmatrix4(u32 address, u32 r0, u32 r1, u32 r2, u32 r3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}

static __device__ __forceinline__ u32 pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const u32 *>(&pair);
}

// d += a · b: a, 64 × 16, from registers; b, 16 × 128, from shared memory, its columns contiguous.
static __device__ __forceinline__ void wgmma(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b)
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
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
                   "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
                   "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
                   "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(1));
}

static __device__ __forceinline__ void hold(float (&d)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

// The lane's pixel, 64 channels of it, as four fragments of 16. q: its row in shared memory.
static __device__ __forceinline__ void gather(u32 (&a)[16], u32 base, u32 zero, u32 q, u32 valid, u32 high)
{
    const u32 row = valid ? base + q * 128u : zero;
    const u32 address = row + (((q & 7u) << 4) ^ high);
    ldmatrix4(a[0], a[1], a[2], a[3], address);
    ldmatrix4(a[4], a[5], a[6], a[7], address ^ 32u);
    ldmatrix4(a[8], a[9], a[10], a[11], address ^ 64u);
    ldmatrix4(a[12], a[13], a[14], a[15], address ^ 96u);
}

extern "C" __global__ void __launch_bounds__(384, 1)
conv2d(const __grid_constant__ TensorMap tm_data, const __grid_constant__ TensorMap tm_weight,
       const __grid_constant__ TensorMap tm_output, int M, int H, int W, int C, int F)
{
    extern __shared__ unsigned char shared_memory[];
    const u32 smem = ((u32)__cvta_generic_to_shared(shared_memory) + 1023u) & ~1023u;
    const u32 a_base = smem + OFFSET_A;
    const u32 zero = smem + OFFSET_ZERO;
    const u32 a_bar = smem + OFFSET_BARRIERS;   // 6
    const u32 b_bar = a_bar + 6 * 8;            // 9
    const u32 free_bar = b_bar + 9 * 8;         // 1: the first three slots of weights are no longer read

    const u64 map_data = reinterpret_cast<u64>(&tm_data);
    const u64 map_weight = reinterpret_cast<u64>(&tm_weight);
    const u64 map_output = reinterpret_cast<u64>(&tm_output);

    const u32 tid = threadIdx.x;
    const u32 lane = tid & 31;
    const u32 warp = tid >> 5;
    const u32 group = tid >> 7;
    const bool leader = tid == 256;             // of the warpgroup whose pixels come last
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const int p0 = blockIdx.x * TILE_PIXELS;
    const int f0 = blockIdx.y * 128;
    const int boxes = (2 * W + 273) / BOX_PIXELS;   // 3 … 6 of 80 pixels
    const int blocks = (C + 63) >> 6;

    // The order of the window's columns, the same in both blocks of a cluster.
    const int s0 = (int)((blockIdx.x >> 1) % 3u);
    const int s1 = s0 == 2 ? 0 : s0 + 1;
    const int s2 = s0 == 0 ? 2 : s0 - 1;
    auto column = [&](int j) { return j == 0 ? s0 : j == 1 ? s1 : s2; };

    auto fetch_pixels = [&](int i, int c) {
        mbar_expect(a_bar + 8 * i, A_BOX);
        load_pixels(a_base + A_BOX * i, map_data, a_bar + 8 * i, c, p0 - W - 1 + BOX_PIXELS * i);
    };
    auto fetch_weights = [&](int t, int c) {
        mbar_expect(b_bar + 8 * t, B_SLOT);
        load_weights(smem + B_SLOT * t + 8192u * rank, map_weight, b_bar + 8 * t, f0 + 64 * (int)rank, c,
                     t / 3 * 3 + column(t % 3));
    };

    if (leader) {
        asm volatile("prefetch.tensormap [%0];" :: "l"(map_data) : "memory");
        asm volatile("prefetch.tensormap [%0];" :: "l"(map_weight) : "memory");
#pragma unroll
        for (int i = 0; i < 15; ++i)
            mbar_init(a_bar + 8 * i, 1);
        mbar_init(free_bar, 12);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        fence_async();
    } else if (tid < 8) {
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(zero + tid * 16), "r"(0) : "memory");
    } else if (tid == 32) {
        asm volatile("prefetch.tensormap [%0];" :: "l"(map_output) : "memory");
    }
    __syncwarp();
    cluster_arrive_relaxed();
    if (leader) {
        fetch_pixels(0, 0);
        fetch_pixels(1, 0);
    }
    __syncwarp();
    __syncthreads();
    cluster_wait();

    const u32 local = warp * 16 + (lane & 15);
    const u32 high = (lane >> 4) << 4;
    u32 mask = 0;

    // Columns contiguous, swizzle of 128 bytes: 8192 bytes from 64 filters to the next, 1024 from 8 channels to the next.
    const u64 b_desc = (u64)((smem & 0x3FFFFu) >> 4) | (512ull << 16) | (64ull << 32) | (1ull << 62);

    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        acc[i] = 0.0f;
    hold(acc);

    for (int b = 0; b < blocks; ++b) {
        const u32 parity = b & 1;
        const int c = 64 * b;

        if (b > 0) {
            // Both blocks of the cluster have read all that the next loads overwrite.
            fence_async();
            __syncwarp();
            cluster_arrive();
            cluster_wait();
            if (leader) {
                fetch_pixels(0, c);
                fetch_pixels(1, c);
            }
            __syncwarp();
        }
        if (leader) {
            fetch_weights(0, c);
            fetch_pixels(2, c);
            fetch_weights(1, c);
            if (boxes > 3)
                fetch_pixels(3, c);
            fetch_weights(2, c);
            for (int i = 4; i < boxes; ++i)
                fetch_pixels(i, c);
#pragma unroll
            for (int t = 3; t < 9; ++t)
                fetch_weights(t, c);
        }
        __syncwarp();

        if (b == 0) {
            // Which of the nine neighbours of the lane's pixel lie inside of the image.
            const int p = p0 + (int)local;
            if (p < M) {
                const int row = p / W;
                const int w = p - row * W;
                const int h = row % H;
                const u32 columns = 2u | (w > 0 ? 1u : 0u) | (w < W - 1 ? 4u : 0u);
                mask = columns << 3;
                if (h > 0)
                    mask |= columns;
                if (h < H - 1)
                    mask |= columns << 6;
            }
            __syncwarp();
        }

        u32 a[2][16];
        const int last = 64 * (int)group + 63;
        int ready = (int)(group >> 1);          // the first box that the warpgroup reads
        {
            const int need = (int)((u32)(last + s0) / (u32)BOX_PIXELS);
            while (ready <= need) {
                mbar_wait(a_bar + 8 * ready, parity);
                ++ready;
            }
            __syncwarp();
            gather(a[0], a_base, zero, local + (u32)s0, (mask >> s0) & 1u, high);
            mbar_wait(b_bar, parity);
            __syncwarp();
        }

#pragma unroll
        for (int t = 0; t < 9; ++t) {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wgmma(acc, a[t & 1][4 * k], a[t & 1][4 * k + 1], a[t & 1][4 * k + 2], a[t & 1][4 * k + 3],
                      b_desc + (u64)(1024 * t + 128 * k));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

            if (t < 8) {
                // All that the next tap needs is looked at while this one is in flight.
                const int r = (t + 1) / 3;
                const int s = column((t + 1) % 3);
                const int offset = r * W + s;
                const int need = (int)((u32)(last + offset) / (u32)BOX_PIXELS);
                while (ready <= need) {
                    mbar_wait(a_bar + 8 * ready, parity);
                    ++ready;
                }
                mbar_wait(b_bar + 8 * (t + 1), parity);
                __syncwarp();
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                gather(a[(t + 1) & 1], a_base, zero, local + (u32)offset, (mask >> (3 * r + s)) & 1u, high);
            } else {
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            }
            if (t == 3 && b == blocks - 1) {
                if (lane == 0)
                    mbar_arrive(free_bar);
                __syncwarp();
            }
        }
        hold(acc);
    }

    // The results, through the place of the first three slots of weights; each warp stores its own 16 pixels.
    mbar_wait(free_bar, 0);
    __syncwarp();
    {
        const u32 stage = smem + warp * 4096u;
        const u32 row = lane & 15;
        const u32 line = stage + row * 128u;
        const u32 twist = (row & 7u) << 4;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const u32 address = line + (j >> 2) * 2048u + ((((u32)(j & 3) << 5) | high) ^ twist);
            stmatrix4(address, pack(acc[8 * j], acc[8 * j + 1]), pack(acc[8 * j + 2], acc[8 * j + 3]),
                      pack(acc[8 * j + 4], acc[8 * j + 5]), pack(acc[8 * j + 6], acc[8 * j + 7]));
        }
        fence_async();
        __syncwarp();
        if (lane == 0) {
            const int pixel = p0 + 16 * (int)warp;
            if (pixel < M) {
                store_tile(map_output, stage, f0, pixel);
                if (f0 + 64 < F)
                    store_tile(map_output, stage + 2048u, f0 + 64, pixel);
            }
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
    }
}
