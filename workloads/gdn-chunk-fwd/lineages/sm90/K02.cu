/*klineage
surface = "cuda"

[[launch]]
kernel = "chunk_forward"
grid = ["D / 16", "HV", "B"]
block = ["128"]
args = ["q", "k", "v", "g", "beta", "a", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass with the state in registers, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). A block computes 16 columns of a head. Eight lanes share a column of the state, 16 keys each,
// and add their sums up by shuffles; what the columns have in common, the scores, every block computes for itself.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, LANES = 8, KEYS = D / LANES, COLUMNS = 16, C = 64; // C tokens a chunk

// The sum over the eight lanes of a column, in all of them.
__device__ __forceinline__ float sumOfLanes(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    x += __shfl_xor_sync(~0u, x, 2);
    x += __shfl_xor_sync(~0u, x, 4);
    return x;
}

extern "C" __global__ void __launch_bounds__(128)
    chunk_forward(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                  const __nv_bfloat16 *__restrict__ v, const float *__restrict__ g, const float *__restrict__ beta,
                  const __nv_bfloat16 *__restrict__ a, const float *__restrict__ initial_state,
                  float *__restrict__ output, float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    __shared__ float scores[C][C + 1], rest[C][COLUMNS + 1], updates[C][COLUMNS + 1], sums[C];

    const int head = blockIdx.y, batch = blockIdx.z;
    const int part = threadIdx.x % LANES, own = threadIdx.x / LANES, column = blockIdx.x * COLUMNS + own;
    const size_t first = (size_t(batch) * HV + head) * D * D + column;

    float state[KEYS]; // keys part, part + 8, …
#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        state[i] = initial_state[first + (i * LANES + part) * D];

    for (int start = 0; start < T; start += C) {
        const int rows = min(C, T - start);
        const size_t token = size_t(batch) * T + start, gate = token * HV + head;
        const size_t keyPitch = size_t(HQ) * D, row0 = token * keyPitch + head / (HV / HQ) * D;

        __syncthreads(); // the chunk before is done with
        if (threadIdx.x == 0) {
            float sum = 0.0f;
            for (int i = 0; i < rows; ++i) {
                sum += g[gate + i * HV];
                sums[i] = sum;
            }
        }
        __syncthreads();

        for (int entry = threadIdx.x; entry < rows * C; entry += 128) {
            const int i = entry / C, j = entry % C;
            if (j > i)
                continue;
            const __nv_bfloat162 *query = reinterpret_cast<const __nv_bfloat162 *>(q + row0 + i * keyPitch);
            const __nv_bfloat162 *key = reinterpret_cast<const __nv_bfloat162 *>(k + row0 + j * keyPitch);
            float sum = 0.0f;
#pragma unroll 16
            for (int d = 0; d < D / 2; ++d) {
                const float2 x = __bfloat1622float2(query[d]), y = __bfloat1622float2(key[d]);
                sum += x.x * y.x + x.y * y.y;
            }
            scores[i][j] = sum * expf(sums[i] - sums[j]);
        }

        for (int j = 0; j < rows; ++j) {
            const __nv_bfloat16 *key = k + row0 + j * keyPitch + part;
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < KEYS; ++i)
                sum += state[i] * __bfloat162float(key[i * LANES]);
            sum = sumOfLanes(sum);
            if (part == 0)
                rest[j][own] = beta[gate + j * HV] *
                               (__bfloat162float(v[(gate + j * HV) * D + column]) - expf(sums[j]) * sum);
        }
        __syncthreads();
        for (int i = part; i < rows; i += LANES) {
            const __nv_bfloat16 *matrix = a + (gate + i * HV) * C;
            float sum = 0.0f;
            for (int j = 0; j < rows; ++j)
                sum += __bfloat162float(matrix[j]) * rest[j][own];
            updates[i][own] = sum;
        }
        __syncthreads();

        for (int i = 0; i < rows; ++i) {
            const __nv_bfloat16 *query = q + row0 + i * keyPitch + part;
            float sum = 0.0f;
#pragma unroll
            for (int d = 0; d < KEYS; ++d)
                sum += state[d] * __bfloat162float(query[d * LANES]);
            sum *= expf(sums[i]);
            for (int j = part; j <= i; j += LANES)
                sum += scores[i][j] * updates[j][own];
            sum = sumOfLanes(sum);
            if (part == 0)
                output[(gate + i * HV) * D + column] = sum * scale;
        }

        const float last = sums[rows - 1], forget = expf(last);
#pragma unroll
        for (int i = 0; i < KEYS; ++i)
            state[i] *= forget;
        for (int j = 0; j < rows; ++j) {
            const __nv_bfloat16 *key = k + row0 + j * keyPitch + part;
            const float update = expf(last - sums[j]) * updates[j][own];
#pragma unroll
            for (int i = 0; i < KEYS; ++i)
                state[i] += __bfloat162float(key[i * LANES]) * update;
        }
    }

#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        final_state[first + (i * LANES + part) * D] = state[i];
}
