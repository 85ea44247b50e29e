/*klineage
surface = "cuda"

[[launch]]
kernel = "topkRow"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
shared = "8 * (K + 64)"
when = "S % 4 == 0 && S <= 4096"

[[launch]]
kernel = "topkAny"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
when = "S % 4 != 0 || S > 4096"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// topkRow: rows of at most 4096 elements, a multiple of 4. A block keeps its row in registers, counts the elements of a
// window from a guaranteed bound to the maximum in bins, and places them by what the counting atomics return.
// topkAny: all other rows, by digits of 8 bits.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int COUNT = 8;                    // elements a thread
constexpr int LOG = 10;
constexpr int BINS = 1 << LOG;              // two a thread
constexpr unsigned FEW = 64;                // elements of the threshold's bin that are ranked directly
constexpr unsigned FAR = 1u << 30;          // a place that is never filled
constexpr unsigned ALL = 0xffffffffu;

static_assert(BINS == 2 * THREADS && COUNT == 8, "two bins a thread, two vectors a thread");

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(unsigned bits)
{
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(~int(key) >> 31) | 0x80000000u));
}

// The larger number, whatever the compilation does to subnormal numbers; a NaN only when both are.
__device__ __forceinline__ float larger(float a, float b)
{
    float result;
    asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

__device__ __forceinline__ float reciprocal(float a)
{
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}

// Counts one more at an address in shared memory, and returns how many were there.
__device__ __forceinline__ unsigned bump(unsigned address)
{
    unsigned old;
    asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(old) : "r"(address) : "memory");
    return old;
}

__device__ __forceinline__ unsigned peek(unsigned address)
{
    unsigned value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
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

extern "C" __global__ void __launch_bounds__(512, 1)
topkRow(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    extern __shared__ __align__(16) uint2 chosen[];     // bits and column: K + FEW
    __shared__ __align__(16) unsigned bins[BINS + 32];  // the last 32 take what is outside of the window
    __shared__ __align__(16) uint4 found;               // bin, elements before it, elements in it
    __shared__ __align__(16) uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];

    const unsigned tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int vectors = S >> 2;
    const uint4 *row = reinterpret_cast<const uint4 *>(values + size_t(blockIdx.x) * S) + tid;

    // All bits set stand for no element: a NaN with the least key.
    uint4 low = make_uint4(ALL, ALL, ALL, ALL), high = make_uint4(ALL, ALL, ALL, ALL);
    if (int(tid) < vectors)
        low = __ldcs(row);
    if (int(tid) + THREADS < vectors)
        high = __ldcs(row + THREADS);

    reinterpret_cast<uint2 *>(bins)[tid] = make_uint2(0, 0);
    if (tid < 32)
        bins[BINS + tid] = FAR;

    const unsigned bits[COUNT] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};

    // The least maximum of K or more disjoint groups, those of the threads, is no more than the K-th largest.
    unsigned most = 0, least = ALL;
    if (K <= min(vectors, THREADS)) {
        const float a = larger(__uint_as_float(bits[0]), __uint_as_float(bits[1]));
        const float b = larger(__uint_as_float(bits[2]), __uint_as_float(bits[3]));
        const float c = larger(__uint_as_float(bits[4]), __uint_as_float(bits[5]));
        const float d = larger(__uint_as_float(bits[6]), __uint_as_float(bits[7]));
        const float all = larger(larger(a, b), larger(c, d));
        if (int(tid) < vectors)
            most = least = keyOf(__float_as_uint(all));
    } else {
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (int(tid) + e / 4 * THREADS < vectors) {
                const unsigned key = keyOf(bits[e]);
                most = max(most, key);
                least = min(least, key);
            }
    }
    most = __reduce_max_sync(ALL, most);
    least = __reduce_min_sync(ALL, least);
    if (lane == 0)
        spans[warp] = make_uint2(most, least);
    __syncthreads();
    const uint2 span = spans[lane % WARPS];
    unsigned top = __reduce_max_sync(ALL, span.x);
    unsigned bottom = __reduce_min_sync(ALL, span.y);

    // The first window is linear in the value where that is finite and not tiny, all others in the key.
    const float topValue = valueOf(top);
    const float range = __fsub_rn(topValue, valueOf(bottom));
    bool linear = range >= 1e-30f && range <= 1e30f;

    const unsigned base = unsigned(__cvta_generic_to_shared(bins));
    const unsigned spare = BINS + lane;
    unsigned at[COUNT];                     // the address of the element's bin
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        at[e] = 0;
    unsigned cutAt = 0;                     // the elements whose bin this was are those of the window
    unsigned first = 0, need = K;           // placed for sure, and still to be found
    unsigned sure, count;

#pragma unroll 1
    while (true) {
        bool exact = false;                 // a bin holds equal elements only
        if (linear) {
            // The bin is in the lowest bits of 2^23 + bin. Each step is monotone, and what is not in the window or no
            // number has larger bits.
            const float scale = 1000.0f * reciprocal(range);
#pragma unroll
            for (int e = 0; e < COUNT; ++e) {
                const float down = __fsub_rn(topValue, __uint_as_float(bits[e]));
                const unsigned slot = min(__float_as_uint(__fmaf_rn(down, scale, 8388608.0f)), 0x4b000000u + spare);
                at[e] = (slot << 2) + (base - 0x2c000000u);
            }
            linear = false;
        } else {
            const int shift = max(0, 32 - __clz(int(top - bottom)) - LOG);
            exact = shift == 0;
#pragma unroll
            for (int e = 0; e < COUNT; ++e) {
                const unsigned bin = min((top - keyOf(bits[e])) >> shift, spare);
                at[e] = base + 4 * (at[e] == cutAt ? bin : spare);
            }
        }

        unsigned place[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            place[e] = bump(at[e]);
        __syncthreads();

        // Where each bin begins, the largest elements first.
        const uint2 inside = reinterpret_cast<const uint2 *>(bins)[tid];
        const unsigned sum = inside.x + inside.y;
        const unsigned upTo = scan(sum);
        if (lane == 31)
            totals[warp] = upTo;
        __syncthreads();
        const unsigned total = totals[lane % WARPS];
        const unsigned running = __reduce_add_sync(ALL, lane < warp ? total : 0u) + upTo - sum;
        const unsigned next = running + inside.x;
        if (need - 1 - running < inside.x)  // running < need <= running + inside.x
            found = make_uint4(2 * tid, running, inside.x, 0);
        if (need - 1 - next < inside.y)
            found = make_uint4(2 * tid + 1, next, inside.y, 0);
        reinterpret_cast<uint2 *>(bins)[tid] = make_uint2(running, next);
        __syncthreads();

        const uint4 cut = found;
        const bool settled = exact || cut.y + cut.z == need;
        const bool few = cut.z <= FEW;
        const unsigned limit = settled ? need : few ? cut.y + cut.z : cut.y;
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            place[e] += peek(at[e]);
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (place[e] < limit)
                chosen[first + place[e]] = make_uint2(bits[e], 4 * (tid + e / 4 * THREADS) + e % 4);
        __syncthreads();

        if (settled) {
            sure = K;
            count = 0;
            break;
        }
        first += cut.y;
        need -= cut.y;
        if (few) {
            sure = first;
            count = cut.z;
            break;
        }

        // Seldom: once more, with the elements of that bin as the window.
        cutAt = base + 4 * cut.x;
        most = 0;
        least = ALL;
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            if (at[e] == cutAt) {
                const unsigned key = keyOf(bits[e]);
                most = max(most, key);
                least = min(least, key);
            }
        most = __reduce_max_sync(ALL, most);
        least = __reduce_min_sync(ALL, least);
        if (lane == 0)
            spans[warp] = make_uint2(most, least);
        reinterpret_cast<uint2 *>(bins)[tid] = make_uint2(0, 0);
        __syncthreads();
        const uint2 again = spans[lane % WARPS];
        top = __reduce_max_sync(ALL, again.x);
        bottom = __reduce_min_sync(ALL, again.y);
    }

    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;
#pragma unroll 1
    for (unsigned i = tid; i < sure; i += THREADS) {
        const uint2 element = chosen[i];
        out[i] = __uint_as_float(element.x);
        position[i] = int(element.y);
    }

    // A warp ranks one element of the threshold's bin at a time.
#pragma unroll 1
    for (unsigned i = warp; i < count; i += WARPS) {
        const uint2 element = chosen[sure + i];
        const unsigned key = keyOf(element.x);
        unsigned rank = 0;
#pragma unroll 1
        for (unsigned begin = 0; begin < count; begin += 32) {
            const unsigned j = begin + lane;
            const unsigned other = j < count ? keyOf(chosen[sure + j].x) : 0u;
            rank += __popc(__ballot_sync(ALL, other > key || (other == key && j < i)));
        }
        if (lane == 0 && rank < need) {
            out[sure + rank] = __uint_as_float(element.x);
            position[sure + rank] = int(element.y);
        }
    }
}

extern "C" __global__ void __launch_bounds__(512)
topkAny(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned bins[256];
    __shared__ unsigned cutBin, cutBefore, above, ties;

    const unsigned tid = threadIdx.x, lane = tid & 31;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;
    if (tid == 0)
        above = ties = 0;

    unsigned threshold = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < 256)
            bins[tid] = 0;
        __syncthreads();
        for (int column = int(tid); column < S; column += THREADS) {
            const unsigned key = keyOf(__float_as_uint(row[column]));
            if (shift == 24 || ((key ^ threshold) >> (shift + 8)) == 0)
                atomicAdd(&bins[255 - ((key >> shift) & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned inside[8], sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                inside[b] = bins[8 * lane + b];
                sum += inside[b];
            }
            unsigned running = scan(sum) - sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                if (running < need && need <= running + inside[b]) {
                    cutBin = 8 * lane + b;
                    cutBefore = running;
                }
                running += inside[b];
            }
        }
        __syncthreads();
        threshold |= (255 - cutBin) << shift;
        need -= cutBefore;
    }

    // All larger than the threshold, and as many equal ones as are missing.
    const unsigned larges = unsigned(K) - need;
    for (int column = int(tid); column < S; column += THREADS) {
        const unsigned bits = __float_as_uint(row[column]);
        const unsigned key = keyOf(bits);
        unsigned place = ALL;
        if (key > threshold)
            place = atomicAdd(&above, 1u);
        else if (key == threshold)
            place = larges + atomicAdd(&ties, 1u);
        if (place < unsigned(K)) {
            out[place] = __uint_as_float(bits);
            position[place] = column;
        }
    }
}
