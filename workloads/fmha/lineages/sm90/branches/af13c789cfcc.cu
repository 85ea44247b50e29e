/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 2
values = [2, 3]

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "(128 + STAGES * 2 * 128) * 128 * 2"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Keys and values come by cp.async into a ring of STAGES tiles, one ahead of the products: nobody holds a
// chunk in registers on its way, and the way from device memory is hidden behind the products of the tile
// before. Keys and values are groups of their own, so that scores need not wait for values.
//
// Both products are wgmma's, 64 queries a warpgroup and 128 keys at a time: queries, keys and values are
// read where they lie, in swizzled shared memory; only the weights come from registers.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 128;
constexpr int CHUNKS = D / 8; // of 16 bytes, a row

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// A tile is two slabs of 64 columns, a row of a slab being 128 bytes; there, row r keeps chunk c at place
// c ^ (r % 8), which is wgmma's swizzle of 128 bytes.
template <int ROWS>
__device__ __forceinline__ int place(int row, int chunk)
{
    return (chunk / 8 * ROWS + row) * 8 + (chunk % 8 ^ row % 8);
}

// Starts the copies of a tile as one group. Rows from `rows` on are filled with zeros and not read.
template <int ROWS>
__device__ __forceinline__ void copyTile(uint4 *to, const __half *from, int rows, int H, int thread)
{
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / 256; ++i) {
        const int r = (thread + 256 * i) / CHUNKS, c = thread % CHUNKS;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(sharedAddress(to + place<ROWS>(r, c))),
                        "l"(r < rows ? from + size_t(r) * H * D + c * 8 : from),
                        "r"(r < rows ? 16 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits for copies of this thread, and lets wgmma see them after the next barrier.
template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// wgmma's descriptor of an operand: groups of 8 rows follow each other after 1024 bytes. Where the columns
// are not the summed dimension, the next slab follows after `apart` bytes.
__device__ __forceinline__ unsigned long long describe(const uint4 *tile, unsigned apart)
{
    return (unsigned long long)((sharedAddress(tile) >> 4) & 0x3fff) | ((unsigned long long)(apart >> 4) << 16) |
           ((unsigned long long)(1024 >> 4) << 32) | (1ull << 62);
}

#define FOUR(d, j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define ACCUMULATORS(d) \
    FOUR(d, 0), FOUR(d, 1), FOUR(d, 2), FOUR(d, 3), FOUR(d, 4), FOUR(d, 5), FOUR(d, 6), FOUR(d, 7), \
    FOUR(d, 8), FOUR(d, 9), FOUR(d, 10), FOUR(d, 11), FOUR(d, 12), FOUR(d, 13), FOUR(d, 14), FOUR(d, 15)
#define NAMES \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// What is done to the registers before stays before, what is done after stays after.
__device__ __forceinline__ void hold(float (&d)[16][4])
{
    asm volatile("" : ACCUMULATORS(d) :: "memory");
}

__device__ __forceinline__ void hold(unsigned (&a)[4])
{
    asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]) :: "memory");
}

__device__ __forceinline__ void beginProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void waitProducts(float (&d)[16][4])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    hold(d);
}

// 64 × 16 by 16 × 128, both from shared memory with the summed dimension along the rows.
__device__ __forceinline__ void multiply(float (&d)[16][4], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACCUMULATORS(d)
                 : "l"(a), "l"(b), "r"(accumulate)
                 : "memory");
}

// The same with the first operand in registers, and the second one's summed dimension down the columns.
__device__ __forceinline__ void multiply(float (&d)[16][4], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ACCUMULATORS(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
                 : "memory");
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

extern "C" __global__ __launch_bounds__(256, 1) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(1024) uint4 tiles[];
    uint4 *queries = tiles, *ring = queries + BM * CHUNKS;

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
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int last = cuK[sequence + 1];

    const int first = cuK[sequence], blocks = (last - first + BN - 1) / BN;
    // Keys are part 0 of a stage, values part 1.
    const auto fetch = [&](int block, const __half *from, int part) {
        const int key0 = first + block * BN, left = block < blocks ? last - key0 : 0;
        const size_t offset = block < blocks ? (size_t(key0) * H + head) * D : 0;
        copyTile<BN>(ring + (block % STAGES * 2 + part) * BN * CHUNKS, from + offset, left, H, thread);
    };
    copyTile<BM>(queries, q + (size_t(row0) * H + head) * D, rows, H, thread);
    for (int block = 0; block < STAGES - 1; ++block) {
        fetch(block, k, 0);
        fetch(block, v, 1);
    }
    // The warpgroup's 64 queries; they land before the first keys.
    const int warpgroup = __shfl_sync(~0u, thread / 128, 0);
    const unsigned long long query = describe(queries + warpgroup * 64 * 8, 16);

    // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
    float result[D / 8][4] = {};
    float largest[2], sum[2] = {};
    largest[0] = largest[1] = __int_as_float(0xff800000); // -infinity
    for (int block = 0; block < blocks; ++block) {
        const int key0 = first + block * BN;
        const uint4 *keys = ring + block % STAGES * 2 * BN * CHUNKS, *values = keys + BN * CHUNKS;
        const unsigned long long keysAt = describe(keys, 16), valuesAt = describe(values, BN * 128);
        waitCopies<2 * (STAGES - 1) - 1>();
        // Everyone's keys have landed, and everyone is done with the block before: its stage can be filled.
        __syncthreads();

        // Four steps of 16 columns (32 bytes) a slab. The next copies start behind the products.
        float score[BN / 8][4];
        beginProducts();
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
            multiply(score, query + (d / 4 * (BM * 128 / 16) + d % 4 * 2),
                     keysAt + (d / 4 * (BN * 128 / 16) + d % 4 * 2), d > 0);
            if (d == D / 32 - 1)
                fetch(block + STAGES - 1, k, 0);
        }
        commitProducts();
        fetch(block + STAGES - 1, v, 1);
        waitCopies<2 * (STAGES - 1)>();
        __syncthreads(); // the values have landed, too
        waitProducts(score);

        if (last - key0 < BN)
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (key0 + 8 * j + lane % 4 * 2 + i % 2 >= last)
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
        for (int j = 0; j < D / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                result[j][i] *= shrink[i / 2];
        hold(result);

        // The product of 16 keys starts when their weights are there; those of the next come behind it.
        unsigned weights[BN / 16][4];
#pragma unroll
        for (int key = 0; key < BN / 16; ++key) {
#pragma unroll
            for (int j = 2 * key; j < 2 * key + 2; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    score[j][i] = __expf((score[j][i] - largest[i / 2]) * scale);
                    sum[i / 2] += score[j][i];
                }
            weights[key][0] = pack(score[2 * key][0], score[2 * key][1]);
            weights[key][1] = pack(score[2 * key][2], score[2 * key][3]);
            weights[key][2] = pack(score[2 * key + 1][0], score[2 * key + 1][1]);
            weights[key][3] = pack(score[2 * key + 1][2], score[2 * key + 1][3]);
            hold(weights[key]);
            beginProducts();
            multiply(result, weights[key], valuesAt + key * (16 * 128 / 16));
            commitProducts();
        }
        waitProducts(result);
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
