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

constexpr int THREADS = 512;        // of a row in registers
constexpr int WARPS = THREADS / 32;
constexpr int LONG_THREADS = 1024;  // of a row of any length
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;      // two a thread
constexpr int FEW = 64;             // elements of the last bin that need no further window
constexpr int NEAR = 4;             // pairs of neighbours on either side that are always looked at
constexpr int FRONT = 2 * NEAR;     // keys before the first place
constexpr int BACK = 2 * NEAR + 4;  // and after the last
constexpr int PLACES = 4096 + FEW;
constexpr int KEYS = FRONT + PLACES + BACK;
constexpr int TO_COLUMN = 4 * (KEYS - FRONT); // bytes from the key of a place to its column
constexpr unsigned ALL = 0xffffffff;

static_assert(BINS == 2 * THREADS, "two bins a thread");

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

// Puts an element at its place, if that is below the limit. No branch here either.
__device__ void put(unsigned places, unsigned number, unsigned limit, unsigned key, unsigned column)
{
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.lt.u32 inside, %1, %2;\n"
                 "@inside st.shared.u32 [%0], %3;\n"
                 "@inside st.shared.u32 [%0+%5], %4;\n"
                 "}"
                 :
                 : "r"(places + 4 * number), "r"(number), "r"(limit), "r"(key), "r"(column), "n"(TO_COLUMN)
                 : "memory");
}

// One more, if a is larger than b.
__device__ void countLarger(int &count, unsigned a, unsigned b)
{
    asm("{\n"
        ".reg .pred larger;\n"
        "setp.gt.u32 larger, %1, %2;\n"
        "@larger add.s32 %0, %0, 1;\n"
        "}"
        : "+r"(count)
        : "r"(a), "r"(b));
}

// A pair of elements against a pair before it and a pair after it.
__device__ void compare(uint2 mine, uint2 before, uint2 after, int (&up)[2], int (&down)[2])
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
__device__ void merge(unsigned &most, unsigned &second, unsigned larger, unsigned smaller)
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
    unsigned bins[BINS + 4]; // the one after the last begins past all places
    unsigned keys[KEYS];
    unsigned columns[PLACES]; // follows the keys
    uint2 spans[WARPS];
    unsigned totals[WARPS];
    Cut found;
    unsigned largest; // bin above that of the K-th largest, if it is larger than what is always looked at
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ Row row;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u, warp = tid / 32;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;

    // Two times four columns, 128 apart. What lies past the end keeps the bits of key 0.
    const int column = 256 * warp + 4 * lane;
    float value[8];
#pragma unroll
    for (int e = 0; e < 8; ++e)
        value[e] = __uint_as_float(0xffffffff);
    if (S % 4 == 0) {
#pragma unroll
        for (int h = 0; h < 2; ++h)
            if (column + 128 * h < S) {
                const float4 four = *reinterpret_cast<const float4 *>(values + column + 128 * h);
                value[4 * h] = four.x;
                value[4 * h + 1] = four.y;
                value[4 * h + 2] = four.z;
                value[4 * h + 3] = four.w;
            }
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            if (column + 128 * (e / 4) + e % 4 < S)
                value[e] = values[column + 128 * (e / 4) + e % 4];
    }
    uint2 *const binPairs = reinterpret_cast<uint2 *>(row.bins);
    binPairs[tid] = make_uint2(0, 0);
    if (tid < FRONT)
        row.keys[tid] = ALL;
    if (tid == 0) {
        row.bins[BINS] = 1u << 16;
        row.largest = 0;
    }
    unsigned key[8];
#pragma unroll
    for (int e = 0; e < 8; ++e)
        key[e] = keyOf(value[e]);

    // The largest key, and a lower bound of the K-th largest: the least of the second largest of groups of 16 elements,
    // if there are half as many groups, otherwise the least key.
    unsigned most = max(key[0], key[1]), second = min(key[0], key[1]);
#pragma unroll
    for (int e = 2; e < 8; e += 2)
        merge(most, second, max(key[e], key[e + 1]), min(key[e], key[e + 1]));
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
    unsigned range = top - __reduce_min_sync(ALL, span.x);
    int shift = max(0, 32 - __clz(range) - LOG);
    unsigned last = range >> shift; // bin
    unsigned first = 0, need = K; // places that are filled, and that are not

    unsigned filled;  // places
    unsigned settled; // places of those that are surely among the K largest, or equal to the K-th
    while (true) {
        unsigned number[8];
#pragma unroll
        for (int e = 0; e < 8; ++e)
            number[e] = claim(row.bins, (top - key[e]) >> shift, last);
        __syncthreads();

        // How many lie in the bins above each; those of the largest elements come first.
        const uint2 count = binPairs[tid];
        const unsigned sum = count.x + count.y;
        unsigned running = sum;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const unsigned other = __shfl_up_sync(ALL, running, step);
            running += lane >= step ? other : 0;
        }
        if (lane == 31)
            row.totals[warp] = running;
        __syncthreads();
        const unsigned total = row.totals[lane % WARPS];
        running += __reduce_add_sync(ALL, lane < warp ? total : 0) - sum;
        const unsigned middle = running + count.x, end = running + sum;
        binPairs[tid] = make_uint2(running, middle);
        if (running < need && need <= end) {
            if (need <= middle)
                row.found = {2u * tid, running, count.x};
            else
                row.found = {2u * tid + 1, middle, count.y};
        }
        // The largest of the bins above that one. Those of equal elements are in order.
        const unsigned size = max(middle < need ? count.x : 0u, end < need ? count.y : 0u);
        if (shift != 0 && size > 2 * NEAR + 1)
            atomicMax(&row.largest, size);
        __syncthreads();

        // Places by bin of all down to the bin of the K-th largest: of that one as many as are needed when they are equal,
        // otherwise all when they are few. The bin after it begins past the limit, and so stands for all that follow.
        const Cut cut = row.found;
        const bool few = shift == 0 || cut.count <= FEW;
        const unsigned limit = shift == 0 ? need : few ? cut.before + cut.count : cut.before;
        const unsigned after = cut.bin + 1;
#pragma unroll
        for (int e = 0; e < 8; ++e)
            number[e] += row.bins[min((top - key[e]) >> shift, after)];
        const unsigned places = unsigned(__cvta_generic_to_shared(row.keys)) + 4 * (FRONT + first);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            put(places, number[e], limit, key[e], unsigned(column + 128 * (e / 4) + e % 4));
        filled = first + limit;
        if (tid < 2 * NEAR + 2)
            row.keys[FRONT + filled + tid] = 0; // below all
        __syncthreads();
        first += cut.before;
        need -= cut.before;
        settled = shift == 0 ? filled : first;
        if (few)
            break;

        // Once more in the window of that bin.
        top -= cut.bin << shift;
        last = (1u << min(shift, LOG)) - 1;
        shift = max(0, shift - LOG);
        binPairs[tid] = make_uint2(0, 0);
        __syncthreads();
    }

    // Each goes up past the smaller ones before it, and down past the larger ones after it. Two places a thread.
    const uint2 *const pairs = reinterpret_cast<const uint2 *>(row.keys + FRONT);
    const uint2 *const columnPairs = reinterpret_cast<const uint2 *>(row.columns);
    const int ranked = int(settled);
    const int reach = int(row.largest / 2);  // pairs
    const int beyond = (ranked + 1) / 2;     // a pair that is below all that are ranked here
    for (int pair = tid; 2 * pair < ranked; pair += THREADS) {
        const uint2 mine = pairs[pair];
        uint2 before[NEAR], behind[NEAR];
#pragma unroll
        for (int p = 0; p < NEAR; ++p) {
            before[p] = pairs[pair - 1 - p];
            behind[p] = pairs[pair + 1 + p];
        }
        const uint2 where = columnPairs[pair];
        int up[2] = {0, 0}, down[2] = {0, 0};
        countLarger(down[0], mine.y, mine.x);
        countLarger(up[1], mine.y, mine.x);
#pragma unroll
        for (int p = 0; p < NEAR; ++p)
            compare(mine, before[p], behind[p], up, down);
        for (int p = NEAR + 1; p <= reach; ++p)
            compare(mine, pairs[max(pair - p, -1)], pairs[min(pair + p, beyond)], up, down);
        const int place = 2 * pair + down[0] - up[0];
        topValues[place] = valueOf(mine.x);
        indices[place] = int(where.x);
        if (2 * pair + 1 < ranked) {
            const int next = 2 * pair + 1 + down[1] - up[1];
            topValues[next] = valueOf(mine.y);
            indices[next] = int(where.y);
        }
    }

    // The last bin, an element a warp, from the last warp on: those have the fewest pairs. The lanes vote on which of the
    // bin come before it.
    const unsigned rest = filled - settled;
    const unsigned *const lastKeys = row.keys + FRONT + settled;
    for (unsigned n = WARPS - 1 - warp; n < rest; n += WARPS) {
        const unsigned mine = lastKeys[n];
        unsigned place = settled;
#pragma unroll
        for (unsigned b = 0; b < FEW; b += 32) {
            const unsigned j = b + lane;
            const unsigned other = j < rest ? lastKeys[j] : 0u;
            place += __popc(__ballot_sync(ALL, other > mine - (j < n ? 1u : 0u)));
        }
        if (lane == 0 && place < unsigned(K)) {
            topValues[place] = valueOf(mine);
            indices[place] = int(row.columns[settled + n]);
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
