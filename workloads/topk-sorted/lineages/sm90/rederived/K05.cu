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
block = ["512"]
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
// One block a row, which stays in registers: eight keys a thread, read once. Every group of 16 elements has a second
// largest, and there are at least K / 2 groups: so the least of these is no more than the K-th largest element. The
// window from there to the row's maximum is cut into bins, and the bins are counted. What the counting atomic returns is
// an element's number in its bin, so that the sums over the bins above give its place without another atomic. What is
// chosen is put there in shared memory: the bins are in order then, and an element has only to be compared with its
// neighbours, as far as the largest bin reaches: those of other bins are on the right side already, and change nothing.
// The bin that the K-th largest lies in is ranked by votes, a warp an element. When it holds many, it is the next window.
// What lies outside the window counts in spare bins, which begin past all places.

constexpr int THREADS = 512;        // of a row in registers
constexpr int WARPS = THREADS / 32;
constexpr int LONG_THREADS = 1024;  // of a row of any length
constexpr int APART = 4 * THREADS;  // columns from a thread's first four elements to its other four
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;      // two a thread
constexpr int SPARE = 4 + 32;       // bins after the last: begin past all places, a bin a lane
constexpr unsigned FAR = 1u << 24;  // where they begin
constexpr int FEW = 64;             // elements of the last bin that need no further window
constexpr int NEAR = 4;             // pairs of neighbours on either side that are always looked at
constexpr int FRONT = 2 * NEAR;     // keys before the first place
constexpr int BACK = 2 * NEAR + 4;  // and after the last
constexpr int PLACES = 4096 + FEW;
constexpr int KEYS = FRONT + PLACES + BACK;
constexpr int TO_COLUMN = 4 * (KEYS - FRONT); // bytes from the key of a place to its column
constexpr unsigned ALL = 0xffffffff;
constexpr float ZERO = 8388608.0f;  // of counts that are kept as floats: the bits of one more are one more

static_assert(BINS == 2 * THREADS, "two bins a thread");
static_assert(KEYS % 4 == 0 && FRONT % 4 == 0, "pairs are aligned");

// The order of floats as that of unsigned integers. 0 is below all of them, and stands for no element.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(~int(key) >> 31) | 0x80000000u));
}

// Four elements, if their column is before the end. A predicate, so that all loads of a thread are under way together.
__device__ __forceinline__ void loadFour(unsigned &a, unsigned &b, unsigned &c, unsigned &d, const float *from, int column,
    int end)
{
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.lt.s32 inside, %5, %6;\n"
                 "@inside ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 "}"
                 : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
                 : "l"(from), "r"(column), "r"(end));
}

// Counts one more in the bin, in bytes of a key, and returns how many there were.
__device__ __forceinline__ unsigned claim(unsigned bin)
{
    unsigned room;
    asm volatile("atom.shared.add.u32 %0, [%1], 4;" : "=r"(room) : "r"(bin) : "memory");
    return room;
}

__device__ __forceinline__ unsigned loadShared(unsigned address)
{
    unsigned value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

__device__ __forceinline__ void storeShared(unsigned address, unsigned value)
{
    asm volatile("st.shared.u32 [%0], %1;" : : "r"(address), "r"(value) : "memory");
}

// Puts an element at its place, if that is below the limit. No branch here either.
__device__ __forceinline__ void put(unsigned place, unsigned limit, unsigned key, unsigned column)
{
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.lt.u32 inside, %0, %1;\n"
                 "@inside st.shared.u32 [%0], %2;\n"
                 "@inside st.shared.u32 [%0+%4], %3;\n"
                 "}"
                 :
                 : "r"(place), "r"(limit), "r"(key), "r"(column), "n"(TO_COLUMN)
                 : "memory");
}

// A step of the sums over a warp's lanes.
__device__ __forceinline__ void addFrom(unsigned &running, unsigned step)
{
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 ".reg .u32 other;\n"
                 "shfl.sync.up.b32 other|inside, %0, %1, 0, 0xffffffff;\n"
                 "@inside add.u32 %0, %0, other;\n"
                 "}"
                 : "+r"(running)
                 : "r"(step));
}

// One more, if a is larger than b.
__device__ __forceinline__ void countLarger(float &count, unsigned a, unsigned b)
{
    asm("{\n"
        ".reg .pred larger;\n"
        "setp.gt.u32 larger, %1, %2;\n"
        "@larger add.f32 %0, %0, 0f3F800000;\n"
        "}"
        : "+f"(count)
        : "r"(a), "r"(b));
}

// A pair of elements against a pair before it and a pair after it.
__device__ __forceinline__ void compare(uint2 mine, uint2 before, uint2 after, float (&up)[2], float (&down)[2])
{
    countLarger(up[0], mine.x, before.x);
    countLarger(up[1], mine.y, before.x);
    countLarger(down[0], after.x, mine.x);
    countLarger(down[1], after.x, mine.y);
    countLarger(up[0], mine.x, before.y);
    countLarger(up[1], mine.y, before.y);
    countLarger(down[0], after.y, mine.x);
    countLarger(down[1], after.y, mine.y);
}

// The two largest of two sets, of which the two largest are given.
__device__ __forceinline__ void merge(unsigned &most, unsigned &second, unsigned larger, unsigned smaller)
{
    second = max(min(most, larger), max(second, smaller));
    most = max(most, larger);
}

struct Cut {
    unsigned bin;    // in which the K-th largest lies
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

struct alignas(16) Row {
    unsigned bins[BINS];
    unsigned spare[SPARE];    // follow the bins
    unsigned keys[KEYS];
    unsigned columns[PLACES]; // follow the keys
    uint4 found;              // address of the bin after the last, limit of places, bytes before the last, whether it is few
    uint2 spans[WARPS];
    unsigned totals[WARPS];
    unsigned largest; // bin above the last, in bytes, if it is larger than what is always looked at
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ Row row;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u, warp = tid / 32;
    values += size_t(blockIdx.x) * S;

    // Two times four columns. What lies past the end keeps the bits of key 0.
    const int column = 4 * tid;
    const int whole = S % 4 == 0 ? S : 0; // where vectors end
    unsigned bits[8];
#pragma unroll
    for (int e = 0; e < 8; ++e)
        bits[e] = ALL;
    loadFour(bits[0], bits[1], bits[2], bits[3], values + column, column, whole);
    loadFour(bits[4], bits[5], bits[6], bits[7], values + column + APART, column + APART, whole);

    // While they are under way.
    uint2 *const binPairs = reinterpret_cast<uint2 *>(row.bins);
    binPairs[tid] = make_uint2(0, 0);
    if (tid < SPARE)
        row.spare[tid] = FAR;
    if (tid < FRONT)
        row.keys[tid] = ALL;
    if (tid == 0)
        row.largest = 0;
    unsigned where[8];
#pragma unroll
    for (int e = 0; e < 8; ++e)
        asm volatile("add.u32 %0, %1, %2;" : "=r"(where[e]) : "r"(column), "r"(APART * (e / 4) + e % 4));
    const unsigned binsAt = unsigned(__cvta_generic_to_shared(row.bins));
    const unsigned keysAt = unsigned(__cvta_generic_to_shared(row.keys + FRONT)); // of the first place
    const unsigned spare = BINS + 4 + lane;

    if (whole == 0) {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int from = column + APART * (e / 4) + e % 4;
            if (from < S)
                bits[e] = __float_as_uint(values[from]);
        }
    }
    unsigned key[8];
#pragma unroll
    for (int e = 0; e < 8; ++e)
        key[e] = keyOf(__uint_as_float(bits[e]));

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16 elements,
    // if there are half as many groups, otherwise the least key.
    unsigned most = max(key[0], key[1]), second = min(key[0], key[1]);
    merge(most, second, max(key[2], key[3]), min(key[2], key[3]));
    {
        unsigned larger = max(key[4], key[5]), smaller = min(key[4], key[5]);
        merge(larger, smaller, max(key[6], key[7]), min(key[6], key[7]));
        merge(most, second, larger, smaller);
    }
    {
        const unsigned larger = __shfl_xor_sync(ALL, most, 1), smaller = __shfl_xor_sync(ALL, second, 1);
        merge(most, second, larger, smaller);
    }
    unsigned least = second == 0 ? ALL : second; // a group of fewer than two has no say
    if (K > 2 * ((S + 14) / 16)) {
        least = ALL;
#pragma unroll
        for (int e = 0; e < 8; ++e)
            least = min(least, key[e] - 1); // what lies past the end becomes the largest
        least += least != ALL;
    }
    least = __reduce_min_sync(ALL, least);
    most = __reduce_max_sync(ALL, most);
    if (lane == 0)
        row.spans[warp] = make_uint2(least, most);
    __syncthreads();
    const uint2 span = row.spans[lane % WARPS];
    unsigned top = __reduce_max_sync(ALL, span.y);
    const unsigned range = top - __reduce_min_sync(ALL, span.x);
    int shift = max(0, 32 - __clz(range) - LOG);

    // Places are addresses of keys, and counts are in bytes of these.
    unsigned places = keysAt, need = 4 * K; // the first that is not filled, and how many are not
    unsigned filled, settled;               // end of places; and of those that are surely among the K largest, or equal to the K-th
    while (true) {
        unsigned bin[8], place[8];
#pragma unroll
        for (int e = 0; e < 8; ++e)
            bin[e] = binsAt + 4 * min((top - key[e]) >> shift, spare);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            place[e] = claim(bin[e]);
        __syncthreads();

        // How many lie in the bins above each; those of the largest elements come first.
        const uint2 count = binPairs[tid];
        const unsigned sum = count.x + count.y;
        const unsigned total = __reduce_add_sync(ALL, sum);
        if (lane == 0)
            row.totals[warp] = total;
        __syncthreads();
        const unsigned other = row.totals[lane % WARPS];
        unsigned running = sum;
#pragma unroll
        for (unsigned step = 1; step < 32; step *= 2)
            addFrom(running, step);
        running += __reduce_add_sync(ALL, lane < warp ? other : 0u) - sum;
        const unsigned middle = running + count.x, end = middle + count.y;
        binPairs[tid] = make_uint2(places + running, places + middle);

        // Down to the bin of the K-th largest all get places: of that one as many as are needed when they are equal,
        // otherwise all when they are few.
        if (running < need && need <= end) {
            const bool inner = need > middle;
            const unsigned before = inner ? middle : running, size = inner ? count.y : count.x;
            const bool few = shift == 0 || size <= 4 * FEW;
            const unsigned limit = shift == 0 ? need : few ? before + size : before;
            row.found = make_uint4(binsAt + 4 * (2 * tid + (inner ? 2 : 1)), places + limit, before, few ? 1u : 0u);
        }
        // The largest of the bins above that one. Those of equal elements are in order.
        if (max(count.x, count.y) > 4 * (2 * NEAR + 1) && shift != 0) {
            const unsigned size = max(middle < need ? count.x : 0u, end < need ? count.y : 0u);
            if (size > 4 * (2 * NEAR + 1))
                atomicMax(&row.largest, size);
        }
        __syncthreads();

        // The bin after the last begins past the limit, and so stands for all that follow.
        const uint4 found = row.found;
#pragma unroll
        for (int e = 0; e < 8; ++e)
            place[e] += loadShared(min(bin[e], found.x));
#pragma unroll
        for (int e = 0; e < 8; ++e)
            put(place[e], found.y, key[e], where[e]);
        if (tid < BACK)
            storeShared(found.y + 4 * tid, 0); // below all
        __syncthreads();
        filled = found.y;
        settled = shift == 0 ? found.y : places + found.z;
        if (found.w != 0)
            break;

        // Once more in the window of that bin.
        places += found.z;
        need -= found.z;
        top -= ((found.x - binsAt) / 4 - 1) << shift;
        shift = max(0, shift - LOG);
        binPairs[tid] = make_uint2(0, 0);
        __syncthreads();
    }

    // Each goes up past the smaller ones before it, and down past the larger ones after it. Two places a thread.
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    const uint2 *const pairs = reinterpret_cast<const uint2 *>(row.keys + FRONT);
    const uint2 *const columnPairs = reinterpret_cast<const uint2 *>(row.columns);
    const int ranked = int(settled - keysAt) / 4;
    const int reach = int(row.largest / 8); // pairs
    const int beyond = (ranked + 1) / 2;    // a pair that is below all that are ranked here, as is the next
    for (int pair = tid; 2 * pair < ranked; pair += THREADS) {
        const uint2 mine = pairs[pair];
        uint2 before[NEAR], behind[NEAR];
#pragma unroll
        for (int p = 0; p < NEAR; ++p) {
            before[p] = pairs[pair - 1 - p];
            behind[p] = pairs[pair + 1 + p];
        }
        const uint2 at = columnPairs[pair];
        float up[2] = {ZERO, ZERO}, down[2] = {ZERO, ZERO};
        countLarger(down[0], mine.y, mine.x);
        countLarger(up[1], mine.y, mine.x);
#pragma unroll
        for (int p = 0; p < NEAR; ++p)
            compare(mine, before[p], behind[p], up, down);
#pragma unroll 1
        for (int p = NEAR + 1; p <= reach; p += 2) {
            const uint2 *const lower = pairs + max(pair - p - 1, -2);
            const uint2 *const upper = pairs + min(pair + p, beyond);
            const uint2 before0 = lower[1], before1 = lower[0], behind0 = upper[0], behind1 = upper[1];
            compare(mine, before0, behind0, up, down);
            compare(mine, before1, behind1, up, down);
        }
        const unsigned place = 2 * pair + (__float_as_uint(down[0]) - __float_as_uint(up[0]));
        topValues[place] = valueOf(mine.x);
        indices[place] = int(at.x);
        if (2 * pair + 1 < ranked) {
            const unsigned next = 2 * pair + 1 + (__float_as_uint(down[1]) - __float_as_uint(up[1]));
            topValues[next] = valueOf(mine.y);
            indices[next] = int(at.y);
        }
    }

    // The last bin, an element a warp, from the last warp on: by those that have no pairs, if half have none. The lanes
    // vote on which of the bin come before it.
    const unsigned rest = (filled - settled) / 4;
    const unsigned voters = ranked <= 64 * (WARPS / 2) ? WARPS / 2 : WARPS;
    const unsigned own = WARPS - 1 - warp;
    if (own < voters) {
        const unsigned *const lastKeys = row.keys + FRONT + ranked;
#pragma unroll 1
        for (unsigned n = own; n < rest; n += voters) {
            const unsigned mine = lastKeys[n];
            unsigned place = ranked;
#pragma unroll 1
            for (unsigned b = 0; b < rest; b += 32) {
                const unsigned j = b + lane;
                const unsigned other = j < rest ? lastKeys[j] : 0u;
                place += __popc(__ballot_sync(ALL, other > mine - (j < n ? 1u : 0u)));
            }
            if (lane == 0 && place < unsigned(K)) {
                topValues[place] = valueOf(mine);
                indices[place] = int(row.columns[ranked + n]);
            }
        }
    }
}

// Rows of any length: a pass over the row a digit. What is chosen is in no order yet.
extern "C" __global__ __launch_bounds__(LONG_THREADS) void topk_any(const float *__restrict__ values,
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
        for (int column = tid; column < S; column += LONG_THREADS) {
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

    for (int column = tid; column < S; column += LONG_THREADS) {
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
