/*klineage
surface = "cuda"

[[workspace]]                    # what is chosen of long rows, in no order
name = "chosen_values"
dtype = "f32"
shape = ["B", "K"]

[[workspace]]
name = "chosen_columns"
dtype = "i32"
shape = ["B", "K"]

[[launch]]
kernel = "topk"
when = "S <= 4096"
grid = ["B"]
block = ["1024"]
shared = "8 * (K + 64) + 32"
args = ["values", "top_values", "indices", "int S", "int K"]

[[launch]]
kernel = "topk_any"
when = "S > 4096"
grid = ["B"]
block = ["1024"]
args = ["values", "chosen_values", "chosen_columns", "int S", "int K"]

[[launch]]
kernel = "topk_order"
when = "S > 4096"
grid = ["ceil_div(K, 256)", "B"]
block = ["256"]
args = ["chosen_values", "chosen_columns", "top_values", "indices", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in descending order.
//
// One block a row, which stays in registers: four keys a thread, read once. Every group of 16 elements has a second
// largest, and there are at least K / 2 groups: so the least of these is no more than the K-th largest element. The
// window from there to the row's maximum is cut into bins, and its keys are counted with atomics in shared memory. The
// bin that the K-th largest lies in holds a few keys; when it holds more, it is the next window. The sums over the bins
// and the numbers that the atomics return place these and what is larger in a list that is in order but for the order
// inside each bin: each element counts those of its bin that come before it.

constexpr int THREADS = 1024;
constexpr int WARPS = THREADS / 32;
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;
constexpr int PER = BINS / THREADS; // bins a thread sums up
constexpr int FEW = 64;             // elements of the last bin that need no further window
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

struct Cut {
    unsigned bin;    // in which the K-th largest lies
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    // The list: keys; and of each the column (12 bits) with the first and the last group of four places (10 bits each)
    // that its bin lies in.
    extern __shared__ uint4 list[];
    unsigned *const keys = reinterpret_cast<unsigned *>(list), *const columns = keys + K + FEW + 4;
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ Cut found;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u, warp = tid / 32;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;

    // What lies past the end keeps the bits of key 0.
    float value[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        value[e] = __uint_as_float(0xffffffff);
    if (S % 4 == 0) {
        if (4 * tid < S)
            *reinterpret_cast<float4 *>(value) = *reinterpret_cast<const float4 *>(values + 4 * tid);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (4 * tid + e < S)
                value[e] = values[4 * tid + e];
    }
#pragma unroll
    for (int b = 0; b < PER; ++b)
        bins[tid + b * THREADS] = 0;
    unsigned key[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        key[e] = keyOf(value[e]);

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16 elements,
    // if there are half as many groups, otherwise the least key.
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
    if (lane == 0)
        spans[warp] = make_uint2(least, most);
    __syncthreads();
    const uint2 span = spans[lane];
    unsigned top = __reduce_max_sync(ALL, span.y);
    unsigned range = top - __reduce_min_sync(ALL, span.x);
    int shift = max(0, 32 - __clz(range) - LOG);
    unsigned last = range >> shift; // bin

    unsigned need = K;
    unsigned filled; // places of the list
    while (true) {
        unsigned bin[4], number[4]; // and the number in the bin
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            bin[e] = (top - key[e]) >> shift;
            number[e] = 0;
            if (bin[e] <= last)
                number[e] = atomicAdd(&bins[bin[e]], 1);
        }
        __syncthreads();

        // How many lie in the bins above each; those of the largest elements come first.
        unsigned count[PER], sum = 0;
#pragma unroll
        for (int b = 0; b < PER; ++b) {
            count[b] = bins[tid * PER + b];
            sum += count[b];
        }
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
        const unsigned placed = K - need; // by the windows before
#pragma unroll
        for (int b = 0; b < PER; ++b) {
            // From here on a bin holds its first place and the one past its last.
            bins[tid * PER + b] = (placed + running) | (placed + running + count[b]) << 16;
            if (running < need && need <= running + count[b])
                found = {unsigned(tid * PER + b), running, count[b]};
            running += count[b];
        }
        __syncthreads();
        const Cut cut = found;
        need -= cut.before;
        const bool settled = shift == 0, finished = settled || cut.count <= FEW;

        // All above the bin; and those in it, if it is the last: as many as are needed when they are equal, otherwise
        // all. Where a bin's elements are equal, each is alone at its place.
        filled = settled ? K : K - need + (finished ? cut.count : 0);
        unsigned places[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            places[e] = bin[e] <= cut.bin ? bins[bin[e]] : ALL;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const unsigned start = places[e] & 0xffff, place = start + number[e];
            if (place < filled) {
                const unsigned from = settled ? place : start, to = settled ? place : (places[e] >> 16) - 1;
                keys[place] = key[e];
                columns[place] = unsigned(4 * tid + e) | (from / 4) << 12 | (to / 4) << 22;
            }
        }
        if (finished)
            break;

        // Once more in the window of that bin.
        top -= cut.bin << shift;
        last = (1u << min(shift, LOG)) - 1;
        shift = max(0, shift - LOG);
        __syncthreads();
#pragma unroll
        for (int b = 0; b < PER; ++b)
            bins[tid + b * THREADS] = 0;
        __syncthreads();
    }
    if (tid < 4)
        keys[filled + tid] = 0;
    __syncthreads();

    // The rank of each is the number of those that come before it. What is placed before its bin is larger and what is
    // placed after it is smaller, so that the bin may be widened to whole groups of four places.
    for (unsigned i = tid; i < filled; i += THREADS) {
        const unsigned element = keys[i], packed = columns[i];
        const unsigned end = (packed >> 22) * 4;
        unsigned j = (packed >> 12 & 0x3ff) * 4, rank = j;
#pragma unroll 1
        do {
            const uint4 other = *reinterpret_cast<const uint4 *>(keys + j);
            rank += other.x > element || (other.x == element && j < i);
            rank += other.y > element || (other.y == element && j + 1 < i);
            rank += other.z > element || (other.z == element && j + 2 < i);
            rank += other.w > element || (other.w == element && j + 3 < i);
            j += 4;
        } while (j <= end);
        if (rank < K) {
            topValues[rank] = valueOf(element);
            indices[rank] = packed & 0xfff;
        }
    }
}

// Rows of any length: a pass over the row a digit. What is chosen is in no order yet.
extern "C" __global__ __launch_bounds__(THREADS) void topk_any(const float *__restrict__ values,
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
        for (int column = tid; column < S; column += THREADS) {
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

    for (int column = tid; column < S; column += THREADS) {
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

// One thread an element of those that are chosen, which counts those that come before it.
extern "C" __global__ __launch_bounds__(256) void topk_order(const float *__restrict__ values,
                                                             const int *__restrict__ columns,
                                                             float *__restrict__ topValues,
                                                             int *__restrict__ indices, int K)
{
    const int mine = blockIdx.x * 256 + threadIdx.x;
    if (mine >= K)
        return;
    values += size_t(blockIdx.y) * K;
    const float value = values[mine];
    int rank = 0;
    for (int i = 0; i < K; ++i)
        rank += values[i] > value || (values[i] == value && i < mine);
    topValues[size_t(blockIdx.y) * K + rank] = value;
    indices[size_t(blockIdx.y) * K + rank] = columns[size_t(blockIdx.y) * K + mine];
}
