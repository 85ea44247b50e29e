/*klineage
surface = "cuda"

[[tunable]]
name = "THREADS"
default = 64
values = [32, 64, 128]

[[tunable]]
name = "STREAM_STORES"
default = 1
values = [0, 1]

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["THREADS"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, bf16 in and out. A small block owns a row. Rows of 4096 are read once into registers; each
// warp works against its own maximum and one exchange between the warps corrects it. Other rows take the general path.

#include <cuda_bf16.h>

#ifndef THREADS
#define THREADS 64
#endif
#ifndef STREAM_STORES
#define STREAM_STORES 1
#endif

#if THREADS == 32
#define MIN_BLOCKS 12
#elif THREADS == 64
#define MIN_BLOCKS 10
#else
#define MIN_BLOCKS 8
#endif

#define WARPS (THREADS / 32)
#define COLS 4096
#define CHUNKS (COLS / (8 * THREADS))
#define FULL_MASK 0xffffffffu
#define LOG2E 1.4426950408889634f
#define MINUS_INFINITY __int_as_float(0xff800000)

static __device__ __forceinline__ float exp2_fast(float a)
{
    float d;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}

static __device__ __forceinline__ unsigned max_pair(unsigned a, unsigned b)
{
    unsigned d;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

static __device__ __forceinline__ unsigned pack_pair(float lo, float hi)
{
    unsigned d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
    return d;
}

static __device__ __forceinline__ float low_of(unsigned w)
{
    return __uint_as_float(w << 16);
}

static __device__ __forceinline__ float high_of(unsigned w)
{
    return __uint_as_float(w & 0xffff0000u);
}

static __device__ __forceinline__ float warp_max(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        v = fmaxf(v, __shfl_xor_sync(FULL_MASK, v, d));
    return v;
}

static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        v += __shfl_xor_sync(FULL_MASK, v, d);
    return v;
}

static __device__ __forceinline__ uint4 load_streaming(const uint4 *p)
{
    uint4 v;
    asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

static __device__ __forceinline__ void store_row_part(uint4 *p, uint4 v)
{
#if STREAM_STORES
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
#else
    *p = v;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) softmax(const __nv_bfloat16 *x, __nv_bfloat16 *y, int R, int C)
{
    __shared__ float tops[WARPS];
    __shared__ float sums[WARPS];

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int row = int(blockIdx.x);
    if (row >= R)
        return;

    const bool aligned = ((reinterpret_cast<unsigned long long>(x) | reinterpret_cast<unsigned long long>(y)) & 15ull) == 0;

    if (C == COLS && aligned) {
        // Thread t has the elements 8 (THREADS i + t) .. + 7.
        const uint4 *in = reinterpret_cast<const uint4 *>(x + size_t(row) * COLS) + threadIdx.x;
        uint4 v[CHUNKS];
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i)
            v[i] = load_streaming(in + i * THREADS);

        unsigned m0 = v[0].x, m1 = v[0].y, m2 = v[0].z, m3 = v[0].w;
#pragma unroll
        for (int i = 1; i < CHUNKS; ++i) {
            m0 = max_pair(m0, v[i].x);
            m1 = max_pair(m1, v[i].y);
            m2 = max_pair(m2, v[i].z);
            m3 = max_pair(m3, v[i].w);
        }
        m0 = max_pair(max_pair(m0, m1), max_pair(m2, m3));
        const float top = warp_max(fmaxf(low_of(m0), high_of(m0)));
        // A warp whose elements are all masked subtracts 0: its exponentials are 0.
        const float base = top == MINUS_INFINITY ? 0.0f : top;

        float e[CHUNKS * 8];
        float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const unsigned w[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float lo = exp2_fast((low_of(w[j]) - base) * LOG2E);
                const float hi = exp2_fast((high_of(w[j]) - base) * LOG2E);
                e[8 * i + 2 * j] = lo;
                e[8 * i + 2 * j + 1] = hi;
                part[j] += lo + hi;
            }
        }
        const float sum = warp_sum((part[0] + part[1]) + (part[2] + part[3]));

        float scale;
        if (WARPS == 1) {
            scale = 1.0f / sum;
        } else {
            if (lane == 0) {
                tops[warp] = top;
                sums[warp] = sum;
            }
            __syncthreads();
            float all_top = tops[0];
#pragma unroll
            for (int k = 1; k < WARPS; ++k)
                all_top = fmaxf(all_top, tops[k]);
            float all_sum = 0.0f;
#pragma unroll
            for (int k = 0; k < WARPS; ++k)
                all_sum += sums[k] * exp2_fast((tops[k] - all_top) * LOG2E);
            scale = exp2_fast((top - all_top) * LOG2E) / all_sum;
        }

        uint4 *out = reinterpret_cast<uint4 *>(y + size_t(row) * COLS) + threadIdx.x;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            uint4 o;
            o.x = pack_pair(e[8 * i + 0] * scale, e[8 * i + 1] * scale);
            o.y = pack_pair(e[8 * i + 2] * scale, e[8 * i + 3] * scale);
            o.z = pack_pair(e[8 * i + 4] * scale, e[8 * i + 5] * scale);
            o.w = pack_pair(e[8 * i + 6] * scale, e[8 * i + 7] * scale);
            store_row_part(out + i * THREADS, o);
        }
        return;
    }

    // Any other shape: a block a row, three passes, the later ones out of the caches.
    const __nv_bfloat16 *in = x + size_t(row) * C;
    __nv_bfloat16 *out = y + size_t(row) * C;

    float top = MINUS_INFINITY;
    for (int c = threadIdx.x; c < C; c += THREADS)
        top = fmaxf(top, __bfloat162float(in[c]));
    top = warp_max(top);
    if (lane == 0)
        tops[warp] = top;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < WARPS; ++k)
        top = fmaxf(top, tops[k]);

    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += THREADS)
        sum += exp2_fast((__bfloat162float(in[c]) - top) * LOG2E);
    sum = warp_sum(sum);
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int k = 0; k < WARPS; ++k)
        sum += sums[k];
    const float scale = 1.0f / sum;

    for (int c = threadIdx.x; c < C; c += THREADS)
        out[c] = __float2bfloat16(exp2_fast((__bfloat162float(in[c]) - top) * LOG2E) * scale);
}
