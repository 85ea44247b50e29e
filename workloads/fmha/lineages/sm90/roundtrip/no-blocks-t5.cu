/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["min(sm_count, H * (ceil_div(T, 192) + B))"]
block = ["512"]
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
shared = "(192 + 5 * 128) * 256 + 1024"

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
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A block stays on its multiprocessor and walks over tiles of 192 queries of one sequence and head. Warpgroup 0
// produces: its warp 0 fills a ring of slabs (128 keys or 128 values each, taking turns), its warps 1 to 3 bring the
// queries of one consumer each. Warpgroups 1 to 3 consume: 64 queries each, scores by wgmma from shared memory,
// weights in registers, and the weighted sum of v by wgmma with the weights as the left operand.
// Slabs and queries are two halves of 64 numbers of D, each rows of 128 swizzled bytes.

constexpr int CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128, STAGES = 5;
constexpr int QUERY_BYTES = 64 * 256, SLAB_BYTES = BN * 256;
constexpr float SLACK = 8.0f; // powers of two by which a score may outgrow its row's reference

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

struct Tile { int head, row0, rows, key0, keys; };

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ bool phaseEnded(unsigned barrier, unsigned parity)
{
    unsigned ended;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(ended) : "r"(barrier), "r"(parity) : "memory");
    return ended != 0;
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    while (!phaseEnded(barrier, parity)) {
    }
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int column, int head, int token,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(map)), "r"(column), "r"(head), "r"(token),
                    "r"(barrier)
                 : "memory");
}

// Rows of 128 swizzled bytes, 8 rows every 1024 bytes. `leading` (in 16 bytes) is the distance of the halves of D
// where D runs along the rows and is the outer side of the product (values), and unused otherwise.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)leading << 16 | 64ull << 32
           | 1ull << 62;
}

// 2^v
__device__ __forceinline__ float power(float v)
{
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float quadMax(float v)
{
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}

__device__ __forceinline__ float quadSum(float v)
{
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

// Which queries, head and keys tile `t` has; false past the last one. Tiles of a head follow one another; where they
// begin is moved on in each round of the grid, so that the one that is not full meets other blocks.
__device__ __forceinline__ bool locate(int t, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
{
    int first = 0;
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
        const int begin = __ldg(cuQ + b), end = __ldg(cuQ + b + 1);
        const int n = (end - begin + BM - 1) / BM;
        if (t - first < n * H) {
            const int head = (t - first) / n;
            first += head * n;
            const int index = (t - first + first / int(gridDim.x)) % n;
            tile.head = head;
            tile.row0 = begin + index * BM;
            tile.rows = end - tile.row0;
            tile.key0 = __ldg(cuK + b);
            tile.keys = __ldg(cuK + b + 1) - tile.key0;
            return true;
        }
        first += n * H;
    }
    return false;
}

#define SUMS                                                                                                          \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                         \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

#define OUT4(i) "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3])
#define OUT16(i) OUT4(i), OUT4(i + 4), OUT4(i + 8), OUT4(i + 12)
#define INOUT4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define INOUT16(i) INOUT4(i), INOUT4(i + 4), INOUT4(i + 8), INOUT4(i + 12)
#define IN4(i) "r"(w[i]), "r"(w[i + 1]), "r"(w[i + 2]), "r"(w[i + 3])
#define IN16(i) IN4(i), IN4(i + 4), IN4(i + 8), IN4(i + 12)

#define SCORE_STEP(ADD) "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", x, y, " ADD ", 1, 1, 0, 0;\n"
#define SCORE_NEXT "add.s64 x, x, 2;\nadd.s64 y, y, 2;\n"
#define VALUE_STEP(LEFT) "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {" LEFT "}, y, t, 1, 1, 1;\n"
#define VALUE_NEXT "add.s64 y, y, 128;\n"

// 64 queries times 128 keys over all of D; ends when the sums are there.
__device__ __forceinline__ void multiplyScores(float (&d)[64], unsigned long long queries, unsigned long long keys)
{
    asm volatile("{\n"
                 ".reg .b64 x, y;\n"
                 ".reg .b32 z;\n"
                 ".reg .pred p, t;\n"
                 "mov.b32 z, 0;\n"
                 "setp.ne.b32 p, z, 0;\n"
                 "setp.eq.b32 t, z, 0;\n"
                 "mov.b64 x, %64;\n"
                 "mov.b64 y, %65;\n"
                 "wgmma.fence.sync.aligned;\n"
                 SCORE_STEP("p")
                 SCORE_NEXT
                 SCORE_STEP("t")
                 SCORE_NEXT
                 SCORE_STEP("t")
                 SCORE_NEXT
                 SCORE_STEP("t")
                 "add.s64 x, x, 506;\n"  // the other half of D: 64 rows further
                 "add.s64 y, y, 1018;\n" // 128 rows further
                 SCORE_STEP("t")
                 SCORE_NEXT
                 SCORE_STEP("t")
                 SCORE_NEXT
                 SCORE_STEP("t")
                 SCORE_NEXT
                 SCORE_STEP("t")
                 "wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;\n"
                 "}\n"
                 : OUT16(0), OUT16(16), OUT16(32), OUT16(48)
                 : "l"(queries), "l"(keys)
                 : "memory");
}

// Adds 64 × 128 weights times 128 values; ends when the sums are there.
__device__ __forceinline__ void multiplyValues(float (&d)[64], const unsigned (&w)[32], unsigned long long values)
{
    asm volatile("{\n"
                 ".reg .b64 y;\n"
                 ".reg .b32 z;\n"
                 ".reg .pred t;\n"
                 "mov.b32 z, 0;\n"
                 "setp.eq.b32 t, z, 0;\n"
                 "mov.b64 y, %96;\n"
                 "wgmma.fence.sync.aligned;\n"
                 VALUE_STEP("%64, %65, %66, %67")
                 VALUE_NEXT
                 VALUE_STEP("%68, %69, %70, %71")
                 VALUE_NEXT
                 VALUE_STEP("%72, %73, %74, %75")
                 VALUE_NEXT
                 VALUE_STEP("%76, %77, %78, %79")
                 VALUE_NEXT
                 VALUE_STEP("%80, %81, %82, %83")
                 VALUE_NEXT
                 VALUE_STEP("%84, %85, %86, %87")
                 VALUE_NEXT
                 VALUE_STEP("%88, %89, %90, %91")
                 VALUE_NEXT
                 VALUE_STEP("%92, %93, %94, %95")
                 "wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;\n"
                 "}\n"
                 : INOUT16(0), INOUT16(16), INOUT16(32), INOUT16(48)
                 : IN16(0), IN16(16), "l"(values)
                 : "memory");
}

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *__restrict__ cuQ,
                                                               const int *__restrict__ cuK, uint4 *__restrict__ out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];

    const unsigned queries = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023u) & ~1023u;
    const unsigned ring = queries + CONSUMERS * QUERY_BYTES;
    const unsigned full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;
    const unsigned queryFull = empty + 8 * STAGES, queryEmpty = queryFull + 8 * CONSUMERS;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS);
        }
        for (int i = 0; i < CONSUMERS; ++i) {
            initBarrier(queryFull + 8 * i, 1);
            initBarrier(queryEmpty + 8 * i, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    const int warpgroup = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32 % 4, 0);
    const int lane = threadIdx.x % 32;
    Tile tile;

    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (lane == 0) {
            if (warp == 0) {
                // Keys and values, in turns.
                int stage = 0;
                unsigned phase = 1; // the parity before the first: passes at once
                const auto fetch = [&](const TensorMap *map, int token) {
                    const unsigned slab = ring + stage * SLAB_BYTES, barrier = full + 8 * stage;
                    waitPhase(empty + 8 * stage, phase);
                    expectBytes(barrier, SLAB_BYTES);
                    copyBox(slab, map, 0, tile.head, token, barrier);
                    copyBox(slab + SLAB_BYTES / 2, map, 64, tile.head, token, barrier);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                };
                for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
#pragma unroll 1
                    for (int n0 = 0; n0 < tile.keys; n0 += BN) {
                        fetch(&mapK, tile.key0 + n0);
                        fetch(&mapV, tile.key0 + n0);
                    }
                }
            } else {
                // The queries of one consumer.
                const int consumer = warp - 1;
                const unsigned mine = queries + consumer * QUERY_BYTES, barrier = queryFull + 8 * consumer;
                unsigned phase = 1;
                for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x)
                    if (tile.rows > 64 * consumer && tile.keys > 0) {
                        waitPhase(queryEmpty + 8 * consumer, phase);
                        phase ^= 1;
                        expectBytes(barrier, QUERY_BYTES);
                        copyBox(mine, &mapQ, 0, tile.head, tile.row0 + 64 * consumer, barrier);
                        copyBox(mine + QUERY_BYTES / 2, &mapQ, 64, tile.head, tile.row0 + 64 * consumer, barrier);
                    }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        const int consumer = warpgroup - 1;
        const unsigned mine = queries + consumer * QUERY_BYTES;
        const float factor = scale * 1.44269504f; // weights are powers of two
        int stage = 0;
        unsigned phase = 0, queryPhase = 0;

        const auto advance = [&] {
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        };

        for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
            if (tile.rows <= 64 * consumer) {
                // No rows here, but the slabs have to be left all the same.
#pragma unroll 1
                for (int n0 = 0; n0 < tile.keys; n0 += BN)
#pragma unroll 1
                    for (int which = 0; which < 2; ++which) {
                        waitPhase(full + 8 * stage, phase);
                        if (lane == 0)
                            arrive(empty + 8 * stage);
                        advance();
                    }
                continue;
            }

            float result[64], reference[2], sum[2] = {0.0f, 0.0f};
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity: outgrown by the first block
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;

            if (tile.keys > 0) {
                waitPhase(queryFull + 8 * consumer, queryPhase);
                queryPhase ^= 1;
            }

#pragma unroll 1
            for (int n0 = 0; n0 < tile.keys; n0 += BN) {
                float score[64];
                waitPhase(full + 8 * stage, phase);
                multiplyScores(score, describe(mine, 1), describe(ring + stage * SLAB_BYTES, 1));
                if (lane == 0) {
                    arrive(empty + 8 * stage);
                    if (n0 + BN >= tile.keys)
                        arrive(queryEmpty + 8 * consumer);
                }
                advance();

                // score[i] is of row lane / 4 + i / 2 % 2 * 8 and column i / 4 * 8 + lane % 4 * 2 + i % 2.
                if (n0 + BN > tile.keys) {
                    const int inside = tile.keys - n0 - lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (i / 4 * 8 + i % 2 >= inside)
                            score[i] = __int_as_float(0xff800000);
                }

                // The reference of a row follows its maximum late, by one vote a warp.
                float top[2];
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
                    for (int i = 4 + 2 * half; i < 64; i += 4) {
                        low = fmaxf(low, score[i]);
                        high = fmaxf(high, score[i + 1]);
                    }
                    top[half] = fmaxf(low, high);
                }
                const float over = fmaxf(fmaf(top[0], factor, -reference[0]), fmaf(top[1], factor, -reference[1]));
                if (__any_sync(~0u, over > SLACK)) {
                    float shrink[2];
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const float now = fmaxf(reference[half], quadMax(top[half]) * factor);
                        shrink[half] = power(reference[half] - now);
                        reference[half] = now;
                        sum[half] *= shrink[half];
                    }
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        result[i] *= shrink[i / 2 % 2];
                }

                // Weights, in the layout of a left operand, and their sums.
                unsigned weights[32];
                float even[2] = {0.0f, 0.0f}, odd[2] = {0.0f, 0.0f};
#pragma unroll
                for (int i = 0; i < 64; i += 2) {
                    const int half = i / 2 % 2;
                    const float low = power(fmaf(score[i], factor, -reference[half]));
                    const float high = power(fmaf(score[i + 1], factor, -reference[half]));
                    weights[i / 2] = pack(low, high);
                    even[half] += low;
                    odd[half] += high;
                }
                sum[0] += even[0] + odd[0];
                sum[1] += even[1] + odd[1];

                waitPhase(full + 8 * stage, phase);
                multiplyValues(result, weights, describe(ring + stage * SLAB_BYTES, SLAB_BYTES / 2 / 16));
                if (lane == 0)
                    arrive(empty + 8 * stage);
                advance();
            }

            // Four lanes share a row: they exchange their words so that each has 16 bytes in a line of 64.
            const int column = lane % 4;
            const bool one = column & 1, two = column & 2;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                const int row = consumer * 64 + warp * 16 + half * 8 + lane / 4;
                uint4 *to = out + ((long long)(tile.row0 + row) * H + tile.head) * 16 + column;
#pragma unroll
                for (int g = 0; g < 4; ++g) {
                    unsigned word[4];
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int i = 4 * (4 * g + j) + 2 * half;
                        word[j] = pack(result[i] * inverse, result[i + 1] * inverse);
                    }
#pragma unroll
                    for (int j = 0; j < 4; j += 2) {
                        const unsigned other = __shfl_xor_sync(~0u, one ? word[j] : word[j + 1], 1);
                        word[j] = one ? other : word[j];
                        word[j + 1] = one ? word[j + 1] : other;
                    }
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const unsigned other = __shfl_xor_sync(~0u, two ? word[j] : word[j + 2], 2);
                        word[j] = two ? other : word[j];
                        word[j + 2] = two ? word[j + 2] : other;
                    }
                    if (row < tile.rows)
                        to[4 * g] = make_uint4(word[0], word[1], word[2], word[3]);
                }
            }
        }
    }
}
