/*klineage
surface = "cuda"

[[launch]]
kernel = "topk_registers"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
when = "S % 4 == 0 && S <= 4096 && K <= 512 && 4 * K <= S"

[[launch]]
kernel = "topk_digits"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
when = "S % 4 != 0 || S > 4096 || K > 512 || 4 * K > S"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// topk_registers: a block a row, the row in registers. A histogram with linear bins between an estimate of a lower bound
// and the maximum finds the bin of the K-th largest; its counting atomics and its scan also give the places. Only the
// elements of that one bin are ranked. If the bin holds too many, or the estimate was too high, the digits decide.
// topk_digits: the K-th largest key exactly, by four digits of 8 bits, for any row.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int COUNT = 8;                        // elements a thread
constexpr int BINS = THREADS;                   // one a thread
constexpr unsigned FEW = 64;                    // elements of the threshold's bin that are ranked directly
constexpr unsigned FAR_AWAY = 1u << 30;         // a place that is never filled
constexpr unsigned ALL = 0xffffffffu;

// Unsigned integers in the order of the floats.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

// Count an element in its bin if it is in the window, and return its number there, without a branch.
__device__ __forceinline__ unsigned claim(unsigned address, float value, float low)
{
    unsigned number = FAR_AWAY;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ge.f32 p, %2, %3;\n\t"
                 "@p atom.shared.add.u32 %0, [%1], 1;\n\t"
                 "}"
                 : "+r"(number)
                 : "r"(address), "f"(value), "f"(low)
                 : "memory");
    return number;
}

// Exact for every row: all threads of the block call it together.
__device__ __noinline__ void selectByDigits(const float *row, float *out, int *position, int S, int K)
{
    __shared__ unsigned digits[256];
    __shared__ unsigned above, equal;
    __shared__ unsigned cutBin, cutBefore;

    const int tid = threadIdx.x;
    if (tid == 0)
        above = equal = 0;

    unsigned threshold = 0, need = unsigned(K);
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < 256)
            digits[tid] = 0;
        __syncthreads();
#pragma unroll 1
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(row[column]);
            if (shift == 24 || ((key ^ threshold) >> (shift + 8)) == 0)
                atomicAdd(&digits[255 - ((key >> shift) & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned count[8], sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                count[b] = digits[8 * tid + b];
                sum += count[b];
            }
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(ALL, running, step);
                running += tid >= step ? other : 0;
            }
            running -= sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                if (running < need && need <= running + count[b]) {
                    cutBin = unsigned(8 * tid + b);
                    cutBefore = running;
                }
                running += count[b];
            }
        }
        __syncthreads();
        threshold |= (255 - cutBin) << shift;
        need -= cutBefore;
    }

    // What is larger than the K-th largest is taken; of its equals as many as are missing.
    const unsigned sure = unsigned(K) - need;
#pragma unroll 1
    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        const unsigned key = keyOf(value);
        if (key > threshold) {
            const unsigned place = atomicAdd(&above, 1u);
            out[place] = value;
            position[place] = column;
        } else if (key == threshold) {
            const unsigned number = atomicAdd(&equal, 1u);
            if (number < need) {
                out[sure + number] = value;
                position[sure + number] = column;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
topk_digits(const float *values, float *topValues, int *indices, int S, int K)
{
    const size_t b = blockIdx.x;
    selectByDigits(values + b * S, topValues + b * K, indices + b * K, S, K);
}

// S is a multiple of 4, S <= 4096, K <= 512.
extern "C" __global__ void __launch_bounds__(THREADS)
topk_registers(const float *values, float *topValues, int *indices, int S, int K)
{
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ __align__(16) uint4 found;               // bin, number before it, number in it
    __shared__ __align__(16) uint2 chosen[THREADS + FEW];   // bits of the value, column
    __shared__ __align__(16) uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const float *row = values + size_t(blockIdx.x) * S;
    const int vectors = S >> 2;

    float v[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        v[e] = __uint_as_float(0xff800000u);            // below every window: a window's ends are finite
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i)
        if (tid + i * THREADS < vectors) {
            const float4 four = __ldcs(reinterpret_cast<const float4 *>(row) + tid + i * THREADS);
            v[4 * i] = four.x;
            v[4 * i + 1] = four.y;
            v[4 * i + 2] = four.z;
            v[4 * i + 3] = four.w;
        }

    bins[tid] = 0;
    if (tid == 0)
        found = make_uint4(0, 0, ALL, 0);               // stands if the window holds fewer than K

    // The window: from the least maximum of the elements of two neighbouring threads up to the maximum.
    float most = fmaxf(fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3])), fmaxf(fmaxf(v[4], v[5]), fmaxf(v[6], v[7])));
    most = fmaxf(most, __shfl_xor_sync(ALL, most, 1));
    unsigned top = keyOf(most);
    unsigned least = (tid & ~1) < vectors ? top : ALL;  // two threads without an element have no say
    least = __reduce_min_sync(ALL, least);
    top = __reduce_max_sync(ALL, top);
    if (lane == 0)
        spans[warp] = make_uint2(least, top);
    __syncthreads();
    const uint2 span = spans[lane & (WARPS - 1)];
    least = __reduce_min_sync(ALL, span.x);
    top = __reduce_max_sync(ALL, span.y);
    const float high = valueOf(top);
    float low = valueOf(least);
    const float range = high - low;
    const float scale = __fdividef(float(BINS - 1), range);
    if (!(range > 1e-30f && range < 1e30f))
        low = __uint_as_float(0x7fffffffu);             // no number: nothing is counted, and the digits decide

    // Linear bins, the largest elements first. Each step is monotone, and an element of the window has a bin of at
    // most that of `low`, BINS - 1. The sum with 2^23 leaves the rounded bin in the low bits.
    unsigned bin[COUNT], number[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        bin[e] = __float_as_uint(__fmaf_rn(high - v[e], scale, 8388608.0f)) - 0x4b000000u;
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(bins));
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        number[e] = claim(base + 4 * bin[e], v[e], low);
    __syncthreads();

    // Scan of the bins, one a thread.
    const unsigned count = bins[tid];
    unsigned running = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(ALL, running, step);
        running += lane >= step ? other : 0;
    }
    if (lane == 31)
        totals[warp] = running;
    __syncthreads();
    const unsigned total = totals[lane & (WARPS - 1)];
    running += __reduce_add_sync(ALL, lane < warp ? total : 0u);
    const unsigned start = running - count;
    bins[tid] = start;
    if (start < unsigned(K) && unsigned(K) <= running)
        found = make_uint4(unsigned(tid), start, count, 0);
    __syncthreads();

    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;
    const uint4 cut = found;
    const unsigned before = cut.y, inside = cut.z;
    if (inside > FEW) {                                 // the same in all threads
        selectByDigits(row, out, position, S, K);
        return;
    }

    // All down to the bin of the threshold, in order of the bins.
    const unsigned limit = before + inside;             // at most K - 1 + FEW
    unsigned place[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        place[e] = bins[min(bin[e], cut.x)] + (bin[e] <= cut.x ? number[e] : FAR_AWAY);
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        if (place[e] < limit)
            chosen[place[e]] =
                make_uint2(__float_as_uint(v[e]), unsigned(4 * (tid + e / 4 * THREADS) + e % 4));
    __syncthreads();

    // Those before the bin of the threshold are chosen for sure: fewer than K <= THREADS.
    if (unsigned(tid) < before) {
        const uint2 element = chosen[tid];
        out[tid] = __uint_as_float(element.x);
        position[tid] = int(element.y);
    }

    // Those in it are ranked, one a thread, by the last threads.
    const unsigned mine = unsigned(THREADS - 1 - tid);
    if (mine < inside) {
        const uint2 element = chosen[before + mine];
        const unsigned key = keyOf(__uint_as_float(element.x));
        unsigned place = before;
#pragma unroll 4
        for (unsigned j = 0; j < inside; ++j) {
            const unsigned other = keyOf(__uint_as_float(chosen[before + j].x));
            place += other > key || (other == key && j < mine);
        }
        if (place < unsigned(K)) {
            out[place] = __uint_as_float(element.x);
            position[place] = int(element.y);
        }
    }
}
