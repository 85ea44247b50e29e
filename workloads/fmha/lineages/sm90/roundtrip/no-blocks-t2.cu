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
// One block a multiprocessor walks over tiles of 192 queries of one head. Warpgroup 0 produces: one thread copies
// slabs of 128 keys and values in turns into a ring, and the queries. Warpgroups 1 to 3 consume, 64 queries each.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

typedef unsigned long long Descriptor;

constexpr int CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128, STAGES = 5;
constexpr unsigned SLAB = BN * 128 * 2;      // two halves of 64 columns: 128 rows of 128 bytes each
constexpr unsigned QUERIES = 64 * 128 * 2;   // of one consumer, in two halves as well
constexpr float SLACK = 8.0f;                // powers of two by which a value may outgrow the reference

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
                 "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

// Coordinates: column, head, token.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int column, int head, int token,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];"
                 ::"r"(to), "l"(map), "r"(barrier), "r"(column), "r"(head), "r"(token) : "memory");
}

// Rows of 128 swizzled bytes, 8 rows every 1024 bytes. `leading` is the distance of two column groups of 64 where the
// columns are not the dimension that is summed over, and is not looked at where they are.
__device__ __forceinline__ Descriptor describe(unsigned address, unsigned leading)
{
    return Descriptor((address & 0x3ffffu) >> 4) | Descriptor(leading >> 4) << 16 | Descriptor(1024 >> 4) << 32
        | Descriptor(1) << 62;
}

#define LIST64 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

#define FLOATS8(kind, a, i) \
    kind(a[i]), kind(a[i + 1]), kind(a[i + 2]), kind(a[i + 3]), \
    kind(a[i + 4]), kind(a[i + 5]), kind(a[i + 6]), kind(a[i + 7])

#define FLOATS64(kind, a) \
    FLOATS8(kind, a, 0), FLOATS8(kind, a, 8), FLOATS8(kind, a, 16), FLOATS8(kind, a, 24), \
    FLOATS8(kind, a, 32), FLOATS8(kind, a, 40), FLOATS8(kind, a, 48), FLOATS8(kind, a, 56)

// sums = a · bᵀ, both in shared memory; what was in the sums does not count.
__device__ __forceinline__ void multiplyFirst(float (&sums)[64], Descriptor a, Descriptor b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64 ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : FLOATS64("=f", sums)
                 : "l"(a), "l"(b), "r"(0));
}

// sums += a · bᵀ
__device__ __forceinline__ void multiplyMore(float (&sums)[64], Descriptor a, Descriptor b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64 ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : FLOATS64("+f", sums)
                 : "l"(a), "l"(b), "r"(1));
}

// sums += a · b, a in registers; rows of b are what is summed over.
__device__ __forceinline__ void multiplyWeights(float (&sums)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                Descriptor b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : FLOATS64("+f", sums)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(1));
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

// Nothing that reads or writes these registers moves past this place.
__device__ __forceinline__ void pin(float (&values)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(values[i])::"memory");
}

template <int FROM, int TO>
__device__ __forceinline__ void pinWords(unsigned (&words)[32])
{
#pragma unroll
    for (int i = FROM; i < TO; ++i)
        asm volatile("" : "+r"(words[i])::"memory");
}

__device__ __forceinline__ float power(float exponent)
{
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
    return result;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

__device__ __forceinline__ float quadMax(float value)
{
    value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
    return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

__device__ __forceinline__ float quadSum(float value)
{
    value += __shfl_xor_sync(~0u, value, 1);
    return value + __shfl_xor_sync(~0u, value, 2);
}

// Weights of 32 of the 64 scores of a lane; a lane has two rows, which take turns in pairs.
template <int FROM>
__device__ __forceinline__ void weigh(const float (&score)[64], unsigned (&weights)[32], float (&sum)[2],
                                      const float (&reference)[2], float factor)
{
#pragma unroll
    for (int i = FROM; i < FROM + 32; i += 2) {
        const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
        const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
        sum[i / 2 % 2] += low + high;
        weights[i / 2] = pack(low, high);
    }
}

struct Tile {
    int head, row, rows, key, keys;
};

// Tiles of one head lie side by side, then come the other heads of the sequence, then the other sequences. Rounds of
// one tile a block are rotated by one block each, so that no block always gets the same place of a sequence.
__device__ __forceinline__ bool locate(int round, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
{
    const int grid = int(gridDim.x);
    int index = round * grid + (int(blockIdx.x) + round) % grid;
    int begin = cuQ[0];
    for (int b = 0; b < B; ++b) {
        const int end = cuQ[b + 1];
        const int tiles = (end - begin + BM - 1) / BM;
        if (index < tiles * H) {
            tile.head = index / tiles;
            tile.row = begin + (index - tile.head * tiles) * BM;
            tile.rows = min(BM, end - tile.row);
            tile.key = cuK[b];
            tile.keys = cuK[b + 1] - tile.key;
            return true;
        }
        index -= tiles * H;
        begin = end;
    }
    return false;
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

    const unsigned queries = (sharedAddress(dynamicShared) + 1023u) & ~1023u;
    const unsigned ring = queries + CONSUMERS * QUERIES;
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
    unsigned stage = 0, phase = 0, phaseQ = 0;
    const auto advance = [&] {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    };

    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (threadIdx.x == 0) {
            const auto fetch = [&](const TensorMap *map, int head, int token) {
                waitPhase(empty + 8 * stage, phase ^ 1);
                const unsigned to = ring + stage * SLAB, barrier = full + 8 * stage;
                expectBytes(barrier, SLAB);
                copyBox(to, map, 0, head, token, barrier);
                copyBox(to + SLAB / 2, map, 64, head, token, barrier);
                advance();
            };
            Tile tile;
#pragma unroll 1
            for (int round = 0; locate(round, cuQ, cuK, B, H, tile); ++round) {
#pragma unroll 1
                for (int at = 0; at < tile.keys; at += BN) {
                    fetch(&mapK, tile.head, tile.key + at);
                    if (at == 0) {
#pragma unroll 1
                        for (int c = 0; c < CONSUMERS; ++c) {
                            waitPhase(emptyQ + 8 * c, phaseQ ^ 1);
                            const unsigned to = queries + c * QUERIES, barrier = fullQ + 8 * c;
                            expectBytes(barrier, QUERIES);
                            copyBox(to, &mapQ, 0, tile.head, tile.row + 64 * c, barrier);
                            copyBox(to + QUERIES / 2, &mapQ, 64, tile.head, tile.row + 64 * c, barrier);
                        }
                        phaseQ ^= 1;
                    }
                    fetch(&mapV, tile.head, tile.key + at);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        const int consumer = warpgroup - 1, lane = int(threadIdx.x) % 32;
        const float factor = scale * 1.44269504f; // log2(e)
        const Descriptor queriesAt = describe(queries + consumer * QUERIES, 16);
        const Descriptor keysAt = describe(ring, 16), valuesAt = describe(ring, SLAB / 2);

        const auto leave = [&] {
            __syncwarp();
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };

        Tile tile;
#pragma unroll 1
        for (int round = 0; locate(round, cuQ, cuK, B, H, tile); ++round) {
            const int mine = tile.rows - 64 * consumer; // rows of this consumer, if more than none
            const int outAt = ((tile.row + 64 * consumer) * H + tile.head) * 16;

            if (tile.keys > 0) {
                waitPhase(fullQ + 8 * consumer, phaseQ);
                phaseQ ^= 1;
            }

            if (mine <= 0) { // takes part in the ring all the same
                if (tile.keys > 0) {
                    __syncwarp();
                    if (lane == 0)
                        arrive(emptyQ + 8 * consumer);
                }
#pragma unroll 1
                for (int left = tile.keys; left > 0; left -= BN) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
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

#pragma unroll 1
            for (int left = tile.keys; left > 0; left -= BN) {
                float score[64];
                unsigned weights[32];

                // Scores of 64 queries and 128 keys.
                waitPhase(full + 8 * stage, phase);
                const Descriptor keys = keysAt + stage * (SLAB >> 4);
                fenceProducts();
                multiplyFirst(score, queriesAt, keys);
#pragma unroll
                for (int k = 1; k < 8; ++k)
                    multiplyMore(score, queriesAt + (k / 4 * (QUERIES / 2 >> 4) + k % 4 * 2),
                                 keys + (k / 4 * (SLAB / 2 >> 4) + k % 4 * 2));
                commitProducts();
                waitProducts();
                pin(score);
                if (left <= BN && lane == 0)
                    arrive(emptyQ + 8 * consumer); // the last look at the queries
                leave();

                if (left < BN) {
                    const int column = lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (column + (i / 4 * 8 + i % 2) >= left)
                            score[i] = __int_as_float(0xff800000);
                }

                // The reference follows late, by a vote of the warp.
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

                // Weights of the first 64 keys; their product runs while the other weights are taken.
                weigh<0>(score, weights, sum, reference, factor);
                waitPhase(full + 8 * stage, phase);
                const Descriptor values = valuesAt + stage * (SLAB >> 4);
                pin(result);
                pinWords<0, 16>(weights);
                fenceProducts();
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    multiplyWeights(result, weights[4 * k], weights[4 * k + 1], weights[4 * k + 2],
                                    weights[4 * k + 3], values + k * (16 * 128 >> 4));
                commitProducts();

                weigh<32>(score, weights, sum, reference, factor);
                pinWords<16, 32>(weights);
                fenceProducts();
#pragma unroll
                for (int k = 4; k < 8; ++k)
                    multiplyWeights(result, weights[4 * k], weights[4 * k + 1], weights[4 * k + 2],
                                    weights[4 * k + 3], values + k * (16 * 128 >> 4));
                commitProducts();
                waitProducts();
                pin(result);
                pinWords<0, 32>(weights);
                leave();
            }

            // Every lane of four that share a row gets whole chunks of 16 bytes, and stores them.
            const int quad = lane % 4;
            const bool odd = quad & 1, upper = quad & 2;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                const int row = int(threadIdx.x) / 32 % 4 * 16 + lane / 4 + 8 * half;
                uint4 *to = out + (size_t(outAt) + size_t(row) * H * 16 + quad);
#pragma unroll
                for (int m = 0; m < 4; ++m) {
                    unsigned word[4];
#pragma unroll
                    for (int n = 0; n < 4; ++n)
                        word[n] = pack(result[4 * (4 * m + n) + 2 * half] * inverse,
                                       result[4 * (4 * m + n) + 2 * half + 1] * inverse);
#pragma unroll
                    for (int n = 0; n < 4; n += 2) {
                        const unsigned got = __shfl_xor_sync(~0u, odd ? word[n] : word[n + 1], 1);
                        word[n] = odd ? got : word[n];
                        word[n + 1] = odd ? word[n + 1] : got;
                    }
#pragma unroll
                    for (int n = 0; n < 2; ++n) {
                        const unsigned got = __shfl_xor_sync(~0u, upper ? word[n] : word[n + 2], 2);
                        word[n] = upper ? got : word[n];
                        word[n + 2] = upper ? word[n + 2] : got;
                    }
                    if (row < mine)
                        to[4 * m] = make_uint4(word[0], word[1], word[2], word[3]);
                }
            }
        }
    }
}
