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
// One block a row, which stays in registers, eight keys a thread, and is read once. Every group of 16 elements has a second
// largest, and there are at least K / 2 groups: so the least of these is no more than the K-th largest element. The
// window from there to the row's maximum is cut into bins, and the bins are counted. What the counting atomic returns is
// an element's number in its bin, so that the sums over the bins above give its place without another atomic. Elements
// outside the window are counted behind its last bin, each lane's in a bin of its own, where nothing depends on them.
// What is chosen is put there in shared memory first, and copied out in order. Only the bin that the K-th largest lies in
// has to be looked at more closely: it holds a few keys, which are ranked by comparing all with all, a warp a key, by
// votes; when it holds more, it is the next window.

constexpr int THREADS = 512;
constexpr int COUNT = 8; // keys a thread
constexpr int WARPS = THREADS / 32;
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;
constexpr int SPARE = 32;           // bins behind the last
constexpr int PER = BINS / THREADS; // bins a thread sums up
constexpr int FEW = 64;             // elements that are ranked
constexpr unsigned ALL = 0xffffffff;
constexpr unsigned NOWHERE = 0x80000000; // no place, even with an element's number added

static_assert(FEW <= 64, "two votes rank an element");

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

// Counts one more in the bin at this shared address, and returns how many were there.
__device__ __forceinline__ unsigned claim(unsigned slot)
{
    unsigned number;
    asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(number) : "r"(slot) : "memory");
    return number;
}

// What the bin at this shared address holds, if it lies no further than the last one; those beyond are not read.
__device__ __forceinline__ unsigned startOf(unsigned slot, unsigned last)
{
    unsigned start = NOWHERE;
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.le.u32 inside, %1, %2;\n"
                 "@inside ld.shared.u32 %0, [%1];\n"
                 "}"
                 : "+r"(start)
                 : "r"(slot), "r"(last)
                 : "memory");
    return start;
}

// Puts key and column in their place, if it is one below the limit.
__device__ __forceinline__ void put(unsigned base, unsigned place, unsigned limit, unsigned key, unsigned column)
{
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.lt.u32 inside, %1, %2;\n"
                 "@inside st.shared.v2.u32 [%0], {%3, %4};\n"
                 "}"
                 :
                 : "r"(base + 8 * place), "r"(place), "r"(limit), "r"(key), "r"(column)
                 : "memory");
}

// A step of a warp's inclusive sum: the shuffle itself says whether there is a lane to add.
__device__ __forceinline__ unsigned scanStep(unsigned running, int step)
{
    asm volatile("{\n"
                 ".reg .u32 other;\n"
                 ".reg .pred inside;\n"
                 "shfl.sync.up.b32 other|inside, %0, %1, 0, 0xffffffff;\n"
                 "@inside add.u32 %0, %0, other;\n"
                 "}"
                 : "+r"(running)
                 : "r"(step));
    return running;
}

struct Cut {
    unsigned bin;    // in which the K-th largest lies
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
                                                           float *__restrict__ topValues,
                                                           int *__restrict__ indices, int S, int K)
{
    extern __shared__ uint2 chosen[]; // key and column
    __shared__ __align__(16) unsigned bins[BINS + SPARE];
    __shared__ uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ Cut found;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u, warp = tid / 32;
    const auto columnOf = [tid](int element) { return 4 * (tid + element / 4 * THREADS) + element % 4; };
    const unsigned binsAt = unsigned(__cvta_generic_to_shared(bins));
    const unsigned chosenAt = unsigned(__cvta_generic_to_shared(chosen));
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;

    // What lies past the end keeps the bits of key 0.
    float value[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        value[e] = __uint_as_float(ALL);
    if (S % 4 == 0) {
#pragma unroll
        for (int v = 0; v < COUNT / 4; ++v)
            if (columnOf(4 * v) < S)
                *reinterpret_cast<float4 *>(value + 4 * v) =
                    __ldcs(reinterpret_cast<const float4 *>(values + columnOf(4 * v)));
    } else {
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (columnOf(e) < S)
                value[e] = values[columnOf(e)];
    }
#pragma unroll
    for (int b = 0; b < PER; ++b)
        bins[tid + b * THREADS] = 0;
    if (tid < SPARE)
        bins[BINS + tid] = 0; // once: the numbers from there only have to stay small

    unsigned key[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        key[e] = keyOf(value[e]);

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16 elements,
    // if there are half as many groups, otherwise the least key.
    unsigned most = max(key[0], key[1]), second = min(key[0], key[1]);
#pragma unroll
    for (int e = 2; e < COUNT; e += 2) {
        const unsigned larger = max(key[e], key[e + 1]), smaller = min(key[e], key[e + 1]);
        second = max(min(most, larger), max(second, smaller));
        most = max(most, larger);
    }
    const unsigned larger = __shfl_xor_sync(ALL, most, 1), smaller = __shfl_xor_sync(ALL, second, 1);
    second = max(min(most, larger), max(second, smaller));
    unsigned least = second == 0 ? ALL : second; // a group of fewer than two has no say
    if (K > 2 * min(THREADS / 2, (S + 6) / 8)) {
        least = ALL;
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
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
        // The window's last bin is at most BINS - 1, so that the spare bins behind it are there. They are beyond the
        // K-th largest: what they hold changes no place that is used.
        const unsigned spare = last + 1 + unsigned(lane);
        unsigned slot[COUNT], number[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            slot[e] = binsAt + 4 * min((top - key[e]) >> shift, spare);
            number[e] = claim(slot[e]);
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
        for (int step = 1; step < 32; step *= 2)
            running = scanStep(running, step);
        if (lane == 31)
            totals[warp] = running;
        __syncthreads();
        const unsigned total = totals[lane % WARPS];
        running += __reduce_add_sync(ALL, lane < warp ? total : 0) - sum;
#pragma unroll
        for (int b = 0; b < PER; ++b) {
            if (running < need && need <= running + count[b])
                found = {unsigned(tid * PER + b), running, count[b]};
            bins[tid * PER + b] = running;
            running += count[b];
        }
        __syncthreads();

        // Places of all that are above the bin of the K-th largest, and of those in it: as many as are needed when
        // they are equal or all needed, otherwise all, to be ranked.
        cut = found;
        settled = shift == 0 || cut.before + cut.count == need;
        const bool few = settled || cut.count <= FEW;
        const unsigned limit = settled ? need : few ? cut.before + cut.count : cut.before;
        const unsigned cutAt = binsAt + 4 * cut.bin, firstAt = chosenAt + 8 * first;
        unsigned start[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            start[e] = startOf(slot[e], cutAt);
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            put(firstAt, start[e] + number[e], limit, key[e], columnOf(e));
        __syncthreads();
        first += cut.before;
        need -= cut.before;
        if (few)
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

    // Every warp has all that are to be ranked, two a lane; none are when the bin is settled.
    const unsigned ranked = settled ? 0 : cut.count, low = lane, high = lane + 32;
    const unsigned lowKey = low < ranked ? chosen[first + low].x : 0;
    const unsigned highKey = high < ranked ? chosen[first + high].x : 0;

    const unsigned sure = settled ? K : first;
#pragma unroll 1
    for (unsigned i = tid; i < sure; i += THREADS) {
        topValues[i] = valueOf(chosen[i].x);
        indices[i] = chosen[i].y;
    }
    // A warp an element, from the last warps on, which have the least to copy.
#pragma unroll 1
    for (unsigned i = WARPS - 1 - warp; i < ranked; i += WARPS) {
        const uint2 element = chosen[first + i];
        const unsigned lowVotes =
            __ballot_sync(ALL, lowKey > element.x || (lowKey == element.x && low < i));
        const unsigned highVotes =
            __ballot_sync(ALL, highKey > element.x || (highKey == element.x && high < i));
        const unsigned rank = __popc(lowVotes) + __popc(highVotes);
        if (lane == 0 && rank < need) {
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
