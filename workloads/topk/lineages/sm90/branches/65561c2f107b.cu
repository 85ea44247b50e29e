/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["256"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// One block a row. Floats become unsigned keys of the same order, of which a thread keeps some in registers. The
// K-th largest key is found by bisecting its bits from the highest down: a bit is set if at least K keys reach what is
// known of it with that bit set. When few keys are left undecided, one warp goes on with them alone. Then every key
// above the threshold is written out, and as many of those equal to it as there is room for.

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int EACH = 16;             // keys of a thread in registers
constexpr int KEPT = THREADS * EACH; // keys of a block in registers; those of a longer row are read again
constexpr int FEW = 256;             // undecided keys that one warp can take over
constexpr unsigned ALL = 0xffffffffu;
constexpr int NONE = 0x4b000000;     // 2^23 as a float: adding 1.0f adds one to its bits

static_assert(WARPS == 8 && EACH % 4 == 0 && FEW % 32 == 0, "as the code below assumes");

__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(int(~key) >> 31) | 0x80000000u));
}

// The column of a thread's i-th key in registers.
__device__ __forceinline__ int columnOf(int i)
{
    return (i / 4) * (4 * THREADS) + 4 * int(threadIdx.x) + i % 4;
}

// Counts a key that reaches the threshold: a comparison, and an addition on the other pipe.
__device__ __forceinline__ void tally(float &count, unsigned key, unsigned threshold)
{
    asm("{\n\t"
        ".reg .pred p;\n\t"
        "setp.ge.u32 p, %1, %2;\n\t"
        "@p add.f32 %0, %0, 0f3F800000;\n\t"
        "}"
        : "+f"(count)
        : "r"(key), "r"(threshold));
}

// Whether a key is among those undecided. Key 0 stands for what lies past the end.
__device__ __forceinline__ bool undecided(unsigned key, unsigned least, unsigned span)
{
    return key != 0 && key - least <= span;
}

// Claims n places for each thread of a warp: total places from first on, of which this thread's begin at the result.
__device__ __forceinline__ int claim(int n, int *next, int &first, int &total)
{
    const int lane = threadIdx.x % 32;
    total = __reduce_add_sync(ALL, n);
    int base = 0;
    if (lane == 0)
        base = atomicAdd(next, total);
    int sum = n;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(ALL, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    first = __shfl_sync(ALL, base, 0);
    return sum - n;
}

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *values, float *topValues, int *indices, int S,
                                                           int K)
{
    __shared__ uint2 stage[KEPT];
    __shared__ unsigned few[FEW];
    __shared__ __align__(16) int counts[2][WARPS];
    __shared__ int4 found;
    __shared__ int gathered, taken, tied;

    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = thread / 32;
    const float *row = values + size_t(blockIdx.x) * S;
    float *outValues = topValues + size_t(blockIdx.x) * K;
    int *outIndices = indices + size_t(blockIdx.x) * K;

    // What lies past the end becomes key 0, below that of every number.
    const float past = __uint_as_float(0xffffffffu);
    float loaded[EACH];
    if (S % 4 == 0 && reinterpret_cast<size_t>(row) % 16 == 0) {
#pragma unroll
        for (int i = 0; i < EACH; i += 4) {
            float4 four = make_float4(past, past, past, past);
            if (columnOf(i) < S)
                four = *reinterpret_cast<const float4 *>(row + columnOf(i));
            loaded[i] = four.x;
            loaded[i + 1] = four.y;
            loaded[i + 2] = four.z;
            loaded[i + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            loaded[i] = past;
            if (columnOf(i) < S)
                loaded[i] = row[columnOf(i)];
        }
    }
    if (thread == 0) {
        gathered = 0;
        taken = 0;
        tied = 0;
    }
    __syncthreads();
    unsigned keys[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        keys[i] = keyOf(loaded[i]);

    // The K-th largest key lies in [least, least + 2^bits). atLeast keys are not below that range, above keys are
    // beyond it, and atLeast >= K > above.
    unsigned least = 0;
    int atLeast = S;
    int above = 0;
    int bits = 32;
    while (bits > 0 && atLeast > K && atLeast - above > FEW) {
        --bits;
        const unsigned threshold = least | (1u << bits);
        float even = __int_as_float(NONE);
        float odd = __int_as_float(NONE);
#pragma unroll
        for (int i = 0; i < EACH; i += 2) {
            tally(even, keys[i], threshold);
            tally(odd, keys[i + 1], threshold);
        }
        for (int column = KEPT + thread; column < S; column += THREADS)
            tally(even, keyOf(row[column]), threshold);
        const int ofWarp = __reduce_add_sync(ALL, (__float_as_int(even) - NONE) + (__float_as_int(odd) - NONE));
        if (lane == 0)
            counts[bits & 1][warp] = ofWarp;
        __syncthreads(); // one a bit is enough, as the counts of two bits lie apart
        const int4 low = reinterpret_cast<const int4 *>(counts[bits & 1])[0];
        const int4 high = reinterpret_cast<const int4 *>(counts[bits & 1])[1];
        const int count = ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
        if (count >= K) {
            least = threshold;
            atLeast = count;
        } else {
            above = count;
        }
    }

    if (bits > 0 && atLeast > K) { // at most FEW are undecided: one warp goes on with them
        const unsigned span = ALL >> (32 - bits);
        int n = 0;
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            n += undecided(keys[i], least, span) ? 1 : 0;
        int first, total;
        int place = claim(n, &gathered, first, total);
        place += first;
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (undecided(keys[i], least, span))
                few[place++] = keys[i];
        for (int start = KEPT; start < S; start += THREADS) {
            const unsigned key = start + thread < S ? keyOf(row[start + thread]) : 0u;
            const bool chosen = undecided(key, least, span);
            place = claim(chosen ? 1 : 0, &gathered, first, total);
            if (chosen)
                few[first + place] = key;
        }
        __syncthreads();
        if (warp == 0) {
            const int size = gathered;
            const int beyond = above;
            unsigned mine[FEW / 32];
#pragma unroll
            for (int i = 0; i < FEW / 32; ++i) {
                mine[i] = 0;
                if (32 * i + lane < size)
                    mine[i] = few[32 * i + lane];
            }
            do {
                --bits;
                const unsigned threshold = least | (1u << bits);
                float even = __int_as_float(NONE);
                float odd = __int_as_float(NONE);
#pragma unroll
                for (int i = 0; i < FEW / 32; i += 2) {
                    tally(even, mine[i], threshold);
                    tally(odd, mine[i + 1], threshold);
                }
                const int count =
                    beyond + __reduce_add_sync(ALL, (__float_as_int(even) - NONE) + (__float_as_int(odd) - NONE));
                if (count >= K) {
                    least = threshold;
                    atLeast = count;
                } else {
                    above = count;
                }
            } while (bits > 0 && atLeast > K);
            if (lane == 0)
                found = make_int4(int(least), atLeast, above, 0);
        }
        __syncthreads();
        const int4 result = found;
        least = unsigned(result.x);
        atLeast = result.y;
        above = result.z;
    }
    if (atLeast == K) { // all those not below; least is not 0, since K is smaller than S
        least -= 1;
        above = K;
    }

    // The keys greater than least, of which there are above: a warp lays its own together, then writes them out.
    {
        int n = 0;
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            n += keys[i] > least ? 1 : 0;
        int first, total;
        int place = claim(n, &taken, first, total);
        uint2 *mine = stage + warp * (32 * EACH);
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (keys[i] > least)
                mine[place++] = make_uint2(keys[i], unsigned(columnOf(i)));
        __syncwarp();
        for (int i = lane; i < total; i += 32) {
            const uint2 one = mine[i];
            outValues[first + i] = valueOf(one.x);
            outIndices[first + i] = int(one.y);
        }
        for (int start = KEPT; start < S; start += THREADS) {
            const int column = start + thread;
            const unsigned key = column < S ? keyOf(row[column]) : 0u;
            const bool chosen = key > least;
            place = claim(chosen ? 1 : 0, &taken, first, total);
            if (chosen) {
                outValues[first + place] = valueOf(key);
                outIndices[first + place] = column;
            }
        }
    }

    // Those equal to least, as far as there is room.
    const int room = K - above;
    if (room > 0) {
        int n = 0;
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            n += keys[i] == least && columnOf(i) < S ? 1 : 0;
        int first, total;
        int place = claim(n, &tied, first, total);
        place += first;
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            if (keys[i] == least && columnOf(i) < S) {
                if (place < room) {
                    outValues[above + place] = valueOf(least);
                    outIndices[above + place] = columnOf(i);
                }
                ++place;
            }
        }
        for (int start = KEPT; start < S; start += THREADS) {
            const int column = start + thread;
            const bool chosen = column < S && keyOf(row[column]) == least;
            place = claim(chosen ? 1 : 0, &tied, first, total);
            if (chosen && first + place < room) {
                outValues[above + first + place] = valueOf(least);
                outIndices[above + first + place] = column;
            }
        }
    }
}
