/*klineage
surface = "cuda"

[[tunable]]
name = "AHEAD"
default = 3
values = [3, 4, 5, 6, 7]

[[launch]]
kernel = "conv2d"
grid = ["N * ceil_div(H * (W + 1) - 1, 200)", "ceil_div(F, 128)"]
block = ["256"]
shared = "9 * 16384 + (200 + 2 * W + 4) * 128 + 1024"
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// The product is turned over: filters are its rows, positions its columns, and wgmma takes both from
// shared memory, 64 filters times 200 positions a warpgroup. Positions are the pixels of an image with
// one zero more at the left of each line, W + 1 a line, which is the right border of the line before as
// well. So every tap of a run of positions is the same run of rows, tap / 3 · (W + 1) + tap % 3 rows
// further: only the descriptor's start moves, and nothing is read that must be masked. Sums of the
// position that is no pixel are thrown away. Needs C % 8 == 0 and F % 8 == 0.
//
// One block a multiprocessor: 200 positions make 128 blocks of 8 images of 56 times 56. Its shared memory
// keeps all nine taps of 64 channels, so that no tap waits for the products of another. No other block
// covers the start: what the first taps need comes first.

#include <cuda_fp16.h>

constexpr int TILE = 200;
constexpr int STAGES = 9;                 // all taps
constexpr int STAGE_BYTES = 64 * 128 * 2; // one tap: 64 channels of 128 filters
static_assert(AHEAD <= STAGES - 2, "weights must not land on those still in use");
static_assert(2 * TILE * 128 <= (STAGES - 2) * STAGE_BYTES, "sums must not be staged on weights still in use");

// Where a 16-byte chunk of a row of 128 bytes is kept.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// Starts the copy of 16 bytes, or of none of them: then the place is filled with zeros.
__device__ __forceinline__ void copyChunk(unsigned to, const __half *from, bool some)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(some ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all of this thread's groups of copies but the last PENDING have landed.
template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// Describes rows of 128 swizzled bytes to wgmma: 1024 bytes from 8 rows to the next 8. The swizzle
// follows from the address itself, so that a matrix may begin at any row.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS8(i) SUMS4(i), SUMS4(i + 4)
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d += weights · pixels: 64 filters (a row of them for each channel: transposed) times 200 positions (a
// row of channels for each), over 16 channels; in the background, by a whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[TILE / 2], unsigned long long weights,
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
        : SUMS32(0), SUMS32(32), SUMS32(64), SUMS4(96)
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

// Waits until all groups of products but the last PENDING have ended; sums are not touched before all have.
template <int PENDING> __device__ __forceinline__ void waitProducts(float (&d)[TILE / 2])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
    if (PENDING == 0) {
#pragma unroll
        for (int i = 0; i < TILE / 2; ++i)
            asm volatile("" : "+f"(d[i]) :: "memory");
    }
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
__device__ __forceinline__ void stageSums(unsigned stage, const float (&d)[TILE / 2])
{
    const int lane = threadIdx.x % 32, quarter = threadIdx.x / 32 % 4;
    const unsigned to = stage + place(lane / 16 * 8 + lane % 8, quarter * 2 + lane / 8 % 2);
#pragma unroll
    for (int j = 0; j + 1 < TILE / 8; j += 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(to + j * 1024), "r"(pack(d[4 * j], d[4 * j + 1])),
                        "r"(pack(d[4 * j + 2], d[4 * j + 3])), "r"(pack(d[4 * j + 4], d[4 * j + 5])),
                        "r"(pack(d[4 * j + 6], d[4 * j + 7])) : "memory");
    // The last 8 positions: the addresses are those of the first 16 threads.
    constexpr int last = TILE / 8 - 1;
    static_assert(last % 2 == 0, "an odd number of 8 positions");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"(to + last * 1024), "r"(pack(d[4 * last], d[4 * last + 1])),
                    "r"(pack(d[4 * last + 2], d[4 * last + 3])) : "memory");
}

extern "C" __global__ __launch_bounds__(256, 1) void conv2d(const __half *data, const __half *weight,
                                                            __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    // All taps, one a stage, each twice 64 rows of 64 filters; then the rows of positions.
    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned xs = ring + STAGES * STAGE_BYTES;

    const int thread = threadIdx.x, lane = thread % 32, warpgroup = thread / 128;
    const int f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;

    const auto fetchWeights = [&](int c0, int tap) {
        const int row = thread / 16, chunk = thread % 16;
        const int f = f0 + chunk * 8;
        const unsigned ws = ring + tap * STAGE_BYTES + chunk / 8 * 8192;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int c = c0 + row + 16 * i;
            const bool some = c < C && f < F;
            copyChunk(ws + place(row + 16 * i, chunk % 8),
                      some ? weight + (long long)(tap * C + c) * F + f : weight, some);
        }
    };
    fetchWeights(0, 0); // part of the first group

    const int pitch = W + 1;
    const int tilesPerImage = (H * pitch - 1 + TILE - 1) / TILE;
    const int n = blockIdx.x / tilesPerImage, q0 = (blockIdx.x - n * tilesPerImage) * TILE;
    const int rows = TILE + 2 * pitch + 2;

    // This thread's next row of positions: its line and column, one more than those of its pixel, and
    // its place. From one row to the next but 31 it is inLines lines and inRest columns.
    const int inLines = 32u / unsigned(pitch), inRest = 32 - inLines * pitch;
    const int inLine = unsigned(q0 + thread / 8) / unsigned(pitch);
    int row, line, column;
    unsigned to;
    const auto startPixels = [&]() {
        row = thread / 8;
        line = inLine;
        column = q0 + row - line * pitch;
        to = xs + place(row, thread % 8);
    };
    // Goes on to the row before END.
    const auto fetchPixels = [&](int c0, int end) {
        const int channel = c0 + thread % 8 * 8;
        const __half *const image = data + (long long)n * H * W * C + channel;
        for (; row < end; row += 32) {
            const bool some = line >= 1 && line <= H && column >= 1 && channel < C;
            copyChunk(to, some ? image + (q0 + row - line - pitch) * C : data, some);
            to += 32 * 128;
            line += inLines;
            column += inRest;
            if (column >= pitch) {
                column -= pitch;
                ++line;
            }
        }
    };

    // Rows come as taps need them: the second and the third line of taps need pitch more each.
    startPixels();
    fetchPixels(0, TILE + 2);
    commitCopies();
#pragma unroll
    for (int tap = 1; tap < AHEAD; ++tap) {
        fetchWeights(0, tap);
        if (tap == 3)
            fetchPixels(0, TILE + pitch + 2);
        if (tap == 6)
            fetchPixels(0, rows);
        commitCopies();
    }

    // The way out, 16 rows a step; found while copies are under way.
    const int outLines = 16u / unsigned(pitch), outRest = 16 - outLines * pitch;
    const int outRow = thread / 8 % 16;
    int outLine = unsigned(q0 + outRow) / unsigned(pitch);
    int outColumn = q0 + outRow - outLine * pitch;

    float acc[TILE / 2] = {};
    for (int part = 0; part < chunks; ++part) {
        if (part > 0) { // the next 64 channels
            __syncthreads();
            startPixels();
            fetchPixels(part * 64, rows);
            commitCopies();
            waitCopies<0>();
        }
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            waitCopies<AHEAD - 1>();
            // wgmma reads by another path: every copier makes what landed visible to that path first.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads(); // this slab is there, and everyone has left the slab before the last

            const unsigned long long weights = describe(ring + tap * STAGE_BYTES + warpgroup * 8192);
            const unsigned long long pixels = describe(xs + (tap / 3 * pitch + tap % 3) * 128);
            fenceProducts();
#pragma unroll
            for (int k = 0; k < 64; k += 16)
                multiply(acc, weights + (k * 128 >> 4), pixels + (k * 2 >> 4));
            commitProducts();

            const int next = tap + AHEAD;
            if (next < 9) {
                fetchWeights(part * 64, next);
                if (next == 3 && part == 0)
                    fetchPixels(0, TILE + pitch + 2);
                if (next == 6 && part == 0)
                    fetchPixels(0, rows);
            } else if (part + 1 < chunks) {
                fetchWeights((part + 1) * 64, next - 9);
            }
            commitCopies();
            waitProducts<1>(acc); // those of this slab run on
        }
        waitProducts<0>(acc);
    }


    // The rows of filters go where weights of the first taps were, which everyone left before the last
    // tap began, then out as lines of 128 bytes.
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
        const int at = outRow + 16 * i;
        if (at < TILE && outLine < H && outColumn < W && f < F)
            *reinterpret_cast<uint4 *>(image + (long long)(q0 + at - outLine) * F) = v[i];
        outLine += outLines;
        outColumn += outRest;
        if (outColumn >= pitch) {
            outColumn -= pitch;
            ++outLine;
        }
    }
}
