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
// The K largest of each row of S floats with their columns, in any order.
//
// One thread an element, which counts those that come before it: larger, or equal and further left. That is its
// place. The row is staged in shared memory in tiles, and a warp's lanes read the same four numbers at a time, so that
// four comparisons cost a load that serves 32. A tile's end is padded with negative infinity to a whole step of the
// loop: being right of every column, the padding comes before none.

constexpr int kThreads = 256;
constexpr int kTile = 4096; // floats
constexpr int kStep = 32;   // floats a step of the comparison loop

extern "C" __global__ void __launch_bounds__(256) topk(const float *values, float *topValues, int *indices, int S, int K)
{
    __shared__ float4 tile[kTile / 4];

    const int column = blockIdx.x * kThreads + threadIdx.x;
    const float *row = values + size_t(blockIdx.y) * S;
    const bool aligned = (reinterpret_cast<size_t>(row) & 15) == 0;
    const float lowest = __int_as_float(0xff800000);
    const float mine = column < S ? row[column] : 0.0f;
    int rank = 0;
    for (int base = 0; base < S; base += kTile) {
        const int count = S - base < kTile ? S - base : kTile;
        const int padded = (count + kStep - 1) / kStep * kStep;
        const float *source = row + base;

        if (base > 0)
            __syncthreads();
#pragma unroll 4
        for (int quad = threadIdx.x; quad < padded / 4; quad += kThreads) {
            const int i = quad * 4;
            float4 v;
            if (aligned && i + 3 < count) {
                v = *reinterpret_cast<const float4 *>(source + i);
            } else {
                v.x = i < count ? source[i] : lowest;
                v.y = i + 1 < count ? source[i + 1] : lowest;
                v.z = i + 2 < count ? source[i + 2] : lowest;
                v.w = i + 3 < count ? source[i + 3] : lowest;
            }
            tile[quad] = v;
        }
        __syncthreads();

        if (column < S) {
            int left = column - base; // of the tile's numbers from here on, how many are left of mine
            const float4 *from = tile;
            for (int i = 0; i < padded; i += kStep) {
#pragma unroll
                for (int j = 0; j < kStep / 4; ++j) {
                    const float4 v = from[j];
                    rank += v.x > mine || (v.x == mine && 4 * j < left);
                    rank += v.y > mine || (v.y == mine && 4 * j + 1 < left);
                    rank += v.z > mine || (v.z == mine && 4 * j + 2 < left);
                    rank += v.w > mine || (v.w == mine && 4 * j + 3 < left);
                }
                from += kStep / 4;
                left -= kStep;
            }
        }
    }
    if (column < S && rank < K) {
        topValues[size_t(blockIdx.y) * K + rank] = mine;
        indices[size_t(blockIdx.y) * K + rank] = column;
    }
}
