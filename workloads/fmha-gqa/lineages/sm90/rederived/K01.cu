/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64)", "H"]
block = ["64"]
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int T", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// One thread owns one query of one head. It walks over its keys once: the weights are relative to the largest
// score so far, and when that grows, the sum of the weights and the weighted sum of v are shrunk to
// match. Neighbouring threads are neighbouring queries of one head, so that a warp reads one key at a time for
// all its lanes; but what is read serves one query a thread only.

#include <cuda_fp16.h>

constexpr int D = 128, CHUNKS = D / 8;

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

__device__ __forceinline__ float dot(const Chunk (&a)[CHUNKS], const Chunk *b)
{
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const Chunk other = b[c];
        const unsigned xs[] = {a[c].x, a[c].y, a[c].z, a[c].w}, ys[] = {other.x, other.y, other.z, other.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            sum += pair(xs[i]).x * pair(ys[i]).x;
            sum += pair(xs[i]).y * pair(ys[i]).y;
        }
    }
    return sum;
}

extern "C" __global__ __launch_bounds__(64) void attention(const Chunk *q, const Chunk *k, const Chunk *v,
                                                           const int *cuQ, const int *cuK, Chunk *out,
                                                           int T, int H, int KV, float scale)
{
    const int token = blockIdx.x * 64 + threadIdx.x, head = blockIdx.y, group = H / KV;
    if (token >= T)
        return;
    int sequence = 0;
    while (token >= cuQ[sequence + 1])
        ++sequence;
    const int first = cuK[sequence], last = cuK[sequence + 1] - (cuQ[sequence + 1] - 1 - token); // may lie before the first

    Chunk query[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
        query[c] = q[(size_t(token) * H + head) * CHUNKS + c];

    float largest = __int_as_float(0xff800000); // -infinity
    float sum = 0.0f, result[D] = {};
    for (int key = first; key < last; ++key) {
        const size_t row = (size_t(key) * KV + head / group) * CHUNKS;
        const float score = dot(query, k + row);
        if (score > largest) { // seldom, after the first keys
            const float shrink = expf((largest - score) * scale); // 0 at the first key
            largest = score;
            sum *= shrink;
#pragma unroll
            for (int i = 0; i < D; ++i)
                result[i] *= shrink;
        }
        const float weight = expf((score - largest) * scale);
        sum += weight;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const Chunk chunk = v[row + c];
            const unsigned words[] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                result[8 * c + 2 * i] += weight * pair(words[i]).x;
                result[8 * c + 2 * i + 1] += weight * pair(words[i]).y;
            }
        }
    }

    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        unsigned words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            words[i] = pack(result[8 * c + 2 * i] * inverse, result[8 * c + 2 * i + 1] * inverse);
        out[(size_t(token) * H + head) * CHUNKS + c] = make_uint4(words[0], words[1], words[2], words[3]);
    }
}
