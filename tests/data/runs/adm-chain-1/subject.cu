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
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// One thread owns one query of one head and walks over its keys twice: for the largest score, and for the weights.

#include <cuda_fp16.h>

constexpr int D = 128;

__device__ float dot(const float (&a)[D], const __half *b)
{
    float sum = 0.0f;
#pragma unroll
    for (int d = 0; d < D; ++d)
        sum += a[d] * __half2float(b[d]);
    return sum;
}

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
    const int last = cuK[sequence + 1];
    const size_t row = size_t(H) * D;
    k += size_t(head) * D;
    v += size_t(head) * D;
    q += (size_t(token) * H + head) * D;
    out += (size_t(token) * H + head) * D;

    float query[D], result[D] = {};
#pragma unroll
    for (int d = 0; d < D; ++d)
        query[d] = __half2float(q[d]);

    float largest = __int_as_float(0xff800000); // -infinity
    for (int key = first; key < last; ++key)
        largest = fmaxf(largest, dot(query, k + key * row));

    float sum = 0.0f;
    for (int key = first; key < last; ++key) {
        const float weight = expf((dot(query, k + key * row) - largest) * scale);
        sum += weight;
#pragma unroll
        for (int d = 0; d < D; ++d)
            result[d] += weight * __half2float(v[key * row + d]);
    }

    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
#pragma unroll
    for (int d = 0; d < D; ++d)
        out[d] = __float2half(result[d] * inverse);
}
