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
// One block of eight warps owns 128 queries of one head and walks over the keys, 128 at a time, with wgmma and two stages
// of keys and values that cp.async fills while the tensor cores work; still missing: wgmma with TMA and specialized warps, more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 256;
constexpr int ROW = D;           // halves a row of a tile in shared memory; a tile is two panels of 64 columns, 128 swizzled bytes a row
constexpr int TILE = KEYS * ROW; // halves a tile of keys or values
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
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + (column / 64 * KEYS + row) * 64 + ((column / 8) ^ row) % 8 * 8)), "l"(source), "r"(bytes)
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

// 2^x in one instruction: no scaling around subnormal results, which become zero
__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// d += a · b, 64 x 128 x 128, by a warpgroup: a from registers, b a tile in shared memory, its rows the columns of b or (TRANSPOSED) its rows
#define SUMS(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]), "+f"(d[i + 1][0]), "+f"(d[i + 1][1]), "+f"(d[i + 1][2]), "+f"(d[i + 1][3])
template <int TRANSPOSED> __device__ __forceinline__ void multiply(float (&d)[16][4], const unsigned (&a)[8][4], unsigned at)
{
#pragma unroll
    for (int c = 0; c < 8; ++c)
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, %69;\n}"
                     : SUMS(0), SUMS(2), SUMS(4), SUMS(6), SUMS(8), SUMS(10), SUMS(12), SUMS(14)
                     : "r"(a[c][0]), "r"(a[c][1]), "r"(a[c][2]), "r"(a[c][3]), // then the descriptor: 16 KiB between panels, 1 KiB between 8 rows
                       "l"((at + (TRANSPOSED ? c * 2048 : c / 4 * 16384 + c % 4 * 32)) >> 4 | 1024ull << 16 | 64ull << 32 | 1ull << 62), "n"(TRANSPOSED) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : SUMS(0), SUMS(2), SUMS(4), SUMS(6), SUMS(8), SUMS(10), SUMS(12), SUMS(14)::"memory");
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
    }
    commit();
    arrived<1>();
    __syncthreads();

    // The queries of the warp, as the left operands of the first product
    unsigned query[D / 16][4];
    {
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            fragments(query[c], address(memory + 2 * TILE + (c / 4 * KEYS + warp * 16 + lane % 16) * 64 + ((c * 2 + lane / 16) ^ lane) % 8 * 8));
    }

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity}; // times base2
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    // The warpgroups take turns: in slot 2 t the first multiplies (values of tile t - 1, keys of tile t) while the second does its softmax
    // of tile t - 1, in slot 2 t + 1 the other way round. A barrier begins each slot. An even one (`load`, `at` is the tile's first key)
    // has the keys of tile t and the values of tile t - 1, and begins to copy the keys of tile t + 1 and the values of tile t: their
    // stages were read last in slot 2 t - 1 (that of the first keys, which held the queries, before slot 0).
    const bool second = warp >= 4;
    const auto meet = [&](bool load, int at) {
        if (load) {
            arrived<0>();
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads what this thread copied
        }
        asm volatile("bar.sync 1, 256;" ::: "memory");
        if (load) {
            const int parity = at / KEYS % 2;
            if (at + KEYS < keys)
                copy<KEYS>(memory + (parity ^ 1) * 2 * TILE, k + (at + KEYS) * stride, stride, keys - at - KEYS);
            if (at < keys)
                copy<KEYS>(memory + parity * 2 * TILE + TILE, v + at * stride, stride, keys - at);
            commit();
        }
    };
    meet(true, 0);
    if (second)
        meet(false, 0);

    int stage = 0;
    for (int start = 0; start < keys; start += KEYS, stage ^= 1) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        const unsigned offset = stage * 2 * TILE * 2; // bytes

        float score[KEYS / 8][4] = {};
        multiply<0>(score, query, address(memory) + offset);
        meet(second, start + KEYS);

        if (rest < KEYS) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (n * 8 + member * 2 + (e & 1) >= rest)
                        score[n][e] = -infinity;
        }

        // Both rows together, so that neither waits for the other's shuffles; key 0 of the tile counts: the tops of a row are finite.
        float top[2] = {score[0][0], score[0][2]};
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (int side = 0; side < 2; ++side)
                top[side] = fmaxf(top[side], fmaxf(score[n][2 * side], score[n][2 * side + 1]));
#pragma unroll
        for (int distance = 1; distance <= 2; distance *= 2)
#pragma unroll
            for (int side = 0; side < 2; ++side)
                top[side] = fmaxf(top[side], __shfl_xor_sync(0xffffffffu, top[side], distance));

#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const float next = fmaxf(largest[side], top[side] * base2);
            const float shrink = power(largest[side] - next);
            largest[side] = next;
            sum[side] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = power(fmaf(score[n][e], base2, -next));
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
        for (int c = 0; c < KEYS / 16; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                weight[c][e] = pack(score[2 * c + e / 2][e % 2 * 2], score[2 * c + e / 2][e % 2 * 2 + 1]);
            }
        }
        meet(!second, start + KEYS);
        multiply<1>(result, weight, address(memory + TILE) + offset);
    }
    if (!second)
        meet(false, 0); // the second warpgroup is a slot behind

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
