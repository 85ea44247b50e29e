/*klineage
surface = "cuda"

[[launch]]
kernel = "delta"
grid = ["B * HV"]
block = [256]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int B", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixteen tokens at a time: what a token puts into the state follows from those before it by a triangular system, solved one after another.

#include <cuda_bf16.h>

constexpr int D = 16;
extern "C" __global__ __launch_bounds__(256) void delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, const float *initial, float *out, float *final, int, int T, int HQ, int HV)
{
    __shared__ float state[D][D + 1], key[D][D + 1], query[D][D + 1], update[D][D + 1], system[D][D + 1], mixing[D][D + 1], sums[D], weight[D];
    const int batch = blockIdx.x / HV, head = blockIdx.x % HV, keyHead = head / (HV / HQ), t = threadIdx.x / D, j = threadIdx.x % D;
    const size_t at = size_t(blockIdx.x) * D * D + threadIdx.x;
    state[t][j] = initial[at];
    for (int first = 0; first < T; first += D) {
        const bool there = first + t < T; // tokens past the end change nothing
        const size_t token = size_t(batch) * T + (there ? first + t : 0), gate = token * HV + head;
        __syncthreads();
        key[t][j] = there ? __bfloat162float(k[(token * HQ + keyHead) * D + j]) : 0.0f;
        query[t][j] = there ? __bfloat162float(q[(token * HQ + keyHead) * D + j]) : 0.0f;
        const float value = there ? __bfloat162float(v[gate * D + j]) : 0.0f;
        if (j == 0) {
            sums[t] = there ? g[gate] : 0.0f;
            weight[t] = there ? beta[gate] : 0.0f;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < D; ++i)
                sums[i] += sums[i - 1];
        }
        __syncthreads();
        // Of thread (t, j): what token j puts into the state, as token t sees and reads it; and what the state was for both.
        const float decay = expf(sums[t]);
        float byKey = 0, byQuery = 0, seen = 0, read = 0;
#pragma unroll
        for (int i = 0; i < D; ++i) {
            byKey = fmaf(key[j][i], key[t][i], byKey);
            byQuery = fmaf(key[j][i], query[t][i], byQuery);
            seen = fmaf(state[i][j], key[t][i], seen);
            read = fmaf(state[i][j], query[t][i], read);
        }
        const float since = j <= t ? expf(sums[t] - sums[j]) : 0.0f;
        system[t][j] = j < t ? weight[t] * since * byKey : 0.0f;
        mixing[t][j] = since * byQuery;
        update[t][j] = weight[t] * (value - decay * seen);
        __syncthreads();
        if (threadIdx.x < D) { // a column each
            float u[D];
#pragma unroll
            for (int i = 0; i < D; ++i)
                u[i] = update[i][threadIdx.x];
#pragma unroll
            for (int s = 0; s < D; ++s)
#pragma unroll
                for (int i = s + 1; i < D; ++i)
                    u[i] = fmaf(-system[i][s], u[s], u[i]);
#pragma unroll
            for (int i = 0; i < D; ++i)
                update[i][threadIdx.x] = u[i];
        }
        __syncthreads();
        float result = decay * read, next = expf(sums[D - 1]) * state[t][j];
#pragma unroll
        for (int s = 0; s < D; ++s) {
            result = fmaf(mixing[t][s], update[s][j], result);
            next = fmaf(expf(sums[D - 1] - sums[s]) * key[s][t], update[s][j], next);
        }
        if (there)
            out[gate * D + j] = 0.25f * result;
        state[t][j] = next; // which nobody else reads before the next barrier
    }
    final[at] = state[t][j];
}
