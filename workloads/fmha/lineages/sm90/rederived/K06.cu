/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 2
values = [2, 3]

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
shared = "(128 + STAGES * 2 * 128) * 128 * 2 + 1024"
args = ["q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A warpgroup multiplies 64 queries at a time with wgmma, straight from the swizzled rows in shared memory:
// no fragments of k or v pass through registers, and that room goes into blocks of 128 keys. Rows of 128
// columns are two boxes of 64 (128 bytes, swizzled as before). The weights are the left operand of the second
// product from registers. One thread copies the boxes of keys and values by TMA, and an mbarrier a tile counts
// their bytes. The queries come by cp.async: what it wrote is fenced before wgmma, which reads through the
// asynchronous proxy.

#include <cuda_fp16.h>

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

constexpr int D = 128, BM = 128, BN = 128;
constexpr unsigned Q_BOX = BM * 128, BOX = BN * 128, SLAB_BYTES = 2 * BOX; // boxes of 64 columns

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Starts the copies of the tile of queries as one group: two boxes of 64 columns, in which row r keeps chunk c at
// place c ^ (r % 8). Rows from `rows` on are filled with zeros and not read.
__device__ __forceinline__ void copyTile(unsigned to, const __half *from, int rows, int H, int thread)
{
    const int c = thread % 16;
#pragma unroll
    for (int i = 0; i < 128 / 16; ++i) {
        const int r = thread / 16 + 16 * i;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to + c / 8 * BOX + r * 128 + (c % 8 ^ r % 8) * 16),
                        "l"(r < rows ? from + size_t(r) * H * D + c * 8 : from), "r"(r < rows ? 16 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits for all groups of copies but the last PENDING, and shows what they wrote to the asynchronous proxy.
template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;\n"
                 "fence.proxy.async.shared::cta;" :: "n"(PENDING) : "memory");
}

// One thread starts the copy of a tile of keys or values: two boxes of 64 columns and 128 rows, swizzled as those
// of the queries. The barrier's phase ends when all their bytes have landed.
__device__ __forceinline__ void copyBoxes(unsigned to, const TensorMap *map, int head, int row, unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(SLAB_BYTES) : "memory");
#pragma unroll
    for (int i = 0; i < 2; ++i)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3, %4}], [%5];"
                     :: "r"(to + i * BOX), "l"(map), "r"(i * 64), "r"(head), "r"(row), "r"(barrier) : "memory");
}

// Waits until the phase of this parity has ended.
__device__ __forceinline__ void waitBoxes(unsigned barrier, unsigned parity)
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

extern "C" __global__ __launch_bounds__(256, 1) void attention(const __half *q,
                                                               const __grid_constant__ TensorMap tmK,
                                                               const __grid_constant__ TensorMap tmV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long landed[2 * STAGES]; // mbarriers: of a stage's keys, and of its values
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u, ring = queries + 2 * Q_BOX;
    const unsigned barriers = sharedAddress(landed);
    const TensorMap *const keyMap = &tmK, *const valueMap = &tmV;

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
    const int first = cuK[sequence], last = cuK[sequence + 1], blocks = (last - first + BN - 1) / BN;

    // Rows past the sequence's last are copied, too (zeros past the tensor's end): their scores are masked.
    const auto fetch = [&](int block) {
        if (thread == 0 && block < blocks) {
            const int place = block % STAGES, key0 = first + block * BN;
            const unsigned stage = ring + place * 2 * SLAB_BYTES, barrier = barriers + place * 16;
            copyBoxes(stage, keyMap, head, key0, barrier);
            copyBoxes(stage + SLAB_BYTES, valueMap, head, key0, barrier + 8);
        }
    };
    if (thread == 0) {
#pragma unroll
        for (int i = 0; i < 2 * STAGES; ++i)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barriers + i * 8) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\n"
                     "fence.proxy.async.shared::cta;" ::: "memory");
    }
    for (int block = 0; block < STAGES - 1; ++block)
        fetch(block);
    copyTile(queries, q + (size_t(row0) * H + head) * D, rows, H, thread);

    // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
    const unsigned long long query = describe(queries + thread / 128 * 64 * 128, 16);
    float score[64], result[64] = {};
    float largest[2], sum[2] = {};
    largest[0] = largest[1] = __int_as_float(0xff800000); // -infinity
    waitCopies<0>(); // the queries; the first barrier below shows them, and the mbarriers, to everyone
    for (int block = 0; block < blocks; ++block) {
        const int place = block % STAGES;
        const unsigned keys = ring + place * 2 * SLAB_BYTES, values = keys + SLAB_BYTES;
        const unsigned barrier = barriers + place * 16, parity = block / STAGES & 1;
        // Everyone is done with the block before: its stage can be filled.
        __syncthreads();
        fetch(block + STAGES - 1);

        waitBoxes(barrier, parity);
        const unsigned long long key = describe(keys, 16);
        pin(score);
        fenceProducts();
#pragma unroll
        for (int i = 0; i < 8; ++i)
            multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4), key + (i / 4 * BOX + i % 4 * 32 >> 4), i > 0);
        commitProducts();
        waitProducts<0>();
        pin(score);

        const int left = last - first - block * BN;
        if (left < BN)
#pragma unroll
            for (int i = 0; i < 64; ++i)
                if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= left)
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

        waitBoxes(barrier + 8, parity); // the values have landed, too
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
