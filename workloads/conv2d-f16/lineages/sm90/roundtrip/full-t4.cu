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
shared = "9 * 16384 + (195 + 2 * W) * 128 + 1024"
args = ["data_nhwc", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 positions of the flattened images and 128 filters, a warpgroup 64 of the positions. For each chunk of
// 64 channels the positions with their halo (W + 1 before and behind) are rows of 128 swizzled bytes in shared memory,
// and the nine taps' weights are slabs of 64 × 128 beside them. A tap's rows go through ldmatrix into registers, where
// a lane names a row of zeros for what lies outside of the image.

#include <cuda_fp16.h>

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

constexpr int TILE = 192;                  // positions of a block
constexpr int THREADS = 384;               // three warpgroups
constexpr int COPIERS = 256;               // threads that copy rows; the four warps after them ask for slabs
constexpr int SLABS = 9;                   // taps
constexpr int SLAB_BYTES = 16384;          // 64 channels × 128 filters
constexpr int EARLY = 3;                   // slabs that are asked for before the rows
constexpr int PARTS = 7;                   // of the rows, at most: 96 rows, then 64 each

extern __shared__ unsigned char dynamicShared[];

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives when all copies that this thread has asked for so far have landed.
__device__ __forceinline__ void arriveBehindCopies(unsigned barrier)
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

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int channel, int tap,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(channel), "r"(tap), "r"(barrier) : "memory");
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

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv2d(const __half *data, const __grid_constant__ TensorMap weightMap, __half *output,
       int N, int H, int W, int C, int F)
{
    // Full barriers of slabs, of parts of the rows, and one for the warps that have left the first three slabs.
    __shared__ unsigned long long barriers[SLABS + PARTS + 1];

    const int thread = threadIdx.x;
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int group = thread / 128;

    const unsigned slabs = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned halo = slabs + SLABS * SLAB_BYTES;
    const unsigned slabFull = sharedAddress(barriers);
    const unsigned rowsFull = slabFull + 8 * SLABS;
    const unsigned left = rowsFull + 8 * PARTS;

    const int positions = N * H * W;
    const int first = blockIdx.x * TILE;
    const int column = blockIdx.y * 128;
    const int rows = TILE + 2 * W + 2;                     // row i is position first − W − 1 + i
    const int parts = (rows - 33) / 64 + 1;                // part 0 ends at row 96, part i at 96 + 64 i
    const int chunks = (C + 63) / 64;
    const unsigned zeroRow = halo + rows * 128;

    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (thread >= COPIERS && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
                if (slab < from)
                    continue;
                const unsigned barrier = slabFull + 8 * slab;
                const unsigned to = slabs + slab * SLAB_BYTES;
                expectBytes(barrier, SLAB_BYTES);
                copyBox(to, weightMap, column, chunk * 64, slab, barrier);
                copyBox(to + SLAB_BYTES / 2, weightMap, column + 64, chunk * 64, slab, barrier);
            }
        }
        __syncwarp();
    };

    const auto copyRow = [&](int row, int chunk) {
        const int position = first - W - 1 + row;
        const int channel = chunk * 64 + thread % 8 * 8;
        const bool some = position >= 0 && position < positions && channel < C;
        const int bytes = some ? 16 : 0;                   // of no bytes: the place is filled with zeros
        const __half *const from = some ? data + (long long)position * C + channel : data;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(halo + row * 128 + ((thread % 8 ^ (row & 7)) << 4)), "l"(from), "r"(bytes) : "memory");
    };
    const auto copyFirstRows = [&](int chunk) {            // part 0; there are at least 196 rows
        if (thread < COPIERS) {
#pragma unroll
            for (int i = 0; i < 3; ++i)
                copyRow(thread / 8 + 32 * i, chunk);
        }
    };
    const auto copyOtherRows = [&](int chunk) {
        if (thread < COPIERS) {
            arriveBehindCopies(rowsFull);
#pragma unroll 1
            for (int part = 1; part < parts; ++part) {
                const int row = 32 + 64 * part + thread / 8;
                if (row < rows)
                    copyRow(row, chunk);
                if (row + 32 < rows)
                    copyRow(row + 32, chunk);
                arriveBehindCopies(rowsFull + 8 * part);
            }
        }
    };

    // Barriers of slabs are set up by the lanes that ask for them, the others by the last of these lanes.
    if (thread >= COPIERS && lane == 0) {
        for (int slab = warp - COPIERS / 32; slab < SLABS; slab += (THREADS - COPIERS) / 32)
            initBarrier(slabFull + 8 * slab, 1);
        if (warp == THREADS / 32 - 1) {
            for (int part = 0; part < PARTS; ++part)
                initBarrier(rowsFull + 8 * part, COPIERS);
            initBarrier(left, THREADS / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    fetchSlabs(0, 0, EARLY);
    copyFirstRows(0);
    if (thread >= THREADS - 8)
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};"
                     :: "r"(zeroRow + (thread - (THREADS - 8)) * 16), "r"(0) : "memory");
    __syncthreads();
    copyOtherRows(0);

    // The row whose address this lane gives, and a bit for each tap that lies inside of the image.
    const int local = warp * 16 + lane % 16;
    unsigned inside = 0;
    if (first + local < positions) {
        const unsigned line = unsigned(first + local) / unsigned(W);
        const int x = first + local - int(line) * W;
        const int y = line % unsigned(H);
        const unsigned across = 2u | (x > 0 ? 1u : 0u) | (x < W - 1 ? 4u : 0u);
        inside = across << 3 | (y > 0 ? across : 0u) | (y < H - 1 ? across << 6 : 0u);
    }

    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;

    const unsigned long long other = describe(slabs);

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;
        if (chunk > 0) {
            __syncthreads();                               // everyone has left the slabs and rows
            fetchSlabs(chunk, 0, EARLY);
            copyFirstRows(chunk);
            copyOtherRows(chunk);
        }

        int ready = 0;                                     // parts of the rows that are known to be there
        const auto waitRows = [&](int slab) {
            const int part = (64 * group + 65 + slab / 3 * W - 32) / 64;
#pragma unroll 1
            while (ready <= part) {
                waitPhase(rowsFull + 8 * ready, parity);
                ++ready;
            }
        };
        const auto loadRows = [&](unsigned (&a)[4][4], int slab) {
            waitRows(slab);
            const int row = local + slab / 3 * W + slab % 3;
            const unsigned from = (inside >> slab & 1 ? halo + row * 128 : zeroRow)
                                  + ((lane / 16 ^ (row & 7)) << 4);
#pragma unroll
            for (int k = 0; k < 4; ++k)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                             : "r"(from ^ (k << 5)) : "memory");
        };
        const auto multiplySlab = [&](const unsigned (&a)[4][4], int slab) {
            waitPhase(slabFull + 8 * slab, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply(sums, a[k], other + ((slab * SLAB_BYTES + k * 16 * 128) >> 4));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        };
        // Two sets of fragments: while one is multiplied, the rows of the next slab are read into the other.
        const auto nextRows = [&](unsigned (&a)[4][4], int slab) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            hold(a);
            loadRows(a, slab);
        };

        waitRows(0);                                       // the first rows are there …
        fetchSlabs(chunk, EARLY, SLABS);                   // … so that the other slabs no longer delay them
        unsigned even[4][4], odd[4][4];
#pragma unroll
        for (int i = 0; i < 16; ++i)
            odd[i / 4][i % 4] = 0;
        loadRows(even, 0);
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(even, slab);
            nextRows(odd, slab + 1);
            multiplySlab(odd, slab + 1);
            nextRows(even, slab + 2);
            // Now the products of slabs 0, 1 and 2 have ended in this warp: the epilogue's stages lie there.
            if (slab == 2 && chunk == chunks - 1 && lane == 0)
                arrive(left);
        }
        multiplySlab(even, SLABS - 1);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        hold(sums);
    }

    // The sums become rows of 128 filters in a stage for each warp: chunk c of row r at c ^ (r % 8), 256 bytes a row.
    waitPhase(left, 0);
    __syncwarp();
    const unsigned stage = slabs + warp * 4096;
#pragma unroll
    for (int j = 0; j < 16; j += 2) {
        const int part = j + lane / 16;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(stage + lane % 16 * 256 + ((part ^ (lane & 7)) << 4)),
                        "r"(pack(sums[4 * j], sums[4 * j + 1])), "r"(pack(sums[4 * j + 2], sums[4 * j + 3])),
                        "r"(pack(sums[4 * j + 4], sums[4 * j + 5])), "r"(pack(sums[4 * j + 6], sums[4 * j + 7]))
                     : "memory");
    }
    __syncwarp();

    uint4 results[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = 2 * i + lane / 16;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(results[i].x), "=r"(results[i].y), "=r"(results[i].z), "=r"(results[i].w)
                     : "r"(stage + row * 256 + ((lane % 16 ^ (row & 7)) << 4)) : "memory");
    }
    const int filter = column + lane % 16 * 8;
    if (filter < F) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int position = first + warp * 16 + 2 * i + lane / 16;
            if (position < positions)
                *reinterpret_cast<uint4 *>(output + (long long)position * F + filter) = results[i];
        }
    }
}
