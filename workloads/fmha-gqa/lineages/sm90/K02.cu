/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["256"]
shared = "(2 * 64 * 132 + 64 * 68) * 4"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// A block owns 64 queries of one head and takes 64 keys at a time: both products become products of tiles
// in shared memory. A thread computes 4 × 4 scores and 4 × 8 numbers of the output in registers, so that
// what it reads serves four multiply-adds, and the block reads k and v once for 64 queries. The 16 threads
// of four rows share their maxima and sums by shuffles; weights go through shared memory to the second product.
// Every row is masked at its diagonal, and the tiles above it are multiplied for nothing.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 64, BN = 64;
constexpr int PITCH = D + 4, WEIGHT_PITCH = BN + 4; // floats a row: neighbouring rows begin in other banks

// Rows of a tile as floats; rows from `rows` on are zeros.
__device__ __forceinline__ void loadTile(float *to, const __half *from, int rows, int H, int thread)
{
    for (int i = thread; i < BM * (D / 8); i += 256) {
        const int r = i / (D / 8), c = i % (D / 8);
        uint4 chunk = make_uint4(0, 0, 0, 0);
        if (r < rows)
            chunk = *reinterpret_cast<const uint4 *>(from + size_t(r) * H * D + c * 8);
        const unsigned words[] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
        for (int w = 0; w < 4; ++w)
            *reinterpret_cast<float2 *>(to + r * PITCH + c * 8 + 2 * w) =
                __half22float2(*reinterpret_cast<const __half2 *>(words + w));
    }
}

__device__ __forceinline__ float4 fourAt(const float *from)
{
    return *reinterpret_cast<const float4 *>(from);
}

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, int KV, float scale)
{
    extern __shared__ float tiles[];
    float *queries = tiles, *operand = queries + BM * PITCH, *weights = operand + BN * PITCH;

    // The block's tile: tiles of the sequences one after the other.
    int sequence = 0, index = blockIdx.x;
    for (; sequence < B; ++sequence) {
        const int tilesHere = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (index < tilesHere)
            break;
        index -= tilesHere;
    }
    if (sequence == B)
        return;
    const int head = blockIdx.y, group = H / KV, thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int last = cuK[sequence + 1];

    loadTile(queries, q + (size_t(row0) * H + head) * D, rows, H, thread);

    float largest[4], sum[4] = {}, result[4][8] = {};
    for (int i = 0; i < 4; ++i)
        largest[i] = -1e30f; // finite: a row may have met no key yet
    for (int key0 = cuK[sequence]; key0 < last; key0 += BN) {
        __syncthreads();
        loadTile(operand, k + (size_t(key0) * KV + head / group) * D, last - key0, KV, thread);
        __syncthreads();

        // Rows 4 ty + i, keys tx + 16 j.
        float score[4][4] = {};
        for (int d = 0; d < D; d += 4) {
            float4 a[4], b[4];
            for (int i = 0; i < 4; ++i)
                a[i] = fourAt(queries + (4 * ty + i) * PITCH + d);
            for (int j = 0; j < 4; ++j)
                b[j] = fourAt(operand + (tx + 16 * j) * PITCH + d);
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) {
                    score[i][j] += a[i].x * b[j].x;
                    score[i][j] += a[i].y * b[j].y;
                    score[i][j] += a[i].z * b[j].z;
                    score[i][j] += a[i].w * b[j].w;
                }
        }

        for (int i = 0; i < 4; ++i) {
            float top = largest[i];
            const int limit = last - (rows - 1 - (4 * ty + i)); // the first key that the row does not attend to
            for (int j = 0; j < 4; ++j) {
                if (key0 + tx + 16 * j >= min(limit, last))
                    score[i][j] = __int_as_float(0xff800000);
                top = fmaxf(top, score[i][j]);
            }
            for (int step = 1; step < 16; step *= 2)
                top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
            const float shrink = expf((largest[i] - top) * scale);
            largest[i] = top;
            sum[i] *= shrink;
            for (int j = 0; j < 8; ++j)
                result[i][j] *= shrink;
            for (int j = 0; j < 4; ++j) {
                const float weight = expf((score[i][j] - top) * scale);
                sum[i] += weight;
                weights[(4 * ty + i) * WEIGHT_PITCH + tx + 16 * j] = weight;
            }
        }
        __syncthreads();
        loadTile(operand, v + (size_t(key0) * KV + head / group) * D, last - key0, KV, thread);
        __syncthreads();

        // Rows 4 ty + i, columns 4 tx to 4 tx + 3 and the same from 64 on.
        for (int key = 0; key < BN; key += 4) {
            float4 a[4];
            for (int i = 0; i < 4; ++i)
                a[i] = fourAt(weights + (4 * ty + i) * WEIGHT_PITCH + key);
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                const float4 low = fourAt(operand + (key + step) * PITCH + 4 * tx);
                const float4 high = fourAt(operand + (key + step) * PITCH + 64 + 4 * tx);
                for (int i = 0; i < 4; ++i) {
                    const float weight = step == 0 ? a[i].x : step == 1 ? a[i].y : step == 2 ? a[i].z : a[i].w;
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

    for (int i = 0; i < 4; ++i) {
        for (int step = 1; step < 16; step *= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], step);
        if (4 * ty + i >= rows)
            continue;
        const float inverse = sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f;
        __half *to = out + (size_t(row0 + 4 * ty + i) * H + head) * D + 4 * tx;
        for (int half = 0; half < 2; ++half)
            for (int j = 0; j < 2; ++j)
                *reinterpret_cast<__half2 *>(to + 64 * half + 2 * j) = __floats2half2_rn(
                    result[i][4 * half + 2 * j] * inverse, result[i][4 * half + 2 * j + 1] * inverse);
    }
}
