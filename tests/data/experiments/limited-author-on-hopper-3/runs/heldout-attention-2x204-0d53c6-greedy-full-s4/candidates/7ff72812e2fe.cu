/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["384"]
shared = "230464"
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
// One block of two warpgroups owns 128 queries of one head and walks over the keys, 128 at a time, with wgmma and three stages of keys
// and values that a third warpgroup fills by TMA; softmax overlaps with the product of the tile before and with those of the
// other warpgroup; still missing: late rescaling, persistent blocks.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 384;
constexpr unsigned PANEL = 128 * 128, TILE = 2 * PANEL, STAGES = 3; // bytes: 128 rows of 64 halves, chunk c of row r at c ^ (r % 8); both halves of D
constexpr unsigned HIGH = 1u << 30 | 64; // upper word of a tile's descriptor: swizzle of 128 bytes, 1024 bytes from 8 rows to the next 8
// Shared memory, from a multiple of 1024 bytes on: the queries, STAGES tiles of keys, STAGES tiles of values, full and empty barriers.

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

// Begins to copy 128 rows of a head to shared memory; `barrier` counts the bytes. Rows past the tensor's end become zero, those past the
// sequence's end are the next one's: they get no weight and are not stored.
__device__ __forceinline__ void load(unsigned to, const TensorMap &map, int row, int head, unsigned barrier)
{
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                     ::"r"(to + half * PANEL), "l"(&map), "r"(half * 64), "r"(head), "r"(row), "r"(barrier) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    asm volatile("{.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

// The 64 sums of a thread as operands of an asm, and a warpgroup's product, 64 x 128 x 16. Each 8 columns lie as those of mma.sync do.
#define FOUR(c, n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define SUMS(c) FOUR(c, 0), FOUR(c, 1), FOUR(c, 2), FOUR(c, 3), FOUR(c, 4), FOUR(c, 5), FOUR(c, 6), FOUR(c, 7), FOUR(c, 8), FOUR(c, 9), FOUR(c, 10), FOUR(c, 11), FOUR(c, 12), FOUR(c, 13), FOUR(c, 14), FOUR(c, 15)
#define WGMMA "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "

// c += a · b; b: the words of the descriptor of 16 keys' values
__device__ __forceinline__ void multiply(float (&c)[16][4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.eq.u32 p, %68, %68; mov.b64 b, {%68, %69}; " WGMMA "{%64, %65, %66, %67}, b, p, 1, 1, 1;}"
                 : SUMS(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c = a · b, or with `add` c += a · b; a, b: the lower words of the descriptors of 16 columns of queries and of keys
__device__ __forceinline__ void multiply(float (&c)[16][4], unsigned a, unsigned b, bool add)
{
    asm volatile("{.reg .pred p; .reg .b64 a, b; setp.ne.s32 p, %67, 0; mov.b64 a, {%64, %66}; mov.b64 b, {%65, %66}; " WGMMA "a, b, p, 1, 1, 0, 0;}"
                 : SUMS(c) : "r"(a), "r"(b), "r"(HIGH), "r"(int(add)));
}

template <int LEFT>
__device__ __forceinline__ void finished(float (&c)[16][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %64;"
                 : SUMS(c) : "n"(LEFT) : "memory");
}

__device__ __forceinline__ float power(float x)
{
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void attention(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const __grid_constant__ TensorMap mapV,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, float scale)
{
    extern __shared__ __align__(16) __half memory[];

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

    // The second warpgroup issues its products after the first one's, so that one's softmax meets the other's products. The third one copies.
    const int late = __shfl_sync(0xffffffffu, warp / 4, 0);
    const unsigned queryAt = (address(memory) + 1023) & ~1023u, keyAt = queryAt + TILE, valueAt = keyAt + STAGES * TILE;
    const unsigned full = valueAt + STAGES * TILE, empty = full + STAGES * 8;
    if (threadIdx.x == 0)
        for (unsigned at = full; at < empty; at += 8)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 [%1], 8; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
                         ::"r"(at), "r"(at + STAGES * 8) : "memory");
    __syncthreads();
    if (late == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        // A stage's turn brings a tile's keys and the values of the tile before; first the queries, last no keys.
        for (int tile = 0; threadIdx.x == 256 && (tile - 1) * KEYS < keys; ++tile) {
            const unsigned slot = tile % STAGES, barrier = full + slot * 8;
            waitPhase(empty + slot * 8, tile / STAGES % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(tile * KEYS < keys ? 2 * TILE : TILE) : "memory");
            if (tile * KEYS < keys)
                load(keyAt + slot * TILE, mapK, first + tile * KEYS, blockIdx.y, barrier);
            if (tile > 0)
                load(valueAt + (tile - 1) % STAGES * TILE, mapV, first + (tile - 1) * KEYS, blockIdx.y, barrier);
            else
                load(queryAt, mapQ, begin, blockIdx.y, barrier);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if (late)
        asm volatile("bar.arrive 1, 256;" ::: "memory"); // the first one's turn

    float result[D / 8][4] = {}, score[KEYS / 8][4] = {}, shrink[2];
    unsigned weight[KEYS / 16][4] = {}; // of the tile before; at first zero, as is their product with the queries, which stand in for values
    const auto accumulate = [&](int tile) {
        const unsigned at = tile < 0 ? queryAt : valueAt + tile % STAGES * TILE;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int c = 0; c < KEYS / 16; ++c)
            multiply(result, weight[c], at / 16 + c * 128 + (PANEL / 16 << 16), HIGH);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    };

    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    int tile = 0;
    for (int start = 0; start < keys; start += KEYS, ++tile) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        const unsigned at = (keyAt + tile % STAGES * TILE) / 16, queries = queryAt / 16 + late * 512; // 64 rows a warpgroup
        waitPhase(full + tile % STAGES * 8, tile / STAGES % 2);
        asm volatile("bar.sync %0, 256;" ::"r"(1 + late) : "memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            multiply(score, queries + c / 4 * (PANEL / 16) + c % 4 * 2, at + c / 4 * (PANEL / 16) + c % 4 * 2, c > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        accumulate(tile - 1);
        asm volatile("bar.arrive %0, 256;" ::"r"(2 - late) : "memory"); // the other one's turn
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
            shrink[side] = power((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink[side];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = power(fmaf(score[n][e], base2, -top * base2));
                    sum[side] += score[n][e];
                }
        }

        // The tile before is added up: its sum may be scaled, its weights give way. Two blocks of 8 keys lie as a left operand of 16 keys does.
        finished<0>(result);
        asm volatile("" : SUMS(score));
#pragma unroll
        for (int i = 0; i < D / 2; ++i)
            result[i / 4][i % 4] *= shrink[i / 2 % 2];
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i)
            weight[i / 4][i % 4] = pack(score[i / 2][i % 2 * 2], score[i / 2][i % 2 * 2 + 1]);
        if (lane == 0)
            arrive(empty + tile % STAGES * 8);
    }
    waitPhase(full + tile % STAGES * 8, tile / STAGES % 2);
    if (!late)
        asm volatile("bar.sync 1, 256;" ::: "memory"); // as often as the second one arrived
    accumulate(tile - 1);
    finished<0>(result);

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
