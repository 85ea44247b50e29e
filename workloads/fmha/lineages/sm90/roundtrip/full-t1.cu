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
grid = ["sm_count"]
block = ["512"]
shared = "214016"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// One block a multiprocessor walks over tiles of 192 queries of one head of one sequence. Warpgroup 0 copies
// by TMA: one thread keys and values, slabs of 128 rows that take turns in a ring, another one the queries.
// Warpgroups 1 to 3 own 64 queries each: scores by wgmma from shared memory, weights in registers, which are
// the left operand of the second wgmma. While one of them does scalar work, the two others multiply.

#include <cuda_fp16.h>

constexpr int CONSUMERS = 3, ROWS = 64, BM = ROWS * CONSUMERS, BN = 128, STAGES = 5;
constexpr unsigned Q_BYTES = ROWS * 128 * 2;    // of one consumer: two boxes of 64 columns
constexpr unsigned Q_BOX = Q_BYTES / 2;
constexpr unsigned SLAB_BYTES = BN * 128 * 2;   // two boxes of 64 columns
constexpr unsigned SLAB_BOX = SLAB_BYTES / 2;
constexpr float LOG2E = 1.44269504f, SLACK = 8.0f;

static_assert(128 * (32 + CONSUMERS * 160) <= 65536, "the register file");
static_assert(CONSUMERS * Q_BYTES + STAGES * SLAB_BYTES + 1024 == 214016, "as the plan says");

typedef unsigned long long Descriptor;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// ---------------------------------------------------------------------------------------------------------
// Barriers and copies

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

// Starts the copy of one box: from this column of a head, and from this token.
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

// ---------------------------------------------------------------------------------------------------------
// Products

// Rows of 128 swizzled bytes along the summed dimension, 1024 bytes from 8 rows to the next 8.
__device__ __forceinline__ Descriptor describe(unsigned address)
{
    return Descriptor((address & 0x3ffff) >> 4) | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

// Rows of 128 swizzled bytes across the summed dimension: 1024 bytes from 8 rows (of the summed dimension) to
// the next 8, a box from 64 columns to the next 64.
__device__ __forceinline__ Descriptor describeTransposed(unsigned address)
{
    return Descriptor((address & 0x3ffff) >> 4) | Descriptor(SLAB_BOX >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

#define OUTS8(i)                                                                                   \
    "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3]), "=f"(d[i + 4]), "=f"(d[i + 5]),    \
        "=f"(d[i + 6]), "=f"(d[i + 7])
#define OUTS32(i) OUTS8(i), OUTS8(i + 8), OUTS8(i + 16), OUTS8(i + 24)

#define REGISTERS64                                                                                \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
    " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
    " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// d = 64 rows · 128 rows, over 16 numbers of the summed dimension.
__device__ __forceinline__ void multiplyFirst(float (&d)[64], Descriptor x, Descriptor y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 REGISTERS64 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}"
                 : OUTS32(0), OUTS32(32)
                 : "l"(x), "l"(y));
}

// d += the same.
__device__ __forceinline__ void multiply(float (&d)[64], Descriptor x, Descriptor y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 REGISTERS64 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}"
                 : SUMS32(0), SUMS32(32)
                 : "l"(x), "l"(y));
}

// d += 64 rows of 16 weights in registers · 16 rows of 128 values in shared memory.
__device__ __forceinline__ void multiplyWeights(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                Descriptor y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 REGISTERS64 ", {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}"
                 : SUMS32(0), SUMS32(32)
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

// ---------------------------------------------------------------------------------------------------------
// Scalar work

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

// Which tile comes when: all tiles of a head, all heads of a sequence, all sequences. The tiles of a head begin
// at another one in each head, so that the last tiles, which have fewer rows, are dealt to all blocks.
struct Walk {
    int tile, sequence, base; // base: tiles of the sequences before
    int head, first, end;     // of this tile: its first query, and the end of its sequence's queries

    __device__ __forceinline__ bool locate(const int *cuQ, int B, int H)
    {
        for (; sequence < B; ++sequence) {
            const int begin = __ldg(cuQ + sequence);
            end = __ldg(cuQ + sequence + 1);
            const int tiles = (end - begin + BM - 1) / BM;
            const int index = tile - base;
            if (index < tiles * H) {
                head = index / tiles;
                first = begin + (index % tiles + head) % tiles * BM;
                return true;
            }
            base += tiles * H;
        }
        return false;
    }
};

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *__restrict__ cuQ,
                                                               const int *__restrict__ cuK,
                                                               uint4 *__restrict__ out, int B, int H, float scale)
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
    Walk walk;
    walk.tile = blockIdx.x;
    walk.sequence = 0;
    walk.base = 0;

    if (warpgroup == 0) {
        giveRegisters<32>();
        if (threadIdx.x == 0) {
            // Keys and values, a slab of each in turn.
            int stage = 0;
            unsigned phase = 0;
            const auto fetch = [&](const TensorMap &map, int head, int token) {
                waitPhase(empty + 8 * stage, phase ^ 1);
                expectBytes(full + 8 * stage, SLAB_BYTES);
                const unsigned to = ring + stage * SLAB_BYTES;
                copyBox(to, map, 0, head, token, full + 8 * stage);
                copyBox(to + SLAB_BOX, map, 64, head, token, full + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            };
            for (; walk.locate(cuQ, B, H); walk.tile += gridDim.x) {
                const int last = __ldg(cuK + walk.sequence + 1);
                for (int token = __ldg(cuK + walk.sequence); token < last; token += BN) {
                    fetch(mapK, walk.head, token);
                    fetch(mapV, walk.head, token);
                }
            }
        } else if (threadIdx.x == 32) {
            // Queries, for each consumer that has some.
            unsigned phases = 0; // a bit a consumer
            for (; walk.locate(cuQ, B, H); walk.tile += gridDim.x) {
#pragma unroll 1
                for (int c = 0; c < CONSUMERS; ++c) {
                    const int token = walk.first + c * ROWS;
                    if (token >= walk.end)
                        break;
                    waitPhase(emptyQ + 8 * c, (phases >> c & 1) ^ 1);
                    phases ^= 1u << c;
                    expectBytes(fullQ + 8 * c, Q_BYTES);
                    const unsigned to = queries + c * Q_BYTES;
                    copyBox(to, mapQ, 0, walk.head, token, fullQ + 8 * c);
                    copyBox(to + Q_BOX, mapQ, 64, walk.head, token, fullQ + 8 * c);
                }
            }
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1, lane = threadIdx.x % 32;
        const float factor = scale * LOG2E;
        const Descriptor describedQ = describe(queries + consumer * Q_BYTES);
        int stage = 0;
        unsigned phase = 0, phaseQ = 0;
        const auto advance = [&] {
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        };

        for (; walk.locate(cuQ, B, H); walk.tile += gridDim.x) {
            const int keys = __ldg(cuK + walk.sequence + 1) - __ldg(cuK + walk.sequence);

            if (walk.first + consumer * ROWS >= walk.end) {
                // No rows: the slabs are passed on all the same.
#pragma unroll 1
                for (int left = keys; left > 0; left -= BN)
#pragma unroll 1
                    for (int i = 0; i < 2; ++i) {
                        waitPhase(full + 8 * stage, phase);
                        if (lane == 0)
                            arrive(empty + 8 * stage);
                        advance();
                    }
                continue;
            }

            waitPhase(fullQ + 8 * consumer, phaseQ);
            phaseQ ^= 1;

            // A lane has two rows: sums i with i / 2 % 2 == 0 belong to the first one, the others to the one
            // eight further.
            float result[64], reference[2], sum[2];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity: the first block outgrows it
            sum[0] = sum[1] = 0.0f;

#pragma unroll 1
            for (int left = keys; left > 0; left -= BN) {
                float score[64];
                unsigned weights[32];

                // Scores
                waitPhase(full + 8 * stage, phase);
                {
                    const Descriptor describedK = describe(ring + stage * SLAB_BYTES);
                    fenceProducts();
                    multiplyFirst(score, describedQ, describedK);
#pragma unroll
                    for (int k = 1; k < 8; ++k)
                        multiply(score, describedQ + (k / 4 * (Q_BOX >> 4) + k % 4 * 2),
                                 describedK + (k / 4 * (SLAB_BOX >> 4) + k % 4 * 2));
                    commitProducts();
                    waitProducts();
                    pin(score);
                }
                if (lane == 0) {
                    arrive(empty + 8 * stage);
                    if (left <= BN)
                        arrive(emptyQ + 8 * consumer); // that was the last use of the queries
                }
                advance();

                if (left < BN) {
                    const int column = lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (column + i / 4 * 8 + i % 2 >= left)
                            score[i] = __int_as_float(0xff800000);
                }

                // The reference follows late: only where a score of the warp has outgrown it by 2^SLACK.
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

                // Weights
#pragma unroll
                for (int i = 0; i < 64; i += 2) {
                    const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                    const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
                    sum[i / 2 % 2] += low;
                    sum[i / 2 % 2] += high;
                    weights[i / 2] = pack(low, high);
                }

                // Weighted sum of the values
                waitPhase(full + 8 * stage, phase);
                {
                    const Descriptor describedV = describeTransposed(ring + stage * SLAB_BYTES);
                    pin(result);
                    pin(weights);
                    fenceProducts();
#pragma unroll
                    for (int k = 0; k < 8; ++k)
                        multiplyWeights(result, weights[4 * k], weights[4 * k + 1], weights[4 * k + 2],
                                        weights[4 * k + 3], describedV + k * (16 * 128 >> 4));
                    commitProducts();
                    waitProducts();
                    pin(result);
                    pin(weights);
                }
                if (lane == 0)
                    arrive(empty + 8 * stage);
                advance();
            }
            if (keys <= 0 && lane == 0)
                arrive(emptyQ + 8 * consumer);

            // Quotients. The four lanes of a row exchange words, so that each has 16 bytes side by side.
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                const int row = walk.first + consumer * ROWS + threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * half;
                const bool inside = row < walk.end;
                uint4 *to = out + (size_t(row) * H + walk.head) * 16 + lane % 4;
                const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
                for (int g = 0; g < 4; ++g) {
                    unsigned w[4];
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        w[c] = pack(result[16 * g + 4 * c + 2 * half] * inverse,
                                    result[16 * g + 4 * c + 2 * half + 1] * inverse);
                    const unsigned a = __shfl_xor_sync(~0u, odd ? w[0] : w[1], 1);
                    const unsigned b = __shfl_xor_sync(~0u, odd ? w[2] : w[3], 1);
                    w[0] = odd ? a : w[0];
                    w[1] = odd ? w[1] : a;
                    w[2] = odd ? b : w[2];
                    w[3] = odd ? w[3] : b;
                    const unsigned c = __shfl_xor_sync(~0u, upper ? w[0] : w[2], 2);
                    const unsigned e = __shfl_xor_sync(~0u, upper ? w[1] : w[3], 2);
                    w[0] = upper ? c : w[0];
                    w[2] = upper ? w[2] : c;
                    w[1] = upper ? e : w[1];
                    w[3] = upper ? w[3] : e;
                    if (inside)
                        to[4 * g] = make_uint4(w[0], w[1], w[2], w[3]);
                }
            }
        }
    }
}
