/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 2
values = [2, 3]

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
shared = "(128 + STAGES * 2 * 128) * 128 * 2 + 1024"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// Both products move to wgmma: a warpgroup multiplies 64 queries with 128 keys straight from swizzled shared memory, weights come from
// registers. Two warpgroups do so, the consumers; one thread of a third, the producer, asks the copy engine (TMA) for the next boxes of
// keys and values meanwhile, which lays them out as wgmma wants them and reports to an mbarrier a tile. The consumers report to another
// one when they are done with a tile, so that the producer can fill it again. Rows past the end of a sequence are the next one's: they
// get no weight, and are not stored.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 128;
constexpr int CONSUMERS = 256, PRODUCERS = 128; // threads: the consumers come first
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

extern "C" __global__ __launch_bounds__(CONSUMERS + PRODUCERS, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                                                 const __grid_constant__ TensorMap mapK,
                                                                                 const __grid_constant__ TensorMap mapV,
                                                                                 const int *cuQ, const int *cuK, __half *out,
                                                                                 int B, int H, int KV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[4 * STAGES + 1];
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + 2 * Q_BOX;

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
    const int first = cuK[sequence], last = cuK[sequence + 1];
    const int blocks = (last - max(0, rows - BM) - first + BN - 1) / BN; // as far as any row of the tile attends to; may be negative

    // Full: a tile has arrived. Empty: each warp of the consumers is done with it.
    const unsigned keysFull = sharedAddress(barriers), valuesFull = keysFull + 8 * STAGES, queriesFull = valuesFull + 8 * STAGES;
    const unsigned keysEmpty = queriesFull + 8, valuesEmpty = keysEmpty + 8 * STAGES;
    if (thread == 0) {
        for (int i = 0; i < 2 * STAGES + 1; ++i)
            initBarrier(keysFull + 8 * i, 1);
        for (int i = 0; i < 2 * STAGES; ++i)
            initBarrier(keysEmpty + 8 * i, CONSUMERS / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
    }
    __syncthreads(); // the last one of the whole block: from here on the roles meet at the barriers above

    if (__shfl_sync(~0u, thread / 128, 0) == CONSUMERS / 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (thread == CONSUMERS) {
            const int headKV = head / (H / KV);
            copyTile(queries, mapQ, head, row0, queriesFull);
            for (int block = 0; block < blocks; ++block) {
                const unsigned to = ring + block % STAGES * 2 * SLAB_BYTES, at = 8 * (block % STAGES);
                const unsigned parity = (block / STAGES + 1) % 2; // of the phase before: the first round does not wait
                waitPhase(keysEmpty + at, parity);
                copyTile(to, mapK, headKV, first + block * BN, keysFull + at);
                waitPhase(valuesEmpty + at, parity);
                copyTile(to + SLAB_BYTES, mapV, headKV, first + block * BN, valuesFull + at);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    waitPhase(queriesFull, 0);

    // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
    const unsigned long long query = describe(queries + thread / 128 * 64 * 128, 16);
    float score[64], result[64] = {};
    float largest[2], sum[2] = {};
    largest[0] = largest[1] = -1e30f; // finite: a row may have met no key yet
    for (int block = 0; block < blocks; ++block) {
        const unsigned keys = ring + block % STAGES * 2 * SLAB_BYTES, values = keys + SLAB_BYTES;
        waitPhase(keysFull + 8 * (block % STAGES), block / STAGES % 2);

        const unsigned long long key = describe(keys, 16);
        pin(score);
        fenceProducts();
#pragma unroll
        for (int i = 0; i < 8; ++i)
            multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4), key + (i / 4 * BOX + i % 4 * 32 >> 4), i > 0);
        commitProducts();
        waitProducts<0>();
        pin(score);
        if (lane == 0)
            arrive(keysEmpty + 8 * (block % STAGES));
        __syncwarp();

        // How many keys from this block on the lane's first row attends to; its other row, to 8 more.
        const int limit = last - first - block * BN - (rows - 1 - warpRow - lane / 4);
        if (__any_sync(~0u, limit < BN))
#pragma unroll
            for (int i = 0; i < 64; ++i)
                if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= limit + i / 2 % 2 * 8)
                    score[i] = __int_as_float(0xff800000);

        float shrink[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float top = largest[half];
#pragma unroll
            for (int i = 2 * half; i < 64; i += 4)
                top = fmaxf(top, fmaxf(score[i], score[i + 1]));
            top = quadMax(top);
            shrink[half] = __expf((largest[half] - top) * scale);
            largest[half] = top;
            sum[half] *= shrink[half];
        }
#pragma unroll
        for (int i = 0; i < 64; ++i) {
            score[i] = __expf((score[i] - largest[i / 2 % 2]) * scale);
            sum[i / 2 % 2] += score[i];
            result[i] *= shrink[i / 2 % 2];
        }
        unsigned weights[32];
#pragma unroll
        for (int i = 0; i < 32; ++i)
            weights[i] = pack(score[2 * i], score[2 * i + 1]);

        waitPhase(valuesFull + 8 * (block % STAGES), block / STAGES % 2);
        const unsigned long long value = describe(values, BOX);
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
        if (lane == 0)
            arrive(valuesEmpty + 8 * (block % STAGES));
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
                    pack(result[4 * j + 2 * half] * inverse, result[4 * j + 2 * half + 1] * inverse);
    }
}
