/*klineage
surface = "cuda"

[[launch]]
kernel = "gated_delta"
grid = ["HV", "B", "ceil_div(D, 16)"]
block = [128]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "int D", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule as it is defined, token by token. A block computes 16 columns of one head's state, which live in
// registers: eight lanes share a column, 16 keys each, and add up by shuffles. Column j of the state meets column j of v
// and of the output, and no other.

#include <cuda_bf16.h>

constexpr int THREADS = 128;
constexpr int LANES = 8;                   // that share a column
constexpr int KEYS = 16;                   // of a lane: two runs of eight, 64 apart (D is 128 = LANES * KEYS)
constexpr int COLUMNS = THREADS / LANES;   // of a block

// Eight bf16 as floats.
__device__ __forceinline__ void unpack(const uint4 &packed, float *to)
{
    const unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

// The sum over the eight lanes of a column, in each of them.
__device__ __forceinline__ float column_sum(float x)
{
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, offset);
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS)
gated_delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
            const float *g, const float *beta, const float *initial_state,
            float *output, float *final_state, int T, int HQ, int HV, int D, float scale)
{
    const int head = blockIdx.x, batch = blockIdx.y;
    const int part = threadIdx.x % LANES;
    const int column = blockIdx.z * COLUMNS + threadIdx.x / LANES;
    const int head_qk = head / (HV / HQ);
    const size_t first = (size_t(batch) * HV + head) * D * D + column;

    // state[i] is the key (i / 8) * 64 + part * 8 + i % 8 of the column.
    float state[KEYS];
    const float *from = initial_state + first;
#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        state[i] = from[((i / 8) * 64 + part * 8 + i % 8) * D];

#pragma unroll 1
    for (int t = 0; t < T; ++t) {
        const size_t token = size_t(batch) * T + t;
        const uint4 *key_row = reinterpret_cast<const uint4 *>(k + (token * HQ + head_qk) * D);
        const uint4 *query_row = reinterpret_cast<const uint4 *>(q + (token * HQ + head_qk) * D);
        const size_t gate = token * HV + head;

        const uint4 key_low = key_row[part], key_high = key_row[part + LANES];
        const float log_decay = g[gate];
        const float value = __bfloat162float(v[gate * D + column]);
        const float correction = beta[gate];
        const uint4 query_low = query_row[part], query_high = query_row[part + LANES];

        const float decay = expf(log_decay);

        float key[KEYS];
        unpack(key_low, key);
        unpack(key_high, key + 8);

        float predicted[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
            state[i] *= decay;
            predicted[i % 4] += state[i] * key[i];
        }
        const float update =
            correction * (value - column_sum((predicted[0] + predicted[1]) + (predicted[2] + predicted[3])));

        float query[KEYS];
        unpack(query_low, query);
        unpack(query_high, query + 8);

        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
            state[i] += key[i] * update;
            sum[i % 4] += state[i] * query[i];
        }
        const float total = column_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
        if (part == 0)
            output[gate * D + column] = total * scale;
    }

    float *to = final_state + first;
#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        to[((i / 8) * 64 + part * 8 + i % 8) * D] = state[i];
}
