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
// One block a multiprocessor walks over tiles of 192 queries of one sequence and head. Warpgroup 0 copies: its
// warp 0 the slabs of keys and values, its warps 1 to 3 the queries of consumers 0 to 2. Warpgroups 1 to 3 own 64
// queries each: product, weights, product; the two others' products fill what one waits for.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int D = 128, CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128, STAGES = 5;
constexpr unsigned SLAB = BN * D * 2, SLAB_HALF = SLAB / 2;      // two boxes of 64 columns each
constexpr unsigned PART = 64 * D * 2, PART_HALF = PART / 2;      // queries of one consumer
constexpr float LOG2E = 1.44269504f, SLACK = 8.0f;

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra LAB_DONE;\n"
                 "bra LAB_WAIT;\n"
                 "LAB_DONE:\n"
                 "}\n" :: "r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int column, int head, int row,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(column), "r"(head), "r"(row), "r"(barrier) : "memory");
}

// K-major rows of 128 swizzled bytes, 8 rows every 1024 bytes.
__device__ __forceinline__ unsigned long long describeRows(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// The same memory, with the rows as the inner dimension of the product: from 64 columns to the next 64 half a slab,
// from 8 rows to the next 8 1024 bytes.
__device__ __forceinline__ unsigned long long describeColumns(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(SLAB_HALF >> 4) << 16 |
           (1024ull >> 4) << 32 | 1ull << 62;
}

#define SUMS_TEXT \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define SUMS_4(a, i) "+f"(a[(i)]), "+f"(a[(i) + 1]), "+f"(a[(i) + 2]), "+f"(a[(i) + 3])
#define SUMS_16(a, i) SUMS_4(a, (i)), SUMS_4(a, (i) + 4), SUMS_4(a, (i) + 8), SUMS_4(a, (i) + 12)
#define SUMS_64(a) SUMS_16(a, 0), SUMS_16(a, 16), SUMS_16(a, 32), SUMS_16(a, 48)

// Both operands in shared memory, both K-major.
__device__ __forceinline__ void multiplyShared(float (&sums)[64], unsigned long long left, unsigned long long right,
                                               int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS_TEXT ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : SUMS_64(sums)
                 : "l"(left), "l"(right), "r"(add));
}

// The left operand in registers, the right one in shared memory and transposed.
__device__ __forceinline__ void multiplyRegisters(float (&sums)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                  unsigned long long right)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS_TEXT
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : SUMS_64(sums)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(right), "r"(1));
}

__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitAndWait()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Keeps accesses to the registers on their side of it.
__device__ __forceinline__ void pin(float (&values)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(values[i]) :: "memory");
}

__device__ __forceinline__ void pin(unsigned (&values)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        asm volatile("" : "+r"(values[i]) :: "memory");
}

__device__ __forceinline__ float power(float exponent)
{
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
    return result;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
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

struct Tile {
    int row0, rows, head, key0, keys;
};

// The tile that this block takes in its turn `wave`; false past the last one. All roles walk over the same tiles.
__device__ __forceinline__ bool locate(Tile &tile, int wave, const int *__restrict__ cuQ, const int *__restrict__ cuK,
                                       int B, int H)
{
    const int blocks = int(gridDim.x);
    int number = wave * blocks + (int(blockIdx.x) + wave) % blocks;
    int begin = __ldg(cuQ);
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
        const int end = __ldg(cuQ + b + 1);
        const int tiles = (end - begin + BM - 1) / BM;
        if (number < tiles * H) {
            const int head = number / tiles, index = number - head * tiles;
            tile.row0 = begin + index * BM;
            tile.rows = min(BM, end - tile.row0);
            tile.head = head;
            tile.key0 = __ldg(cuK + b);
            tile.keys = __ldg(cuK + b + 1) - tile.key0;
            return true;
        }
        number -= tiles * H;
        begin = end;
    }
    return false;
}

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *__restrict__ cuQ,
                                                               const int *__restrict__ cuK,
                                                               unsigned *__restrict__ out, int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];

    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned ring = queries + CONSUMERS * PART;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned queryFull = empty + 8 * STAGES, queryEmpty = queryFull + 8 * CONSUMERS;

    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(~0u, int(threadIdx.x / 32), 0);

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

    if (warp < 4) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;" ::: "memory");
        if (lane == 0) {
            Tile tile;
            if (warp == 0) {
                unsigned stage = 0, phase = 1; // the parity before the first: passes at once
                const auto fetch = [&](const TensorMap *map, int row) {
                    const unsigned slab = ring + stage * SLAB, barrier = full + 8 * stage;
                    waitPhase(empty + 8 * stage, phase);
                    expectBytes(barrier, SLAB);
                    copyBox(slab, map, 0, tile.head, row, barrier);
                    copyBox(slab + SLAB_HALF, map, 64, tile.head, row, barrier);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                };
#pragma unroll 1
                for (int wave = 0; locate(tile, wave, cuQ, cuK, B, H); ++wave)
#pragma unroll 1
                    for (int n0 = 0; n0 < tile.keys; n0 += BN) {
                        fetch(&mapK, tile.key0 + n0);
                        fetch(&mapV, tile.key0 + n0);
                    }
            } else {
                const int consumer = warp - 1;
                const unsigned part = queries + consumer * PART;
                const unsigned barrier = queryFull + 8 * consumer, left = queryEmpty + 8 * consumer;
                unsigned phase = 1;
#pragma unroll 1
                for (int wave = 0; locate(tile, wave, cuQ, cuK, B, H); ++wave)
                    if (tile.rows > consumer * 64 && tile.keys > 0) {
                        const int row = tile.row0 + consumer * 64;
                        waitPhase(left, phase);
                        expectBytes(barrier, PART);
                        copyBox(part, &mapQ, 0, tile.head, row, barrier);
                        copyBox(part + PART_HALF, &mapQ, 64, tile.head, row, barrier);
                        phase ^= 1;
                    }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;" ::: "memory");

        const int consumer = warp / 4 - 1;
        const float factor = scale * LOG2E;
        const unsigned long long left = describeRows(queries + consumer * PART);
        unsigned stage = 0, phase = 0, queryPhase = 0;

        // Gives the slab back and goes on to the next one.
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
        for (int wave = 0; locate(tile, wave, cuQ, cuK, B, H); ++wave) {
            if (tile.rows <= consumer * 64) {
                // No rows here: the slabs are passed on all the same.
#pragma unroll 1
                for (int n0 = 0; n0 < tile.keys; n0 += BN) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
                continue;
            }

            float result[64], sum[2] = {0.0f, 0.0f}, reference[2];
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity: the first block outgrows it
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
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    score[i] = 0.0f;

                // q · kᵀ
                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long right = describeRows(ring + stage * SLAB);
                    pin(score);
                    fenceProducts();
#pragma unroll
                    for (int step = 0; step < D / 16; ++step)
                        multiplyShared(score, left + (step / 4 * (PART_HALF >> 4) + step % 4 * 2),
                                       right + (step / 4 * (SLAB_HALF >> 4) + step % 4 * 2), step > 0);
                    commitAndWait();
                    pin(score);
                }
                leave();
                const int remaining = tile.keys - n0;
                if (remaining <= BN && lane == 0)
                    arrive(queryEmpty + 8 * consumer); // that was the last product with these queries

                // Keys of the next sequence get no weight.
                if (remaining < BN) {
                    const int inside = remaining - lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (i / 4 * 8 + i % 2 >= inside)
                            score[i] = __int_as_float(0xff800000);
                }

                // The reference follows when a score has outgrown it.
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

                // Weights, in the layout of a left operand.
                unsigned weights[32];
                float odd[2] = {0.0f, 0.0f};
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

                // weights · v
                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long right = describeColumns(ring + stage * SLAB);
                    pin(result);
                    pin(weights);
                    fenceProducts();
#pragma unroll
                    for (int step = 0; step < BN / 16; ++step)
                        multiplyRegisters(result, weights[4 * step], weights[4 * step + 1], weights[4 * step + 2],
                                          weights[4 * step + 3], right + step * (2048 >> 4));
                    commitAndWait();
                    pin(result);
                }
                leave();
            }

            // Neighbouring lanes exchange words, so that four lanes write 32 bytes of a row.
            const int quad = lane % 4;
            const bool isOdd = quad % 2 == 1;
            const int firstRow = warp % 4 * 16 + lane / 4;
            const int rows = tile.rows - consumer * 64;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                const int row = firstRow + 8 * half;
                const bool inside = row < rows;
                unsigned *to = out + (size_t(tile.row0 + consumer * 64 + (inside ? row : 0)) * H + tile.head) * (D / 2) +
                               (isOdd ? quad + 3 : quad);
#pragma unroll
                for (int j = 0; j < 16; j += 2) {
                    const unsigned a = pack(result[4 * j + 2 * half] * inverse, result[4 * j + 2 * half + 1] * inverse);
                    const unsigned b =
                        pack(result[4 * j + 4 + 2 * half] * inverse, result[4 * j + 5 + 2 * half] * inverse);
                    const unsigned got = __shfl_xor_sync(~0u, isOdd ? a : b, 1);
                    if (inside)
                        *reinterpret_cast<uint2 *>(to + 4 * j) = isOdd ? make_uint2(got, b) : make_uint2(a, got);
                }
            }
        }
    }
}
