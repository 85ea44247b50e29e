/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["128"]
shared = "4 * (2 * 64 * 132 + 64 * 32)"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// The two walks are one (online softmax): the largest score so far is kept, and when it grows, what has been
// added up relative to the old one is shrunk by the quotient.
//
// A block has 64 queries of one sequence and walks over its keys, 64 at a time. Queries and keys, then values in
// the keys' place, lie in shared memory as f32. A warp has 16 queries; a thread has 4 of them, with 8 of
// the tile's keys in the first product and 16 of the columns in the second: a patch of each in registers.
// The weights go from the one patch to the other through the warp's own strip of shared memory, 32 keys at a time.

#include <cuda_fp16.h>

constexpr int D = 128, CHUNKS = D / 4, TILE = 64, THREADS = 128;
constexpr int PITCH = D + 4;                 // of a row in shared memory: 8 rows in turn start at different banks
constexpr int STAGE = TILE * 32 / THREADS;   // chunks of a tile a thread carries
constexpr int STRIP = 32;                    // keys whose weights are in shared memory at a time

// Four numbers.
typedef uint2 Chunk;

__device__ __forceinline__ float2 pair(unsigned word)
{
    return __half22float2(*reinterpret_cast<const __half2 *>(&word));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

// A tile on its way to shared memory: a warp carries a row at a time. Rows from the given one on are zeros.
__device__ __forceinline__ void fetch(Chunk (&stage)[STAGE], const Chunk *from, int stride, int rows)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < STAGE; ++i) {
        const int row = warp + THREADS / 32 * i;
        stage[i] = make_uint2(0u, 0u);
        if (row < rows)
            stage[i] = from[size_t(row) * stride + lane];
    }
}

__device__ __forceinline__ void place(float *tile, const Chunk (&stage)[STAGE])
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < STAGE; ++i) {
        const int row = warp + THREADS / 32 * i;
        const float2 low = pair(stage[i].x), high = pair(stage[i].y);
        *reinterpret_cast<float4 *>(tile + row * PITCH + 4 * lane) = make_float4(low.x, low.y, high.x, high.y);
    }
}

extern "C" __global__ __launch_bounds__(THREADS, 3) void attention(const Chunk *q, const Chunk *k, const Chunk *v,
                                                                   const int *cuQ, const int *cuK, Chunk *out,
                                                                   int B, int H, int KV, float scale)
{
    extern __shared__ float4 memory[];
    float *queries = reinterpret_cast<float *>(memory), *others = queries + TILE * PITCH, *weights = others + TILE * PITCH;

    const int head = blockIdx.y, group = H / KV;
    int sequence = 0, tile = blockIdx.x;
    for (;; ++sequence) {
        if (sequence == B)
            return; // the grid has up to B tiles too many
        const int tiles = (cuQ[sequence + 1] - cuQ[sequence] + TILE - 1) / TILE;
        if (tile < tiles)
            break;
        tile -= tiles;
    }
    const int token = cuQ[sequence] + tile * TILE, rows = min(TILE, cuQ[sequence + 1] - token);
    const int first = cuK[sequence];
    // So many keys does the tile's first query attend to, each one after it to one more; may be below zero.
    const int reach = cuK[sequence + 1] - first - (cuQ[sequence + 1] - 1 - token);
    const int stop = reach + rows - 1;

    // The lanes of a warp are 4 (queries) by 8 (keys, columns), interleaved such that neighbours share what they read.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int ty = (lane & 1) | ((lane >> 2) & 2), tx = ((lane >> 1) & 3) | ((lane >> 2) & 4);
    const int mine = 16 * warp + ty; // and 4, 8 and 12 further

    Chunk stage[STAGE];
    fetch(stage, q + (size_t(token) * H + head) * CHUNKS, H * CHUNKS, rows);
    place(queries, stage);

    const float *queryRow = queries + mine * PITCH, *keyRow = others + tx * PITCH, *column = others + 4 * tx;
    float *weightRow = weights + mine * STRIP;

    // Weights are relative to the largest score so far; a larger one shrinks what has been added up.
    const float nothing = __int_as_float(0xff800000); // -infinity
    float largest[4], sum[4], result[4][16];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        largest[i] = nothing;
        sum[i] = 0.0f;
#pragma unroll
        for (int j = 0; j < 16; ++j)
            result[i][j] = 0.0f;
    }

    for (int base = 0; base < stop; base += TILE) {
        const size_t row = (size_t(first + base) * KV + head / group) * CHUNKS;

        fetch(stage, k + row, KV * CHUNKS, stop - base);
        __syncthreads(); // the values before have been read
        place(others, stage);
        __syncthreads();

        // The first product: queries mine + 4 i, keys tx + 8 j.
        float weight[4][8];
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 8; ++j)
                weight[i][j] = 0.0f;
#pragma unroll 4
        for (int c = 0; c < D; c += 4) {
            float4 x[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                x[i] = *reinterpret_cast<const float4 *>(queryRow + 4 * i * PITCH + c);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const float4 y = *reinterpret_cast<const float4 *>(keyRow + 8 * j * PITCH + c);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    weight[i][j] += x[i].x * y.x;
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    weight[i][j] += x[i].y * y.y;
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    weight[i][j] += x[i].z * y.z;
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    weight[i][j] += x[i].w * y.w;
            }
        }

        fetch(stage, v + row, KV * CHUNKS, stop - base);

        // Only a tile that the diagonal crosses, or that the keys do not fill, has something to mask.
        if (base + TILE > reach) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    if (base + tx + 8 * j >= reach + mine + 4 * i)
                        weight[i][j] = nothing;
        }

#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float next = largest[i];
#pragma unroll
            for (int j = 0; j < 8; ++j)
                next = fmaxf(next, weight[i][j]);
            next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 2));
            next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 4));
            next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 16));
            const float origin = next == nothing ? 0.0f : next; // a query that attends to none
            const float shrink = expf((largest[i] - origin) * scale);
            largest[i] = next;
            sum[i] *= shrink; // of this thread's keys; the threads' sums are added up at the end
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                weight[i][j] = expf((weight[i][j] - origin) * scale);
                sum[i] += weight[i][j];
            }
#pragma unroll
            for (int j = 0; j < 16; ++j)
                result[i][j] *= shrink;
        }

        __syncthreads(); // the keys have been read
        place(others, stage);
        __syncthreads();

        // The second product: queries mine + 4 i, columns 4 tx + 32 j and the three after it.
#pragma unroll
        for (int half = 0; half < TILE / STRIP; ++half) {
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    weightRow[4 * i * STRIP + 4 * (((tx >> 2) + 2 * j) ^ (2 * ty)) + (tx & 3)] = weight[i][4 * half + j];
            __syncwarp();

#pragma unroll 2
            for (int c = 0; c < STRIP / 4; ++c) {
                float x[4][4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float4 four = *reinterpret_cast<const float4 *>(weightRow + 4 * i * STRIP + 4 * (c ^ (2 * ty)));
                    x[i][0] = four.x;
                    x[i][1] = four.y;
                    x[i][2] = four.z;
                    x[i][3] = four.w;
                }
                const float *value = column + (STRIP * half + 4 * c) * PITCH;
#pragma unroll
                for (int key = 0; key < 4; ++key) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const float4 y = *reinterpret_cast<const float4 *>(value + key * PITCH + 32 * j);
#pragma unroll
                        for (int i = 0; i < 4; ++i) {
                            result[i][4 * j] += x[i][key] * y.x;
                            result[i][4 * j + 1] += x[i][key] * y.y;
                            result[i][4 * j + 2] += x[i][key] * y.z;
                            result[i][4 * j + 3] += x[i][key] * y.w;
                        }
                    }
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float total = sum[i];
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        total += __shfl_xor_sync(0xffffffffu, total, 4);
        total += __shfl_xor_sync(0xffffffffu, total, 16);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        if (mine + 4 * i < rows) {
            Chunk *to = out + (size_t(token + mine + 4 * i) * H + head) * CHUNKS + tx;
#pragma unroll
            for (int j = 0; j < 4; ++j)
                to[8 * j] = make_uint2(pack(result[i][4 * j] * inverse, result[i][4 * j + 1] * inverse),
                                       pack(result[i][4 * j + 2] * inverse, result[i][4 * j + 3] * inverse));
        }
    }
}
