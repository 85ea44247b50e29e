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
shared = "1024 + 9 * 16384 + 456 * 128 + 12 * 2048"
args = ["data_nhwc", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 positions (n, h, w in one run) and 128 filters, a warpgroup 64 of the positions. For a chunk of 64 channels
// the positions with their halo are rows of 128 swizzled bytes in shared memory, and a slab for each of the 9 taps holds
// 64 channels × 128 filters. Row i of the halo is position p0 − W − 1 + i, so that tap (r, s) of position p0 + m is row
// m + r W + s. The positions are the first operand of wgmma, from registers.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int TILE = 192;                        // positions of a block
constexpr int THREADS = 384;
constexpr int COPIERS = 256;                     // threads that copy rows; the warps after them ask for slabs
constexpr int SLABS = 9;
constexpr int SLAB_BYTES = 16384;                // 64 channels × 128 filters, as two boxes of 64 filters
constexpr int EARLY = 3;                         // slabs that are asked for before the rows
constexpr int ZERO_ROWS = 8;                     // before the halo; one for each row number modulo 8
constexpr int MAX_ROWS = TILE + 2 * 127 + 2;     // 448
constexpr int PARTS = 7;                         // of the halo: rows up to 96, 160, 224, …, 480
constexpr int STAGE_BYTES = 2048;                // of a warp: 16 positions × 64 filters

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n"
                 :: "r"(barrier), "r"(parity) : "memory");
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

__device__ __forceinline__ void hold(float (&sums)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(sums[i]) :: "memory");
}

// 64 positions × 128 filters += 64 × 16 (registers) · 16 × 128 (shared memory, filters contiguous)
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
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
        "%68, "
        "p, 1, 1, 1;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

// What a lane needs to read its rows.
struct Reader {
    unsigned rowsBase, rowsFull;
    unsigned inside;                             // a bit for each tap whose position exists for this lane's row
    int local, group, high, width;
};

__device__ __forceinline__ void loadRows(unsigned (&a)[4][4], const Reader &reader, int slab, unsigned parity)
{
    const int r = slab / 3;
    // The last row that this warpgroup needs for taps of row r is 64 group + r W + 65; part j ends before row 96 + 64 j.
    waitPhase(reader.rowsFull + 8 * (reader.group + ((r * reader.width + 33) >> 6)), parity);
    const int exact = ZERO_ROWS + reader.local + r * reader.width + slab - 3 * r;
    const int from = ((reader.inside >> slab) & 1) ? exact : (exact & 7);
    const unsigned address = reader.rowsBase + from * 128 + ((reader.high ^ (from & 7)) << 4);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                     : "r"(address ^ (unsigned)(k << 5)) : "memory");
}

__device__ __forceinline__ void multiplySlab(float (&sums)[64], const unsigned (&a)[4][4], unsigned long long slabs,
                                             unsigned slabFull, int slab, unsigned parity)
{
    waitPhase(slabFull + 8 * slab, parity);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k)
        multiply(sums, a[k], slabs + (unsigned long long)(slab * (SLAB_BYTES >> 4) + k * (16 * 128 >> 4)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void nextRows(unsigned (&a)[4][4], const Reader &reader, int slab, unsigned parity)
{
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");   // the group before the last has left its registers
    hold(a);
    loadRows(a, reader, slab, parity);
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv2d(const __half *data, const __grid_constant__ TensorMap tm_weight, __half *output,
       int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[SLABS + PARTS];

    const int thread = threadIdx.x;
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int group = warp / 4;

    const unsigned base = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned rowsBase = base + SLABS * SLAB_BYTES;
    const unsigned slabFull = sharedAddress(barriers);
    const unsigned rowsFull = slabFull + 8 * SLABS;

    const int positions = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int column = blockIdx.y * 128;
    const int rows = TILE + 2 * W + 2;
    const int chunks = (C + 63) / 64;

    // Weights: slabs from … end − 1 of a chunk of channels, by the first lanes of the last 4 warps.
    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (thread >= COPIERS && lane == 0) {
            const bool wide = column + 64 < F;   // else the second half has no filter that is stored
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
                if (slab < from)
                    continue;
                const unsigned barrier = slabFull + 8 * slab;
                const unsigned to = base + slab * SLAB_BYTES;
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(barrier), "r"(wide ? SLAB_BYTES : SLAB_BYTES / 2) : "memory");
                asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%0], [%1, {%2, %3, %4}], [%5];"
                             :: "r"(to), "l"(&tm_weight), "r"(column), "r"(chunk * 64), "r"(slab), "r"(barrier)
                             : "memory");
                if (wide)
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                 "[%0], [%1, {%2, %3, %4}], [%5];"
                                 :: "r"(to + SLAB_BYTES / 2), "l"(&tm_weight), "r"(column + 64), "r"(chunk * 64),
                                    "r"(slab), "r"(barrier) : "memory");
            }
        }
        __syncwarp();
    };

    // Positions: 16 bytes of a row of the halo; zeros outside of the tensor and beyond the last channel.
    const auto copyRow = [&](int chunk, int row) {
        const int channel = chunk * 64 + thread % 8 * 8;
        const int position = p0 - W - 1 + row;
        const bool some = position >= 0 && position < positions && channel < C;
        const __half *const from = some ? data + (long long)position * C + channel : data;
        const unsigned to = rowsBase + (ZERO_ROWS + row) * 128 + (((thread % 8) ^ (row % 8)) << 4);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(from), "r"(some ? 16 : 0) : "memory");
    };
    const auto arriveRows = [&](int part) {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(rowsFull + 8 * part) : "memory");
    };
    const auto copyFirstRows = [&](int chunk) {  // part 0: rows 0 … 95; there are at least 196
        if (thread < COPIERS) {
#pragma unroll
            for (int i = 0; i < 3; ++i)
                copyRow(chunk, thread / 8 + 32 * i);
        }
    };
    const auto copyOtherRows = [&](int chunk) {
        if (thread < COPIERS) {
            arriveRows(0);
#pragma unroll 1
            for (int part = 1; 32 + 64 * part < rows; ++part) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int row = 32 + 64 * part + 32 * i + thread / 8;
                    if (row < rows)
                        copyRow(chunk, row);
                }
                arriveRows(part);
            }
        }
    };

    // Start: barriers, the first slabs, the first rows, the rows of zeros.
    if (thread >= COPIERS) {
        if (lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < SLABS; slab += (THREADS - COPIERS) / 32)
                initBarrier(slabFull + 8 * slab, 1);
            if (warp == THREADS / 32 - 1) {
#pragma unroll 1
                for (int part = 0; part < PARTS; ++part)
                    initBarrier(rowsFull + 8 * part, COPIERS);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        }
        __syncwarp();
    }
    fetchSlabs(0, 0, EARLY);
    copyFirstRows(0);
    if (thread >= COPIERS && thread < COPIERS + ZERO_ROWS * 8)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};"
                     :: "r"(rowsBase + (thread - COPIERS) * 16), "r"(0) : "memory");
    __syncthreads();
    copyOtherRows(0);

    // Which taps of this lane's row exist.
    Reader reader;
    reader.rowsBase = rowsBase;
    reader.rowsFull = rowsFull;
    reader.local = warp * 16 + lane % 16;
    reader.group = group;
    reader.high = lane / 16;
    reader.width = W;
    reader.inside = 0;
    {
        const int position = p0 + reader.local;
        if (position < positions) {
            const int line = position / W;
            const int w = position - line * W;
            const int h = line % H;
            const unsigned columns = (w > 0 ? 1u : 0u) | 2u | (w < W - 1 ? 4u : 0u);
            reader.inside = (h > 0 ? columns : 0u) | columns << 3 | (h < H - 1 ? columns << 6 : 0u);
        }
    }

    // Rows of 64 filters, 128-byte swizzle: 8192 bytes from 64 filters to the next, 1024 bytes from 8 channels to the next.
    const unsigned long long slabs = (unsigned long long)((base & 0x3ffff) >> 4) | (unsigned long long)(8192 >> 4) << 16
                                   | (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;

    unsigned even[4][4], odd[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            even[k][i] = odd[k][i] = 0;
    }
    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;
    hold(sums);

#pragma unroll 1
    for (int chunk = 0; ; ) {
        const unsigned parity = chunk & 1;
        waitPhase(rowsFull + 8 * group, parity);         // the first rows that this warpgroup needs
        fetchSlabs(chunk, EARLY, SLABS);                 // the other slabs now, behind the rows

        loadRows(even, reader, 0, parity);
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(sums, even, slabs, slabFull, slab, parity);
            nextRows(odd, reader, slab + 1, parity);
            multiplySlab(sums, odd, slabs, slabFull, slab + 1, parity);
            nextRows(even, reader, slab + 2, parity);
        }
        multiplySlab(sums, even, slabs, slabFull, SLABS - 1, parity);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        hold(sums);

        if (++chunk >= chunks)
            break;
        __syncthreads();                                 // everyone has left the rows and slabs of the chunk before
        fetchSlabs(chunk, 0, EARLY);
        copyFirstRows(chunk);
        copyOtherRows(chunk);
    }

    // A stage for each warp, 64 filters at a time; it overlaps nothing that is still read.
    const unsigned stage = rowsBase + (ZERO_ROWS + MAX_ROWS) * 128 + warp * STAGE_BYTES;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (column + 64 * half < F) {
            if (half > 0)
                __syncwarp();
#pragma unroll
            for (int j = 0; j < 8; j += 2) {
                const int s = 4 * (8 * half + j);
                const unsigned to = stage + lane % 16 * 128 + (((j + lane / 16) ^ (lane & 7)) << 4);
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                             :: "r"(to), "r"(pack(sums[s], sums[s + 1])), "r"(pack(sums[s + 2], sums[s + 3])),
                                "r"(pack(sums[s + 4], sums[s + 5])), "r"(pack(sums[s + 6], sums[s + 7])) : "memory");
            }
            __syncwarp();
            const int f = column + 64 * half + lane % 8 * 8;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = 4 * i + lane / 8;
                const int position = p0 + warp * 16 + row;
                uint4 value;
                asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                             : "r"(stage + row * 128 + (((lane % 8) ^ (row & 7)) << 4)) : "memory");
                if (position < positions && f < F)
                    *reinterpret_cast<uint4 *>(output + (long long)position * F + f) = value;
            }
        }
    }
}
