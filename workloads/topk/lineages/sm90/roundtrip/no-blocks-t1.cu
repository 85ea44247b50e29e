/*klineage
surface = "cuda"

[[launch]]
kernel = "topkRegisters"
when = "S % 4 == 0 && S >= 2048 && S <= 4096 && K <= 512"
grid = ["B"]
block = ["256"]
args = ["values", "top_values", "indices", "int S", "int K"]

[[launch]]
kernel = "topkDigits"
when = "S % 4 != 0 || S < 2048 || S > 4096 || K > 512"
grid = ["B"]
block = ["256"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order. One block a row.

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int VECTORS = 4;                  // float4 a thread
constexpr int COUNT = 4 * VECTORS;
constexpr int BINS = 256;
constexpr unsigned FEW = 64;                // elements of the threshold's bin that are ranked directly
constexpr int MOST_K = 512;                 // two for each thread: what the bound guarantees
constexpr unsigned FULL = 0xffffffffu;

// Unsigned integers in the order of the floats.
static __device__ __forceinline__ unsigned keyOf(unsigned bits)
{
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

static __device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (~unsigned(int(key) >> 31) | 0x80000000u));
}

// The number of the element in its bin, if the bin is in the window; undefined otherwise.
static __device__ __forceinline__ unsigned claim(unsigned address, unsigned last)
{
    unsigned number;
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.le.u32 inside, %1, %2;\n\t"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n\t"
                 "}"
                 : "=&r"(number) : "r"(address), "r"(last) : "memory");
    return number;
}

// Where the bin begins in the list (an address), if it is not after the threshold's; undefined otherwise.
static __device__ __forceinline__ unsigned beginOf(unsigned address, unsigned last)
{
    unsigned begin;
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.le.u32 inside, %1, %2;\n\t"
                 "@inside ld.shared.u32 %0, [%1+1024];\n\t"
                 "}"
                 : "=&r"(begin) : "r"(address), "r"(last) : "memory");
    return begin;
}

static __device__ __forceinline__ void put(unsigned address, unsigned last, unsigned begin, unsigned number,
                                           unsigned bits, unsigned column)
{
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 ".reg .u32 to;\n\t"
                 "setp.le.u32 inside, %0, %1;\n\t"
                 "mad.lo.u32 to, %3, 8, %2;\n\t"
                 "@inside st.shared.v2.b32 [to], {%4, %5};\n\t"
                 "}"
                 :: "r"(address), "r"(last), "r"(begin), "r"(number), "r"(bits), "r"(column) : "memory");
}

// Any row: the K-th largest key digit by digit, then all that are larger, and as many equal ones as are missing.
static __device__ __forceinline__ void selectByDigits(const float *row, float *out, int *position, int S, int K)
{
    __shared__ unsigned digits[256];        // the largest digit first
    __shared__ unsigned cutDigit, cutBefore, above, inside;
    const int tid = threadIdx.x;

    unsigned threshold = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = tid; i < 256; i += THREADS)
            digits[i] = 0;
        if (tid == 0)
            above = inside = 0;
        __syncthreads();
#pragma unroll 1
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(__float_as_uint(row[column]));
            if (shift == 24 || ((key ^ threshold) >> (shift + 8)) == 0)
                atomicAdd(&digits[255 - ((key >> shift) & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned count[8], sum = 0;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                count[j] = digits[8 * tid + j];
                sum += count[j];
            }
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(FULL, running, step);
                if (tid >= step)
                    running += other;
            }
            running -= sum;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (running < need && need <= running + count[j]) {
                    cutDigit = 8 * tid + j;
                    cutBefore = running;
                }
                running += count[j];
            }
        }
        __syncthreads();
        threshold |= (255 - cutDigit) << shift;
        need -= cutBefore;
    }

    const unsigned sure = unsigned(K) - need;
#pragma unroll 1
    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        const unsigned key = keyOf(__float_as_uint(value));
        unsigned place = FULL;
        if (key > threshold)
            place = atomicAdd(&above, 1u);
        else if (key == threshold) {
            const unsigned number = atomicAdd(&inside, 1u);
            if (number < need)
                place = sure + number;
        }
        if (place < unsigned(K)) {
            out[place] = value;
            position[place] = column;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) topkDigits(const float *values, float *topValues, int *indices,
                                                             int S, int K)
{
    selectByDigits(values + size_t(blockIdx.x) * S, topValues + size_t(blockIdx.x) * K,
                   indices + size_t(blockIdx.x) * K, S, K);
}

// Rows of 2048 to 4096 elements, a multiple of 4, and K up to 512.
extern "C" __global__ void __launch_bounds__(256) topkRegisters(const float *__restrict__ values,
                                                                float *__restrict__ topValues,
                                                                int *__restrict__ indices, int S, int K)
{
    __shared__ __align__(16) unsigned table[2 * BINS];  // counts, then where the bins begin in the list
    __shared__ __align__(16) uint2 chosen[MOST_K + FEW];    // value and column
    __shared__ __align__(16) uint2 spans[WARPS];

    const unsigned tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;

    // Each thread has two vectors at least, since there are 512 or more.
    const float4 *row4 = reinterpret_cast<const float4 *>(row) + tid;
    const unsigned vectors = unsigned(S) >> 2;
    const float none = __uint_as_float(0xff800000u);
    float4 third = make_float4(none, none, none, none), fourth = third;
    const float4 first = row4[0];
    const float4 second = row4[THREADS];
    if (tid + 2 * THREADS < vectors)
        third = row4[2 * THREADS];
    if (tid + 3 * THREADS < vectors)
        fourth = row4[3 * THREADS];

    if (tid < BINS / 4)
        reinterpret_cast<uint4 *>(table)[tid] = make_uint4(0, 0, 0, 0);

    const float v[COUNT] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w,
                            third.x, third.y, third.z, third.w, fourth.x, fourth.y, fourth.z, fourth.w};

    // Two vectors of each thread have an element that is no smaller than the second largest of its vectors' maxima:
    // 512 elements are no smaller than the least of these.
    const float most0 = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
    const float most1 = fmaxf(fmaxf(v[4], v[5]), fmaxf(v[6], v[7]));
    const float most2 = fmaxf(fmaxf(v[8], v[9]), fmaxf(v[10], v[11]));
    const float most3 = fmaxf(fmaxf(v[12], v[13]), fmaxf(v[14], v[15]));
    const float larger0 = fmaxf(most0, most1), smaller0 = fminf(most0, most1);
    const float larger1 = fmaxf(most2, most3), smaller1 = fminf(most2, most3);
    const float runnerUp = fmaxf(fminf(larger0, larger1), fmaxf(smaller0, smaller1));
    const float most = fmaxf(larger0, larger1);

    const unsigned leastKey = __reduce_min_sync(FULL, keyOf(__float_as_uint(runnerUp)));
    const unsigned mostKey = __reduce_max_sync(FULL, keyOf(__float_as_uint(most)));
    if (lane == 0)
        spans[warp] = make_uint2(leastKey, mostKey);
    __syncthreads();
    const uint2 span = spans[lane % WARPS];
    const float top = valueOf(__reduce_max_sync(FULL, span.y));
    const float bound = valueOf(__reduce_min_sync(FULL, span.x));
    const float range = top - bound;
    const bool good = range > 1e-30f && range < 1e30f;      // otherwise what is counted below is not used
    const float scale = __fdividef(255.0f, range);

    // Bins are linear in the value, the largest first: 2^23 + bin has the bin in its low bits. All down to the bound
    // have bins up to 255; bits of what is further down are larger, so that one comparison tells.
    const unsigned base = unsigned(__cvta_generic_to_shared(table));
    const unsigned list = unsigned(__cvta_generic_to_shared(chosen));
    const unsigned offset = base - 0x2c000000u;             // 4 * 0x4b000000, the bits of 2^23
    const unsigned last = base + 4 * (BINS - 1);
    unsigned address[COUNT], number[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        address[e] = __float_as_uint(fmaf(top - v[e], scale, 8388608.0f)) * 4u + offset;
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        number[e] = claim(address[e], last);
    __syncthreads();

    // Each warp scans all bins, the two halves of the table in the halves of a word.
    const uint4 low = reinterpret_cast<const uint4 *>(table)[lane];
    const uint4 high = reinterpret_cast<const uint4 *>(table)[32 + lane];
    const unsigned p0 = high.x * 65536u + low.x, p1 = high.y * 65536u + low.y;
    const unsigned p2 = high.z * 65536u + low.z, p3 = high.w * 65536u + low.w;
    const unsigned own = (p0 + p1) + (p2 + p3);
    unsigned running = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(FULL, running, step);
        if (lane >= unsigned(step))
            running += other;
    }
    const unsigned total = __shfl_sync(FULL, running, 31) & 0xffffu;    // of the first half
    const unsigned b0 = running - own, b1 = b0 + p0, b2 = b1 + p1, b3 = b2 + p2;

    // Where the bins begin: each warp writes 8 vectors of one half.
    if ((lane >> 3) == (warp >> 1)) {
        const unsigned half = warp & 1;
        const unsigned pick = half ? 0x4432u : 0x4410u;
        const unsigned from = list + (half ? 8 * total : 0u);
        reinterpret_cast<uint4 *>(table)[BINS / 4 + 32 * half + lane] =
            make_uint4(from + 8 * __byte_perm(b0, 0, pick), from + 8 * __byte_perm(b1, 0, pick),
                       from + 8 * __byte_perm(b2, 0, pick), from + 8 * __byte_perm(b3, 0, pick));
    }

    // The bin of the threshold, found by one lane of each warp.
    const bool upper = total < unsigned(K);
    const unsigned skipped = upper ? total : 0u;
    const unsigned target = unsigned(K) - skipped;
    const unsigned pick = upper ? 0x4432u : 0x4410u;
    const unsigned e0 = __byte_perm(b0, 0, pick), e1 = __byte_perm(b1, 0, pick), e2 = __byte_perm(b2, 0, pick);
    const unsigned e3 = __byte_perm(b3, 0, pick), e4 = __byte_perm(running, 0, pick);
    unsigned found = 0;
    if (e0 < target && target <= e4) {
        unsigned begin = e0, end = e1, bin = 4 * lane;
        if (e1 < target) {
            begin = e1;
            end = e2;
            bin = 4 * lane + 1;
        }
        if (e2 < target) {
            begin = e2;
            end = e3;
            bin = 4 * lane + 2;
        }
        if (e3 < target) {
            begin = e3;
            end = e4;
            bin = 4 * lane + 3;
        }
        found = bin << 24 | begin << 12 | (end - begin - 1);
    }
    const unsigned cut = __reduce_or_sync(FULL, found);
    const unsigned count = (cut & 0xfffu) + 1;
    const unsigned before = ((cut >> 12) & 0xfffu) + skipped;
    const unsigned cutAddress = base + 4 * ((cut >> 24) + (upper ? BINS / 2 : 0));

    if (!good || count > FEW) {             // the same in all threads
        selectByDigits(row, out, position, S, K);
        return;
    }
    __syncthreads();

    // All down to the bin of the threshold go to their places, those of that bin last.
    unsigned begin[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        begin[e] = beginOf(address[e], cutAddress);
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        put(address[e], cutAddress, begin[e], number[e], __float_as_uint(v[e]),
            4 * tid + (e / 4) * (4 * THREADS) + e % 4);
    __syncthreads();

    // The candidates, two a lane.
    unsigned mine0 = 0, mine1 = 0;
    if (lane < count)
        mine0 = keyOf(chosen[before + lane].x);
    if (lane + 32 < count)
        mine1 = keyOf(chosen[before + lane + 32].x);

    // Those above the bin are sure. There are fewer than K.
#pragma unroll
    for (int j = 0; j < MOST_K / THREADS; ++j) {
        const unsigned i = tid + j * THREADS;
        if (i < before) {
            const uint2 element = chosen[i];
            out[i] = __uint_as_float(element.x);
            position[i] = int(element.y);
        }
    }

    // A warp ranks one candidate at a time, by votes.
    const unsigned need = unsigned(K) - before;
#pragma unroll 1
    for (unsigned i = warp; i < count; i += WARPS) {
        const uint2 element = chosen[before + i];
        const unsigned key = keyOf(element.x);
        const unsigned votes0 = __ballot_sync(FULL, mine0 > key || (mine0 == key && lane < i));
        const unsigned votes1 = __ballot_sync(FULL, mine1 > key || (mine1 == key && lane + 32 < i));
        const unsigned rank = __popc(votes0) + __popc(votes1);
        if (lane == 0 && rank < need) {
            out[before + rank] = __uint_as_float(element.x);
            position[before + rank] = int(element.y);
        }
    }
}
