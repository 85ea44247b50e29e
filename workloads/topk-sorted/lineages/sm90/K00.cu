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
// place. A warp's lanes read the same number at a time, so that each comparison costs a load that serves 32.

extern "C" __global__ void topk(const float *values, float *topValues, int *indices, int S, int K)
{
    const int column = blockIdx.x * 256 + threadIdx.x;
    if (column >= S)
        return;
    const float *row = values + size_t(blockIdx.y) * S;
    const float mine = row[column];
    int rank = 0;
    for (int i = 0; i < S; ++i)
        rank += row[i] > mine || (row[i] == mine && i < column);
    if (rank < K) {
        topValues[size_t(blockIdx.y) * K + rank] = mine;
        indices[size_t(blockIdx.y) * K + rank] = column;
    }
}
