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
shared = "9 * 16384 + 456 * 128 + 12 * 2048 + 256 + 1024"
args = ["tm_weight", "data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 positions (of all images, one behind the other) and 128 filters. For each chunk of 64 channels, the weights
// of the nine taps and the positions with their halo are copied once. Positions are the rows of wgmma, from registers.

#include <cuda_fp16.h>

constexpr int TILE = 192;                   // positions of a block
constexpr int SLABS = 9;                    // taps
constexpr int SLAB_BYTES = 16384;           // 64 channels × 128 filters, in two boxes of 64 filters
constexpr int EARLY = 3;                    // slabs that are asked for before the rows
constexpr int COPIERS = 256;                // threads that copy rows; the four warps after them ask for slabs
constexpr int PART = 64;                    // rows for each of which there is a barrier
constexpr int MAX_PARTS = 7;                // 192 + 2 · 127 + 2 rows at most
constexpr int ROWS_AT = SLABS * SLAB_BYTES;
constexpr int STAGE_AT = ROWS_AT + 456 * 128;
constexpr int BARRIERS_AT = STAGE_AT + 12 * 2048;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

// Arrives when all copies that this thread has asked for have landed.
__device__ __forceinline__ void arriveWithCopies(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}

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

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int filter, int channel, int tap,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(filter), "r"(channel), "r"(tap), "r"(barrier) : "memory");
}

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)

// Describes 16 or more rows (k) of 128 columns in two boxes of 64 to wgmma: 1024 bytes from 8 rows to the next 8,
// 8192 bytes from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | (unsigned long long)(8192 >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
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
    for (float &sum : d)
        asm volatile("" : "+f"(sum) :: "memory");
}

// Reads 16 rows of 64 channels; the address is that of this lane's row and its first chunk, swizzled.
__device__ __forceinline__ void loadRows(unsigned (&a)[4][4], unsigned address)
{
#pragma unroll
    for (int k = 0; k < 4; ++k)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                     : "r"(address ^ (k * 32)) : "memory");
}

// Waits for the weights of a tap and starts their products.
__device__ __forceinline__ void multiplySlab(float (&sums)[64], const unsigned (&a)[4][4], unsigned weights,
                                             unsigned barrier, unsigned parity)
{
    waitPhase(barrier, parity);
    const unsigned long long other = describe(weights);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k)
        multiply(sums, a[k], other + (k * 16 * 128 >> 4));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ void __launch_bounds__(384, 1)
conv2d(const __grid_constant__ TensorMap map, const __half *data, const __half *weight, __half *output,
       int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    const unsigned slabs = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned rowsBase = slabs + ROWS_AT;
    const unsigned slabFull = slabs + BARRIERS_AT;
    const unsigned rowsFull = slabFull + 8 * SLABS;

    const int thread = threadIdx.x;
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int group = warp / 4;
    const int p0 = blockIdx.x * TILE;
    const int f0 = blockIdx.y * 128;
    const int positions = N * H * W;
    const int rows = TILE + 2 * W + 2;                   // row i is position p0 − W − 1 + i
    const int parts = (rows + PART - 1) / PART;
    const int zeros = (rows + 7) & ~7;                   // first of eight rows of zeros
    const int chunks = (C + 63) / 64;

    // Asks for the weights of taps; a lane of each of the last four warps.
    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (thread >= COPIERS && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += 4) {
                if (slab < from)
                    continue;
                const unsigned barrier = slabFull + 8 * slab;
                const unsigned to = slabs + slab * SLAB_BYTES;
                expectBytes(barrier, SLAB_BYTES);
                copyBox(to, map, f0, chunk * 64, slab, barrier);
                copyBox(to + 8192, map, f0 + 64, chunk * 64, slab, barrier);
            }
        }
        __syncwarp();
    };

    // Copies 64 rows of 64 channels, by the copiers; zeros for what does not exist.
    const auto copyPart = [&](int part, int chunk) {
        const int channel = chunk * 64 + thread % 8 * 8;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = part * PART + i * 32 + thread / 8;
            if (row < rows) {
                const int position = p0 - W - 1 + row;
                const bool some = position >= 0 && position < positions && channel < C;
                const __half *const from = some ? data + (long long)position * C + channel : data;
                const int bytes = some ? 16 : 0;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                             :: "r"(rowsBase + row * 128 + ((thread % 8 ^ (row & 7)) << 4)), "l"(from), "r"(bytes)
                             : "memory");
            }
        }
    };

    // Start: the first copies wait for nothing but the barriers that the asking lanes set up themselves.
    if (thread >= COPIERS) {
        if (lane == 0) {
            for (int slab = warp - COPIERS / 32; slab < SLABS; slab += 4)
                initBarrier(slabFull + 8 * slab, 1);
            if (warp == 11) {
                for (int part = 0; part < MAX_PARTS; ++part)
                    initBarrier(rowsFull + 8 * part, COPIERS);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncwarp();
        fetchSlabs(0, 0, EARLY);
        if (thread >= 320)
            asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};"
                         :: "r"(rowsBase + zeros * 128 + (thread - 320) * 16), "r"(0) : "memory");
    } else {
        copyPart(0, 0);
    }
    __syncthreads();

    // The weights of later taps come into the second-level cache meanwhile: a few lines by each block.
    if (warp == 11 && lane < 8 && blockIdx.y == 0) {
        const long long at = 3ll * C * F + (blockIdx.x * 8ll + lane) * 64;
        if (at < 9ll * C * F)
            asm volatile("prefetch.global.L2 [%0];" :: "l"(weight + at) : "memory");
    }
    __syncwarp();

    // The row whose address this lane gives, and a bit for each tap that lies inside of its image.
    const int local = warp * 16 + lane % 16;
    unsigned inside = 0;
    if (p0 + local < positions) {
        const unsigned position = p0 + local;
        const unsigned line = position / unsigned(W);
        const int w = position - line * W;
        const int h = line % unsigned(H);
        const unsigned columns = (w > 0 ? 1u : 0u) | 2u | (w + 1 < W ? 4u : 0u);
        inside = (h > 0 ? columns : 0u) | columns << 3 | (h + 1 < H ? columns << 6 : 0u);
    }
    const auto rowAddress = [&](int slab) {
        const int row = local + slab / 3 * W + slab % 3;
        const int from = inside >> slab & 1 ? row : zeros + (row & 7);       // the same banks in both cases
        return rowsBase + from * 128 + ((lane / 16 ^ (row & 7)) << 4);
    };

    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;
        if (chunk > 0) {
            __syncthreads();                             // everyone has left the chunk before
            fetchSlabs(chunk, 0, EARLY);
            if (thread < COPIERS)
                copyPart(0, chunk);
        }
        if (thread < COPIERS) {
            arriveWithCopies(rowsFull);
#pragma unroll 1
            for (int part = 1; part < parts; ++part) {
                copyPart(part, chunk);
                arriveWithCopies(rowsFull + 8 * part);
            }
        }
        __syncwarp();

        // This warpgroup's rows of a tap are in the parts from its own to the one of its last row.
        int next = group;
        const auto waitRows = [&](int slab) {
            const int last = group + ((PART - 1 + slab / 3 * W + slab % 3) / PART);
#pragma unroll 1
            for (; next <= last; ++next)
                waitPhase(rowsFull + 8 * next, parity);
        };
        // The products before the last ones have ended: their fragments are free.
        const auto nextRows = [&](unsigned (&a)[4][4], int slab) {
            const unsigned address = rowAddress(slab);
            waitRows(slab);
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            hold(a);
            loadRows(a, address);
        };

        waitRows(0);
        fetchSlabs(chunk, EARLY, SLABS);                 // the other slabs, behind the first rows

        unsigned even[4][4], odd[4][4] = {};
        loadRows(even, rowAddress(0));
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(sums, even, slabs + slab * SLAB_BYTES, slabFull + 8 * slab, parity);
            nextRows(odd, slab + 1);
            multiplySlab(sums, odd, slabs + (slab + 1) * SLAB_BYTES, slabFull + 8 * (slab + 1), parity);
            nextRows(even, slab + 2);
        }
        multiplySlab(sums, even, slabs + (SLABS - 1) * SLAB_BYTES, slabFull + 8 * (SLABS - 1), parity);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        hold(sums);
    }

    // Each warp turns its 16 positions, 64 filters at a time, in a stage of its own.
    const unsigned stage = slabs + STAGE_AT + warp * 2048;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (half > 0)
            __syncwarp();                                // everyone has read the half before
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            const int i = (half * 8 + pair * 2) * 4;
            const unsigned to = stage + lane % 16 * 128 + (((pair * 2 + lane / 16) ^ (lane & 7)) << 4);
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(to), "r"(pack(sums[i], sums[i + 1])), "r"(pack(sums[i + 2], sums[i + 3])),
                            "r"(pack(sums[i + 4], sums[i + 5])), "r"(pack(sums[i + 6], sums[i + 7])) : "memory");
        }
        __syncwarp();
        const int f = f0 + half * 64 + lane % 8 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = i * 4 + lane / 8;
            uint4 result;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(result.x), "=r"(result.y), "=r"(result.z), "=r"(result.w)
                         : "r"(stage + row * 128 + ((lane % 8 ^ (row & 7)) << 4)) : "memory");
            const int position = p0 + warp * 16 + row;
            if (position < positions && f < F)
                *reinterpret_cast<uint4 *>(output + (long long)position * F + f) = result;
        }
    }
}
