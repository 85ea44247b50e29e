/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [3, 4]

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
shared = "(2 * 192 + STAGES * 128) * 128 * 2 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Three consumers of 64 queries each: what one of them waits for, the other two hide. Within one, scores, weights and
// products follow each other, so that scores and weights share registers (160 a lane, 64 of them for the result).
// The turn to multiply goes round: a consumer takes scores at one visit and adds products at the next, and has the
// time of two others' multiplications for all that lies between.
//
// Weights are computed against the reference as it is, and checked afterwards: only where a lane's weights of a block add
// up to more than 2^13 (f16 ends at 2^16), or a tile begins, are the tops looked for, the reference raised and the weights
// computed again, from scores that are multiplied once more: their keys are still there. The pass for the maximum is gone.

#include <cuda_fp16.h>

constexpr int D = 128, CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128;
constexpr unsigned Q_BOX = 64 * 128, BOX = BN * 128; // boxes of 64 columns
constexpr unsigned Q_BYTES = 2 * Q_BOX, SLAB_BYTES = 2 * BOX;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

struct Tile {
    int head, row, rows, key, keys; // its first row and key; how many there are from there to the end of the sequence
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

// Starts the copy of one box, from this column of a head's row `row`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int row,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(row), "r"(barrier) : "memory");
}

// Starts the copies of `rows` rows of 128 columns: 64 of q, 128 of k or v.
__device__ __forceinline__ void copyTile(unsigned to, const TensorMap &map, int rows, int head, int row,
                                         unsigned barrier)
{
    expectBytes(barrier, rows * 256);
    copyBox(to, map, 0, head, row, barrier);
    copyBox(to + rows * 128, map, 64, head, row, barrier);
}

// Rows of 128 swizzled bytes, 8 rows every 1024 bytes. `leading`: from one group of 64 columns to the next,
// where columns are what is multiplied along the rows of the product (v).
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading)
{
    return (address & 0x3ffff) >> 4 | (unsigned long long)(leading >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS8(d, i)                                                                                \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS64(d)                                                                                  \
    SUMS8(d, 0), SUMS8(d, 8), SUMS8(d, 16), SUMS8(d, 24), SUMS8(d, 32), SUMS8(d, 40),              \
        SUMS8(d, 48), SUMS8(d, 56)
#define FRESH8(d, i)                                                                               \
    "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3]), "=f"(d[i + 4]), "=f"(d[i + 5]),    \
        "=f"(d[i + 6]), "=f"(d[i + 7])
#define FRESH64(d)                                                                                 \
    FRESH8(d, 0), FRESH8(d, 8), FRESH8(d, 16), FRESH8(d, 24), FRESH8(d, 32), FRESH8(d, 40),        \
        FRESH8(d, 48), FRESH8(d, 56)
#define NAMES64                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// The first product of a sum: what was in the registers is not needed, and they are free until here.
__device__ __forceinline__ void multiplySharedFirst(float (&d)[64], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES64
                 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}" : FRESH64(d) : "l"(a), "l"(b));
}

__device__ __forceinline__ void multiplyShared(float (&d)[64], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES64
                 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}" : SUMS64(d) : "l"(a), "l"(b));
}

__device__ __forceinline__ void multiplyRegisters(float (&d)[64], const unsigned *a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES64
                 ", {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}" : SUMS64(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
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

template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}

// Whether it is so in any lane of the consumer; named barriers 1 to 3.
__device__ __forceinline__ bool anyOfConsumer(int consumer, bool here)
{
    int anywhere;
    asm volatile("{\n"
                 ".reg .pred mine, found;\n"
                 "setp.ne.s32 mine, %1, 0;\n"
                 "bar.red.or.pred found, %2, 128, mine;\n"
                 "selp.s32 %0, 1, 0, found;\n"
                 "}" : "=r"(anywhere) : "r"(int(here)), "r"(1 + consumer) : "memory");
    return __any_sync(~0u, anywhere); // says that it is the same in the whole warp
}

// The turn to multiply, which goes round; named barriers 4 to 6: of each, one consumer waits for what the one before gives.
__device__ __forceinline__ void waitTurn(int consumer)
{
    asm volatile("bar.sync %0, 256;" :: "r"(4 + consumer) : "memory");
}

__device__ __forceinline__ void giveTurn(int consumer)
{
    asm volatile("bar.arrive %0, 256;" :: "r"(4 + consumer) : "memory");
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

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
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

// Four lanes with four words each: lane i gets word i of them all.
__device__ __forceinline__ uint4 exchange(unsigned (&x)[4], int lane)
{
    const bool odd = lane & 1, high = lane & 2;
    unsigned a = __shfl_xor_sync(~0u, odd ? x[0] : x[1], 1);
    unsigned b = __shfl_xor_sync(~0u, odd ? x[2] : x[3], 1);
    x[0] = odd ? a : x[0];
    x[1] = odd ? x[1] : a;
    x[2] = odd ? b : x[2];
    x[3] = odd ? x[3] : b;
    a = __shfl_xor_sync(~0u, high ? x[0] : x[2], 2);
    b = __shfl_xor_sync(~0u, high ? x[1] : x[3], 2);
    return {high ? a : x[0], high ? b : x[1], high ? x[2] : a, high ? x[3] : b};
}

// Writes a warp's 16 rows of results, from `row` of all tokens on; `rows` are left of the sequence.
__device__ __forceinline__ void store(const float (&result)[64], float sum0, float sum1, __half *out,
                                      int row, int rows, int head, int H, int lane)
{
    const float inverse0 = 1.0f / quadSum(sum0), inverse1 = 1.0f / quadSum(sum1);
    __half *to = out + (size_t(row + lane / 4) * H + head) * D + lane % 4 * 8;
#pragma unroll
    for (int column = 0; column < D; column += 32) {
        unsigned upper[4], lower[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float *four = result + column / 2 + 4 * i;
            upper[i] = pack(four[0] * inverse0, four[1] * inverse0);
            lower[i] = pack(four[2] * inverse1, four[3] * inverse1);
        }
        const uint4 above = exchange(upper, lane), below = exchange(lower, lane);
        if (lane / 4 < rows)
            *reinterpret_cast<uint4 *>(to + column) = above;
        if (lane / 4 + 8 < rows)
            *reinterpret_cast<uint4 *>(to + size_t(8) * H * D + column) = below;
    }
}

// The index-th tile; false past the last one. The tiles of a head begin with another one for every head: the last
// ones of the sequences, with less to do, do not all fall to the same blocks.
__device__ __forceinline__ bool locate(int index, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
{
    int begin = __ldg(cuQ);
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
        const int end = __ldg(cuQ + b + 1), rowTiles = (end - begin + BM - 1) / BM;
        if (index < rowTiles * H) {
            tile.head = index / rowTiles;
            tile.row = begin + (index - tile.head * rowTiles + b * H + tile.head) % rowTiles * BM;
            tile.rows = end - tile.row;
            tile.key = __ldg(cuK + b);
            tile.keys = __ldg(cuK + b + 1) - tile.key;
            return true;
        }
        index -= rowTiles * H;
        begin = end;
    }
    return false;
}

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 4 * CONSUMERS];
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + 2 * CONSUMERS * Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned queriesFull = empty + 8 * STAGES, queriesEmpty = queriesFull + 8 * 2 * CONSUMERS; // [consumer][buffer]

    const int thread = threadIdx.x, lane = thread % 32;
    const int warpgroup = __shfl_sync(~0u, thread / 128, 0); // says that it is the same in the whole warp
    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS); // the warps of the consumers
        }
        for (int i = 0; i < 2 * CONSUMERS; ++i) {
            initBarrier(queriesFull + 8 * i, 1);
            initBarrier(queriesEmpty + 8 * i, 4); // the warps of one consumer
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
    }
    __syncthreads();

    Tile tile{};
    int tiles = 0; // so far
    int stage = 0;
    unsigned phase = 0;
    const auto advance = [&] {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    };
    if (warpgroup == 0) {
        giveRegisters<32>();
        if (thread == 0) {
            // K0, V0, K1, V1, … across all tiles, as the consumers take them.
            const auto fetch = [&](const TensorMap &map, int head, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1); // passes at first
                copyTile(ring + stage * SLAB_BYTES, map, BN, head, row, full + 8 * stage);
                advance();
            };
#pragma unroll 1
            for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
#pragma unroll 1
                for (int done = 0; done < tile.keys; done += BN) {
                    fetch(mapK, tile.head, tile.key + done);
                    if (done == 0) {
#pragma unroll 1
                        for (int consumer = 0; consumer < CONSUMERS; ++consumer) {
                            const int buffer = 2 * consumer + tiles % 2;
                            waitPhase(queriesEmpty + 8 * buffer, tiles / 2 % 2 ^ 1);
                            copyTile(queries + buffer * Q_BYTES, mapQ, 64, tile.head, tile.row + 64 * consumer,
                                     queriesFull + 8 * buffer);
                        }
                        ++tiles;
                    }
                    fetch(mapV, tile.head, tile.key + done);
                }
            }
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1, next = consumer == CONSUMERS - 1 ? 0 : consumer + 1;
        // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
        const float factor = scale * 1.4426950408889634f; // to powers of two
        float score[64], result[64], reference[2], sum[2], shrink[2], part[2];
        unsigned weights[32]; // of scores that are no longer needed

        const auto mask = [&](int left) {
            if (left < BN)
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= left)
                        score[i] = __int_as_float(0xff800000);
        };
        // The scores of the keys in this slab. A turn is given when nearly all is started: the next consumer
        // needs a moment, in which the tensor cores are not to fall idle.
        const auto startScores = [&](int slab, bool inTurn) {
            const unsigned long long query = describe(queries + (2 * consumer + tiles % 2) * Q_BYTES, 16);
            const unsigned long long key = describe(ring + slab * SLAB_BYTES, 16);
            fenceProducts();
            multiplySharedFirst(score, query, key);
#pragma unroll
            for (int i = 1; i < 8; ++i) {
                multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4),
                               key + (i / 4 * BOX + i % 4 * 32 >> 4));
                if (inTurn && i == 6)
                    giveTurn(next);
            }
            commitProducts();
        };
        const auto finishScores = [&](int left) {
            waitProducts<0>();
            pin(score);
            mask(left);
        };
        // The products with the values in the ring's next slab, which is returned.
        const auto startProducts = [&] {
            const int slab = stage;
            waitPhase(full + 8 * slab, phase);
            waitTurn(consumer);
            const unsigned long long value = describe(ring + slab * SLAB_BYTES, BOX);
            pin(result);
            pin(weights);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4));
                if (i == 6)
                    giveTurn(next);
            }
            commitProducts();
            advance();
            return slab;
        };
        const auto finishProducts = [&] {
            waitProducts<0>();
            pin(result);
            pin(weights);
        };
        // This warp's products of a slab have ended.
        const auto leave = [&](int slab) {
            if (lane == 0)
                arrive(empty + 8 * slab);
        };
        // Weights of the scores, and `part`, their sums of this lane's columns.
        const auto weigh = [&] {
            part[0] = part[1] = 0.0f;
#pragma unroll
            for (int i = 0; i < 64; i += 2) {
                const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
                weights[i / 2] = pack(low, high);
                part[i / 2 % 2] += low + high;
            }
        };
        // The references rise to the tops of the scores; what was added up before is to be multiplied by `shrink`.
        const auto raise = [&] {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
                for (int i = 4 + 2 * half; i < 64; i += 4) {
                    low = fmaxf(low, score[i]);
                    high = fmaxf(high, score[i + 1]);
                }
                const float top = fmaxf(reference[half], quadMax(fmaxf(low, high)) * factor);
                shrink[half] = power(reference[half] - top);
                reference[half] = top;
                sum[half] *= shrink[half];
            }
        };
        const auto clearSums = [&] {
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
            sum[0] = sum[1] = 0.0f;
        };
        const auto takeQueries = [&] { waitPhase(queriesFull + 8 * (2 * consumer + tiles % 2), tiles / 2 % 2); };
        // After the last scores of a tile: queries of another one may come.
        const auto leaveQueries = [&] {
            if (lane == 0)
                arrive(queriesEmpty + 8 * (2 * consumer + tiles % 2));
        };
        const int warpRow = consumer * 64 + thread / 32 % 4 * 16; // of a tile

        // Turns: scores 0, (1 passes), scores 2, products 0, scores 1, products 2, scores 0, products 1, …
        if (consumer == 2)
            giveTurn(next); // consumer 0 begins
        if (consumer == 1) {
            waitTurn(consumer);
            giveTurn(next);
        }
        int t = blockIdx.x;
        bool more = locate(t, cuQ, cuK, B, H, tile);
#pragma unroll 1
        while (more) {
            int left = tile.keys; // from this block on
            takeQueries();

            if (tile.rows <= consumer * 64) {
                // None of these rows is this consumer's: it only passes the turns and the slabs on, as they come.
                __syncwarp();
                leaveQueries();
#pragma unroll 1
                for (int slabs = (left + BN - 1) / BN * 2; slabs > 0; --slabs) {
                    __syncwarp();
                    waitTurn(consumer);
                    giveTurn(next);
                    waitPhase(full + 8 * stage, phase);
                    __syncwarp();
                    leave(stage);
                    advance();
                }
                ++tiles;
                t += gridDim.x;
                more = locate(t, cuQ, cuK, B, H, tile);
                continue;
            }

            // The first block, with which the references begin.
            clearSums();
            const int firstSlab = stage;
            waitPhase(full + 8 * stage, phase);
            waitTurn(consumer);
            startScores(firstSlab, true);
            advance();
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            finishScores(left);
            leave(firstSlab);
            left -= BN;
            if (left <= 0)
                leaveQueries();
            raise();
            weigh();
            sum[0] += part[0];
            sum[1] += part[1];

            // With the weights of one block: its products, then the weights of the next one.
#pragma unroll 1
            while (left > 0) {
                const int valueSlab = startProducts();
                finishProducts();
                leave(valueSlab);

                const int keySlab = stage;
                waitPhase(full + 8 * stage, phase);
                waitTurn(consumer);
                startScores(keySlab, true);
                advance();
                finishScores(left);
                weigh();
                if (anyOfConsumer(consumer, !(fmaxf(part[0], part[1]) <= 8192.0f))) {
                    startScores(keySlab, false); // weights are in their place
                    finishScores(left);
                    raise();
                    weigh();
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        result[i] *= shrink[i / 2 % 2];
                }
                leave(keySlab);
                left -= BN;
                if (left <= 0)
                    leaveQueries();
                sum[0] += part[0];
                sum[1] += part[1];
            }

            // The last products; the next tile is looked for while they run.
            const int lastSlab = startProducts();
            const int row = tile.row + warpRow, rows = tile.rows - warpRow, head = tile.head;
            ++tiles;
            t += gridDim.x;
            more = locate(t, cuQ, cuK, B, H, tile);
            finishProducts();
            leave(lastSlab);
            store(result, sum[0], sum[1], out, row, rows, head, H, lane);
        }
        // Consumer 1 is a turn behind the others.
        if (consumer == 0) {
            waitTurn(consumer);
            giveTurn(next);
        }
        if (consumer == 2)
            waitTurn(consumer); // takes the turn that was given last
    }
}
