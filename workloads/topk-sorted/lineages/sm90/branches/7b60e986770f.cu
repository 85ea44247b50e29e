/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["ceil_div(S, 256)", "B"]
block = ["256"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in descending order.
//
// One thread an element, which counts those that come before it: larger, or equal and further left. That is its
// place. The row is staged in shared memory in tiles, and each load from there brings four of its numbers to all
// lanes of a warp.

#define TILE 4096 // floats; a multiple of 16

extern "C" __global__ void topk(const float *values, float *topValues, int *indices, int S, int K)
{
    __shared__ float4 tile[TILE / 4];

    const int column = blockIdx.x * 256 + threadIdx.x;
    const bool active = column < S;
    const float *row = values + size_t(blockIdx.y) * S;
    const float mine = active ? row[column] : 0.0f;
    int rank = 0;
    for (int base = 0; base < S; base += TILE) {
        const int count = S - base < TILE ? S - base : TILE;
        const int padded = (count + 15) & ~15;

        if (base > 0)
            __syncthreads(); // the tile before has been read
        float *staged = reinterpret_cast<float *>(tile);
#pragma unroll 8
        for (int i = threadIdx.x; i < padded; i += 256)
            staged[i] = i < count ? row[base + i] : __int_as_float(int(0xff800000u)); // pad: -inf, right of all
        __syncthreads();

        if (active) {
            int left = column - base; // how many of the numbers from here on are further left
            const float4 *end = tile + padded / 4;
#pragma unroll 1
            for (const float4 *at = tile; at != end; at += 4) {
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const float4 v = at[q];
                    rank += (v.x > mine) | ((v.x == mine) & (left > 4 * q));
                    rank += (v.y > mine) | ((v.y == mine) & (left > 4 * q + 1));
                    rank += (v.z > mine) | ((v.z == mine) & (left > 4 * q + 2));
                    rank += (v.w > mine) | ((v.w == mine) & (left > 4 * q + 3));
                }
                left -= 16;
            }
        }
    }
    if (active && rank < K) {
        topValues[size_t(blockIdx.y) * K + rank] = mine;
        indices[size_t(blockIdx.y) * K + rank] = column;
    }
}
