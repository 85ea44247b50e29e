/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 5
values = [4, 5]

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [128, 1, 64]
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
block = ["384"]
shared = "(256 + STAGES * 128) * 128 * 2 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// The top of a row becomes a reference that follows late: only when a score of the warp has outgrown it by
// 2^8 is it raised, and only then are the sums and the result shrunk and tops compared between lanes. Weights stay
// below 2^8, far from the end of f16, and what they are relative to cancels in the end.
//
// A block a multiprocessor walks over the tiles of all heads. Tiles are joined: the first scores of a tile are
// started with the last products of the tile before, as if its keys went on.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 128;
constexpr unsigned Q_BOX = BM * 128, BOX = BN * 128, SLAB_BYTES = 2 * BOX; // boxes of 64 columns

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

// Starts the copy of one box, from this column of a head's row `row`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int row,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(row), "r"(barrier) : "memory");
}

// Starts the copies of 128 rows of 128 columns.
__device__ __forceinline__ void copyTile(unsigned to, const TensorMap &map, int head, int row, unsigned barrier)
{
    expectBytes(barrier, SLAB_BYTES);
    copyBox(to, map, 0, head, row, barrier);
    copyBox(to + BOX, map, 64, head, row, barrier);
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
#define NAMES64                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

__device__ __forceinline__ void multiplyShared(float (&d)[64], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES64
                 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}" : SUMS64(d) : "l"(a), "l"(b), "r"(accumulate));
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

// The consumers' turns, named barriers 1 and 2: of each, one consumer waits for what the other gives.
__device__ __forceinline__ void waitTurn(int consumer)
{
    asm volatile("bar.sync %0, 256;" :: "r"(1 + consumer) : "memory");
}

__device__ __forceinline__ void giveTurn(int consumer)
{
    asm volatile("bar.arrive %0, 256;" :: "r"(1 + consumer) : "memory");
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

// The reciprocal of a sum of weights. It is taken while products run: no division, which may call.
__device__ __forceinline__ float invert(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return x > 0.0f ? y : 0.0f;
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

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 4];
    __shared__ int4 places[2]; // of the tiles of both buffers of queries: row · H + head, rows, first and last key
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + 4 * Q_BOX;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES, queriesFull = empty + 8 * STAGES,
                   queriesEmpty = queriesFull + 16;

    // The tiles: of each head, those of the sequences one after the other.
    int tilesAHead = 0;
    for (int i = 0; i < B; ++i)
        tilesAHead += (cuQ[i + 1] - cuQ[i] + BM - 1) / BM;
    const int tiles = tilesAHead * H;
    int tile = blockIdx.x;
    if (tile >= tiles)
        return;
    const int thread = threadIdx.x, lane = thread % 32, warpgroup = thread / 128;

    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 8); // the warps of the consumers
        }
        for (int i = 0; i < 2; ++i) {
            initBarrier(queriesFull + 8 * i, 1);
            initBarrier(queriesEmpty + 8 * i, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
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
    unsigned buffer = 0, queriesPhase = 0; // of the queries
    const auto advanceQueries = [&] {
        queriesPhase ^= buffer;
        buffer ^= 1;
    };
    if (warpgroup == 0) {
        giveRegisters<40>();
        if (thread == 0) {
            const auto fetch = [&](const TensorMap &map, int head, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1); // passes at first
                copyTile(ring + stage * SLAB_BYTES, map, head, row, full + 8 * stage);
                advance();
            };
            int headBefore = 0, keyBefore = 0; // the values that are still to be fetched of the tile before
            bool joins = false;
#pragma unroll 1
            for (; tile < tiles; tile += int(gridDim.x)) {
                const int head = tile / tilesAHead;
                int sequence = 0, index = tile - head * tilesAHead;
#pragma unroll 1
                for (; sequence < B - 1; ++sequence) {
                    const int tilesHere = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
                    if (index < tilesHere)
                        break;
                    index -= tilesHere;
                }
                const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
                const int first = cuK[sequence], last = cuK[sequence + 1];

                waitPhase(queriesEmpty + 8 * buffer, queriesPhase ^ 1); // passes at first
                places[buffer] = make_int4(row0 * H + head, rows, first, last);
                copyTile(queries + buffer * (2 * Q_BOX), mapQ, head, row0, queriesFull + 8 * buffer);
                advanceQueries();

                fetch(mapK, head, first);
                if (joins)
                    fetch(mapV, headBefore, keyBefore);
                int key0 = first;
#pragma unroll 1
                for (; key0 + BN < last; key0 += BN) {
                    fetch(mapK, head, key0 + BN);
                    fetch(mapV, head, key0);
                }
                headBefore = head;
                keyBefore = key0;
                joins = true;
            }
            fetch(mapV, headBefore, keyBefore);
        }
    } else {
        takeRegisters<232>();
        const int consumer = warpgroup - 1;
        // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
        const float factor = scale * 1.4426950408889634f; // to powers of two
        float score[64], result[64] = {}, reference[2], sum[2], shrink[2];
        unsigned weights[32];
        bool raised;
        unsigned long long query = 0;
        int origin = 0, rows = 0, first = 0, last = 0; // of the tile whose scores are made

        // The queries of the tile have come.
        const auto enter = [&] {
            waitPhase(queriesFull + 8 * buffer, queriesPhase);
            const int4 place = places[buffer];
            origin = place.x;
            rows = place.y;
            first = place.z;
            last = place.w;
            query = describe(queries + buffer * (2 * Q_BOX) + consumer * 64 * 128, 16);
        };
        const auto restart = [&] {
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity: any score outgrows it
            sum[0] = sum[1] = 0.0f;
        };
        const auto startScores = [&] {
            const unsigned long long key = describe(ring + stage * SLAB_BYTES, 16);
            pin(score);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 8; ++i)
                multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4),
                               key + (i / 4 * BOX + i % 4 * 32 >> 4), i > 0);
            commitProducts();
            advance();
        };
        const auto startProducts = [&] {
            const unsigned long long value = describe(ring + stage * SLAB_BYTES, BOX);
            pin(result);
            pin(weights);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 8; ++i)
                multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4));
            commitProducts();
            advance();
        };
        // This warp's products of a slab have ended.
        const auto leave = [&](int slab) {
            if (lane == 0)
                arrive(empty + 8 * slab);
        };
        // Scores of the keys from key0 on to weights, as floats; where `raised`, `shrink` is for what was added up before.
        const auto weigh = [&](int key0) {
            if (last - key0 < BN)
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    if (key0 + i / 4 * 8 + lane % 4 * 2 + i % 2 >= last)
                        score[i] = __int_as_float(0xff800000);
            float top[2]; // in powers of two, of this lane's columns
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
            raised = __any_sync(~0u, fmaxf(top[0] - reference[0], top[1] - reference[1]) > 8.0f);
            if (raised)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float now = fmaxf(reference[half], quadMax(top[half]));
                    shrink[half] = power(reference[half] - now);
                    reference[half] = now;
                    sum[half] *= shrink[half];
                }
#pragma unroll
            for (int i = 0; i < 64; ++i) {
                score[i] = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                sum[i / 2 % 2] += score[i];
            }
        };
        const auto packWeights = [&] {
#pragma unroll
            for (int i = 0; i < 32; ++i)
                weights[i] = pack(score[2 * i], score[2 * i + 1]);
        };
        // Writes the result as rows of the tile at `origin`, which has `rows` of them.
        const auto write = [&](int origin, int rows, const float (&inverse)[2]) {
            const int warpRow = (thread - 128) / 32 * 16;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = warpRow + 8 * half + lane / 4;
                __half *to = out + size_t(origin + row * H) * D + lane % 4 * 2;
                if (row < rows)
#pragma unroll
                    for (int j = 0; j < D / 8; ++j)
                        *reinterpret_cast<unsigned *>(to + 8 * j) =
                            pack(result[4 * j + 2 * half] * inverse[half], result[4 * j + 2 * half + 1] * inverse[half]);
            }
        };

        if (consumer == 1)
            giveTurn(0); // consumer 0 begins
        enter();
        restart();
        waitPhase(full, 0);
        waitTurn(consumer);
        startScores();
        giveTurn(1 - consumer);
        waitProducts<0>();
        pin(score);
        leave(0);
        weigh(first);
        packWeights();
#pragma unroll 1
        for (;;) {
#pragma unroll 1
            for (int key0 = first + BN; key0 < last; key0 += BN) {
                const int keySlab = stage;
                waitPhase(full + 8 * stage, phase);
                waitTurn(consumer);
                startScores();
                const int valueSlab = stage;
                waitPhase(full + 8 * stage, phase);
                startProducts();
                giveTurn(1 - consumer);

                waitProducts<1>(); // the scores
                pin(score);
                leave(keySlab);
                weigh(key0);

                waitProducts<0>();
                pin(result);
                pin(weights);
                pin(score);
                leave(valueSlab);
                if (raised)
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        result[i] *= shrink[i / 2 % 2];
                packWeights();
            }
            tile += int(gridDim.x);
            if (tile >= tiles)
                break;

            // The joint: the next tile's first scores with this tile's last products.
            const int originBefore = origin, rowsBefore = rows;
            if (lane == 0)
                arrive(queriesEmpty + 8 * buffer); // all scores of this tile are made
            advanceQueries();
            enter();
            const int keySlab = stage;
            waitPhase(full + 8 * stage, phase);
            waitTurn(consumer);
            startScores();
            const int valueSlab = stage;
            waitPhase(full + 8 * stage, phase);
            startProducts();
            giveTurn(1 - consumer);
            const float inverse[2] = {invert(quadSum(sum[0])), invert(quadSum(sum[1]))};
            restart();

            waitProducts<1>(); // the scores
            pin(score);
            leave(keySlab);
            weigh(first);

            waitProducts<0>();
            pin(result);
            pin(weights);
            pin(score);
            leave(valueSlab);
            write(originBefore, rowsBefore, inverse); // while the other consumer's products run
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            packWeights();
        }
        waitPhase(full + 8 * stage, phase);
        startProducts();
        if (consumer == 0)
            waitTurn(0); // takes the turn that was given last
        const float inverse[2] = {invert(quadSum(sum[0])), invert(quadSum(sum[1]))};
        waitProducts<0>();
        pin(result);
        pin(weights);
        write(origin, rows, inverse);
    }
}
