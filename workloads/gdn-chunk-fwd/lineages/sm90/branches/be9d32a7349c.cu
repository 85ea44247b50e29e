/*klineage
surface = "cuda"

[[launch]]
kernel = "chunk_forward"
grid = ["HV", "B"]
block = ["D"]
shared = "(2 * 64 * D + 64 * 64 + 64) * 4 + 64 * 64 * 2"
args = ["q", "k", "v", "g", "beta", "a", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "int D", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass, chunk by chunk. A block computes one head, a thread one column of the outputs and the state, which
// lives in final_state. The updates are a times the residuals, beta (V - exp(gc) K S): U and W are never formed. For these two
// products a thread computes a tile of eight rows by two times four columns.

#include <cuda_bf16.h>

constexpr int C = 64;      // tokens a chunk
constexpr int Width = 128; // D, and the threads of a block

// Adds to a tile the product of eight rows of bf16 by the columns from right on: four, and four more Width / 2 further on.
// The depth is rounded up to a multiple of eight.
__device__ __forceinline__ void multiply(float (&tile)[8][8], const __nv_bfloat16 *const (&left)[8], const float *right,
                                         int depth)
{
#pragma unroll 1
    for (int d = 0; d < depth; d += 8) {
        unsigned words[8][4];
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const uint4 eight = *reinterpret_cast<const uint4 *>(left[r] + d);
            words[r][0] = eight.x;
            words[r][1] = eight.y;
            words[r][2] = eight.z;
            words[r][3] = eight.w;
        }
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const float *const row = right + d * Width + e * Width;
            const float4 near = *reinterpret_cast<const float4 *>(row);
            const float4 far = *reinterpret_cast<const float4 *>(row + Width / 2);
            const float columns[8] = {near.x, near.y, near.z, near.w, far.x, far.y, far.z, far.w};
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                const unsigned word = words[r][e / 2];
                const float factor = __uint_as_float(e % 2 ? (word & 0xffff0000u) : (word << 16));
#pragma unroll
                for (int c = 0; c < 8; ++c)
                    tile[r][c] = fmaf(factor, columns[c], tile[r][c]);
            }
        }
    }
}

// Of a pair of bf16 in columns j and j + 1, those left of column `rows`.
__device__ __forceinline__ unsigned counted(unsigned pair, int j, int rows)
{
    return j + 1 < rows ? pair : j < rows ? (pair & 0xffffu) : 0u;
}

extern "C" __global__ void chunk_forward(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                         const float *g, const float *beta, const __nv_bfloat16 *a,
                                         const float *initial_state, float *output, float *final_state, int T, int HQ,
                                         int HV, int D, float scale)
{
    extern __shared__ __align__(16) float dynamicShared[];
    float *residuals = dynamicShared, *updates = residuals + C * D, *scores = updates + C * D, *sums = scores + C * C;
    __nv_bfloat16 *matrix = reinterpret_cast<__nv_bfloat16 *>(sums + C);

    const int head = blockIdx.x, batch = blockIdx.y, column = threadIdx.x;
    const int tileRow = column / 16 * 8, tileColumn = column % 16 * 4;
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

        uint4 parts[C * C / 8 / Width]; // of the chunk's matrix, under way while the scores are computed
#pragma unroll
        for (int n = 0; n < C * C / 8 / Width; ++n) {
            const int entry = column + n * Width, i = entry / 8, j = entry % 8 * 8;
            parts[n] = make_uint4(0u, 0u, 0u, 0u);
            if (i < rows)
                parts[n] = *reinterpret_cast<const uint4 *>(a + (gate + i * HV) * C + j);
        }

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

#pragma unroll
        for (int n = 0; n < C * C / 8 / Width; ++n) {
            const int entry = column + n * Width, j = entry % 8 * 8;
            reinterpret_cast<uint4 *>(matrix)[entry] =
                make_uint4(counted(parts[n].x, j, rows), counted(parts[n].y, j + 2, rows),
                           counted(parts[n].z, j + 4, rows), counted(parts[n].w, j + 6, rows));
        }

        // The residuals. Rows that the chunk lacks are computed as its last one and come out as zero.
        float tile[8][8];
        {
            const __nv_bfloat16 *keys[8];
            uint2 values[8][2];
            float factors[8];
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                const int row = min(tileRow + r, rows - 1);
                const __nv_bfloat16 *value = v + (gate + row * HV) * Width + tileColumn;
                keys[r] = k + row0 + row * keyPitch;
                values[r][0] = *reinterpret_cast<const uint2 *>(value);
                values[r][1] = *reinterpret_cast<const uint2 *>(value + Width / 2);
                const float correction = beta[gate + row * HV];
                factors[r] = tileRow + r < rows ? correction : 0.0f;
#pragma unroll
                for (int c = 0; c < 8; ++c)
                    tile[r][c] = 0.0f;
            }
            multiply(tile, keys, state - column + tileColumn, Width);
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                const float decay = expf(sums[min(tileRow + r, rows - 1)]);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const uint2 four = values[r][half];
                    float4 residual;
                    residual.x = factors[r] * (__uint_as_float(four.x << 16) - decay * tile[r][4 * half]);
                    residual.y = factors[r] * (__uint_as_float(four.x & 0xffff0000u) - decay * tile[r][4 * half + 1]);
                    residual.z = factors[r] * (__uint_as_float(four.y << 16) - decay * tile[r][4 * half + 2]);
                    residual.w = factors[r] * (__uint_as_float(four.y & 0xffff0000u) - decay * tile[r][4 * half + 3]);
                    *reinterpret_cast<float4 *>(residuals + (tileRow + r) * Width + half * (Width / 2) + tileColumn) =
                        residual;
                }
            }
        }
        __syncthreads(); // scores, matrix and residuals are there, and the state has been read by all

        {
            const __nv_bfloat16 *matrixRows[8];
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                matrixRows[r] = matrix + (tileRow + r) * C;
#pragma unroll
                for (int c = 0; c < 8; ++c)
                    tile[r][c] = 0.0f;
            }
            multiply(tile, matrixRows, residuals + tileColumn, rows);
#pragma unroll
            for (int r = 0; r < 8; ++r) {
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    *reinterpret_cast<float4 *>(updates + (tileRow + r) * Width + half * (Width / 2) + tileColumn) =
                        make_float4(tile[r][4 * half], tile[r][4 * half + 1], tile[r][4 * half + 2],
                                    tile[r][4 * half + 3]);
            }
        }
        __syncthreads(); // the updates are there

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
