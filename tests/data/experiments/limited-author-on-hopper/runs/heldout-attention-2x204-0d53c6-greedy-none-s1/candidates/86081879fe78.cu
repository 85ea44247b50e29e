/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "131072"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of eight warps owns 128 queries of one head and walks over the keys, 128 at a time, with wgmma, ldmatrix and two stages
// of keys and values that cp.async fills while the tensor cores work; still missing: TMA and specialized warps, more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 256;
constexpr int ROW = D / 2, TILE = KEYS * D; // halves a row of half a tile (columns 0-63, then 64-127; swizzled) and a tile of keys or values
// Shared memory: keys and values of stage 0, keys and values of stage 1: 4 · TILE halves. Stage 1 holds the queries at first.

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
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + column / ROW * COUNT * ROW + row * ROW + (column % ROW ^ row % 8 * 8))), "l"(source), "r"(bytes)
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

#define EIGHT(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3]), "+f"(d[n + 1][0]), "+f"(d[n + 1][1]), "+f"(d[n + 1][2]), "+f"(d[n + 1][3])
#define ALL(d) EIGHT(d, 0), EIGHT(d, 2), EIGHT(d, 4), EIGHT(d, 6), EIGHT(d, 8), EIGHT(d, 10), EIGHT(d, 12), EIGHT(d, 14)
#define LEFT4(a) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
#define RIGHT(c) "l"(b + (TRANSPOSED ? (c) * (16 * ROW / 8) : (c) / 4 * (KEYS * ROW / 8) + (c) % 4 * 2))
#define STEP(a, b, p) "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {" a "}, " b ", " p ", 1, 1, %105;\n\t"
template <int TRANSPOSED> __device__ __forceinline__ void multiply(float (&c)[16][4], const unsigned (&a)[8][4], unsigned long long b) // c = a · b (+ c if TRANSPOSED), 64 x 128 x 128, by a warpgroup, b in shared memory; done when it returns
{
    asm volatile("{\n\t.reg .pred p, t;\n\tsetp.ne.s32 p, %104, 0;\n\tsetp.eq.s32 t, %104, %104;\n\twgmma.fence.sync.aligned;\n\t"
                 STEP("%64, %65, %66, %67", "%96", "p") STEP("%68, %69, %70, %71", "%97", "t") STEP("%72, %73, %74, %75", "%98", "t") STEP("%76, %77, %78, %79", "%99", "t")
                 STEP("%80, %81, %82, %83", "%100", "t") STEP("%84, %85, %86, %87", "%101", "t") STEP("%88, %89, %90, %91", "%102", "t") STEP("%92, %93, %94, %95", "%103", "t")
                 "wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\t}"
                 : ALL(c) : LEFT4(a[0]), LEFT4(a[1]), LEFT4(a[2]), LEFT4(a[3]), LEFT4(a[4]), LEFT4(a[5]), LEFT4(a[6]), LEFT4(a[7]),
                   RIGHT(0), RIGHT(1), RIGHT(2), RIGHT(3), RIGHT(4), RIGHT(5), RIGHT(6), RIGHT(7), "r"(TRANSPOSED), "n"(TRANSPOSED) : "memory");
}

// Four 8 x 8 matrices; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ __forceinline__ void fragments(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void transposed(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
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

    copy<QUERIES>(memory + 2 * TILE, q, stride, rows);
    commit();
    if (keys > 0) {
        copy<KEYS>(memory, k, stride, keys);
        copy<KEYS>(memory + TILE, v, stride, keys);
    }
    commit();
    arrived<1>();
    __syncthreads();

    // The queries of the warp, as the left operands of the first product
    unsigned query[D / 16][4];
    {
        const unsigned at = address(memory + 2 * TILE + (warp * 16 + lane % 16) * ROW + lane / 16 * 8);
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            fragments(query[c], (at + c / 4 * QUERIES * ROW * 2 + c % 4 * 32) ^ (lane % 8 * 16));
    }

    // Descriptors, in units of 16 bytes: swizzle of 128 bytes, 64 from 8 rows to the next 8; for the values also from half to half
    const unsigned long long keyAt = 1ull << 62 | 64ull << 32 | 1ull << 16 | (address(memory) >> 4), valueAt = 1ull << 62 | 64ull << 32 | (KEYS * ROW / 8ull) << 16 | (address(memory + TILE) >> 4);

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    int stage = 0;
    for (int start = 0; start < keys; start += KEYS, stage ^= 1) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        // All have this tile then, and none still reads the other stage (nor, at first, the queries in it).
        arrived<0>();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads what cp.async wrote
        __syncthreads();
        if (rest > KEYS) {
            __half *next = memory + (stage ^ 1) * 2 * TILE;
            copy<KEYS>(next, k + (start + KEYS) * stride, stride, rest - KEYS);
            copy<KEYS>(next + TILE, v + (start + KEYS) * stride, stride, rest - KEYS);
        }
        commit();
        const unsigned offset = stage * 2 * TILE * 2; // bytes

        float score[KEYS / 8][4] = {};
        multiply<0>(score, query, keyAt + offset / 16);

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
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = exp2f((score[n][e] - top) * base2);
                    sum[side] += score[n][e];
                }
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                result[n][2 * side] *= shrink;
                result[n][2 * side + 1] *= shrink;
            }
        }

        // The scores of two neighbouring blocks of 8 keys lie as a left operand of 16 keys does.
        unsigned weight[KEYS / 16][4];
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i)
            weight[i / 4][i % 4] = pack(score[i / 2][i % 2 * 2], score[i / 2][i % 2 * 2 + 1]);
        multiply<1>(result, weight, valueAt + offset / 16);
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
