/*klineage
surface = "cuda"

[[launch]]
kernel = "topk_registers"
when = "S <= 4096"
grid = ["B"]
block = ["512"]
shared = "8 * (K + 64)"
args = ["values", "top_values", "indices", "int S", "int K"]

[[launch]]
kernel = "topk_passes"
when = "S > 4096"
grid = ["B"]
block = ["1024"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.

constexpr int THREADS = 512;
constexpr int COUNT = 8;            // elements a thread: rows of up to 4096
constexpr int WARPS = THREADS / 32;
constexpr int LOG = 9;
constexpr int BINS = 1 << LOG;      // one a thread
constexpr unsigned FEW = 64;        // candidates in the bin of the threshold that are ranked directly
constexpr unsigned FAR = 1u << 30;  // a place that is never filled
constexpr unsigned ALL = 0xffffffffu;

static_assert(BINS == THREADS, "a bin a thread");

// The order of floats as that of unsigned integers. 0 is below all of them, and stands for no element.
__device__ __forceinline__ unsigned keyOf(unsigned bits)
{
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(~int(key) >> 31) | 0x80000000u));
}

// Counts one more in the bin, if it is one of the window, and returns how many were there.
__device__ __forceinline__ unsigned claim(unsigned address, unsigned bin, unsigned last)
{
    unsigned number = 0;
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.le.u32 inside, %2, %3;\n"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n"
                 "}"
                 : "+r"(number)
                 : "r"(address + 4 * bin), "r"(bin), "r"(last)
                 : "memory");
    return number;
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

extern "C" __global__ void __launch_bounds__(THREADS) topk_registers(const float *__restrict__ values,
                                                                     float *__restrict__ topValues,
                                                                     int *__restrict__ indices, int S, int K)
{
    extern __shared__ __align__(16) uint2 chosen[];     // key and column: K + FEW
    __shared__ __align__(16) unsigned bins[BINS + 4];   // and a spare one for what is outside of the window
    __shared__ uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ uint4 found;                             // bin of the threshold, elements before it, elements in it
    __shared__ unsigned above, inside;

    const unsigned tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const float *row = values + size_t(blockIdx.x) * S;
    const auto columnOf = [tid](int e) { return int(4 * (tid + e / 4 * THREADS) + e % 4); };

    // All bits set become key 0: no element.
    unsigned key[COUNT];
    if (S % 4 == 0 && (reinterpret_cast<size_t>(row) & 15) == 0) {
#pragma unroll
        for (int v = 0; v < COUNT / 4; ++v) {
            uint4 four = make_uint4(ALL, ALL, ALL, ALL);
            if (columnOf(4 * v) < S)
                four = __ldcs(reinterpret_cast<const uint4 *>(row + columnOf(4 * v)));
            key[4 * v] = four.x;
            key[4 * v + 1] = four.y;
            key[4 * v + 2] = four.z;
            key[4 * v + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            key[e] = ALL;
            if (columnOf(e) < S)
                key[e] = __float_as_uint(row[columnOf(e)]);
        }
    }

    // While the row is under way.
    bins[tid] = 0;
    if (tid == 0) {
        bins[BINS] = FAR;
        found = make_uint4(0, 0, 0, 0);
    }

#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        key[e] = keyOf(key[e]);
    const unsigned most = max(max(max(key[0], key[1]), max(key[2], key[3])), max(max(key[4], key[5]), max(key[6], key[7])));
    const unsigned warpMost = __reduce_max_sync(ALL, most);
    const unsigned warpLeast = __reduce_min_sync(ALL, most);    // 0 where a thread has no element
    if (lane == 0)
        spans[warp] = make_uint2(warpLeast, warpMost);
    __syncthreads();
    const uint2 span = spans[lane % WARPS];
    const unsigned top = __reduce_max_sync(ALL, span.y);
    // A guess of a lower bound of the threshold; the counts tell whether it is one.
    const unsigned bound = 7 * K <= S ? __reduce_max_sync(ALL, span.x) : __reduce_min_sync(ALL, span.x);

    unsigned sure = 0, candidates = 0;      // the same in all threads
    bool done = false;
    // A bin is no wider than 1 << 23, so that key 0 is never within the window.
    if (__builtin_expect(bound >= 1u << 24, 1)) {
        const unsigned range = top - bound;
        const int shift = max(0, 32 - __clz(int(range)) - LOG);
        const unsigned last = range >> shift;           // below BINS
        const unsigned address = unsigned(__cvta_generic_to_shared(bins));
        unsigned bin[COUNT], place[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            bin[e] = min((top - key[e]) >> shift, last + 1);
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            place[e] = claim(address, bin[e], last);
        __syncthreads();

        // Sums of the bins, the largest keys first.
        const unsigned count = bins[tid];
        unsigned running = scan(count);
        if (lane == 31)
            totals[warp] = running;
        __syncthreads();
        const unsigned total = totals[lane % WARPS];
        running += __reduce_add_sync(ALL, lane < warp ? total : 0u) - count;
        bins[tid] = running;
        if (unsigned(K) - 1 - running < count)          // running < K <= running + count
            found = make_uint4(tid, running, count, 0);
        __syncthreads();

        const uint4 cut = found;
        const bool equal = shift == 0;                  // those of a bin are equal
        // No bin, and a count of 0, if the window holds fewer than K.
        if (__builtin_expect(cut.z != 0 && (equal || cut.z <= FEW), 1)) {
            const unsigned limit = equal ? unsigned(K) : cut.y + cut.z;
            sure = limit == unsigned(K) ? unsigned(K) : cut.y;
            candidates = limit - sure;
            // The bins beyond that of the threshold, the one behind the window included, begin at the limit or later.
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                place[e] += bins[bin[e]];
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                if (place[e] < limit)
                    chosen[place[e]] = make_uint2(key[e], columnOf(e));
            done = true;
        }
    }

    if (__builtin_expect(!done, 0)) {
        // The whole range of keys, narrowed down to the bin of the threshold, 9 bits a round.
        unsigned high = top, last = BINS - 1, need = K;
        int shift = 32 - LOG;
        uint4 cut;
        bool equal;
#pragma unroll 1
        while (true) {
            __syncthreads();
            bins[tid] = 0;
            if (tid == 0) {
                found = make_uint4(0, 0, 0, 0);
                above = 0;
                inside = 0;
            }
            __syncthreads();
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                if (key[e] != 0 && key[e] <= high) {
                    const unsigned bin = (high - key[e]) >> shift;
                    if (bin <= last)
                        atomicAdd(&bins[bin], 1u);
                }
            __syncthreads();
            const unsigned count = bins[tid];
            unsigned running = scan(count);
            if (lane == 31)
                totals[warp] = running;
            __syncthreads();
            const unsigned total = totals[lane % WARPS];
            running += __reduce_add_sync(ALL, lane < warp ? total : 0u) - count;
            if (need - 1 - running < count)
                found = make_uint4(tid, running, count, 0);
            __syncthreads();
            cut = found;
            need -= cut.y;
            high -= cut.x << shift;         // the largest key of the bin
            equal = shift == 0;
            if (equal || cut.z <= FEW || cut.z == need)
                break;
            last = (1u << min(shift, LOG)) - 1;
            shift = max(0, shift - LOG);
        }

        const unsigned before = unsigned(K) - need, wanted = equal ? need : cut.z, width = (1u << shift) - 1;
        const unsigned limit = before + wanted;
        sure = limit == unsigned(K) ? unsigned(K) : before;
        candidates = limit - sure;
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            unsigned place = FAR;
            if (key[e] > high)
                place = atomicAdd(&above, 1u);
            else if (key[e] != 0 && high - key[e] <= width)
                place = before + atomicAdd(&inside, 1u);
            if (place < limit)
                chosen[place] = make_uint2(key[e], columnOf(e));
        }
    }
    __syncthreads();

    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;
#pragma unroll 1
    for (unsigned i = tid; i < sure; i += THREADS) {
        const uint2 element = chosen[i];
        out[i] = valueOf(element.x);
        position[i] = int(element.y);
    }

    // The bin of the threshold: a warp ranks one of its elements at a time, by votes.
    const unsigned missing = unsigned(K) - sure;
#pragma unroll 1
    for (unsigned i = warp; i < candidates; i += WARPS) {
        const uint2 element = chosen[sure + i];
        unsigned rank = 0;
#pragma unroll 1
        for (unsigned begin = 0; begin < candidates; begin += 32) {
            const unsigned j = begin + lane;
            const unsigned other = j < candidates ? chosen[sure + j].x : 0u;
            rank += __popc(__ballot_sync(ALL, other > element.x || (other == element.x && j < i)));
        }
        if (lane == 0 && rank < missing) {
            out[sure + rank] = valueOf(element.x);
            position[sure + rank] = int(element.y);
        }
    }
}

// Rows of any length, read again in each pass: the K-th largest key digit by digit.
extern "C" __global__ void __launch_bounds__(1024) topk_passes(const float *__restrict__ values,
                                                               float *__restrict__ topValues,
                                                               int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned bins[256];      // the largest digit first
    __shared__ uint4 found;
    __shared__ unsigned above, inside;

    const unsigned tid = threadIdx.x, lane = tid % 32;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;

    if (tid == 0) {
        above = 0;
        inside = 0;
        found = make_uint4(0, 0, 0, 0);
    }
    unsigned threshold = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < 256)
            bins[tid] = 0;
        __syncthreads();
        for (int column = tid; column < S; column += 1024) {
            const unsigned key = keyOf(__float_as_uint(row[column]));
            if (shift == 24 || (key ^ threshold) >> (shift + 8) == 0)
                atomicAdd(&bins[255 - (key >> shift & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b)
                sum += bins[8 * lane + b];
            unsigned running = scan(sum) - sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                const unsigned count = bins[8 * lane + b];
                if (running < need && need <= running + count)
                    found = make_uint4(8 * lane + b, running, count, 0);
                running += count;
            }
        }
        __syncthreads();
        const uint4 cut = found;
        threshold |= (255 - cut.x) << shift;
        need -= cut.y;
    }

    // What is larger is taken; of the equal ones as many as are missing.
    for (int column = tid; column < S; column += 1024) {
        const unsigned key = keyOf(__float_as_uint(row[column]));
        unsigned place = FAR;
        if (key > threshold) {
            place = atomicAdd(&above, 1u);
        } else if (key == threshold) {
            const unsigned number = atomicAdd(&inside, 1u);
            if (number < need)
                place = unsigned(K) - need + number;
        }
        if (place < unsigned(K)) {
            out[place] = valueOf(key);
            position[place] = column;
        }
    }
}
