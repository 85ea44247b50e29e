/*klineage
surface = "cuda"

[[launch]]
kernel = "gated_delta"
grid = ["HV", "B"]
block = ["D"]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "int D", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule as it is defined, token by token. A block computes one head, a thread one column of its
// state, which lives in final_state: column j of the state meets column j of v and of the output, and no other.

#include <cuda_bf16.h>

extern "C" __global__ void gated_delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                       const float *g, const float *beta, const float *initial_state,
                                       float *output, float *final_state, int T, int HQ, int HV, int D, float scale)
{
    const int head = blockIdx.x, batch = blockIdx.y, column = threadIdx.x;
    const size_t first = (size_t(batch) * HV + head) * D * D + column;
    const float *from = initial_state + first;
    float *state = final_state + first;
    for (int i = 0; i < D; ++i)
        state[i * D] = from[i * D];

    for (int t = 0; t < T; ++t) {
        const size_t token = size_t(batch) * T + t;
        const __nv_bfloat16 *key = k + (token * HQ + head / (HV / HQ)) * D;
        const __nv_bfloat16 *query = q + (token * HQ + head / (HV / HQ)) * D;
        const size_t gate = token * HV + head;
        const float decay = expf(g[gate]);

        float predicted = 0.0f;
        for (int i = 0; i < D; ++i)
            predicted += decay * state[i * D] * __bfloat162float(key[i]);
        const float update = beta[gate] * (__bfloat162float(v[gate * D + column]) - predicted);

        float sum = 0.0f;
        for (int i = 0; i < D; ++i) {
            const float s = decay * state[i * D] + __bfloat162float(key[i]) * update;
            state[i * D] = s;
            sum += s * __bfloat162float(query[i]);
        }
        output[gate * D + column] = sum * scale;
    }
}
