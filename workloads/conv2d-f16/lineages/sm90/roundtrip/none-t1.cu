/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "data_nhwc"
box = [1, 10, 8, 64]
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
cluster = ["2", "1"]
block = ["416"]
shared = "224512"
args = ["tm_x", "tm_w", "tm_y", "int ceil_div(H, 8)", "int ceil_div(W, 8)", "int ceil_div(C, 64)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = sum of data[n, h + r - 1, w + s - 1, c] * weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM. A block computes three tiles of 8 x 8 pixels by 128 filters, one for each of three warpgroups; a
// thread of a 13th warp loads. For each s and 64 channels, a tile's window of 10 rows x 8 columns (shifted by s) is
// loaded once by TMA, zeros outside of the image; the three r are three views of it, 1024 bytes apart. The weights
// go through a ring of 8 tiles of 64 channels x 128 filters; the two blocks of a cluster load half of each tile for both.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

static constexpr u32 A_TILE = 10 * 1024;         // 10 rows x 8 pixels x 64 channels
static constexpr u32 A_STAGE = 3 * A_TILE;       // a tile for each warpgroup
static constexpr u32 A_BYTES = 3 * A_STAGE;      // a stage for each s
static constexpr u32 B_HALF = 64 * 128;          // 64 channels x 64 filters
static constexpr u32 B_TILE = 2 * B_HALF;
static constexpr u32 B_STAGES = 8;
static constexpr u32 BARRIERS = A_BYTES + B_STAGES * B_TILE;

__device__ __forceinline__ void barrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_arrive_at(u32 barrier, u32 rank)
{
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}\n" :: "r"(barrier), "r"(rank) : "memory");
}

__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity)
{
    u32 done;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void load_x(u32 to, const TensorMap *map, u32 barrier, int c, int w, int h, int n)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];"
        :: "r"(to), "l"((u64)map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(n) : "memory");
}

__device__ __forceinline__ void load_w(u32 to, const TensorMap *map, u32 barrier, int f, int c, int rs)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5}], [%2];"
        :: "r"(to), "l"((u64)map), "r"(barrier), "r"(f), "r"(c), "r"(rs) : "memory");
}

__device__ __forceinline__ void load_w_both(u32 to, const TensorMap *map, u32 barrier, int f, int c, int rs)
{
    const unsigned short mask = 3;
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%4, %5, %6}], [%2], %3;"
        :: "r"(to), "l"((u64)map), "r"(barrier), "h"(mask), "r"(f), "r"(c), "r"(rs) : "memory");
}

__device__ __forceinline__ void store_y(const TensorMap *map, u32 from, int f, int w, int h, int n)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
        :: "l"((u64)map), "r"(from), "r"(f), "r"(w), "r"(h), "r"(n) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void wgmma(float (&d)[64], u64 a, u64 b)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, 0, 1;\n"
        "}\n"
        :
          "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
          "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
          "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
          "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
          "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
          "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const u32 *>(&both);
}

extern "C" __global__ void __launch_bounds__(416, 1)
conv2d(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w,
       const __grid_constant__ TensorMap tm_y, int tiles_h, int tiles_w, int chunks)
{
    extern __shared__ __align__(1024) unsigned char dynamic[];
    const u32 base = ((u32)__cvta_generic_to_shared(dynamic) + 1023) & ~1023u;
    const u32 smem_b = base + A_BYTES;
    const u32 full_a = base + BARRIERS;      // [s][warpgroup]
    const u32 empty_a = full_a + 9 * 8;      // [s]
    const u32 full_b = empty_a + 3 * 8;      // [slot]
    const u32 empty_b = full_b + B_STAGES * 8;

    const int warp = __shfl_sync(0xffffffff, (int)threadIdx.x >> 5, 0);
    const int lane = threadIdx.x & 31;
    const int f0 = blockIdx.y * 128;
    const int steps = 9 * chunks;

    if (warp == 12) {
        if (lane == 0) {
            asm volatile("prefetch.tensormap [%0];" :: "l"((u64)&tm_x) : "memory");
            asm volatile("prefetch.tensormap [%0];" :: "l"((u64)&tm_w) : "memory");
            for (int i = 0; i < 9; ++i)
                barrier_init(full_a + 8 * i, 1);
            for (int i = 0; i < 3; ++i)
                barrier_init(empty_a + 8 * i, 12);
            for (int i = 0; i < (int)B_STAGES; ++i) {
                barrier_init(full_b + 8 * i, 1);
                barrier_init(empty_b + 8 * i, 24);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("fence.proxy.async;" ::: "memory");
        }
        __syncwarp();

        int tw[3], th[3], tn[3];
        #pragma unroll
        for (int g = 0; g < 3; ++g) {
            const int tile = 3 * blockIdx.x + g;
            const int row = tile / tiles_w;
            tw[g] = (tile - row * tiles_w) * 8;
            tn[g] = row / tiles_h;
            th[g] = (row - tn[g] * tiles_h) * 8;
        }

        // What the first products need touches this block only, so it need not wait for the other one.
        if (lane == 0) {
            #pragma unroll
            for (int g = 0; g < 3; ++g) {
                barrier_expect(full_a + 8 * g, A_TILE);
                load_x(base + g * A_TILE, &tm_x, full_a + 8 * g, 0, tw[g] - 1, th[g] - 1, tn[g]);
                if (g == 0) {
                    barrier_expect(full_b, B_TILE);
                    load_w(smem_b, &tm_w, full_b, f0, 0, 0);
                    load_w(smem_b + B_HALF, &tm_w, full_b, f0 + 64, 0, 0);
                }
            }
        }
        __syncwarp();
        cluster_arrive();
        cluster_wait();

        if (lane == 0) {
            u32 rank;
            asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
            int i = 0;
            #pragma unroll 1
            for (int chunk = 0; chunk < chunks; ++chunk) {
                #pragma unroll 1
                for (int s = 0; s < 3; ++s) {
                    if (i > 0) {
                        if (chunk > 0)
                            barrier_wait(empty_a + 8 * s, (chunk - 1) & 1);
                        #pragma unroll
                        for (int g = 0; g < 3; ++g) {
                            const u32 barrier = full_a + 8 * (3 * s + g);
                            barrier_expect(barrier, A_TILE);
                            load_x(base + s * A_STAGE + g * A_TILE, &tm_x, barrier,
                                   chunk * 64, tw[g] + s - 1, th[g] - 1, tn[g]);
                        }
                    }
                    #pragma unroll 1
                    for (int r = 0; r < 3; ++r, ++i) {
                        if (i == 0)
                            continue;
                        const u32 slot = i & (B_STAGES - 1);
                        if (i >= (int)B_STAGES)
                            barrier_wait(empty_b + 8 * slot, (i / (int)B_STAGES - 1) & 1);
                        barrier_expect(full_b + 8 * slot, B_TILE);
                        load_w_both(smem_b + slot * B_TILE + rank * B_HALF, &tm_w, full_b + 8 * slot,
                                    f0 + (int)rank * 64, chunk * 64, 3 * r + s);
                    }
                }
            }
        }
        __syncwarp();
        cluster_arrive();
        cluster_wait();
        return;
    }

    cluster_arrive();
    const int g = warp >> 2;
    const int quarter = warp & 3;
    const int tile = 3 * blockIdx.x + g;
    const int row = tile / tiles_w;
    const int w0 = (tile - row * tiles_w) * 8;
    const int n = row / tiles_h;
    const int h0 = (row - n * tiles_h) * 8;

    float d[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i)
        d[i] = 0;

    // Swizzle 128B. A: a row for each pixel, groups of 8 rows 1024 bytes apart. B: filters innermost, groups of
    // 8 channels 1024 bytes apart, groups of 64 filters 8192 bytes apart.
    const u64 desc_a = (1ull << 62) | (64ull << 32) | (1ull << 16) | (u64)((base + g * A_TILE) >> 4);
    const u64 desc_b = (1ull << 62) | (64ull << 32) | ((u64)(B_HALF >> 4) << 16) | (u64)(smem_b >> 4);
    cluster_wait();

    int i = 0;
    #pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        #pragma unroll 1
        for (int s = 0; s < 3; ++s) {
            barrier_wait(full_a + 8 * (3 * s + g), chunk & 1);
            #pragma unroll 1
            for (int r = 0; r < 3; ++r, ++i) {
                const u32 slot = i & (B_STAGES - 1);
                barrier_wait(full_b + 8 * slot, (i / (int)B_STAGES) & 1);
                const u64 a = desc_a + (u64)((s * A_STAGE + r * 1024) >> 4);
                const u64 b = desc_b + (u64)((slot * B_TILE) >> 4);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                #pragma unroll
                for (int k = 0; k < 4; ++k)
                    wgmma(d, a + k * (32 >> 4), b + k * (2048 >> 4));
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");

                // The products of the step before have ended: give back what will be loaded again.
                if (i > 0) {
                    const int before = i - 1;
                    if (before + (int)B_STAGES < steps && lane < 2)
                        barrier_arrive_at(empty_b + 8 * (before & (B_STAGES - 1)), lane);
                    if (r == 0 && before + 9 < steps && lane == 0)
                        barrier_arrive(empty_a + 8 * (s == 0 ? 2 : s - 1));
                }
            }
        }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    #pragma unroll
    for (int j = 0; j < 64; ++j)
        asm volatile("" : "+f"(d[j]) :: "memory");
    cluster_arrive();

    // The warpgroup's own tiles of the first two stages, read for the last time, hold its output: 64 filters each.
    asm volatile("bar.sync %0, 128;" :: "r"(g + 1) : "memory");
    const int matrix = lane >> 3;
    const int line = lane & 7;
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
        const u32 stage = base + half * A_STAGE + g * A_TILE + quarter * 2048;
        const u32 to = stage + ((matrix & 1) * 8 + line) * 128;
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
            const int e = 4 * (8 * half + j);
            const u32 address = to + (((j + (matrix >> 1)) ^ line) << 4);
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(address), "r"(pack(d[e], d[e + 1])), "r"(pack(d[e + 2], d[e + 3])),
                            "r"(pack(d[e + 4], d[e + 5])), "r"(pack(d[e + 6], d[e + 7])) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0)
            store_y(&tm_y, stage, f0 + 64 * half, w0, h0 + 2 * quarter, n);
        __syncwarp();
    }
    if (lane == 0)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncwarp();
    cluster_wait();
}
