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
shared = "9 * 16384 + (ceil_div(194 + 2 * W, 8) * 8 + 8) * 128 + 12 * 2048 + 1024"
args = ["tm_weight", "data_nhwc", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 positions (runs of pixels, over lines and images) and 128 filters. Rows of positions with their halo and
// the weights of all nine taps, 64 channels at a time, lie in shared memory. Positions are the first operand of wgmma, in
// registers, gathered by ldmatrix; a tap's row outside of the image is a row of zeros.

#include <cuda_fp16.h>

constexpr int THREADS = 384;
constexpr int COPIERS = 256;      // threads that copy rows; the four warps after them ask for weights
constexpr int TILE = 192;         // positions of a block
constexpr int SLABS = 9;          // taps
constexpr int SLAB_BYTES = 16384; // 64 channels of 128 filters, as two boxes of 64 filters
constexpr int EARLY = 3;          // slabs that are asked for before the rows
constexpr int STAGE_BYTES = 2048; // of a warp's epilogue: 16 positions of 64 filters

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

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

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)

// Describes rows (k) of 128 columns in two boxes of 64 to wgmma: 1024 bytes from 8 rows to the next 8,
// 8192 bytes from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(8192 >> 4) << 16
           | (1024ull >> 4) << 32 | 1ull << 62;
}

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

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv2d(const __grid_constant__ TensorMap map, const __half *data, __half *output,
       int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[SLABS + 4];

    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int group = warp / 4;

    const unsigned slabs = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned rowsBase = slabs + SLABS * SLAB_BYTES;
    const unsigned slabFull = unsigned(__cvta_generic_to_shared(barriers));
    const unsigned rowsFull = slabFull + 8 * SLABS;

    const int pixels = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int f0 = blockIdx.y * 128;
    const int rows = TILE + 2 * W + 2;                 // row i is position p0 - W - 1 + i
    const int zeros = (rows + 7) / 8 * 8;              // the first of eight rows of zeros
    const int chunks = (C + 63) / 64;

    // The lanes that ask for slabs set up their barriers, thread 0 those of the rows.
    if (thread >= COPIERS && lane == 0) {
        for (int slab = warp - COPIERS / 32; slab < SLABS; slab += (THREADS - COPIERS) / 32)
            initBarrier(slabFull + 8 * slab, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (thread == 0) {
#pragma unroll
        for (int part = 0; part < 4; ++part)
            initBarrier(rowsFull + 8 * part, COPIERS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();

    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (thread >= COPIERS && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
                if (slab < from)
                    continue;
                const unsigned barrier = slabFull + 8 * slab;
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(barrier), "r"(SLAB_BYTES) : "memory");
#pragma unroll
                for (int box = 0; box < 2; ++box)
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                 "[%0], [%1, {%2, %3, %4}], [%5];"
                                 :: "r"(slabs + slab * SLAB_BYTES + box * 8192), "l"(&map),
                                    "r"(f0 + box * 64), "r"(chunk * 64), "r"(slab), "r"(barrier) : "memory");
            }
        }
        __syncwarp();
    };

    // A pass is 32 rows, 8 threads a row; a chunk of 16 bytes lies at chunk ^ (row % 8) of its row.
    const auto copyRows = [&](int chunk, int from, int end) {
        if (thread >= COPIERS)
            return;
        const int channel = chunk * 64 + thread % 8 * 8;
        const unsigned to = rowsBase + thread / 8 * 128 + (((thread ^ (thread >> 3)) & 7) << 4);
#pragma unroll
        for (int pass = from; pass < end; ++pass) {
            const int row = pass * 32 + thread / 8;
            if (row < rows) {
                const int position = p0 - W - 1 + row;
                const bool some = position >= 0 && position < pixels && channel < C;
                const __half *const source = some ? data + (long long)position * C + channel : data;
                const int bytes = some ? 16 : 0;       // 0: the 16 bytes become zeros
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                             :: "r"(to + pass * 4096), "l"(source), "r"(bytes) : "memory");
            }
        }
    };
    const auto copyLastRows = [&](int chunk, int from) {
        if (thread >= COPIERS)
            return;
        const int channel = chunk * 64 + thread % 8 * 8;
        const unsigned place = rowsBase + (((thread ^ (thread >> 3)) & 7) << 4);
#pragma unroll 1
        for (int row = from * 32 + thread / 8; row < rows; row += 32) {
            const int position = p0 - W - 1 + row;
            const bool some = position >= 0 && position < pixels && channel < C;
            const __half *const source = some ? data + (long long)position * C + channel : data;
            const int bytes = some ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(place + row * 128), "l"(source), "r"(bytes) : "memory");
        }
    };
    const auto arriveRows = [&](int part) {            // arrives when all copies of this thread so far have landed
        if (thread < COPIERS)
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(rowsFull + 8 * part) : "memory");
    };

    fetchSlabs(0, 0, EARLY);
    copyRows(0, 0, 3);
    if (thread >= THREADS - 64)                        // eight rows of zeros, 16 bytes a thread
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                     :: "r"(rowsBase + zeros * 128 + (thread - (THREADS - 64)) * 16), "r"(0) : "memory");
    __syncthreads();                                   // barriers and zeros are there

    // The row whose address this lane gives to ldmatrix, and a bit for each tap that lies inside of the image.
    const int local = warp * 16 + lane % 16;
    unsigned inside = 0;

    const auto loadRows = [&](unsigned (&a)[4][4], int slab) {
        const int row = local + slab / 3 * W + slab % 3;
        const int in8 = row & 7;
        const int from = (inside >> slab & 1) ? row : zeros + in8;
        const unsigned address = rowsBase + from * 128 + (((lane >> 4) ^ in8) << 4);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                         : "r"(address ^ (k * 32)) : "memory");
    };

    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;
    unsigned even[4][4], odd[4][4];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        even[i / 4][i % 4] = odd[i / 4][i % 4] = 0;
    const unsigned long long weights = describe(slabs);

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;
        if (chunk > 0) {
            __syncthreads();                           // everyone has left the chunk before
            fetchSlabs(chunk, 0, EARLY);
            copyRows(chunk, 0, 3);
        }
        arriveRows(0);                                 // rows < 96: all that warpgroup 0 needs for the window's first row
        copyRows(chunk, 3, 5);
        arriveRows(1);                                 // rows < 160: warpgroup 1
        copyRows(chunk, 5, 7);
        arriveRows(2);                                 // rows < 224: warpgroup 2
        copyLastRows(chunk, 7);
        arriveRows(3);                                 // all rows

        if (chunk == 0) {
            const int pixel = p0 + local;
            if (pixel < pixels) {
                const int line = pixel / W;
                const int w = pixel - line * W;
                const int h = line % H;
                const unsigned columns = (w > 0 ? 1u : 0u) | 2u | (w + 1 < W ? 4u : 0u);
                inside = (h > 0 ? columns : 0u) | columns << 3 | (h + 1 < H ? columns << 6 : 0u);
            }
        }

        const auto multiplySlab = [&](const unsigned (&a)[4][4], int slab) {
            waitPhase(slabFull + 8 * slab, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply(sums, a[k], weights + ((slab * SLAB_BYTES + k * 16 * 128) >> 4));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        };
        const auto nextRows = [&](unsigned (&a)[4][4], int slab) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");   // the group before the last has ended
            hold(a);
            loadRows(a, slab);
        };

        waitPhase(rowsFull + 8 * group, parity);       // the rows of the window's first row
        fetchSlabs(chunk, EARLY, SLABS);               // the other slabs now, behind the rows
        loadRows(even, 0);
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(even, slab);
            if (slab == 2)
                waitPhase(rowsFull + 8 * 3, parity);   // all rows, before those of tap 3 are read
            nextRows(odd, slab + 1);
            multiplySlab(odd, slab + 1);
            nextRows(even, slab + 2);
        }
        multiplySlab(even, SLABS - 1);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        hold(sums);
    }

    // A warp turns its 16 positions through a stage of its own, 64 filters at a time.
    const unsigned stage = rowsBase + (zeros + 8) * 128 + warp * STAGE_BYTES;
    const unsigned to = stage + lane % 16 * 128 + (((lane >> 4) ^ (lane & 7)) << 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (half > 0)
            __syncwarp();
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = half * 32 + j * 8;
            const unsigned q0 = pack(sums[i], sums[i + 1]);
            const unsigned q1 = pack(sums[i + 2], sums[i + 3]);
            const unsigned q2 = pack(sums[i + 4], sums[i + 5]);
            const unsigned q3 = pack(sums[i + 6], sums[i + 7]);
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(to ^ (j * 32)), "r"(q0), "r"(q1), "r"(q2), "r"(q3) : "memory");
        }
        __syncwarp();
        const int column = f0 + half * 64 + lane % 8 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = i * 4 + lane / 8;
            const int pixel = p0 + warp * 16 + row;
            uint4 value;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                         : "r"(stage + row * 128 + (((lane & 7) ^ (row & 7)) << 4)) : "memory");
            if (pixel < pixels && column < F)
                *reinterpret_cast<uint4 *>(output + (long long)pixel * F + column) = value;
        }
    }
}
