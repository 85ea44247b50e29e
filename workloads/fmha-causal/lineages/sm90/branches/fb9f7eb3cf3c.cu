/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64)", "H"]
block = ["128"]
shared = "(2 * 64 * 132 + 64 * 128) * 4"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int T", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros; D is 128.
//
// A block has a tile of 64 queries and walks tiles of 64 keys (online softmax), all in shared memory as f32. A thread computes a patch
// of each product in registers: the scores of 8 queries and 4 keys, and 8 numbers of the results of the same 8 queries. The largest
// score of a query is that of the 16 threads that share it; when it grows, what has been added up relative to the old one is shrunk
// by the quotient. The weights go from the one patch to the other through shared memory, where the keys were.
// The queries of a tile may be of several sequences: each has its own range of keys, and scores outside of it are masked.

#include <cuda_fp16.h>

constexpr int D = 128, CHUNKS = D / 8;
constexpr int QUERIES = 64, KEYS = 64, THREADS = 128;
constexpr int ROWS = 8, COLUMNS = 4;       // a thread's patch of the scores; of the results it has ROWS × 8
constexpr int STRIDE = D + 4;              // of queries and keys: eight consecutive rows lie in different banks
constexpr int WEIGHTS = KEYS + 16;         // of weights
constexpr int FILL = KEYS * CHUNKS / THREADS; // chunks of a tile that a thread loads
static_assert(QUERIES == KEYS && QUERIES * WEIGHTS <= KEYS * STRIDE, "the weights take the place of the keys");

// Eight numbers.
typedef uint4 Chunk;

__device__ __forceinline__ float2 pair(unsigned word)
{
    return __half22float2(*reinterpret_cast<const __half2 *>(&word));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

// Within a row the first halves of all chunks come first, then the second halves: no bank conflicts, and the order of the sum in a dot
// product is free.
__device__ __forceinline__ void spread(const Chunk &chunk, float *to)
{
    const float2 a = pair(chunk.x), b = pair(chunk.y), c = pair(chunk.z), d = pair(chunk.w);
    *reinterpret_cast<float4 *>(to) = make_float4(a.x, a.y, b.x, b.y);
    *reinterpret_cast<float4 *>(to + D / 2) = make_float4(c.x, c.y, d.x, d.y);
}

__device__ __forceinline__ void take(float (&to)[4], const float *from)
{
    const float4 four = *reinterpret_cast<const float4 *>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

extern "C" __global__ __launch_bounds__(128, 2) void attention(const Chunk *q, const Chunk *k, const Chunk *v,
                                                               const int *cuQ, const int *cuK, Chunk *out,
                                                               int T, int H, float scale)
{
    extern __shared__ float4 shared[];
    __shared__ int2 bounds[QUERIES]; // the first key of a query and the one after its last, which may lie before the first
    float *const queries = reinterpret_cast<float *>(shared);
    float *const keys = queries + QUERIES * STRIDE;
    float *const values = keys + KEYS * STRIDE;
    float *const weights = keys;

    const int thread = threadIdx.x, head = blockIdx.y, tile = blockIdx.x * QUERIES;

    // Loading: a thread has one chunk of every eighth row.
    const int loadChunk = thread % CHUNKS, loadRow = thread / CHUNKS;

    // Computing: a warp has 16 queries; a thread has every other one of them, and every 16th key. Neighbours in bit 0 of the lane share
    // queries, those in bit 1 share keys, so that vector loads of either are merged.
    const int lane = thread % 32, row = thread / 32 * 16 + (lane >> 1 & 1), column = (lane & 1) | (lane >> 2) << 1;

    if (thread < QUERIES) {
        const int token = tile + thread;
        int2 range = make_int2(0, 0);
        if (token < T) {
            int sequence = 0;
            while (token >= cuQ[sequence + 1])
                ++sequence;
            range.x = cuK[sequence];
            range.y = cuK[sequence + 1] - (cuQ[sequence + 1] - 1 - token);
        }
        bounds[thread] = range;
    }
#pragma unroll
    for (int i = 0; i < FILL; ++i) {
        const int r = loadRow + i * (THREADS / CHUNKS), token = tile + r;
        Chunk chunk = make_uint4(0, 0, 0, 0);
        if (token < T)
            chunk = q[(size_t(token) * H + head) * CHUNKS + loadChunk];
        spread(chunk, queries + r * STRIDE + 4 * loadChunk);
    }
    __syncthreads();

    // The keys of all queries of the tile; up to `whole` no score needs a mask.
    const int2 front = bounds[0], back = bounds[min(QUERIES, T - tile) - 1];
    const int begin = front.x, end = max(back.x, back.y), whole = front.x == back.x ? front.y : begin;

    const float *const myQueries = queries + row * STRIDE;
    const float *const myKeys = keys + column * STRIDE;
    const float *const myValues = values + 4 * column;
    float *const myWeights = weights + row * WEIGHTS;

    // Weights are relative to the largest score so far; a larger one shrinks what has been added up.
    const float minusInfinity = __int_as_float(0xff800000);
    float largest[ROWS], sum[ROWS], result[ROWS][8]; // the sum is of this thread's keys only, until the end
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        largest[i] = minusInfinity;
        sum[i] = 0.0f;
#pragma unroll
        for (int x = 0; x < 8; ++x)
            result[i][x] = 0.0f;
    }

    for (int key0 = begin; key0 < end; key0 += KEYS) {
        {
            Chunk keyChunks[FILL], valueChunks[FILL];
#pragma unroll
            for (int i = 0; i < FILL; ++i) {
                const int key = key0 + loadRow + i * (THREADS / CHUNKS);
                keyChunks[i] = make_uint4(0, 0, 0, 0);
                valueChunks[i] = make_uint4(0, 0, 0, 0);
                if (key < end) {
                    const size_t at = (size_t(key) * H + head) * CHUNKS + loadChunk;
                    keyChunks[i] = k[at];
                    valueChunks[i] = v[at];
                }
            }
            __syncthreads(); // all are done with the tile before
#pragma unroll
            for (int i = 0; i < FILL; ++i) {
                const int r = loadRow + i * (THREADS / CHUNKS);
                spread(keyChunks[i], keys + r * STRIDE + 4 * loadChunk);
                spread(valueChunks[i], values + r * D + 4 * loadChunk);
            }
            __syncthreads();
        }

        // The first product: queries row + 2 i, keys column + 16 j.
        float score[ROWS][COLUMNS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                score[i][j] = 0.0f;
#pragma unroll 4
        for (int d = 0; d < D; d += 4) {
            float a[ROWS][4], b[COLUMNS][4];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                take(a[i], myQueries + 2 * i * STRIDE + d);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                take(b[j], myKeys + 16 * j * STRIDE + d);
#pragma unroll
            for (int x = 0; x < 4; ++x)
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        score[i][j] += a[i][x] * b[j][x];
        }

        if (key0 + KEYS > whole) {
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const int2 range = bounds[row + 2 * i];
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j) {
                    const int key = key0 + column + 16 * j;
                    if (key < range.x || key >= range.y)
                        score[i][j] = minusInfinity;
                }
            }
        }

        // The largest of each query: 16 threads share it, which differ in all bits of the lane but bit 1.
        float top[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            top[i] = fmaxf(fmaxf(score[i][0], score[i][1]), fmaxf(score[i][2], score[i][3]));
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
#pragma unroll
        for (int bit = 4; bit < 32; bit *= 2)
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], bit));

#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            if (top[i] > largest[i]) {
                const float shrink = expf((largest[i] - top[i]) * scale);
                sum[i] *= shrink;
#pragma unroll
                for (int x = 0; x < 8; ++x)
                    result[i][x] *= shrink;
                largest[i] = top[i];
            }
            const float base = largest[i] > minusInfinity ? largest[i] : 0.0f; // no key yet: all weights are zero
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                score[i][j] = expf((score[i][j] - base) * scale);
                sum[i] += score[i][j];
            }
        }

        // The weights of keys c, c + 16, c + 32 and c + 48 lie side by side. A warp reads only what it has written.
        __syncthreads(); // all are done with the keys
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            *reinterpret_cast<float4 *>(myWeights + 2 * i * WEIGHTS + 4 * column) =
                make_float4(score[i][0], score[i][1], score[i][2], score[i][3]);
        __syncwarp();

        // The second product: queries row + 2 i, numbers 8 column to 8 column + 7.
#pragma unroll 2
        for (int c = 0; c < KEYS / COLUMNS; ++c) {
            float weight[ROWS][4];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                take(weight[i], myWeights + 2 * i * WEIGHTS + 4 * c);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                float low[4], high[4];
                take(low, myValues + (c + 16 * j) * D);
                take(high, myValues + (c + 16 * j) * D + D / 2);
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int x = 0; x < 4; ++x) {
                        result[i][x] += weight[i][j] * low[x];
                        result[i][4 + x] += weight[i][j] * high[x];
                    }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
#pragma unroll
        for (int bit = 4; bit < 32; bit *= 2)
            sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], bit);
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int token = tile + row + 2 * i;
        if (token < T) {
            const float inverse = sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f;
            unsigned words[4];
#pragma unroll
            for (int x = 0; x < 4; ++x)
                words[x] = pack(result[i][2 * x] * inverse, result[i][2 * x + 1] * inverse);
            out[(size_t(token) * H + head) * CHUNKS + column] = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}
