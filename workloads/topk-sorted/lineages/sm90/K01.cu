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
// place. The row passes through shared memory in tiles, from where a thread takes four numbers with one load.

constexpr int TILE = 1024;

extern "C" __global__ __launch_bounds__(256) void topk(const float *values, float *topValues, int *indices, int S,
                                                       int K)
{
    __shared__ float4 tile[TILE / 4];
    const int column = blockIdx.x * 256 + threadIdx.x;
    const float *row = values + size_t(blockIdx.y) * S;
    // Nothing is larger than an infinity, which stands for what lies past the end: its rank is not used.
    const float mine = column < S ? row[column] : __uint_as_float(0x7f800000);
    int rank = 0;
    for (int base = 0; base < S; base += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE; i += 256)
            reinterpret_cast<float *>(tile)[i] = base + i < S ? row[base + i] : __uint_as_float(0xffc00000); // NaN
        __syncthreads();
        const int left = column - base; // those before this one are to the left
#pragma unroll 4
        for (int i = 0; i < TILE / 4; ++i) {
            const float4 other = tile[i];
            rank += other.x > mine || (other.x == mine && 4 * i < left);
            rank += other.y > mine || (other.y == mine && 4 * i + 1 < left);
            rank += other.z > mine || (other.z == mine && 4 * i + 2 < left);
            rank += other.w > mine || (other.w == mine && 4 * i + 3 < left);
        }
    }
    if (column < S && rank < K) {
        topValues[size_t(blockIdx.y) * K + rank] = mine;
        indices[size_t(blockIdx.y) * K + rank] = column;
    }
}
