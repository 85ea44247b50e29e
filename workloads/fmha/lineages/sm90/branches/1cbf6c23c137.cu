/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64)", "H"]
block = ["128"]
shared = "4 * (8 * (8 * D + 4) + 64 * D + 2 * (32 * D + 16) + 2 * (32 * 64 + 16))"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int T", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// One walk over the keys (online softmax), 64 queries and 64 keys at a time. The tiles lie in shared memory
// as f32, and a thread computes a patch of each product in registers: 4 queries by 8 keys of the scores, and
// for the same 4 queries 16 columns of the result. A warp has 16 queries to itself: its 4 by 8 threads
// exchange the largest scores by shuffles, and the weights through shared memory, without the other warps.
//
// 64 queries may belong to more than one sequence. Their keys lie one after the other as well: the block walks
// all of them, and a query's weight is zero for a key that is not of its sequence.

#include <cuda_fp16.h>

constexpr int D = 128, CHUNKS = D / 8, TILE = 64, THREADS = 128;

// A row of 128 numbers in shared memory is 32 pieces of four: the first halves of the 16 chunks, then the second
// halves. What is read at the same time must not share banks, so rows lie in sets, each a few banks further:
// row r of the keys in set r % 8, row r of the queries and of the weights in set r % 2.
constexpr int KEY_SET = TILE / 8 * D + 4, QUERY_SET = TILE / 2 * D + 16, WEIGHT_SET = TILE / 2 * TILE + 16;
constexpr int KEYS = 0, VALUES = KEYS + 8 * KEY_SET, QUERIES = VALUES + TILE * D, WEIGHTS = QUERIES + 2 * QUERY_SET;

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

__device__ __forceinline__ void load4(float (&to)[4], const float *from)
{
    const float4 four = *reinterpret_cast<const float4 *>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

__device__ __forceinline__ void store4(float *to, float a, float b, float c, float d)
{
    *reinterpret_cast<float4 *>(to) = make_float4(a, b, c, d);
}

// Chunk c of a row into shared memory.
__device__ __forceinline__ void spread(float *row, int c, const Chunk &chunk)
{
    const float2 x = pair(chunk.x), y = pair(chunk.y), z = pair(chunk.z), w = pair(chunk.w);
    store4(row + 4 * c, x.x, x.y, y.x, y.y);
    store4(row + D / 2 + 4 * c, z.x, z.y, w.x, w.y);
}

extern "C" __global__ __launch_bounds__(THREADS, 2) void attention(const Chunk *q, const Chunk *k, const Chunk *v,
                                                                   const int *cuQ, const int *cuK, Chunk *out,
                                                                   int T, int H, float scale)
{
    extern __shared__ __align__(128) float tiles[];

    const float lowest = __int_as_float(0xff800000); // -infinity
    const int token0 = blockIdx.x * TILE, head = blockIdx.y;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // The thread's place among the warp's 4 by 8: its queries are y + 4 i of the warp's 16.
    const int x = (lane >> 1) & 7, y = (lane & 1) | (lane >> 4 << 1);
    // What it copies: chunk `column` of the rows line + 8 n.
    const int column = threadIdx.x % CHUNKS, line = threadIdx.x / CHUNKS;

    // The keys of all sequences that the block's queries belong to, and those of each of the thread's queries.
    int sequence = 0;
    while (token0 >= cuQ[sequence + 1])
        ++sequence;
    int other = sequence;
    const int token1 = min(token0 + TILE - 1, T - 1);
    while (token1 >= cuQ[other + 1])
        ++other;
    const int start = cuK[sequence], stop = cuK[other + 1];
    const bool alike = sequence == other;

    int first[4], last[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int token = min(token0 + 16 * warp + y + 4 * i, T - 1);
        int own = sequence;
        while (token >= cuQ[own + 1])
            ++own;
        first[i] = cuK[own];
        last[i] = cuK[own + 1];
    }

    // The queries; the walk's barriers are waited at before they are read.
#pragma unroll
    for (int n = 0; n < 8; ++n) {
        const int token = min(token0 + line + 8 * n, T - 1);
        const Chunk chunk = q[(size_t(token) * H + head) * CHUNKS + column];
        spread(tiles + QUERIES + (line & 1) * QUERY_SET + ((line >> 1) + 4 * n) * D, column, chunk);
    }

    const float *const queryRows = tiles + QUERIES + (y & 1) * QUERY_SET + (8 * warp + (y >> 1)) * D;
    const float *const keyRows = tiles + KEYS + x * KEY_SET;
    const float *const valueRows = tiles + VALUES + 4 * x;
    float *const weightRows = tiles + WEIGHTS + (y & 1) * WEIGHT_SET + (8 * warp + (y >> 1)) * TILE;

    // Weights are relative to the largest score so far; a larger one shrinks what has been added up.
    // A thread's sums are those of its own keys until the end.
    float largest[4] = {lowest, lowest, lowest, lowest};
    float sum[4] = {}, result[4][16] = {};
    for (int tile = start; tile < stop; tile += TILE) {
        {
            Chunk keys[8], values[8];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const int key = min(tile + line + 8 * n, stop - 1);
                const size_t from = (size_t(key) * H + head) * CHUNKS + column;
                keys[n] = k[from];
                values[n] = v[from];
            }
            __syncthreads(); // the tile before has been read
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                spread(tiles + KEYS + line * KEY_SET + n * D, column, keys[n]);
                spread(tiles + VALUES + (line + 8 * n) * D, column, values[n]);
            }
            __syncthreads();
        }

        // Scores of the queries y + 4 i and the keys x + 8 j.
        float score[4][8] = {};
#pragma unroll 4
        for (int c = 0; c < D / 4; ++c) {
            float a[4][4], b[8][4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load4(a[i], queryRows + i * 2 * D + 4 * c);
#pragma unroll
            for (int j = 0; j < 8; ++j)
                load4(b[j], keyRows + j * D + 4 * c);
#pragma unroll
            for (int e = 0; e < 4; ++e)
#pragma unroll
                for (int j = 0; j < 8; ++j)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        score[i][j] += a[i][e] * b[j][e];
        }

        if (!alike || tile + TILE > stop) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const int key = tile + x + 8 * j;
                    if (key < first[i] || key >= last[i])
                        score[i][j] = lowest;
                }
        }

#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float top = score[i][0];
#pragma unroll
            for (int j = 1; j < 8; ++j)
                top = fmaxf(top, score[i][j]);
#pragma unroll
            for (int step = 2; step <= 8; step *= 2)
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
            if (top > largest[i]) {
                const float shrink = expf((largest[i] - top) * scale);
                sum[i] *= shrink;
#pragma unroll
                for (int n = 0; n < 16; ++n)
                    result[i][n] *= shrink;
                largest[i] = top;
            }
            // A query that none of the keys so far is for: all weights are to be zero.
            const float base = largest[i] > lowest ? largest[i] : 0.0f;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                score[i][j] = expf((score[i][j] - base) * scale);
                sum[i] += score[i][j];
            }
            // Piece 8 h + x of a row holds the weights of the keys 32 h + x + 8 e.
            float *const row = weightRows + i * 2 * TILE + 4 * x;
            store4(row, score[i][0], score[i][1], score[i][2], score[i][3]);
            store4(row + 32, score[i][4], score[i][5], score[i][6], score[i][7]);
        }
        __syncwarp();

        // The result's pieces x + 8 g: the two halves of the chunks x (g = 0, 2) and x + 8 (g = 1, 3).
#pragma unroll 1
        for (int h = 0; h < 2; ++h) {
#pragma unroll 2
            for (int piece = 0; piece < 8; ++piece) {
                float weight[4][4];
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    load4(weight[i], weightRows + i * 2 * TILE + 4 * (8 * h + piece));
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    float value[4][4];
#pragma unroll
                    for (int g = 0; g < 4; ++g)
                        load4(value[g], valueRows + (32 * h + piece + 8 * e) * D + 32 * g);
#pragma unroll
                    for (int g = 0; g < 4; ++g)
#pragma unroll
                        for (int n = 0; n < 4; ++n)
#pragma unroll
                            for (int i = 0; i < 4; ++i)
                                result[i][4 * g + n] += weight[i][e] * value[g][n];
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float total = sum[i];
#pragma unroll
        for (int step = 2; step <= 8; step *= 2)
            total += __shfl_xor_sync(0xffffffffu, total, step);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int token = token0 + 16 * warp + y + 4 * i;
        if (token < T) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                unsigned words[4];
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    words[n] = pack(result[i][4 * c + 2 * n] * inverse, result[i][4 * c + 2 * n + 1] * inverse);
                    words[2 + n] = pack(result[i][8 + 4 * c + 2 * n] * inverse, result[i][8 + 4 * c + 2 * n + 1] * inverse);
                }
                out[(size_t(token) * H + head) * CHUNKS + x + 8 * c] = make_uint4(words[0], words[1], words[2], words[3]);
            }
        }
    }
}
