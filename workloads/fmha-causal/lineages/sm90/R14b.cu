/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 5
values = [4, 5]

[[tunable]]
name = "SECTION"
default = 32
values = [2, 4, 8, 16, 32, 64]

[[workspace]]
name = "taken"
dtype = "i32"
shape = [1]
init = "zero"

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
shared = "(256 + STAGES * 128) * 128 * 2 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "taken", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros; D is 128.
//
// Tiles come in sections of heads: the longest of 32 heads first, down to their shortest, and then those of the next 32, whose keys and values
// are 32 MiB of 2048 tokens a head. So they are fetched from memory once and stay in the L2 cache while the section lasts. This is sound
// only with the counter: rounds of the grid would fall in step with the sections.
//
// Three consumer warpgroups of 64 queries walk from the diagonal backwards.
//
// Other than in the state before, weights are added up in pairs as they are packed (half the additions), the products of the first half
// of a block's weights run while the second half is computed, and a warp whose sums are too large makes its scores again for itself,
// by mma.sync: no block needs a vote of the warpgroup. The tensor cores wait for fewer instructions.
// Queries have four places, one more than there are consumers, and go round them: a consumer's next queries are asked for when the one
// before it is done with its own, not when it is itself, so that they are there at once when a tile (of 9 blocks on average) ends.

#include <cuda_fp16.h>

constexpr int D = 128, CONSUMERS = 3, PLACES = 4, BM = 64 * CONSUMERS, BN = 128;
constexpr unsigned Q_BOX = 64 * 128, BOX = BN * 128; // boxes of 64 columns
constexpr unsigned Q_BYTES = 2 * Q_BOX, SLAB_BYTES = 2 * BOX;
constexpr float LIMIT = 16384.0f; // of a lane's weights in half a block; f16 ends at 65504

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

// Half as many columns.
__device__ __forceinline__ void multiplyHalf(float (&d)[32], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
                 ", %32, %33, accumulate, 1, 1, 0, 0;\n"
                 "}" : SUMS8(d, 0), SUMS8(d, 8), SUMS8(d, 16), SUMS8(d, 24) : "l"(a), "l"(b), "r"(accumulate));
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

template <int FROM, int TO, int N> __device__ __forceinline__ void pinWords(unsigned (&x)[N])
{
#pragma unroll
    for (int i = FROM; i < TO; ++i)
        asm volatile("" : "+r"(x[i]) :: "memory");
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

// Scores of as many keys of a slab as there is room for: 128, or the first 64.
template <int N>
__device__ __forceinline__ void multiplyScores(float (&score)[N], unsigned queries, unsigned slab)
{
    const unsigned long long query = describe(queries, 16), key = describe(slab, 16);
    pin(score);
    fenceProducts();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const unsigned long long a = query + (i / 4 * Q_BOX + i % 4 * 32 >> 4);
        const unsigned long long b = key + (i / 4 * BOX + i % 4 * 32 >> 4);
        if constexpr (N == 32)
            multiplyHalf(score, a, b, i > 0);
        else
            multiplyShared(score, a, b, i > 0);
    }
    commitProducts();
    waitProducts<0>();
    pin(score);
}

// Starts the products of the weights FROM to TO (of four words each, 16 keys) and of the values in a slab.
// `first`: nothing has been added up before.
template <int FROM, int TO, int N>
__device__ __forceinline__ void startProducts(float (&result)[64], unsigned (&weights)[N], unsigned slab, bool first)
{
    const unsigned long long value = describe(slab, BOX);
    pin(result);
    pinWords<4 * FROM, 4 * TO>(weights);
    fenceProducts();
#pragma unroll
    for (int i = FROM; i < TO; ++i)
        multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4), !first || i > FROM);
    commitProducts();
}

// Of scores FROM to TO. `limit`: the first key of the block that the lane's first row does not attend to, less the lane's first key.
template <int FROM, int TO, int N>
__device__ __forceinline__ void mask(float (&score)[N], int limit)
{
#pragma unroll
    for (int i = FROM; i < TO; ++i)
        if (i / 4 * 8 + i % 2 >= limit + i / 2 % 2 * 8)
            score[i] = __int_as_float(0xff800000);
}

// The largest of the scores FROM to TO of one of the lane's two rows.
template <int FROM, int TO, int N>
__device__ __forceinline__ float topOf(const float (&score)[N], int half)
{
    float low = score[FROM + 2 * half], high = score[FROM + 2 * half + 1];
#pragma unroll
    for (int i = FROM + 4 + 2 * half; i < TO; i += 4) {
        low = fmaxf(low, score[i]);
        high = fmaxf(high, score[i + 1]);
    }
    return quadMax(fmaxf(low, high));
}

// Weights of the scores FROM to TO, packed in pairs, and `part`, their sums of this lane's columns.
template <int FROM, int TO, int N>
__device__ __forceinline__ void weigh(const float (&score)[N], unsigned (&weights)[N / 2], const float (&reference)[2],
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

__device__ __forceinline__ bool tooLarge(const float (&part)[2])
{
    return __any_sync(~0u, !(fmaxf(part[0], part[1]) <= LIMIT));
}

__device__ __forceinline__ void loadMatrices(unsigned (&x)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address) : "memory");
}

// The scores FROM to TO of this warp's 16 rows (of 64 from `query`, the first is `row`) and of the keys of a slab, as
// wgmma has made them, by the warp alone.
template <int FROM, int TO>
__device__ __forceinline__ void scoresAgain(float (&score)[64], unsigned query, int row, unsigned slab, int lane)
{
#pragma unroll
    for (int i = FROM; i < TO; ++i)
        score[i] = 0.0f;
    const unsigned r = lane % 8;
    const unsigned x = query + (row + r + (lane & 8)) * 128; // matrices: rows, rows + 8, then the next 8 columns
    const unsigned y = slab + (r + (lane & 16) / 2) * 128;   // matrices: 8 columns, the next 8, then keys + 8
#pragma unroll 1
    for (unsigned k = 0; k < 8; ++k) {
        unsigned a[4];
        loadMatrices(a, x + k / 4 * Q_BOX + ((k % 4 * 2 + lane / 16 ^ r) << 4));
        const unsigned column = k / 4 * BOX + ((k % 4 * 2 + lane / 8 % 2 ^ r) << 4);
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
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float top = fmaxf(reference[half], topOf<FROM, TO>(score, half) * factor);
        shrink[half] = power(reference[half] - top);
        reference[half] = top;
        sum[half] *= shrink[half];
    }
#pragma unroll
    for (int i = 0; i < 64; ++i)
        result[i] *= shrink[i / 2 % 2];
}

// The index-th tile; false past the last.
__device__ __forceinline__ bool locate(int index, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
{
    int begin = __ldg(cuQ);
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
        const int end = __ldg(cuQ + b + 1), all = (end - begin + BM - 1) / BM;
        if (index < all * H) {
            const int section = index / (SECTION * all), left = index - section * SECTION * all;
            const int heads = min(SECTION, H - section * SECTION), after = left / heads; // tiles after it in the sequence
            tile.head = section * SECTION + left - after * heads;
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
                                                               int *taken, int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2 * PLACES + 8];
    __shared__ int order[8]; // numbers of the tiles at work
    __shared__ Tile tiles[8]; // the ones at work
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + PLACES * Q_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned queriesFull = empty + 8 * STAGES, queriesEmpty = queriesFull + 8 * PLACES;
    const unsigned ordered = queriesEmpty + 8 * PLACES;

    const int thread = threadIdx.x, lane = thread % 32;
    const int warpgroup = __shfl_sync(~0u, thread / 128, 0); // says that it is the same in the whole warp
    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS); // their warps
        }
        for (int i = 0; i < PLACES; ++i) {
            initBarrier(queriesFull + 8 * i, 1);
            initBarrier(queriesEmpty + 8 * i, 4);
        }
        for (int i = 0; i < 8; ++i)
            initBarrier(ordered + 8 * i, 1);
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
        Tile tile{};
        if (thread == 0) {
            const auto fetch = [&](const TensorMap &map, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1); // passes at first
                copyTile(ring + stage * SLAB_BYTES, map, BN, tile.head, row, full + 8 * stage);
                advance();
            };
            int t = blockIdx.x;
            for (int n = 0;; ++n) {
                // A ring of slabs is no more than four tiles ahead of the queries: the place is free.
                order[n % 8] = t;
                arrive(ordered + 8 * (n % 8));
                if (!locate(t, cuQ, cuK, B, H, tile))
                    break;
                t = gridDim.x + atomicAdd(taken, 1); // answered while the slabs of this one are fetched
                for (int block = tile.blocks - 1; block >= 0; --block) {
                    fetch(mapK, tile.key + block * BN);
                    fetch(mapV, tile.key + block * BN);
                }
            }
        } else if (thread == 32) {
            bool more = true;
            for (int n = 0; more; ++n) {
                waitPhase(ordered + 8 * (n % 8), n / 8 % 2);
                more = locate(order[n % 8], cuQ, cuK, B, H, tile);
                for (int i = 0; i < CONSUMERS; ++i) {
                    // Queries go round four places, one more than there are consumers: these take the place of those of three consumers and
                    // one more before. When a place is free for the first of them, all consumers are done with the queries of the tile before
                    // the last, so that none reads the description that is written.
                    const int turn = CONSUMERS * n + i, place = turn % PLACES;
                    waitPhase(queriesEmpty + 8 * place, turn / PLACES % 2 ^ 1);
                    if (i == 0)
                        tiles[n % 8] = Tile{tile.head, tile.row, tile.rows, tile.key, more ? tile.blocks : 0, tile.seen};
                    if (more)
                        copyTile(queries + place * Q_BYTES, mapQ, 64, tile.head, tile.row + 64 * i, queriesFull + 8 * place);
                    else
                        arrive(queriesFull + 8 * place);
                }
            }
        }
    } else {
        takeRegisters<160>();
        const int consumer = warpgroup - 1, warpRow = consumer * 64 + thread / 32 % 4 * 16;
        const float factor = scale * 1.4426950408889634f; // to powers of two

        // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
        float result[64], reference[2], sum[2], part[2];
        // This warp is done with a slab.
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };
        // Of the first query of the warp, from a block on, to what mask() takes.
        const auto limit = [&](int seen) { return seen + lane / 4 - lane % 4 * 2; };

#pragma unroll 1
        for (int n = 0;; ++n) {
            const int turn = CONSUMERS * n + consumer, place = turn % PLACES;
            const unsigned myQueries = queries + place * Q_BYTES;
            waitPhase(queriesFull + 8 * place, turn / PLACES % 2);
            const Tile &tile = tiles[n % 8];
            int block = tile.blocks;
            if (block == 0)
                break;
            // Of what this consumer's queries attend to: keys of the first one, of the last one, and blocks.
            const int least = tile.seen + consumer * 64, most = min(least + 63, tile.seen + tile.rows - 1);
            const int mine = consumer * 64 >= tile.rows ? 0 : max(1, (most + BN - 1) / BN);
            if (mine == 0 && lane == 0)
                arrive(queriesEmpty + 8 * place);
            for (; block > mine; --block)
                for (int i = 0; i < 2; ++i) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
            if (mine == 0)
                continue;
            --block;
            // The first block is masked, it sets the references, and nothing has been added up before.
            if (most - block * BN <= BN / 2) {
                float score[32];
                unsigned weights[16];
                waitPhase(full + 8 * stage, phase);
                multiplyScores(score, myQueries, ring + stage * SLAB_BYTES);
                if (lane == 0 && block == 0)
                    arrive(queriesEmpty + 8 * place);
                leave();
                mask<0, 32>(score, limit(tile.seen + warpRow - block * BN));
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    reference[half] = fmaxf(topOf<0, 32>(score, half) * factor, -1e30f); // finite: a row may see nothing yet
                weigh<0, 32>(score, weights, reference, factor, sum);
                waitPhase(full + 8 * stage, phase);
                startProducts<0, 4>(result, weights, ring + stage * SLAB_BYTES, true);
                waitProducts<0>();
                pin(result);
                pinWords<0, 16>(weights);
                leave();
            } else {
                float score[64];
                unsigned weights[32];
                waitPhase(full + 8 * stage, phase);
                multiplyScores(score, myQueries, ring + stage * SLAB_BYTES);
                if (lane == 0 && block == 0)
                    arrive(queriesEmpty + 8 * place);
                leave();
                mask<0, 64>(score, limit(tile.seen + warpRow - block * BN));
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    reference[half] = fmaxf(topOf<0, 64>(score, half) * factor, -1e30f); // finite: a row may see nothing yet
                weigh<0, 32>(score, weights, reference, factor, sum);
                waitPhase(full + 8 * stage, phase);
                startProducts<0, 4>(result, weights, ring + stage * SLAB_BYTES, true);
                weigh<32, 64>(score, weights, reference, factor, part);
                sum[0] += part[0];
                sum[1] += part[1];
                startProducts<4, 8>(result, weights, ring + stage * SLAB_BYTES, false);
                waitProducts<0>();
                pin(result);
                pinWords<0, 32>(weights);
                leave();
            }
#pragma unroll 1
            for (--block; block >= 0; --block) {
                float score[64];
                unsigned weights[32];
                waitPhase(full + 8 * stage, phase);
                const unsigned slab = ring + stage * SLAB_BYTES;
                multiplyScores(score, myQueries, slab);
                if (least < (block + 1) * BN) // the diagonal is here, too
                    mask<0, 64>(score, limit(tile.seen + warpRow - block * BN));
                weigh<0, 32>(score, weights, reference, factor, part);
                if (tooLarge(part)) {
                    scoresAgain<0, 32>(score, myQueries, warpRow - consumer * 64, slab, lane);
                    mask<0, 32>(score, limit(tile.seen + warpRow - block * BN));
                    raise<0, 32>(score, reference, sum, result, factor);
                    weigh<0, 32>(score, weights, reference, factor, part);
                }
                sum[0] += part[0];
                sum[1] += part[1];

                // Products of the first half; the values are in the next slab.
                const int next = stage + 1 == STAGES ? 0 : stage + 1;
                waitPhase(full + 8 * next, next == 0 ? phase ^ 1 : phase);
                startProducts<0, 4>(result, weights, ring + next * SLAB_BYTES, false);

                weigh<32, 64>(score, weights, reference, factor, part);
                if (tooLarge(part)) {
                    waitProducts<0>();
                    pin(result);
                    scoresAgain<32, 64>(score, myQueries, warpRow - consumer * 64, slab, lane);
                    mask<32, 64>(score, limit(tile.seen + warpRow - block * BN));
                    raise<32, 64>(score, reference, sum, result, factor);
                    weigh<32, 64>(score, weights, reference, factor, part);
                }
                sum[0] += part[0];
                sum[1] += part[1];
                if (lane == 0 && block == 0)
                    arrive(queriesEmpty + 8 * place); // the last use of the queries
                leave();
                startProducts<4, 8>(result, weights, ring + stage * SLAB_BYTES, false);
                waitProducts<0>();
                pin(result);
                pinWords<0, 32>(weights);
                leave();
            }
            store(result, sum[0], sum[1], out, tile.row + warpRow, tile.rows - warpRow, tile.head, H, lane);
        }
    }
}
