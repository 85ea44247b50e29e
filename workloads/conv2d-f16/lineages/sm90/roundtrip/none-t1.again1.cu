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
grid = ["ceil_div(N * ceil_div(H, 8) * ceil_div(W, 8), 3)", "ceil_div(F, 128)"]
block = ["416"]
shared = "228608"
args = ["tm_x", "tm_w", "tm_y", "int ceil_div(H, 8)", "int ceil_div(W, 8)", "int ceil_div(C, 64)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = sum of data[n, h + r - 1, w + s - 1, c] * weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM. A block computes three tiles of 8 x 8 pixels by 128 filters, one for each of three warpgroups; a
// thread of a 13th warp loads. For each 64 channels, a tile's window of 10 x 10 pixels is loaded once by TMA, zeros
// outside of the image; the nine taps read it shifted, by ldmatrix, and multiply from registers. The weights of each
// tap, 64 channels x 128 filters, have a slot of their own.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

static constexpr u32 A_LOAD = 10 * 10 * 128;     // 10 x 10 pixels x 64 channels
static constexpr u32 A_TILE = 13 * 1024;         // the same, rounded up to the period of the swizzle
static constexpr u32 A_STAGE = 3 * A_TILE;       // a tile for each warpgroup
static constexpr u32 A_BYTES = 2 * A_STAGE;
static constexpr u32 B_HALF = 64 * 128;          // 64 channels x 64 filters
static constexpr u32 B_TILE = 2 * B_HALF;
static constexpr u32 BARRIERS = A_BYTES + 9 * B_TILE;

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

__device__ __forceinline__ void store_y(const TensorMap *map, u32 from, int f, int w, int h, int n)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
        :: "l"((u64)map), "r"(from), "r"(f), "r"(w), "r"(h), "r"(n) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void wgmma(float (&d)[64], const u32 (&a)[4], u64 b)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
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
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

// 16 pixels x 64 channels of the warp's A, for the tap that shifts this lane's pixel to p. Pixels lie 128 bytes
// apart, their 16-byte units swizzled by the lowest three bits of the pixel.
__device__ __forceinline__ void load_a(u32 (&a)[4][4], u32 tile, u32 p, u32 upper)
{
    const u32 row = tile + p * 128;
    const u32 unit = (upper ^ (p & 7)) << 4;
    #pragma unroll
    for (u32 k = 0; k < 4; ++k)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                     : "r"(row + (unit ^ (k << 5))) : "memory");
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
    const u32 full_a = base + BARRIERS;      // [stage][warpgroup]
    const u32 empty_a = full_a + 6 * 8;      // [stage]
    const u32 full_b = empty_a + 2 * 8;      // [tap]
    const u32 empty_b = full_b + 9 * 8;      // [tap]

    const int warp = __shfl_sync(0xffffffff, (int)threadIdx.x >> 5, 0);
    const int lane = threadIdx.x & 31;
    const int f0 = blockIdx.y * 128;

    if (warp == 12) {
        int tw[3], th[3], tn[3];
        if (lane == 0) {
            asm volatile("prefetch.tensormap [%0];" :: "l"((u64)&tm_x) : "memory");
            asm volatile("prefetch.tensormap [%0];" :: "l"((u64)&tm_w) : "memory");
        }
        #pragma unroll
        for (int g = 0; g < 3; ++g) {
            const int tile = 3 * blockIdx.x + g;
            const int row = tile / tiles_w;
            tw[g] = (tile - row * tiles_w) * 8 - 1;
            tn[g] = row / tiles_h;
            th[g] = (row - tn[g] * tiles_h) * 8 - 1;
        }
        if (lane == 0) {
            for (int i = 0; i < 6; ++i)
                barrier_init(full_a + 8 * i, 1);
            for (int i = 0; i < 2; ++i)
                barrier_init(empty_a + 8 * i, 12);
            for (int i = 0; i < 9; ++i) {
                barrier_init(full_b + 8 * i, 1);
                barrier_init(empty_b + 8 * i, 12);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("fence.proxy.async;" ::: "memory");

            // The first 64 channels: everything is free.
            #pragma unroll
            for (int g = 0; g < 3; ++g) {
                barrier_expect(full_a + 8 * g, A_LOAD);
                load_x(base + g * A_TILE, &tm_x, full_a + 8 * g, 0, tw[g], th[g], tn[g]);
                if (g == 0) {
                    barrier_expect(full_b, B_TILE);
                    load_w(smem_b, &tm_w, full_b, f0, 0, 0);
                    load_w(smem_b + B_HALF, &tm_w, full_b, f0 + 64, 0, 0);
                }
            }
            #pragma unroll 1
            for (int tap = 1; tap < 9; ++tap) {
                const u32 barrier = full_b + 8 * tap;
                const u32 to = smem_b + tap * B_TILE;
                barrier_expect(barrier, B_TILE);
                load_w(to, &tm_w, barrier, f0, 0, tap);
                load_w(to + B_HALF, &tm_w, barrier, f0 + 64, 0, tap);
            }
        }
        __syncwarp();
        __syncthreads();

        if (lane == 0) {
            asm volatile("prefetch.tensormap [%0];" :: "l"((u64)&tm_y) : "memory");
            #pragma unroll 1
            for (int chunk = 1; chunk < chunks; ++chunk) {
                const int stage = chunk & 1;
                if (chunk >= 2)
                    barrier_wait(empty_a + 8 * stage, ((chunk >> 1) - 1) & 1);
                #pragma unroll
                for (int g = 0; g < 3; ++g) {
                    const u32 barrier = full_a + 8 * (3 * stage + g);
                    barrier_expect(barrier, A_LOAD);
                    load_x(base + stage * A_STAGE + g * A_TILE, &tm_x, barrier, chunk * 64, tw[g], th[g], tn[g]);
                }
                #pragma unroll 1
                for (int tap = 0; tap < 9; ++tap) {
                    const u32 barrier = full_b + 8 * tap;
                    const u32 to = smem_b + tap * B_TILE;
                    barrier_wait(empty_b + 8 * tap, (chunk - 1) & 1);
                    barrier_expect(barrier, B_TILE);
                    load_w(to, &tm_w, barrier, f0, chunk * 64, tap);
                    load_w(to + B_HALF, &tm_w, barrier, f0 + 64, chunk * 64, tap);
                }
            }
        }
        return;
    }

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

    // This lane's pixel for ldmatrix: rows 0 ... 15 of the warp's part, lower and upper 8 of 16 channels.
    const u32 m = 16 * quarter + (lane & 15);
    const u32 p0 = (m >> 3) * 10 + (m & 7);
    const u32 upper = lane >> 4;

    // Swizzle 128B. B: filters innermost, groups of 8 channels 1024 bytes apart, groups of 64 filters 8192 bytes apart.
    const u64 desc_b = (1ull << 62) | (64ull << 32) | ((u64)(B_HALF >> 4) << 16) | (u64)(smem_b >> 4);
    __syncthreads();

    #pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = chunk & 1;
        const bool more = chunk + 1 < chunks;
        const u32 window = base + stage * A_STAGE + g * A_TILE;
        u32 a[2][4][4];

        barrier_wait(full_a + 8 * (3 * stage + g), (chunk >> 1) & 1);
        load_a(a[0], window, p0, upper);
        #pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            barrier_wait(full_b + 8 * tap, chunk & 1);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            #pragma unroll
            for (int k = 0; k < 4; ++k)
                wgmma(d, a[tap & 1][k], desc_b + (u64)((tap * B_TILE + k * 2048) >> 4));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

            if (tap < 8) {
                // The products of the tap before have ended: its registers and its slot are free.
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                load_a(a[(tap + 1) & 1], window, p0 + ((tap + 1) / 3) * 10 + (tap + 1) % 3, upper);
                if (tap > 0) {
                    if (more && lane == 0)
                        barrier_arrive(empty_b + 8 * (tap - 1));
                    __syncwarp();
                }
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        #pragma unroll
        for (int j = 0; j < 64; ++j)
            asm volatile("" : "+f"(d[j]) :: "memory");
        __syncwarp();
        if (more && lane == 0) {
            barrier_arrive(empty_b + 8 * 7);
            barrier_arrive(empty_b + 8 * 8);
            if (chunk + 2 < chunks)
                barrier_arrive(empty_a + 8 * stage);
        }
        __syncwarp();
    }

    // The warpgroup's own windows, read for the last time, hold its output: 64 filters each.
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
}
