/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 5
values = [4, 5]

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
grid = ["ceil_div(T, 192) + B", "H"]
block = ["512"]
shared = "(192 + STAGES * 128) * 128 * 2 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// A weight is 2^(score · c − reference), c = scale · log2(e), and the reference is not the largest score so far but an old one: weights are
// computed without a pass for the maximum, and their sums are checked afterwards. Only where one has grown past 2^13, and in the first
// block, the whole consumer makes the scores again and raises the references first.
//
// A producer and three consumer warpgroups of 64 queries. Tiles are counted from the end of a sequence: the one that is not full is the
// first of its queries, with the fewest keys.

#include <cuda_fp16.h>

constexpr int D = 128, CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128;
constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr unsigned Q_BOX = 64 * 128, BOX = BN * 128; // boxes of 64 columns
constexpr unsigned Q_BYTES = 2 * Q_BOX, SLAB_BYTES = 2 * BOX;

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

// Starts the copies of `rows` rows of 128 columns: 64 of q, 128 of k or v.
__device__ __forceinline__ void copyTile(unsigned to, const TensorMap &map, int rows, int head, int row,
                                         unsigned barrier)
{
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

// Writes a warp's 16 rows of results, from `row` of all tokens on; `rows` are left of the tile.
__device__ __forceinline__ void store(const float (&result)[64], float sum0, float sum1, __half *out,
                                      int row, int rows, int head, int H, int lane)
{
    sum0 = quadSum(sum0);
    sum1 = quadSum(sum1);
    const float inverse0 = sum0 > 0.0f ? 1.0f / sum0 : 0.0f, inverse1 = sum1 > 0.0f ? 1.0f / sum1 : 0.0f;
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

// Whether any thread of a consumer says so; named barriers 1, 2 and 3.
__device__ __forceinline__ bool anyOfWarpgroup(bool says, int consumer)
{
    int any;
    asm volatile("{\n"
                 ".reg .pred mine, all;\n"
                 "setp.ne.b32 mine, %2, 0;\n"
                 "barrier.cta.red.or.aligned.pred all, %1, 128, mine;\n"
                 "selp.b32 %0, 1, 0, all;\n"
                 "}" : "=r"(any) : "r"(1 + consumer), "r"(int(says)) : "memory");
    return any != 0;
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                                   const __grid_constant__ TensorMap mapK,
                                                                   const __grid_constant__ TensorMap mapV,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, int KV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 1];
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + CONSUMERS * Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES, queriesFull = empty + 8 * STAGES;

    // The block's tile: tiles of the sequences one after the other, those of a sequence from its end.
    int sequence = 0, index = blockIdx.x;
    for (; sequence < B; ++sequence) {
        const int tilesHere = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (index < tilesHere)
            break;
        index -= tilesHere;
    }
    if (sequence == B)
        return;
    const int head = blockIdx.y, group = H / KV, begin = cuQ[sequence], end = cuQ[sequence + 1];
    const int rowEnd = end - index * BM, rows = min(BM, rowEnd - begin), row0 = rowEnd - rows;
    const int first = cuK[sequence];
    const int seen = row0 + 1 + cuK[sequence + 1] - first - end; // keys that the first query attends to; may be negative
    const int blocks = max(1, (seen + rows - 1 + BN - 1) / BN);  // one at least: what is not attended to is masked

    const int thread = threadIdx.x, lane = thread % 32;
    const int warpgroup = __shfl_sync(~0u, thread / 128, 0); // says that it is the same in the whole warp
    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS); // their warps
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
        giveRegisters<32>();
        if (thread == 0) {
            const auto fetch = [&](const TensorMap &map, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1); // passes at first
                expectBytes(full + 8 * stage, SLAB_BYTES);
                copyTile(ring + stage * SLAB_BYTES, map, BN, head / group, row, full + 8 * stage);
                advance();
            };
            expectBytes(queriesFull, CONSUMERS * Q_BYTES);
            for (int i = 0; i < CONSUMERS; ++i)
                copyTile(queries + i * Q_BYTES, mapQ, 64, head, row0 + 64 * i, queriesFull);
            for (int block = 0; block < blocks; ++block) {
                fetch(mapK, first + block * BN);
                fetch(mapV, first + block * BN);
            }
        }
    } else {
        takeRegisters<160>(); // 32 + 3 * 160 = 4 * 128
        const int consumer = warpgroup - 1, warpRow = consumer * 64 + thread / 32 % 4 * 16;
        const float factor = scale * 1.4426950408889634f; // to powers of two

        // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
        float score[64], result[64], reference[2], sum[2], part[2];
        const auto multiplyScores = [&] {
            const unsigned long long query = describe(queries + consumer * Q_BYTES, 16);
            const unsigned long long key = describe(ring + stage * SLAB_BYTES, 16);
#pragma unroll
            for (int i = 0; i < 64; ++i)
                score[i] = 0.0f; // not read by the first product: says that old scores need no registers until here
            pin(score);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 8; ++i)
                multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4),
                               key + (i / 4 * BOX + i % 4 * 32 >> 4), i > 0);
            commitProducts();
            waitProducts<0>();
            pin(score);
        };
        const auto addProducts = [&](unsigned (&weights)[32]) {
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
        };
        // This warp is done with a slab.
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };
        // `seen`: how many keys of this block on the warp's first query attends to; may be negative.
        const auto mask = [&](int seen) {
            if (seen < BN) {
                const int limit = seen + lane / 4 - lane % 4 * 2;
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    if (i / 4 * 8 + i % 2 >= limit + i / 2 % 2 * 8)
                        score[i] = __int_as_float(0xff800000);
            }
        };
        // Weights of the scores, and `part`, their sums of this lane's columns.
        const auto weigh = [&](unsigned (&weights)[32]) {
            float odd[2] = {};
            part[0] = part[1] = 0.0f;
#pragma unroll
            for (int i = 0; i < 64; i += 2) {
                const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
                weights[i / 2] = pack(low, high);
                part[i / 2 % 2] += low;
                odd[i / 2 % 2] += high;
            }
            part[0] += odd[0];
            part[1] += odd[1];
        };
        // The references rise to the tops of the scores, and what was added up before shrinks.
        const auto raise = [&] {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
                for (int i = 4 + 2 * half; i < 64; i += 4) {
                    low = fmaxf(low, score[i]);
                    high = fmaxf(high, score[i + 1]);
                }
                const float top = fmaxf(fmaxf(reference[half], -1e30f), quadMax(fmaxf(low, high)) * factor); // finite
                const float shrink = power(reference[half] - top);
                reference[half] = top;
                sum[half] *= shrink;
#pragma unroll
                for (int i = 2 * half; i < 64; i += 4) {
                    result[i] *= shrink;
                    result[i + 1] *= shrink;
                }
            }
        };

        // What this consumer's last query attends to: keys, and blocks of them.
        const int most = seen + min(consumer * 64 + 63, rows - 1);
        const int mine = consumer * 64 >= rows ? 0 : max(1, (most + BN - 1) / BN);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            result[i] = 0.0f;
        reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
        sum[0] = sum[1] = 0.0f;
        waitPhase(queriesFull, 0);
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            waitPhase(full + 8 * stage, phase);
            if (block >= mine) {
                leave();
                waitPhase(full + 8 * stage, phase);
                leave();
                continue;
            }
            bool careful = block == 0; // the first block raises the references
            unsigned weights[32];
#pragma unroll 1
            for (;;) {
                multiplyScores();
                mask(seen + warpRow - block * BN);
                if (careful)
                    raise();
                weigh(weights);
                careful = anyOfWarpgroup(!(fmaxf(part[0], part[1]) <= 8192.0f), consumer);
                if (!careful)
                    break;
            }
            sum[0] += part[0];
            sum[1] += part[1];
            leave();

            waitPhase(full + 8 * stage, phase);
            addProducts(weights);
            leave();
        }
        if (mine > 0)
            store(result, sum[0], sum[1], out, row0 + warpRow, rows - warpRow, head, H, lane);
    }
}
