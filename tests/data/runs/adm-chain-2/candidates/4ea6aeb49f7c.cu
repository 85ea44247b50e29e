/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64)", "H"]
block = ["128"]
shared = "88576"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int T", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128. Causal: the last query of a sequence attends to
// all keys, each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of k and v.
//
// A block owns 64 neighbouring queries of one head and takes 64 keys at a time. Both products are products of tiles in shared
// memory, a thread owns a patch of each in registers: 8 x 4 scores and 8 x 8 results. The queries of a block may belong to several
// sequences: each has its own range of keys, and the block walks over all that one of them needs.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 64, BN = 64, THREADS = 128;
constexpr int PITCH = D + 4;          // floats a row: neighbouring rows begin in other banks
constexpr int WEIGHT_PITCH = BN + 16; // the two rows that a warp writes at once lie in different halves of the banks
constexpr int ROWS = 8;               // rows a thread: ty + 8 i

// 64 rows of a tile as floats; rows from `rows` on are zeros. `stride` is in halves.
__device__ __forceinline__ void loadTile(float *to, const __half *from, int rows, size_t stride, int thread)
{
#pragma unroll 8
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
                                                                   int T, int H, int KV, float scale)
{
    extern __shared__ __align__(16) float room[];
    float *const queries = room;                   // BM x PITCH
    float *const operand = queries + BM * PITCH;   // BN x PITCH: keys, then values
    float *const weights = operand + BN * PITCH;   // BM x WEIGHT_PITCH
    int *const rowFirst = reinterpret_cast<int *>(weights + BM * WEIGHT_PITCH); // BM
    int *const rowLast = rowFirst + BM;                                         // BM

    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
    const int token0 = blockIdx.x * BM, head = blockIdx.y;
    const size_t row = size_t(KV) * D;
    k += size_t(head / (H / KV)) * D;
    v += size_t(head / (H / KV)) * D;

    if (thread < BM) {
        const int token = token0 + thread;
        int first = 0x7fffffff, last = 0; // no keys
        if (token < T) {
            int sequence = 0;
            while (token >= cuQ[sequence + 1])
                ++sequence;
            const int from = cuK[sequence];
            const int to = cuK[sequence + 1] - (cuQ[sequence + 1] - 1 - token); // may lie before the first
            if (from < to) {
                first = from;
                last = to;
            }
        }
        rowFirst[thread] = first;
        rowLast[thread] = last;
    }
    loadTile(queries, q + (size_t(token0) * H + head) * D, T - token0, size_t(H) * D, thread);
    __syncthreads();

    // What the block walks over; each warp finds the same.
    const int lane = thread % 32;
    const int begin = __reduce_min_sync(~0u, min(rowFirst[lane], rowFirst[lane + 32]));
    const int end = __reduce_max_sync(~0u, max(rowLast[lane], rowLast[lane + 32]));

    float largest[ROWS], sum[ROWS], result[ROWS][8];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        largest[i] = -1e30f; // finite: a row may have met nothing unmasked yet
        sum[i] = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; ++j)
            result[i][j] = 0.0f;
    }

    for (int n0 = begin; n0 < end; n0 += BN) {
        __syncthreads(); // all have read the values and the weights of the tile before
        loadTile(operand, k + n0 * row, end - n0, row, thread);
        __syncthreads();

        float score[ROWS][4]; // rows ty + 8 i, columns tx + 16 j
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                score[i][j] = 0.0f;
#pragma unroll 2
        for (int d = 0; d < D; d += 4) {
            float4 y[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                y[j] = fourAt(operand + (tx + 16 * j) * PITCH + d);
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const float4 x = fourAt(queries + (ty + 8 * i) * PITCH + d);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    score[i][j] += x.x * y[j].x;
                    score[i][j] += x.y * y[j].y;
                    score[i][j] += x.z * y[j].z;
                    score[i][j] += x.w * y[j].w;
                }
            }
        }

#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int r = ty + 8 * i;
            const int first = rowFirst[r], last = rowLast[r];
            float top = largest[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int key = n0 + tx + 16 * j;
                if (key < first || key >= last)
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
                sum[i] += weight; // this thread's share
                weights[r * WEIGHT_PITCH + tx + 16 * j] = weight;
            }
        }

        __syncthreads(); // all have read the keys, the weights are there
        loadTile(operand, v + n0 * row, end - n0, row, thread);
        __syncthreads();

        // rows ty + 8 i, columns 4 tx + (0 to 3) and 64 + 4 tx + (0 to 3)
#pragma unroll 2
        for (int key = 0; key < BN; key += 4) {
            float4 w[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                w[i] = fourAt(weights + (ty + 8 * i) * WEIGHT_PITCH + key);
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                const float4 low = fourAt(operand + (key + step) * PITCH + 4 * tx);
                const float4 high = fourAt(operand + (key + step) * PITCH + 64 + 4 * tx);
#pragma unroll
                for (int i = 0; i < ROWS; ++i) {
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
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int step = 1; step < 16; step *= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], step); // all threads reach it, also those of rows beyond the end
        const float inverse = sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f;
        const int token = token0 + ty + 8 * i;
        if (token < T) {
            __half *const to = out + (size_t(token) * H + head) * D;
            storeFour(to + 4 * tx, result[i][0] * inverse, result[i][1] * inverse, result[i][2] * inverse,
                      result[i][3] * inverse);
            storeFour(to + 64 + 4 * tx, result[i][4] * inverse, result[i][5] * inverse, result[i][6] * inverse,
                      result[i][7] * inverse);
        }
    }
}
