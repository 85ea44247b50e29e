/*klineage
surface = "cuda"

[[tunable]]                      # threads a block
name = "THREADS"
default = 512
values = [256, 512]

[[tunable]]                      # log2 of the number of bins
name = "LOG"
default = 10
values = [9, 10, 11]

[[launch]]
kernel = "topk"
when = "S <= 4096 && S % 4 == 0"
grid = ["B"]
block = ["THREADS"]
shared = "8 * (K + 64)"
args = ["values", "top_values", "indices", "int S", "int K"]

[[launch]]
kernel = "topk_odd"
when = "S <= 4096 && S % 4 != 0"
grid = ["B"]
block = ["THREADS"]
shared = "8 * (K + 64)"
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
// One block a row, which stays in registers and is read once. Every group of 16 elements has a second largest, and there
// are at least K / 2 groups: so the least of these is no more than the K-th largest element. It is lowest where a warp was
// unlucky, so that of two warps the larger one is taken: nearly always still a bound, which the count proves. The window
// from there to the row's maximum is cut into bins, and the bins are counted. What the counting atomic returns is an
// element's number in its bin, so that the sums over the bins above give its place without another atomic. What is chosen
// is put there in shared memory first, and copied out in order. Only the bin that the K-th largest lies in has to be
// looked at more closely: it holds a few keys, which are ranked by comparing all with all; when it holds more, it is the
// next window.

constexpr int COLUMNS = 4096;                    // of a row at most
constexpr int VECTORS = COLUMNS / (4 * THREADS); // float4 a thread
constexpr int COUNT = 4 * VECTORS;               // elements a thread
constexpr int WARPS = THREADS / 32;
constexpr int BINS = 1 << LOG;
constexpr int PER = BINS / THREADS;   // bins a thread sums up
constexpr unsigned FAR = 1u << 30;    // a place that is never filled
constexpr unsigned FEW = 64;          // elements that are ranked
constexpr unsigned ALL = 0xffffffff;

static_assert(VECTORS == 2 || VECTORS == 4);

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

// The inclusive sum over the lanes up to this one.
__device__ unsigned scan(unsigned sum)
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

// The bins that one thread sums up.
struct __align__(PER < 4 ? 4 * PER : 16) Bins {
    unsigned count[PER];
};

template <bool ALIGNED>
__device__ __forceinline__ void choose(const float *__restrict__ values, float *__restrict__ topValues,
                                       int *__restrict__ indices, unsigned S, unsigned K)
{
    extern __shared__ uint2 chosen[]; // key and column
    __shared__ __align__(16) unsigned bins[BINS + 32];
    __shared__ uint4 spans[WARPS / 2]; // of two warps
    __shared__ unsigned totals[WARPS];
    __shared__ uint4 found; // the bin of the K-th largest, elements above it, elements in it
    const unsigned tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const auto columnOf = [tid](int element) { return 4 * (tid + element / 4 * THREADS) + element % 4; };
    const float *const from = values + size_t(blockIdx.x) * S + 4 * tid;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;

    // What lies past the end keeps the bits of key 0.
    float value[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        value[e] = __uint_as_float(ALL);
    if (ALIGNED) {
#pragma unroll
        for (int e = 0; e < COUNT; e += 4)
            if (columnOf(e) < S)
                *reinterpret_cast<float4 *>(value + e) =
                    __ldcs(reinterpret_cast<const float4 *>(from + e * THREADS));
    } else {
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (columnOf(e) < S)
                value[e] = from[e / 4 * 4 * THREADS + e % 4];
    }
    if (tid == 0)
        found = make_uint4(0, 0, 0, 0);
    // The last 32 bins, one a lane, take what is below the window.
    Bins *const mine = reinterpret_cast<Bins *>(bins) + tid;
    *mine = {};
    if (tid < 32)
        bins[BINS + tid] = FAR;
    unsigned key[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        key[e] = keyOf(value[e]);

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16.
    unsigned most = max(key[0], key[1]), second = min(key[0], key[1]);
#pragma unroll
    for (int e = 2; e < COUNT; e += 2) {
        const unsigned larger = max(key[e], key[e + 1]), smaller = min(key[e], key[e + 1]);
        second = max(min(most, larger), max(second, smaller));
        most = max(most, larger);
    }
    constexpr unsigned SHARE = 4 / VECTORS; // threads a group
    if (SHARE == 2) {
        const unsigned larger = __shfl_xor_sync(ALL, most, 1), smaller = __shfl_xor_sync(ALL, second, 1);
        second = max(min(most, larger), max(second, smaller));
    }
    unsigned least = second == 0 ? ALL : second; // a group of fewer than two has no say
    const bool sparse = K > 2 * min(THREADS / SHARE, (S + 4 * SHARE - 2) / (4 * SHARE));
    if (sparse) {
        least = ALL;
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            least = min(least, key[e] - 1); // what lies past the end becomes the largest
        least += least != ALL;
    }
    least = __reduce_min_sync(ALL, least);
    most = __reduce_max_sync(ALL, most);
    if (lane == 0)
        reinterpret_cast<uint2 *>(spans)[warp] = make_uint2(least, most);
    __syncthreads();
    // Of two warps the larger bound is taken: it is closer, and that it is one is seen when the keys are counted.
    const uint4 span = spans[lane % (WARPS / 2)];
    unsigned top = __reduce_max_sync(ALL, max(span.y, span.w));
    const unsigned bottom =
        __reduce_min_sync(ALL, sparse || max(span.x, span.z) == ALL ? min(span.x, span.z) : max(span.x, span.z));
    const unsigned range = top > bottom ? top - bottom : 0;
    int shift = max(0, 32 - __clz(range) - LOG);
    unsigned first = 0, need = K; // places that are filled, and that are not

    unsigned count;
    bool settled;
    while (true) {
        unsigned bin[COUNT], place[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            bin[e] = min((top - key[e]) >> shift, BINS + lane);
            place[e] = atomicAdd(&bins[bin[e]], 1);
        }
        __syncthreads();

        // How many lie in the bins above each; those of the largest elements come first.
        Bins above = *mine;
        unsigned sum = 0;
#pragma unroll
        for (int b = 0; b < PER; ++b)
            sum += above.count[b];
        const unsigned upToMine = scan(sum);
        if (lane == 31)
            totals[warp] = upToMine;
        __syncthreads();
        const unsigned total = totals[lane % WARPS];
        unsigned running = __reduce_add_sync(ALL, lane < warp ? total : 0) + upToMine - sum;
#pragma unroll
        for (int b = 0; b < PER; ++b) {
            const unsigned inside = above.count[b];
            if (need - 1 - running < inside)
                found = make_uint4(tid * PER + b, running, inside, 0);
            above.count[b] = running;
            running += inside;
        }
        *mine = above;
        __syncthreads();

        // Places of all that are above the bin of the K-th largest, and of those in it: as many as are needed when
        // they are equal or all needed, otherwise all, to be ranked. The sums below that bin are no less than the limit.
        const uint4 cut = found;
        if (cut.z == 0) { // the window holds too few: everything is the next one
            shift = 32 - LOG;
            *mine = {};
            if (tid < 32)
                bins[BINS + tid] = FAR;
            __syncthreads();
            continue;
        }
        count = cut.z;
        settled = shift == 0 || cut.y + count == need;
        const bool few = settled || count <= FEW;
        const unsigned limit = settled ? need : few ? cut.y + count : cut.y;
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            place[e] += bins[bin[e]];
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (place[e] < limit)
                chosen[first + place[e]] = make_uint2(key[e], columnOf(e));
        __syncthreads();
        first += cut.y;
        need -= cut.y;
        if (few)
            break;

        // Once more in the window of that bin.
        top -= cut.x << shift;
        shift = max(0, shift - LOG);
        *mine = {};
        if (tid < 32)
            bins[BINS + tid] = FAR;
        __syncthreads();
    }

    const unsigned sure = settled ? K : first;
#pragma unroll 1
    for (unsigned i = tid; i < sure; i += THREADS) {
        topValues[i] = valueOf(chosen[i].x);
        indices[i] = chosen[i].y;
    }
    if (settled)
        return;
    // A warp ranks one of them at a time.
#pragma unroll 1
    for (unsigned i = warp; i < count; i += WARPS) {
        const uint2 element = chosen[first + i];
        unsigned rank = 0;
        for (unsigned begin = 0; begin < count; begin += 32) {
            const unsigned j = begin + lane;
            const unsigned other = j < count ? chosen[first + j].x : 0;
            rank += __popc(__ballot_sync(ALL, other > element.x || (other == element.x && j < i)));
        }
        if (lane == 0 && rank < need) {
            topValues[first + rank] = valueOf(element.x);
            indices[first + rank] = element.y;
        }
    }
}

// Rows of which each begins at a multiple of 16 bytes, and others.
extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
                                                           float *__restrict__ topValues,
                                                           int *__restrict__ indices, int S, int K)
{
    choose<true>(values, topValues, indices, S, K);
}

extern "C" __global__ __launch_bounds__(THREADS) void topk_odd(const float *__restrict__ values,
                                                               float *__restrict__ topValues,
                                                               int *__restrict__ indices, int S, int K)
{
    choose<false>(values, topValues, indices, S, K);
}

struct Cut {
    unsigned bin;    // in which the K-th largest lies
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

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
