/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "98304"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of two warp groups owns 128 queries of one head and walks over the keys, 64 at a time, with wgmma and two stages
// of keys and values that cp.async fills while the tensor cores work; still missing: wgmma with TMA and specialized warps, more
// queries a warp, persistent blocks. Two blocks share a multiprocessor: the softmax of one overlaps with the products of the other.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 64, THREADS = 256;
constexpr int TILE = KEYS * D; // halves a tile of keys or values
// Shared memory: keys and values of stage 0, keys and values of stage 1: 4 · TILE halves; then the queries: 2 · TILE halves.

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
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + (column / 64 * COUNT + row) * 64 + ((column % 64) ^ (row % 8 * 8)))), "l"(source), "r"(bytes)
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
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

// Begins c = a · b or, with more, c += a · b, 64 x 64 x 16 by four warps; b lies in shared memory, its rows along the sum if TRANSPOSED.
template <int TRANSPOSED> __device__ __forceinline__ void multiply(float (*c)[4], const unsigned (&a)[4], unsigned long long b, int more)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, %38; wgmma.commit_group.sync.aligned;}" : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(TRANSPOSED) : "memory");
}

// The same, but a lies in shared memory too; the rows of both lie across the sum.
__device__ __forceinline__ void multiply(float (*c)[4], unsigned long long a, unsigned long long b, int more)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;}" : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]) : "l"(a), "l"(b), "r"(more) : "memory");
}

__device__ __forceinline__ void finished(float (*c)[4]) // waits for all products begun; c may be read then
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]) : : "memory");
}

extern "C" __global__ __launch_bounds__(THREADS, 2) void attention(const __half *q, const __half *k, const __half *v,
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

    if (keys > 0) {
        copy<QUERIES>(memory + 4 * TILE, q, stride, rows);
        copy<KEYS>(memory, k, stride, keys);
        copy<KEYS>(memory + TILE, v, stride, keys);
    }
    commit();

    // Descriptors for wgmma: panels of 64 columns, rows of 128 swizzled bytes, 8 rows every 1024 bytes; a TILE is a multiple of 1024 bytes.
    const unsigned long long keyAt = (1ull << 62) | (64ull << 32) | (1ull << 16) | (address(memory) / 16), valueAt = keyAt + TILE / 8;
    const unsigned long long queryAt = keyAt + TILE / 2 + warp / 4 * 512; // the 64 queries of the warp group

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    int stage = 0;
    for (int start = 0; start < keys; start += KEYS, stage ^= 1) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        // All have this tile (and the queries) then, and none still reads the other stage.
        arrived<0>();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // what cp.async wrote, wgmma shall see
        __syncthreads();
        if (rest > KEYS) {
            __half *next = memory + (stage ^ 1) * 2 * TILE;
            copy<KEYS>(next, k + (start + KEYS) * stride, stride, rest - KEYS);
            copy<KEYS>(next + TILE, v + (start + KEYS) * stride, stride, rest - KEYS);
        }
        commit();
        const unsigned offset = stage * 2 * TILE * 2; // bytes

        float score[KEYS / 8][4] = {};
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            multiply(score, queryAt + c / 4 * 1024 + c % 4 * 2, keyAt + offset / 16 + c / 4 * 512 + c % 4 * 2, c > 0);
        finished(score);

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
            const float shrink = exp2f((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink;
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
            for (int i = 0; i < 8; ++i) // while the product of the 16 keys before is in flight
                sum[i / 2 % 2] += (score[2 * c + i / 4][i % 4] = exp2f((score[2 * c + i / 4][i % 4] - largest[i / 2 % 2]) * base2));
            const unsigned weight[4] = {pack(score[2 * c][0], score[2 * c][1]), pack(score[2 * c][2], score[2 * c][3]),
                                        pack(score[2 * c + 1][0], score[2 * c + 1][1]), pack(score[2 * c + 1][2], score[2 * c + 1][3])};
            multiply<1>(result, weight, valueAt + offset / 16 + c * 128, 1);
            multiply<1>(result + D / 16, weight, valueAt + offset / 16 + c * 128 + 512, 1);
        }
        finished(result), finished(result + D / 16);
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
