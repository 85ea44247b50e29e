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
shared = "9 * 16384 + (ceil_div(194 + 2 * W, 8) + 1) * 1024 + 1024"
args = ["tm_weight", "data_nhwc", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 positions (pixels in the order of memory) and 128 filters; a warpgroup has 64 of the positions. For each chunk
// of 64 channels the positions with their halo (W + 1 more on either side) lie in shared memory as swizzled rows of 128 bytes,
// beside the nine slabs of weights, 64 channels × 128 filters each, as two boxes of 64 filters.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int TILE = 192;               // positions of a block
constexpr int THREADS = 384;            // three warpgroups
constexpr int COPIERS = 256;            // threads that copy rows; the warps after them ask for slabs
constexpr int SLABS = 9;
constexpr int EARLY = 3;                // slabs that are asked for before the rows
constexpr int BOX_BYTES = 64 * 64 * 2;
constexpr int SLAB_BYTES = 2 * BOX_BYTES;
constexpr int FIRST_ROWS = 66;          // rows of the first part of the halo; each later part has 64
constexpr int MAX_PARTS = 7;            // 3 + ceil(2 · 127 / 64)

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int x, int y, int z, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier) : "memory");
}

__device__ __forceinline__ void hold(unsigned (&a)[4][4])
{
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("" : "+r"(a[k][i]) :: "memory");
    }
}

__device__ __forceinline__ void holdSums(float (&d)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

#define SUMS8(b) "+f"(d[b]), "+f"(d[b + 1]), "+f"(d[b + 2]), "+f"(d[b + 3]), \
                 "+f"(d[b + 4]), "+f"(d[b + 5]), "+f"(d[b + 6]), "+f"(d[b + 7])

// d += a · b: a 64 × 16 from registers, b 16 × 128 from shared memory, whose rows run along the filters.
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.b32 p, %69, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n\t"
                 "}"
                 : SUMS8(0), SUMS8(8), SUMS8(16), SUMS8(24), SUMS8(32), SUMS8(40), SUMS8(48), SUMS8(56)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
                 : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv2d(const __grid_constant__ TensorMap weightMap, const __half *data, __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[SLABS + MAX_PARTS + 1];

    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int group = warp / 4;                          // warpgroup: 64 positions

    const unsigned slabs = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned halo = slabs + SLABS * SLAB_BYTES;
    const unsigned slabFull = sharedAddress(barriers);
    const unsigned rowsFull = slabFull + 8 * SLABS;
    const unsigned freed = rowsFull + 8 * MAX_PARTS;

    const TensorMap *const map = &weightMap;
    const int total = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;
    const int rows = TILE + 2 * W + 2;
    const int zeroRow = (rows + 7) & ~7;                 // eight rows of zeros, from a multiple of eight
    const int parts = 3 + (2 * W + 63) / 64;

    // Slabs of weights: warps 8 … 11 ask for those whose number is theirs modulo 4.
    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (warp >= COPIERS / 32 && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
                if (slab < from)
                    continue;
                const unsigned barrier = slabFull + 8 * slab;
                const unsigned to = slabs + slab * SLAB_BYTES;
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(barrier), "r"(SLAB_BYTES) : "memory");
                copyBox(to, map, f0, chunk * 64, slab, barrier);
                copyBox(to + BOX_BYTES, map, f0 + 64, chunk * 64, slab, barrier);
            }
        }
        __syncwarp();
    };

    // Rows: a thread copies one chunk of 16 bytes of every 32nd row; chunk c of row r lies at c ^ (r % 8).
    int row = thread / 8;
    const unsigned column = halo + (((thread % 8) ^ (row & 7)) << 4);
    const auto copyRows = [&](int end, int chunk) {
        const int channel = chunk * 64 + thread % 8 * 8;
        const bool exists = channel < C;
        for (; row < end; row += COPIERS / 8) {
            const int position = p0 - W - 1 + row;
            const bool some = exists && position >= 0 && position < total;
            const __half *const from = some ? data + (long long)position * C + channel : data;
            const int bytes = some ? 16 : 0;             // of no bytes: the place is filled with zeros
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(column + row * 128), "l"(from), "r"(bytes) : "memory");
        }
    };

    // Start: who asks for a slab sets up its barrier, so that the first ones are asked for at once.
    if (warp >= COPIERS / 32 && lane == 0) {
        for (int slab = warp - COPIERS / 32; slab < SLABS; slab += (THREADS - COPIERS) / 32)
            initBarrier(slabFull + 8 * slab, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    fetchSlabs(0, 0, EARLY);
    if (thread < COPIERS)
        copyRows(FIRST_ROWS, 0);
    if (thread == THREADS - 32) {
        for (int part = 0; part < MAX_PARTS; ++part)
            initBarrier(rowsFull + 8 * part, COPIERS);
        initBarrier(freed, THREADS / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (thread >= THREADS - 64)                          // 64 chunks of the rows of zeros
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};"
                     :: "r"(halo + zeroRow * 128 + (thread - (THREADS - 64)) * 16), "r"(0) : "memory");
    __syncthreads();

    const int local = warp * 16 + lane % 16;             // the position whose row this lane names to ldmatrix
    unsigned inside = 0;                                 // a bit for each tap that lies inside of the image
    // Rows of 64 filters (128 bytes, swizzled): 1024 bytes from eight channels to the next, a box from 64 filters to the next.
    const unsigned long long weights = (unsigned long long)((slabs & 0x3ffff) >> 4)
                                     | (unsigned long long)(BOX_BYTES >> 4) << 16
                                     | (unsigned long long)(1024 >> 4) << 32
                                     | 1ull << 62;

    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;
    unsigned even[4][4] = {}, odd[4][4] = {};

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;
        if (chunk > 0) {
            __syncthreads();                             // everyone has left the chunk before
            fetchSlabs(chunk, 0, EARLY);
            if (thread < COPIERS) {
                row = thread / 8;
                copyRows(FIRST_ROWS, chunk);
            }
        }
        if (thread < COPIERS) {
#pragma unroll 1
            for (int part = 0; part < parts; ++part) {
                if (part > 0)
                    copyRows(part == parts - 1 ? rows : FIRST_ROWS + 64 * part, chunk);
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(rowsFull + 8 * part) : "memory");
            }
        }
        if (chunk == 0) {
            const unsigned p = p0 + local;
            if (p < (unsigned)total) {
                const unsigned line = p / (unsigned)W;
                const int w = int(p - line * (unsigned)W);
                const int h = int(line % (unsigned)H);
                const unsigned across = (w > 0 ? 1u : 0u) | 2u | (w < W - 1 ? 4u : 0u);
                inside = (h > 0 ? across : 0u) | across << 3 | (h < H - 1 ? across << 6 : 0u);
            }
            __syncwarp();
        }
        if (thread >= COPIERS) {
            waitPhase(rowsFull, parity);                 // the first rows are there: now the other slabs, behind the rows
            fetchSlabs(chunk, EARLY, SLABS);
        }

        const auto loadRows = [&](unsigned (&a)[4][4], const int slab) {
            if (slab % 3 == 0)                           // the part with which all rows of this line of taps have landed
                waitPhase(rowsFull + 8 * (group + (slab / 3 * W + 63) / 64), parity);
            const int target = local + slab / 3 * W + slab % 3;
            const int swizzle = target & 7;
            const int from = (inside >> slab & 1) ? target : zeroRow + swizzle;
            const unsigned address = halo + from * 128 + (((lane / 16) ^ swizzle) << 4);
#pragma unroll
            for (int k = 0; k < 4; ++k)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                             : "r"(address ^ (k << 5)) : "memory");
        };
        const auto multiplySlab = [&](const unsigned (&a)[4][4], const int slab) {
            waitPhase(slabFull + 8 * slab, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply(sums, a[k], weights + ((slab * SLAB_BYTES + k * 16 * 128) >> 4));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        };
        const auto nextRows = [&](unsigned (&a)[4][4], const int slab) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");   // products that read these registers have ended
            hold(a);
            loadRows(a, slab);
        };

        loadRows(even, 0);
#pragma unroll
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(even, slab);
            nextRows(odd, slab + 1);
            multiplySlab(odd, slab + 1);
            nextRows(even, slab + 2);
            if (slab == 2) {                             // products of slabs 0 … 2 have ended in this warp
                if (chunk == chunks - 1 && lane == 0)
                    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(freed) : "memory");
                __syncwarp();
            }
        }
        multiplySlab(even, SLABS - 1);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        holdSums(sums);
    }

    // Each warp turns its 16 rows of 128 filters in 4096 bytes of its own, over slabs 0 … 2, which all warps have left.
    waitPhase(freed, 0);
    __syncwarp();
    const unsigned stage = slabs + warp * 4096;
#pragma unroll
    for (int j = 0; j < 16; j += 2) {
        const unsigned to = stage + (lane % 16) * 256 + (((j + lane / 16) ^ (lane & 7)) << 4);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(to),
                        "r"(pack(sums[4 * j], sums[4 * j + 1])), "r"(pack(sums[4 * j + 2], sums[4 * j + 3])),
                        "r"(pack(sums[4 * j + 4], sums[4 * j + 5])), "r"(pack(sums[4 * j + 6], sums[4 * j + 7]))
                     : "memory");
    }
    __syncwarp();
    const int f = f0 + lane % 16 * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int r = 2 * i + lane / 16;
        const int position = p0 + warp * 16 + r;
        uint4 value;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(stage + r * 256 + (((lane % 16) ^ (r & 7)) << 4)) : "memory");
        if (position < total && f < F)
            *reinterpret_cast<uint4 *>(output + (long long)position * F + f) = value;
    }
}
