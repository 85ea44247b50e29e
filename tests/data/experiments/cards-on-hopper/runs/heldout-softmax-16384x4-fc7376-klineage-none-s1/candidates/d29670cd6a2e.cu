/*klineage
surface = "cuda"

[[tunable]]
name = "THREADS"
default = 128
values = [64, 128, 256]

[[tunable]]
name = "ROOM"
default = 8192
values = [8192, 32768, 40960]

[[tunable]]
name = "STREAM_STORES"
default = 1
values = [0, 1]

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["THREADS"]
shared = "ROOM"
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, bf16 in and out. A small block owns a row. Rows of 4096 come into shared memory by one bulk
// copy; each warp works against its own maximum, one exchange between the warps corrects it, and each warp sends its contiguous
// part back by a bulk store. Other rows take the general path. ROOM, at least 8192, limits how many blocks are resident.

#include <cuda_bf16.h>

#ifndef THREADS
#define THREADS 128
#endif
#ifndef STREAM_STORES
#define STREAM_STORES 1
#endif

#if THREADS == 64
#define MIN_BLOCKS 10
#elif THREADS == 128
#define MIN_BLOCKS 8
#else
#define MIN_BLOCKS 4
#endif

#define WARPS (THREADS / 32)
#define COLS 4096
#define ROW_BYTES (COLS * 2)
#define PART_BYTES (ROW_BYTES / WARPS)
#define CHUNKS (COLS / (8 * THREADS))
#define FULL_MASK 0xffffffffu
#define LOG2E 1.4426950408889634f
#define MINUS_INFINITY __int_as_float(0xff800000)

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

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

static __device__ __forceinline__ unsigned long long evict_first_policy()
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Announces the row at the barrier and starts its copy. One thread calls it.
static __device__ __forceinline__ void fetch_row(unsigned slot, const __nv_bfloat16 *from, unsigned bar,
                                                 unsigned long long policy)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(ROW_BYTES) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                     slot),
                 "l"(from), "r"(ROW_BYTES), "r"(bar), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ void wait_for(unsigned bar, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

// Sends one warp's part of the row and waits until it has been read out of shared memory. One lane calls it.
static __device__ __forceinline__ void send_part(__nv_bfloat16 *to, unsigned from)
{
#if STREAM_STORES
    const unsigned long long policy = evict_first_policy();
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to), "r"(from),
                 "r"(PART_BYTES), "l"(policy)
                 : "memory");
#else
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(PART_BYTES) : "memory");
#endif
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) softmax(const __nv_bfloat16 *x, __nv_bfloat16 *y, int R, int C)
{
    extern __shared__ __align__(128) unsigned char slot[];
    __shared__ __align__(8) unsigned long long arrival;
    __shared__ float tops[WARPS];
    __shared__ float sums[WARPS];

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int row = int(blockIdx.x);
    if (row >= R)
        return;

    const bool aligned = ((reinterpret_cast<unsigned long long>(x) | reinterpret_cast<unsigned long long>(y)) & 15ull) == 0;

    if (C == COLS && aligned) {
        const unsigned bar = shared_address(&arrival);
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(1) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            fetch_row(shared_address(slot), x + size_t(row) * COLS, bar, evict_first_policy());
        }
        __syncthreads();
        wait_for(bar, 0u);

        // A warp has a contiguous part of the row; lane l has its elements 256 i + 8 l .. + 7.
        uint4 *const mine = reinterpret_cast<uint4 *>(slot + warp * PART_BYTES) + lane;
        uint4 v[CHUNKS];
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i)
            v[i] = mine[i * 32];

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
        const float scale = exp2_fast((top - all_top) * LOG2E) / all_sum;

        // The result takes the place of the elements: every lane overwrites only what it has read itself.
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            uint4 o;
            o.x = pack_pair(e[8 * i + 0] * scale, e[8 * i + 1] * scale);
            o.y = pack_pair(e[8 * i + 2] * scale, e[8 * i + 3] * scale);
            o.z = pack_pair(e[8 * i + 4] * scale, e[8 * i + 5] * scale);
            o.w = pack_pair(e[8 * i + 6] * scale, e[8 * i + 7] * scale);
            mine[i * 32] = o;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0)
            send_part(y + size_t(row) * COLS + warp * (COLS / WARPS), shared_address(slot + warp * PART_BYTES));
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
