/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "(128 + 2 * 2 * 128) * 128 * 2 + 1024 + 128"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros; D is 128.
//
// A tile walks only as far as its last query attends to: the blocks of keys above the diagonal, nearly half of them, are neither copied
// nor multiplied; and a warp masks only the blocks that its own diagonal goes through.
//
// A warpgroup owns 64 of 128 queries and keeps its scores and its results in registers (wgmma): queries, keys and values are read straight
// from swizzled shared memory, weights go to the second product in registers. TMA copies keys and values, 128 of them, a block ahead.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 128;
constexpr unsigned BOX_BYTES = 128 * 64 * 2;       // 128 rows of half of D, 128 bytes each, swizzled
constexpr unsigned TILE_BYTES = D / 64 * BOX_BYTES; // of queries, keys or values alike

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initialize(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void waitFor(unsigned barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "WAIT_AGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra WAIT_DONE;\n"
                 "bra WAIT_AGAIN;\n"
                 "WAIT_DONE:\n"
                 "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

// One thread: 128 rows of a head from `token` on, as two boxes; rows past the tensor's end are zeros.
__device__ __forceinline__ void copyTile(unsigned to, const TensorMap &map, int head, int token, unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(TILE_BYTES) : "memory");
#pragma unroll
    for (int box = 0; box < D / 64; ++box)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
                     "r"(to + box * BOX_BYTES), "l"(reinterpret_cast<unsigned long long>(&map)),
                     "r"(64 * box), "r"(head), "r"(token), "r"(barrier) : "memory");
}

// One warp: the same, when all warps have released the place.
__device__ __forceinline__ void copyAhead(unsigned to, const TensorMap &map, int head, int token, unsigned full, unsigned empty,
                                          unsigned parity, int lane)
{
    waitFor(empty, parity);
    if (lane == 0)
        copyTile(to, map, head, token, full);
}

// A wgmma operand with 128-byte swizzle: eight rows take 1024 bytes; `leading` is the step from 64 columns to the next 64 where
// these are the rows of the product (values), and without meaning where they are its depth (queries, keys).
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading)
{
    return static_cast<unsigned long long>((address >> 4) & 0x3fffu) | static_cast<unsigned long long>(leading >> 4) << 16 |
           static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 62;
}

#define ACCUMULATORS                                                                                                                     \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                                   \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                                   \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define FOUR(d, j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define SIXTEEN(d, j) FOUR(d, j), FOUR(d, j + 1), FOUR(d, j + 2), FOUR(d, j + 3)
#define ALL(d) SIXTEEN(d, 0), SIXTEEN(d, 4), SIXTEEN(d, 8), SIXTEEN(d, 12)

// 64 × 128 += 64 × 16 · 16 × 128, both operands as rows along the depth.
__device__ __forceinline__ void multiplyShared(float (&d)[16][4], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACCUMULATORS ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ALL(d) : "l"(a), "l"(b), "r"(accumulate));
}

// The same with the first operand in registers and the second transposed: its rows are the depth.
__device__ __forceinline__ void multiplyRegisters(float (&d)[16][4], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACCUMULATORS ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ALL(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

__device__ __forceinline__ void beginProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void finishProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// No code: keeps what computes or uses these registers on its side of the products.
template <int N>
__device__ __forceinline__ void settle(float (&x)[N][4])
{
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("" : "+f"(x[j][i])::"memory");
}

template <int N>
__device__ __forceinline__ void settle(unsigned (&x)[N][4])
{
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("" : "+r"(x[j][i])::"memory");
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

extern "C" __global__ __launch_bounds__(256, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ uint4 tiles[];
    // Queries, two stages of keys, two of values; then the barriers.
    const unsigned queries = (sharedAddress(tiles) + 1023u) & ~1023u;
    const unsigned keys = queries + TILE_BYTES, values = keys + 2 * TILE_BYTES;
    const unsigned fullQueries = values + 2 * TILE_BYTES;
    const unsigned fullKeys = fullQueries + 8, fullValues = fullKeys + 16;
    const unsigned emptyKeys = fullValues + 16, emptyValues = emptyKeys + 16;

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
    const int head = blockIdx.y, thread = threadIdx.x, lane = thread % 32, warpRow = thread / 32 * 16;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int first = cuK[sequence];
    const int last = cuK[sequence + 1], end = last - max(0, rows - BM); // what any row of the tile attends to
    const int blocks = end > first ? (end - first + BN - 1) / BN : 0;

    if (thread == 0) {
        initialize(fullQueries, 1);
#pragma unroll
        for (int stage = 0; stage < 2; ++stage) {
            initialize(fullKeys + 8 * stage, 1);
            initialize(fullValues + 8 * stage, 1);
            initialize(emptyKeys + 8 * stage, 8); // warps
            initialize(emptyValues + 8 * stage, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        copyTile(queries, mapQ, head, row0, fullQueries);
        if (blocks > 0) {
            copyTile(keys, mapK, head, first, fullKeys);
            copyTile(values, mapV, head, first, fullValues);
        }
    }
    __syncthreads();
    waitFor(fullQueries, 0); // even if there are no keys: no copy may outlive the block
    const unsigned long long queryTile = describe(queries + warp / 4 * (64 * 128), 16);

    // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
    float result[D / 8][4] = {};
    float largest[2], sum[2] = {};
    largest[0] = largest[1] = -1e30f; // finite: a row may have met no key yet
    for (int block = 0; block < blocks; ++block) {
        const int key0 = first + block * BN;
        const unsigned stage = block % 2, parity = block / 2 % 2;
        const unsigned next = block + 1, nextStage = next % 2, nextParity = next / 2 % 2 ^ 1;
        const bool copies = warp == 0 && block + 1 < blocks;

        if (copies)
            copyAhead(keys + nextStage * TILE_BYTES, mapK, head, key0 + BN, fullKeys + 8 * nextStage, emptyKeys + 8 * nextStage,
                      nextParity, lane);
        __syncwarp();

        float score[BN / 8][4]; // the first product overwrites it
        const unsigned long long keyTile = describe(keys + stage * TILE_BYTES, 16);
        waitFor(fullKeys + 8 * stage, parity);
        settle(score);
        beginProducts();
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
            const unsigned step = d / 4 * (BOX_BYTES >> 4) + d % 4 * (32 >> 4);
            multiplyShared(score, queryTile + step, keyTile + step, d > 0);
        }
        finishProducts();
        settle(score);
        if (lane == 0)
            arrive(emptyKeys + 8 * stage);
        __syncwarp();

        // How many keys from this block on the lane's first row attends to; its other row, to 8 more.
        const int limit = last - key0 - (rows - 1 - warpRow - lane / 4);
        if (__any_sync(~0u, limit < BN))
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (8 * j + lane % 4 * 2 + i % 2 >= limit + i / 2 * 8)
                        score[j][i] = __int_as_float(0xff800000);

        float shrink[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float top = largest[half];
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
                top = fmaxf(top, fmaxf(score[j][2 * half], score[j][2 * half + 1]));
            top = quadMax(top);
            shrink[half] = __expf((largest[half] - top) * scale);
            largest[half] = top;
            sum[half] *= shrink[half];
        }
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                score[j][i] = __expf((score[j][i] - largest[i / 2]) * scale);
                sum[i / 2] += score[j][i];
            }
#pragma unroll
        for (int j = 0; j < D / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                result[j][i] *= shrink[i / 2];

        unsigned weights[BN / 16][4];
#pragma unroll
        for (int key = 0; key < BN / 16; ++key) {
            weights[key][0] = pack(score[2 * key][0], score[2 * key][1]);
            weights[key][1] = pack(score[2 * key][2], score[2 * key][3]);
            weights[key][2] = pack(score[2 * key + 1][0], score[2 * key + 1][1]);
            weights[key][3] = pack(score[2 * key + 1][2], score[2 * key + 1][3]);
        }

        if (copies)
            copyAhead(values + nextStage * TILE_BYTES, mapV, head, key0 + BN, fullValues + 8 * nextStage, emptyValues + 8 * nextStage,
                      nextParity, lane);
        __syncwarp();

        const unsigned long long valueTile = describe(values + stage * TILE_BYTES, BOX_BYTES);
        waitFor(fullValues + 8 * stage, parity);
        settle(weights);
        settle(result);
        beginProducts();
#pragma unroll
        for (int key = 0; key < BN / 16; ++key)
            multiplyRegisters(result, weights[key], valueTile + key * (16 * 128 >> 4));
        finishProducts();
        settle(result);
        settle(weights);
        if (lane == 0)
            arrive(emptyValues + 8 * stage);
        __syncwarp();
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
                    pack(result[j][2 * half] * inverse, result[j][2 * half + 1] * inverse);
    }
}
