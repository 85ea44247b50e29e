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
shared = "1024 + 9 * 16384 + 12 * 2048 + (195 + 2 * W) * 128"
args = ["tm_weight", "data_nhwc", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Pixels are the rows of the product: 192 of them, counted through all images, times 128 filters a block, so
// that all blocks run at once and none multiplies padding. Three warpgroups of 64 pixels read a tap's rows
// from the halo by ldmatrix, where every lane names its row: a window that leaves the image is a row of
// zeros. Products take them from registers, while the rows of the next taps are read.
// All threads copy pixels; the last four warps ask the copy engine for the weights too. Copies come in the
// order in which they were asked for: three taps, all pixels, and, once the first pixels are there, six taps.
// The last row of taps is multiplied by one group after the other: its sums are stored while the next group
// multiplies, where before all three ended at once and left the tensor cores idle for 1100 cycles of stores.
// For that a group runs alone: three sets of fragments, loops over rows of the window, no division of taps.
// Needs C % 8 == 0, F % 8 == 0 and W <= 127.

#include <cuda_fp16.h>

constexpr int TILE = 192;
constexpr int TAPS = 9;
constexpr int FIRST_TAPS = 3; // asked for before the pixels
constexpr int THREADS = 384;
constexpr int ASKERS = FIRST_TAPS + 1; // warps that ask for weights: the last warpgroup
constexpr unsigned BOX_BYTES = 64 * 64 * 2; // 64 channels of 64 filters
constexpr unsigned TAP_BYTES = 2 * BOX_BYTES;
constexpr unsigned STAGE_BYTES = 16 * 128; // 64 filters of 16 pixels, for each warp

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
    asm volatile("{\n"
                 ".reg .pred ended;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
                 "@!ended bra again;\n"
                 "}" :: "r"(barrier), "r"(parity) : "memory");
}

// Starts the copy of 64 channels of a tap, 64 filters; what lies outside of the weights becomes zeros.
__device__ __forceinline__ void copyWeights(unsigned to, const TensorMap &map, int f, int c, int tap,
                                            unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(f), "r"(c), "r"(tap), "r"(barrier) : "memory");
}

// Starts the copy of 16 bytes, or of none: zeros then.
__device__ __forceinline__ void copyChunk(unsigned to, const __half *from, bool some)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(some ? 16 : 0) : "memory");
}

// Arrives when all chunks have landed whose copies this thread has started so far.
__device__ __forceinline__ void arriveCopies(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}

// Describes 128 filters (a row of them for each channel, two boxes) to wgmma: 1024 bytes from 8 channels to
// the next 8, BOX_BYTES from 64 filters to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | (unsigned long long)(BOX_BYTES >> 4) << 16 | 1024ull >> 4 << 32
           | 1ull << 62;
}

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)

// d += pixels · weights: 64 pixels (fragments of 16 channels) times 128 filters; in the background, by a
// whole warpgroup.
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

// Waits until all but the last `LEFT` groups of products have ended.
template <int LEFT>
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory");
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
    for (float &sum : d)
        asm volatile("" : "+f"(sum) :: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void conv2d(const __grid_constant__ TensorMap mapWeight,
                                                                const __half *data, __half *output, int N,
                                                                int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[TAPS + 5];
    // Nine taps; what a warp stores; 194 + 2 W rows of pixels, from p0 - W - 1 on, and one row of zeros.
    const unsigned ws = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned stages = ws + TAPS * TAP_BYTES;
    const unsigned xs = stages + THREADS / 32 * STAGE_BYTES;
    const unsigned weightsFull = sharedAddress(barriers); // one a tap
    const unsigned dataFull = weightsFull + 8 * TAPS;     // rows to 66, 130, 194, 194 + W, 194 + 2 W

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, group = warp / 4;
    const int asker = warp - (THREADS / 32 - ASKERS); // negative: begins with pixels
    const int pixels = N * H * W, p0 = blockIdx.x * TILE, f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;
    const int zeros = TILE + 2 + 2 * W;

    const auto fetchWeights = [&](int begin, int end, int chunk) {
        if (asker >= 0 && lane == 0) {
#pragma unroll 1
            for (int tap = begin + asker; tap < end; tap += ASKERS) {
                const unsigned to = ws + tap * TAP_BYTES, full = weightsFull + 8 * tap;
                expectBytes(full, TAP_BYTES);
                for (int half = 0; half < 2; ++half)
                    copyWeights(to + half * BOX_BYTES, mapWeight, f0 + half * 64, chunk * 64, tap, full);
            }
        }
        __syncwarp();
    };
    // A thread copies one chunk of every 48th row: of a multiple of 8, so that its place in a row is the same.
    // Rows outside of all images are never read.
    int row = thread / 8;
    const unsigned column = xs + place(row % 8, thread % 8) - row % 8 * 128;
    const auto copyRows = [&](int end, int chunk) {
        const int c = chunk * 64 + thread % 8 * 8;
#pragma unroll 1
        for (; row < end; row += THREADS / 8) {
            const int pixel = p0 - W - 1 + row;
            if (pixel >= 0 && pixel < pixels)
                copyChunk(column + row * 128, c < C ? data + (long long)pixel * C + c : data, c < C);
        }
    };
    const auto copyOtherRows = [&](int chunk) {
        const int ends[4] = {130, 194, 194 + W, 194 + 2 * W};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            arriveCopies(dataFull + 8 * i);
            copyRows(ends[i], chunk);
        }
        arriveCopies(dataFull + 32);
    };

    // Three warps ready the barrier of the tap that they ask for at once, the fourth one all others.
    if (asker >= 0 && lane == 0) {
        if (asker < FIRST_TAPS) {
            initBarrier(weightsFull + 8 * asker, 1);
        } else {
#pragma unroll
            for (int tap = FIRST_TAPS; tap < TAPS; ++tap)
                initBarrier(weightsFull + 8 * tap, 1);
#pragma unroll
            for (int i = 0; i < 5; ++i)
                initBarrier(dataFull + 8 * i, THREADS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
    }
    fetchWeights(0, FIRST_TAPS, 0);
    copyRows(66, 0);
    if (thread < 8)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                     :: "r"(xs + place(zeros, thread)), "r"(0) : "memory");
    __syncthreads();
    copyOtherRows(0);

    // The pixel whose rows this lane names to ldmatrix, and a bit for each tap that lies in its image.
    const int local = warp * 16 + lane % 16;
    unsigned inside = 0;
    int pixel = p0 + local;
    asm volatile("" : "+r"(pixel) :: "memory"); // no division before the copies
    if (pixel < pixels) {
        const int w = pixel % W, h = pixel / W % H;
        inside = ((h > 0 ? 0007u : 0) | 0070u | (h + 1 < H ? 0700u : 0))
                 & ((w > 0 ? 0111u : 0) | 0222u | (w + 1 < W ? 0444u : 0));
    }
    const auto loadTap = [&](unsigned (&a)[4][4], int r, int s) {
        const int from = inside >> (3 * r + s) & 1 ? local + r * W + s : zeros;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                         : "r"(xs + place(from, 2 * k + lane / 16)) : "memory");
    };

    float acc[64] = {};
    const unsigned long long weights = describe(ws);
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk % 2;
        if (chunk > 0) {
            __syncthreads(); // everyone has left the 64 channels before
            fetchWeights(0, FIRST_TAPS, chunk);
            row = thread / 8;
            copyRows(66, chunk);
            copyOtherRows(chunk);
        }
        const auto multiplyTap = [&](const unsigned (&a)[4][4], int r, int s) {
            const int tap = 3 * r + s;
            waitPhase(weightsFull + 8 * tap, parity);
            fenceProducts();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply(acc, a[k], weights + ((tap * TAP_BYTES + k * 16 * 128) >> 4));
            commitProducts();
        };
        // The first pixels are there, all others on their way: the other taps may follow. Asked for by the
        // group that waits the longest for its pixels.
        if (asker >= 0) {
            waitPhase(dataFull, parity);
            fetchWeights(FIRST_TAPS, TAPS, chunk);
        }

        // Three sets of fragments, one for each column of the window: a tap's are read while the two before it
        // are multiplied, when the third before has left its registers.
        unsigned a0[4][4], a1[4][4], a2[4][4];
        waitPhase(dataFull + 8 * group, parity); // taps of the first row end 2 rows after the 64 pixels
        loadTap(a0, 0, 0);
        loadTap(a1, 0, 1);
#pragma unroll 1
        for (int r = 0; r < 2; ++r) {
            multiplyTap(a0, r, 0);
            waitProducts<1>();
            hold(a2);
            loadTap(a2, r, 2);
            multiplyTap(a1, r, 1);
            waitProducts<1>();
            hold(a0);
            waitPhase(dataFull + 24 + 8 * r, parity);
            loadTap(a0, r + 1, 0);
            multiplyTap(a2, r, 2);
            waitProducts<1>();
            hold(a1);
            loadTap(a1, r + 1, 1);
        }
        // The last row in turns: a group alone keeps the tensor cores busy with three taps in a row, and stores
        // its sums while the next group multiplies. It gives the turn when its last tap alone is left.
        const bool turns = chunk + 1 == chunks;
        if (turns && group > 0)
            asm volatile("bar.sync %0, 256;" :: "r"(group + 1) : "memory");
        multiplyTap(a0, 2, 0);
        multiplyTap(a1, 2, 1);
        waitProducts<2>();
        hold(a2);
        loadTap(a2, 2, 2);
        multiplyTap(a2, 2, 2);
        waitProducts<1>();
        if (turns && group < 2)
            asm volatile("bar.arrive %0, 256;" :: "r"(group + 2) : "memory");
        waitProducts<0>();
        hold(a0);
        hold(a1);
        hold(a2);
        hold(acc);
    }

    // 16 pixels of 64 filters at a time, through the warp's own stage: out as lines of 128 bytes.
    const unsigned stage = stages + warp * STAGE_BYTES;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            const float *const d = acc + half * 32 + j * 4;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(stage + place(lane % 16, j + lane / 16)), "r"(pack(d[0], d[1])),
                            "r"(pack(d[2], d[3])), "r"(pack(d[4], d[5])), "r"(pack(d[6], d[7])) : "memory");
        }
        __syncwarp();
        uint4 v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                         : "r"(stage + place(4 * i + lane / 8, lane % 8)) : "memory");
        const int f = f0 + half * 64 + lane % 8 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int pixel = p0 + warp * 16 + 4 * i + lane / 8;
            if (pixel < pixels && f < F)
                *reinterpret_cast<uint4 *>(output + (long long)pixel * F + f) = v[i];
        }
        __syncwarp();
    }
}
