/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 2
values = [2, 3]

[[launch]]
kernel = "softmax"
grid = ["sm_count"]
block = ["256"]
shared = "8 * 8192 * STAGES"
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, bf16 in and out. Persistent blocks; a warp owns a row. Rows of 4096 come through a ring of
// slots in shared memory that belongs to the warp alone and is filled ahead by bulk copies; other rows take the general path.

#include <cuda_bf16.h>

#ifndef STAGES
#define STAGES 2
#endif

#define WARPS 8
#define COLS 4096
#define ROW_BYTES (COLS * 2)
#define CHUNKS (COLS / 256)
#define FULL_MASK 0xffffffffu
#define LOG2E 1.4426950408889634f

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

// Announces one row at the barrier and starts its copy. One lane calls it.
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

extern "C" __global__ void __launch_bounds__(256, 1) softmax(const __nv_bfloat16 *x, __nv_bfloat16 *y, int R, int C)
{
    extern __shared__ __align__(128) unsigned char ring[];
    __shared__ __align__(8) unsigned long long bars[WARPS * STAGES];

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int first = warp * int(gridDim.x) + int(blockIdx.x);
    const int stride = WARPS * int(gridDim.x);

    const bool aligned = ((reinterpret_cast<unsigned long long>(x) | reinterpret_cast<unsigned long long>(y)) & 15ull) == 0;

    if (C == COLS && aligned) {
        unsigned char *const mine = ring + warp * (STAGES * ROW_BYTES);
        const unsigned mine_at = shared_address(mine);
        const unsigned bars_at = shared_address(bars + warp * STAGES);

        unsigned long long policy;
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));

        if (lane == 0) {
#pragma unroll
            for (int s = 0; s < STAGES; ++s)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bars_at + 8u * s), "r"(1) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#pragma unroll
            for (int s = 0; s < STAGES; ++s) {
                const int row = first + s * stride;
                if (row < R)
                    fetch_row(mine_at + unsigned(s * ROW_BYTES), x + size_t(row) * COLS, bars_at + 8u * s, policy);
            }
        }
        __syncwarp();

        int stage = 0;
        unsigned parity = 0;
        for (int row = first; row < R; row += stride) {
            const unsigned bar = bars_at + 8u * unsigned(stage);
            wait_for(bar, parity);
            __syncwarp();

            // The row, into registers: lane l has the elements 256 i + 8 l .. + 7.
            const uint4 *slot = reinterpret_cast<const uint4 *>(mine + stage * ROW_BYTES) + lane;
            uint4 v[CHUNKS];
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i)
                v[i] = slot[i * 32];

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

            // The maximum depends on all that the warp has read: the slot is free.
            __syncwarp();
            const int next = row + STAGES * stride;
            if (lane == 0 && next < R)
                fetch_row(mine_at + unsigned(stage * ROW_BYTES), x + size_t(next) * COLS, bar, policy);
            __syncwarp();

            float e[CHUNKS * 8];
            float part[8];
#pragma unroll
            for (int j = 0; j < 8; ++j)
                part[j] = 0.0f;
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) {
                const unsigned w[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const float lo = exp2_fast((low_of(w[j]) - top) * LOG2E);
                    const float hi = exp2_fast((high_of(w[j]) - top) * LOG2E);
                    e[8 * i + 2 * j] = lo;
                    e[8 * i + 2 * j + 1] = hi;
                    part[2 * j] += lo;
                    part[2 * j + 1] += hi;
                }
            }
            const float sum =
                warp_sum(((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])));
            const float scale = 1.0f / sum;

            uint4 *out = reinterpret_cast<uint4 *>(y + size_t(row) * COLS) + lane;
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) {
                uint4 o;
                o.x = pack_pair(e[8 * i + 0] * scale, e[8 * i + 1] * scale);
                o.y = pack_pair(e[8 * i + 2] * scale, e[8 * i + 3] * scale);
                o.z = pack_pair(e[8 * i + 4] * scale, e[8 * i + 5] * scale);
                o.w = pack_pair(e[8 * i + 6] * scale, e[8 * i + 7] * scale);
                out[i * 32] = o;
            }

            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1u;
            }
        }
        return;
    }

    // Any other shape: a warp a row, three passes, the later ones out of the caches.
    for (int row = first; row < R; row += stride) {
        const __nv_bfloat16 *in = x + size_t(row) * C;
        __nv_bfloat16 *out = y + size_t(row) * C;

        float top = __int_as_float(0xff800000); // -infinity
        for (int c = lane; c < C; c += 32)
            top = fmaxf(top, __bfloat162float(in[c]));
        top = warp_max(top);

        float sum = 0.0f;
        for (int c = lane; c < C; c += 32)
            sum += exp2_fast((__bfloat162float(in[c]) - top) * LOG2E);
        sum = warp_sum(sum);
        const float scale = 1.0f / sum;

        for (int c = lane; c < C; c += 32)
            out[c] = __float2bfloat16(exp2_fast((__bfloat162float(in[c]) - top) * LOG2E) * scale);
    }
}
