/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["512"]
shared = "49152 + 5 * 32768 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [192, 1, 64]
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
// One block a multiprocessor walks over tiles of 192 queries of one head. Warpgroup 0 copies, warpgroups 1 to 3 own 64
// queries each. Slabs of 128 keys or values, K, V, K, V, …, pass through one ring, from the last block of keys to the first.

#include <cuda_fp16.h>

constexpr int BN = 128, CONSUMERS = 3, BM = 64 * CONSUMERS, STAGES = 5;
constexpr unsigned Q_HALF = BM * 128, Q_BYTES = 2 * Q_HALF; // 64 columns: rows of 128 swizzled bytes; two halves
constexpr unsigned HALF = BN * 128, SLAB = 2 * HALF;
constexpr float LOG2E = 1.44269504f;
constexpr float SLACK = 8.0f;     // powers of two by which a score may outgrow the reference
constexpr float LOWEST = -1e30f;  // below all scores, yet finite

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

// Starts the copy of one box of 64 columns of a head.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int row,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(row), "r"(barrier) : "memory");
}

template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
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

// No use of these registers may be moved over this point.
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

// Rows of 128 swizzled bytes, 1024 bytes from one group of 8 rows to the next, swizzle code 1. LEADING: for operands
// that are not K-major, bytes from 64 columns to the next 64.
template <unsigned LEADING> __device__ __forceinline__ unsigned long long describe(unsigned address)
{
    const unsigned low = (address & 0x3ffffu) >> 4 | (LEADING >> 4) << 16;
    const unsigned high = 1024u >> 4 | 1u << 30;
    return (unsigned long long)(high) << 32 | low;
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)
#define LIST64                                                                                     \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
    " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
    " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "

// d (+)= 64 queries · 128 keys, over 16 columns; both from shared memory.
template <int ACCUMULATE>
__device__ __forceinline__ void multiplyKeys(float (&d)[64], unsigned long long queries, unsigned long long keys)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 "%64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}"
                 : SUMS32(0), SUMS32(32)
                 : "l"(queries), "l"(keys), "n"(ACCUMULATE));
}

// d += weights of 64 queries for 16 keys, from registers · 128 columns of their values, which lie in rows of keys.
__device__ __forceinline__ void multiplyValues(float (&d)[64], unsigned a, unsigned b, unsigned c, unsigned e,
                                               unsigned long long values)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64
                 "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}"
                 : SUMS32(0), SUMS32(32)
                 : "r"(a), "r"(b), "r"(c), "r"(e), "l"(values));
}

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
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

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, uint4 *out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2];
    __shared__ int info[2][8]; // of a tile: blocks of keys (0: the end), keys in the last one, first row, rows, head

    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned qFull = empty + 8 * STAGES, qEmpty = qFull + 8;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS); // one arrival a consumer warp
        }
        initBarrier(qFull, 1);
        initBarrier(qEmpty, 4 * CONSUMERS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    const int warpgroup = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);
    if (warpgroup == 0) {
        giveRegisters<32>();
        if (threadIdx.x == 0) {
            int stage = 0, phase = 0;
            const auto fetch = [&](const TensorMap &map, int head, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1);
                expectBytes(full + 8 * stage, SLAB);
                copyBox(ring + stage * SLAB, map, 0, head, row, full + 8 * stage);
                copyBox(ring + stage * SLAB + HALF, map, 64, head, row, full + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            };
            const int blocksOfGrid = gridDim.x;
            int round = 0;
            for (;; ++round) {
                // Tiles in the order of sequences, heads, rows; each round is rotated by one block more.
                int index = round * blocksOfGrid + (int(blockIdx.x) + round) % blocksOfGrid;
                int sequence = 0, begin = 0, end = 0, tiles = 1;
                for (; sequence < B; ++sequence) {
                    begin = cuQ[sequence];
                    end = cuQ[sequence + 1];
                    tiles = (end - begin + BM - 1) / BM;
                    if (index < tiles * H)
                        break;
                    index -= tiles * H;
                }
                if (sequence == B)
                    break;
                const int head = index / tiles, row0 = begin + (index - head * tiles) * BM;
                const int firstKey = cuK[sequence], keys = cuK[sequence + 1] - firstKey;
                const int blocks = max(1, (keys + BN - 1) / BN);
                for (int block = blocks - 1; block >= 0; --block) {
                    fetch(mapK, head, firstKey + block * BN);
                    if (block == blocks - 1) {
                        waitPhase(qEmpty, (round & 1) ^ 1);
                        int *place = info[round & 1];
                        place[0] = blocks;
                        place[1] = keys - block * BN;
                        place[2] = row0;
                        place[3] = min(BM, end - row0);
                        place[4] = head;
                        expectBytes(qFull, Q_BYTES);
                        copyBox(queries, mapQ, 0, head, row0, qFull);
                        copyBox(queries + Q_HALF, mapQ, 64, head, row0, qFull);
                    }
                    fetch(mapV, head, firstKey + block * BN);
                }
            }
            waitPhase(qEmpty, (round & 1) ^ 1);
            info[round & 1][0] = 0;
            arrive(qFull);
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1, lane = threadIdx.x % 32;
        const float factor = scale * LOG2E;
        const unsigned long long qDescription = describe<16>(queries + consumer * 64 * 128);

        int stage = 0, phase = 0;
        const auto leave = [&] {
            __syncwarp();
            if (lane == 0)
                arrive(empty + 8 * stage);
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        };

        for (int turn = 0;; turn ^= 1) {
            waitPhase(qFull, turn);
            int left = info[turn][0];
            if (left == 0)
                break;
            if (info[turn][3] <= consumer * 64) { // no rows: takes part in the ring only
                __syncwarp();
                if (lane == 0)
                    arrive(qEmpty);
                for (left *= 2; left > 0; --left) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
                continue;
            }
            int valid = info[turn][1]; // keys of the block at hand, the last one first

            float result[64], reference[2], sum[2];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            reference[0] = reference[1] = LOWEST;
            sum[0] = sum[1] = 0.0f;

            do {
                float score[64];
                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long kDescription = describe<16>(ring + stage * SLAB);
                    fenceProducts();
                    multiplyKeys<0>(score, qDescription, kDescription);
#pragma unroll
                    for (int k = 1; k < 8; ++k)
                        multiplyKeys<1>(score, qDescription + (k / 4 * (Q_HALF >> 4) + k % 4 * 2),
                                        kDescription + (k / 4 * (HALF >> 4) + k % 4 * 2));
                    commitProducts();
                    waitProducts();
                    pin(score);
                }
                --left;
                leave();
                if (left == 0 && lane == 0)
                    arrive(qEmpty); // the last use of this tile's queries

                if (valid < BN) {
                    const int limit = valid - lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (i / 4 * 8 + i % 2 >= limit)
                            score[i] = __int_as_float(0xff800000); // -infinity
                    valid = BN;
                }

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

                waitPhase(full + 8 * stage, phase);
                {
                    const unsigned long long vDescription = describe<HALF>(ring + stage * SLAB);
                    pin(weights);
                    pin(result);
                    fenceProducts();
#pragma unroll
                    for (int k = 0; k < 8; ++k) // 16 rows of keys: 2048 bytes
                        multiplyValues(result, weights[4 * k], weights[4 * k + 1], weights[4 * k + 2],
                                       weights[4 * k + 3], vDescription + k * (2048 >> 4));
                    commitProducts();
                    waitProducts();
                    pin(result);
                }
                leave();
            } while (left > 0);

            // The words of four neighbouring lanes are exchanged, so that each stores whole chunks of 16 bytes.
            const int row0 = info[turn][2], rows = info[turn][3], head = info[turn][4];
            const bool isOdd = lane & 1, isUpper = lane & 2;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float total = quadSum(sum[half]);
                const float inverse = total > 0.0f ? reciprocal(total) : 0.0f;
                const int row = consumer * 64 + threadIdx.x / 32 % 4 * 16 + half * 8 + lane / 4;
                uint4 *to = out + (size_t(row0 + row) * H + head) * 16 + lane % 4;
#pragma unroll
                for (int group = 0; group < 4; ++group) {
                    unsigned w[4];
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int i = 4 * (4 * group + j) + 2 * half;
                        w[j] = pack(result[i] * inverse, result[i + 1] * inverse);
                    }
                    const unsigned r0 = __shfl_xor_sync(~0u, isOdd ? w[0] : w[1], 1);
                    const unsigned r1 = __shfl_xor_sync(~0u, isOdd ? w[2] : w[3], 1);
                    const unsigned p0 = isOdd ? r0 : w[0], p1 = isOdd ? w[1] : r0;
                    const unsigned q0 = isOdd ? r1 : w[2], q1 = isOdd ? w[3] : r1;
                    const unsigned x0 = __shfl_xor_sync(~0u, isUpper ? p0 : q0, 2);
                    const unsigned x1 = __shfl_xor_sync(~0u, isUpper ? p1 : q1, 2);
                    if (row < rows)
                        to[group * 4] = isUpper ? make_uint4(x0, x1, q0, q1) : make_uint4(p0, p1, x0, x1);
                }
            }
        }
    }
}
