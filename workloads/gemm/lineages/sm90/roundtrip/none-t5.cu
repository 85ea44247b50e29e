/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_w"
tensor = "weight"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_y"
tensor = "y"
box = [64, 64]
swizzle = "128B"

[[launch]]
kernel = "gemm"
grid = ["min(132, 2 * ceil_div(M, 256) * ceil_div(N, 256))"]
block = ["384"]
cluster = ["2"]
shared = "231424"
args = ["tm_x", "tm_w", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// A cluster of two blocks owns 256 x 256 of y, each block 128 x 256 of it (rank along M). Warpgroup 0 produces
// (one thread issues TMA), warpgroups 1 and 2 own 64 x 256 each and multiply with wgmma m64n256k16.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int STAGES = 4;
constexpr u32 A_BYTES = 128 * 64 * 2;            // 16384
constexpr u32 B_BYTES = 256 * 64 * 2;            // 32768
constexpr u32 C_BYTES = 64 * 64 * 2;             // 8192: one chunk of the staging area
constexpr u32 A_OFF = 0;
constexpr u32 B_OFF = A_OFF + STAGES * A_BYTES;  // 65536
constexpr u32 C_OFF = B_OFF + STAGES * B_BYTES;  // 196608
constexpr u32 BAR_OFF = C_OFF + 4 * C_BYTES;     // 229376
constexpr int GROUP = 8;                         // rows of cluster tiles that are walked together

__device__ __forceinline__ void bar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_wait(u32 bar, u32 parity)
{
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra LAB_PASSED;\n"
        "bra LAB_WAIT;\n"
        "LAB_PASSED:\n"
        "}\n" ::"r"(bar), "r"(parity)
        : "memory");
}

__device__ __forceinline__ void bar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// The address is one of the cluster's window.
__device__ __forceinline__ void bar_arrive_cluster(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ u32 map_to_rank(u32 address, u32 rank)
{
    u32 result;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
    return result;
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void tma_load(u32 dst, const TensorMap *map, u32 bar, int c0, int c1)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(dst),
        "l"(reinterpret_cast<u64>(map)), "r"(bar), "r"(c0), "r"(c1)
        : "memory");
}

__device__ __forceinline__ void tma_load_multicast(u32 dst, const TensorMap *map, u32 bar, unsigned short mask, int c0, int c1)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(dst),
        "l"(reinterpret_cast<u64>(map)), "r"(bar), "h"(mask), "r"(c0), "r"(c1)
        : "memory");
}

__device__ __forceinline__ void tma_store(const TensorMap *map, u32 src, int c0, int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(reinterpret_cast<u64>(map)),
                 "r"(src), "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<u64>(map)) : "memory");
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

__device__ __forceinline__ void stmatrix4(u32 address, u32 r0, u32 r1, u32 r2, u32 r3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

// K-major, 128-byte swizzle, atoms of eight rows 1024 bytes apart.
__device__ __forceinline__ u64 descriptor(u32 address)
{
    return u64((address & 0x3FFFFu) >> 4) | (u64(1) << 16) | (u64(64) << 32) | (u64(1) << 62);
}

__device__ __forceinline__ void fence_registers(float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
}

#define ACC4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(i) ACC4(i), ACC4((i) + 4), ACC4((i) + 8), ACC4((i) + 12)

__device__ __forceinline__ void wgmma(float (&d)[128], u64 a, u64 b, int accumulate)
{
    asm volatile(
        "{\n"
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
        "%128, %129, p, 1, 1, 0, 0;\n"
        "}\n"
        : ACC16(0), ACC16(16), ACC16(32), ACC16(48), ACC16(64), ACC16(80), ACC16(96), ACC16(112)
        : "l"(a), "l"(b), "r"(accumulate));
}

// Where cluster tile t lies, in units of 256 rows and 256 columns.
__device__ __forceinline__ void place(int t, int tiles_m, int tiles_n, int &m, int &n)
{
    const int per_group = GROUP * tiles_n;
    const int group = t / per_group;
    const int first = group * GROUP;
    const int left = tiles_m - first;
    const int size = left < GROUP ? left : GROUP;
    const int rest = t - group * per_group;
    n = rest / size;
    m = first + (rest - n * size);
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w, const __grid_constant__ TensorMap tm_y,
     int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char smem_raw[];
    const u32 base = (static_cast<u32>(__cvta_generic_to_shared(smem_raw)) + 1023u) & ~1023u;
    const u32 full = base + BAR_OFF;
    const u32 empty = full + STAGES * 8;

    const int warp = __shfl_sync(0xFFFFFFFFu, int(threadIdx.x >> 5), 0);
    const int group = warp >> 2;
    const int lane = int(threadIdx.x & 31u);
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const int tiles_m = (M + 255) / 256;
    const int tiles_n = (N + 255) / 256;
    const int tiles = tiles_m * tiles_n;
    const int steps = (K + 63) / 64;
    const int cluster = int(blockIdx.x >> 1);
    const int clusters = int(gridDim.x >> 1);

    if (threadIdx.x == 0) {
        prefetch_map(&tm_x);
        prefetch_map(&tm_w);
        prefetch_map(&tm_y);
        for (int s = 0; s < STAGES; ++s) {
            bar_init(full + s * 8, 1);     // the producer's own arrival; the bytes come from both blocks
            bar_init(empty + s * 8, 16);   // eight consumer warps of each of the two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            u32 count = 0;
            for (int t = cluster; t < tiles; t += clusters) {
                int m, n;
                place(t, tiles_m, tiles_n, m, n);
                const int row = m * 256 + int(rank) * 128;
                const int col = n * 256 + int(rank) * 128;
#pragma unroll 1
                for (int k = 0; k < steps; ++k) {
                    const u32 s = count & (STAGES - 1);
                    const u32 bar = full + s * 8;
                    bar_wait(empty + s * 8, ((count / STAGES) & 1u) ^ 1u);
                    bar_expect(bar, A_BYTES + B_BYTES);
                    tma_load(base + A_OFF + s * A_BYTES, &tm_x, bar, k * 64, row);
                    tma_load_multicast(base + B_OFF + s * B_BYTES + rank * (B_BYTES / 2), &tm_w, bar,
                                       static_cast<unsigned short>(3), k * 64, col);
                    ++count;
                }
            }
            // Nobody leaves before both blocks have released everything that was loaded.
            for (int i = 0; i < STAGES; ++i) {
                bar_wait(empty + (count & (STAGES - 1)) * 8, ((count / STAGES) & 1u) ^ 1u);
                ++count;
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int half = group - 1;                       // which 64 rows of the block's 128
        const int thread = int(threadIdx.x & 127u);
        const u64 desc_a = descriptor(base + A_OFF + u32(half) * (A_BYTES / 2));
        const u64 desc_b = descriptor(base + B_OFF);
        const u32 release = map_to_rank(empty, u32(lane & 1));

        const u32 staging = base + C_OFF + u32(half) * (2 * C_BYTES);
        const u32 row_offset = u32((warp & 3) * 16 + ((lane >> 3) & 1) * 8 + (lane & 7)) * 128u;
        const u32 col_half = u32(lane >> 4);
        const u32 swizzle = u32(lane & 7);

        float d[128];
#pragma unroll
        for (int i = 0; i < 128; ++i)
            d[i] = 0.0f;

        u32 count = 0;
#pragma unroll 1
        for (int t = cluster; t < tiles; t += clusters) {
            int m, n;
            place(t, tiles_m, tiles_n, m, n);

            fence_registers(d);
#pragma unroll 1
            for (int k = 0; k < steps; ++k) {
                const u32 s = count & (STAGES - 1);
                bar_wait(full + s * 8, (count / STAGES) & 1u);
                const u64 a = desc_a + u64(s * (A_BYTES >> 4));
                const u64 b = desc_b + u64(s * (B_BYTES >> 4));
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                wgmma(d, a, b, k);
                wgmma(d, a + 2, b + 2, 1);
                wgmma(d, a + 4, b + 4, 1);
                wgmma(d, a + 6, b + 6, 1);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (k > 0 && lane < 2)
                    bar_arrive_cluster(release + ((count - 1) & (STAGES - 1)) * 8);
                ++count;
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            fence_registers(d);
            if (lane < 2)
                bar_arrive_cluster(release + ((count - 1) & (STAGES - 1)) * 8);

            const int row = m * 256 + int(rank) * 128 + half * 64;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const u32 buffer = staging + u32(c & 1) * C_BYTES;
                // The store before the last one has read this buffer.
                if (thread == 0)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                asm volatile("bar.sync %0, 128;" ::"r"(half + 1) : "memory");
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const int i = (c * 8 + q * 2) * 4;
                    stmatrix4(buffer + row_offset + (((u32(2 * q) + col_half) ^ swizzle) << 4),
                              pack(d[i], d[i + 1]), pack(d[i + 2], d[i + 3]),
                              pack(d[i + 4], d[i + 5]), pack(d[i + 6], d[i + 7]));
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                asm volatile("bar.sync %0, 128;" ::"r"(half + 1) : "memory");
                if (thread == 0) {
                    const int col = n * 256 + c * 64;
                    if (row < M && col < N)
                        tma_store(&tm_y, buffer, col, row);
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
            }
            __syncwarp();
        }
        if (thread == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }
    cluster_sync();
}
