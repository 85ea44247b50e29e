/*klineage
surface = "cuda"

[[launch]]
kernel = "attend"
grid = ["T", "H"]
block = [128]
args = ["q", "k", "v", "cu_q", "cu_k", "output", "int B", "int T", "int H"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A block a query, a thread a key: scores to shared memory in pieces, then a thread an element of the result.


#include <cuda_fp16.h>

constexpr int D = 64, PIECE = 128;
extern "C" __global__ __launch_bounds__(128) void attend(const __half *q, const __half *k, const __half *v, const int *cuQ, const int *cuK, __half *out, int B, int, int H)
{
    __shared__ float query[D], weights[PIECE], halves[D], warps[4];
    const int token = blockIdx.x, head = blockIdx.y, me = threadIdx.x;
    if (me < D)
        query[me] = 0.125f * __half2float(q[(size_t(token) * H + head) * D + me]);
    int sequence = 0;
    while (sequence + 1 < B && cuQ[sequence + 1] <= token)
        ++sequence;
    const int begin = cuK[sequence], end = cuK[sequence + 1];
    float top = __int_as_float(0xff800000), total = 0, sum = 0;
    for (int first = begin; first < end; first += PIECE) {
        __syncthreads();
        float score = __int_as_float(0xff800000);
        if (first + me < end) {
            const __half2 *key = reinterpret_cast<const __half2 *>(k + (size_t(first + me) * H + head) * D);
            score = 0;
            for (int i = D / 2 - 1; i >= 0; --i) {
                const float2 pair = __half22float2(key[i]);
                score = fmaf(pair.x, query[2 * i], fmaf(pair.y, query[2 * i + 1], score));
            }
        }
        float most = score;
        for (int step = 16; step > 0; step /= 2)
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
        if (me % 32 == 0)
            warps[me / 32] = most;
        __syncthreads();
        const float above = fmaxf(fmaxf(fmaxf(warps[0], warps[1]), fmaxf(warps[2], warps[3])), top), scale = expf(top - above);
        top = above;
        weights[me] = expf(score - top);
        __syncthreads();
        total *= scale;
        sum *= scale;
        const int count = min(PIECE, end - first);
        for (int i = me / D; i < count; i += 2) { // even keys, and odd ones
            total += weights[i];
            sum = fmaf(weights[i], __half2float(v[(size_t(first + i) * H + head) * D + me % D]), sum);
        }
    }
    __syncthreads();
    if (me >= D)
        halves[me - D] = sum;
    if (me == D)
        weights[0] = total;
    __syncthreads();
    if (me < D)
        out[(size_t(token) * H + head) * D + me] = __float2half((sum + halves[me]) / (total + weights[0]));
}
