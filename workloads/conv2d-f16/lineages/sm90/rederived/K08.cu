/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_data"
tensor = "data_nhwc"
box = [1, 1, "W + 1", 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "tm_weight"
tensor = "weight_hwcf"
dims = ["9", "C", "F"]
strides = ["C * F", "F"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[launch]]
kernel = "conv2d"
grid = ["N * ceil_div(H * (W + 1) - 1, 200)", "ceil_div(F, 128)"]
block = ["256"]
shared = "9 * 16384 + (3 + ceil_div(201, W + 1)) * (W + 1) * 128 + 1024"
args = ["tm_data", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Filters are the rows of the product, positions (W + 1 a line, the first of them a zero) its columns. A
// tile is 200 positions: eight images of 56 lines are 128 blocks, which all run at once, one a
// multiprocessor. Alone there, a block has room for all nine taps: one thread begins their copies at once,
// by TMA, in whole lines and taps, and a barrier for each tap tells when its products may begin.
// Needs C % 8 == 0, F % 8 == 0 and W <= 127.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long words[16]; };

constexpr int TILE = 200;
constexpr int STAGE_BYTES = 64 * 128 * 2; // one tap: 64 channels of 128 filters

// Where a 16-byte chunk of a row of 128 bytes is kept.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// True in one thread of a whole warp, always the same one.
__device__ __forceinline__ bool elected()
{
    unsigned chosen;
    asm volatile(
        "{\n"
        ".reg .b32 leader;\n"
        ".reg .pred isLeader;\n"
        "elect.sync leader|isLeader, 0xffffffff;\n"
        "selp.b32 %0, 1, 0, isLeader;\n"
        "}"
        : "=r"(chosen) :: "memory");
    return chosen != 0;
}

__device__ __forceinline__ void prefetchMap(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

// A barrier of one arrival, that of expectCopies.
__device__ __forceinline__ void initBarrier(unsigned barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier) : "memory");
}

// The barrier's phase ends when so many bytes have landed, those that landed before this call included.
__device__ __forceinline__ void expectCopies(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void waitCopies(unsigned barrier, unsigned parity)
{
    asm volatile(
        "{\n"
        ".reg .pred landed;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 landed, [%0], %1;\n"
        "@landed bra DONE;\n"
        "bra LAB_WAIT;\n"
        "DONE:\n"
        "}"
        :: "r"(barrier), "r"(parity) : "memory");
}

// Starts the copy of 64 channels of a line: a row of zeros, then one for each pixel. A line outside of the
// image is all zeros.
__device__ __forceinline__ void copyLine(unsigned to, const TensorMap *map, int c, int line, int n,
                                         unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(map), "r"(c), "r"(-1), "r"(line), "r"(n), "r"(barrier) : "memory");
}

// Starts the copy of 64 channels of a tap, each a row of 64 filters.
__device__ __forceinline__ void copyTap(unsigned to, const TensorMap *map, int f, int c, int tap,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(f), "r"(c), "r"(tap), "r"(barrier) : "memory");
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

extern "C" __global__ __launch_bounds__(256, 1) void conv2d(const __grid_constant__ TensorMap dataMap,
                                                            const __grid_constant__ TensorMap weightMap,
                                                            __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long landed[9]; // a barrier for each tap
    // Nine taps, each twice 64 rows of 64 filters; then the lines, W + 1 rows each.
    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned xs = ring + 9 * STAGE_BYTES;
    const unsigned barriers = unsigned(__cvta_generic_to_shared(landed));

    const int thread = threadIdx.x, lane = thread % 32, warpgroup = thread / 128;
    const int f0 = blockIdx.y * 128;

    const auto fetchWeights = [&](int c0, int tap) {
        const unsigned ws = ring + tap * STAGE_BYTES, barrier = barriers + tap * 8;
        copyTap(ws, &weightMap, f0, c0, tap, barrier);
        copyTap(ws + 8192, &weightMap, f0 + 64, c0, tap, barrier);
    };

    // The first tap's weights are on their way while the tile is still being located.
    if (thread < 32 && elected()) {
        prefetchMap(&weightMap);
        prefetchMap(&dataMap);
#pragma unroll
        for (int tap = 0; tap < 9; ++tap)
            initBarrier(barriers + tap * 8);
        // TMA counts by another path: it must see the barriers first.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        fetchWeights(0, 0);
    }
    __syncthreads(); // the barriers are there for everyone

    const int pitch = W + 1;
    const int tilesPerImage = (H * pitch - 1 + TILE - 1) / TILE;
    const int n = blockIdx.x / tilesPerImage, q0 = (blockIdx.x - n * tilesPerImage) * TILE;
    const int chunks = (C + 63) / 64;
    // The tile begins in a line's middle: whole lines are copied, of which the first rows are left out.
    const int line0 = q0 / pitch, skipped = q0 - line0 * pitch;
    const int lines = (skipped + TILE + 1) / pitch + 1; // of the window's first row; one more for each other

    // Lines and weights of 64 channels, without the weights of the first tap.
    const auto fetchRest = [&](int c0) {
        int line = 0;
        for (int tap = 0; tap < 9; ++tap) {
            const unsigned barrier = barriers + tap * 8;
            const int end = lines + tap / 3; // lines that no tap before has needed come with this one
            expectCopies(barrier, STAGE_BYTES + (end - line) * pitch * 128);
            for (; line < end; ++line)
                copyLine(xs + line * pitch * 128, &dataMap, c0, line0 + line - 1, n, barrier);
            if (tap > 0)
                fetchWeights(c0, tap);
        }
    };

    if (thread < 32 && elected())
        fetchRest(0);
    __syncwarp();

    float acc[100] = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        if (chunk > 0) {
            __syncthreads(); // everyone has left the 64 channels before
            if (thread < 32 && elected()) {
                fetchWeights(chunk * 64, 0);
                fetchRest(chunk * 64);
            }
            __syncwarp();
        }
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            waitCopies(barriers + tap * 8, chunk & 1);

            const unsigned long long weights = describe(ring + tap * STAGE_BYTES + warpgroup * 8192);
            const unsigned long long pixels = describe(xs + (skipped + tap / 3 * pitch + tap % 3) * 128);
            fenceProducts();
#pragma unroll
            for (int k = 0; k < 64; k += 16)
                multiply(acc, weights + (k * 128 >> 4), pixels + (k * 2 >> 4));
            commitProducts();
        }
        waitProducts(acc);
    }


    // The rows of filters go where weights were, then out as lines of 128 bytes.
    __syncthreads();
    const unsigned stage = ring + warpgroup * TILE * 128;
    stageSums(stage, acc);
    syncWarpgroup(warpgroup);

    const int f = f0 + warpgroup * 64 + lane % 8 * 8;
    __half *const image = output + (long long)n * H * W * F + f;
    uint4 v[(TILE + 15) / 16];
#pragma unroll
    for (int i = 0; i < (TILE + 15) / 16; ++i)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                     : "r"(stage + place(thread / 8 % 16, lane % 8) + i * 2048) : "memory");
#pragma unroll
    for (int i = 0; i < (TILE + 15) / 16; ++i) {
        const int row = thread / 8 % 16 + 16 * i;
        const int line = (q0 + row) / pitch, w = (q0 + row) % pitch;
        if (row < TILE && line < H && w < W && f < F)
            *reinterpret_cast<uint4 *>(image + (long long)(line * W + w) * F) = v[i];
    }
}
