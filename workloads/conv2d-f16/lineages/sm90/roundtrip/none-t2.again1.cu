/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "data_nhwc"
dims = ["N * H * W", "C"]
strides = ["C"]
box = [64, 64]
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
dims = ["N * H * W", "F"]
strides = ["F"]
box = [16, 64]
swizzle = "128B"

[[launch]]
kernel = "conv2d"
grid = ["2 * ceil_div(N * H * W, 384)", "ceil_div(F, 128)"]
cluster = ["2", "1"]
block = ["512"]
shared = "206848"
args = ["tm_x", "tm_w", "tm_y", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block makes 192 consecutive pixels × 128 filters. For each 64 channels it holds
//   - a slab: pixels p0 − W − 1 … p0 + 192 + W, 128 bytes each (at most 448 of them, as W <= 127), in boxes of 64 pixels,
//   - the weights of nine taps, 64 channels × 128 filters each. Two blocks of a cluster share them: each fetches 64 filters for both.
// Warps 0 … 11 (three warpgroups of 64 pixels each) multiply; warp 12 fetches pixels, warp 13 weights; warps 14 and 15 only
// complete their warpgroup, which hands its registers to the others.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

#define TILE_M 192
#define WARPS 12
#define STAGE_BYTES 16384
#define BOX_BYTES 8192
#define OFF_A (9 * STAGE_BYTES)
#define OFF_ZERO (OFF_A + 7 * BOX_BYTES)
#define OFF_BARS (OFF_ZERO + 128)

// Barriers: index of the first of each kind
#define FULL_A 0
#define EMPTY_A 7
#define FULL_B 8
#define EMPTY_B 17
#define OUT_FREE 26

__device__ __forceinline__ void bar_init(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_expect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void bar_arrive(unsigned bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
}

__device__ __forceinline__ void bar_arrive_at(unsigned bar, unsigned rank)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
                 "}\n" :: "r"(bar), "r"(rank) : "memory");
}

__device__ __forceinline__ void bar_wait(unsigned bar, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void load_pixels(unsigned dst, unsigned long long map, unsigned bar, int c, int p)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(c), "r"(p) : "memory");
}

__device__ __forceinline__ void load_weights(unsigned dst, unsigned long long map, unsigned bar, int f, int c, int tap)
{
    const unsigned short both = 3;
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%3, %4, %5}], [%2], %6;"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(f), "r"(c), "r"(tap), "h"(both) : "memory");
}

__device__ __forceinline__ void load_weights_own(unsigned dst, unsigned long long map, unsigned bar, int f, int c, int tap)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(f), "r"(c), "r"(tap) : "memory");
}

__device__ __forceinline__ void store_box(unsigned long long map, unsigned src, int f, int p)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(map), "r"(src), "r"(f), "r"(p) : "memory");
}

__device__ __forceinline__ void ldmatrix(unsigned &a, unsigned &b, unsigned &c, unsigned &d, unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address) : "memory");
}

__device__ __forceinline__ void stmatrix(unsigned address, unsigned a, unsigned b, unsigned c, unsigned d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

// d += a · b: a, 64 pixels × 16 channels, in registers; b, 16 channels × 128 filters, filters innermost, in shared memory
__device__ __forceinline__ void wgmma(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                      unsigned long long desc)
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
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(desc), "r"(1));
}

extern "C" __global__ void __launch_bounds__(512, 1)
conv2d(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w,
       const __grid_constant__ TensorMap tm_y, int N, int H, int W, int C, int F)
{
    extern __shared__ __align__(1024) unsigned char smem[];
    const unsigned base = ((unsigned)__cvta_generic_to_shared(smem) + 1023u) & ~1023u;
    const unsigned slab = base + OFF_A;
    const unsigned zero = base + OFF_ZERO;
    const unsigned bars = base + OFF_BARS;

    const unsigned long long map_x = reinterpret_cast<unsigned long long>(&tm_x);
    const unsigned long long map_w = reinterpret_cast<unsigned long long>(&tm_w);
    const unsigned long long map_y = reinterpret_cast<unsigned long long>(&tm_y);

    const int warp = __shfl_sync(0xffffffffu, (int)(threadIdx.x / 32), 0);
    const int lane = threadIdx.x % 32;
    const int M = N * H * W;
    const int p0 = blockIdx.x * TILE_M;
    const int f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;
    const int boxes = (TILE_M + 2 + 2 * W + 63) / 64;

    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    if (warp == WARPS) {
        if (lane == 0)
            asm volatile("prefetch.tensormap [%0];" :: "l"(map_x) : "memory");
        if (lane <= EMPTY_A)
            bar_init(bars + 8 * lane, lane == EMPTY_A ? WARPS : 1);
        else if (lane == OUT_FREE)
            bar_init(bars + 8 * OUT_FREE, WARPS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    } else if (warp == WARPS + 1) {
        if (lane == 0)
            asm volatile("prefetch.tensormap [%0];" :: "l"(map_w) : "memory");
        if (lane < 18)
            bar_init(bars + 8 * (FULL_B + lane), lane < 9 ? 1 : 2 * WARPS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    } else if (warp == 0) {
        asm volatile("st.shared.u32 [%0], %1;" :: "r"(zero + 4 * lane), "r"(0) : "memory");
    } else if (warp == 1) {
        if (lane == 0)
            asm volatile("prefetch.tensormap [%0];" :: "l"(map_y) : "memory");
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    // These go to this block only and need not wait for the other one: the pixels, and the weights of the first tap.
    if (warp == WARPS && lane == 0) {
        #pragma unroll 1
        for (int i = 0; i < boxes; ++i) {
            bar_expect(bars + 8 * (FULL_A + i), BOX_BYTES);
            load_pixels(slab + i * BOX_BYTES, map_x, bars + 8 * (FULL_A + i), 0, p0 - W - 1 + 64 * i);
        }
    } else if (warp == WARPS + 1 && lane == 0) {
        bar_expect(bars + 8 * FULL_B, STAGE_BYTES);
        load_weights_own(base, map_w, bars + 8 * FULL_B, f0, 0, 0);
        load_weights_own(base + BOX_BYTES, map_w, bars + 8 * FULL_B, f0 + 64, 0, 0);
    }
    __syncwarp();
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");

    if (warp >= WARPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;" ::: "memory");
        if (warp == WARPS && lane == 0) {
            #pragma unroll 1
            for (int chunk = 1; chunk < chunks; ++chunk) {
                bar_wait(bars + 8 * EMPTY_A, (chunk - 1) & 1);
                #pragma unroll 1
                for (int i = 0; i < boxes; ++i) {
                    bar_expect(bars + 8 * (FULL_A + i), BOX_BYTES);
                    load_pixels(slab + i * BOX_BYTES, map_x, bars + 8 * (FULL_A + i), 64 * chunk, p0 - W - 1 + 64 * i);
                }
            }
        } else if (warp == WARPS + 1 && lane == 0) {
            #pragma unroll 1
            for (int chunk = 0; chunk < chunks; ++chunk) {
                #pragma unroll 1
                for (int tap = chunk == 0 ? 1 : 0; tap < 9; ++tap) {
                    if (chunk > 0)
                        bar_wait(bars + 8 * (EMPTY_B + tap), (chunk - 1) & 1);
                    const unsigned full = bars + 8 * (FULL_B + tap);
                    bar_expect(full, STAGE_BYTES);
                    load_weights(base + tap * STAGE_BYTES + rank * BOX_BYTES, map_w, full, f0 + 64 * (int)rank, 64 * chunk,
                                 tap);
                }
            }
        }
        __syncwarp();
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;" ::: "memory");

    // The pixel that this lane addresses for ldmatrix, and which of its nine neighbours lie in the image
    const int group = warp / 4;
    const int row0 = warp * 16 + (lane & 15);
    const unsigned half = lane >> 4;
    unsigned mask = 0;
    {
        const int p = p0 + row0;
        const int line = p / W;
        const int w = p - line * W;
        const int h = line % H;
        const unsigned columns = (w > 0 ? 1u : 0u) | 2u | (w + 1 < W ? 4u : 0u);
        if (h > 0)
            mask |= columns;
        mask |= columns << 3;
        if (h + 1 < H)
            mask |= columns << 6;
        if (p >= M)
            mask = 0;
    }

    float d[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i)
        d[i] = 0;

    // Filters innermost, 128-byte swizzle: 8192 bytes from 64 filters to the next, 1024 bytes from 8 channels to the next
    const unsigned long long desc0 = (1ull << 62) | ((unsigned long long)(1024 >> 4) << 32)
                                   | ((unsigned long long)(8192 >> 4) << 16) | ((base & 0x3FFFF) >> 4);

    // Two halves of a tap, 32 channels each: one is multiplied while the other one is read.
    unsigned a[2][8];

    #pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;
        const bool last = chunk + 1 == chunks;
        int ready = 0;
        int need_row = group * 64 + 65;
        int row = row0;
        int s = 0;
        unsigned inside = mask;
        unsigned long long desc = desc0;

        #pragma unroll 1
        for (int tap = 0; tap < 9; ++tap) {
            #pragma unroll 1
            while (ready <= (need_row >> 6)) {
                bar_wait(bars + 8 * (FULL_A + ready), parity);
                ++ready;
            }

            const unsigned start = (inside & 1u) ? slab + (unsigned)row * 128u : zero;
            const unsigned address = start + ((half ^ ((unsigned)row & 7u)) << 4);
            ldmatrix(a[0][0], a[0][1], a[0][2], a[0][3], address);
            ldmatrix(a[0][4], a[0][5], a[0][6], a[0][7], address ^ 32u);

            bar_wait(bars + 8 * (FULL_B + tap), parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            wgmma(d, a[0][0], a[0][1], a[0][2], a[0][3], desc);
            wgmma(d, a[0][4], a[0][5], a[0][6], a[0][7], desc + 128);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // The tap before this one is done: the registers of its second half and its weights are free.
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");

            ldmatrix(a[1][0], a[1][1], a[1][2], a[1][3], address ^ 64u);
            ldmatrix(a[1][4], a[1][5], a[1][6], a[1][7], address ^ 96u);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            wgmma(d, a[1][0], a[1][1], a[1][2], a[1][3], desc + 256);
            wgmma(d, a[1][4], a[1][5], a[1][6], a[1][7], desc + 384);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

            if (tap > 0 && !last && lane < 2)
                bar_arrive_at(bars + 8 * (EMPTY_B + tap - 1), lane);
            if (tap == 3 && last && lane == 0)
                bar_arrive(bars + 8 * OUT_FREE);
            __syncwarp();

            // The first half is done: its registers are free.
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");

            inside >>= 1;
            desc += STAGE_BYTES >> 4;
            ++row;
            if (++s == 3) {
                s = 0;
                row += W - 3;
                need_row += W;
            }
        }

        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (!last) {
            __syncwarp();
            if (lane < 2)
                bar_arrive_at(bars + 8 * (EMPTY_B + 8), lane);
            if (lane == 0)
                bar_arrive(bars + 8 * EMPTY_A);
            __syncwarp();
        }
    }
    #pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");

    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

    // The weights of the first three taps have been read by all warps: their 48 KiB take the output, 4 KiB a warp.
    bar_wait(bars + 8 * OUT_FREE, 0);
    __syncwarp();
    const unsigned stage = base + warp * 4096;
    const unsigned out_row = lane & 15;
    #pragma unroll
    for (int j = 0; j < 16; j += 2) {
        const unsigned block = j + half;
        const unsigned address = stage + (block >> 3) * 2048u + out_row * 128u + (((block & 7u) ^ (out_row & 7u)) << 4);
        stmatrix(address, pack(d[4 * j], d[4 * j + 1]), pack(d[4 * j + 2], d[4 * j + 3]),
                 pack(d[4 * j + 4], d[4 * j + 5]), pack(d[4 * j + 6], d[4 * j + 7]));
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0) {
        const int p = p0 + warp * 16;
        if (p < M) {
            store_box(map_y, stage, f0, p);
            if (f0 + 64 < F)
                store_box(map_y, stage + 2048, f0 + 64, p);
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncwarp();
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
