/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = [256]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixteen keys a thread with few registers: they are spilled. Longer rows are read again each time.

__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}
__device__ __forceinline__ int overBlock(int mine)
{
    __shared__ int total;
    __syncthreads();
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, mine);
    __syncthreads();
    return total;
}
extern "C" __global__ __maxnreg__(24) void topk(const float *values, float *top, int *indices, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    top += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    unsigned key[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        key[i] = threadIdx.x + 256 * i < S ? keyOf(row[threadIdx.x + 256 * i]) : 0;
    unsigned cut = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned next = cut | (1u << bit);
        int mine = 0;
#pragma unroll
        for (int i = 0; i < 16; ++i)
            mine += key[i] >= next ? 1 : 0;
        for (int i = threadIdx.x + 4096; i < S; i += 256)
            mine += keyOf(row[i]) >= next ? 1 : 0;
        if (overBlock(mine) >= K)
            cut = next;
    }
    __shared__ int place;
    if (threadIdx.x == 0)
        place = 0;
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = threadIdx.x; i < S; i += 256) {
            const float value = row[i];
            const unsigned is = keyOf(value);
            if (pass == 0 ? is <= cut : is != cut)
                continue;
            const int at = atomicAdd(&place, 1);
            if (at < K) {
                top[at] = value;
                indices[at] = i;
            }
        }
        __syncthreads();
    }
}
