/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
when = "S <= 4096"
grid = ["2 * B"]
block = ["512"]
cluster = ["2"]
shared = "8 * K + 8"
args = ["values", "top_values", "indices", "int S", "int K"]

[[launch]]
kernel = "topk_any"
when = "S > 4096"
grid = ["B"]
block = ["1024"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// A cluster of two blocks a row: each holds half of it in registers and counts its half; each adds the other's counts,
// read through distributed shared memory, to its own. Both find the same bin of the K-th largest. Each writes its own
// elements above that bin; the few of the bin itself are gathered in block 0, which ranks them.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;
constexpr int PER = BINS / THREADS; // bins a thread sums up
constexpr int FEW = 64;             // elements that are ranked
constexpr unsigned ALL = 0xffffffff;

// The order of floats as that of unsigned integers. 0 is below all of them, and stands for no element.
__device__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(~int(key) >> 31) | 0x80000000u));
}

// Counts one more in the bin, if it is one of the window, and returns how many were there. A predicate rather than
// a branch around the atomic: those of one thread are under way together.
__device__ unsigned claim(unsigned *bins, unsigned bin, unsigned last)
{
    unsigned number = 0;
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.le.u32 inside, %2, %3;\n"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n"
                 "}"
                 : "+r"(number)
                 : "r"(unsigned(__cvta_generic_to_shared(bins)) + 4 * bin), "r"(bin), "r"(last)
                 : "memory");
    return number;
}

// The address of a variable of the other block of the cluster.
__device__ unsigned remote(const void *here, unsigned block)
{
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(unsigned(__cvta_generic_to_shared(here))), "r"(block));
    return address;
}

__device__ void storeRemote(unsigned address, uint2 value)
{
    asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(value.x), "r"(value.y) : "memory");
}

__device__ uint2 loadRemote(unsigned address)
{
    uint2 value;
    asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "r"(address) : "memory");
    return value;
}

// All threads of both blocks meet; what they wrote before is seen after.
__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

struct Cut {
    unsigned bin;    // in which the K-th largest lies
    unsigned before; // elements in the bins above: of both blocks, and in the upper half those of block 0
    unsigned count;  // elements in it, in the same way
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
                                                           float *__restrict__ topValues,
                                                           int *__restrict__ indices, int S, int K)
{
    extern __shared__ uint2 chosen[]; // key and column
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ __align__(16) unsigned places[BINS];
    __shared__ uint2 spans[2 * WARPS];
    __shared__ uint2 few[FEW];
    __shared__ unsigned totals[WARPS];
    __shared__ Cut found;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u, warp = tid / 32;
    const unsigned block = blockIdx.x % 2, row = blockIdx.x / 2;
    const int column = 4 * (tid + block * THREADS);
    values += size_t(row) * S;
    topValues += size_t(row) * K;
    indices += size_t(row) * K;

    // Before the first store into the other block that one must have begun.
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

    // What lies past the end keeps the bits of key 0.
    float value[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        value[e] = __uint_as_float(ALL);
    if (S % 4 == 0) {
        if (column < S)
            *reinterpret_cast<float4 *>(value) = __ldcs(reinterpret_cast<const float4 *>(values + column));
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (column + e < S)
                value[e] = values[column + e];
    }
#pragma unroll
    for (int b = 0; b < PER; ++b)
        bins[tid + b * THREADS] = 0;

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16 elements,
    // if there are half as many groups, otherwise the least key.
    unsigned key[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        key[e] = keyOf(value[e]);
    unsigned most = max(key[0], key[1]), second = min(key[0], key[1]);
    {
        const unsigned larger = max(key[2], key[3]), smaller = min(key[2], key[3]);
        second = max(min(most, larger), max(second, smaller));
        most = max(most, larger);
    }
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) {
        const unsigned larger = __shfl_xor_sync(ALL, most, mask), smaller = __shfl_xor_sync(ALL, second, mask);
        second = max(min(most, larger), max(second, smaller));
        most = max(most, larger);
    }
    unsigned least = second == 0 ? ALL : second; // a group of fewer than two has no say
    if (K > 2 * ((S + 14) / 16)) {
        least = ALL;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            least = min(least, key[e] - 1); // what lies past the end becomes the largest
        least += least != ALL;
    }
    least = __reduce_min_sync(ALL, least);
    most = __reduce_max_sync(ALL, most);
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    if (lane < 2)
        storeRemote(remote(&spans[block * WARPS + warp], lane), make_uint2(least, most));
    meet();
    const uint2 span = spans[lane];
    unsigned top = __reduce_max_sync(ALL, span.y);
    unsigned range = top - __reduce_min_sync(ALL, span.x);
    int shift = max(0, 32 - __clz(range) - LOG);
    unsigned last = range >> shift;       // bin
    unsigned first = 0, need = K;         // places that are filled, and that are not

    Cut cut;
    bool settled;
    unsigned atBlock0, ofBlock0; // this window's
    while (true) {
        unsigned number[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            number[e] = claim(bins, (top - key[e]) >> shift, last);
        meet();

        // How many lie in the bins above each, of both blocks, and in the upper half of the word those of block 0.
        static_assert(PER == 2);
        const uint2 others = loadRemote(remote(&bins[tid * PER], block ^ 1));
        const uint2 own = *reinterpret_cast<const uint2 *>(&bins[tid * PER]);
        const unsigned count[PER] = {own.x + others.x + ((block ? others.x : own.x) << 16),
                                     own.y + others.y + ((block ? others.y : own.y) << 16)};
        const unsigned sum = count[0] + count[1];
        unsigned running = sum;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const unsigned other = __shfl_up_sync(ALL, running, step);
            running += lane >= step ? other : 0;
        }
        if (lane == 31)
            totals[warp] = running;
        __syncthreads();
        const unsigned total = totals[lane % WARPS];
        running += __reduce_add_sync(ALL, lane < warp ? total : 0) - sum;
#pragma unroll
        for (int b = 0; b < PER; ++b) {
            const unsigned before = running & 0xffff;
            if (before < need && need <= before + (count[b] & 0xffff))
                found = {unsigned(tid * PER + b), running, count[b]};
            places[tid * PER + b] = block ? before - (running >> 16) : running >> 16;
            running += count[b];
        }
        __syncthreads();

        cut = found;
        const unsigned before = cut.before & 0xffff, inside = cut.count & 0xffff;
        atBlock0 = cut.before >> 16;
        ofBlock0 = cut.count >> 16;
        settled = shift == 0 || before + inside == need;
        const bool ends = settled || inside <= FEW;
        // Block 0's places come first in each window, then block 1's, then those of the bin.
        const unsigned origin = first + (block ? atBlock0 : 0);
        const unsigned originOfBin = block ? ofBlock0 : 0;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const unsigned bin = (top - key[e]) >> shift;
            const unsigned at = places[min(bin, cut.bin)] + number[e];
            if (bin < cut.bin)
                chosen[origin + at] = make_uint2(key[e], column + e);
            else if (bin == cut.bin && ends) {
                const unsigned inBin = originOfBin + number[e];
                if (!settled)
                    storeRemote(remote(&few[inBin], 0), make_uint2(key[e], column + e));
                else if (before + inBin < need) {
                    topValues[first + before + inBin] = value[e];
                    indices[first + before + inBin] = column + e;
                }
            }
        }
        meet();
        const unsigned end = origin + (block ? before - atBlock0 : atBlock0);
        for (unsigned i = origin + tid; i < end; i += THREADS) {
            topValues[i] = valueOf(chosen[i].x);
            indices[i] = chosen[i].y;
        }
        first += before;
        need -= before;
        if (ends)
            break;

        // Once more in the window of that bin.
        top -= cut.bin << shift;
        last = (1u << min(shift, LOG)) - 1;
        shift = max(0, shift - LOG);
#pragma unroll
        for (int b = 0; b < PER; ++b)
            bins[tid + b * THREADS] = 0;
        __syncthreads();
    }

    const unsigned inside = cut.count & 0xffff;
    const unsigned candidate = THREADS - 1 - tid; // the last warps have the least to copy
    if (block == 0 && !settled && candidate < inside) {
        const uint2 element = few[candidate];
        unsigned rank = 0;
        for (unsigned i = 0; i < inside; ++i) {
            const unsigned other = few[i].x;
            rank += other > element.x || (other == element.x && i < candidate);
        }
        if (rank < need) {
            topValues[first + rank] = valueOf(element.x);
            indices[first + rank] = element.y;
        }
    }
}

// Rows of any length: a pass over the row a digit.
extern "C" __global__ __launch_bounds__(1024) void topk_any(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned bins[256];
    __shared__ unsigned above, inside;
    __shared__ Cut found;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    if (tid == 0)
        above = inside = 0;

    unsigned threshold = 0, need = K;
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < 256)
            bins[tid] = 0;
        __syncthreads();
        for (int column = tid; column < S; column += 1024) {
            const unsigned key = keyOf(values[column]);
            if (shift == 24 || (key ^ threshold) >> (shift + 8) == 0)
                atomicAdd(&bins[255 - (key >> shift & 255)], 1);
        }
        __syncthreads();
        // Warp 0 adds up the bins from the top, 8 a lane.
        if (tid < 32) {
            unsigned sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b)
                sum += bins[8 * lane + b];
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(ALL, running, step);
                running += lane >= step ? other : 0;
            }
            running -= sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                const unsigned count = bins[8 * lane + b];
                if (running < need && need <= running + count)
                    found = {unsigned(8 * lane + b), running, count};
                running += count;
            }
        }
        __syncthreads();
        threshold |= (255 - found.bin) << shift;
        need -= found.before;
    }

    for (int column = tid; column < S; column += 1024) {
        const unsigned key = keyOf(values[column]);
        unsigned place = K;
        if (key > threshold)
            place = atomicAdd(&above, 1);
        else if (key == threshold)
            place = K - need + atomicAdd(&inside, 1);
        if (place < K) {
            topValues[place] = values[column];
            indices[place] = column;
        }
    }
}
