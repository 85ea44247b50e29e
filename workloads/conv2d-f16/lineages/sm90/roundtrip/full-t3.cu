/*klineage
surface = "cuda"

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
grid = ["ceil_div(N * H * W, 192)", "ceil_div(F, 128)"]
block = ["384"]
shared = "9 * 16384 + 12 * 2048 + 128 * (195 + 2 * W) + 1024"
args = ["tm_weight", "data_nhwc", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 positions (pixels, counted through all images) and 128 filters; a warpgroup 64 of the positions.
// For each 64 channels: nine slabs of weights, one a tap, by TMA, each with a place and a barrier of its own; the positions
// with their halo once, by cp.async, in five parts. A tap reads rows of the halo by ldmatrix, moved by its offset, or a
// row of zeros where the tap lies outside of the image, and multiplies them by its slab (wgmma).

#include <cuda_fp16.h>

constexpr int TILE = 192;             // positions of a block
constexpr int COLUMNS = 128;          // filters of a block
constexpr int THREADS = 384;          // three warpgroups
constexpr int COPIERS = 256;          // threads that copy rows; the four warps after them ask for slabs
constexpr int SLABS = 9;              // taps
constexpr int EARLY = 3;              // slabs that are asked for before the rows
constexpr int BOX_BYTES = 64 * 128;   // 64 channels of 64 filters
constexpr int SLAB_BYTES = 2 * BOX_BYTES;
constexpr int STAGE_BYTES = 16 * 128; // of a warp in the epilogue: 16 positions of 64 filters
constexpr int PARTS = 5;              // of the halo

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one).
__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int channel, int tap,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(channel), "r"(tap), "r"(barrier) : "memory");
}

// Describes 16 or more rows (k) of 128 columns in two boxes of 64 to wgmma: 1024 bytes from 8 rows to the next 8,
// 8192 bytes from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | (unsigned long long)(8192 >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)

// d += rows · other: M = 64 (fragments of 16 elements), N = 128 (a row of n for each k: transposed), K = 16.
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], unsigned long long other)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS16(0), SUMS16(16), SUMS16(32), SUMS16(48)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(other));
}

// Products in the background read and write registers that the compiler believes free: touches them here.
__device__ __forceinline__ void hold(unsigned (&a)[4][4])
{
#pragma unroll
    for (int i = 0; i < 16; ++i)
        asm volatile("" : "+r"(a[i / 4][i % 4]) :: "memory");
}

__device__ __forceinline__ void hold(float (&d)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

// Reads 64 channels of this lane's row as four fragments; `address` is that of the lane's first chunk, swizzled.
__device__ __forceinline__ void loadRows(unsigned (&a)[4][4], unsigned address)
{
#pragma unroll
    for (int k = 0; k < 4; ++k)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                     : "r"(address ^ (k << 5)) : "memory");
}

// Multiplies fragments by a slab of weights, as soon as it has landed; a group of products.
__device__ __forceinline__ void multiplySlab(float (&sums)[64], const unsigned (&a)[4][4], unsigned long long slab,
                                             unsigned barrier, unsigned parity)
{
    waitPhase(barrier, parity);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k)
        multiply(sums, a[k], slab + (k * 16 * 128 >> 4));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern __shared__ unsigned char dynamicShared[];

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv2d(const __grid_constant__ TensorMap map, const __half *data, __half *output,
       int N, int H, int W, int C, int F)
{
    __shared__ unsigned long long barriers[SLABS + PARTS];

    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = __shfl_sync(0xffffffffu, thread / 32, 0);
    const int group = warp / 4;

    const int positions = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int column0 = blockIdx.y * COLUMNS;
    const int haloRows = TILE + 2 * W + 2;               // row i is position p0 − W − 1 + i; behind them a row of zeros
    const int chunks = (C + 63) / 64;

    const unsigned slabs = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned stages = slabs + SLABS * SLAB_BYTES;
    const unsigned rowsBase = stages + THREADS / 32 * STAGE_BYTES;
    const unsigned slabFull = sharedAddress(barriers);
    const unsigned rowsFull = slabFull + 8 * SLABS;

    // Asks for the slabs of this warp among from … end − 1 (the last four warps only).
    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (thread >= COPIERS && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
                if (slab < from)
                    continue;
                const unsigned barrier = slabFull + 8 * slab;
                const unsigned to = slabs + slab * SLAB_BYTES;
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(barrier), "r"(SLAB_BYTES) : "memory");
                copyBox(to, map, column0, chunk * 64, slab, barrier);
                copyBox(to + BOX_BYTES, map, column0 + 64, chunk * 64, slab, barrier);
            }
        }
        __syncwarp();
    };

    // Copies this thread's chunks of the rows before `end` that it has not yet copied.
    int row = thread / 8;
    const auto copyRows = [&](int end, int chunk) {
        const int channel = chunk * 64 + thread % 8 * 8;
#pragma unroll 1
        for (; row < end; row += COPIERS / 8) {
            const int position = p0 - W - 1 + row;
            const bool some = position >= 0 && position < positions && channel < C;
            const __half *const from = some ? data + (long long)position * C + channel : data;
            const int bytes = some ? 16 : 0;             // 0: the 16 bytes become zeros
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(rowsBase + row * 128 + ((thread % 8 ^ row % 8) << 4)), "l"(from), "r"(bytes)
                         : "memory");
        }
    };

    // The lanes that ask for slabs set up the barriers of these, the last one those of the rows as well.
    if (thread >= COPIERS && lane == 0) {
#pragma unroll 1
        for (int slab = warp - COPIERS / 32; slab < SLABS; slab += (THREADS - COPIERS) / 32)
            initBarrier(slabFull + 8 * slab, 1);
        if (warp == THREADS / 32 - 1) {
#pragma unroll
            for (int part = 0; part < PARTS; ++part)
                initBarrier(rowsFull + 8 * part, COPIERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();
    fetchSlabs(0, 0, EARLY);
    if (thread < COPIERS)
        copyRows(66, 0);
    if (thread >= THREADS - 8)                           // the row of zeros
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                     :: "r"(rowsBase + haloRows * 128 + thread % 8 * 16), "r"(0) : "memory");
    __syncthreads();

    // The row of which this lane gives addresses, and a bit for each tap that lies inside of the image.
    const int local = warp * 16 + lane % 16;
    unsigned inside = 0;
    if (p0 + local < positions) {
        const int line = (p0 + local) / W;
        const int w = p0 + local - line * W;
        const int h = line % H;
        const unsigned columns = 2u | (w > 0 ? 1u : 0u) | (w + 1 < W ? 4u : 0u);
        inside = columns << 3 | (h > 0 ? columns : 0u) | (h + 1 < H ? columns << 6 : 0u);
    }
    const auto addressOf = [&](int tap) {
        const int from = inside >> tap & 1 ? local + tap / 3 * W + tap % 3 : haloRows;
        return rowsBase + from * 128 + ((lane / 16 ^ (from & 7)) << 4);
    };

    const unsigned long long other = describe(slabs);
    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;

        // Parts end with the rows that the first three taps of a warpgroup need, then with those of three taps of all.
        if (thread < COPIERS) {
#pragma unroll 1
            for (int part = 0; part < PARTS; ++part) {
                copyRows(part < 3 ? 66 + 64 * part : TILE + 2 + (part - 2) * W, chunk);
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                             :: "r"(rowsFull + 8 * part) : "memory");
            }
        }
        __syncwarp();

        waitPhase(rowsFull + 8 * group, parity);
        fetchSlabs(chunk, EARLY, SLABS);

        unsigned even[4][4] = {}, odd[4][4] = {};
        loadRows(even, addressOf(0));
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(sums, even, other + slab * (SLAB_BYTES >> 4), slabFull + 8 * slab, parity);

            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            hold(odd);
            if (slab == 2)                               // tap 3 is next: the second row of the window
                waitPhase(rowsFull + 8 * 3, parity);
            loadRows(odd, addressOf(slab + 1));
            multiplySlab(sums, odd, other + (slab + 1) * (SLAB_BYTES >> 4), slabFull + 8 * (slab + 1), parity);

            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            hold(even);
            if (slab == 4)                               // tap 6 is next: the third row of the window
                waitPhase(rowsFull + 8 * 4, parity);
            loadRows(even, addressOf(slab + 2));
        }
        multiplySlab(sums, even, other + (SLABS - 1) * (SLAB_BYTES >> 4), slabFull + 8 * (SLABS - 1), parity);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        hold(sums);

        if (chunk + 1 < chunks) {
            __syncthreads();                             // everyone has left slabs and rows
            row = thread / 8;
            fetchSlabs(chunk + 1, 0, EARLY);
            if (thread < COPIERS)
                copyRows(66, chunk + 1);
        }
    }

    // 16 positions of a warp, 64 filters at a time, through its own stage.
    const unsigned stage = stages + warp * STAGE_BYTES;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (half > 0)
            __syncwarp();
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            const int i = 4 * (8 * half + j);
            const unsigned to = stage + lane % 16 * 128 + (((j + lane / 16) ^ (lane % 8)) << 4);
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(to), "r"(pack(sums[i], sums[i + 1])), "r"(pack(sums[i + 2], sums[i + 3])),
                            "r"(pack(sums[i + 4], sums[i + 5])), "r"(pack(sums[i + 6], sums[i + 7]))
                         : "memory");
        }
        __syncwarp();
        const int column = column0 + half * 64 + lane % 8 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = i * 4 + lane / 8;
            const int position = p0 + warp * 16 + r;
            uint4 value;
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                         : "r"(stage + r * 128 + ((lane % 8 ^ r % 8) << 4)) : "memory");
            if (position < positions && column < F)
                *reinterpret_cast<uint4 *>(output + (long long)position * F + column) = value;
        }
    }
}
