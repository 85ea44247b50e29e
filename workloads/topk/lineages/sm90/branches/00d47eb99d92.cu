/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
when = "S <= 4096"
grid = ["B"]
block = ["512"]
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
// One block a row, which stays in registers, eight keys a thread, and is read once. Every group of 16 elements has a
// second largest, and there are at least K / 2 groups: so the least of these is no more than the K-th largest element. The
// window from there to the row's maximum is cut into bins, and the bins are counted. What the counting atomic returns is
// an element's number in its bin, so that the sums over the bins above give its place without another atomic. What is
// chosen is put there in shared memory first, and copied out in order. Only the bin that the K-th largest lies in has to
// be looked at more closely: it holds a few keys, which are ranked by comparing all with all; when it holds more, it is
// the next window.

constexpr int THREADS = 512;
constexpr int EACH = 8;             // keys a thread holds, in two runs of four
constexpr int WARPS = THREADS / 32;
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;
constexpr int FEW = 64;             // elements that are ranked
constexpr int COPIERS = THREADS - 32; // all warps but the last, which ranks
constexpr int THREADS_ANY = 1024;
constexpr unsigned ALL = 0xffffffff;

static_assert(BINS == 2 * THREADS, "a thread sums up two bins");

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

struct Cut {
    unsigned bin;    // in which the K-th largest lies
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    extern __shared__ uint2 chosen[]; // key and column
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ Cut found;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u, warp = tid / 32;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;

    // A warp holds 256 columns in a row: a lane four of the first 128, and four of the others. Element e of a thread is
    // in the column start + e / 4 * 128 + e % 4.
    const int start = 256 * warp + 4 * lane;

    // What lies past the end keeps the bits of key 0.
    float value[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e)
        value[e] = __uint_as_float(0xffffffff);
    if (S % 4 == 0) {
#pragma unroll
        for (int e = 0; e < EACH; e += 4) {
            if (start + 32 * e < S) {
                const float4 four = *reinterpret_cast<const float4 *>(values + start + 32 * e);
                value[e] = four.x;
                value[e + 1] = four.y;
                value[e + 2] = four.z;
                value[e + 3] = four.w;
            }
        }
    } else {
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            if (start + e / 4 * 128 + e % 4 < S)
                value[e] = values[start + e / 4 * 128 + e % 4];
    }
    uint2 *const twoBins = reinterpret_cast<uint2 *>(bins) + tid;
    *twoBins = make_uint2(0, 0);
    unsigned key[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e)
        key[e] = keyOf(value[e]);

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16 elements,
    // those of two lanes, if there are half as many groups, otherwise the least key. In the warp that the row ends in,
    // groups may be smaller: there are never fewer of two or more elements than if they were cut in order.
    unsigned most = max(key[0], key[1]), second = min(key[0], key[1]);
#pragma unroll
    for (int e = 2; e < EACH; e += 2) {
        const unsigned larger = max(key[e], key[e + 1]), smaller = min(key[e], key[e + 1]);
        second = max(min(most, larger), max(second, smaller));
        most = max(most, larger);
    }
    {
        const unsigned larger = __shfl_xor_sync(ALL, most, 1), smaller = __shfl_xor_sync(ALL, second, 1);
        second = max(min(most, larger), max(second, smaller));
        most = max(most, larger);
    }
    unsigned least = second == 0 ? ALL : second; // a group of fewer than two has no say
    if (K > 2 * ((S + 14) / 16)) {
        least = ALL;
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            least = min(least, key[e] - 1); // what lies past the end becomes the largest
        least += least != ALL;
    }
    least = __reduce_min_sync(ALL, least);
    most = __reduce_max_sync(ALL, most);
    if (lane == 0)
        spans[warp] = make_uint2(least, most);
    __syncthreads();
    const uint2 span = spans[lane % WARPS];
    unsigned top = __reduce_max_sync(ALL, span.y);
    unsigned range = top - __reduce_min_sync(ALL, span.x);
    int shift = max(0, 32 - __clz(range) - LOG);
    unsigned last = range >> shift; // bin
    unsigned first = 0, need = K; // places that are filled, and that are not

    Cut cut;
    bool settled;
    while (true) {
        unsigned number[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            number[e] = claim(bins, (top - key[e]) >> shift, last);
        __syncthreads();

        // How many lie in the bins above each; those of the largest elements come first.
        const uint2 count = *twoBins;
        const unsigned sum = count.x + count.y;
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
        const unsigned middle = running + count.x;
        *twoBins = make_uint2(running, middle);
        if (running < need && need <= running + sum) {
            const bool low = need > middle; // in the second of the two
            found = {unsigned(2 * tid) + low, low ? middle : running, low ? count.y : count.x};
        }
        __syncthreads();

        // Places of all that are above the bin of the K-th largest, and of those in it: as many as are needed when
        // they are equal or all needed, otherwise all, to be ranked.
        cut = found;
        settled = shift == 0 || cut.before + cut.count == need;
        const bool few = settled || cut.count <= FEW;
        const unsigned limit = settled ? need : few ? cut.before + cut.count : cut.before;
        unsigned place[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const unsigned bin = (top - key[e]) >> shift;
            const unsigned at = bins[min(bin, cut.bin)] + number[e];
            place[e] = bin <= cut.bin ? at : ALL;
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            if (place[e] < limit)
                chosen[first + place[e]] = make_uint2(key[e], start + e / 4 * 128 + e % 4);
        __syncthreads();
        first += cut.before;
        need -= cut.before;
        if (few)
            break;

        // Once more in the window of that bin.
        top -= cut.bin << shift;
        last = (1u << min(shift, LOG)) - 1;
        shift = max(0, shift - LOG);
        *twoBins = make_uint2(0, 0);
        __syncthreads();
    }

    const unsigned sure = settled ? K : first;
    if (tid < COPIERS) {
#pragma unroll 1
        for (unsigned i = tid; i < sure; i += COPIERS) {
            topValues[i] = valueOf(chosen[i].x);
            indices[i] = chosen[i].y;
        }
    }
    const unsigned mine = THREADS - 1 - tid; // the last warps have the least to copy
    if (!settled && mine < cut.count) {
        const uint2 element = chosen[first + mine];
        unsigned rank = 0;
        for (unsigned i = 0; i < cut.count; ++i) {
            const unsigned other = chosen[first + i].x;
            rank += other > element.x || (other == element.x && i < mine);
        }
        if (rank < need) {
            topValues[first + rank] = valueOf(element.x);
            indices[first + rank] = element.y;
        }
    }
}

// Rows of any length: a pass over the row a digit.
extern "C" __global__ __launch_bounds__(THREADS_ANY) void topk_any(const float *__restrict__ values,
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
        for (int column = tid; column < S; column += THREADS_ANY) {
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

    for (int column = tid; column < S; column += THREADS_ANY) {
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
