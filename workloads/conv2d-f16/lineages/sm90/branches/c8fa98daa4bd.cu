/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_data"
tensor = "data_nhwc"
box = [1, 1, "W + 1", 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_weight"
tensor = "weight_hwcf"
dims = [9, "C", "F"]
strides = ["C * F", "F"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "conv2d"
grid = ["N * ceil_div(H * (W + 1) - 1, 200)", "ceil_div(F, 128)"]
block = ["288"]
shared = "1024 + 2 * 9 * 8192 + (198 / (W + 1) + 4) * (W + 1) * 128 + 1024"
args = ["tm_data", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Filters are the rows of the product, positions (W + 1 a line, the first of them a zero) its columns;
// 200 positions times 128 filters a block, all blocks at once. A thread of a ninth warp asks the copy
// engine for whole boxes: the lines that the windows touch, from the zero at their left on (the engine
// fills what lies outside), and nine taps of one half of the filters, then of the other, each with an
// mbarrier of its own. The other warps only wait and multiply: the first warpgroup its half, and when all
// of its products are on their way, the second one; the first half is stored meanwhile. The products of
// three taps are a chain behind a single fence. Needs C % 8 == 0, F % 8 == 0 and W <= 127.

#include <cuda_fp16.h>

constexpr int TILE = 200;
constexpr int TAPS = 9;
constexpr unsigned BOX_BYTES = 64 * 64 * 2; // 64 channels of 64 filters

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the 128-byte swizzle keeps a 16-byte chunk of a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
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

// Starts the copy of W + 1 pixels of a line, from pixel w on; what lies outside of the image becomes zeros.
__device__ __forceinline__ void copyLine(unsigned to, const TensorMap &map, int c, int w, int h, int n,
                                         unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(&map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(barrier) : "memory");
}

// Starts the copy of 64 channels of a tap, 64 filters.
__device__ __forceinline__ void copyWeights(unsigned to, const TensorMap &map, int f, int c, int tap,
                                            unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(f), "r"(c), "r"(tap), "r"(barrier) : "memory");
}

// Describes rows of 128 swizzled bytes to wgmma: 1024 bytes from 8 rows to the next 8. The swizzle
// follows from the address itself, so that a matrix may begin at any row.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS20(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12), SUMS4(i + 16)

// d += weights · pixels: 64 filters (a row of them for each channel: transposed) times 200 positions (a
// row of channels for each), over 16 channels; in the background, by a whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[100], unsigned long long weights,
                                         unsigned long long pixels)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n200k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        " %96, %97, %98, %99}, "
        "%100, %101, accumulate, 1, 1, 1, 0;\n"
        "}"
        : SUMS20(0), SUMS20(20), SUMS20(40), SUMS20(60), SUMS20(80)
        : "l"(weights), "l"(pixels));
}

// Orders what this thread did to the sums before the products that follow.
__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all groups of products have ended; sums are not touched before.
__device__ __forceinline__ void waitProducts(float (&d)[100])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (float &sum : d)
        asm volatile("" : "+f"(sum) :: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

__device__ __forceinline__ void syncWarpgroup(int warpgroup)
{
    asm volatile("bar.sync %0, 128;" :: "r"(warpgroup + 1) : "memory");
}

// The first warpgroup leaves the tensor cores to the second one ...
__device__ __forceinline__ void passTurn()
{
    asm volatile("bar.arrive 3, 256;" ::: "memory");
}

// ... which waits for that.
__device__ __forceinline__ void awaitTurn()
{
    asm volatile("bar.sync 3, 256;" ::: "memory");
}

// Sums to rows of 64 filters, one for each position: thread t has, of 8 filters times 8 positions,
// positions 2 (t % 4) and 2 (t % 4) + 1 of filter t / 4; stmatrix transposes them on the way.
__device__ __forceinline__ void stageSums(unsigned stage, const float (&d)[100])
{
    const int lane = threadIdx.x % 32, quarter = threadIdx.x / 32 % 4;
    const unsigned to = stage + place(lane / 16 * 8 + lane % 8, quarter * 2 + lane / 8 % 2);
#pragma unroll
    for (int j = 0; j + 1 < TILE / 8; j += 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(to + j * 1024), "r"(pack(d[4 * j], d[4 * j + 1])),
                        "r"(pack(d[4 * j + 2], d[4 * j + 3])), "r"(pack(d[4 * j + 4], d[4 * j + 5])),
                        "r"(pack(d[4 * j + 6], d[4 * j + 7])) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"(to + (TILE / 8 - 1) * 1024), "r"(pack(d[96], d[97])), "r"(pack(d[98], d[99]))
                 : "memory");
}

extern "C" __global__ __launch_bounds__(288, 1) void conv2d(const __grid_constant__ TensorMap mapData,
                                                            const __grid_constant__ TensorMap mapWeight,
                                                            __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * TAPS + 2];
    // Of either half of the filters nine taps; then the lines, W + 1 rows each, and one row of zeros.
    const unsigned ws = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned xs = ws + 2 * TAPS * BOX_BYTES;
    const unsigned weightsFull = sharedAddress(barriers); // [half][tap]
    const unsigned dataFull = weightsFull + 8 * 2 * TAPS; // all lines but the last; the last

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int pitch = W + 1;
    const int tilesPerImage = (H * pitch - 1 + TILE - 1) / TILE;
    const int n = blockIdx.x / tilesPerImage, q0 = (blockIdx.x - n * tilesPerImage) * TILE;
    const int line0 = q0 / pitch, first = q0 - line0 * pitch; // where the tile begins
    const int lines = (first + TILE - 1) / pitch + 3;         // that its windows touch, from line0 - 1 on
    const int f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;

    const auto fetchData = [&](int chunk) {
        expectBytes(dataFull, (lines - 1) * pitch * 128);
        expectBytes(dataFull + 8, pitch * 128);
        for (int i = 0; i < lines; ++i)
            copyLine(xs + i * pitch * 128, mapData, chunk * 64, -1, line0 - 1 + i, n,
                     i < lines - 1 ? dataFull : dataFull + 8);
    };
    // All taps of the first half, then all of the second.
    const auto fetchWeights = [&](int chunk) {
        for (int slot = 0; slot < 2 * TAPS; ++slot) {
            const int half = slot / TAPS, tap = slot % TAPS;
            expectBytes(weightsFull + 8 * slot, BOX_BYTES);
            copyWeights(ws + slot * BOX_BYTES, mapWeight, f0 + half * 64, chunk * 64, tap,
                        weightsFull + 8 * slot);
        }
    };

    if (thread == 256) {
        for (int i = 0; i < 2 * TAPS + 2; ++i)
            initBarrier(weightsFull + 8 * i, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
        fetchData(0);
        fetchWeights(0);
    } else if (thread < 8) {
        // The row of zeros: right of the last line's last pixel.
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};\n"
                     "fence.proxy.async.shared::cta;"
                     :: "r"(xs + place(lines * pitch, thread)), "r"(0) : "memory");
    }
    __syncwarp();
    __syncthreads();

    if (warp == 8) {
        for (int chunk = 1; chunk < chunks; ++chunk) {
            __syncthreads(); // everyone has left the 64 channels before
            if (lane == 0) {
                fetchData(chunk);
                fetchWeights(chunk);
            }
            __syncwarp();
        }
        return;
    }

    const int half = warp / 4;
    float acc[100] = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        if (chunk > 0) {
            waitProducts(acc);
            __syncthreads();
        }
        waitPhase(dataFull, chunk % 2);
        // A chain for each row of the window: one fence, three taps (each awaited on its own), one group.
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            if (tap == 3)
                waitPhase(dataFull + 8, chunk % 2);
            waitPhase(weightsFull + 8 * (half * TAPS + tap), chunk % 2);
            const unsigned long long weights = describe(ws + (half * TAPS + tap) * BOX_BYTES);
            const unsigned long long pixels = describe(xs + (first + tap / 3 * pitch + tap % 3) * 128);
            if (tap == 0 && half == 1)
                awaitTurn();
            if (tap % 3 == 0)
                fenceProducts();
#pragma unroll
            for (int k = 0; k < 64; k += 16)
                multiply(acc, weights + (k * 128 >> 4), pixels + (k * 2 >> 4));
            if (tap % 3 == 2)
                commitProducts();
        }
        if (half == 0)
            passTurn();
    }

    // While products run: the pixels whose chunks this thread will store, or -1.
    const int f = f0 + half * 64 + lane % 8 * 8;
    int pixel[(TILE + 15) / 16];
    {
        const int row = thread / 8 % 16;
        int line = line0 + (first + row) / pitch, w = (first + row) % pitch;
#pragma unroll
        for (int i = 0; i < (TILE + 15) / 16; ++i) {
            const bool some = row + 16 * i < TILE && n < N && line < H && w < W && f < F;
            pixel[i] = some ? line * W + w : -1;
            asm volatile("" : "+r"(pixel[i]));
            for (w += 16; w >= pitch; w -= pitch)
                ++line;
        }
    }
    waitProducts(acc);

    // The rows of filters go where this half's weights were, then out as lines of 128 bytes.
    syncWarpgroup(half);
    const unsigned stage = ws + half * TAPS * BOX_BYTES;
    stageSums(stage, acc);
    syncWarpgroup(half);
    __half *const image = output + (long long)n * H * W * F + f;
    uint4 v[(TILE + 15) / 16];
#pragma unroll
    for (int i = 0; i < (TILE + 15) / 16; ++i)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                     : "r"(stage + place(thread / 8 % 16, lane % 8) + i * 2048) : "memory");
#pragma unroll
    for (int i = 0; i < (TILE + 15) / 16; ++i) {
        if (pixel[i] >= 0)
            *reinterpret_cast<uint4 *>(image + (long long)pixel[i] * F) = v[i];
    }
}
