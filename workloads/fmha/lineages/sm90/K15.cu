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
shared = "226304"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A block stays on its multiprocessor and walks over tiles of 192 queries of a sequence and a head. Warpgroup 0
// copies: its warp 0 the keys and values, in turns, into a ring of slabs of 128 rows, and its warps 1 to 3 the
// queries of the consumers, each for one, with a note of which tile they are. Warpgroups 1 to 3 own 64 queries each:
// scores by wgmma, weights in registers, result by wgmma. While one of them does scalar work, the others multiply.
//
// Only the first block of a tile looks for its maximum. The others are weighed against the reference there is, and the
// weights are added up as they are packed, two to a word; a warp that finds the sums too large computes its scores once
// more, for itself, by mma.sync, as the keys are still there, and raises its references. Results go through a patch of
// shared memory of each warp's own, so that whole lines are stored. The products of the first half of the weights run
// while the second half is computed.

#include <cuda_fp16.h>

constexpr int ROWS = 64, CONSUMERS = 3, BM = ROWS * CONSUMERS, BN = 128, STAGES = 5;
// Boxes are 64 numbers (128 bytes, swizzled) wide; two of them side by side make the 128 of a head.
constexpr unsigned Q_BOX = ROWS * 128, Q_BYTES = 2 * Q_BOX, KV_BOX = BN * 128, SLAB = 2 * KV_BOX;
constexpr unsigned PATCH = 8 * 128; // 8 rows of 64 results
static_assert(CONSUMERS * Q_BYTES + STAGES * SLAB + 4 * CONSUMERS * PATCH + 1024 == 226304,
              "dynamic shared memory of the launch plan");
constexpr float LOG2E = 1.44269504f, LIMIT = 16384.0f; // of a lane's weights in a block; f16 ends at 65504

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

template <int FROM, int TO> __device__ __forceinline__ void pinWords(unsigned (&x)[32])
{
#pragma unroll
    for (int i = FROM; i < TO; ++i)
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
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

__device__ __forceinline__ unsigned addPairs(unsigned x, unsigned y)
{
    unsigned word;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(word) : "r"(x), "r"(y));
    return word;
}

__device__ __forceinline__ float addHalves(unsigned x)
{
    float low, high;
    asm("{\n"
        ".reg .b16 l, h;\n"
        "mov.b32 {l, h}, %2;\n"
        "cvt.f32.f16 %0, l;\n"
        "cvt.f32.f16 %1, h;\n"
        "}" : "=f"(low), "=f"(high) : "r"(x));
    return low + high;
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

// Weights of the scores FROM to TO, packed as the left operand of the second product, and their sums: a lane has two
// rows, which take turns in pairs.
template <int FROM, int TO>
__device__ __forceinline__ void weigh(const float (&score)[64], unsigned (&weights)[32], const float (&reference)[2],
                                      float factor, float (&part)[2])
{
    unsigned add[2][4];
#pragma unroll
    for (int i = FROM; i < TO; i += 2) {
        const int half = i / 2 % 2, n = (i - FROM) / 4;
        const float low = power(fmaf(score[i], factor, -reference[half]));
        const float high = power(fmaf(score[i + 1], factor, -reference[half]));
        weights[i / 2] = pack(low, high);
        add[half][n % 4] = n < 4 ? weights[i / 2] : addPairs(add[half][n % 4], weights[i / 2]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
        part[half] = addHalves(addPairs(addPairs(add[half][0], add[half][1]), addPairs(add[half][2], add[half][3])));
}

// The largest scores of FROM to TO of a lane's two rows, among the four lanes that share them.
template <int FROM, int TO> __device__ __forceinline__ void tops(const float (&score)[64], float (&top)[2])
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float low = score[FROM + 2 * half], high = score[FROM + 2 * half + 1];
#pragma unroll
        for (int i = FROM + 4 + 2 * half; i < TO; i += 4) {
            low = fmaxf(low, score[i]);
            high = fmaxf(high, score[i + 1]);
        }
        top[half] = quadMax(fmaxf(low, high));
    }
}

// Keys from `left` on are of the next sequence, or none.
template <int FROM, int TO> __device__ __forceinline__ void hide(float (&score)[64], int left, int lane)
{
    const int bound = left - 2 * (lane % 4);
#pragma unroll
    for (int i = FROM; i < TO; ++i)
        if (i / 4 * 8 + i % 2 >= bound)
            score[i] = __int_as_float(0xff800000);
}

__device__ __forceinline__ void loadMatrices(unsigned (&x)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void storeMatrices(unsigned address, const unsigned (&x)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(address), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}

// The scores FROM to TO of this warp's 16 rows (of 64 from `query`, the first is `row`) and of keys from `key`, as
// wgmma has made them, by the warp alone.
template <int FROM, int TO>
__device__ __forceinline__ void scoresAgain(float (&score)[64], unsigned query, int row, unsigned key, int lane)
{
#pragma unroll
    for (int i = FROM; i < TO; ++i)
        score[i] = 0.0f;
    const unsigned r = lane % 8;
    const unsigned x = query + (row + r + (lane & 8)) * 128;   // matrices: rows, rows + 8, then the next 8 columns
    const unsigned y = key + (r + (lane & 16) / 2) * 128;      // matrices: 8 columns, the next 8, then keys + 8
#pragma unroll 1
    for (unsigned k = 0; k < 8; ++k) {
        unsigned a[4];
        loadMatrices(a, x + k / 4 * Q_BOX + ((k % 4 * 2 + lane / 16 ^ r) << 4));
        const unsigned column = k / 4 * KV_BOX + ((k % 4 * 2 + lane / 8 % 2 ^ r) << 4);
#pragma unroll
        for (int i = FROM; i < TO; i += 8) {
            unsigned b[4];
            loadMatrices(b, y + i * 256 + column); // 16 keys, 8 scores: 2048 bytes
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                float *d = score + i + 4 * n;
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                             "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * n]), "r"(b[2 * n + 1]));
            }
        }
    }
    __syncwarp();
}

// The references rise to the tops of the scores FROM to TO, and what was added up before shrinks.
template <int FROM, int TO>
__device__ __forceinline__ void raise(const float (&score)[64], float (&reference)[2], float (&sum)[2],
                                      float (&result)[64], float factor)
{
    float top[2];
    tops<FROM, TO>(score, top);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float now = fmaxf(reference[half], top[half] * factor);
        top[half] = power(reference[half] - now);
        reference[half] = now;
        sum[half] *= top[half];
    }
#pragma unroll
    for (int i = 0; i < 64; ++i)
        result[i] *= top[i / 2 % 2];
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
    __shared__ int4 notes[CONSUMERS][2]; // of a consumer's tile: its first token, rows, keys (-1: no more tiles), head

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
    Tile tile{};

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
                for (bool more = true; more; phase ^= 1) {
                    more = walk.next(cuQ, cuK, B, H, tile);
                    const int row = tile.row0 + consumer * ROWS;
                    waitPhase(queriesEmpty + 8 * consumer, phase ^ 1);
                    notes[consumer][phase] = make_int4(row, tile.end - row, more ? tile.keys : -1, tile.head);
                    if (more && row < tile.end) {
                        expectBytes(barrier, Q_BYTES);
                        copyBox(to, mapQ, 0, tile.head, row, barrier);
                        copyBox(to + Q_BOX, mapQ, 64, tile.head, row, barrier);
                    } else {
                        arrive(barrier);
                    }
                }
            }
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1;
        const float factor = scale * LOG2E;
        const unsigned myQueries = queries + consumer * Q_BYTES;
        const unsigned long long query = describe(myQueries);
        const int warpRow = warp % 4 * 16;
        const unsigned patch = ring + STAGES * SLAB + (warp - 4) * PATCH;
        unsigned queryPhase = 0;
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };

        for (bool fresh = true;; fresh = false) {
            waitPhase(queriesFull + 8 * consumer, queryPhase);
            const int4 note = notes[consumer][queryPhase]; // stays there for one more tile
            queryPhase ^= 1;
            const int keys = note.z, blocks = (keys + BN - 1) / BN;
            if (keys < 0)
                break;
            if (note.y <= 0 || blocks == 0) { // no rows here, or no keys: the slabs have to be left all the same
                __syncwarp();
                if (lane == 0)
                    arrive(queriesEmpty + 8 * consumer);
#pragma unroll 1
                for (int i = 0; i < 2 * blocks; ++i) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
                if (note.y <= 0)
                    continue;
            }

            float result[64];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            float reference[2], sum[2];
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
            sum[0] = sum[1] = 0.0f;

            if (fresh && blocks > 0) { // begin a third of a step apart, so that products of some run beside scalar work of others
                waitPhase(full + 8 * stage, phase);
                const unsigned start = ticks();
                while (ticks() - start < unsigned(consumer) * 1024u) {
                }
                __syncwarp();
            }

#pragma unroll 1
            for (int left = keys; left > 0; left -= BN) {
                // Scores.
                float score[64];
                waitPhase(full + 8 * stage, phase);
                const unsigned slab = ring + stage * SLAB;
                {
                    const unsigned long long keysAt = describe(slab);
                    fenceProducts();
#pragma unroll
                    for (int i = 0; i < 8; ++i)
                        multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32) / 16,
                                       keysAt + (i / 4 * KV_BOX + i % 4 * 32) / 16, i > 0);
                    commitProducts();
                    waitProducts<0>();
                    pin(score);
                }
                if (left < BN)
                    hide<0, 64>(score, left, lane);
                if (left == keys) { // the first block: there is nothing that would have to shrink
                    float top[2];
                    tops<0, 64>(score, top);
                    reference[0] = top[0] * factor;
                    reference[1] = top[1] * factor;
                }
                unsigned weights[32];
                float part[2];
                weigh<0, 32>(score, weights, reference, factor, part);
                if (__any_sync(~0u, !(fmaxf(part[0], part[1]) <= LIMIT))) {
                    scoresAgain<0, 32>(score, myQueries, warpRow, slab, lane);
                    hide<0, 32>(score, left, lane);
                    raise<0, 32>(score, reference, sum, result, factor);
                    weigh<0, 32>(score, weights, reference, factor, part);
                }
                sum[0] += part[0];
                sum[1] += part[1];

                // Products of the first half; the values are in the next slab.
                const int next = stage + 1 == STAGES ? 0 : stage + 1;
                waitPhase(full + 8 * next, next == 0 ? phase ^ 1 : phase);
                const unsigned long long values = describeAcross(ring + next * SLAB);
                pin(result);
                pinWords<0, 16>(weights);
                fenceProducts();
#pragma unroll
                for (int i = 0; i < 4; ++i) // 16 keys are 2048 bytes
                    multiplyWeights(result, weights[4 * i], weights[4 * i + 1], weights[4 * i + 2],
                                    weights[4 * i + 3], values + i * 2048 / 16);
                commitProducts();

                weigh<32, 64>(score, weights, reference, factor, part);
                if (__any_sync(~0u, !(fmaxf(part[0], part[1]) <= LIMIT))) {
                    waitProducts<0>();
                    pin(result);
                    scoresAgain<32, 64>(score, myQueries, warpRow, slab, lane);
                    hide<32, 64>(score, left, lane);
                    raise<32, 64>(score, reference, sum, result, factor);
                    weigh<32, 64>(score, weights, reference, factor, part);
                }
                sum[0] += part[0];
                sum[1] += part[1];
                if (left <= BN && lane == 0)
                    arrive(queriesEmpty + 8 * consumer); // the last use of the queries
                leave();
                pinWords<16, 32>(weights);
                fenceProducts();
#pragma unroll
                for (int i = 4; i < 8; ++i) // 16 keys are 2048 bytes
                    multiplyWeights(result, weights[4 * i], weights[4 * i + 1], weights[4 * i + 2],
                                    weights[4 * i + 3], values + i * 2048 / 16);
                commitProducts();
                waitProducts<0>();
                pin(result);
                pinWords<0, 32>(weights);
                leave();
            }

            // Through this warp's patch, 8 rows of 64 columns at a time: a lane has two numbers of every eight columns,
            // and stores eight in a row; eight lanes store a line.
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
                for (int side = 0; side < 2; ++side) {
#pragma unroll
                    for (int part = 0; part < 2; ++part) {
                        unsigned w[4];
#pragma unroll
                        for (int i = 0; i < 4; ++i) {
                            const int at = 4 * (8 * side + 4 * part + i) + 2 * half;
                            w[i] = pack(result[at] * inverse, result[at + 1] * inverse);
                        }
                        const int row = lane % 8, chunk = 4 * part + lane / 8;
                        storeMatrices(patch + row * 128 + ((chunk ^ row) << 4), w);
                    }
                    __syncwarp();
#pragma unroll
                    for (int part = 0; part < 2; ++part) {
                        const int row = 4 * part + lane / 8, chunk = lane % 8, at = warpRow + 8 * half + row;
                        uint4 words;
                        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                                     : "r"(patch + row * 128 + ((chunk ^ row) << 4)) : "memory");
                        if (at < note.y)
                            out[(size_t(note.x + at) * H + note.w) * 16 + 8 * side + chunk] = words;
                    }
                    __syncwarp();
                }
            }
        }
    }
}
