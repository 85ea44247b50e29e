/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order. One block a row.
//
// Keys are the floats' bits made to compare as unsigned integers. Fast path: 8 elements a thread in registers; the
// greatest minimum over a warp's lanes of the lanes' maxima is a guess at a lower bound, checked afterwards. Distances
// from the row's maximum are binned linearly over the range down to the bound. Whatever the fast path cannot do is left
// to a radix select that reads the row from memory.

#define THREADS 512
#define BINS_LOG2 9
#define MAX_K 1024
#define MAX_CANDIDATES 256

__device__ __forceinline__ unsigned int sharedAddress(const void *p)
{
    return (unsigned int)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ unsigned int toKey(unsigned int u)
{
    return u ^ ((unsigned int)(((int)u) >> 31) | 0x80000000u);
}

__device__ __forceinline__ unsigned int fromKey(unsigned int k)
{
    return k ^ (~(unsigned int)(((int)k) >> 31) | 0x80000000u);
}

__device__ __forceinline__ unsigned int reduxMin(unsigned int v)
{
    unsigned int r;
    asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
    return r;
}

__device__ __forceinline__ unsigned int reduxMax(unsigned int v)
{
    unsigned int r;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
    return r;
}

__device__ __forceinline__ unsigned int reduxAdd(unsigned int v)
{
    unsigned int r;
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
    return r;
}

__device__ __forceinline__ void load4(const float *p, unsigned int ok, unsigned int &a, unsigned int &b,
                                      unsigned int &c, unsigned int &d)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.u32 p, %5, 0;\n\t"
                 "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n\t"
                 "}"
                 : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
                 : "l"(p), "r"(ok));
}

__device__ __forceinline__ unsigned int scanStep(unsigned int v, unsigned int lane, unsigned int by)
{
    const unsigned int other = __shfl_up_sync(0xffffffffu, v, by);
    return lane >= by ? v + other : v;
}

struct Shared
{
    uint4 info;                                    // limit of the distance, count above, candidates, valid
    unsigned int hist[1 << BINS_LOG2];
    unsigned int base[16];
    uint2 stat;
    uint2 stage[MAX_K + MAX_CANDIDATES + 8];
};

// Whether the row was done.
__device__ __forceinline__ bool fastRow(const float *row, float *outValues, int *outIndices, int S, int K, Shared &sh)
{
    const unsigned int t = threadIdx.x;
    const unsigned int lane = t & 31;
    const unsigned int warp = t >> 5;

    // What lies beyond the row gets the key 0, which never passes the bound.
    unsigned int k[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
        k[j] = 0xffffffffu;
    load4(row + 4 * t, (4 * t < (unsigned int)S) ? 1u : 0u, k[0], k[1], k[2], k[3]);
    load4(row + 4 * t + 2048, (4 * t + 2048 < (unsigned int)S) ? 1u : 0u, k[4], k[5], k[6], k[7]);

    sh.hist[t] = 0;
    if (t < 16)
        sh.base[t] = 0;
    if (t == 0) {
        sh.stat = make_uint2(0, 0);
        sh.info = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();

#pragma unroll
    for (int j = 0; j < 8; ++j)
        k[j] = toKey(k[j]);
    const unsigned int m = max(max(max(k[0], k[1]), max(k[2], k[3])), max(max(k[4], k[5]), max(k[6], k[7])));
    const unsigned int low = reduxMin(m);
    const unsigned int high = reduxMax(m);
    {
        const unsigned int address = sharedAddress(&sh.stat) + 4 * lane;
        const unsigned int v = lane ? high : low;
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "setp.lt.u32 p, %2, 2;\n\t"
                     "@p red.shared.max.u32 [%0], %1;\n\t"
                     "}" ::"r"(address), "r"(v), "r"(lane)
                     : "memory");
    }
    __syncthreads();

    const uint2 stat = sh.stat;
    const unsigned int lo = max(stat.x, 1u);
    const unsigned int hi = stat.y;
    if (hi < lo)
        return false;
    const unsigned int range = hi - lo;
    const int shift = max(32 - __clz((int)range) - BINS_LOG2, 0);

    // Bin 0 holds the largest.
    const unsigned int histAddress = sharedAddress(sh.hist);
    unsigned int address[8], place[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        k[j] = hi - k[j];
        address[j] = histAddress + ((k[j] >> shift) << 2);
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "setp.le.u32 p, %2, %3;\n\t"
                     "@p atom.shared.add.u32 %0, [%1], 1;\n\t"
                     "}"
                     : "=r"(place[j])
                     : "r"(address[j]), "r"(k[j]), "r"(range)
                     : "memory");
    }
    __syncthreads();

    // Scan: a thread has one bin; each warp adds its total to the bases of the warps after it.
    const unsigned int count = sh.hist[t];
    const unsigned int total = reduxAdd(count);
    unsigned int sum = count;
    sum = scanStep(sum, lane, 1);
    sum = scanStep(sum, lane, 2);
    {
        const unsigned int baseAddress = sharedAddress(sh.base) + 4 * lane;
        const unsigned int wanted = (lane > warp && lane < 16) ? 1u : 0u;
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "setp.ne.u32 p, %2, 0;\n\t"
                     "@p red.shared.add.u32 [%0], %1;\n\t"
                     "}" ::"r"(baseAddress), "r"(total), "r"(wanted)
                     : "memory");
    }
    sum = scanStep(sum, lane, 4);
    sum = scanStep(sum, lane, 8);
    sum = scanStep(sum, lane, 16);
    __syncthreads();

    const unsigned int before = sh.base[warp] + sum - count;
    sh.hist[t] = before;
    if (before < (unsigned int)K && before + count >= (unsigned int)K)
        sh.info = make_uint4(min(((t + 1) << shift) - 1u, range), before, count, 1u);
    __syncthreads();

    const uint4 info = sh.info;
    if (info.w == 0 || info.z > MAX_CANDIDATES)
        return false;
    const unsigned int limit = info.x;
    const unsigned int above = info.y;
    const unsigned int candidates = info.z;

    // The bins up to the one of the K-th largest go to their places.
    unsigned int start[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "setp.le.u32 p, %2, %3;\n\t"
                     "@p ld.shared.u32 %0, [%1];\n\t"
                     "}"
                     : "=r"(start[j])
                     : "r"(address[j]), "r"(k[j]), "r"(limit)
                     : "memory");
    const unsigned int stageAddress = sharedAddress(sh.stage);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const unsigned int to = stageAddress + ((start[j] + place[j]) << 3);
        const unsigned int column = 4 * t + 2048 * (j >> 2) + (j & 3);
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "setp.le.u32 p, %1, %3;\n\t"
                     "@p st.shared.v2.u32 [%0], {%1, %2};\n\t"
                     "}" ::"r"(to), "r"(k[j]), "r"(column), "r"(limit)
                     : "memory");
    }
    __syncthreads();

    for (unsigned int i = t; i < above; i += THREADS) {
        const uint2 s = sh.stage[i];
        outValues[i] = __uint_as_float(fromKey(hi - s.x));
        outIndices[i] = (int)s.y;
    }

    const unsigned int c = THREADS - 1 - t;
    if (c < candidates) {
        const uint2 mine = sh.stage[above + c];
        unsigned int rank = 0;
        for (unsigned int first = 0; first < candidates; first += 8) {
            unsigned int other[8];
#pragma unroll
            for (int u = 0; u < 8; ++u)
                other[u] = sh.stage[above + first + u].x;
#pragma unroll
            for (int u = 0; u < 8; ++u) {
                const unsigned int i = first + u;
                const bool precedes = (other[u] < mine.x) | ((other[u] == mine.x) & (i < c));
                rank += (precedes & (i < candidates)) ? 1u : 0u;
            }
        }
        const unsigned int to = above + rank;
        if (to < (unsigned int)K) {
            outValues[to] = __uint_as_float(fromKey(hi - mine.x));
            outIndices[to] = (int)mine.y;
        }
    }
    return true;
}

// Any S and any K from 1 to S.
__device__ __forceinline__ void slowRow(const float *row, float *outValues, int *outIndices, int S, int K, Shared &sh)
{
    const unsigned int t = threadIdx.x;
    unsigned int prefix = 0, mask = 0, need = (unsigned int)K;
    __syncthreads();
    for (int digit = 24; digit >= 0; digit -= 8) {
        if (t < 256)
            sh.hist[t] = 0;
        __syncthreads();
        for (int i = (int)t; i < S; i += THREADS) {
            const unsigned int key = toKey(__float_as_uint(row[i]));
            if ((key & mask) == prefix)
                atomicAdd(&sh.hist[(key >> digit) & 255u], 1u);
        }
        __syncthreads();
        if (t < 256) {
            const unsigned int count = sh.hist[t];
            unsigned int above = 0;
            for (unsigned int b = 0; b < 256; ++b) {
                const unsigned int n = sh.hist[b];
                above += b > t ? n : 0u;
            }
            if (above < need && above + count >= need) {
                sh.info.x = t;
                sh.info.y = need - above;
            }
        }
        __syncthreads();
        prefix |= sh.info.x << digit;
        mask |= 255u << digit;
        need = sh.info.y;
    }
    if (t == 0)
        sh.stat = make_uint2(0, 0);
    __syncthreads();
    for (int i = (int)t; i < S; i += THREADS) {
        const float x = row[i];
        const unsigned int key = toKey(__float_as_uint(x));
        if (key > prefix) {
            const unsigned int to = atomicAdd(&sh.stat.x, 1u);
            outValues[to] = x;
            outIndices[to] = i;
        } else if (key == prefix) {
            const unsigned int e = atomicAdd(&sh.stat.y, 1u);
            if (e < need) {
                const unsigned int to = (unsigned int)K - need + e;
                outValues[to] = x;
                outIndices[to] = i;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) topk(const float *values, float *topValues, int *indices, int S,
                                                           int K)
{
    __shared__ __align__(16) Shared sh;
    const float *row = values + size_t(blockIdx.x) * S;
    float *outValues = topValues + size_t(blockIdx.x) * K;
    int *outIndices = indices + size_t(blockIdx.x) * K;

    if (S <= 4096 && K <= MAX_K && (S & 3) == 0 && ((unsigned long long)values & 15) == 0) {
        if (fastRow(row, outValues, outIndices, S, K, sh))
            return;
    }
    slowRow(row, outValues, outIndices, S, K, sh);
}
