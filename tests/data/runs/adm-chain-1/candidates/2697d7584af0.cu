/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["256"]
shared = "4 * (2 * 64 * 132 + 64 * 68)"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A block owns 64 queries of one sequence and one head and takes 64 keys at a time. Both products are products of
// tiles in shared memory; a thread owns a patch of 4 x 4 scores and a patch of 4 x 8 results in registers.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 64, BN = 64, THREADS = 256;
constexpr int PITCH = D + 4;         // floats a row: neighbouring rows begin in other banks
constexpr int WEIGHT_PITCH = BN + 4;

// 64 rows of a tile as floats; rows from `rows` on are zeros. A warp takes a row at a time, four elements a lane.
__device__ __forceinline__ void loadTile(float *to, const __half *from, int rows, size_t stride, int thread)
{
#pragma unroll
    for (int i = thread; i < 64 * (D / 4); i += THREADS) {
        const int r = i / (D / 4), c = i % (D / 4) * 4;
        uint2 chunk = make_uint2(0, 0);
        if (r < rows)
            chunk = *reinterpret_cast<const uint2 *>(from + r * stride + c);
        const float2 low = __half22float2(*reinterpret_cast<const __half2 *>(&chunk.x));
        const float2 high = __half22float2(*reinterpret_cast<const __half2 *>(&chunk.y));
        *reinterpret_cast<float4 *>(to + r * PITCH + c) = make_float4(low.x, low.y, high.x, high.y);
    }
}

__device__ __forceinline__ float4 fourAt(const float *from)
{
    return *reinterpret_cast<const float4 *>(from);
}

__device__ __forceinline__ void storeFour(__half *to, float a, float b, float c, float d)
{
    const __half2 low = __floats2half2_rn(a, b), high = __floats2half2_rn(c, d);
    uint2 chunk;
    chunk.x = *reinterpret_cast<const unsigned *>(&low);
    chunk.y = *reinterpret_cast<const unsigned *>(&high);
    *reinterpret_cast<uint2 *>(to) = chunk;
}

extern "C" __global__ __launch_bounds__(THREADS, 2) void attention(const __half *q, const __half *k, const __half *v,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, float scale)
{
    extern __shared__ __align__(16) float room[];
    float *const queries = room;                   // BM x PITCH
    float *const operand = queries + BM * PITCH;   // BN x PITCH: keys, then values
    float *const weights = operand + BN * PITCH;   // BM x WEIGHT_PITCH

    // The tile of queries: tiles are counted sequence by sequence, and none straddles two. The same for the whole block.
    int tile = blockIdx.x, sequence = 0;
    for (; sequence < B; ++sequence) {
        const int tiles = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (tile < tiles)
            break;
        tile -= tiles;
    }
    if (sequence >= B)
        return;

    const int head = blockIdx.y;
    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
    const int firstQuery = cuQ[sequence] + tile * BM;
    const int m = cuQ[sequence + 1] - firstQuery;  // queries from the tile's first to the sequence's end
    const int firstKey = cuK[sequence];
    const int n = cuK[sequence + 1] - firstKey;    // keys
    const size_t row = size_t(H) * D;
    q += firstQuery * row + size_t(head) * D;
    out += firstQuery * row + size_t(head) * D;
    k += firstKey * row + size_t(head) * D;
    v += firstKey * row + size_t(head) * D;

    loadTile(queries, q, m, row, thread);

    float largest[4], sum[4] = {}, result[4][8] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i)
        largest[i] = -1e30f;

    for (int n0 = 0; n0 < n; n0 += BN) {
        __syncthreads(); // all are done with the values and weights of the tile before
        loadTile(operand, k + n0 * row, n - n0, row, thread);
        __syncthreads();

        float score[4][4] = {}; // rows 4 ty + i, columns tx + 16 j
#pragma unroll 2
        for (int d = 0; d < D; d += 4) {
            float4 x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                x[i] = fourAt(queries + (4 * ty + i) * PITCH + d);
#pragma unroll
            for (int j = 0; j < 4; ++j)
                y[j] = fourAt(operand + (tx + 16 * j) * PITCH + d);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    score[i][j] += x[i].x * y[j].x;
                    score[i][j] += x[i].y * y[j].y;
                    score[i][j] += x[i].z * y[j].z;
                    score[i][j] += x[i].w * y[j].w;
                }
        }

#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float top = largest[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (n0 + tx + 16 * j >= n)
                    score[i][j] = __int_as_float(0xff800000); // -infinity
                top = fmaxf(top, score[i][j]);
            }
#pragma unroll
            for (int step = 1; step < 16; step *= 2) // the 16 threads of a row are neighbouring lanes
                top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
            const float shrink = expf((largest[i] - top) * scale);
            largest[i] = top;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < 8; ++j)
                result[i][j] *= shrink;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float weight = expf((score[i][j] - top) * scale);
                sum[i] += weight; // a thread's share; added over the 16 threads at the end
                weights[(4 * ty + i) * WEIGHT_PITCH + tx + 16 * j] = weight;
            }
        }

        __syncthreads(); // all have read the keys
        loadTile(operand, v + n0 * row, n - n0, row, thread);
        __syncthreads(); // values and weights are there

        // rows 4 ty + i, columns 4 tx + (0 to 3) and 64 + 4 tx + (0 to 3)
#pragma unroll 2
        for (int key = 0; key < BN; key += 4) {
            float4 w[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                w[i] = fourAt(weights + (4 * ty + i) * WEIGHT_PITCH + key);
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                const float4 low = fourAt(operand + (key + step) * PITCH + 4 * tx);
                const float4 high = fourAt(operand + (key + step) * PITCH + 64 + 4 * tx);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float weight = step == 0 ? w[i].x : step == 1 ? w[i].y : step == 2 ? w[i].z : w[i].w;
                    result[i][0] += weight * low.x;
                    result[i][1] += weight * low.y;
                    result[i][2] += weight * low.z;
                    result[i][3] += weight * low.w;
                    result[i][4] += weight * high.x;
                    result[i][5] += weight * high.y;
                    result[i][6] += weight * high.z;
                    result[i][7] += weight * high.w;
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int step = 1; step < 16; step *= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], step);

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int r = 4 * ty + i;
        if (r < m) {
            const float inverse = sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f;
            __half *const to = out + r * row + 4 * tx;
            storeFour(to, result[i][0] * inverse, result[i][1] * inverse, result[i][2] * inverse,
                      result[i][3] * inverse);
            storeFour(to + 64, result[i][4] * inverse, result[i][5] * inverse, result[i][6] * inverse,
                      result[i][7] * inverse);
        }
    }
}
