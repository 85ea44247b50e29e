/*klineage
surface = "cuda"

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
grid = ["ceil_div(N * H * W, 192)", "ceil_div(F, 128)"]
block = ["384"]
shared = "1024 + 9 * 16384 + (2 * W + 195) * 128"
args = ["data_nhwc", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Pixels of all images, one after another, are the rows of the product, filters its columns; 192 pixels
// times 128 filters a block, all blocks at once. The windows of consecutive pixels touch consecutive
// pixels, W + 1 more at either end: the halo. ldmatrix reads it, every lane naming the row of its pixel's
// neighbour, or a row of zeros where the neighbour is outside of the image. Pixels of the next tap are
// read while the products of a tap run. The weights of a tap are asked for by a warp of their own.
// Needs C % 8 == 0, F % 8 == 0 and W <= 127.

#include <cuda_fp16.h>

constexpr int TILE = 192;
constexpr int THREADS = 384;
constexpr int WARPS = THREADS / 32; // 16 pixels each
constexpr int TAPS = 9;
constexpr unsigned BOX_BYTES = 64 * 64 * 2; // 64 channels of 64 filters

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where a 16-byte chunk of a row of 64 channels is kept.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// Where a 16-byte chunk of a row of 128 filters is kept.
__device__ __forceinline__ unsigned placeSums(int row, int chunk)
{
    return row * 256 + (chunk ^ (row % 8)) * 16;
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

// The first lane arrives for its warp.
__device__ __forceinline__ void arriveWarp(unsigned barrier, int lane)
{
    asm volatile("{\n"
                 ".reg .pred first;\n"
                 "setp.eq.s32 first, %1, 0;\n"
                 "@first mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}" :: "r"(barrier), "r"(lane) : "memory");
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

// Starts the copy of 16 bytes of a pixel, or of as many zeros if `bytes` is 0.
__device__ __forceinline__ void copyPixel(unsigned to, const __half *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

// Waits for the end of all copies of pixels that this thread has started.
__device__ __forceinline__ void waitPixels()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// Starts the copy of 64 channels of a tap, 64 filters.
__device__ __forceinline__ void copyWeights(unsigned to, const TensorMap &map, int f, int c, int tap,
                                            unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(f), "r"(c), "r"(tap), "r"(barrier) : "memory");
}

// Describes weights to wgmma, a row of 128 swizzled bytes for each channel: 1024 bytes from 8 channels to
// the next 8, a box from 64 filters to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(BOX_BYTES >> 4) << 16
         | 1024ull >> 4 << 32 | 1ull << 62;
}

// 16 pixels times 64 channels, a fragment for every 16 channels. Lanes 0 to 15 give the addresses of the
// first 8 channels of the pixels, lanes 16 to 31 those of the next 8.
__device__ __forceinline__ void loadPixels(unsigned (&a)[4][4], unsigned address)
{
#pragma unroll
    for (int k = 0; k < 4; ++k)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                     : "r"(address ^ (k * 32)) : "memory");
}

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)

// d += pixels · weights: 64 pixels (in registers, 16 a warp) times 128 filters (a row of them for each
// channel: transposed), over 16 channels; in the background, by a whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], unsigned long long weights)
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
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(weights));
}

// Orders what this thread did to sums and fragments before the products that follow.
__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all groups of products but the last have ended.
__device__ __forceinline__ void waitOlderProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

// Waits until all groups of products have ended; sums are not touched before.
__device__ __forceinline__ void waitProducts(float (&d)[64])
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

// Sums of a warp to rows of 128 filters, one for each of its 16 pixels: thread t has, of 8 pixels times 8
// filters, filters 2 (t % 4) and 2 (t % 4) + 1 of pixel t / 4.
__device__ __forceinline__ void stageSums(unsigned stage, const float (&d)[64], int lane)
{
    const unsigned to = stage + placeSums(lane % 16, lane / 16);
#pragma unroll
    for (int j = 0; j < 16; j += 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(to ^ (j * 16)), "r"(pack(d[4 * j], d[4 * j + 1])),
                        "r"(pack(d[4 * j + 2], d[4 * j + 3])), "r"(pack(d[4 * j + 4], d[4 * j + 5])),
                        "r"(pack(d[4 * j + 6], d[4 * j + 7])) : "memory");
}

extern "C" __global__ __launch_bounds__(384, 1) void conv2d(const __half *__restrict__ data,
                                                            const __grid_constant__ TensorMap mapWeight,
                                                            __half *__restrict__ output, int N, int H, int W,
                                                            int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[TAPS + 1];
    // Of every tap 64 channels of twice 64 filters; then the halo, a row for each pixel, and a row of zeros.
    const unsigned ws = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned xs = ws + 2 * TAPS * BOX_BYTES;
    const int rows = TILE + 2 * W + 2;
    const unsigned zeros = xs + rows * 128;
    const unsigned weightsFull = sharedAddress(barriers); // [tap]
    const unsigned stageFree = weightsFull + 8 * TAPS;    // nobody needs the first three taps any more

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int pixels = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;

    // By one thread of each of the first nine warps: the weights of a tap.
    const auto fetchWeights = [&](int chunk) {
        const unsigned full = weightsFull + 8 * warp, to = ws + warp * 2 * BOX_BYTES;
        expectBytes(full, 2 * BOX_BYTES);
        copyWeights(to, mapWeight, f0, chunk * 64, warp, full);
        copyWeights(to + BOX_BYTES, mapWeight, f0 + 64, chunk * 64, warp, full);
    };
    // By all threads: those rows of the halo that are pixels; the others are never read.
    const auto fetchPixels = [&](int chunk) {
        const int row0 = thread / 8, c = chunk * 64 + thread % 8 * 8;
        const int bytes = c < C ? 16 : 0;
        const __half *const from = data + (c < C ? c : 0);
        unsigned to = xs + place(row0, thread % 8);
        int p = p0 - W - 1 + row0;
        for (int row = row0; row < rows; row += THREADS / 8) {
            if (unsigned(p) < unsigned(pixels))
                copyPixel(to, from + (long long)p * C, bytes);
            to += THREADS / 8 * 128;
            p += THREADS / 8;
        }
    };

    if (lane == 0) {
        if (warp < TAPS) {
            initBarrier(weightsFull + 8 * warp, 1);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees it too
            fetchWeights(0);
        } else if (warp == TAPS) {
            initBarrier(stageFree, WARPS);
        }
    }
    __syncwarp();
    fetchPixels(0);
    if (thread >= THREADS - 8)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                     :: "r"(zeros + (thread - (THREADS - 8)) * 16), "r"(0) : "memory");
    __syncwarp();

    // The pixel that this lane names, and which of its neighbours are inside of the image.
    const int row = warp * 16 + lane % 16;
    const int line = (p0 + row) / W, w = p0 + row - line * W, h = line % H;
    const bool some = p0 + row < pixels;
    const bool above = some && h > 0, below = some && h + 1 < H, left = w > 0, right = w + 1 < W;
    // Where the lane's channels of its neighbour are. A row of zeros is the same in any order: the lane
    // keeps that of the row it would have read, and with it its banks.
    const auto neighbour = [&](int tap) {
        const int r = tap / 3, s = tap % 3;
        const int at = row + r * W + s;
        const bool inside = (r == 0 ? above : r == 1 ? some : below) && (s == 0 ? left : s == 1 ? true : right);
        return (inside ? xs + at * 128 : zeros) + ((lane / 16) ^ (at % 8)) * 16;
    };

    float acc[64] = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        if (chunk > 0) {
            __syncthreads(); // everyone has left the 64 channels before
            if (lane == 0 && warp < TAPS)
                fetchWeights(chunk);
            __syncwarp();
            fetchPixels(chunk);
        }
        waitPixels();
        __syncthreads();

        unsigned a[2][4][4];
        loadPixels(a[0], neighbour(0));
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            waitPhase(weightsFull + 8 * tap, chunk % 2);
            fenceProducts();
            const unsigned long long weights = describe(ws + tap * 2 * BOX_BYTES);
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply(acc, a[tap % 2][k], weights + (k * 16 * 128 >> 4));
            commitProducts();
            if (tap + 1 < TAPS) {
                waitOlderProducts(); // which read the fragments that are replaced now
                if (tap == 3)
                    arriveWarp(stageFree, lane);
                loadPixels(a[(tap + 1) % 2], neighbour(tap + 1));
            }
        }
        waitProducts(acc);
    }

    // The rows of filters go where the weights of the first three taps were, then out as lines of 256 bytes;
    // every warp has 16 of them for itself.
    waitPhase(stageFree, (chunks - 1) % 2);
    const unsigned stage = ws + warp * (16 * 256);
    stageSums(stage, acc, lane);
    __syncwarp();
    uint4 v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                     : "r"(stage + placeSums(2 * i + lane / 16, lane % 16)) : "memory");
    const int f = f0 + lane % 16 * 8, p = p0 + warp * 16 + lane / 16;
    __half *const to = output + (long long)p * F + f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (p + 2 * i < pixels && f < F)
            *reinterpret_cast<uint4 *>(to + (long long)(2 * i) * F) = v[i];
    }
}
