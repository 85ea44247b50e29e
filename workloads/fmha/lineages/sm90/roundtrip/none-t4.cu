/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
cluster = ["2"]
block = ["384"]
shared = "230528"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A cluster of two blocks owns 256 queries of one head at a time, 128 a block, 64 a consumer warpgroup. One
// thread of a third warpgroup loads: q (two buffers), and k and v in blocks of 128 keys through a ring of
// tiles, in the order in which they are used. Each block of the cluster loads one half of each tile of k and
// v (64 of the 128 columns) and sends it to both.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// A tile is 128 rows of 128 numbers, as two halves of 128 rows of 64 numbers (128 bytes, swizzled).
constexpr u32 TILE = 32768, HALF = 16384, STAGES = 5;
constexpr u32 Q_AT = 0, RING_AT = 2 * TILE, BARRIERS_AT = RING_AT + STAGES * TILE;
constexpr u32 Q_FULL = BARRIERS_AT, Q_EMPTY = Q_FULL + 16, FULL = Q_EMPTY + 16, EMPTY = FULL + 8 * STAGES;

// ---------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void initBarrier(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void expectBytes(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void waitFor(u32 barrier, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

// Lanes 0 and 1 arrive, each at its own block of the cluster (the address is mapped already).
__device__ __forceinline__ void releaseBoth(u32 mapped, u32 lane)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.lt.u32 p, %1, 2;\n"
                 "@p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];\n"
                 "}\n" ::"r"(mapped), "r"(lane)
                 : "memory");
}

__device__ __forceinline__ void releaseOwn(u32 barrier, u32 lane)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.u32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}\n" ::"r"(barrier), "r"(lane)
                 : "memory");
}

__device__ __forceinline__ void clusterSync()
{
    asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
}

__device__ __forceinline__ void turnWait(int id)
{
    asm volatile("bar.sync %0, 256;\n" ::"r"(id) : "memory");
}

__device__ __forceinline__ void turnPass(int id)
{
    asm volatile("bar.arrive %0, 256;\n" ::"r"(id) : "memory");
}

// ------------------------------------------------------------------------------------------------- loads

__device__ __forceinline__ void load(u32 to, const TensorMap *map, u32 barrier, int column, int head, int token)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];\n" ::"r"(to),
                 "l"(reinterpret_cast<u64>(map)), "r"(barrier), "r"(column), "r"(head), "r"(token)
                 : "memory");
}

__device__ __forceinline__ void loadBoth(u32 to, const TensorMap *map, u32 barrier, int column, int head, int token)
{
    const unsigned short mask = 3;
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%4, %5, %6}], [%2], %3;\n" ::"r"(to),
                 "l"(reinterpret_cast<u64>(map)), "r"(barrier), "h"(mask), "r"(column), "r"(head), "r"(token)
                 : "memory");
}

// ---------------------------------------------------------------------------------------------- products

#define D64                                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                  \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                         \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                         \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define F8(d, i)                                                                                               \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),                \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define F64(d) F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56)

// Both operands in shared memory, both with the inner dimension contiguous.
__device__ __forceinline__ void multiplyShared(float (&d)[64], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " D64 ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : F64(d)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// a in registers, b in shared memory with the columns contiguous.
__device__ __forceinline__ void multiplyRegisters(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " D64
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : F64(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void productsBegin()
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ __forceinline__ void productsCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

template <int N> __device__ __forceinline__ void productsWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}

// Nothing that makes or uses these values moves past this place.
template <int N> __device__ __forceinline__ void pin(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i])::"memory");
}

template <int N> __device__ __forceinline__ void pin(u32 (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(x[i])::"memory");
}

// 128-byte swizzle, 1024 bytes from eight rows to the next eight.
__device__ __forceinline__ u64 descriptor(u32 low)
{
    return (u64(0x40000040u) << 32) | low;
}

__device__ __forceinline__ u32 lowWord(u32 address, u32 leading)
{
    return ((address & 0x3ffffu) >> 4) | (leading << 16);
}

__device__ __forceinline__ void scores(float (&s)[64], u32 qLow, u32 kLow)
{
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const u32 offset = (step >> 2) * (HALF >> 4) + (step & 3) * 2;
        multiplyShared(s, descriptor(qLow + offset), descriptor(kLow + offset), step != 0);
    }
}

__device__ __forceinline__ void weigh(float (&o)[64], const u32 (&p)[32], u32 vLow)
{
#pragma unroll
    for (int step = 0; step < 8; ++step)
        multiplyRegisters(o, p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3],
                          descriptor(vLow + step * 128), 1);
}

// ----------------------------------------------------------------------------------------------- numbers

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const u32 *>(&both);
}

__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quadSum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// The largest scores of a thread's two rows, over the block and what came before.
__device__ __forceinline__ void largest(const float (&s)[64], float &m0, float &m1)
{
    float x0 = fmaxf(m0, s[0]), y0 = s[1], x1 = fmaxf(m1, s[2]), y1 = s[3];
#pragma unroll
    for (int j = 1; j < 16; ++j) {
        x0 = fmaxf(x0, s[4 * j]);
        y0 = fmaxf(y0, s[4 * j + 1]);
        x1 = fmaxf(x1, s[4 * j + 2]);
        y1 = fmaxf(y1, s[4 * j + 3]);
    }
    m0 = quadMax(fmaxf(x0, y0));
    m1 = quadMax(fmaxf(x1, y1));
}

// Turns the scores of eight keys (two of them this thread's, in two rows) into weights.
__device__ __forceinline__ void weights(float (&s)[64], int j, float c, float mc0, float mc1, float &l0, float &l1)
{
    s[4 * j] = power(fmaf(s[4 * j], c, -mc0));
    s[4 * j + 1] = power(fmaf(s[4 * j + 1], c, -mc0));
    s[4 * j + 2] = power(fmaf(s[4 * j + 2], c, -mc1));
    s[4 * j + 3] = power(fmaf(s[4 * j + 3], c, -mc1));
    l0 += s[4 * j];
    l1 += s[4 * j + 2];
    l0 += s[4 * j + 1];
    l1 += s[4 * j + 3];
}

// ------------------------------------------------------------------------------------------------- tiles

// Finds the sequence of a tile; tiles are asked for in ascending order.
struct Walk {
    int sequence, begin, end, rows, q0, q1, k0, keys;

    __device__ __forceinline__ Walk() : sequence(-1), begin(0), end(0), rows(1), q0(0), q1(0), k0(0), keys(0) {}

    __device__ __forceinline__ bool find(int tile, const int *cuQ, const int *cuK, int B, int H)
    {
        while (tile >= end) {
            if (++sequence >= B)
                return false;
            q0 = cuQ[sequence];
            q1 = cuQ[sequence + 1];
            k0 = cuK[sequence];
            keys = cuK[sequence + 1] - k0;
            rows = (q1 - q0 + 255) >> 8;
            begin = end;
            end += rows * H;
        }
        return true;
    }
};

__device__ __forceinline__ void advance(u32 &slot, u32 &phase)
{
    if (++slot == STAGES) {
        slot = 0;
        phase ^= 1;
    }
}

extern __shared__ unsigned char memory[];

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, uint4 *out,
                                                               int B, int H, float scale)
{
    const u32 base = (u32(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x >> 7), 0);

    if (threadIdx.x == 0) {
        for (u32 i = 0; i < 2; ++i) {
            initBarrier(base + Q_FULL + 8 * i, 1);
            initBarrier(base + Q_EMPTY + 8 * i, 8);
        }
        for (u32 i = 0; i < STAGES; ++i) {
            initBarrier(base + FULL + 8 * i, 1);
            initBarrier(base + EMPTY + 8 * i, 16);
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    __syncthreads();
    clusterSync();

    const int cluster = blockIdx.x >> 1, clusters = gridDim.x >> 1;
    Walk walk;
    u32 slot = 0, phase = 0, use = 0;

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        if (threadIdx.x == 0) {
            const int column = rank * 64;
#pragma unroll 1
            for (int tile = cluster; walk.find(tile, cuQ, cuK, B, H); tile += clusters) {
                const int rest = tile - walk.begin, head = rest / walk.rows;
                const int token = walk.q0 + (rest - head * walk.rows) * 256 + int(rank) * 128;
                const int n = max(1, (walk.keys + 127) >> 7);

                const u32 q = use & 1, qFull = base + Q_FULL + 8 * q, qTo = base + Q_AT + q * TILE;
                waitFor(base + Q_EMPTY + 8 * q, ((use >> 1) & 1) ^ 1);
                expectBytes(qFull, TILE);
                load(qTo, &mapQ, qFull, 0, head, token);
                load(qTo + HALF, &mapQ, qFull, 64, head, token);
                ++use;

                // k of the last block, then k of each block with v of the block before, then v of the first.
                int key = walk.k0 + (n - 1) * 128;
#pragma unroll 1
                for (int i = 0; i <= n; ++i) {
                    if (i < n) {
                        const u32 full = base + FULL + 8 * slot;
                        waitFor(base + EMPTY + 8 * slot, phase ^ 1);
                        expectBytes(full, TILE);
                        loadBoth(base + RING_AT + slot * TILE + rank * HALF, &mapK, full, column, head, key);
                        advance(slot, phase);
                    }
                    if (i > 0) {
                        const u32 full = base + FULL + 8 * slot;
                        waitFor(base + EMPTY + 8 * slot, phase ^ 1);
                        expectBytes(full, TILE);
                        loadBoth(base + RING_AT + slot * TILE + rank * HALF, &mapV, full, column, head, key + 128);
                        advance(slot, phase);
                    }
                    key -= 128;
                }
            }
        }
        clusterSync();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
        const int member = group - 1;
        const u32 lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
        const float c = scale * 1.4426950408889634f;
        u32 mapped;
        {
            const u32 target = lane & 1;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(mapped) : "r"(base), "r"(target));
        }
        const int mine = 1 + member, other = 2 - member;
        if (member == 1)
            turnPass(other);

        float o[64];
        u32 p[32];

#pragma unroll 1
        for (int tile = cluster; walk.find(tile, cuQ, cuK, B, H); tile += clusters) {
            const int rest = tile - walk.begin, head = rest / walk.rows;
            const int token = walk.q0 + (rest - head * walk.rows) * 256 + int(rank) * 128 + member * 64;
            const int n = max(1, (walk.keys + 127) >> 7), valid = walk.keys - (n - 1) * 128;
            const u32 q = use & 1;
            const u32 qLow = lowWord(base + Q_AT + q * TILE + member * 8192, 1);

            float m0 = __int_as_float(0xff800000), m1 = m0, l0 = 0.0f, l1 = 0.0f;
#pragma unroll
            for (int i = 0; i < 64; ++i)
                o[i] = 0.0f;

            // The last block of keys comes first, and alone may be partial.
            waitFor(base + Q_FULL + 8 * q, (use >> 1) & 1);
            waitFor(base + FULL + 8 * slot, phase);
            {
                float s[64];
                productsBegin();
                scores(s, qLow, lowWord(base + RING_AT + slot * TILE, 1));
                productsCommit();
                productsWait<0>();
                pin(s);
                releaseBoth(mapped + EMPTY + 8 * slot, lane);
                advance(slot, phase);

                if (valid < 128) {
                    const float none = __int_as_float(0xff800000);
#pragma unroll
                    for (int j = 0; j < 16; ++j) {
                        const int column = 8 * j + 2 * int(lane & 3);
                        if (column >= valid) {
                            s[4 * j] = none;
                            s[4 * j + 2] = none;
                        }
                        if (column + 1 >= valid) {
                            s[4 * j + 1] = none;
                            s[4 * j + 3] = none;
                        }
                    }
                }
                largest(s, m0, m1);
                const float mc0 = valid > 0 ? m0 * c : 0.0f, mc1 = valid > 0 ? m1 * c : 0.0f;
#pragma unroll
                for (int j = 0; j < 16; ++j)
                    weights(s, j, c, mc0, mc1, l0, l1);
#pragma unroll
                for (int j = 0; j < 16; ++j) {
                    p[2 * j] = pack(s[4 * j], s[4 * j + 1]);
                    p[2 * j + 1] = pack(s[4 * j + 2], s[4 * j + 3]);
                }
            }

#pragma unroll 1
            for (int i = 1; i < n; ++i) {
                const u32 kSlot = slot, kPhase = phase;
                advance(slot, phase);
                const u32 vSlot = slot, vPhase = phase;
                advance(slot, phase);
                const u32 kLow = lowWord(base + RING_AT + kSlot * TILE, 1);
                const u32 vLow = lowWord(base + RING_AT + vSlot * TILE, HALF >> 4);
                waitFor(base + FULL + 8 * kSlot, kPhase);
                waitFor(base + FULL + 8 * vSlot, vPhase);

                float s[64];
                turnWait(mine);
                pin(o);
                pin(p);
                productsBegin();
                scores(s, qLow, kLow);
                productsCommit();
                weigh(o, p, vLow);
                productsCommit();
                turnPass(other);

                productsWait<1>();
                pin(s);
                releaseBoth(mapped + EMPTY + 8 * kSlot, lane);
                const float before0 = m0, before1 = m1;
                largest(s, m0, m1);
                const float scale0 = power((before0 - m0) * c), scale1 = power((before1 - m1) * c);
                const float mc0 = m0 * c, mc1 = m1 * c;
                l0 *= scale0;
                l1 *= scale1;
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    weights(s, j, c, mc0, mc1, l0, l1);

                productsWait<0>();
                pin(o);
                pin(p);
                pin(s);
                releaseBoth(mapped + EMPTY + 8 * vSlot, lane);
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    weights(s, 8 + j, c, mc0, mc1, l0, l1);
#pragma unroll
                    for (int e = 0; e < 8; e += 4) {
                        o[8 * j + e] *= scale0;
                        o[8 * j + e + 1] *= scale0;
                        o[8 * j + e + 2] *= scale1;
                        o[8 * j + e + 3] *= scale1;
                    }
                    p[2 * j] = pack(s[4 * j], s[4 * j + 1]);
                    p[2 * j + 1] = pack(s[4 * j + 2], s[4 * j + 3]);
                }
#pragma unroll
                for (int j = 8; j < 16; ++j) {
                    p[2 * j] = pack(s[4 * j], s[4 * j + 1]);
                    p[2 * j + 1] = pack(s[4 * j + 2], s[4 * j + 3]);
                }
            }

            // All scores are there: q's buffer is free.
            releaseOwn(base + Q_EMPTY + 8 * q, lane);
            ++use;

            waitFor(base + FULL + 8 * slot, phase);
            pin(o);
            pin(p);
            productsBegin();
            weigh(o, p, lowWord(base + RING_AT + slot * TILE, HALF >> 4));
            productsCommit();
            l0 = quadSum(l0);
            l1 = quadSum(l1);
            const float inverse0 = l0 > 0.0f ? 1.0f / l0 : 0.0f, inverse1 = l1 > 0.0f ? 1.0f / l1 : 0.0f;
            productsWait<0>();
            pin(o);
            pin(p);
            releaseBoth(mapped + EMPTY + 8 * slot, lane);
            advance(slot, phase);

            // Four neighbouring lanes exchange words until each has 16 bytes side by side.
            const bool odd = lane & 1, high = lane & 2;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = token + int(warp * 16 + (lane >> 2)) + 8 * half;
                const float factor = half ? inverse1 : inverse0;
                uint4 *const to = out + (size_t(row) * H + head) * 16 + (lane & 3);
#pragma unroll
                for (int g = 0; g < 4; ++g) {
                    u32 w[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        w[i] = pack(o[16 * g + 4 * i + 2 * half] * factor, o[16 * g + 4 * i + 2 * half + 1] * factor);
                    u32 x = __shfl_xor_sync(0xffffffffu, odd ? w[0] : w[1], 1);
                    u32 y = __shfl_xor_sync(0xffffffffu, odd ? w[2] : w[3], 1);
                    const u32 a0 = odd ? x : w[0], a1 = odd ? w[1] : x, a2 = odd ? y : w[2], a3 = odd ? w[3] : y;
                    x = __shfl_xor_sync(0xffffffffu, high ? a0 : a2, 2);
                    y = __shfl_xor_sync(0xffffffffu, high ? a1 : a3, 2);
                    const uint4 chunk = high ? make_uint4(x, y, a2, a3) : make_uint4(a0, a1, x, y);
                    if (row < walk.q1)
                        to[4 * g] = chunk;
                }
            }
        }
        clusterSync();
    }
}
