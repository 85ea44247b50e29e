/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = [1024]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The honest parent of what sorts many rows: a bitonic network of values and columns.
typedef unsigned long long u64;

// Descending, 4096 of them in shared memory, by 1024 threads.
template <typename T>
__device__ void sortAll(T *list)
{
    for (int size = 2; size <= 4096; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int n = threadIdx.x; n < 2048; n += 1024) {
                const int a = 2 * n - (n & (step - 1)), b = a + step;
                const T p = list[a], q = list[b];
                if ((a & size) == 0 ? p < q : p > q) {
                    list[a] = q;
                    list[b] = p;
                }
            }
        }
    __syncthreads();
}

__device__ __forceinline__ unsigned orderOf(float v)
{
    const int b = __float_as_int(v);
    return unsigned(b ^ (b >> 31 & 0x7fffffff)) ^ 0x80000000u;
}

__device__ __forceinline__ float valueOf(unsigned o)
{
    const int b = int(o ^ 0x80000000u);
    return __int_as_float(b ^ (b >> 31 & 0x7fffffff));
}

// Pairs of a value and its column; longer rows by counting.
__device__ void sortPairs(const float *row, float *top, int *columns, int S, int K, u64 *list)
{
    if (S > 4096) {
        for (int i = threadIdx.x; i < S; i += 1024) {
            const unsigned mine = orderOf(row[i]);
            int before = 0;
            for (int j = 0; j < S; ++j) {
                const unsigned other = orderOf(row[j]);
                before += other > mine || (other == mine && j < i);
            }
            if (before < K) {
                top[before] = row[i];
                columns[before] = i;
            }
        }
        return;
    }
    for (int i = threadIdx.x; i < 4096; i += 1024)
        list[i] = i < S ? u64(orderOf(row[i])) << 32 | unsigned(4095 - i) : 0;
    sortAll(list);
    for (int i = threadIdx.x; i < K; i += 1024) {
        top[i] = valueOf(unsigned(list[i] >> 32));
        columns[i] = 4095 - int(unsigned(list[i]));
    }
}
extern "C" __global__ __launch_bounds__(1024) void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    __shared__ u64 list[4096];
    const size_t r = blockIdx.x;
    sortPairs(values + r * S, top + r * K, indices + r * K, S, K, list);
}
