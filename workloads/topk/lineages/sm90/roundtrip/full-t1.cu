/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// One block a row. Elements stay in registers. A window of values that very likely holds the K largest is cut into
// bins; numbers from the counting atomics plus a scan over the bins are the places. What the counts do not confirm
// is done again by digits of integer keys.

constexpr unsigned FULL = 0xffffffffu;
constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int COUNT = 8;                    // elements a thread
constexpr int ROOM = THREADS * COUNT;       // the longest row that fits in the registers
constexpr int BINS = 256;                   // 16 for each warp
constexpr int FEW = 128;                    // candidates that are ranked directly
constexpr int STAGED = 1792;                // at least 2 / 5 * ROOM + FEW
static_assert(BINS == 16 * WARPS, "each warp scans 16 bins");
static_assert(STAGED >= 2 * ROOM / 5 + FEW, "room for all that is kept and the candidates");

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(~int(key) >> 31) | 0x80000000u));
}

// Counts one more in the bin, if there is such a bin, and returns how many were there.
__device__ __forceinline__ unsigned claim(unsigned bins, unsigned bin)
{
    unsigned number = 0;
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.lt.u32 inside, %2, %3;\n\t"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n\t"
                 "}"
                 : "+r"(number)
                 : "r"(bins + 4 * bin), "r"(bin), "n"(BINS)
                 : "memory");
    return number;
}

// Any row and any K: the K-th largest key by digits of 8 bits, then all that are larger and as many equal ones as are
// missing. By the whole block.
static __device__ void selectByDigits(const float *row, float *out, int *position, unsigned S, unsigned K)
{
    __shared__ unsigned bins[256];          // the largest digit first
    __shared__ uint2 cut;                   // the bin of the threshold, and the elements before it
    __shared__ unsigned above, equal;

    const unsigned tid = threadIdx.x, lane = tid % 32;
    unsigned threshold = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < 256)
            bins[tid] = 0;
        if (tid == 0) {
            above = 0;
            equal = 0;
        }
        __syncthreads();
#pragma unroll 1
        for (unsigned i = tid; i < S; i += THREADS) {
            const unsigned key = keyOf(row[i]);
            if (shift == 24 || ((key ^ threshold) >> (shift + 8)) == 0)
                atomicAdd(&bins[255 - ((key >> shift) & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned sum = 0;
#pragma unroll 1
            for (int b = 0; b < 8; ++b)
                sum += bins[8 * lane + b];
            unsigned running = sum;
#pragma unroll 1
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(FULL, running, step);
                running += lane >= unsigned(step) ? other : 0;
            }
            running -= sum;
#pragma unroll 1
            for (int b = 0; b < 8; ++b) {
                const unsigned count = bins[8 * lane + b];
                if (running < need && need <= running + count)
                    cut = make_uint2(8 * lane + b, running);
                running += count;
            }
        }
        __syncthreads();
        threshold |= (255 - cut.x) << shift;
        need -= cut.y;
    }

#pragma unroll 1
    for (unsigned i = tid; i < S; i += THREADS) {
        const float value = row[i];
        const unsigned key = keyOf(value);
        unsigned place = K;
        if (key > threshold)
            place = atomicAdd(&above, 1u);
        else if (key == threshold) {
            const unsigned number = atomicAdd(&equal, 1u);
            if (number < need)
                place = K - need + number;
        }
        if (place < K) {
            out[place] = value;
            position[place] = int(i);
        }
    }
}

extern "C" __global__ void __launch_bounds__(512)
topk(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ __align__(16) unsigned counts[BINS];     // elements in each bin, the largest first
    __shared__ unsigned begins[BINS + 1];               // elements in the bins before; the last stands for no bin
    __shared__ uint2 spans[WARPS];
    __shared__ uint2 found;                             // elements before the bin of the threshold, and in it
    __shared__ __align__(16) uint2 staged[STAGED];      // value and column

    const unsigned tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;

    if (S <= ROOM && 5 * K <= 2 * S) {
        // Elements 4 * (tid + part * THREADS) + e; -infinity stands for none, and is never in the window.
        const float none = __uint_as_float(0xff800000u);
        float v[COUNT];
        if (((reinterpret_cast<size_t>(row) | (size_t(S) * 4)) & 15) == 0) {
#pragma unroll
            for (int part = 0; part < COUNT / 4; ++part) {
                const int column = int(4 * tid) + 4 * THREADS * part;
                float4 four = make_float4(none, none, none, none);
                if (column < S)
                    four = __ldg(reinterpret_cast<const float4 *>(row + column));
                v[4 * part] = four.x;
                v[4 * part + 1] = four.y;
                v[4 * part + 2] = four.z;
                v[4 * part + 3] = four.w;
            }
        } else {
#pragma unroll
            for (int e = 0; e < COUNT; ++e) {
                const int column = int(4 * tid) + 4 * THREADS * (e / 4) + e % 4;
                v[e] = none;
                if (column < S)
                    v[e] = __ldg(row + column);
            }
        }
        if (tid < BINS)
            counts[tid] = 0;
        if (tid == 0) {
            found = make_uint2(0, 0xffffffffu);         // stays so if the window holds fewer than K
            begins[BINS] = 0x40000000u;                 // a place that is never filled
        }

        // The maximum of the row, and a limit that K elements are likely not below: of the least of the maxima of a
        // warp's threads the largest, or for larger K the least. Warps with a thread without an element have no say.
        const float most = fmaxf(fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3])),
                                 fmaxf(fmaxf(v[4], v[5]), fmaxf(v[6], v[7])));
        const unsigned key = keyOf(most);
        const unsigned least = __reduce_min_sync(FULL, key);
        const unsigned largest = __reduce_max_sync(FULL, key);
        if (lane == 0)
            spans[warp] = make_uint2(least, largest);
        __syncthreads();
        const uint2 span = spans[lane & (WARPS - 1)];
        const bool tight = 7 * K <= S;
        const unsigned vote = tight ? span.x : (span.x <= 0x007fffffu ? 0u : ~span.x);
        const unsigned elected = __reduce_max_sync(FULL, vote);
        const float top = valueOf(__reduce_max_sync(FULL, span.y));
        const float low = valueOf(tight ? elected : ~elected);
        const float range = top - low;

        if (range > 1e-30f && range < 1e30f) {          // false for infinities and NaNs
            // Distance from the top in bins, rounded into the low bits of a float from 2^23 on: monotone in the value.
            const float scale = __fdividef(float(BINS - 2), range);
            const unsigned bins = unsigned(__cvta_generic_to_shared(counts));
            unsigned bin[COUNT], place[COUNT];
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                bin[e] = __float_as_uint(fmaf(top - v[e], scale, 8388608.0f)) - 0x4b000000u;
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                place[e] = claim(bins, bin[e]);
            __syncthreads();

            // Each warp scans 16 bins, in both halves alike, and adds up all that are before them by itself.
            const unsigned need = unsigned(K);
            const unsigned within = lane & 15, mine = 16 * warp + within;
            const uint4 *fours = reinterpret_cast<const uint4 *>(counts);
            const unsigned count = counts[mine];
            unsigned before = 0;
            if (lane < 4 * warp) {
                const uint4 four = fours[lane];
                before = (four.x + four.y) + (four.z + four.w);
            }
            if (lane + 32 < 4 * warp) {
                const uint4 four = fours[lane + 32];
                before += (four.x + four.y) + (four.z + four.w);
            }
            before = __reduce_add_sync(FULL, before);
            unsigned running = count;
#pragma unroll
            for (int step = 1; step < 16; step *= 2) {
                const unsigned other = __shfl_up_sync(FULL, running, step, 16);
                running += within >= unsigned(step) ? other : 0;
            }
            running += before - count;
            if (lane < 16) {
                begins[mine] = running;
                if (need - 1 - running < count)         // running < need <= running + count
                    found = make_uint2(running, count);
            }
            __syncthreads();

            const uint2 cut = found;
            if (cut.y <= FEW) {
                // Bins behind that of the threshold begin at the limit or later.
                const unsigned limit = cut.x + cut.y;
#pragma unroll
                for (int e = 0; e < COUNT; ++e)
                    place[e] += begins[min(bin[e], unsigned(BINS))];
#pragma unroll
                for (int e = 0; e < COUNT; ++e)
                    if (place[e] < limit)
                        staged[place[e]] =
                            make_uint2(__float_as_uint(v[e]), 4 * tid + unsigned(4 * THREADS * (e / 4) + e % 4));
                __syncthreads();

                const bool copies = tid < cut.x;
                uint2 own = make_uint2(0, 0);
                if (copies)
                    own = staged[tid];

                // The bin of the threshold: a warp ranks one of its elements at a time, by votes.
                const unsigned missing = need - cut.x;
#pragma unroll 1
                for (unsigned i = warp; i < cut.y; i += WARPS) {
                    const uint2 element = staged[cut.x + i];
                    const float value = __uint_as_float(element.x);
                    unsigned rank = 0;
#pragma unroll 1
                    for (unsigned start = 0; start < cut.y; start += 32) {
                        const unsigned j = start + lane;
                        const float other = j < cut.y ? __uint_as_float(staged[cut.x + j].x) : none;
                        rank += __popc(__ballot_sync(
                            FULL, j < cut.y && (other > value || (other == value && j < i))));
                    }
                    if (lane == 0 && rank < missing) {
                        out[cut.x + rank] = value;
                        position[cut.x + rank] = int(element.y);
                    }
                }

                // What is above it, in order.
                if (copies) {
                    out[tid] = __uint_as_float(own.x);
                    position[tid] = int(own.y);
                }
#pragma unroll 1
                for (unsigned i = tid + THREADS; i < cut.x; i += THREADS) {
                    const uint2 element = staged[i];
                    out[i] = __uint_as_float(element.x);
                    position[i] = int(element.y);
                }
                return;
            }
        }
    }
    selectByDigits(row, out, position, unsigned(S), unsigned(K));
}
