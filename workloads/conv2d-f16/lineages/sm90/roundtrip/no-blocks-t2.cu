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
args = ["data_nhwc", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block: 192 positions (rows of the product, 64 a warpgroup) and 128 filters (its columns).

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int TILE = 192;
constexpr int COLUMNS = 128;
constexpr int THREADS = 384;
constexpr int COPIERS = 256;                  // threads that copy rows; the 4 warps after them ask for slabs
constexpr int SLABS = 9;                      // taps of a chunk of 64 channels
constexpr int EARLY = 3;                      // slabs that are asked for before the rows
constexpr int BOX_BYTES = 64 * 64 * 2;
constexpr int SLAB_BYTES = 2 * BOX_BYTES;     // 64 channels by 128 filters
constexpr int MAX_ROWS = TILE + 2 * 127 + 2 + 1;   // the halo of the longest line and a row of zeros
constexpr int PARTS = 4;                      // parts of the halo: rows to 68, 132, 196, and the rest

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

#define SUMS8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                 "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

// 64 x 128 sums += 64 x 16 fragments in registers times 16 x 128 in shared memory, columns contiguous.
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, "
                 "%68, p, 1, 1, 1;\n"
                 "}\n"
                 : SUMS8(0), SUMS8(8), SUMS8(16), SUMS8(24), SUMS8(32), SUMS8(40), SUMS8(48), SUMS8(56)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

// Keeps fragments and sums where they are until here.
__device__ __forceinline__ void hold(unsigned (&a)[4][4])
{
#pragma unroll
    for (int k = 0; k < 4; ++k)
        asm volatile("" : "+r"(a[k][0]), "+r"(a[k][1]), "+r"(a[k][2]), "+r"(a[k][3]) :: "memory");
}

__device__ __forceinline__ void holdSums(float (&d)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

// Four fragments of 16 rows by 16 channels; each lane names the row from.
__device__ __forceinline__ void loadRows(unsigned (&a)[4][4], unsigned rowsBase, int from, int upper)
{
    const unsigned address = rowsBase + from * 128;
    const int key = from & 7;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                     : "r"(address + (((2 * k + upper) ^ key) << 4)) : "memory");
}

__device__ __forceinline__ void multiplySlab(float (&sums)[64], const unsigned (&a)[4][4], unsigned long long b,
                                             unsigned barrier, unsigned parity)
{
    waitPhase(barrier, parity);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k)
        multiply(sums, a[k], b + k * (16 * 128 >> 4));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for the parts of the halo that a warpgroup reads for the taps of row r of the window.
__device__ __forceinline__ void waitRows(int &landed, int group, int r, int W, unsigned rowsFull, unsigned parity)
{
    const int end = 64 * group + 64 + r * W + 2;          // one past the last row; part p ends at 68 + 64 p
    const int needed = min(PARTS - 1, (end - 5) / 64);
    for (; landed <= needed; ++landed)
        waitPhase(rowsFull + 8 * landed, parity);
}

__device__ __forceinline__ int rowOf(unsigned inside, int slab, int local, int W, int zeros)
{
    const int r = slab / 3, s = slab - 3 * r;
    return (inside >> slab & 1u) ? local + r * W + s : zeros;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned result;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv2d(const __half *data, const __grid_constant__ TensorMap map, __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[SLABS + PARTS];

    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = __shfl_sync(0xffffffffu, thread / 32, 0);
    const int group = warp / 4;

    const unsigned slabs = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023u) & ~1023u;
    const unsigned rowsBase = slabs + SLABS * SLAB_BYTES;
    const unsigned stages = rowsBase + MAX_ROWS * 128;
    const unsigned slabFull = unsigned(__cvta_generic_to_shared(barriers));
    const unsigned rowsFull = slabFull + 8 * SLABS;

    const int positions = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int f0 = blockIdx.y * COLUMNS;
    const int rows = TILE + 2 * W + 2;                    // row i of the halo is position p0 - W - 1 + i
    const int chunks = (C + 63) / 64;
    const unsigned long long mapAddress = reinterpret_cast<unsigned long long>(&map);

    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (warp >= COPIERS / 32 && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
                if (slab < from)
                    continue;
                const unsigned full = slabFull + 8 * slab;
                const unsigned to = slabs + slab * SLAB_BYTES;
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(full), "r"(SLAB_BYTES) : "memory");
                asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%0], [%1, {%2, %3, %4}], [%5];"
                             :: "r"(to), "l"(mapAddress), "r"(f0), "r"(chunk * 64), "r"(slab), "r"(full) : "memory");
                asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%0], [%1, {%2, %3, %4}], [%5];"
                             :: "r"(to + BOX_BYTES), "l"(mapAddress), "r"(f0 + 64), "r"(chunk * 64), "r"(slab),
                                "r"(full) : "memory");
            }
        }
        __syncwarp();
    };

    int row = thread / 8;                                 // the next row that this thread copies
    const auto copyRows = [&](int end, int chunk) {
        const int channel = chunk * 64 + thread % 8 * 8;
        const bool channelInside = channel < C;
        for (; row < end; row += COPIERS / 8) {
            const int position = p0 - W - 1 + row;
            const bool some = channelInside && position >= 0 && position < positions;
            const __half *const from = some ? data + ((long long)position * C + channel) : data;
            const int bytes = some ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(rowsBase + row * 128 + ((thread % 8 ^ (row & 7)) << 4)), "l"(from), "r"(bytes)
                         : "memory");
        }
    };
    const auto copyParts = [&](int chunk) {
        if (warp < COPIERS / 32) {
#pragma unroll 1
            for (int part = 0; part < PARTS; ++part) {
                copyRows(part < PARTS - 1 ? 68 + 64 * part : rows, chunk);
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                             :: "r"(rowsFull + 8 * part) : "memory");
            }
        }
    };

    // The lanes that ask for slabs set up the barriers of these; one of them also those of the rows.
    if (warp >= COPIERS / 32 && lane == 0) {
        for (int slab = warp - COPIERS / 32; slab < SLABS; slab += (THREADS - COPIERS) / 32)
            initBarrier(slabFull + 8 * slab, 1);
        if (warp == THREADS / 32 - 1) {
            for (int part = 0; part < PARTS; ++part)
                initBarrier(rowsFull + 8 * part, COPIERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    fetchSlabs(0, 0, EARLY);
    if (warp < COPIERS / 32)
        copyRows(68, 0);
    if (thread >= THREADS - 8)                            // the row of zeros, behind the halo
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                     :: "r"(rowsBase + rows * 128 + (thread - (THREADS - 8)) * 16), "r"(0) : "memory");
    __syncthreads();
    copyParts(0);

    // A bit for each tap whose element exists, for the row that this lane names.
    const int local = warp * 16 + lane % 16;
    const int upper = lane / 16;
    unsigned inside = 0;
    if (p0 + local < positions) {
        const int line = (p0 + local) / W;
        const int x = p0 + local - line * W;
        const int y = line % H;
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            const int v = y + tap / 3 - 1, u = x + tap % 3 - 1;
            if (v >= 0 && v < H && u >= 0 && u < W)
                inside |= 1u << tap;
        }
    }
    __syncwarp();

    // Rows of 128 bytes are channels, 64 filters each: 8 rows are 1024 bytes, the other 64 filters are 8192 bytes further.
    const unsigned long long weights = (unsigned long long)((slabs & 0x3ffffu) >> 4)
                                     | (unsigned long long)(BOX_BYTES >> 4) << 16
                                     | (unsigned long long)(1024 >> 4) << 32
                                     | 1ull << 62;

    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0.0f;
    unsigned even[4][4] = {}, odd[4][4] = {};

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;
        int landed = 0;
        waitRows(landed, group, 0, W, rowsFull, parity);
        fetchSlabs(chunk, EARLY, SLABS);                  // behind the rows
        loadRows(even, rowsBase, rowOf(inside, 0, local, W, rows), upper);
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(sums, even, weights + slab * (SLAB_BYTES >> 4), slabFull + 8 * slab, parity);

            waitRows(landed, group, (slab + 1) / 3, W, rowsFull, parity);
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            hold(odd);
            loadRows(odd, rowsBase, rowOf(inside, slab + 1, local, W, rows), upper);
            multiplySlab(sums, odd, weights + (slab + 1) * (SLAB_BYTES >> 4), slabFull + 8 * (slab + 1), parity);

            waitRows(landed, group, (slab + 2) / 3, W, rowsFull, parity);
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            hold(even);
            loadRows(even, rowsBase, rowOf(inside, slab + 2, local, W, rows), upper);
        }
        multiplySlab(sums, even, weights + (SLABS - 1) * (SLAB_BYTES >> 4), slabFull + 8 * (SLABS - 1), parity);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        holdSums(sums);

        if (chunk + 1 < chunks) {
            waitPhase(rowsFull + 8 * (PARTS - 1), parity);   // no arrival of this chunk is left
            __syncthreads();                                 // everyone has left slabs and rows
            fetchSlabs(chunk + 1, 0, EARLY);
            row = thread / 8;
            copyParts(chunk + 1);
            __syncwarp();
        }
    }

    // Each warp turns its 16 rows, 64 filters at a time, and stores 16 bytes a lane.
    const unsigned stage = stages + warp * 2048;
    const unsigned to = stage + lane % 16 * 128;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (half > 0)
            __syncwarp();
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = 32 * half + 8 * j;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(to + (((2 * j + upper) ^ (lane & 7)) << 4)),
                            "r"(pack(sums[i], sums[i + 1])), "r"(pack(sums[i + 2], sums[i + 3])),
                            "r"(pack(sums[i + 4], sums[i + 5])), "r"(pack(sums[i + 6], sums[i + 7])) : "memory");
        }
        __syncwarp();
        const int column = f0 + 64 * half + lane % 8 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int line = 4 * i + lane / 8;
            uint4 value;
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                         : "r"(stage + line * 128 + ((lane % 8 ^ (line & 7)) << 4)) : "memory");
            const int position = p0 + warp * 16 + line;
            if (position < positions && column < F)
                *reinterpret_cast<uint4 *>(output + (long long)position * F + column) = value;
        }
    }
}
