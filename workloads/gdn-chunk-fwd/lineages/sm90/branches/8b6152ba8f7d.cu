/*klineage
surface = "cuda"

[[launch]]
kernel = "chunk_forward"
grid = ["HV", "B", "ceil_div(D, 16)"]
block = [128]
shared = "(2 * 16 * 72 + 64 * 68 + 64) * 4"
args = ["q", "k", "v", "g", "beta", "a", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass, the matrix of a chunk taken last: U - W S = a · R with R = beta ∘ (V - exp(gc) ∘ K S). Neither W
// nor U is computed, and a column of the values needs nothing of the others. A block computes 16 columns of one head. Eight
// lanes of a warp share a column and keep its state in registers, 16 keys each; what is summed over the keys is added up by
// shuffles, for eight rows at a time, so that each lane ends with the sum of one of them.

#include <cuda_bf16.h>

constexpr int C = 64;               // tokens a chunk
constexpr int D = 128;              // keys, and columns of a head
constexpr int COLUMNS = 16;         // columns a block
constexpr int LANES = 8;            // lanes a column
constexpr int KEYS = D / LANES;     // keys a lane: lane · 8 + 0..7 and 64 + lane · 8 + 0..7
constexpr int COLUMN_PITCH = C + 8; // floats from a column to the next in rest and updates
constexpr int SCORE_PITCH = C + 4;  // floats from a row to the next in scores

static_assert(KEYS == 16 && C % LANES == 0, "a lane takes two runs of eight keys");

__device__ __forceinline__ int keyOf(int lane, int entry)
{
    return entry / 8 * (D / 2) + lane * 8 + entry % 8;
}

// Eight numbers that lie together, 16 bytes aligned.
__device__ __forceinline__ void loadEight(const __nv_bfloat16 *from, float *to)
{
    const uint4 packed = *reinterpret_cast<const uint4 *>(from);
    to[0] = __uint_as_float(packed.x << 16);
    to[1] = __uint_as_float(packed.x & 0xffff0000u);
    to[2] = __uint_as_float(packed.y << 16);
    to[3] = __uint_as_float(packed.y & 0xffff0000u);
    to[4] = __uint_as_float(packed.z << 16);
    to[5] = __uint_as_float(packed.z & 0xffff0000u);
    to[6] = __uint_as_float(packed.w << 16);
    to[7] = __uint_as_float(packed.w & 0xffff0000u);
}

// A lane's keys of a row; the pointer is already at the lane's first one.
__device__ __forceinline__ void loadKeys(const __nv_bfloat16 *row, float (&keys)[KEYS])
{
    loadEight(row, keys);
    loadEight(row + D / 2, keys + 8);
}

// Lanes HALF apart exchange the halves of their sums and add up what is left to each.
template <int HALF> __device__ __forceinline__ void halve(float (&sums)[LANES], int lane)
{
    const bool upper = (lane & HALF) != 0;
#pragma unroll
    for (int r = 0; r < HALF; ++r) {
        const float given = upper ? sums[r] : sums[r + HALF];
        const float kept = upper ? sums[r + HALF] : sums[r];
        sums[r] = kept + __shfl_xor_sync(0xffffffffu, given, HALF);
    }
}

// Lane r gets the product of row first + r (at most the last one) with each of N vectors that are spread over the eight lanes.
// The whole warp calls it.
template <int N>
__device__ __forceinline__ void dots(const __nv_bfloat16 *matrix, int pitch, int first, int last,
                                     const float (&with)[N][KEYS], int lane, float (&result)[N])
{
    float sums[N][LANES];
#pragma unroll
    for (int r = 0; r < LANES; ++r) {
        float keys[KEYS];
        loadKeys(matrix + min(first + r, last) * pitch, keys);
#pragma unroll
        for (int n = 0; n < N; ++n) {
            float sum = 0.0f;
#pragma unroll
            for (int e = 0; e < KEYS; ++e)
                sum += with[n][e] * keys[e];
            sums[n][r] = sum;
        }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
        halve<4>(sums[n], lane);
        halve<2>(sums[n], lane);
        halve<1>(sums[n], lane);
        result[n] = sums[n][0];
    }
}

extern "C" __global__ void __launch_bounds__(COLUMNS * LANES, 3)
    chunk_forward(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g,
                  const float *beta, const __nv_bfloat16 *a, const float *initial_state, float *output,
                  float *final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ __align__(16) float dynamicShared[];
    float *rest = dynamicShared, *updates = rest + COLUMNS * COLUMN_PITCH, *scores = updates + COLUMNS * COLUMN_PITCH,
          *sums = scores + C * SCORE_PITCH;

    const int head = blockIdx.x, batch = blockIdx.y;
    const int lane = threadIdx.x % LANES, local = threadIdx.x / LANES, column = blockIdx.z * COLUMNS + local;
    const size_t first = (size_t(batch) * HV + head) * D * D + column;
    const float *from = initial_state + first;
    float *to = final_state + first;
    float *columnRest = rest + local * COLUMN_PITCH, *columnUpdates = updates + local * COLUMN_PITCH;

    float state[1][KEYS];
#pragma unroll
    for (int e = 0; e < KEYS; ++e)
        state[0][e] = from[keyOf(lane, e) * D];

    for (int start = 0; start < T; start += C) {
        const int rows = min(C, T - start);
        const size_t token = size_t(batch) * T + start, gate = token * HV + head;
        const int keyPitch = HQ * D;
        const size_t row0 = token * keyPitch + head / (HV / HQ) * D;
        const __nv_bfloat16 *queries = q + row0 + lane * 8, *keys = k + row0 + lane * 8;

        __syncthreads(); // the chunk before is done with
        if (threadIdx.x == 0) {
            float sum = 0.0f;
            for (int i = 0; i < rows; ++i) {
                sum += g[gate + i * HV];
                sums[i] = sum;
            }
        }
        __syncthreads();

        // Eight lanes take two rows of the scores that follow each other, once from the start and once from the end. The rows of
        // a warp are eight that end at a multiple of eight: its lanes go through the same columns.
#pragma unroll 1
        for (int half = 0; half < 2; ++half) {
            const int i = half == 0 ? 2 * local : C - 2 - 2 * local, diagonal = i / LANES * LANES;
            if (diagonal < rows) {
                float query[2][KEYS];
                loadKeys(queries + min(i, rows - 1) * keyPitch, query[0]);
                loadKeys(queries + min(i + 1, rows - 1) * keyPitch, query[1]);
#pragma unroll 1
                for (int j0 = 0; j0 <= diagonal; j0 += LANES) {
                    float sum[2];
                    dots<2>(keys, keyPitch, j0, rows - 1, query, lane, sum);
                    const int j = j0 + lane;
#pragma unroll
                    for (int n = 0; n < 2; ++n) {
                        float score = 0.0f;
                        if (j <= i + n && i + n < rows)
                            score = sum[n] * expf(sums[i + n] - sums[j]);
                        scores[(i + n) * SCORE_PITCH + j] = score;
                    }
                }
            }
        }
#pragma unroll 1
        for (int j0 = 0; j0 < rows; j0 += LANES) {
            const int j = j0 + lane;
            const size_t at = gate + min(j, rows - 1) * HV;
            const float weight = beta[at], value = __bfloat162float(v[at * D + column]);
            float sum[1];
            dots<1>(keys, keyPitch, j0, rows - 1, state, lane, sum);
            if (j < rows)
                columnRest[j] = weight * (value - expf(sums[j]) * sum[0]);
        }
        __syncwarp(); // the lanes of a column are of one warp

        {
            const __nv_bfloat16 *matrix = a + gate * C;
            float update[C / LANES]; // of rows lane, lane + 8, ...
#pragma unroll
            for (int m = 0; m < C / LANES; ++m)
                update[m] = 0.0f;
            int j = 0;
#pragma unroll 1
            for (; j + 8 <= rows; j += 8) {
                const float4 low = *reinterpret_cast<const float4 *>(columnRest + j);
                const float4 high = *reinterpret_cast<const float4 *>(columnRest + j + 4);
                const float eight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int m = 0; m < C / LANES; ++m) {
                    float entries[8];
                    loadEight(matrix + min(m * LANES + lane, rows - 1) * HV * C + j, entries);
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        update[m] += entries[e] * eight[e];
                }
            }
#pragma unroll 1
            for (; j < rows; ++j) {
                const float one = columnRest[j];
#pragma unroll
                for (int m = 0; m < C / LANES; ++m)
                    update[m] += __bfloat162float(matrix[min(m * LANES + lane, rows - 1) * HV * C + j]) * one;
            }
#pragma unroll
            for (int m = 0; m < C / LANES; ++m) {
                const int i = m * LANES + lane;
                columnUpdates[i] = i < rows ? update[m] : 0.0f;
            }
        }
        __syncthreads();

#pragma unroll 1
        for (int i0 = 0; i0 < rows; i0 += LANES) {
            const int i = i0 + lane;
            float product[1];
            dots<1>(queries, keyPitch, i0, rows - 1, state, lane, product);
            if (i < rows) {
                float sum = product[0] * expf(sums[i]);
                const float *rowScores = scores + i * SCORE_PITCH; // 0 right of the diagonal, up to i0 + 7
#pragma unroll 2
                for (int j = 0; j < i0 + LANES; j += 4) {
                    const float4 score = *reinterpret_cast<const float4 *>(rowScores + j);
                    const float4 update = *reinterpret_cast<const float4 *>(columnUpdates + j);
                    sum += score.x * update.x;
                    sum += score.y * update.y;
                    sum += score.z * update.z;
                    sum += score.w * update.w;
                }
                output[(gate + i * HV) * D + column] = sum * scale;
            }
            __syncwarp();
        }
        const float last = sums[rows - 1], decay = expf(last);
#pragma unroll
        for (int e = 0; e < KEYS; ++e)
            state[0][e] *= decay;
#pragma unroll 1
        for (int j0 = 0; j0 < rows; j0 += LANES) {
            const int j = j0 + lane;
            float weight = 0.0f;
            if (j < rows)
                weight = expf(last - sums[j]) * columnUpdates[j];
#pragma unroll
            for (int r = 0; r < LANES; ++r) {
                float key[KEYS];
                loadKeys(keys + min(j0 + r, rows - 1) * keyPitch, key);
                const float shared = __shfl_sync(0xffffffffu, weight, r, LANES);
#pragma unroll
                for (int e = 0; e < KEYS; ++e)
                    state[0][e] += shared * key[e];
            }
        }
    }

#pragma unroll
    for (int e = 0; e < KEYS; ++e)
        to[keyOf(lane, e) * D] = state[0][e];
}
