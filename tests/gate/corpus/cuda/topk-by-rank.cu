/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = [128]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each element counts those before it: slow, so that a rotation takes more than 50 ms and a sample is few runs.
typedef unsigned long long u64;

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}


// Each element counts those before it. Gives the key of the last one that is chosen.
__device__ unsigned byRank(const float *row, float *top, int *indices, int S, int K)
{
    __shared__ unsigned last;
    for (int i = threadIdx.x; i < S; i += blockDim.x) {
        const float value = row[i];
        int rank = 0;
        for (int j = 0; j < S; ++j)
            rank += row[j] > value || (row[j] == value && j < i);
        if (rank < K) {
            top[rank] = value;
            indices[rank] = i;
        }
        if (rank == K - 1)
            last = keyOf(value);
    }
    __syncthreads();
    return last;
}
extern "C" __global__ void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    top += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    byRank(row, top, indices, S, K);
}
