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
shared = "173056 + 128 * (195 + 2 * W)"
args = ["data_nhwc", "tm_weight", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// A block has 192 consecutive positions (of all images, line after line) and 128 filters; a warpgroup has 64 of the positions.
// For each chunk of 64 channels: the positions with a halo of W + 1 on both sides are rows of 128 swizzled bytes, copied once;
// the weights of all nine taps are slabs of 64 channels × 128 filters. A tap is a shifted window of the rows, read by ldmatrix
// as the first operand of wgmma; what lies outside of the image is read from a row of zeros.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int TILE = 192;                       // positions of a block
constexpr int THREADS = 384;
constexpr int COPIERS = 256;                    // threads that copy rows; the four warps after them ask for slabs
constexpr int SLABS = 9;
constexpr int EARLY = 3;                        // slabs that are asked for before the rows
constexpr int SLAB_BYTES = 64 * 128 * 2;        // two boxes of 64 channels × 64 filters
constexpr int STAGE_BYTES = 16 * 128;           // of a warp in the epilogue: 16 positions × 64 filters

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
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

// d += a (64 rows × 16, fragments) · columns (16 × 128 in shared memory, columns contiguous).
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], unsigned long long columns)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
        "}\n"
        :
          "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns), "r"(1));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv2d(const __half *__restrict__ data, const __grid_constant__ TensorMap weights, __half *__restrict__ output,
       int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[SLABS + 3];

    const int thread = threadIdx.x;
    const int warp = __shfl_sync(0xffffffffu, thread / 32, 0);
    const int lane = thread % 32;
    const int group = warp / 4;
    const int positions = N * H * W;
    const int first = blockIdx.x * TILE;
    const int column = blockIdx.y * 128;
    const int rows = TILE + 2 * W + 2;          // positions first − W − 1 … first + TILE + W; behind them the row of zeros
    const int chunks = (C + 63) / 64;

    const unsigned slabs = (static_cast<unsigned>(__cvta_generic_to_shared(dynamicShared)) + 1023u) & ~1023u;
    const unsigned stage = slabs + SLABS * SLAB_BYTES + warp * STAGE_BYTES;
    const unsigned halo = slabs + SLABS * SLAB_BYTES + THREADS / 32 * STAGE_BYTES;
    const unsigned slabFull = static_cast<unsigned>(__cvta_generic_to_shared(barriers));
    const unsigned rowsFull = slabFull + 8 * SLABS;

    // Barriers of slabs are set up by the lanes that ask for them, those of rows by thread 0.
    if (thread >= COPIERS && lane == 0) {
        for (int slab = warp - COPIERS / 32; slab < SLABS; slab += (THREADS - COPIERS) / 32)
            initBarrier(slabFull + 8 * slab, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    if (thread == 0) {
        for (int part = 0; part < 3; ++part)
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
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(slabFull + 8 * slab), "r"(SLAB_BYTES) : "memory");
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                 "[%0], [%1, {%2, %3, %4}], [%5];"
                                 :: "r"(slabs + slab * SLAB_BYTES + half * (SLAB_BYTES / 2)), "l"(&weights),
                                    "r"(column + 64 * half), "r"(chunk * 64), "r"(slab), "r"(slabFull + 8 * slab)
                                 : "memory");
            }
        }
        __syncwarp();
    };

    // Copies this thread's chunks of 16 bytes of rows up to end; neighbouring 8 threads have a row.
    const unsigned chunkPlace = halo + (((thread & 7) ^ (thread / 8 & 7)) << 4);    // rows of a thread are equal modulo 8
    const auto copyRows = [&](int &row, int end, int channel) {
        for (; row < end; row += COPIERS / 8) {
            const int position = first - W - 1 + row;
            const bool some = position >= 0 && position < positions && channel < C;
            const __half *const from = some ? data + (long long)position * C + channel : data;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(chunkPlace + row * 128), "l"(from), "r"(some ? 16 : 0) : "memory");
        }
    };
    const auto arriveRows = [&](int part) {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(rowsFull + 8 * part) : "memory");
    };

    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        sums[i] = 0;
    unsigned even[4][4], odd[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            even[k][i] = odd[k][i] = 0;
    }

    const int local = warp * 16 + lane % 16;    // the row whose address this lane gives to ldmatrix
    unsigned inside = 0;                        // a bit for each tap that lies inside of the image

    const auto loadRows = [&](unsigned (&a)[4][4], int tap) {
        const int from = (inside >> tap & 1) ? local + tap / 3 * W + tap % 3 : rows;
        const unsigned place = halo + from * 128 + (((lane / 16) ^ (from & 7)) << 4);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                         : "r"(place ^ (k * 32)) : "memory");
    };

    // 128-byte swizzle, columns contiguous: 8192 bytes from 64 columns to the next, 1024 bytes from 8 channels to the next.
    const unsigned long long descriptor = static_cast<unsigned long long>((slabs & 0x3ffffu) >> 4)
        | (8192ull >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;
    const auto multiplySlab = [&](const unsigned (&a)[4][4], int slab, unsigned parity) {
        waitPhase(slabFull + 8 * slab, parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 4; ++k)
            multiply(sums, a[k], descriptor + ((slab * SLAB_BYTES + k * 16 * 128) >> 4));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    };
    const auto nextRows = [&](unsigned (&a)[4][4], int tap) {
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");      // the group that used these fragments has ended
        hold(a);
        loadRows(a, tap);
    };

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned parity = chunk & 1;
        const int channel = chunk * 64 + (thread & 7) * 8;
        int row = thread / 8;
        int end = 64 + 2 * W + 2;               // the rows that the first warpgroup needs

        if (chunk > 0)
            __syncthreads();                    // everyone has left rows and slabs
        fetchSlabs(chunk, 0, EARLY);
        if (thread < COPIERS)
            copyRows(row, end, channel);
        if (chunk == 0) {
            if (thread >= COPIERS && thread < COPIERS + 8)
                asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};"
                             :: "r"(halo + rows * 128 + (thread - COPIERS) * 16), "r"(0) : "memory");
            __syncthreads();                    // barriers and the row of zeros are there
        }
        if (thread < COPIERS) {
            arriveRows(0);
            copyRows(row, end + 64, channel);
            arriveRows(1);
            copyRows(row, end + 128, channel);
            arriveRows(2);
        }
        __syncwarp();

        if (chunk == 0) {
            const int position = first + local;
            if (position < positions) {
                const unsigned line = unsigned(position) / unsigned(W);
                const int w = position - int(line) * W;
                const int h = line % unsigned(H);
                const unsigned across = (w > 0 ? 1u : 0u) | 2u | (w < W - 1 ? 4u : 0u);
                inside = (h > 0 ? across : 0u) | across << 3 | (h < H - 1 ? across << 6 : 0u);
            }
            __syncwarp();
        }

        if (group == 2) {                       // the warps that ask for slabs: the others now, behind the first rows
            waitPhase(rowsFull, parity);
            fetchSlabs(chunk, EARLY, SLABS);
        }
        waitPhase(rowsFull + 8 * group, parity);
        __syncwarp();

        loadRows(even, 0);
#pragma unroll 1
        for (int slab = 0; slab < SLABS - 1; slab += 2) {
            multiplySlab(even, slab, parity);
            nextRows(odd, slab + 1);
            multiplySlab(odd, slab + 1, parity);
            nextRows(even, slab + 2);
        }
        multiplySlab(even, SLABS - 1, parity);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(even);
        hold(odd);
        hold(sums);
    }

    // Each warp turns its 16 positions × 128 filters by halves in a stage of its own, then stores 16 bytes a lane.
    const unsigned to = stage + lane % 16 * 128;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (half > 0)
            __syncwarp();                       // everyone has read the half before
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = half * 32 + j * 8;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :: "r"(to + (((2 * j + lane / 16) ^ (lane & 7)) << 4)),
                            "r"(pack(sums[i], sums[i + 1])), "r"(pack(sums[i + 2], sums[i + 3])),
                            "r"(pack(sums[i + 4], sums[i + 5])), "r"(pack(sums[i + 6], sums[i + 7])) : "memory");
        }
        __syncwarp();
        const int f = column + half * 64 + lane % 8 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = i * 4 + lane / 8;
            uint4 value;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                         : "r"(stage + r * 128 + (((lane & 7) ^ (r & 7)) << 4)) : "memory");
            const int position = first + warp * 16 + r;
            if (position < positions && f < F)
                *reinterpret_cast<uint4 *>(output + (long long)position * F + f) = value;
        }
    }
}
