/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["384"]
shared = "229504"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
[[tensormap]]
name = "tm_q"
tensor = "q"
box = [128, 1, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_k"
tensor = "k"
box = [128, 1, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_v"
tensor = "v"
box = [128, 1, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of two warp groups owns 128 queries of one head and walks over the keys, 128 at a time, with wgmma and two stages
// (now three) of keys and values that a third warp group fills by TMA; the two take turns at the tensor cores; still missing: more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 256;
constexpr int TILE = KEYS * D; // halves a tile: columns 0-63 of all rows, then columns 64-127; rows of 128 bytes, 16-byte chunks swizzled
// Shared memory: six slots, keys and values by turns, then queries: 7 · TILE halves; then barriers: slots full, slots empty, queries.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

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

// Begins to copy 128 rows of 128 halves to shared memory; `barrier` counts their bytes. What lies outside of the tensor becomes zero.
__device__ __forceinline__ void copy(unsigned to, const TensorMap &map, int head, int row, unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(2 * TILE) : "memory");
#pragma unroll
    for (int i = 0; i < 2; ++i)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to + i * TILE), "l"(&map), "r"(i * 64), "r"(head), "r"(row), "r"(barrier)
                     : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void await(unsigned barrier, int phase)
{
    asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;}" ::"r"(barrier), "r"(phase) : "memory");
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

extern "C" __global__ __launch_bounds__(THREADS + 128, 1) void attention(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const __grid_constant__ TensorMap mapV,
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
    out += begin * stride + head;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    const unsigned base = address(memory), barriers = base + 14 * TILE; // a slot is full by one arrival and its bytes, empty by 8 warps
    if (threadIdx.x < 13) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::"r"(barriers + threadIdx.x * 8), "r"(threadIdx.x / 6 == 1 ? 8 : 1) : "memory");
    __syncthreads();

    if (warp >= 8) { // this warp group copies: the queries, then keys and values by turns
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;" ::: "memory");
        for (int i = 0; threadIdx.x == 256 && i / 2 * KEYS < keys; ++i) {
            if (i == 0) copy(base + 12 * TILE, mapQ, blockIdx.y, begin, barriers + 96);
            await(barriers + 48 + i % 6 * 8, i / 6 % 2 ^ 1);
            copy(base + i % 6 * (2 * TILE), i % 2 ? mapV : mapK, blockIdx.y, first + i / 2 * KEYS, barriers + i % 6 * 8);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;" ::: "memory");
    // Descriptors, in 16 bytes: swizzle of 128 bytes, 8 rows 1024 bytes apart; the values' columns 64-127 lie TILE bytes after 0-63.
    const unsigned long long keyAt = 1ull << 62 | 64ull << 32 | 1ull << 16 | address(memory) / 16;
    const unsigned long long queryAt = keyAt + TILE / 4 * 3 + __shfl_sync(0xffffffffu, warp / 4, 0) * 512; // 64 rows a warp group
    const unsigned long long valueAt = keyAt + ((TILE / 16 - 1) << 16);

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys
    float score[KEYS / 8][4] = {}, change[2];
    unsigned weight[KEYS / 16][4] = {}; // of the tile before

    const auto weigh = [&](int i, int rest) __attribute__((always_inline)) { // keys of slot i; rest is at least 1: every tile has a key that counts
        finished<1>(score);
        if (lane == 0) arrive(barriers + 48 + i % 6 * 8);

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
        if (lane == 0 && i > 0) arrive(barriers + 48 + (i - 1) % 6 * 8);
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
    };
    if (keys > 0) {
        await(barriers + 96, 0);
        await(barriers, 0), multiply(score, queryAt, keyAt);
        finished<0>(score);
        weigh(0, keys);
        int i = 2;
        for (; i / 2 * KEYS < keys; i += 2) { // the warp groups take turns: the first begins, each lets the other go on once it has begun its products
            if (i > 2 || warp >= 4) asm volatile("bar.sync %0, 256;" ::"r"(1 + warp / 4) : "memory");
            await(barriers + i % 6 * 8, i / 6 % 2), multiply(score, queryAt, keyAt + i % 6 * (TILE / 8));
            await(barriers + (i - 1) % 6 * 8, (i - 1) / 6 % 2), multiply(result, weight, valueAt + (i - 1) % 6 * (TILE / 8));
            asm volatile("bar.arrive %0, 256;" ::"r"(2 - warp / 4) : "memory");
            weigh(i, keys - i / 2 * KEYS);
        }
        await(barriers + (i - 1) % 6 * 8, (i - 1) / 6 % 2), multiply(result, weight, valueAt + (i - 1) % 6 * (TILE / 8));
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
