/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 5
values = [4, 5, 6]

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
grid = ["ceil_div(T, 128) + B", "H"]
block = ["384"]
shared = "(128 + STAGES * 128) * 128 * 2 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// Copying and multiplying become roles. Warpgroup 0 asks for tiles of k and v, in turns, as soon as a slab of
// the ring is empty; warpgroups 1 and 2 own 64 queries each and never meet: two mbarriers a slab (full, empty)
// replace the barrier of the whole block. While one computes weights, the products of the other keep the
// tensor cores busy. The producer gives its registers to the consumers (setmaxnreg).
//
// A weight is one multiply-add and a power of two against an old reference: the largest score of the first block
// of keys, which holds one for each row that attends to any. No pass for the maximum, no scaling of the results.
// Weights above 1 are as exact as those below; only where a lane's sum of a block shows that one may leave f16
// does the warp take the largest scores for its new references, shrink what it has, and weigh the block anew.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 128;
constexpr float LARGEST_SUM = 32768.0f; // of a lane's weights of a block: none of them is above, f16 holds 65504
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

__device__ __forceinline__ float powerOfTwo(float x)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// Takes the largest scores so far for the references (in powers of two), and what was summed over to them.
__device__ __forceinline__ void renew(const float (&score)[64], float factor, float (&reference)[2], float (&sum)[2],
                                      float (&result)[64])
{
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float top = fmaxf(score[2 * half], score[2 * half + 1]);
#pragma unroll
        for (int i = 2 * half + 4; i < 64; i += 4)
            top = fmaxf(top, fmaxf(score[i], score[i + 1]));
        top = fmaxf(reference[half], quadMax(top) * factor);
        shrink[half] = powerOfTwo(reference[half] - top);
        reference[half] = top;
        sum[half] *= shrink[half];
    }
#pragma unroll
    for (int i = 0; i < 64; ++i)
        result[i] *= shrink[i / 2 % 2];
}

// The weights of a block against the references, and the lane's sums of them.
__device__ __forceinline__ void weigh(const float (&score)[64], float factor, const float (&reference)[2],
                                      unsigned (&weights)[32], float (&part)[2])
{
    part[0] = part[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const float low = powerOfTwo(fmaf(score[2 * i], factor, -reference[i % 2]));
        const float high = powerOfTwo(fmaf(score[2 * i + 1], factor, -reference[i % 2]));
        part[i % 2] += low;
        part[i % 2] += high;
        weights[i] = pack(low, high);
    }
}

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, int KV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 1];
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + 2 * Q_BOX;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES, queriesFull = empty + 8 * STAGES;

    // The block's tile: tiles of the sequences one after the other.
    int sequence = 0, index = blockIdx.x;
    for (; sequence < B; ++sequence) {
        const int tilesHere = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (index < tilesHere)
            break;
        index -= tilesHere;
    }
    if (sequence == B)
        return;
    const int head = blockIdx.y, group = H / KV, thread = threadIdx.x, lane = thread % 32, warpgroup = thread / 128;
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int first = cuK[sequence], last = cuK[sequence + 1];
    const int end = last - max(0, rows - BM); // what any row of the tile attends to

    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 8); // the warps of the consumers
        }
        initBarrier(queriesFull, 1);
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
    if (warpgroup == 0) {
        giveRegisters<40>();
        if (thread == 0) {
            const auto fetch = [&](const TensorMap &map, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1); // passes at first
                copyTile(ring + stage * SLAB_BYTES, map, head / group, row, full + 8 * stage);
                advance();
            };
            copyTile(queries, mapQ, head, row0, queriesFull);
            for (int key0 = first; key0 < end; key0 += BN) {
                fetch(mapK, key0);
                fetch(mapV, key0);
            }
        }
    } else {
        takeRegisters<232>();
        const int warpRow = (thread - 128) / 32 * 16;
        // This warp's products of this slab have ended.
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };

        // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
        const unsigned long long query = describe(queries + (warpgroup - 1) * 64 * 128, 16);
        float score[64], result[64] = {};
        const float factor = scale * 1.44269504f; // from scores to powers of two
        float reference[2], sum[2] = {};
        reference[0] = reference[1] = -1e30f; // finite: a row may meet no key
        waitPhase(queriesFull, 0);
        for (int key0 = first; key0 < end; key0 += BN) {
            waitPhase(full + 8 * stage, phase);
            const unsigned long long key = describe(ring + stage * SLAB_BYTES, 16);
            pin(score);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 8; ++i)
                multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4),
                               key + (i / 4 * BOX + i % 4 * 32 >> 4), i > 0);
            commitProducts();
            waitProducts<0>();
            pin(score);
            leave();

            // How many keys from this block on the lane's first row attends to; its other row, to 8 more.
            const int limit = last - key0 - (rows - 1 - warpRow - lane / 4);
            if (__any_sync(~0u, limit < BN))
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= limit + i / 2 % 2 * 8)
                        score[i] = __int_as_float(0xff800000);

            unsigned weights[32];
            float part[2];
            if (key0 == first)
                renew(score, factor, reference, sum, result);
            weigh(score, factor, reference, weights, part);
            if (__any_sync(~0u, fmaxf(part[0], part[1]) > LARGEST_SUM)) { // rare
                renew(score, factor, reference, sum, result);
                weigh(score, factor, reference, weights, part);
            }
            sum[0] += part[0];
            sum[1] += part[1];

            waitPhase(full + 8 * stage, phase);
            const unsigned long long value = describe(ring + stage * SLAB_BYTES, BOX);
            pin(result);
            pin(weights);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 8; ++i)
                multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4));
            commitProducts();
            waitProducts<0>();
            pin(result);
            pin(weights);
            leave();
        }

#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = warpRow + 8 * half + lane / 4;
            const float total = quadSum(sum[half]), inverse = total > 0.0f ? 1.0f / total : 0.0f;
            __half *to = out + (size_t(row0 + row) * H + head) * D + lane % 4 * 2;
            if (row < rows)
#pragma unroll
                for (int j = 0; j < D / 8; ++j)
                    *reinterpret_cast<unsigned *>(to + 8 * j) =
                        pack(result[4 * j + 2 * half] * inverse, result[4 * j + 2 * half + 1] * inverse);
        }
    }
}
