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
shared = "3 * 16384 + 5 * 32768 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Persistent blocks walk over tiles of 192 queries of one sequence and head. Warpgroup 0 copies: its warp 0 the
// slabs of 128 keys and of 128 values in turns into a ring, its warps 1 to 3 the 64 queries of a consumer each.
// Warpgroups 1 to 3 own 64 queries each: scores by wgmma, weights in registers, weights · v by wgmma.

constexpr int CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128, STAGES = 5;
constexpr int Q_BYTES = 64 * 128 * 2, SLAB_BYTES = BN * 128 * 2;
constexpr float LOG2E = 1.44269504f;
constexpr float SLACK = 8.0f; // powers of two by which a score may outgrow the reference

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
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
                 "}\n" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int column, int head, int token,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                 "l"(reinterpret_cast<unsigned long long>(map)), "r"(column), "r"(head), "r"(token), "r"(barrier)
                 : "memory");
}

// 2^v in one instruction; 0 for -infinity.
__device__ __forceinline__ float power(float v)
{
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
    return e;
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

// Rows of 128 swizzled bytes, 8 rows every 1024 bytes. `leading` (in 16 bytes) counts only where the contiguous
// direction is that of N: from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned long long leading)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | leading << 16 | 64ull << 32 | 1ull << 62;
}

#define SUMS                                                                                                   \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                  \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                         \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                         \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

#define LIST8(mark, x, i)                                                                                      \
    mark(x[i]), mark(x[i + 1]), mark(x[i + 2]), mark(x[i + 3]), mark(x[i + 4]), mark(x[i + 5]), mark(x[i + 6]), \
        mark(x[i + 7])
#define LIST32(mark, x, i)                                                                                     \
    LIST8(mark, x, i), LIST8(mark, x, i + 8), LIST8(mark, x, i + 16), LIST8(mark, x, i + 24)

#define MULTIPLY "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "

// 64 × 128 scores of 64 queries and 128 keys, from the first product's fence to its end.
__device__ __forceinline__ void multiplyScores(float (&score)[64], unsigned long long queries,
                                               unsigned long long keys)
{
#define STEP(a, b)                                                                                             \
    "add.s64 descA, %64, " #a ";\n"                                                                            \
    "add.s64 descB, %65, " #b ";\n" MULTIPLY SUMS ", descA, descB, more, 1, 1, 0, 0;\n"
    asm volatile("{\n"
                 ".reg .pred keep, more;\n"
                 ".reg .b64 descA, descB;\n"
                 "setp.ne.b32 keep, %66, 0;\n"
                 "setp.eq.b32 more, %66, 0;\n"
                 "wgmma.fence.sync.aligned;\n" MULTIPLY SUMS ", %64, %65, keep, 1, 1, 0, 0;\n" STEP(2, 2)
                     STEP(4, 4) STEP(6, 6) STEP(512, 1024) STEP(514, 1026) STEP(516, 1028) STEP(518, 1030)
                 "wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;\n"
                 "}\n"
                 : LIST32("=f", score, 0), LIST32("=f", score, 32)
                 : "l"(queries), "l"(keys), "r"(0)
                 : "memory");
#undef STEP
}

// result += weights · values: 64 × 128 weights in registers, 128 values of 128 columns as they lie.
__device__ __forceinline__ void multiplyValues(float (&result)[64], const unsigned (&weight)[32],
                                               unsigned long long values)
{
#define STEP(a0, a1, a2, a3, b)                                                                                \
    "add.s64 descB, %96, " #b ";\n" MULTIPLY SUMS ", {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3                      \
    "}, descB, more, 1, 1, 1;\n"
    asm volatile("{\n"
                 ".reg .pred more;\n"
                 ".reg .b64 descB;\n"
                 "setp.ne.b32 more, %97, 0;\n"
                 "wgmma.fence.sync.aligned;\n" STEP(64, 65, 66, 67, 0) STEP(68, 69, 70, 71, 128)
                     STEP(72, 73, 74, 75, 256) STEP(76, 77, 78, 79, 384) STEP(80, 81, 82, 83, 512)
                         STEP(84, 85, 86, 87, 640) STEP(88, 89, 90, 91, 768) STEP(92, 93, 94, 95, 896)
                 "wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;\n"
                 "}\n"
                 : LIST32("+f", result, 0), LIST32("+f", result, 32)
                 : LIST32("r", weight, 0), "l"(values), "r"(1)
                 : "memory");
#undef STEP
}

struct Tile {
    int row0, rowEnd, key0, keyEnd, head; // head < 0: there is no such tile
};

// All tiles of one sequence and head follow each other. Where they begin is shifted from head to head, so that a
// grid that is a multiple of their number does not give a block the same place every time.
__device__ __forceinline__ Tile locate(int index, const int *cuQ, const int *cuK, int B, int H)
{
    Tile tile = {0, 0, 0, 0, -1};
    int begin = cuQ[0];
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
        const int end = cuQ[b + 1];
        const int here = (end - begin + BM - 1) / BM;
        if (index < here * H) {
            const int head = index / here, place = (index - head * here + b * H + head) % here;
            tile.row0 = begin + place * BM;
            tile.rowEnd = end;
            tile.key0 = cuK[b];
            tile.keyEnd = cuK[b + 1];
            tile.head = head;
            break;
        }
        index -= here * H;
        begin = end;
    }
    return tile;
}

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, uint4 *out, int B,
                                                               int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];

    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0), warpgroup = warp / 4;
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned ring = queries + CONSUMERS * Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned queryFull = empty + 8 * STAGES, queryEmpty = queryFull + 8 * CONSUMERS;

    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS); // one arrival a consumer warp
        }
        for (int i = 0; i < CONSUMERS; ++i) {
            initBarrier(queryFull + 8 * i, 1);
            initBarrier(queryEmpty + 8 * i, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (lane == 0) {
            if (warp == 0) {
                // keys and values in turns
                int stage = 0;
                unsigned phase = 1; // the parity before the first: passes at once
                const auto fetch = [&](const TensorMap *map, int head, int token) {
                    const unsigned barrier = full + 8 * stage, to = ring + stage * SLAB_BYTES;
                    waitPhase(empty + 8 * stage, phase);
                    expectBytes(barrier, SLAB_BYTES);
                    copyBox(to, map, 0, head, token, barrier);
                    copyBox(to + SLAB_BYTES / 2, map, 64, head, token, barrier);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                };
#pragma unroll 1
                for (int index = blockIdx.x;; index += gridDim.x) {
                    const Tile tile = locate(index, cuQ, cuK, B, H);
                    if (tile.head < 0)
                        break;
#pragma unroll 1
                    for (int token = tile.key0; token < tile.keyEnd; token += BN) {
                        fetch(&mapK, tile.head, token);
                        fetch(&mapV, tile.head, token);
                    }
                }
            } else {
                // the queries of one consumer
                const int consumer = warp - 1;
                const unsigned to = queries + consumer * Q_BYTES, barrier = queryFull + 8 * consumer;
                unsigned phase = 1;
#pragma unroll 1
                for (int index = blockIdx.x;; index += gridDim.x) {
                    const Tile tile = locate(index, cuQ, cuK, B, H);
                    if (tile.head < 0)
                        break;
                    const int row0 = tile.row0 + consumer * 64;
                    if (row0 < tile.rowEnd) {
                        waitPhase(queryEmpty + 8 * consumer, phase);
                        phase ^= 1;
                        expectBytes(barrier, Q_BYTES);
                        copyBox(to, &mapQ, 0, tile.head, row0, barrier);
                        copyBox(to + Q_BYTES / 2, &mapQ, 64, tile.head, row0, barrier);
                    }
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        const int consumer = warpgroup - 1;
        const float factor = scale * LOG2E;
        const float lowest = __int_as_float(0xff800000); // -infinity
        int stage = 0;
        unsigned phase = 0, queryPhase = 0;
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        };

#pragma unroll 1
        for (int index = blockIdx.x;; index += gridDim.x) {
            const Tile tile = locate(index, cuQ, cuK, B, H);
            if (tile.head < 0)
                break;
            const int row0 = tile.row0 + consumer * 64;
            int left = tile.keyEnd - tile.key0; // keys

            if (row0 >= tile.rowEnd) { // no rows: take part in the ring only
#pragma unroll 1
                for (; left > 0; left -= BN) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
                continue;
            }

            float result[64], reference[2] = {lowest, lowest}, sum[2] = {0.0f, 0.0f};
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;

            waitPhase(queryFull + 8 * consumer, queryPhase);
            queryPhase ^= 1;
            if (left <= 0 && lane == 0)
                arrive(queryEmpty + 8 * consumer);

#pragma unroll 1
            for (; left > 0; left -= BN) {
                float score[64];
                waitPhase(full + 8 * stage, phase);
                multiplyScores(score, describe(queries + consumer * Q_BYTES, 1),
                               describe(ring + stage * SLAB_BYTES, 1));
                leave();
                if (left <= BN && lane == 0)
                    arrive(queryEmpty + 8 * consumer); // the last scores of this tile

                if (left < BN) {
                    const int limit = left - lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (i / 4 * 8 + i % 2 >= limit)
                            score[i] = lowest;
                }

                // of this lane's columns only
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
                // Every row has a key in its first block, which so sets a finite reference for all rows of the warp.
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

                // Two columns of one row a word: the sums' layout is that of the left operand.
                unsigned weight[32];
                float odd[2] = {0.0f, 0.0f};
#pragma unroll
                for (int w = 0; w < 32; ++w) {
                    const float low = power(fmaf(score[2 * w], factor, -reference[w % 2]));
                    const float high = power(fmaf(score[2 * w + 1], factor, -reference[w % 2]));
                    weight[w] = pack(low, high);
                    sum[w % 2] += low;
                    odd[w % 2] += high;
                }
                sum[0] += odd[0];
                sum[1] += odd[1];

                waitPhase(full + 8 * stage, phase);
                multiplyValues(result, weight, describe(ring + stage * SLAB_BYTES, SLAB_BYTES / 2 / 16));
                leave();
            }

            // Lanes of a quad exchange words, so that each has 16 bytes of a row.
            const int column = lane % 4;
            const bool isOdd = column & 1, isUpper = column & 2;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                const int row = row0 + warp % 4 * 16 + lane / 4 + half * 8;
                const size_t to = (size_t(row) * H + tile.head) * 16 + column;
#pragma unroll
                for (int set = 0; set < 4; ++set) {
                    unsigned words[4];
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int i = (set * 4 + j) * 4 + half * 2;
                        words[j] = pack(result[i] * inverse, result[i + 1] * inverse);
                    }
#pragma unroll
                    for (int j = 0; j < 4; j += 2) {
                        const unsigned sent = isOdd ? words[j] : words[j + 1];
                        const unsigned received = __shfl_xor_sync(~0u, sent, 1);
                        words[j] = isOdd ? received : words[j];
                        words[j + 1] = isOdd ? words[j + 1] : received;
                    }
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const unsigned sent = isUpper ? words[j] : words[j + 2];
                        const unsigned received = __shfl_xor_sync(~0u, sent, 2);
                        words[j] = isUpper ? received : words[j];
                        words[j + 2] = isUpper ? words[j + 2] : received;
                    }
                    if (row < tile.rowEnd)
                        out[to + set * 4] = make_uint4(words[0], words[1], words[2], words[3]);
                }
            }
        }
    }
}
