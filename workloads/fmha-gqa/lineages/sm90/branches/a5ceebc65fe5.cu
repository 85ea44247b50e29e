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
grid = ["min(sm_count, (ceil_div(T, 192) + B) * H)"]
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
// The walk over the keys goes from the diagonal backwards, and its first block is code of its own: there the mask is, the references are
// set, and nothing has been added up that would have to shrink. All other blocks are free of it. Where a consumer attends to no more
// than the first 64 keys of its first block, only these are multiplied.
//
// Three consumer warpgroups of 64 queries; persistent blocks take the longest tiles of a sequence first.

#include <cuda_fp16.h>

constexpr int D = 128, CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128;
constexpr unsigned Q_BOX = 64 * 128, BOX = BN * 128; // boxes of 64 columns
constexpr unsigned Q_BYTES = 2 * Q_BOX, SLAB_BYTES = 2 * BOX;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

struct Tile {
    int head, row, rows, key; // its first row and key
    int blocks;               // of 128 keys, to the last key that is attended to; 0: there is no such tile
    int seen;                 // keys that its first query attends to; may be negative
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
#define SUMS32(d) SUMS8(d, 0), SUMS8(d, 8), SUMS8(d, 16), SUMS8(d, 24)
#define SUMS64(d)                                                                                  \
    SUMS8(d, 0), SUMS8(d, 8), SUMS8(d, 16), SUMS8(d, 24), SUMS8(d, 32), SUMS8(d, 40),              \
        SUMS8(d, 48), SUMS8(d, 56)
#define NAMES32                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define NAMES64                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// 64 columns of the product.
__device__ __forceinline__ void multiplyShared(float (&d)[32], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " NAMES32
                 ", %32, %33, accumulate, 1, 1, 0, 0;\n"
                 "}" : SUMS32(d) : "l"(a), "l"(b), "r"(accumulate));
}

// 128 columns of the product.
__device__ __forceinline__ void multiplyShared(float (&d)[64], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES64
                 ", %64, %65, accumulate, 1, 1, 0, 0;\n"
                 "}" : SUMS64(d) : "l"(a), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void multiplyRegisters(float (&d)[64], const unsigned *a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES64
                 ", {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}" : SUMS64(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
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

// Writes a warp's 16 rows of results, from `row` of all tokens on; `rows` are left of the sequence.
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

// Whether any thread of a consumer says so; named barriers 1 to 3.
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

// A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
// N scores a lane are those of the first 2 * N keys of a block: of all 128, or of 64.

// Scores of the queries at `queries` and of the keys in `slab`.
template <int N> __device__ __forceinline__ void multiplyScores(float (&score)[N], unsigned queries, unsigned slab)
{
    const unsigned long long query = describe(queries, 16);
    const unsigned long long key = describe(slab, 16);
    pin(score);
    fenceProducts();
#pragma unroll
    for (int i = 0; i < 8; ++i)
        multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4),
                       key + (i / 4 * BOX + i % 4 * 32 >> 4), i > 0);
    commitProducts();
    waitProducts<0>();
    pin(score);
}

// Adds the products of 4 * N weights a row and the values in `slab`.
template <int N>
__device__ __forceinline__ void addProducts(float (&result)[64], unsigned (&weights)[N], unsigned slab, bool first)
{
    const unsigned long long value = describe(slab, BOX);
    pin(result);
    pin(weights);
    fenceProducts();
#pragma unroll
    for (int i = 0; i < N / 4; ++i)
        multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4), !first || i > 0);
    commitProducts();
    waitProducts<0>();
    pin(result);
    pin(weights);
}

// `seen`: how many keys of this block on the warp's first query attends to; may be negative.
template <int N> __device__ __forceinline__ void mask(float (&score)[N], int seen, int lane)
{
    const int limit = seen + lane / 4 - lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (i / 4 * 8 + i % 2 >= limit + i / 2 % 2 * 8)
            score[i] = __int_as_float(0xff800000);
}

// Weights of the scores, and `part`, their sums of this lane's columns.
template <int N>
__device__ __forceinline__ void weigh(const float (&score)[N], unsigned (&weights)[N / 2], const float (&reference)[2],
                                      float (&part)[2], float factor)
{
    float odd[2] = {};
    part[0] = part[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
        const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
        weights[i / 2] = pack(low, high);
        part[i / 2 % 2] += low;
        odd[i / 2 % 2] += high;
    }
    part[0] += odd[0];
    part[1] += odd[1];
}

// The largest score of a row, in powers of two.
template <int N> __device__ __forceinline__ float topOf(const float (&score)[N], int half, float factor)
{
    float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
    for (int i = 4 + 2 * half; i < N; i += 4) {
        low = fmaxf(low, score[i]);
        high = fmaxf(high, score[i + 1]);
    }
    return quadMax(fmaxf(low, high)) * factor;
}

// Masks the scores of a tile's first block, sets the references and weighs.
template <int N>
__device__ __forceinline__ void weighFirst(float (&score)[N], unsigned (&weights)[N / 2], float (&reference)[2],
                                           float (&part)[2], int seen, int lane, float factor)
{
    mask(score, seen, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half)
        reference[half] = fmaxf(topOf(score, half, factor), -1e30f); // finite: a row may see nothing yet
    weigh(score, weights, reference, part, factor);
}

// The index-th tile; false past the last.
__device__ __forceinline__ bool locate(int index, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
{
    int begin = __ldg(cuQ);
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
        const int end = __ldg(cuQ + b + 1), all = (end - begin + BM - 1) / BM;
        if (index < all * H) {
            const int after = index / H; // tiles after it in the sequence
            tile.head = index - after * H;
            tile.row = max(begin, end - (after + 1) * BM);
            tile.rows = end - after * BM - tile.row;
            tile.key = __ldg(cuK + b);
            tile.seen = tile.row + 1 + __ldg(cuK + b + 1) - tile.key - end;
            // One block at least: what is not attended to is masked.
            tile.blocks = max(1, (tile.seen + tile.rows - 1 + BN - 1) / BN);
            return true;
        }
        index -= all * H;
        begin = end;
    }
    return false;
}

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, int KV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];
    __shared__ Tile tiles[8]; // the ones at work
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + CONSUMERS * Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned queriesFull = empty + 8 * STAGES, queriesEmpty = queriesFull + 8 * CONSUMERS;

    const int thread = threadIdx.x, lane = thread % 32;
    const int warpgroup = __shfl_sync(~0u, thread / 128, 0); // says that it is the same in the whole warp
    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS); // their warps
        }
        for (int i = 0; i < CONSUMERS; ++i) {
            initBarrier(queriesFull + 8 * i, 1);
            initBarrier(queriesEmpty + 8 * i, 4);
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
    if (warpgroup == 0) {
        giveRegisters<32>();
        const int group = H / KV; // heads that share one of k and v
        Tile tile{};
        if (thread == 0) {
            const auto fetch = [&](const TensorMap &map, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1); // passes at first
                copyTile(ring + stage * SLAB_BYTES, map, BN, tile.head / group, row, full + 8 * stage);
                advance();
            };
            for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x)
                for (int block = tile.blocks - 1; block >= 0; --block) {
                    fetch(mapK, tile.key + block * BN);
                    fetch(mapV, tile.key + block * BN);
                }
        } else if (thread == 32) {
            bool more = true;
            for (int n = 0, t = blockIdx.x; more; ++n, t += gridDim.x) {
                more = locate(t, cuQ, cuK, B, H, tile);
                for (int i = 0; i < CONSUMERS; ++i) {
                    // The first consumer is done with the queries of the tile before. The others are less than a ring of
                    // slabs behind, which is no more than four tiles, and do not read the place that is written.
                    waitPhase(queriesEmpty + 8 * i, n % 2 ^ 1);
                    if (i == 0)
                        tiles[n % 8] = Tile{tile.head, tile.row, tile.rows, tile.key, more ? tile.blocks : 0, tile.seen};
                    if (more)
                        copyTile(queries + i * Q_BYTES, mapQ, 64, tile.head, tile.row + 64 * i, queriesFull + 8 * i);
                    else
                        arrive(queriesFull + 8 * i);
                }
            }
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1, warpRow = consumer * 64 + thread / 32 % 4 * 16;
        const float factor = scale * 1.4426950408889634f; // to powers of two

        float result[64], reference[2], sum[2], part[2];
        // This warp is done with a slab.
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };
        // The first block of a tile: masked, it sets the references, and nothing has been added up before.
        // `few`: no query of this consumer attends to any but the first 64 keys of the block; the others are left out.
        const auto begin = [&](int seen, bool last, bool few) {
            waitPhase(full + 8 * stage, phase);
            if (few) {
                float score[32];
                unsigned weights[16];
                multiplyScores(score, queries + consumer * Q_BYTES, ring + stage * SLAB_BYTES);
                if (lane == 0 && last)
                    arrive(queriesEmpty + 8 * consumer);
                leave();
                weighFirst(score, weights, reference, part, seen, lane, factor);
                waitPhase(full + 8 * stage, phase);
                addProducts(result, weights, ring + stage * SLAB_BYTES, true);
            } else {
                float score[64];
                unsigned weights[32];
                multiplyScores(score, queries + consumer * Q_BYTES, ring + stage * SLAB_BYTES);
                if (lane == 0 && last)
                    arrive(queriesEmpty + 8 * consumer);
                leave();
                weighFirst(score, weights, reference, part, seen, lane, factor);
                waitPhase(full + 8 * stage, phase);
                addProducts(result, weights, ring + stage * SLAB_BYTES, true);
            }
            sum[0] = part[0];
            sum[1] = part[1];
            leave();
        };
        // The references rise to the tops of the scores, and what was added up before shrinks.
        const auto raise = [&](const float (&score)[64]) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float top = fmaxf(reference[half], topOf(score, half, factor));
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

#pragma unroll 1
        for (int n = 0;; ++n) {
            waitPhase(queriesFull + 8 * consumer, n % 2);
            const Tile &tile = tiles[n % 8];
            int block = tile.blocks;
            if (block == 0)
                break;
            // Of what this consumer's queries attend to: keys of the first one, of the last one, and blocks.
            const int least = tile.seen + consumer * 64, most = min(least + 63, tile.seen + tile.rows - 1);
            const int mine = consumer * 64 >= tile.rows ? 0 : max(1, (most + BN - 1) / BN);
            if (mine == 0 && lane == 0)
                arrive(queriesEmpty + 8 * consumer);
            for (; block > mine; --block)
                for (int i = 0; i < 2; ++i) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
            if (mine == 0)
                continue;
            --block;
            begin(tile.seen + warpRow - block * BN, block == 0, most - block * BN <= BN / 2);
#pragma unroll 1
            for (--block; block >= 0; --block) {
                waitPhase(full + 8 * stage, phase);
                bool careful = least < (block + 1) * BN; // the diagonal is here, too
                float score[64];
                unsigned weights[32];
#pragma unroll 1
                for (;;) {
                    multiplyScores(score, queries + consumer * Q_BYTES, ring + stage * SLAB_BYTES);
                    if (careful) {
                        mask(score, tile.seen + warpRow - block * BN, lane);
                        raise(score);
                    }
                    weigh(score, weights, reference, part, factor);
                    careful = anyOfWarpgroup(!(fmaxf(part[0], part[1]) <= 8192.0f), consumer);
                    if (!careful)
                        break;
                }
                sum[0] += part[0];
                sum[1] += part[1];
                if (lane == 0 && block == 0)
                    arrive(queriesEmpty + 8 * consumer);
                leave();

                waitPhase(full + 8 * stage, phase);
                addProducts(result, weights, ring + stage * SLAB_BYTES, false);
                leave();
            }
            store(result, sum[0], sum[1], out, tile.row + warpRow, tile.rows - warpRow, tile.head, H, lane);
        }
    }
}
