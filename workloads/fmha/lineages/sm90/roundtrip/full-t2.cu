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
grid = ["min(sm_count, H * (ceil_div(T, 192) + B))"]
block = ["512"]
shared = "214016"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A block stays on its multiprocessor and walks over tiles of 192 queries of a sequence and a head. Warpgroup 0
// copies: its warp 0 the keys and values, in turns, into a ring of slabs of 128 rows, and its warps 1 to 3 the
// queries of the consumers, each for one. Warpgroups 1 to 3 own 64 queries each: scores by wgmma, weights in
// registers, result by wgmma. While one of them does scalar work, the others multiply.

#include <cuda_fp16.h>

constexpr int ROWS = 64, CONSUMERS = 3, BM = ROWS * CONSUMERS, BN = 128, STAGES = 5;
// Boxes are 64 numbers (128 bytes, swizzled) wide; two of them side by side make the 128 of a head.
constexpr unsigned Q_BOX = ROWS * 128, Q_BYTES = 2 * Q_BOX, KV_BOX = BN * 128, SLAB = 2 * KV_BOX;
static_assert(CONSUMERS * Q_BYTES + STAGES * SLAB + 1024 == 214016, "dynamic shared memory of the launch plan");
constexpr float LOG2E = 1.44269504f, SLACK = 8.0f;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
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

// Starts the copy of one box: numbers from `column` of head `head` of tokens from `token`.
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

// Rows of 128 swizzled bytes along the sum's index: 1024 bytes from one group of 8 rows to the next, swizzle code 1.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// Rows of 128 swizzled bytes across the sum's index (the values): 1024 bytes from 8 keys to the next 8, and one box
// from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describeAcross(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(KV_BOX >> 4) << 16 |
           (1024ull >> 4) << 32 | 1ull << 62;
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d (+)= 64 rows of x · 128 rows of y, over 16 numbers, both from shared memory.
__device__ __forceinline__ void multiplyShared(float (&d)[64], unsigned long long x, unsigned long long y,
                                               int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, accumulate, 1, 1, 0, 0;\n"
        "}"
        : SUMS32(0), SUMS32(32)
        : "l"(x), "l"(y), "r"(accumulate));
}

// d += 64 rows of 16 weights in registers · 16 rows of 128 values in shared memory.
__device__ __forceinline__ void multiplyWeights(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                unsigned long long y)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(0), SUMS32(32)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(y), "r"(1));
}

__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
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

// 2^x; 0 for -infinity.
__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
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

__device__ __forceinline__ unsigned ticks()
{
    unsigned now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
    return now;
}

struct Tile {
    int row0, end;  // its first query, and the end of the sequence's queries
    int key0, keys; // of its sequence
    int head;
};

// The tiles of this block, in the same order for all its roles. A round gives each block one tile, neighbours
// neighbouring ones; rounds are rotated, so that no block always gets the same place of a sequence. Tile numbers
// ascend, so that the search for the sequence goes on from where it was.
struct Walk {
    int round = 0, sequence = 0, before = 0;

    __device__ __forceinline__ bool next(const int *cuQ, const int *cuK, int B, int H, Tile &tile)
    {
        const int blocks = gridDim.x;
        const int number = round * blocks + (int(blockIdx.x) + round) % blocks;
        ++round;
        while (sequence < B) {
            const int begin = __ldg(cuQ + sequence), end = __ldg(cuQ + sequence + 1);
            const int tiles = (end - begin + BM - 1) / BM;
            const int place = number - before;
            if (place < tiles * H) {
                const int head = place / tiles;
                tile.head = head;
                tile.row0 = begin + (place - head * tiles) * BM;
                tile.end = end;
                tile.key0 = __ldg(cuK + sequence);
                tile.keys = __ldg(cuK + sequence + 1) - tile.key0;
                return true;
            }
            before += tiles * H;
            ++sequence;
        }
        return false;
    }
};

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, uint4 *out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];

    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned ring = queries + CONSUMERS * Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned queriesFull = empty + 8 * STAGES, queriesEmpty = queriesFull + 8 * CONSUMERS;

    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(~0u, int(threadIdx.x / 32), 0);
    const int warpgroup = warp / 4;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS); // one arrival a consumer warp
        }
        for (int i = 0; i < CONSUMERS; ++i) {
            initBarrier(queriesFull + 8 * i, 1);
            initBarrier(queriesEmpty + 8 * i, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    int stage = 0;
    unsigned phase = 0;
    const auto advance = [&] {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    };
    Walk walk;
    Tile tile;

    if (warpgroup == 0) {
        giveRegisters<32>();
        if (lane == 0) {
            if (warp == 0) {
                const auto fetch = [&](const TensorMap &map, int token) {
                    waitPhase(empty + 8 * stage, phase ^ 1); // passes at once in the first round
                    const unsigned barrier = full + 8 * stage, to = ring + stage * SLAB;
                    expectBytes(barrier, SLAB);
                    copyBox(to, map, 0, tile.head, token, barrier);
                    copyBox(to + KV_BOX, map, 64, tile.head, token, barrier);
                    advance();
                };
                while (walk.next(cuQ, cuK, B, H, tile)) {
#pragma unroll 1
                    for (int key = 0; key < tile.keys; key += BN) {
                        fetch(mapK, tile.key0 + key);
                        fetch(mapV, tile.key0 + key);
                    }
                }
            } else {
                const int consumer = warp - 1;
                const unsigned to = queries + consumer * Q_BYTES, barrier = queriesFull + 8 * consumer;
                while (walk.next(cuQ, cuK, B, H, tile)) {
                    const int row = tile.row0 + consumer * ROWS;
                    if (row >= tile.end)
                        continue;
                    waitPhase(queriesEmpty + 8 * consumer, phase ^ 1);
                    expectBytes(barrier, Q_BYTES);
                    copyBox(to, mapQ, 0, tile.head, row, barrier);
                    copyBox(to + Q_BOX, mapQ, 64, tile.head, row, barrier);
                    phase ^= 1;
                }
            }
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1;
        const float factor = scale * LOG2E;
        const unsigned long long query = describe(queries + consumer * Q_BYTES);
        unsigned queryPhase = 0;
        bool fresh = true;
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };

        while (walk.next(cuQ, cuK, B, H, tile)) {
            const int blocks = (tile.keys + BN - 1) / BN;
            if (tile.row0 + consumer * ROWS >= tile.end) { // no rows here: the slabs have to be left all the same
#pragma unroll 1
                for (int i = 0; i < 2 * blocks; ++i) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
                continue;
            }

            float result[64];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            float reference[2], sum[2];
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
            sum[0] = sum[1] = 0.0f;

            waitPhase(queriesFull + 8 * consumer, queryPhase);
            queryPhase ^= 1;
            if (fresh) { // begin a third of a step apart, so that products of some run beside scalar work of others
                fresh = false;
                if (blocks > 0) {
                    waitPhase(full + 8 * stage, phase);
                    const unsigned start = ticks();
                    while (ticks() - start < unsigned(consumer) * 1024u) {
                    }
                    __syncwarp();
                }
            }

#pragma unroll 1
            for (int block = 0; block < blocks; ++block) {
                // Scores.
                float score[64];
                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long keys = describe(ring + stage * SLAB);
                    fenceProducts();
#pragma unroll
                    for (int i = 0; i < 8; ++i)
                        multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32) / 16,
                                       keys + (i / 4 * KV_BOX + i % 4 * 32) / 16, i > 0);
                    commitProducts();
                    waitProducts<0>();
                    pin(score);
                }
                leave();
                if (block == blocks - 1 && lane == 0)
                    arrive(queriesEmpty + 8 * consumer);

                // Keys of the next sequence, or none, in the last block.
                if (tile.keys - block * BN < BN) {
                    const int left = tile.keys - block * BN - 2 * (lane % 4);
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (i / 4 * 8 + i % 2 >= left)
                            score[i] = __int_as_float(0xff800000);
                }

                // The reference follows the largest scores late; one vote a warp.
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

                // Weights, packed as the left operand of the second product.
                unsigned weights[32];
                float odd[2];
                odd[0] = odd[1] = 0.0f;
#pragma unroll
                for (int i = 0; i < 64; i += 2) {
                    const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                    const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
                    weights[i / 2] = pack(low, high);
                    sum[i / 2 % 2] += low;
                    odd[i / 2 % 2] += high;
                }
                sum[0] += odd[0];
                sum[1] += odd[1];

                // Result.
                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long values = describeAcross(ring + stage * SLAB);
                    pin(result);
                    pin(weights);
                    fenceProducts();
#pragma unroll
                    for (int i = 0; i < 8; ++i) // 16 keys are 2048 bytes
                        multiplyWeights(result, weights[4 * i], weights[4 * i + 1], weights[4 * i + 2],
                                        weights[4 * i + 3], values + i * 2048 / 16);
                    commitProducts();
                    waitProducts<0>();
                    pin(result);
                    pin(weights);
                }
                leave();
            }
            if (blocks == 0 && lane == 0)
                arrive(queriesEmpty + 8 * consumer);

            // A lane holds two numbers of every eight columns; four lanes exchange them so that each has eight in a row.
            const int quad = lane % 4;
            const bool isOdd = (quad & 1) != 0, isHigh = (quad & 2) != 0;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                const int token = tile.row0 + consumer * ROWS + warp % 4 * 16 + lane / 4 + 8 * half;
                uint4 *const row = out + (size_t(token) * H + tile.head) * 16;
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    unsigned w[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int at = 4 * (4 * part + i) + 2 * half;
                        w[i] = pack(result[at] * inverse, result[at + 1] * inverse);
                    }
#pragma unroll
                    for (int i = 0; i < 4; i += 2) {
                        const unsigned got = __shfl_xor_sync(~0u, isOdd ? w[i] : w[i + 1], 1);
                        if (isOdd)
                            w[i] = got;
                        else
                            w[i + 1] = got;
                    }
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        const unsigned got = __shfl_xor_sync(~0u, isHigh ? w[i] : w[i + 2], 2);
                        if (isHigh)
                            w[i] = got;
                        else
                            w[i + 2] = got;
                    }
                    if (token < tile.end)
                        row[4 * part + quad] = make_uint4(w[0], w[1], w[2], w[3]);
                }
            }
        }
    }
}
