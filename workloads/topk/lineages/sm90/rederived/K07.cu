/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
when = "S <= 4096"
grid = ["B"]
block = ["1024"]
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
// One block a row, which stays in registers: four keys a thread, read once. Every group of 16 elements has a second
// largest, and there are at least K / 2 groups: so the least of these is no more than the K-th largest element. The
// window from there to the row's maximum is cut into bins, and its keys are counted with atomics in shared memory. The
// bin that the K-th largest lies in holds a few keys, which are ranked by comparing all with all; when it holds more, it
// is the next window.

constexpr int THREADS = 1024;
constexpr int WARPS = THREADS / 32;
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;
constexpr int PER = BINS / THREADS; // bins a thread sums up
constexpr int FEW = 64;             // elements that are ranked
constexpr int WIDE = 28;            // log2 of a window whose bins may well hold more than that
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

// The least, over the warp's groups of 16 elements, of the second largest; ALL when no group has two elements. A group is
// that of four lanes, whose numbers differ in the bits of one and other; first and second are a lane's two largest.
__device__ __forceinline__ unsigned leastSecond(unsigned first, unsigned second, int one, int other)
{
    const unsigned next = __shfl_xor_sync(ALL, first, one);
    const unsigned far = __shfl_xor_sync(ALL, max(first, next), other);
    const unsigned others = max(next, far); // the largest of the other three lanes
    const unsigned runnerUp = max(second, others);
    // Only the lane that holds the largest knows the second largest.
    return __reduce_min_sync(ALL, first >= others && runnerUp != 0 ? runnerUp : ALL);
}

struct Cut {
    unsigned bin;    // in which the K-th largest lies
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ uint2 few[FEW]; // key and column
    __shared__ unsigned above, inside;
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
    if (tid == 0)
        above = inside = 0;
    unsigned key[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        key[e] = keyOf(value[e]);

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16 elements,
    // if there are enough groups of two elements or more, otherwise the least key.
    const unsigned left = max(key[0], key[1]), right = max(key[2], key[3]);
    const unsigned first = max(left, right);
    const unsigned second = max(min(left, right), max(min(key[0], key[1]), min(key[2], key[3])));
    const unsigned most = __reduce_max_sync(ALL, first);
    unsigned least;
    if (K <= (S + 14) / 16 * 2) {
        least = leastSecond(first, second, 1, 2);
        // Seldom a warp has a group of low elements, and the window would reach down to zero and past it. Other groups
        // of the warp's elements, no fewer, give a bound that is as good.
        if ((most - least) >> WIDE != 0)
            least = max(least, leastSecond(first, second, 4, 8));
    } else {
        least = ALL;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            least = min(least, key[e] - 1); // what lies past the end becomes the largest
        least += least != ALL;
        least = __reduce_min_sync(ALL, least);
    }
    if (lane == 0)
        spans[warp] = make_uint2(least, most);
    __syncthreads();
    const uint2 span = spans[lane];
    unsigned top = __reduce_max_sync(ALL, span.y);
    unsigned range = top - __reduce_min_sync(ALL, span.x);
    int shift = max(0, 32 - __clz(range) - LOG);
    unsigned last = range >> shift; // bin

    unsigned need = K;
    Cut cut;
    bool settled;
    while (true) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const unsigned bin = (top - key[e]) >> shift;
            if (bin <= last)
                atomicAdd(&bins[bin], 1);
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
#pragma unroll
        for (int b = 0; b < PER; ++b) {
            if (running < need && need <= running + count[b])
                found = {unsigned(tid * PER + b), running, count[b]};
            running += count[b];
        }
        __syncthreads();
        cut = found;
        need -= cut.before;
        settled = shift == 0 || cut.count == need;
        if (settled || cut.count <= FEW)
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
    const unsigned high = top - (cut.bin << shift), width = (1u << shift) - 1; // of the bin

    // All above the bin, and those in it: as many as are needed when they are equal or all needed, otherwise all are
    // listed, and ranked by comparing them with each other.
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        unsigned place = K;
        if (key[e] > high)
            place = atomicAdd(&above, 1);
        else if (high - key[e] <= width) {
            const unsigned number = atomicAdd(&inside, 1);
            if (settled)
                place = K - need + number;
            else
                few[number] = make_uint2(key[e], 4 * tid + e);
        }
        if (place < K) {
            topValues[place] = value[e];
            indices[place] = 4 * tid + e;
        }
    }
    __syncthreads();
    const unsigned mine = THREADS - 1 - tid; // the last warps
    if (!settled && mine < cut.count) {
        const uint2 element = few[mine];
        unsigned rank = 0;
        for (unsigned i = 0; i < cut.count; ++i) {
            const unsigned other = few[i].x;
            rank += other > element.x || (other == element.x && i < mine);
        }
        if (rank < need) {
            topValues[K - need + rank] = valueOf(element.x);
            indices[K - need + rank] = element.y;
        }
    }
}

// Rows of any length: a pass over the row a digit.
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
