/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["256"]
shared = "84992"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block owns 64 queries of one head and makes one pass over the keys (online softmax), 64 at a time through shared memory in
// f32, with 4 x 4 scores and 4 x 8 results a thread in registers; still missing: tensor cores, tiles kept in f16, copies that
// overlap with the arithmetic (keys and values take turns in one buffer).

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 64, KEYS = 64, THREADS = 256;
constexpr int ROW = D + 4;        // floats a row of a tile in shared memory: float4 reads of 8 neighbouring rows meet all banks
constexpr int WEIGHTS = KEYS + 4; // floats a row of weights

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

// 64 rows of 128 halves to shared memory as floats; those from `rows` on become zero. Rows are 256 bytes: 16-byte loads are aligned.
__device__ __forceinline__ void load(float *to, const __half *from, size_t stride, int rows)
{
#pragma unroll
    for (int i = 0; i < 64 * (D / 8) / THREADS; ++i) {
        const int chunk = threadIdx.x + i * THREADS;
        const int row = chunk / (D / 8), column = chunk % (D / 8) * 8;
        uint4 raw = make_uint4(0, 0, 0, 0);
        if (row < rows)
            raw = *reinterpret_cast<const uint4 *>(from + row * stride + column);
        const __half2 *pair = reinterpret_cast<const __half2 *>(&raw);
        const float2 a = __half22float2(pair[0]), b = __half22float2(pair[1]);
        const float2 c = __half22float2(pair[2]), d = __half22float2(pair[3]);
        float4 *target = reinterpret_cast<float4 *>(to + row * ROW + column);
        target[0] = make_float4(a.x, a.y, b.x, b.y);
        target[1] = make_float4(c.x, c.y, d.x, d.y);
    }
}

extern "C" __global__ __launch_bounds__(THREADS, 2) void attention(const __half *q, const __half *k, const __half *v,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, float scale)
{
    extern __shared__ __align__(16) float memory[];
    float *queryTile = memory;                  // 64 x ROW
    float *tile = queryTile + QUERIES * ROW;    // 64 x ROW, keys and then values
    float *weights = tile + KEYS * ROW;         // 64 x WEIGHTS

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

    // This thread's queries are y + 16 i, its keys x + 16 j, its columns 4 x .. and 64 + 4 x ..; the 16 threads that share a query
    // are one half of a warp.
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    float result[4][8] = {};
    float largest[4], sum[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        largest[i] = -infinity;
        sum[i] = 0.0f;
    }

    load(queryTile, q, stride, rows);

    for (int start = 0; start < keys; start += KEYS) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        __syncthreads();
        load(tile, k + start * stride, stride, rest);
        __syncthreads();

        float score[4][4] = {};
#pragma unroll 4
        for (int d = 0; d < D; d += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                a[i] = *reinterpret_cast<const float4 *>(queryTile + (y + 16 * i) * ROW + d);
                b[i] = *reinterpret_cast<const float4 *>(tile + (x + 16 * i) * ROW + d);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    score[i][j] = fmaf(a[i].x, b[j].x, score[i][j]);
                    score[i][j] = fmaf(a[i].y, b[j].y, score[i][j]);
                    score[i][j] = fmaf(a[i].z, b[j].z, score[i][j]);
                    score[i][j] = fmaf(a[i].w, b[j].w, score[i][j]);
                }
        }

#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float top = largest[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (x + 16 * j >= rest)
                    score[i][j] = -infinity;
                top = fmaxf(top, score[i][j]);
            }
#pragma unroll
            for (int step = 8; step > 0; step /= 2)
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
            const float shrink = exp2f((largest[i] - top) * base2);
            largest[i] = top;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float weight = exp2f((score[i][j] - top) * base2);
                sum[i] += weight;
                weights[(y + 16 * i) * WEIGHTS + x + 16 * j] = weight;
            }
#pragma unroll
            for (int d = 0; d < 8; ++d)
                result[i][d] *= shrink;
        }

        __syncthreads();
        load(tile, v + start * stride, stride, rest);
        __syncthreads();

#pragma unroll 2
        for (int key = 0; key < KEYS; key += 4) {
            float weight[4][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float4 w = *reinterpret_cast<const float4 *>(weights + (y + 16 * i) * WEIGHTS + key);
                weight[i][0] = w.x;
                weight[i][1] = w.y;
                weight[i][2] = w.z;
                weight[i][3] = w.w;
            }
#pragma unroll
            for (int u = 0; u < 4; ++u) {
                const float4 a = *reinterpret_cast<const float4 *>(tile + (key + u) * ROW + 4 * x);
                const float4 b = *reinterpret_cast<const float4 *>(tile + (key + u) * ROW + 64 + 4 * x);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    result[i][0] = fmaf(weight[i][u], a.x, result[i][0]);
                    result[i][1] = fmaf(weight[i][u], a.y, result[i][1]);
                    result[i][2] = fmaf(weight[i][u], a.z, result[i][2]);
                    result[i][3] = fmaf(weight[i][u], a.w, result[i][3]);
                    result[i][4] = fmaf(weight[i][u], b.x, result[i][4]);
                    result[i][5] = fmaf(weight[i][u], b.y, result[i][5]);
                    result[i][6] = fmaf(weight[i][u], b.z, result[i][6]);
                    result[i][7] = fmaf(weight[i][u], b.w, result[i][7]);
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float total = sum[i];
#pragma unroll
        for (int step = 8; step > 0; step /= 2)
            total += __shfl_xor_sync(0xffffffffu, total, step);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = y + 16 * i;
        if (row < rows) {
#pragma unroll
            for (int part = 0; part < 2; ++part) {
                __half2 *target = reinterpret_cast<__half2 *>(out + row * stride + part * 64 + 4 * x);
                target[0] = __floats2half2_rn(result[i][4 * part] * inverse, result[i][4 * part + 1] * inverse);
                target[1] = __floats2half2_rn(result[i][4 * part + 2] * inverse, result[i][4 * part + 3] * inverse);
            }
        }
    }
}
