/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["384"]
shared = "198656"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128. Causal: the last query of a sequence attends to
// all keys, each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of k and v.
//
// Persistent blocks of three warpgroups. A tile is 128 queries of one head; it walks over blocks of 128 keys from the last one down.
// Warpgroup 0 produces: each of its warps owns one of the two K or two V buffers (and a quarter of each Q tile). Warpgroups 1 and 2
// consume 64 rows each: S = Q Kᵀ of the next block is under way while the softmax of this one is computed, and the two take turns.
//
// All tiles in shared memory are two halves of 64 columns, each of them rows of 128 bytes with the 128-byte swizzle.

#include <cuda_fp16.h>

using u32 = unsigned int;
using u64 = unsigned long long;

constexpr int kD = 128;
constexpr u32 kTileBytes = 128 * 128 * 2;
constexpr u32 kHalfBytes = 128 * 128;
constexpr u32 kOffsetQ = 0;
constexpr u32 kOffsetK = 2 * kTileBytes;
constexpr u32 kOffsetV = 4 * kTileBytes;
constexpr u32 kBarriers = 6 * kTileBytes;
constexpr u32 kKFull = kBarriers;
constexpr u32 kKEmpty = kBarriers + 16;
constexpr u32 kVFull = kBarriers + 32;
constexpr u32 kVEmpty = kBarriers + 48;
constexpr u32 kQFull = kBarriers + 64;
constexpr u32 kQEmpty = kBarriers + 80;
constexpr int kRotation = 32;

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void barrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void barrier_arrive_if(u32 wanted, u32 barrier)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "setp.ne.u32 P1, %1, 0;\n"
                 "@P1 mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}\n" ::"r"(barrier), "r"(wanted) : "memory");
}

__device__ __forceinline__ void turn_wait(int id)
{
    asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void turn_give(int id)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}

// ------------------------------------------------------------------------------------------------------------------- wgmma

__device__ __forceinline__ u64 descriptor(u32 address, u32 leading)
{
    return u64((address & 0x3ffffu) >> 4) | (u64(leading >> 4) << 16) | (u64(1024 >> 4) << 32) | (u64(1) << 62);
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

template <int kCount>
__device__ __forceinline__ void pin(float (&r)[kCount])
{
#pragma unroll
    for (int i = 0; i < kCount; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

template <int kCount>
__device__ __forceinline__ void pin(u32 (&r)[kCount])
{
#pragma unroll
    for (int i = 0; i < kCount; ++i)
        asm volatile("" : "+r"(r[i])::"memory");
}

#define ACC4(d, i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(d, i) ACC4(d, (i)), ACC4(d, (i) + 4), ACC4(d, (i) + 8), ACC4(d, (i) + 12)
#define ACC64(d) ACC16(d, 0), ACC16(d, 16), ACC16(d, 32), ACC16(d, 48)
#define ACC_LIST                                                                                                                  \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                     \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                            \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                            \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// d (+)= a · bᵀ, both in shared memory with k contiguous
__device__ __forceinline__ void wgmma_ss(float (&d)[64], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_LIST ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC64(d)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// d += a · b, a in registers, b in shared memory with n contiguous
__device__ __forceinline__ void wgmma_rs(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_LIST ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ACC64(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(1));
}

__device__ __forceinline__ void issue_scores(float (&s)[64], u64 q, u64 k)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u64 offset = u64((i >> 2) * (kHalfBytes >> 4) + (i & 3) * 2);
        wgmma_ss(s, q + offset, k + offset, i != 0);
    }
    wgmma_commit();
}

__device__ __forceinline__ void issue_values(float (&o)[64], const u32 (&p)[32], u64 v)
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        wgmma_rs(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], v + u64(i * 128));
    wgmma_commit();
}

// ----------------------------------------------------------------------------------------------------------------- softmax

__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ u32 pack_half2(float low, float high)
{
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

// limit: how many columns the thread's first row may see, less the thread's first column; its second row sees eight more
template <bool kMask>
__device__ __forceinline__ void softmax(float (&s)[64], float (&m)[2], float (&l)[2], float (&alpha)[2], float scale2, int limit)
{
    const float lowest = __int_as_float(0xff800000); // -infinity
    if (kMask) {
#pragma unroll
        for (int j = 0; j < 16; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                s[4 * j + e] = 8 * j + e >= limit ? lowest : s[4 * j + e];
                s[4 * j + 2 + e] = 8 * j + e >= limit + 8 ? lowest : s[4 * j + 2 + e];
            }
        }
    }
    float x0 = fmaxf(m[0], s[0]), y0 = s[1], x1 = fmaxf(m[1], s[2]), y1 = s[3];
#pragma unroll
    for (int j = 1; j < 16; ++j) {
        x0 = fmaxf(x0, s[4 * j]);
        y0 = fmaxf(y0, s[4 * j + 1]);
        x1 = fmaxf(x1, s[4 * j + 2]);
        y1 = fmaxf(y1, s[4 * j + 3]);
    }
    x0 = fmaxf(x0, y0);
    x1 = fmaxf(x1, y1);
    x0 = fmaxf(x0, __shfl_xor_sync(0xffffffffu, x0, 1));
    x1 = fmaxf(x1, __shfl_xor_sync(0xffffffffu, x1, 1));
    x0 = fmaxf(x0, __shfl_xor_sync(0xffffffffu, x0, 2));
    x1 = fmaxf(x1, __shfl_xor_sync(0xffffffffu, x1, 2));
    const float u0 = kMask && x0 == lowest ? 0.0f : x0;
    const float u1 = kMask && x1 == lowest ? 0.0f : x1;
    alpha[0] = exp2_fast((m[0] - u0) * scale2);
    alpha[1] = exp2_fast((m[1] - u1) * scale2);
    m[0] = x0;
    m[1] = x1;
    const float n0 = -(u0 * scale2), n1 = -(u1 * scale2);
    float a0 = 0.0f, b0 = 0.0f, a1 = 0.0f, b1 = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        s[4 * j] = exp2_fast(fmaf(s[4 * j], scale2, n0));
        s[4 * j + 1] = exp2_fast(fmaf(s[4 * j + 1], scale2, n0));
        s[4 * j + 2] = exp2_fast(fmaf(s[4 * j + 2], scale2, n1));
        s[4 * j + 3] = exp2_fast(fmaf(s[4 * j + 3], scale2, n1));
        a0 += s[4 * j];
        b0 += s[4 * j + 1];
        a1 += s[4 * j + 2];
        b1 += s[4 * j + 3];
    }
    l[0] = fmaf(l[0], alpha[0], a0 + b0);
    l[1] = fmaf(l[1], alpha[1], a1 + b1);
}

__device__ __forceinline__ void pack_weights(const float (&s)[64], u32 (&p)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        p[i] = pack_half2(s[2 * i], s[2 * i + 1]);
}

// Scores of the next block (the it + 1-th), values of this one (the it-th).
template <bool kMask>
__device__ __forceinline__ void step(float (&o)[64], float (&s)[64], u32 (&p)[32], float (&m)[2], float (&l)[2], float scale2,
                                     int limit, u64 qDesc, u64 kDesc, u64 vDesc, u32 base, int it, int consumer, u32 leader)
{
    const u32 kSlot = u32(it + 1) & 1u, kPhase = (u32(it + 1) >> 1) & 1u;
    const u32 vSlot = u32(it) & 1u, vPhase = (u32(it) >> 1) & 1u;
    float alpha[2];

    barrier_wait(base + kKFull + 8 * kSlot, kPhase);
    turn_wait(1 + consumer);
    pin(s);
    pin(o);
    pin(p);
    wgmma_fence();
    issue_scores(s, qDesc, kDesc + (u64(kSlot) << 11));
    barrier_wait(base + kVFull + 8 * vSlot, vPhase);
    wgmma_fence();
    issue_values(o, p, vDesc + (u64(vSlot) << 11));
    turn_give(2 - consumer);

    wgmma_wait<1>();
    pin(s);
    barrier_arrive_if(leader, base + kKEmpty + 8 * kSlot);
    softmax<kMask>(s, m, l, alpha, scale2, limit);

    wgmma_wait<0>();
    pin(o);
    barrier_arrive_if(leader, base + kVEmpty + 8 * vSlot);
    pack_weights(s, p);
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        o[4 * j] *= alpha[0];
        o[4 * j + 1] *= alpha[0];
        o[4 * j + 2] *= alpha[1];
        o[4 * j + 3] *= alpha[1];
    }
}

// ----------------------------------------------------------------------------------------------------------------- loading

__device__ __forceinline__ void copy16(u32 to, const __half *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void copy16_or_zero(u32 to, const __half *from, u32 bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// One warp brings kCount rows of 128 halves; rows from valid on are zeros. safe is any address that can be read.
template <int kCount>
__device__ __forceinline__ void load_rows(u32 to, const __half *from, size_t stride, int valid, const __half *safe, int lane)
{
    const int column = lane & 15, odd = lane >> 4;
    const u32 swizzled = u32((column & 7) ^ odd) << 4;
    to += u32(column >> 3) * kHalfBytes + u32(odd) * 128u;
    from += size_t(odd) * stride + size_t(column) * 8;
    const size_t twice = 2 * stride;
    if (valid >= kCount) {
#pragma unroll 1
        for (int i = 0; i < kCount / 8; ++i) {
#pragma unroll
            for (u32 u = 0; u < 4; ++u) {
                copy16(to + u * 256u + (swizzled ^ (u << 5)), from);
                from += twice;
            }
            to += 1024u;
        }
    } else {
        int row = odd;
#pragma unroll 1
        for (int i = 0; i < kCount / 8; ++i) {
#pragma unroll
            for (u32 u = 0; u < 4; ++u) {
                const bool inside = row < valid;
                copy16_or_zero(to + u * 256u + (swizzled ^ (u << 5)), inside ? from : safe, inside ? 16u : 0u);
                from += twice;
                row += 2;
            }
            to += 1024u;
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until no more than kPending groups of this thread are under way, shows them to the tensor cores and signals.
template <int kPending>
__device__ __forceinline__ void publish(u32 barrier, int lane)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    barrier_arrive_if(lane == 0 ? 1u : 0u, barrier);
}

// ------------------------------------------------------------------------------------------------------------------- tiles

struct Tile {
    int blocks; // of 128 keys; may be none
    int rows;   // queries of the sequence from the tile's first on
    int first;  // how many keys the first query attends to; may be negative
    int query;  // the first query's token
    int key;    // the sequence's first key's token
    int keys;   // of the sequence
    int head;
};

__device__ __forceinline__ int item_of(int round)
{
    const int grid = int(gridDim.x);
    int place = int(blockIdx.x);
    if (round & 4)
        place = (place + kRotation) % grid;
    if (round & 1)
        place = grid - 1 - place;
    return round * grid + place;
}

__device__ __forceinline__ bool decode(Tile &t, int item, const int *cuQ, const int *cuK, int B, int H, int levels)
{
    const int level = item / (B * H);
    const int rest = item - level * (B * H);
    const int sequence = rest / H;
    t.head = rest - sequence * H;
    const int start = (levels - 1 - level) * 128;
    const int q0 = __ldg(cuQ + sequence), q1 = __ldg(cuQ + sequence + 1);
    const int k0 = __ldg(cuK + sequence), k1 = __ldg(cuK + sequence + 1);
    t.rows = q1 - q0 - start;
    t.query = q0 + start;
    t.key = k0;
    t.keys = k1 - k0;
    t.first = start + 1 + t.keys - (q1 - q0);
    const int last = min(t.keys, t.first + 127);
    t.blocks = last > 0 ? (last + 127) >> 7 : 0;
    return t.rows > 0;
}

// ------------------------------------------------------------------------------------------------------------------ kernel

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, int KV, float scale)
{
    extern __shared__ unsigned char storage[];
    const u32 base = (static_cast<u32>(__cvta_generic_to_shared(storage)) + 1023u) & ~1023u;

    const int lane = int(threadIdx.x) & 31;
    const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x) >> 5, 0);
    const int group = warp >> 2;

    if (threadIdx.x == 0) {
        for (u32 i = 0; i < 2; ++i) {
            barrier_init(base + kKFull + 8 * i, 1);
            barrier_init(base + kVFull + 8 * i, 1);
            barrier_init(base + kQFull + 8 * i, 4);
            barrier_init(base + kKEmpty + 8 * i, 8);
            barrier_init(base + kVEmpty + 8 * i, 8);
            barrier_init(base + kQEmpty + 8 * i, 8);
        }
    }
    int longest = 0;
    for (int b = 0; b < B; ++b)
        longest = max(longest, __ldg(cuQ + b + 1) - __ldg(cuQ + b));
    const int levels = (longest + 127) >> 7;
    const int total = levels * B * H;
    __syncthreads();

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");

        const bool values = warp >= 2;
        const int slot = warp & 1;
        const __half *tensor = values ? v : k;
        const u32 buffer = base + (values ? kOffsetV : kOffsetK) + u32(slot) * kTileBytes;
        const u32 fullBarrier = base + (values ? kVFull : kKFull) + 8u * u32(slot);
        const u32 emptyBarrier = base + (values ? kVEmpty : kKEmpty) + 8u * u32(slot);
        const size_t keyStride = size_t(KV) * kD, queryStride = size_t(H) * kD;
        const int shared = H / KV;

        int it = 0, tiles = 0;
        for (int round = 0;; ++round) {
            const int item = item_of(round);
            if (item >= total)
                break;
            Tile t;
            if (!decode(t, item, cuQ, cuK, B, H, levels) || t.blocks == 0)
                continue;

            const u32 qSlot = u32(tiles) & 1u;
            const u32 queryBarrier = base + kQFull + 8u * qSlot;
            barrier_wait(base + kQEmpty + 8u * qSlot, ((u32(tiles) >> 1) & 1u) ^ 1u);
            load_rows<32>(base + kOffsetQ + qSlot * kTileBytes + u32(warp) * (32u * 128u),
                          q + size_t(t.query + warp * 32) * queryStride + size_t(t.head) * kD, queryStride,
                          t.rows - warp * 32, q, lane);
            bool pending = true;
            ++tiles;

            const __half *source = tensor + size_t(t.key) * keyStride + size_t(t.head / shared) * kD;
            for (int n = t.blocks - 1; n >= 0; --n, ++it) {
                if ((it & 1) != slot)
                    continue;
                if (pending && it >= 2) {
                    publish<0>(queryBarrier, lane);
                    pending = false;
                }
                barrier_wait(emptyBarrier, ((u32(it) >> 1) & 1u) ^ 1u);
                load_rows<128>(buffer, source + size_t(n) * 128 * keyStride, keyStride, t.keys - n * 128, tensor, lane);
                if (pending) {
                    publish<1>(queryBarrier, lane);
                    pending = false;
                }
                publish<0>(fullBarrier, lane);
            }
            if (pending)
                publish<0>(queryBarrier, lane);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");

        const int consumer = group - 1;
        const u32 leader = lane == 0 ? 1u : 0u;
        const int quad = lane & 3;
        const int row = consumer * 64 + (warp & 3) * 16 + (lane >> 2);
        const float scale2 = scale * 1.4426950408889634f;
        const u64 qBase = descriptor(base + kOffsetQ + u32(consumer) * (64u * 128u), 16);
        const u64 kDesc = descriptor(base + kOffsetK, 16);
        const u64 vDesc = descriptor(base + kOffsetV, kHalfBytes);

        if (consumer == 1)
            turn_give(1);

        float o[64], s[64];
        u32 p[32];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            s[i] = 0.0f;

        int it = 0, tiles = 0;
        for (int round = 0;; ++round) {
            const int item = item_of(round);
            if (item >= total)
                break;
            Tile t;
            if (!decode(t, item, cuQ, cuK, B, H, levels))
                continue;

            float m[2], l[2];
            m[0] = m[1] = __int_as_float(0xff800000);
            l[0] = l[1] = 0.0f;
#pragma unroll
            for (int i = 0; i < 64; ++i)
                o[i] = 0.0f;

            if (t.blocks > 0) {
                const u32 qSlot = u32(tiles) & 1u;
                const u64 qDesc = qBase + (u64(qSlot) << 11);
                const int limit = t.first + row - 2 * quad;
                const int full = (t.first + consumer * 64) >> 7; // blocks before this one need no mask

                barrier_wait(base + kQFull + 8 * qSlot, (u32(tiles) >> 1) & 1u);
                barrier_wait(base + kKFull + 8 * (u32(it) & 1u), (u32(it) >> 1) & 1u);
                pin(s);
                wgmma_fence();
                issue_scores(s, qDesc, kDesc + (u64(u32(it) & 1u) << 11));
                wgmma_wait<0>();
                pin(s);
                barrier_arrive_if(leader, base + kKEmpty + 8 * (u32(it) & 1u));
                {
                    float alpha[2];
                    softmax<true>(s, m, l, alpha, scale2, limit - (t.blocks - 1) * 128);
                }
                pack_weights(s, p);

                int n = t.blocks - 2;
#pragma unroll 1
                for (; n >= 0 && n >= full; --n, ++it)
                    step<true>(o, s, p, m, l, scale2, limit - n * 128, qDesc, kDesc, vDesc, base, it, consumer, leader);
#pragma unroll 1
                for (; n >= 0; --n, ++it)
                    step<false>(o, s, p, m, l, scale2, 0, qDesc, kDesc, vDesc, base, it, consumer, leader);

                barrier_arrive_if(leader, base + kQEmpty + 8 * qSlot);
                ++tiles;

                barrier_wait(base + kVFull + 8 * (u32(it) & 1u), (u32(it) >> 1) & 1u);
                pin(o);
                pin(p);
                wgmma_fence();
                issue_values(o, p, vDesc + (u64(u32(it) & 1u) << 11));
                wgmma_wait<0>();
                pin(o);
                barrier_arrive_if(leader, base + kVEmpty + 8 * (u32(it) & 1u));
                ++it;
            }

            float inverse[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float sum = l[r];
                sum += __shfl_xor_sync(0xffffffffu, sum, 1);
                sum += __shfl_xor_sync(0xffffffffu, sum, 2);
                inverse[r] = sum > 0.0f ? 1.0f / sum : 0.0f;
            }

            // The four threads of a row exchange pieces, so that each one stores 16 bytes and all of them 64 in a row.
            __half *target = out + (size_t(t.query + row) * H + t.head) * kD + quad * 8;
            const bool odd = (lane & 1) != 0, high = (lane & 2) != 0;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const bool inside = row + 8 * r < t.rows;
                __half *line = target + size_t(8 * r) * H * kD;
#pragma unroll
                for (int g = 0; g < 4; ++g) {
                    u32 w[4];
#pragma unroll
                    for (int b = 0; b < 4; ++b)
                        w[b] = pack_half2(o[(4 * g + b) * 4 + 2 * r] * inverse[r], o[(4 * g + b) * 4 + 2 * r + 1] * inverse[r]);
                    const u32 c0 = __shfl_xor_sync(0xffffffffu, odd ? w[0] : w[1], 1);
                    const u32 c1 = __shfl_xor_sync(0xffffffffu, odd ? w[2] : w[3], 1);
                    const u32 x0 = odd ? c0 : w[0], x1 = odd ? w[1] : c0;
                    const u32 x2 = odd ? c1 : w[2], x3 = odd ? w[3] : c1;
                    const u32 d0 = __shfl_xor_sync(0xffffffffu, high ? x0 : x2, 2);
                    const u32 d1 = __shfl_xor_sync(0xffffffffu, high ? x1 : x3, 2);
                    const u32 z0 = high ? d0 : x0, z1 = high ? d1 : x1;
                    const u32 z2 = high ? x2 : d0, z3 = high ? x3 : d1;
                    if (inside)
                        *reinterpret_cast<uint4 *>(line + g * 32) = make_uint4(z0, z1, z2, z3);
                }
            }
        }
    }
}
