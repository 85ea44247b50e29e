/*klineage
surface = "cuda"

[[launch]]
kernel = "chunk_forward"
grid = ["HV", "B"]
block = ["D"]
shared = "(2 * 64 * D + 64 * 64 + 64) * 4"
args = ["q", "k", "v", "g", "beta", "a", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "int D", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass as it is defined, chunk by chunk. A block computes one head, a thread one column of everything that
// has one: of W, which is as wide as the keys, and of U, the updates, the outputs and the state, which lives in final_state.

#include <cuda_bf16.h>

constexpr int C = 64; // tokens a chunk

extern "C" __global__ void chunk_forward(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                         const float *g, const float *beta, const __nv_bfloat16 *a,
                                         const float *initial_state, float *output, float *final_state, int T, int HQ,
                                         int HV, int D, float scale)
{
    extern __shared__ float dynamicShared[];
    float *w = dynamicShared, *updates = w + C * D, *scores = updates + C * D, *sums = scores + C * C;

    const int head = blockIdx.x, batch = blockIdx.y, column = threadIdx.x;
    const size_t first = (size_t(batch) * HV + head) * D * D + column;
    const float *from = initial_state + first;
    float *state = final_state + first;
    for (int d = 0; d < D; ++d)
        state[d * D] = from[d * D];

    for (int start = 0; start < T; start += C) {
        const int rows = min(C, T - start);
        const size_t token = size_t(batch) * T + start, gate = token * HV + head;
        const size_t keyPitch = size_t(HQ) * D, row0 = token * keyPitch + head / (HV / HQ) * D;

        __syncthreads(); // the chunk before is done with
        if (column == 0) {
            float sum = 0.0f;
            for (int i = 0; i < rows; ++i) {
                sum += g[gate + i * HV];
                sums[i] = sum;
            }
        }
        __syncthreads();

        for (int entry = column; entry < rows * rows; entry += D) {
            const int i = entry / rows, j = entry % rows;
            float sum = 0.0f;
            if (j <= i) {
                for (int d = 0; d < D; ++d)
                    sum += __bfloat162float(q[row0 + i * keyPitch + d]) * __bfloat162float(k[row0 + j * keyPitch + d]);
                sum *= expf(sums[i] - sums[j]);
            }
            scores[i * C + j] = sum;
        }
        for (int i = 0; i < rows; ++i) {
            const __nv_bfloat16 *matrix = a + (gate + i * HV) * C;
            float fromKeys = 0.0f, fromValues = 0.0f;
            for (int j = 0; j < rows; ++j) {
                const float factor = __bfloat162float(matrix[j]) * beta[gate + j * HV];
                fromKeys += factor * expf(sums[j]) * __bfloat162float(k[row0 + j * keyPitch + column]);
                fromValues += factor * __bfloat162float(v[(gate + j * HV) * D + column]);
            }
            w[i * D + column] = fromKeys;
            updates[i * D + column] = fromValues;
        }
        __syncthreads();

        for (int i = 0; i < rows; ++i) {
            float sum = 0.0f;
            for (int d = 0; d < D; ++d)
                sum += w[i * D + d] * state[d * D];
            updates[i * D + column] -= sum;
        }
        for (int i = 0; i < rows; ++i) {
            float sum = 0.0f;
            for (int d = 0; d < D; ++d)
                sum += __bfloat162float(q[row0 + i * keyPitch + d]) * state[d * D];
            sum *= expf(sums[i]);
            for (int j = 0; j <= i; ++j)
                sum += scores[i * C + j] * updates[j * D + column];
            output[(gate + i * HV) * D + column] = sum * scale;
        }
        const float last = sums[rows - 1];
        for (int d = 0; d < D; ++d) {
            float sum = expf(last) * state[d * D];
            for (int j = 0; j < rows; ++j)
                sum += expf(last - sums[j]) * __bfloat162float(k[row0 + j * keyPitch + d]) * updates[j * D + column];
            state[d * D] = sum;
        }
    }
}
