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
// The K largest of each row of S floats with their columns, in any order. One block a row.
//
// Short way: a sample that all warps share gives a monotone mapping of floats to 256 bins, largest first; what lies behind
// the last bin is dropped. A counting sort of the rest leaves only the bin with the K-th to be ranked exactly.
// Long way, for what the short one cannot do: radix select on ordered bits, read from global memory.

#define THREADS 512
#define BINS 256
#define ORIGIN 0x4B000000u // the bits of 2^23, from which on floats are integers

// Its order as an int is that of the float; its own inverse.
__device__ __forceinline__ int ordered(int bits)
{
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

__device__ __forceinline__ unsigned radixKey(float x)
{
    return (unsigned)ordered(__float_as_int(x)) ^ 0x80000000u;
}

extern "C" __global__ void __launch_bounds__(THREADS)
topk(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ __align__(16) int hist[BINS];
    __shared__ __align__(16) int4 found;
    __shared__ __align__(16) int2 staged[4096];
    __shared__ int counters[2];

    const int tid = threadIdx.x;
    const float *const row = values + size_t(blockIdx.x) * S;
    float *const outValues = topValues + size_t(blockIdx.x) * K;
    int *const outIndices = indices + size_t(blockIdx.x) * K;

    if (S >= 512 && S <= 4096 && (S & 3) == 0 && (reinterpret_cast<size_t>(values) & 15) == 0) {
        const float4 *const row4 = reinterpret_cast<const float4 *>(row);
        const int quads = S >> 2;
        const int lane = tid & 31;
        const int at = (lane >> 3) * (quads >> 2) + (lane & 7);
        const float4 p = __ldg(row4 + at);
        const float4 q = __ldg(row4 + at + 8);
        const float none = __int_as_float(0xff800000);
        float4 x0 = make_float4(none, none, none, none);
        float4 x1 = make_float4(none, none, none, none);
        if (tid < quads)
            x0 = __ldg(row4 + tid);
        if (tid + THREADS < quads)
            x1 = __ldg(row4 + tid + THREADS);
        if (tid < BINS / 4)
            reinterpret_cast<int4 *>(hist)[tid] = make_int4(0, 0, 0, 0);
        if (tid == 64)
            found = make_int4(-1, 0, 0, 0);
        __syncthreads();

        // The range of the bins: from the largest of the sample down to the smallest of the lanes' largest where K is
        // small, to the smallest of all otherwise.
        const float top = fmaxf(fmaxf(fmaxf(p.x, p.y), fmaxf(p.z, p.w)), fmaxf(fmaxf(q.x, q.y), fmaxf(q.z, q.w)));
        float edge = top;
        if (K * 7 > S)
            edge = fminf(fminf(fminf(p.x, p.y), fminf(p.z, p.w)), fminf(fminf(q.x, q.y), fminf(q.z, q.w)));
        const int highest = __reduce_max_sync(0xffffffffu, ordered(__float_as_int(top)));
        const int lowest = __reduce_min_sync(0xffffffffu, ordered(__float_as_int(edge)));
        const float high = __int_as_float(ordered(highest));
        const float low = __int_as_float(ordered(lowest));
        const float range = high - low;

        if (range > 1e-30f && range < 1e30f) { // the same for all threads
            const float scale = __fdividef((float)BINS, range);
            const float offset = __fmaf_rn(high, scale, 8388608.0f);
            const float x[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
            const unsigned bias = (unsigned)__cvta_generic_to_shared(hist) - ORIGIN * 4u;
            unsigned bits[8];
            unsigned place[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                bits[i] = __float_as_uint(fmaxf(__fmaf_rn(x[i], -scale, offset), 8388608.0f));
                place[i] = 0;
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
                asm volatile("{\n\t"
                             ".reg .pred p;\n\t"
                             "setp.lt.u32 p, %2, %3;\n\t"
                             "@p atom.shared.add.u32 %0, [%1], 1;\n\t"
                             "}"
                             : "+r"(place[i])
                             : "r"(bias + bits[i] * 4u), "r"(bits[i]), "r"(ORIGIN + BINS)
                             : "memory");
            __syncthreads();

            // Counts become places of the bins' first elements. Both halves of the bins are scanned in one register.
            if (tid < 32) {
                int4 *const bins4 = reinterpret_cast<int4 *>(hist);
                const int4 a = bins4[tid];
                const int4 b = bins4[tid + 32];
                const int sumA = (a.x + a.y) + (a.z + a.w);
                const int sumB = (b.x + b.y) + (b.z + b.w);
                const int totalA = __reduce_add_sync(0xffffffffu, sumA);
                int both = sumA + (sumB << 16);
#pragma unroll
                for (int d = 1; d < 32; d *= 2) {
                    const int before = __shfl_up_sync(0xffffffffu, both, d);
                    if (tid >= d)
                        both += before;
                }
                const int a0 = (both & 0xffff) - sumA;
                const int a1 = a0 + a.x;
                const int a2 = a1 + a.y;
                const int a3 = a2 + a.z;
                const int a4 = a3 + a.w;
                const int b0 = (both >> 16) - sumB + totalA;
                const int b1 = b0 + b.x;
                const int b2 = b1 + b.y;
                const int b3 = b2 + b.z;
                const int b4 = b3 + b.w;
                bins4[tid] = make_int4(a0, a1, a2, a3);
                bins4[tid + 32] = make_int4(b0, b1, b2, b3);
                if (a0 < K && K <= a4) {
                    int4 f = make_int4(tid * 4 + 3, a3, a.w, 0);
                    if (K <= a1)
                        f = make_int4(tid * 4, a0, a.x, 0);
                    else if (K <= a2)
                        f = make_int4(tid * 4 + 1, a1, a.y, 0);
                    else if (K <= a3)
                        f = make_int4(tid * 4 + 2, a2, a.z, 0);
                    found = f;
                }
                if (b0 < K && K <= b4) {
                    int4 f = make_int4(128 + tid * 4 + 3, b3, b.w, 0);
                    if (K <= b1)
                        f = make_int4(128 + tid * 4, b0, b.x, 0);
                    else if (K <= b2)
                        f = make_int4(128 + tid * 4 + 1, b1, b.y, 0);
                    else if (K <= b3)
                        f = make_int4(128 + tid * 4 + 2, b2, b.z, 0);
                    found = f;
                }
            }
            __syncthreads();

            const int4 f = found;
            const int above = f.y;
            const int count = f.z;
            if (f.x >= 0 && count <= THREADS) {
                const unsigned last = ORIGIN + (unsigned)f.x;
                const unsigned stage = (unsigned)__cvta_generic_to_shared(staged);
                unsigned first[8];
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    first[i] = 0;
                    asm volatile("{\n\t"
                                 ".reg .pred p;\n\t"
                                 "setp.le.u32 p, %2, %3;\n\t"
                                 "@p ld.shared.u32 %0, [%1];\n\t"
                                 "}"
                                 : "+r"(first[i])
                                 : "r"(bias + bits[i] * 4u), "r"(bits[i]), "r"(last)
                                 : "memory");
                }
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int column = tid * 4 + (i & 3) + (i >> 2) * (THREADS * 4);
                    asm volatile("{\n\t"
                                 ".reg .pred p;\n\t"
                                 "setp.le.u32 p, %3, %4;\n\t"
                                 "@p st.shared.v2.b32 [%0], {%1, %2};\n\t"
                                 "}"
                                 :
                                 : "r"(stage + (first[i] + place[i]) * 8u), "r"(__float_as_int(x[i])), "r"(column),
                                   "r"(bits[i]), "r"(last)
                                 : "memory");
                }
                __syncthreads();

                for (int i = tid; i < above; i += THREADS) {
                    const int2 s = staged[i];
                    outValues[i] = __int_as_float(s.x);
                    outIndices[i] = s.y;
                }
                const int j = THREADS - 1 - tid;
                if (j < count) {
                    const int2 mine = staged[above + j];
                    const int key = ordered(mine.x);
                    int rank = above;
#pragma unroll 4
                    for (int i = 0; i < count; ++i) {
                        const int other = ordered(staged[above + i].x);
                        rank += (other > key || (other == key && i < j)) ? 1 : 0;
                    }
                    if (rank < K) {
                        outValues[rank] = __int_as_float(mine.x);
                        outIndices[rank] = mine.y;
                    }
                }
                return;
            }
        }
    }

    // The long way.
    unsigned prefix = 0;
    unsigned mask = 0;
    int need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < BINS)
            hist[tid] = 0;
        if (tid < 2)
            counters[tid] = 0;
        __syncthreads();
#pragma unroll 1
        for (int i = tid; i < S; i += THREADS) {
            const unsigned key = radixKey(row[i]);
            if ((key & mask) == prefix)
                atomicAdd(&hist[(key >> shift) & 255u], 1);
        }
        __syncthreads();
        if (tid < BINS) {
            int larger = 0;
#pragma unroll 4
            for (int i = 0; i < BINS; ++i) {
                const int n = hist[i];
                larger += i > tid ? n : 0;
            }
            const int n = hist[tid];
            if (larger < need && need <= larger + n)
                found = make_int4(tid, larger, n, 0);
        }
        __syncthreads();
        const int4 f = found;
        need -= f.y;
        prefix |= (unsigned)f.x << shift;
        mask |= 255u << shift;
    }
    // The counters have been zero since before the last barriers.
#pragma unroll 1
    for (int i = tid; i < S; i += THREADS) {
        const float x = row[i];
        const unsigned key = radixKey(x);
        int at = K;
        if (key > prefix)
            at = atomicAdd(&counters[0], 1);
        else if (key == prefix)
            at = K - need + atomicAdd(&counters[1], 1);
        if (at < K) {
            outValues[at] = x;
            outIndices[at] = i;
        }
    }
}
