/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64)", "H"]
block = ["64"]
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int T", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128. Causal: the last query of a sequence attends to
// all keys, each one before it to one key fewer, and one that attends to none gives zeros.
//
// One thread owns one query of one head and walks over its keys once, a few at a time: what has been added up is relative to the
// largest score so far, and is shrunk once a group of keys by the exponential of the maximum's growth.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int GROUP = 4; // keys whose maximum joins the running one at once

extern "C" __global__ __launch_bounds__(64) void attention(const __half *q, const __half *k, const __half *v,
                                                           const int *cuQ, const int *cuK, __half *out,
                                                           int T, int H, float scale)
{
    const int token = blockIdx.x * 64 + threadIdx.x, head = blockIdx.y;
    if (token >= T)
        return;
    int sequence = 0;
    while (token >= cuQ[sequence + 1])
        ++sequence;
    const int first = cuK[sequence];
    const int last = cuK[sequence + 1] - (cuQ[sequence + 1] - 1 - token); // may lie before the first
    const size_t row = size_t(H) * D;
    k += size_t(head) * D;
    v += size_t(head) * D;
    q += (size_t(token) * H + head) * D;
    out += (size_t(token) * H + head) * D;

    float query[D], result[D] = {};
#pragma unroll
    for (int d = 0; d < D; ++d)
        query[d] = __half2float(q[d]);

    float largest = -1e30f; // finite, below every score: no difference of infinities is formed
    float sum = 0.0f;
#pragma unroll 1
    for (int key = first; key < last; key += GROUP) {
        size_t offset[GROUP];
        float weight[GROUP];
#pragma unroll
        for (int j = 0; j < GROUP; ++j) {
            offset[j] = size_t(min(key + j, last - 1)) * row; // past the end: the last key again, with weight 0
            weight[j] = 0.0f;
        }

        // The scores of the group, each computed once.
#pragma unroll
        for (int d = 0; d < D; ++d) {
#pragma unroll
            for (int j = 0; j < GROUP; ++j)
                weight[j] += query[d] * __half2float(k[offset[j] + d]);
        }

        float top = largest;
#pragma unroll
        for (int j = 0; j < GROUP; ++j) {
            if (key + j >= last)
                weight[j] = __int_as_float(0xff800000); // -infinity
            top = fmaxf(top, weight[j]);
        }

        const float shrink = expf((largest - top) * scale); // 1 where the maximum stays, 0 at the first group
        largest = top;
        sum *= shrink;
#pragma unroll
        for (int j = 0; j < GROUP; ++j) {
            weight[j] = expf((weight[j] - top) * scale); // at most 1
            sum += weight[j];
        }

#pragma unroll
        for (int d = 0; d < D; ++d) {
            float value = result[d] * shrink;
#pragma unroll
            for (int j = 0; j < GROUP; ++j)
                value += weight[j] * __half2float(v[offset[j] + d]);
            result[d] = value;
        }
    }

    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
#pragma unroll
    for (int d = 0; d < D; ++d)
        out[d] = __float2half(result[d] * inverse);
}
