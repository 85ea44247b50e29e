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
shared = "(192 + 5 * 128) * 256 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128. For sm_90a.
//
// A block walks over tiles of 192 queries of one head. Warpgroup 0 copies: its warp 0 keys and values, slabs of 128
// rows that take turns in one ring; its warps 1 to 3 the 64 queries of a consumer each. Warpgroups 1 to 3 multiply,
// 64 queries each: scores by wgmma from shared memory, weights in registers, and these as the left operand of the
// second product.

#include <cuda_fp16.h>

constexpr int CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128, STAGES = 5;
constexpr unsigned Q_HALF = 64 * 128, Q_BYTES = 2 * Q_HALF;          // of one consumer
constexpr unsigned SLAB_HALF = BN * 128, SLAB_BYTES = 2 * SLAB_HALF; // of keys or of values
constexpr float LOG2E = 1.44269504f, SLACK = 8.0f;

// Eight numbers.
typedef uint4 Chunk;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Barriers and copies.

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

// Starts the copy of one box: from number d of a head, and from a token on.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int d, int head, int token,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(d), "r"(head), "r"(token), "r"(barrier) : "memory");
}

template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}

// Products.

// Rows of 128 swizzled bytes along the dimension that is summed over: 1024 bytes from 8 rows to the next 8.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

// The same rows where the dimension summed over goes from row to row: 64 columns a row, SLAB_HALF bytes to the
// 64 columns that follow.
__device__ __forceinline__ unsigned long long describeRows(unsigned address)
{
    return (address & 0x3ffff) >> 4 | (unsigned long long)(SLAB_HALF >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define NEW8(i)                                                                                    \
    "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3]), "=f"(d[i + 4]), "=f"(d[i + 5]),    \
        "=f"(d[i + 6]), "=f"(d[i + 7])
#define NEW64 NEW8(0), NEW8(8), NEW8(16), NEW8(24), NEW8(32), NEW8(40), NEW8(48), NEW8(56)
#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS64 SUMS8(0), SUMS8(8), SUMS8(16), SUMS8(24), SUMS8(32), SUMS8(40), SUMS8(48), SUMS8(56)
#define LIST64                                                                                     \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
    " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
    " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// d = 64 rows of x · 128 rows of y, over 16 numbers.
__device__ __forceinline__ void multiplyFirst(float (&d)[64], unsigned long long x, unsigned long long y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}" : NEW64 : "l"(x), "l"(y));
}

// d += the same.
__device__ __forceinline__ void multiplyMore(float (&d)[64], unsigned long long x, unsigned long long y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}" : SUMS64 : "l"(x), "l"(y));
}

// d += 64 rows of weights, 16 a row, in registers · 16 rows of 128 columns of y.
__device__ __forceinline__ void multiplyWeights(float (&d)[64], unsigned w0, unsigned w1, unsigned w2, unsigned w3,
                                                unsigned long long y)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 ", {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}" : SUMS64 : "r"(w0), "r"(w1), "r"(w2), "r"(w3), "l"(y));
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

// Scalars.

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

// Tiles.

struct Tile {
    int row, end;  // its first query, and the end of the sequence's queries
    int head;
    int key, keys; // the first key, and how many
};

// All roles walk over the same tiles in the same order: sequences, their heads, places within. Places are rotated from
// head to head, so that the one that is not full comes to all blocks, whatever divides the grid. False: past the end.
__device__ __forceinline__ bool locate(int t, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
{
    int begin = __ldg(cuQ), base = 0;
#pragma unroll 1
    for (int sequence = 0; sequence < B; ++sequence) {
        const int end = __ldg(cuQ + sequence + 1);
        const int tiles = (end - begin + BM - 1) / BM;
        if (t < base + tiles * H) {
            const int head = (t - base) / tiles;
            const int place = (t - base - head * tiles + head + base / tiles) % tiles;
            tile.row = begin + place * BM;
            tile.end = end;
            tile.head = head;
            tile.key = __ldg(cuK + sequence);
            tile.keys = __ldg(cuK + sequence + 1) - tile.key;
            return true;
        }
        base += tiles * H;
        begin = end;
    }
    return false;
}

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

    const int warpgroup = __shfl_sync(~0u, int(threadIdx.x / 128), 0);
    const int warp = __shfl_sync(~0u, int(threadIdx.x / 32 % 4), 0);
    const int lane = threadIdx.x % 32;

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

    if (warpgroup == 0) {
        giveRegisters<32>();
        if (lane != 0)
            return;
        Tile tile;
        if (warp == 0) {
            // Keys and values, a slab of each in turn.
            int stage = 0;
            unsigned phase = 1; // the parity before the first: passes at once
#pragma unroll 1
            for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
#pragma unroll 1
                for (int n0 = 0; n0 < tile.keys; n0 += BN) {
                    waitPhase(empty + 8 * stage, phase);
                    expectBytes(full + 8 * stage, SLAB_BYTES);
                    unsigned to = ring + stage * SLAB_BYTES;
                    copyBox(to, mapK, 0, tile.head, tile.key + n0, full + 8 * stage);
                    copyBox(to + SLAB_HALF, mapK, 64, tile.head, tile.key + n0, full + 8 * stage);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }

                    waitPhase(empty + 8 * stage, phase);
                    expectBytes(full + 8 * stage, SLAB_BYTES);
                    to = ring + stage * SLAB_BYTES;
                    copyBox(to, mapV, 0, tile.head, tile.key + n0, full + 8 * stage);
                    copyBox(to + SLAB_HALF, mapV, 64, tile.head, tile.key + n0, full + 8 * stage);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                }
            }
        } else {
            // The queries of one consumer.
            const int consumer = warp - 1;
            const unsigned to = queries + consumer * Q_BYTES;
            const unsigned barrier = fullQ + 8 * consumer;
            unsigned phase = 1;
#pragma unroll 1
            for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
                const int row = tile.row + 64 * consumer;
                if (row >= tile.end || tile.keys <= 0)
                    continue;
                waitPhase(emptyQ + 8 * consumer, phase);
                expectBytes(barrier, Q_BYTES);
                copyBox(to, mapQ, 0, tile.head, row, barrier);
                copyBox(to + Q_HALF, mapQ, 64, tile.head, row, barrier);
                phase ^= 1;
            }
        }
        return;
    }

    takeRegisters<160>();
    const int consumer = warpgroup - 1;
    const unsigned long long descriptionQ = describe(queries + consumer * Q_BYTES);
    const float factor = scale * LOG2E;

    int stage = 0;
    unsigned phase = 0, phaseQ = 0;
    const auto leave = [&] {
        if (lane == 0)
            arrive(empty + 8 * stage);
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    };

    Tile tile;
#pragma unroll 1
    for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x) {
        if (tile.row + 64 * consumer >= tile.end) {
            // No rows in this tile: takes part in the ring all the same.
#pragma unroll 1
            for (int n0 = 0; n0 < tile.keys; n0 += BN) {
                waitPhase(full + 8 * stage, phase);
                leave();
                waitPhase(full + 8 * stage, phase);
                leave();
            }
            continue;
        }

        // The reference is in powers of two. Sums: even columns and odd ones, of two rows a lane.
        float result[64], reference[2], even[2], odd[2];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            result[i] = 0.0f;
        reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
        even[0] = even[1] = odd[0] = odd[1] = 0.0f;

        if (tile.keys > 0) {
            waitPhase(fullQ + 8 * consumer, phaseQ);
            phaseQ ^= 1;
            if (t == int(blockIdx.x)) {
                // Once: consumers begin one after the other, so that one's scalar work meets the others' products.
                waitPhase(full + 8 * stage, phase);
                const unsigned since = unsigned(clock());
                while (unsigned(clock()) - since < unsigned(consumer) * 700u) {
                }
                __syncwarp();
            }
        }

#pragma unroll 1
        for (int n0 = 0; n0 < tile.keys; n0 += BN) {
            // Scores.
            float score[64];
            waitPhase(full + 8 * stage, phase);
            {
                const unsigned long long descriptionK = describe(ring + stage * SLAB_BYTES);
                fenceProducts();
                multiplyFirst(score, descriptionQ, descriptionK);
#pragma unroll
                for (int k = 1; k < 8; ++k)
                    multiplyMore(score, descriptionQ + (k / 4 * (Q_HALF >> 4) + k % 4 * 2),
                                 descriptionK + (k / 4 * (SLAB_HALF >> 4) + k % 4 * 2));
                commitProducts();
                waitProducts();
                pin(score);
            }
            leave();
            if (n0 + BN >= tile.keys && lane == 0)
                arrive(emptyQ + 8 * consumer); // the next tile's queries may come

            // Keys past the end of the sequence.
            if (n0 + BN > tile.keys) {
                const int inside = tile.keys - n0 - lane % 4 * 2;
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    if (i / 4 * 8 + i % 2 >= inside)
                        score[i] = __int_as_float(0xff800000);
            }

            // The reference follows late: only where a score of the warp has outgrown it.
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
                    const float now = fmaxf(fmaxf(reference[half], -1e30f), quadMax(top[half]));
                    shrink[half] = power(reference[half] - now);
                    reference[half] = now;
                    even[half] *= shrink[half];
                    odd[half] *= shrink[half];
                }
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    result[i] *= shrink[i / 2 % 2];
            }

            // Weights.
            unsigned weights[32];
#pragma unroll
            for (int i = 0; i < 64; i += 2) {
                const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
                even[i / 2 % 2] += low;
                odd[i / 2 % 2] += high;
                weights[i / 2] = pack(low, high);
            }

            // Weights · values.
            waitPhase(full + 8 * stage, phase);
            {
                const unsigned long long descriptionV = describeRows(ring + stage * SLAB_BYTES);
                pin(weights);
                pin(result);
                fenceProducts();
#pragma unroll
                for (int k = 0; k < 8; ++k) // 16 rows of 128 bytes each
                    multiplyWeights(result, weights[4 * k], weights[4 * k + 1], weights[4 * k + 2],
                                    weights[4 * k + 3], descriptionV + k * (2048 >> 4));
                commitProducts();
                waitProducts();
                pin(result);
                pin(weights);
            }
            leave();
        }

        // Quotients. The lanes of four exchange words until each has 8 columns that lie side by side.
        const int quarter = lane % 4;
        const bool isOdd = quarter & 1, isUpper = quarter & 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = quadSum(even[half] + odd[half]);
            const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
            const int token = tile.row + 64 * consumer + warp * 16 + lane / 4 + 8 * half;
            Chunk *to = out + (size_t(token) * H + tile.head) * 16 + quarter;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                unsigned a[4];
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[i] = pack(result[4 * (4 * j + i) + 2 * half] * inverse,
                                result[4 * (4 * j + i) + 2 * half + 1] * inverse);
#pragma unroll
                for (int i = 0; i < 4; i += 2) {
                    const unsigned other = __shfl_xor_sync(~0u, isOdd ? a[i] : a[i + 1], 1);
                    a[i] = isOdd ? other : a[i];
                    a[i + 1] = isOdd ? a[i + 1] : other;
                }
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const unsigned other = __shfl_xor_sync(~0u, isUpper ? a[i] : a[i + 2], 2);
                    a[i] = isUpper ? other : a[i];
                    a[i + 2] = isUpper ? a[i + 2] : other;
                }
                if (token < tile.end)
                    to[4 * j] = make_uint4(a[0], a[1], a[2], a[3]);
            }
        }
    }
}
