/*klineage
surface = "cuda"

[[launch]]
kernel = "topkRegisters"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
when = "S <= 4096"

[[launch]]
kernel = "topkLong"
grid = ["B"]
block = ["1024"]
args = ["values", "top_values", "indices", "int S", "int K"]
when = "S > 4096"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// Rows of up to 4096 elements: one block a row, the row in registers, one histogram over the window between a
// guaranteed lower bound of the K-th largest and the maximum. The bins are linear in the value, and monotone, since
// each of the float operations is. What the counting atomics return, and the sums of the bins before, are the places.

constexpr unsigned ALL = 0xffffffffu;

// The order of floats as that of unsigned integers. 0 stands for no element.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(~int(key) >> 31) | 0x80000000u));
}

// The inclusive sum over the lanes up to this one.
__device__ __forceinline__ unsigned scan(unsigned sum)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
        asm volatile("{\n"
                     ".reg .u32 other;\n"
                     ".reg .pred inside;\n"
                     "shfl.sync.up.b32 other|inside, %0, %1, 0, 0xffffffff;\n"
                     "@inside add.u32 %0, %0, other;\n"
                     "}"
                     : "+r"(sum)
                     : "r"(step));
    return sum;
}

// Counts one more in the bin, if it is one of the window (up to `last`), and returns how many were there.
__device__ __forceinline__ unsigned claim(unsigned bins, unsigned bin, unsigned last)
{
    unsigned number = 0;
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.le.u32 inside, %2, %3;\n"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n"
                 "}"
                 : "+r"(number)
                 : "r"(bins + 4 * bin), "r"(bin), "r"(last)
                 : "memory");
    return number;
}

extern "C" __global__ void __launch_bounds__(512, 1)
topkRegisters(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    constexpr int THREADS = 512;
    constexpr int COUNT = 8;
    constexpr int WARPS = THREADS / 32;
    constexpr int BINS = 2 * THREADS;
    constexpr unsigned FEW = 64;                        // candidates that are ranked directly
    constexpr unsigned MAGIC = 0x4B000000u;             // the bits of 2^23, from which on floats are integers

    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ __align__(16) uint2 chosen[THREADS * COUNT];
    __shared__ __align__(16) uint4 found;               // bin, elements before, elements in it
    __shared__ __align__(16) uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ unsigned counters[34];                   // of the fallback: one a bit, those above, those equal

    const unsigned tid = threadIdx.x;
    const unsigned lane = tid % 32;
    const unsigned warp = tid / 32;
    const unsigned k = unsigned(K);
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;
    const auto columnOf = [tid](int element) { return int(4 * (tid + element / 4 * THREADS) + element % 4); };

    const float nothing = __uint_as_float(0xff800000u); // -infinity, never in a window
    float v[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        v[e] = nothing;
    if (S % 4 == 0) {
#pragma unroll
        for (int e = 0; e < COUNT; e += 4)
            if (columnOf(e) < S) {
                const float4 four = __ldcs(reinterpret_cast<const float4 *>(row + columnOf(e)));
                v[e] = four.x;
                v[e + 1] = four.y;
                v[e + 2] = four.z;
                v[e + 3] = four.w;
            }
    } else {
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (columnOf(e) < S)
                v[e] = row[columnOf(e)];
    }

    reinterpret_cast<uint2 *>(bins)[tid] = make_uint2(0, 0);
    if (tid < 34)
        counters[tid] = 0;

    // The least of the maxima of at least K disjoint groups is no more than the K-th largest. A group is a thread's.
    const float largest = fmaxf(fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3])), fmaxf(fmaxf(v[4], v[5]), fmaxf(v[6], v[7])));
    const bool empty = columnOf(0) >= S;                // has no say
    unsigned most = keyOf(largest);
    unsigned least = empty ? ALL : most;
    if (K > min(THREADS, (S + 3) / 4)) {                // too few groups: the least element
        float smallest = __uint_as_float(0x7f800000u);
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (columnOf(e) < S)
                smallest = fminf(smallest, v[e]);
        least = empty ? ALL : keyOf(smallest);
    }
    least = __reduce_min_sync(ALL, least);
    most = __reduce_max_sync(ALL, most);
    if (lane == 0)
        spans[warp] = make_uint2(least, most);
    __syncthreads();
    const uint2 span = spans[lane % WARPS];
    const float top = valueOf(__reduce_max_sync(ALL, span.y));
    const float low = valueOf(__reduce_min_sync(ALL, span.x));
    const float range = __fsub_rn(top, low);

    if (range > 1e-30f && range < 1e30f) {              // finite, and with a reciprocal; the same in all threads
        const float scale = __fdividef(float(BINS - 1), range);
        const unsigned table = unsigned(__cvta_generic_to_shared(bins));
        unsigned bin[COUNT], place[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            // Rounded to an integer by the addition of 2^23; far away it only grows.
            bin[e] = __float_as_uint(__fmaf_rn(__fsub_rn(top, v[e]), scale, 8388608.0f)) - MAGIC;
            place[e] = claim(table, bin[e], BINS - 1);
        }
        __syncthreads();

        // The scan over the bins, the largest elements first.
        const uint2 count = reinterpret_cast<const uint2 *>(bins)[tid];
        const unsigned sum = count.x + count.y;
        const unsigned inclusive = scan(sum);
        if (lane == 31)
            totals[warp] = inclusive;
        __syncthreads();
        const unsigned total = totals[lane % WARPS];
        const unsigned running = inclusive - sum + __reduce_add_sync(ALL, lane < warp ? total : 0u);
        const unsigned next = running + count.x;
        if (k - 1 - running < count.x)                  // running < K <= running + count
            found = make_uint4(2 * tid, running, count.x, 0);
        if (k - 1 - next < count.y)
            found = make_uint4(2 * tid + 1, next, count.y, 0);
        reinterpret_cast<uint2 *>(bins)[tid] = make_uint2(running, next);
        __syncthreads();

        const uint4 cut = found;
        if (cut.z <= FEW) {
            // Places of all down to the bin of the threshold, whose elements come last.
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                place[e] += bins[min(bin[e], cut.x)];
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                if (bin[e] <= cut.x)
                    chosen[place[e]] = make_uint2(__float_as_uint(v[e]), unsigned(columnOf(e)));
            __syncthreads();

#pragma unroll 1
            for (unsigned i = tid; i < cut.y; i += THREADS) {
                const uint2 element = chosen[i];
                out[i] = __uint_as_float(element.x);
                position[i] = int(element.y);
            }

            // One thread a candidate, the last warps.
            const unsigned mine = THREADS - 1 - tid;
            if (mine < cut.z) {
                const uint2 *few = chosen + cut.y;
                const uint2 element = few[mine];
                const unsigned key = keyOf(__uint_as_float(element.x));
                unsigned rank = 0;
#pragma unroll 1
                for (unsigned begin = 0; begin < cut.z; begin += 4) {
#pragma unroll
                    for (unsigned near = 0; near < 4; ++near) {
                        const unsigned j = begin + near;
                        const unsigned other = keyOf(__uint_as_float(few[min(j, cut.z - 1)].x));
                        rank += j < cut.z && (other > key || (other == key && j < mine));
                    }
                }
                if (rank < k - cut.y) {
                    out[cut.y + rank] = __uint_as_float(element.x);
                    position[cut.y + rank] = int(element.y);
                }
            }
            return;                                     // the whole block
        }
    }

    // Seldom: an infinite or empty window, or a crowded bin. Bisect the bits of the threshold's key.
    unsigned key[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        key[e] = columnOf(e) < S ? keyOf(v[e]) : 0u;
    unsigned threshold = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned trial = threshold | 1u << bit;
        unsigned reached = 0;
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            reached += key[e] >= trial;
        reached = __reduce_add_sync(ALL, reached);
        if (lane == 0)
            atomicAdd(&counters[bit], reached);
        __syncthreads();                                // the next bit has another counter
        if (counters[bit] >= k)
            threshold = trial;
    }
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        if (key[e] > threshold) {
            const unsigned to = atomicAdd(&counters[32], 1u);
            if (to < k) {
                out[to] = v[e];
                position[to] = columnOf(e);
            }
        }
    __syncthreads();
    const unsigned above = counters[32];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        if (key[e] == threshold && columnOf(e) < S) {
            const unsigned to = above + atomicAdd(&counters[33], 1u);
            if (to < k) {
                out[to] = v[e];
                position[to] = columnOf(e);
            }
        }
}

// Longer rows: digits of 8 bits, the row read again for each.
extern "C" __global__ void __launch_bounds__(1024, 1)
topkLong(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    constexpr int THREADS = 1024;
    __shared__ unsigned bins[4 * 256];                  // a table for each digit, the largest digit first
    __shared__ uint2 found;                             // bin, elements before
    __shared__ unsigned above, ties;

    const int tid = int(threadIdx.x);
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;
    const unsigned k = unsigned(K);

    bins[tid] = 0;
    if (tid == 0)
        above = ties = 0;
    __syncthreads();

    unsigned threshold = 0, need = k;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        unsigned *table = bins + shift / 8 * 256;
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(row[column]);
            if (shift == 24 || ((key ^ threshold) >> (shift + 8)) == 0)
                atomicAdd(&table[255 - ((key >> shift) & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned sum = 0;
            for (int b = 0; b < 8; ++b)
                sum += table[8 * tid + b];
            unsigned running = scan(sum) - sum;
            for (int b = 0; b < 8; ++b) {
                const unsigned count = table[8 * tid + b];
                if (running < need && need <= running + count)
                    found = make_uint2(unsigned(8 * tid + b), running);
                running += count;
            }
        }
        __syncthreads();
        const uint2 cut = found;
        threshold |= (255 - cut.x) << shift;
        need -= cut.y;
    }

    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        const unsigned key = keyOf(value);
        if (key > threshold) {
            const unsigned to = atomicAdd(&above, 1u);
            if (to < k) {
                out[to] = value;
                position[to] = column;
            }
        } else if (key == threshold) {
            const unsigned number = atomicAdd(&ties, 1u);
            if (number < need) {
                out[k - need + number] = value;
                position[k - need + number] = column;
            }
        }
    }
}
