/*klineage
surface = "cuda"

[[launch]]
kernel = "gated_delta"
grid = ["D / 16", "HV", "B"]
block = ["128"]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule token by token, the state in registers. Eight lanes share one column of it, 16 keys
// each, and add their sums up by shuffles: 4 columns a warp, 16 a block, and no state in memory between tokens.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, LANES = 8, KEYS = D / LANES, COLUMNS = 16;

// The sum over the eight lanes of a column, in all of them.
__device__ __forceinline__ float sumOfLanes(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    x += __shfl_xor_sync(~0u, x, 2);
    x += __shfl_xor_sync(~0u, x, 4);
    return x;
}

extern "C" __global__ void __launch_bounds__(128)
    gated_delta(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                const __nv_bfloat16 *__restrict__ v, const float *__restrict__ g, const float *__restrict__ beta,
                const float *__restrict__ initial_state, float *__restrict__ output,
                float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    const int head = blockIdx.y, batch = blockIdx.z;
    const int part = threadIdx.x % LANES, column = blockIdx.x * COLUMNS + threadIdx.x / LANES;
    const size_t first = (size_t(batch) * HV + head) * D * D + column;

    float state[KEYS]; // keys part, part + 8, …
#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        state[i] = initial_state[first + (i * LANES + part) * D];

    for (int t = 0; t < T; ++t) {
        const size_t token = size_t(batch) * T + t, gate = token * HV + head;
        const size_t row = (token * HQ + head / (HV / HQ)) * D;
        const float decay = expf(g[gate]);

        float key[KEYS], predicted = 0.0f;
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
            key[i] = __bfloat162float(k[row + i * LANES + part]);
            state[i] *= decay;
            predicted += state[i] * key[i];
        }
        const float update = beta[gate] * (__bfloat162float(v[gate * D + column]) - sumOfLanes(predicted));

        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
            state[i] += key[i] * update;
            sum += state[i] * __bfloat162float(q[row + i * LANES + part]);
        }
        sum = sumOfLanes(sum);
        if (part == 0)
            output[gate * D + column] = sum * scale;
    }

#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        final_state[first + (i * LANES + part) * D] = state[i];
}
