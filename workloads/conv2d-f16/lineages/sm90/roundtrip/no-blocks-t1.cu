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
fill = "zero"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W, 192)", "ceil_div(F, 128)"]
block = ["384"]
shared = "9 * 16384 + (195 + 2 * W) * 128 + 12 * 2048 + 1024"
args = ["data_nhwc", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 positions (a run of the flattened n, h, w) and 128 filters; a warpgroup has 64 of the positions.
// In each chunk of 64 channels the positions with their halo lie in shared memory as swizzled rows of 128 bytes, beside
// the weights of all 9 taps. A tap is a shift of the rows that ldmatrix reads; what is outside is read from a row of zeros.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int THREADS = 384;
constexpr int COPIERS = 256;         // threads that copy rows; the 4 warps after them ask for slabs
constexpr int TILE = 192;            // positions of a block
constexpr int SLABS = 9;             // taps
constexpr int SLAB_BYTES = 16384;    // 2 boxes of 64 channels x 64 filters
constexpr int PART_ROWS = 64;        // rows of the halo that share a barrier
constexpr int PARTS = 7;             // ceil((TILE + 2 * 127 + 2) / PART_ROWS)
constexpr int EARLY = 3;             // slabs that are asked for before the rows

__device__ __forceinline__ unsigned sharedAddress(const void *p)
{
    return unsigned(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
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

__device__ __forceinline__ void arriveCopies(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int filter, int channel, int tap, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(filter), "r"(channel), "r"(tap), "r"(barrier) : "memory");
}

// 64 rows of a from registers, 16 channels, 128 filters; b lies with filters contiguous (transposed).
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
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
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

// Values that running products use or define are not moved across this point.
__device__ __forceinline__ void hold(unsigned (&a)[4][4])
{
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("" : "+r"(a[k][i]) :: "memory");
    }
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ void __launch_bounds__(384, 1)
conv2d(const __half *data, const __grid_constant__ TensorMap weightMap, __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[SLABS + PARTS];

    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = __shfl_sync(0xffffffffu, thread / 32, 0);
    const int warpgroup = warp / 4;

    const unsigned slabs = (sharedAddress(dynamicShared) + 1023u) & ~1023u;
    const unsigned halo = slabs + SLABS * SLAB_BYTES;
    const int rows = TILE + 2 * W + 2;                   // row i is position p0 - W - 1 + i; row `rows` is zeros
    const int parts = (rows + PART_ROWS - 1) / PART_ROWS;
    const unsigned slabFull = sharedAddress(barriers);
    const unsigned rowsFull = slabFull + 8 * SLABS;

    const int positions = N * H * W;
    const int p0 = blockIdx.x * TILE;
    const int f0 = blockIdx.y * 128;
    const int chunks = (C + 63) / 64;

    // Slabs warp - 8, warp - 4, warp of those in [from, end).
    const auto fetchSlabs = [&](int chunk, int from, int end) {
        if (thread >= COPIERS && lane == 0) {
#pragma unroll 1
            for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
                if (slab < from)
                    continue;
                const unsigned barrier = slabFull + 8 * slab;
                const unsigned to = slabs + slab * SLAB_BYTES;
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(barrier), "r"(SLAB_BYTES) : "memory");
                copyBox(to, &weightMap, f0, chunk * 64, slab, barrier);
                copyBox(to + SLAB_BYTES / 2, &weightMap, f0 + 64, chunk * 64, slab, barrier);
            }
        }
        __syncwarp();
    };

    // Copiers only: 64 rows of the halo, 8 lanes a row.
    const int copyRow = thread / 8;
    const int copyChunk = thread % 8;
    const auto copyPart = [&](int chunk, int part) {
        const int channel = chunk * 64 + copyChunk * 8;
#pragma unroll
        for (int i = 0; i < PART_ROWS / (COPIERS / 8); ++i) {
            const int row = part * PART_ROWS + i * (COPIERS / 8) + copyRow;
            const int position = p0 - W - 1 + row;
            if (row < rows) {
                const bool some = position >= 0 && position < positions && channel < C;
                const __half *const from = some ? data + (long long)position * C + channel : data;
                const unsigned to = halo + row * 128 + ((copyChunk ^ (row & 7)) << 4);
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                             :: "r"(to), "l"(from), "r"(some ? 16 : 0) : "memory");
            }
        }
    };

    // Start: who asks for a slab sets its barrier up; the last warp, which asks for no early slab, those of the rows.
    if (thread >= COPIERS && lane == 0) {
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
    if (thread >= THREADS - 8)
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};"
                     :: "r"(halo + rows * 128 + (thread % 8) * 16), "r"(0) : "memory");
    if (thread < COPIERS) {                              // there are at least 4 parts
        copyPart(0, 0);
        copyPart(0, 1);
    }
    __syncthreads();                                     // barriers and the row of zeros are there
    if (thread < COPIERS) {
        arriveCopies(rowsFull);
        arriveCopies(rowsFull + 8);
#pragma unroll 1
        for (int part = 2; part < parts; ++part) {
            copyPart(0, part);
            arriveCopies(rowsFull + 8 * part);
        }
    }

    // The row whose address this lane gives, and a bit for each tap that lies inside of the image.
    const int local = warp * 16 + lane % 16;
    unsigned inside = 0;
    if (p0 + local < positions) {
        const int p = p0 + local;
        const int line = p / W;
        const int w = p - line * W;
        const int h = line % H;
        const unsigned columns = (w > 0 ? 1u : 0u) | 2u | (w < W - 1 ? 4u : 0u);
        inside = (h > 0 ? columns : 0u) | columns << 3 | (h < H - 1 ? columns << 6 : 0u);
    }
    const unsigned high = lane / 16;                     // which 8 of 16 channels

    // 128-byte swizzle; 64 filters further: 8192 bytes; 8 channels further: 1024 bytes.
    const unsigned long long weights = (unsigned long long)((slabs & 0x3ffffu) >> 4) | (unsigned long long)(8192 >> 4) << 16
        | (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;

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
            if (thread < COPIERS) {
#pragma unroll 1
                for (int part = 0; part < parts; ++part) {
                    copyPart(chunk, part);
                    arriveCopies(rowsFull + 8 * part);
                }
            }
        }

        int ready = 0;                                   // parts that are known to have landed
        const auto waitRows = [&](int offset) {
            const int need = (warpgroup * 64 + 63 + offset) / PART_ROWS;
#pragma unroll 1
            for (; ready <= need; ++ready)
                waitPhase(rowsFull + 8 * ready, parity);
        };
        const auto loadRows = [&](unsigned (&a)[4][4], int slab) {
            const int r = slab / 3;
            const int offset = r * W + (slab - 3 * r);
            waitRows(offset);
            const int from = inside >> slab & 1 ? local + offset : rows;
            const unsigned address = halo + from * 128 + ((high ^ (unsigned(from) & 7u)) << 4);
#pragma unroll
            for (int k = 0; k < 4; ++k)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                             : "r"(address ^ unsigned(k * 32)) : "memory");
        };
        const auto multiplySlab = [&](const unsigned (&a)[4][4], int slab) {
            waitPhase(slabFull + 8 * slab, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k)
                multiply(sums, a[k], weights + (unsigned long long)(slab * (SLAB_BYTES >> 4) + k * (16 * 128 >> 4)));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        };
        const auto nextRows = [&](unsigned (&a)[4][4], int slab) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");   // the group before the last has ended
            hold(a);
            loadRows(a, slab);
        };

        unsigned even[4][4], odd[4][4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                odd[k][i] = 0;
        }
        waitRows(0);
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
    }
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(sums[i]) :: "memory");

    // 16 positions and 64 filters of a warp at a time through its own stage.
    const unsigned stage = halo + (rows + 1) * 128 + warp * 2048;
    const unsigned toRow = lane % 16;
    const unsigned fromChunk = lane % 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (half > 0)
            __syncwarp();                                // all lanes have read the first half
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int first = (half * 8 + j * 2) * 4;
            const unsigned chunk = 2 * j + high;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(stage + toRow * 128 + ((chunk ^ (toRow & 7u)) << 4)),
                            "r"(pack(sums[first], sums[first + 1])), "r"(pack(sums[first + 2], sums[first + 3])),
                            "r"(pack(sums[first + 4], sums[first + 5])), "r"(pack(sums[first + 6], sums[first + 7]))
                         : "memory");
        }
        __syncwarp();
        const int f = f0 + half * 64 + int(fromChunk) * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned row = i * 4 + lane / 8;
            uint4 value;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                         : "r"(stage + row * 128 + ((fromChunk ^ (row & 7u)) << 4)) : "memory");
            const int p = p0 + warp * 16 + int(row);
            if (p < positions && f < F)
                *reinterpret_cast<uint4 *>(output + (long long)p * F + f) = value;
        }
    }
}
