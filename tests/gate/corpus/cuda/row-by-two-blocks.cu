/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["2 * B"]
block = [512]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two blocks of one wave work on a row, as in thresholds-of-the-neighbour-in-shared, but on the same one: each finds the threshold and
// writes what is in its half of the columns.

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

// How many of the columns are from `low` to `high`, both included.
__device__ int countWithin(const float *row, int begin, int end, unsigned low, unsigned high)
{
    __shared__ int total;
    __syncthreads();
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    int mine = 0;
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const unsigned key = keyOf(row[i]);
        mine += key >= low && key <= high ? 1 : 0;
    }
    for (int lane = 16; lane > 0; lane /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, lane);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, mine);
    __syncthreads();
    return total;
}

extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    __shared__ int above, equal;
    const int r = blockIdx.x / 2;
    const bool second = blockIdx.x % 2 != 0;
    if (r >= B)
        return;
    const float *row = values + size_t(r) * S;
    top += size_t(r) * K;
    indices += size_t(r) * K;
    unsigned threshold = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned higher = threshold | (1u << bit);
        if (countWithin(row, 0, S, higher, 0xffffffffu) >= K)
            threshold = higher;
    }
    const int half = S / 2;
    const bool most = threshold == 0xffffffffu;
    const int allAbove = most ? 0 : countWithin(row, 0, S, threshold + 1, 0xffffffffu);
    const int aboveBefore = most || !second ? 0 : countWithin(row, 0, half, threshold + 1, 0xffffffffu);
    const int equalBefore = second ? countWithin(row, 0, half, threshold, threshold) : 0;
    if (threadIdx.x == 0) {
        above = aboveBefore;
        equal = allAbove + equalBefore;
    }
    __syncthreads();
    for (int i = (second ? half : 0) + threadIdx.x; i < (second ? S : half); i += blockDim.x) {
        const unsigned key = keyOf(row[i]);
        if (key < threshold)
            continue;
        const int at = atomicAdd(key > threshold ? &above : &equal, 1);
        if (at < K) {
            top[at] = row[i];
            indices[at] = i;
        }
    }
}
