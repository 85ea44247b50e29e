/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "163840"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of two warp groups owns 128 queries of one head and walks over the keys, 128 at a time, with wgmma and two stages
// of keys and values that cp.async fills while the tensor cores work; still missing: wgmma with TMA and specialized warps, more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 256;
constexpr int TILE = KEYS * D; // halves a tile: columns 0-63 of all rows, then columns 64-127; rows of 128 bytes, 16-byte chunks swizzled
// Shared memory: keys and values of stage 0, keys and values of stage 1, queries: 5 · TILE halves.

// The tile'th tile of queries: its sequence and its first query. Tiles do not cross sequences.
__device__ __forceinline__ bool locate(const int *cuQ, int B, int tile, int &sequence, int &begin)
{
    for (int s = 0; s < B; ++s) {
        const int tiles = (cuQ[s + 1] - cuQ[s] + QUERIES - 1) / QUERIES;
        if (tile < tiles) {
            sequence = s;
            begin = cuQ[s] + tile * QUERIES;
            return true;
        }
        tile -= tiles;
    }
    return false;
}

__device__ __forceinline__ unsigned address(const __half *at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// Begins to copy COUNT rows of 128 halves to shared memory; those from `rows` (at least 1) on become zero. Rows are 256 bytes: copies of 16
// bytes are aligned.
template <int COUNT>
__device__ __forceinline__ void copy(__half *to, const __half *from, size_t stride, int rows)
{
#pragma unroll
    for (int i = 0; i < COUNT * (D / 8) / THREADS; ++i) {
        const int chunk = threadIdx.x + i * THREADS;
        const int row = chunk / (D / 8), column = chunk % (D / 8) * 8;
        const bool inside = row < rows;
        const __half *source = inside ? from + row * stride + column : from;
        const int bytes = inside ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + column / 64 * (TILE / 2) + row * 64 + (column / 8 ^ row) % 8 * 8)), "l"(source), "r"(bytes)
                     : "memory");
    }
}

__device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT>
__device__ __forceinline__ void arrived()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads through the asynchronous proxy
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

#define FOUR(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define ALL FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7), FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15)
#define REGISTERS "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
// Begins c = a · b, 64 x 128 x 128, by a warp group; a and b are descriptors of queries and keys.
__device__ __forceinline__ void multiply(float (&c)[16][4], unsigned long long a, unsigned long long b)
{
    asm volatile("wgmma.fence.sync.aligned;" : ALL : : "memory");
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
        asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGISTERS ", %64, %65, p, 1, 1, 0, 0;}"
                     : ALL : "l"(a + i / 4 * (TILE / 16) + i % 4 * 2), "l"(b + i / 4 * (TILE / 16) + i % 4 * 2), "r"(i) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Begins c += a · b, 64 x 128 x 128; a are weights in registers, as left operands of 16 keys each, b is a descriptor of values.
__device__ __forceinline__ void multiply(float (&c)[16][4], const unsigned (&a)[8][4], unsigned long long b)
{
    asm volatile("wgmma.fence.sync.aligned;" : ALL : : "memory");
#pragma unroll
    for (int i = 0; i < KEYS / 16; ++i)
        asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGISTERS ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;}"
                     : ALL : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "l"(b + i * 128), "r"(1) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT>
__device__ __forceinline__ void finished(float (&c)[16][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
    asm volatile("" : ALL : : "memory"); // no use of c moves before the wait
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void attention(const __half *q, const __half *k, const __half *v,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, float scale)
{
    extern __shared__ __align__(1024) __half memory[];

    int sequence, begin;
    if (!locate(cuQ, B, blockIdx.x, sequence, begin))
        return;
    const int rows = min(QUERIES, cuQ[sequence + 1] - begin);
    const int first = cuK[sequence];
    const int keys = cuK[sequence + 1] - first;
    const size_t stride = size_t(H) * D;
    const size_t head = size_t(blockIdx.y) * D;
    q += begin * stride + head;
    out += begin * stride + head;
    k += first * stride + head;
    v += first * stride + head;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    copy<QUERIES>(memory + 4 * TILE, q, stride, rows);
    commit();
    if (keys > 0) {
        copy<KEYS>(memory, k, stride, keys);
    }
    commit();
    arrived<1>();
    __syncthreads();

    // Descriptors, in 16 bytes: swizzle of 128 bytes, 8 rows 1024 bytes apart; the values' columns 64-127 lie TILE bytes after 0-63.
    const unsigned long long keyAt = 1ull << 62 | 64ull << 32 | 1ull << 16 | address(memory) / 16;
    const unsigned long long queryAt = keyAt + TILE / 2 + __shfl_sync(0xffffffffu, warp / 4, 0) * 512; // 64 rows a warp group
    const unsigned long long valueAt = keyAt + ((TILE / 16 - 1) << 16);

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys
    float score[KEYS / 8][4] = {}, change[2];
    unsigned weight[KEYS / 16][4] = {}; // of the tile before

    int stage = 0;
    for (int start = 0; start < keys; start += KEYS, stage ^= 1) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        // All have these keys and the values of the tile before then, and none still reads what is copied over below.
        arrived<0>();
        __syncthreads();
        multiply(score, queryAt, keyAt + stage * (TILE / 4));
        multiply(result, weight, valueAt + (start > 0 ? 3 - 2 * stage : 0) * (TILE / 8)); // at first zeros times the keys: nothing
        if (rest > KEYS) {
            __half *next = memory + (stage ^ 1) * 2 * TILE;
            copy<KEYS>(next, k + (start + KEYS) * stride, stride, rest - KEYS);
        }
        copy<KEYS>(memory + (stage * 2 + 1) * TILE, v + start * stride, stride, rest);
        commit();
        finished<1>(score);

        if (rest < KEYS) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (n * 8 + member * 2 + (e & 1) >= rest)
                        score[n][e] = -infinity;
        }

#pragma unroll
        for (int side = 0; side < 2; ++side) {
            float top = largest[side];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
                top = fmaxf(top, fmaxf(score[n][2 * side], score[n][2 * side + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float shrink = change[side] = exp2f((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(score[n][e]) : "f"(fmaf(score[n][e], base2, -top * base2)));
                    sum[side] += score[n][e];
                }
        }
        finished<0>(result);
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const float shrink = change[side];
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                result[n][2 * side] *= shrink;
                result[n][2 * side + 1] *= shrink;
            }
        }

        // The scores of two neighbouring blocks of 8 keys lie as a left operand of 16 keys does.
#pragma unroll
        for (int c = 0; c < KEYS / 16; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                weight[c][i] = pack(score[2 * c + i / 2][i % 2 * 2], score[2 * c + i / 2][i % 2 * 2 + 1]);
            }
        }
    }
    if (keys > 0) {
        arrived<0>();
        __syncthreads();
        multiply(result, weight, valueAt + (3 - 2 * stage) * (TILE / 8));
        finished<0>(result);
    }

#pragma unroll
    for (int side = 0; side < 2; ++side) {
        float total = sum[side];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = warp * 16 + group + side * 8;
        if (row < rows) {
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<__half2 *>(out + row * stride + n * 8 + member * 2) =
                    __floats2half2_rn(result[n][2 * side] * inverse, result[n][2 * side + 1] * inverse);
        }
    }
}
