/*klineage
surface = "cuda"

[[workspace]]
name = "cuts"
dtype = "u32"
shape = ["2 * B"]

[[launch]]
kernel = "cut"
grid = ["B"]
block = [512]
args = ["values", "cuts", "int S", "int K"]

[[launch]]
kernel = "choose"
grid = ["B"]
block = [512]
args = ["values", "cuts", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The honest parent of those with two launches: one finds the rank of the K-th largest of each row, the other writes what is above it.
typedef unsigned long long u64;

// Unsigned integers in the order of the floats.
__device__ __forceinline__ unsigned rankOf(float v)
{
    const unsigned b = __float_as_uint(v);
    return b ^ (b >> 31 ? 0xffffffffu : 0x80000000u);
}
__device__ unsigned overBlock(unsigned v)
{
    __shared__ unsigned parts[16];
    v = __reduce_add_sync(0xffffffffu, v);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    unsigned all = 0;
    for (int w = 0; w < 16; ++w)
        all += parts[w];
    return all;
}
// The rank of the K-th largest, two bits at a time.
__device__ unsigned findCut(const float *row, int S, int K)
{
    unsigned cut = 0;
    for (int shift = 30; shift >= 0; shift -= 2) {
        unsigned mine[3] = {};
        for (int i = threadIdx.x; i < S; i += 512) {
            const unsigned r = rankOf(row[i]);
            for (unsigned t = 0; t < 3; ++t)
                mine[t] += r >= (cut | (t + 1) << shift);
        }
        unsigned digit = 0;
        for (unsigned t = 0; t < 3; ++t)
            if (overBlock(mine[t]) >= K)
                digit = t + 1;
        cut |= digit << shift;
    }
    return cut;
}

extern "C" __global__ __launch_bounds__(512) void cut(const float *values, unsigned *cuts, int S, int K)
{
    const unsigned found = findCut(values + size_t(blockIdx.x) * S, S, K);
    if (threadIdx.x == 0)
        cuts[blockIdx.x] = found;
}

extern "C" __global__ __launch_bounds__(512) void choose(const float *values, const unsigned *cuts, float *top, int *indices, int S, int K)
{
    __shared__ int next;
    const float *row = values + size_t(blockIdx.x) * S;
    const unsigned cut = cuts[blockIdx.x];
    top += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    if (threadIdx.x == 0)
        next = 0;
    for (int equal = 0; equal < 2; ++equal) {
        __syncthreads();
        for (int i = threadIdx.x; i < S; i += 512) {
            const unsigned r = rankOf(row[i]);
            if (equal ? r != cut : r <= cut)
                continue;
            const int at = atomicAdd(&next, 1);
            if (at < K) {
                top[at] = row[i];
                indices[at] = i;
            }
        }
    }
}
