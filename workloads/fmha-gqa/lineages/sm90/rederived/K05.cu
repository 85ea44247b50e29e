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
shared = "(128 + 4 * 128) * 128 * 2 + 1024 + 64"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// A tile walks only as far as its last query attends to: the blocks of keys above the diagonal, nearly half of them, are neither copied
// nor multiplied; and a warp masks only the blocks that its own diagonal goes through.
//
// A warpgroup owns 64 of 128 queries and multiplies them by 128 keys at a time with wgmma, straight from the swizzled boxes that TMA
// copied; scores and results are in registers, and weights go to the second product there. There are two buffers of keys and two of
// values: while one block is worked on, the next one is copied.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 128;
constexpr unsigned BOX = 128 * 128;   // bytes: 128 rows of 64 numbers
constexpr unsigned TILE = D / 64 * BOX; // two boxes, the left and the right half of the rows
constexpr unsigned WARPS = 8;

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitFor(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
    __syncwarp();
}

// 128 rows of a head. Rows past the tensor's are zeros; those past the sequence's are masked, or not written.
__device__ __forceinline__ void copyTile(unsigned to, const TensorMap &map, unsigned barrier, int head, int row)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(TILE) : "memory");
#pragma unroll
    for (int i = 0; i < D / 64; ++i)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                     :: "r"(to + i * BOX), "l"(reinterpret_cast<unsigned long long>(&map)), "r"(i * 64), "r"(head), "r"(row),
                        "r"(barrier) : "memory");
}

// The warp is done with a buffer; the last of the warps to say so has it filled anew.
__device__ __forceinline__ void renew(unsigned counter, unsigned buffer, const TensorMap &map, unsigned barrier, int head, int row,
                                      int lane)
{
    if (lane == 0) {
        unsigned before;
        asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], 1;" : "=r"(before) : "r"(counter) : "memory");
        if (before % WARPS == WARPS - 1)
            copyTile(buffer, map, barrier, head, row);
    }
    __syncwarp();
}

// Of a matrix in boxes with 128-byte swizzle. Eight rows take 1024 bytes; `leading`: from box to box, where the rows are those of the
// inner dimension of the product.
__device__ __forceinline__ unsigned long long descriptor(unsigned address, unsigned leading)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16
         | (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
}

#define FOUR(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define ALL FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7), \
            FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15)
#define NAMES "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
              "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
              "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
              "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// d (+)= a · bᵀ, both in shared memory, 64 × 16 and 128 × 16.
__device__ __forceinline__ void multiply(float (&d)[16][4], unsigned long long a, unsigned long long b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}"
                 : ALL : "l"(a), "l"(b), "r"(add));
}

// d += a · b, a in registers, 64 × 16, b in shared memory, 16 × 128.
__device__ __forceinline__ void multiply(float (&d)[16][4], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " NAMES ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}"
                 : ALL : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

#undef NAMES
#undef ALL
#undef FOUR

// Keeps the compiler from moving what is done with registers across the start or the end of a product.
template <int N>
__device__ __forceinline__ void pin(float (&x)[N][4])
{
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("" : "+f"(x[j][i]) :: "memory");
}

template <int N>
__device__ __forceinline__ void pin(unsigned (&x)[N][4])
{
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("" : "+r"(x[j][i]) :: "memory");
}

__device__ __forceinline__ void beginProduct()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProduct()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void endProduct()
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
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
                                                               int B, int H, int KV, float scale)
{
    extern __shared__ uint4 raw[];
    // Swizzled boxes want an address that 1024 divides.
    const unsigned queries = (sharedAddress(raw) + 1023u) & ~1023u, keys = queries + TILE, values = keys + 2 * TILE;
    const unsigned queriesFull = values + 2 * TILE, keysFull = queriesFull + 8, valuesFull = keysFull + 16;
    const unsigned keysDone = valuesFull + 16, valuesDone = keysDone + 8;

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
    const int head = blockIdx.y, group = H / KV, thread = threadIdx.x, lane = thread % 32, warpRow = thread / 32 * 16;
    const int headKV = head / group;
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int first = cuK[sequence], last = cuK[sequence + 1];
    const int end = last - max(0, rows - BM); // what any row of the tile attends to
    const int blocks = (max(0, end - first) + BN - 1) / BN;

    if (thread == 0) {
        initBarrier(queriesFull);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            initBarrier(keysFull + 8 * i);
            initBarrier(valuesFull + 8 * i);
            asm volatile("st.shared.u32 [%0], %1;" :: "r"(keysDone + 4 * i), "r"(0) : "memory");
            asm volatile("st.shared.u32 [%0], %1;" :: "r"(valuesDone + 4 * i), "r"(0) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        copyTile(queries, mapQ, queriesFull, head, row0);
        for (int i = 0; i < min(2, blocks); ++i) {
            copyTile(keys + i * TILE, mapK, keysFull + 8 * i, headKV, first + i * BN);
            copyTile(values + i * TILE, mapV, valuesFull + 8 * i, headKV, first + i * BN);
        }
    }
    __syncthreads();
    const unsigned long long query = descriptor(queries + thread / 128 * (64 * 128), 16);
    waitFor(queriesFull, 0);

    // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
    float result[D / 8][4] = {};
    float largest[2], sum[2] = {};
    largest[0] = largest[1] = -1e30f; // finite: a row may have met no key yet
    for (int block = 0; block < blocks; ++block) {
        const int key0 = first + block * BN, stage = block & 1, other = stage ^ 1;
        const unsigned parity = block >> 1 & 1;

        waitFor(keysFull + 8 * stage, parity);
        const unsigned long long key = descriptor(keys + stage * TILE, 16);
        float score[BN / 8][4];
        beginProduct();
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
            const unsigned step = (d / 4 * BOX + d % 4 * 32) >> 4;
            multiply(score, query + step, key + step, d > 0);
        }
        commitProduct();
        // In the shadow of the product: the values of the block before are no longer needed.
        if (block > 0 && block + 1 < blocks)
            renew(valuesDone + 4 * other, values + other * TILE, mapV, valuesFull + 8 * other, headKV, key0 + BN, lane);
        endProduct();
        pin(score);

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
        for (int k = 0; k < BN / 16; ++k) {
            weights[k][0] = pack(score[2 * k][0], score[2 * k][1]);
            weights[k][1] = pack(score[2 * k][2], score[2 * k][3]);
            weights[k][2] = pack(score[2 * k + 1][0], score[2 * k + 1][1]);
            weights[k][3] = pack(score[2 * k + 1][2], score[2 * k + 1][3]);
        }

        waitFor(valuesFull + 8 * stage, parity);
        const unsigned long long value = descriptor(values + stage * TILE, BOX);
        pin(weights);
        pin(result);
        beginProduct();
#pragma unroll
        for (int k = 0; k < BN / 16; ++k)
            multiply(result, weights[k], value + (k * 16 * 128 >> 4));
        commitProduct();
        // In the shadow of the product: the keys of this block are no longer needed.
        if (block + 2 < blocks)
            renew(keysDone + 4 * stage, keys + stage * TILE, mapK, keysFull + 8 * stage, headKV, key0 + 2 * BN, lane);
        endProduct();
        pin(result);
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
