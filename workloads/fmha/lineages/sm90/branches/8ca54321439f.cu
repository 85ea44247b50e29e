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
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Three consumer warpgroups of 64 queries: 192 a tile, so that every slab serves one and a half times as many. A third
// consumer leaves 160 registers each, too few to hold the next weights beside the scores; so a consumer takes no turns, but
// multiplies the first half of its weights while it computes the second, and the other two multiply meanwhile or while it waits.
// Before anything is multiplied a warp looks whether weights of the first half or scores of the second are too large for its
// references; then it alone makes the scores of the first half again (those of the second are still there), raises the
// references and computes the weights anew. Tiles that are not full, where consumers
// are idle, come after the full ones of a sequence; another warp of the producer fetches queries and says which tile they belong to.

#include <cuda_fp16.h>

constexpr int D = 128, CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128;
constexpr unsigned Q_BOX = 64 * 128, BOX = BN * 128; // boxes of 64 columns
constexpr unsigned Q_BYTES = 2 * Q_BOX, SLAB_BYTES = 2 * BOX;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

struct Tile {
    int head, row, rows, key, keys; // its first row and key; how many there are from there to the end of the sequence
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

// Writes a warp's 16 rows of results, from `row` of all tokens on; `rows` are left of the sequence.
__device__ __forceinline__ void store(const float (&result)[64], float sum0, float sum1, __half *out,
                                      int row, int rows, int head, int H, int lane)
{
    const float inverse0 = 1.0f / quadSum(sum0), inverse1 = 1.0f / quadSum(sum1);
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

// Four matrices of 8 rows of 16 bytes; a lane gives the address of one of the rows.
__device__ __forceinline__ void loadMatrices(unsigned (&x)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address) : "memory");
}

// A warp's product of 16 rows and 8 columns, added to four sums.
__device__ __forceinline__ void multiplyWarp(float *d, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The index-th tile: of each sequence the full ones of all heads, then what is left of each head; false past the last.
__device__ __forceinline__ bool locate(int index, const int *cuQ, const int *cuK, int B, int H, Tile &tile)
{
    int begin = __ldg(cuQ);
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
        const int end = __ldg(cuQ + b + 1), full = (end - begin) / BM, all = (end - begin + BM - 1) / BM;
        if (index < all * H) {
            const bool whole = index < full * H;
            tile.head = whole ? index / full : index - full * H;
            tile.row = begin + (whole ? index - tile.head * full : full) * BM;
            tile.rows = end - tile.row;
            tile.key = __ldg(cuK + b);
            tile.keys = __ldg(cuK + b + 1) - tile.key;
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
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];
    __shared__ Tile tiles[8]; // the ones at work; keys is 0 past the last
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
        Tile tile{};
        if (thread == 0) {
            const auto fetch = [&](const TensorMap &map, int row) {
                waitPhase(empty + 8 * stage, phase ^ 1); // passes at first
                copyTile(ring + stage * SLAB_BYTES, map, BN, tile.head, row, full + 8 * stage);
                advance();
            };
            for (int t = blockIdx.x; locate(t, cuQ, cuK, B, H, tile); t += gridDim.x)
                for (int done = 0; done < tile.keys; done += BN) {
                    fetch(mapK, tile.key + done);
                    fetch(mapV, tile.key + done);
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
                        tiles[n % 8] = Tile{tile.head, tile.row, tile.rows, tile.key, more ? tile.keys : 0};
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

        // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
        float score[64], result[64], reference[2], sum[2], part[2];
        const auto startScores = [&] {
            const unsigned long long query = describe(queries + consumer * Q_BYTES, 16);
            const unsigned long long key = describe(ring + stage * SLAB_BYTES, 16);
            pin(score);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 8; ++i)
                multiplyShared(score, query + (i / 4 * Q_BOX + i % 4 * 32 >> 4),
                               key + (i / 4 * BOX + i % 4 * 32 >> 4), i > 0);
            commitProducts();
        };
        // The weights of keys `first` and the 63 after it; the products before these may still run.
        const auto startProducts = [&](unsigned (&weights)[16], int first) {
            const unsigned long long value = describe(ring + stage * SLAB_BYTES + first * 128, BOX);
            pin(weights);
            fenceProducts();
#pragma unroll
            for (int i = 0; i < 4; ++i)
                multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4));
            commitProducts();
        };
        // This warp is done with a slab.
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            advance();
        };
        const auto mask = [&](int left) {
            if (left < BN)
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= left)
                        score[i] = __int_as_float(0xff800000);
        };
        // Weights of 64 of the scores, those of `half`, and `part`, their sums of this lane's columns.
        const auto weigh = [&](unsigned (&weights)[16], int half) {
            __half2 sums[16];
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                const float *two = score + 32 * half + 2 * i;
                sums[i] = __floats2half2_rn(power(fmaf(two[0], factor, -reference[i % 2])),
                                            power(fmaf(two[1], factor, -reference[i % 2])));
                weights[i] = *reinterpret_cast<const unsigned *>(&sums[i]);
                // Both rows alternate; ones, twos and fours of a row are added up as soon as they are there.
#pragma unroll
                for (int step = 2; step < 16; step *= 2)
                    if ((i / 2 + 1) % step == 0)
                        sums[i] = __hadd2(sums[i - step], sums[i]);
            }
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                const float2 both = __half22float2(sums[14 + row]);
                part[row] = both.x + both.y;
            }
        };
        // This warp alone makes the scores of the first half again, with what is still in the slab.
        const auto remake = [&] {
            const int swizzle = lane % 8;
            const unsigned query = queries + consumer * Q_BYTES + (warpRow % 64 + lane % 16) * 128;
            const unsigned key = ring + stage * SLAB_BYTES + (lane / 16 * 8 + lane % 8) * 128;
#pragma unroll
            for (int i = 0; i < 32; ++i)
                score[i] = 0.0f;
#pragma unroll 1
            for (int k = 0; k < 8; ++k) { // 16 columns of queries and keys
                unsigned a[4], b[4];
                loadMatrices(a, query + k / 4 * Q_BOX + ((k % 4 * 2 + lane / 16) ^ swizzle) * 16);
#pragma unroll
                for (int i = 0; i < 4; ++i) { // 16 keys
                    loadMatrices(b, key + k / 4 * BOX + i * 2048 + ((k % 4 * 2 + lane / 8 % 2) ^ swizzle) * 16);
                    multiplyWarp(score + 8 * i, a, b[0], b[1]);
                    multiplyWarp(score + 8 * i + 4, a, b[2], b[3]);
                }
            }
        };
        // Whether weights of the second half would be too large: sums of eight are to remain far below the largest f16.
        const auto outgrown = [&] {
            float top[2] = {score[32], score[34]};
#pragma unroll
            for (int i = 33; i < 64; ++i)
                if (i != 34)
                    top[i / 2 % 2] = fmaxf(top[i / 2 % 2], score[i]);
            return fmaxf(fmaf(top[0], factor, -reference[0]), fmaf(top[1], factor, -reference[1])) > 10.0f;
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
                const float top = fmaxf(reference[half], quadMax(fmaxf(low, high)) * factor);
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
            int left = tile.keys; // from this block on
            if (left == 0)
                break;
            if (consumer * 64 >= tile.rows) { // nothing to do but to say so
                if (lane == 0)
                    arrive(queriesEmpty + 8 * consumer);
                for (; left > 0; left -= BN)
                    for (int i = 0; i < 2; ++i) {
                        waitPhase(full + 8 * stage, phase);
                        leave();
                    }
                continue;
            }
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
            sum[0] = sum[1] = 0.0f;
            bool careful = true; // the first block raises the references
#pragma unroll 1
            for (; left > 0; left -= BN) {
                waitPhase(full + 8 * stage, phase);
                startScores();
                waitProducts<0>();
                pin(score);
                unsigned early[16], late[16];
#pragma unroll 1
                for (;;) {
                    mask(left);
                    if (careful)
                        raise();
                    weigh(early, 0);
                    const bool large = outgrown() || !(fmaxf(part[0], part[1]) <= 8192.0f);
                    careful = !careful && __any_sync(~0u, large); // raised references are not outgrown
                    if (!careful)
                        break;
                    remake();
                }
                __syncwarp();
                if (lane == 0 && left <= BN)
                    arrive(queriesEmpty + 8 * consumer);
                leave();
                sum[0] += part[0];
                sum[1] += part[1];

                waitPhase(full + 8 * stage, phase);
                pin(result);
                startProducts(early, 0);
#pragma unroll
                for (int i = 32; i < 64; ++i) // these weights are computed meanwhile
                    asm volatile("" : "+f"(score[i]) :: "memory");
                weigh(late, 1);
                sum[0] += part[0];
                sum[1] += part[1];
                startProducts(late, 64);
                waitProducts<0>();
                pin(result);
                pin(early);
                pin(late);
                leave();
            }
            store(result, sum[0], sum[1], out, tile.row + warpRow, tile.rows - warpRow, tile.head, H, lane);
        }
    }
}
