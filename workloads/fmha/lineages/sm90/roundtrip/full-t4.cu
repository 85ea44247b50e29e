/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "attention"
grid = ["min(sm_count, (ceil_div(T, 192) + B) * H)"]
block = ["512"]
shared = "214016"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A persistent block walks over tiles of 192 queries of one sequence and head. Warpgroup 0 copies: one thread
// keys and values, alternately, into a ring of slabs, and one thread for each consumer its queries. Warpgroups
// 1 to 3 consume: 64 queries each, scores, weights and weighted sums one after the other; while one does scalar
// work, the products of the others keep the tensor cores busy.

#include <cuda_fp16.h>

typedef uint4 Chunk;

constexpr int D = 128, CHUNKS = D / 8;
constexpr int CONSUMERS = 3, ROWS = 64, BM = ROWS * CONSUMERS, BN = 128, STAGES = 5;
constexpr unsigned Q_BYTES = ROWS * D * 2;   // of one consumer: two halves of 64 columns
constexpr unsigned SLAB_BYTES = BN * D * 2;  // of keys or values: two halves of 64 columns
constexpr float LOG2E = 1.44269504f;
constexpr float SLACK = 8.0f;                // powers of two by which a score may outgrow its reference

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// ---- barriers and copies

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

// Starts the copy of one box: 64 columns from `column` of one head, rows from `token`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int token,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(token), "r"(barrier) : "memory");
}

template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}

// ---- products

// Rows of 128 swizzled bytes, 8 rows every 1024 bytes. `leading`: with the columns along the product's N, the bytes
// from 64 columns to the next 64; otherwise unused.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16
           | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS8(how, i)                                                                              \
    how(d[i]), how(d[i + 1]), how(d[i + 2]), how(d[i + 3]), how(d[i + 4]), how(d[i + 5]),          \
        how(d[i + 6]), how(d[i + 7])
#define SUMS32(how, i) SUMS8(how, i), SUMS8(how, i + 8), SUMS8(how, i + 16), SUMS8(how, i + 24)
#define ADDED(x) "+f"(x)
#define SET(x) "=f"(x)

#define LIST64                                                                                     \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
    " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
    " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "

// d = 64 rows of x · 128 rows of y, over 16 numbers of K.
__device__ __forceinline__ void multiplyFirst(float (&d)[64], unsigned long long x, unsigned long long y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 "%64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}"
                 : SUMS32(SET, 0), SUMS32(SET, 32)
                 : "l"(x), "l"(y));
}

// d += the same.
__device__ __forceinline__ void multiply(float (&d)[64], unsigned long long x, unsigned long long y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 "%64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}"
                 : SUMS32(ADDED, 0), SUMS32(ADDED, 32)
                 : "l"(x), "l"(y));
}

// d += weights (64 × 16, in registers) · 16 rows of 128 columns, which lie along N.
__device__ __forceinline__ void multiplyWeights(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                unsigned long long y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}"
                 : SUMS32(ADDED, 0), SUMS32(ADDED, 32)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(y));
}

__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Products run in the background: no use of these registers may be moved over this point.
template <int N> __device__ __forceinline__ void pin(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i]) :: "memory");
}

template <int N> __device__ __forceinline__ void pin(unsigned (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(x[i]) :: "memory");
}

// ---- scalar work

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quadSum(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

// ---- tiles

struct Tile {
    int row, end;  // its first query, and the end of its sequence's queries
    int head;
    int key, keys; // the first key of its sequence, and how many there are
};

// Finds tiles of ascending numbers: a sequence after the other, in it a head after the other. Within a head, tiles are
// rotated by the grid's rounds so far: otherwise a block would get the same place of every head where the grid is
// a multiple of the tiles of a head.
struct Walk {
    int sequence, before;

    __device__ __forceinline__ bool find(int t, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
    {
        while (sequence < B) {
            const int begin = __ldg(cuQ + sequence), end = __ldg(cuQ + sequence + 1);
            const unsigned tiles = unsigned(end - begin + BM - 1) / BM;
            const unsigned place = unsigned(t - before);
            if (place < tiles * unsigned(H)) {
                const unsigned head = place / tiles;
                const unsigned start = unsigned(before) + head * tiles;
                const unsigned index = (unsigned(t) - start + start / gridDim.x) % tiles;
                tile.row = begin + int(index) * BM;
                tile.end = end;
                tile.head = int(head);
                tile.key = __ldg(cuK + sequence);
                tile.keys = __ldg(cuK + sequence + 1) - tile.key;
                return true;
            }
            before += int(tiles) * H;
            ++sequence;
        }
        return false;
    }
};

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, Chunk *out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];

    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned ring = queries + CONSUMERS * Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned fullQ = empty + 8 * STAGES, emptyQ = fullQ + 8 * CONSUMERS;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS);
        }
        for (int i = 0; i < CONSUMERS; ++i) {
            initBarrier(fullQ + 8 * i, 1);
            initBarrier(emptyQ + 8 * i, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    const int warpgroup = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);
    const int lane = threadIdx.x % 32;
    Walk walk = {0, 0};
    Tile tile;

    if (warpgroup == 0) {
        giveRegisters<32>();
        const int warp = threadIdx.x / 32;
        if (lane == 0) {
            if (warp == 0) {
                // Keys and values, a slab each, alternately.
                int stage = 0;
                unsigned phase = 1; // the parity before the first: passes at once
#pragma unroll 1
                for (int t = blockIdx.x; walk.find(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
                    const int last = tile.key + tile.keys;
#pragma unroll 1
                    for (int key = tile.key; key < last; key += BN) {
                        unsigned to = ring + stage * SLAB_BYTES;
                        waitPhase(empty + 8 * stage, phase);
                        expectBytes(full + 8 * stage, SLAB_BYTES);
                        copyBox(to, mapK, 0, tile.head, key, full + 8 * stage);
                        copyBox(to + SLAB_BYTES / 2, mapK, 64, tile.head, key, full + 8 * stage);
                        if (++stage == STAGES) {
                            stage = 0;
                            phase ^= 1;
                        }
                        to = ring + stage * SLAB_BYTES;
                        waitPhase(empty + 8 * stage, phase);
                        expectBytes(full + 8 * stage, SLAB_BYTES);
                        copyBox(to, mapV, 0, tile.head, key, full + 8 * stage);
                        copyBox(to + SLAB_BYTES / 2, mapV, 64, tile.head, key, full + 8 * stage);
                        if (++stage == STAGES) {
                            stage = 0;
                            phase ^= 1;
                        }
                    }
                }
            } else {
                // The queries of one consumer, where it has some.
                const int consumer = warp - 1;
                const unsigned to = queries + consumer * Q_BYTES;
                const unsigned mineFull = fullQ + 8 * consumer, mineEmpty = emptyQ + 8 * consumer;
                unsigned phase = 1;
#pragma unroll 1
                for (int t = blockIdx.x; walk.find(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
                    const int row = tile.row + consumer * ROWS;
                    if (row < tile.end) {
                        waitPhase(mineEmpty, phase);
                        phase ^= 1;
                        expectBytes(mineFull, Q_BYTES);
                        copyBox(to, mapQ, 0, tile.head, row, mineFull);
                        copyBox(to + Q_BYTES / 2, mapQ, 64, tile.head, row, mineFull);
                    }
                }
            }
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1;
        const float factor = scale * LOG2E;
        const unsigned long long queryRows = describe(queries + consumer * Q_BYTES, 16);
        const unsigned long long keyRows = describe(ring, 16);
        const unsigned long long valueRows = describe(ring, SLAB_BYTES / 2);
        int stage = 0;
        unsigned phase = 0, phaseQ = 0;

#pragma unroll 1
        for (int t = blockIdx.x; walk.find(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
            if (tile.row + consumer * ROWS >= tile.end) {
                // Nothing to do in this tile, but the slabs go by all the same.
#pragma unroll 1
                for (int slab = (tile.keys + BN - 1) / BN * 2; slab > 0; --slab) {
                    waitPhase(full + 8 * stage, phase);
                    if (lane == 0)
                        arrive(empty + 8 * stage);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                }
                continue;
            }

            float result[64];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            float reference[2], sum[2]; // references in powers of two; sums of this lane's columns
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
            sum[0] = sum[1] = 0.0f;

            waitPhase(fullQ + 8 * consumer, phaseQ);
            phaseQ ^= 1;

#pragma unroll 1
            for (int left = tile.keys; left > 0; left -= BN) {
                // Scores of 64 queries and 128 keys.
                float score[64];
                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long ys = keyRows + (unsigned long long)(stage * (SLAB_BYTES >> 4));
                    fenceProducts();
                    multiplyFirst(score, queryRows, ys);
#pragma unroll
                    for (int k = 1; k < 8; ++k)
                        multiply(score, queryRows + (k / 4 * (Q_BYTES / 2 >> 4) + k % 4 * 2),
                                 ys + (k / 4 * (SLAB_BYTES / 2 >> 4) + k % 4 * 2));
                    commitProducts();
                    waitProducts();
                    pin(score);
                }
                if (lane == 0) {
                    arrive(empty + 8 * stage);
                    if (left <= BN)
                        arrive(emptyQ + 8 * consumer);
                }
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }

                if (left < BN) {
                    const int bound = left - lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (i / 4 * 8 + i % 2 >= bound)
                            score[i] = __int_as_float(0xff800000);
                }

                // The reference is raised only when a score of the warp has outgrown its own.
                float top[2];
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
                    for (int i = 4 + 2 * half; i < 64; i += 4) {
                        low = fmaxf(low, score[i]);
                        high = fmaxf(high, score[i + 1]);
                    }
                    top[half] = fmaxf(low, high) * factor;
                }
                if (__any_sync(~0u, fmaxf(top[0] - reference[0], top[1] - reference[1]) > SLACK)) {
                    float shrink[2];
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const float now = fmaxf(reference[half], quadMax(top[half]));
                        shrink[half] = power(reference[half] - now);
                        reference[half] = now;
                        sum[half] *= shrink[half];
                    }
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        result[i] *= shrink[i / 2 % 2];
                }

                unsigned weights[32];
#pragma unroll
                for (int i = 0; i < 64; i += 2) {
                    const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                    const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
                    sum[i / 2 % 2] += low + high;
                    weights[i / 2] = pack(low, high);
                }

                // Weighted sums of the values.
                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long ys = valueRows + (unsigned long long)(stage * (SLAB_BYTES >> 4));
                    pin(result);
                    pin(weights);
                    fenceProducts();
#pragma unroll
                    for (int k = 0; k < 8; ++k)
                        multiplyWeights(result, weights[4 * k], weights[4 * k + 1], weights[4 * k + 2],
                                        weights[4 * k + 3], ys + k * (16 * 128 >> 4));
                    commitProducts();
                    waitProducts();
                    pin(result);
                    pin(weights);
                }
                if (lane == 0)
                    arrive(empty + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
            if (tile.keys <= 0 && lane == 0)
                arrive(emptyQ + 8 * consumer);

            // Four lanes share a row; in each group of 8 columns each has two. They exchange them, four groups at a
            // time, so that each has one whole group.
            const int warpRow = int(threadIdx.x) / 32 % 4 * 16 + lane / 4;
            const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? reciprocal(total) : 0.0f;
                const int token = tile.row + consumer * ROWS + warpRow + 8 * half;
                Chunk *to = out + (size_t(token) * H + tile.head) * CHUNKS + lane % 4;
#pragma unroll
                for (int j = 0; j < 16; j += 4) {
                    unsigned a[4];
#pragma unroll
                    for (int g = 0; g < 4; ++g)
                        a[g] = pack(result[4 * (j + g) + 2 * half] * inverse,
                                    result[4 * (j + g) + 2 * half + 1] * inverse);
                    const unsigned r0 = __shfl_xor_sync(~0u, odd ? a[0] : a[1], 1);
                    const unsigned r1 = __shfl_xor_sync(~0u, odd ? a[2] : a[3], 1);
                    // of group j + odd and of group j + 2 + odd, what this pair of lanes has
                    const unsigned p0 = odd ? r0 : a[0], p1 = odd ? a[1] : r0;
                    const unsigned s0 = odd ? r1 : a[2], s1 = odd ? a[3] : r1;
                    const unsigned x0 = __shfl_xor_sync(~0u, upper ? p0 : s0, 2);
                    const unsigned x1 = __shfl_xor_sync(~0u, upper ? p1 : s1, 2);
                    if (token < tile.end)
                        to[j] = upper ? make_uint4(x0, x1, s0, s1) : make_uint4(p0, p1, x0, x1);
                }
            }
        }
    }
}
