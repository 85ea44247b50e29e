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
shared = "230528"
args = ["tm_weight", "data_nhwc", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block: 192 positions (rows of the product, 64 a warpgroup, from registers) times 128 filters (columns, by descriptor).
// Shared memory, from a multiple of 1024 bytes: 9 slabs of weights, 448 rows of the halo and a row of zeros, stages.

#include <cuda_fp16.h>

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

constexpr int TILE = 192;
constexpr int SLABS = 9;
constexpr int SLAB_BYTES = 16384;                        // 64 channels of 128 filters, in two boxes of 64 filters
constexpr int EARLY = 3;                                 // slabs that are asked for before the rows
constexpr int COPIERS = 256;                             // threads that copy rows; the 4 warps after them ask for slabs
constexpr int ZERO_ROW = 448;                            // TILE + 2 * 127 + 2: behind the longest halo
constexpr int FIRST_ROWS = 66;                           // rows that the first warpgroup needs for the upper taps
constexpr int ROWS_OFFSET = SLABS * SLAB_BYTES;
constexpr int STAGE_OFFSET = ROWS_OFFSET + (ZERO_ROW + 1) * 128;
constexpr int STAGE_BYTES = 2048;                        // a warp: 16 rows of 64 filters

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
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ void __launch_bounds__(384, 1)
conv2d(const __grid_constant__ TensorMap tm_weight, const __half *data, __half *output,
       int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[SLABS + 4];

    const int thread = threadIdx.x;
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int group = thread / 128;
    const int positions = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;

    const unsigned slabs = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned rowsBase = slabs + ROWS_OFFSET;
    const unsigned slabFull = sharedAddress(barriers);
    const unsigned rowsFull = slabFull + 8 * SLABS;
    const unsigned long long map = reinterpret_cast<unsigned long long>(&tm_weight);

    // Slabs from … end of a chunk: the 4 warps behind the copiers ask for them in turn.
    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (thread >= COPIERS && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += 4) {
                if (slab < from)
                    continue;
                const unsigned full = slabFull + 8 * slab;
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(full), "r"(SLAB_BYTES) : "memory");
#pragma unroll
                for (int box = 0; box < 2; ++box)
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                 "[%0], [%1, {%2, %3, %4}], [%5];"
                                 :: "r"(slabs + slab * SLAB_BYTES + box * 8192), "l"(map), "r"(f0 + box * 64),
                                    "r"(chunk * 64), "r"(slab), "r"(full) : "memory");
            }
        }
        __syncwarp();
    };

    // Row i of the halo is position p0 - W - 1 + i. Zeros where there is no such position or channel.
    int row = thread / 8;
    const auto copyRows = [&](int end, int chunk) {
        if (thread >= COPIERS)
            return;
        const int channel = chunk * 64 + thread % 8 * 8;
        const int first = p0 - W - 1;
        for (; row < end; row += COPIERS / 8) {
            const int position = first + row;
            const bool some = position >= 0 && position < positions && channel < C;
            const __half *const source = some ? data + (long long)position * C + channel : data;
            const int bytes = some ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(rowsBase + row * 128 + ((thread ^ row) & 7) * 16), "l"(source), "r"(bytes)
                         : "memory");
        }
    };
    const auto arriveRows = [&](int part) {
        if (thread < COPIERS)
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                         :: "r"(rowsFull + 8 * part) : "memory");
    };
    // Parts 0 … 2 end with what warpgroups 0 … 2 need for the upper taps, part 3 with the halo.
    const auto copyOtherRows = [&](int chunk) {
        arriveRows(0);
        copyRows(FIRST_ROWS + 64, chunk);
        arriveRows(1);
        copyRows(FIRST_ROWS + 128, chunk);
        arriveRows(2);
        copyRows(TILE + 2 * W + 2, chunk);
        arriveRows(3);
    };

    if (thread >= COPIERS && lane == 0) {
        for (int slab = warp - COPIERS / 32; slab < SLABS; slab += 4)
            initBarrier(slabFull + 8 * slab, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    fetchSlabs(0, 0, EARLY);
    if (warp == 11) {                                    // it has none of the early slabs
        if (lane == 0) {
            for (int part = 0; part < 4; ++part)
                initBarrier(rowsFull + 8 * part, COPIERS);
        }
        if (lane < 8)
            asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                         :: "r"(rowsBase + ZERO_ROW * 128 + lane * 16), "r"(0) : "memory");
        __syncwarp();
    }
    copyRows(FIRST_ROWS, 0);
    __syncthreads();
    copyOtherRows(0);

    // The row whose address this lane gives, and a bit for each tap whose pixel exists.
    const int local = warp * 16 + lane % 16;
    unsigned inside = 0;
    if (p0 + local < positions) {
        const int line = (p0 + local) / W;
        const int w = p0 + local - line * W;
        const int h = line % H;
        const unsigned columns = (w > 0 ? 1u : 0u) | 2u | (w < W - 1 ? 4u : 0u);
        inside = (h > 0 ? columns : 0u) | columns << 3 | (h < H - 1 ? columns << 6 : 0u);
    }

    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;
    unsigned even[4][4] = {}, odd[4][4] = {};
    const unsigned long long other = describe(slabs);
    unsigned parity = 0;

    const auto loadRows = [&](unsigned (&a)[4][4], int slab) {
        const int from = inside >> slab & 1 ? local + slab / 3 * W + slab % 3 : ZERO_ROW;
        const unsigned address = rowsBase + from * 128;
        const unsigned swizzle = ((lane / 16) ^ (from & 7)) * 16;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                         : "r"(address + (swizzle ^ (k * 32))) : "memory");
    };
    const auto multiplySlab = [&](const unsigned (&a)[4][4], int slab) {
        waitPhase(slabFull + 8 * slab, parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 4; ++k)
            multiply(sums, a[k], other + ((slab * SLAB_BYTES + k * 16 * 128) >> 4));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    };
    const auto nextRows = [&](unsigned (&a)[4][4], int slab) {
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");   // the group before the last has left its registers
        hold(a);
        if (slab == 3)                                   // from here on taps may need any row
            waitPhase(rowsFull + 8 * 3, parity);
        loadRows(a, slab);
    };

    for (int chunk = 0;;) {
        waitPhase(rowsFull + 8 * group, parity);         // the first rows that this warpgroup needs
        fetchSlabs(chunk, EARLY, SLABS);                 // the other slabs, behind the rows
        loadRows(even, 0);
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(even, slab);
            nextRows(odd, slab + 1);
            multiplySlab(odd, slab + 1);
            nextRows(even, slab + 2);
        }
        multiplySlab(even, SLABS - 1);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        hold(sums);
        if (++chunk == chunks)
            break;
        __syncthreads();                                 // everyone has left the rows and slabs of this chunk
        parity ^= 1;
        fetchSlabs(chunk, 0, EARLY);
        row = thread / 8;
        copyRows(FIRST_ROWS, chunk);
        copyOtherRows(chunk);
    }

    // Epilogue: 64 filters at a time through a stage that only this warp uses.
    const unsigned stage = slabs + STAGE_OFFSET + warp * STAGE_BYTES;
    const int to = lane % 16;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        if (part)
            __syncwarp();                                // all lanes have read the first half
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = part * 32 + j * 8;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(stage + to * 128 + (((2 * j + lane / 16) ^ (to & 7)) * 16)),
                            "r"(pack(sums[i], sums[i + 1])), "r"(pack(sums[i + 2], sums[i + 3])),
                            "r"(pack(sums[i + 4], sums[i + 5])), "r"(pack(sums[i + 6], sums[i + 7]))
                         : "memory");
        }
        __syncwarp();
        uint4 values[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = i * 4 + lane / 8;
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(values[i].x), "=r"(values[i].y), "=r"(values[i].z), "=r"(values[i].w)
                         : "r"(stage + r * 128 + ((lane ^ r) & 7) * 16) : "memory");
        }
        const int f = f0 + part * 64 + lane % 8 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int position = p0 + warp * 16 + i * 4 + lane / 8;
            if (position < positions && f < F)
                *reinterpret_cast<uint4 *>(output + (long long)position * F + f) = values[i];
        }
    }
}
