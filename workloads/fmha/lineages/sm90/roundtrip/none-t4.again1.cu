/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["512"]
shared = "181376"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [64, 1, 64]
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
// A block owns 192 queries of one head at a time, 64 a consumer warpgroup. A fourth warpgroup loads: one
// thread k and v, in blocks of 128 keys and two stages each, and one thread a consumer its q. The three
// consumers are not ordered among themselves: while one turns scores into weights, the others multiply.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// A tile of k or v is 128 rows of 128 numbers, as two halves of 128 rows of 64 numbers (128 bytes, swizzled);
// a consumer's q is the same with 64 rows.
constexpr u32 TILE = 32768, HALF = 16384, Q_SIZE = 16384, Q_HALF = 8192;
constexpr u32 Q_AT = 0, K_AT = 3 * Q_SIZE, V_AT = K_AT + 2 * TILE, BARRIERS_AT = V_AT + 2 * TILE;
constexpr u32 Q_FULL = BARRIERS_AT, Q_EMPTY = Q_FULL + 24, K_FULL = Q_EMPTY + 24, K_EMPTY = K_FULL + 16,
              V_FULL = K_EMPTY + 16, V_EMPTY = V_FULL + 16;
constexpr int QUERIES = 192;

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

// One arrival a warp.
__device__ __forceinline__ void release(u32 barrier, u32 lane)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.u32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}\n" ::"r"(barrier), "r"(lane)
                 : "memory");
}

// ------------------------------------------------------------------------------------------------- loads

__device__ __forceinline__ void load(u32 to, const TensorMap *map, u32 barrier, int column, int head, int token)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];\n" ::"r"(to),
                 "l"(reinterpret_cast<u64>(map)), "r"(barrier), "r"(column), "r"(head), "r"(token)
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
        const u32 inside = (step & 3) * 2;
        multiplyShared(s, descriptor(qLow + (step >> 2) * (Q_HALF >> 4) + inside),
                       descriptor(kLow + (step >> 2) * (HALF >> 4) + inside), step != 0);
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

// ------------------------------------------------------------------------------------------------- tiles

// Finds the sequence of a tile; tiles are asked for in ascending order.
struct Walk {
    int sequence, begin, rows, q0, q1, k0, keys;

    __device__ __forceinline__ Walk() : sequence(0), begin(0), rows(1), q0(0), q1(0), k0(0), keys(0) {}

    __device__ __forceinline__ bool find(int tile, const int *cuQ, const int *cuK, int B, int H)
    {
        while (sequence < B) {
            q0 = cuQ[sequence];
            q1 = cuQ[sequence + 1];
            rows = (q1 - q0 + QUERIES - 1) / QUERIES;
            const int end = begin + rows * H;
            if (tile < end) {
                k0 = cuK[sequence];
                keys = cuK[sequence + 1] - k0;
                return true;
            }
            begin = end;
            ++sequence;
        }
        return false;
    }
};

// In each round, the blocks take as many neighbouring tiles as there are blocks, turned by one place from
// round to round, so that the tiles at the ends of sequences do not always fall to the same blocks.
__device__ __forceinline__ void nextTile(int &tile, int &place)
{
    tile += int(gridDim.x) + 1;
    if (++place == int(gridDim.x)) {
        place = 0;
        tile -= int(gridDim.x);
    }
}

extern __shared__ unsigned char memory[];

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, uint4 *out,
                                                               int B, int H, float scale)
{
    const u32 base = (u32(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x >> 7), 0);

    if (threadIdx.x == 0) {
        for (u32 i = 0; i < 3; ++i) {
            initBarrier(base + Q_FULL + 8 * i, 1);
            initBarrier(base + Q_EMPTY + 8 * i, 4);
        }
        for (u32 i = 0; i < 2; ++i) {
            initBarrier(base + K_FULL + 8 * i, 1);
            initBarrier(base + K_EMPTY + 8 * i, 12);
            initBarrier(base + V_FULL + 8 * i, 1);
            initBarrier(base + V_EMPTY + 8 * i, 12);
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    __syncthreads();

    Walk walk;
    int place = blockIdx.x, tile = blockIdx.x;

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;\n");
        if (threadIdx.x == 0) {
            // Keys and values.
            u32 step = 0;
#pragma unroll 1
            for (; walk.find(tile, cuQ, cuK, B, H); nextTile(tile, place)) {
                const int head = (tile - walk.begin) / walk.rows;
                int key = walk.k0;
#pragma unroll 1
                for (int remaining = walk.keys; remaining > 0; remaining -= 128) {
                    const u32 stage = step & 1, parity = ((step >> 1) & 1) ^ 1;
                    const u32 kFull = base + K_FULL + 8 * stage, vFull = base + V_FULL + 8 * stage;
                    const u32 kTo = base + K_AT + stage * TILE, vTo = base + V_AT + stage * TILE;
                    waitFor(base + K_EMPTY + 8 * stage, parity);
                    expectBytes(kFull, TILE);
                    load(kTo, &mapK, kFull, 0, head, key);
                    load(kTo + HALF, &mapK, kFull, 64, head, key);
                    waitFor(base + V_EMPTY + 8 * stage, parity);
                    expectBytes(vFull, TILE);
                    load(vTo, &mapV, vFull, 0, head, key);
                    load(vTo + HALF, &mapV, vFull, 64, head, key);
                    key += 128;
                    ++step;
                }
            }
        } else if ((threadIdx.x & 31) == 0) {
            // The queries of one consumer.
            const int member = int(threadIdx.x >> 5) - 1;
            const u32 full = base + Q_FULL + 8 * member, empty = base + Q_EMPTY + 8 * member;
            const u32 to = base + Q_AT + member * Q_SIZE;
            u32 use = 0;
#pragma unroll 1
            for (; walk.find(tile, cuQ, cuK, B, H); nextTile(tile, place)) {
                const int rest = tile - walk.begin, head = rest / walk.rows;
                const int token = walk.q0 + (rest - head * walk.rows) * QUERIES + member * 64;
                if (token < walk.q1) {
                    waitFor(empty, (use & 1) ^ 1);
                    expectBytes(full, Q_SIZE);
                    load(to, &mapQ, full, 0, head, token);
                    load(to + Q_HALF, &mapQ, full, 64, head, token);
                    ++use;
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;\n");
        const int member = group - 1;
        const u32 lane = threadIdx.x & 31;
        const float c = scale * 1.4426950408889634f;
        const u32 qLow = lowWord(base + Q_AT + member * Q_SIZE, 1);
        u32 step = 0, use = 0;

#pragma unroll 1
        for (; walk.find(tile, cuQ, cuK, B, H); nextTile(tile, place)) {
            const int rest = tile - walk.begin, head = rest / walk.rows;
            const int token = walk.q0 + (rest - head * walk.rows) * QUERIES + member * 64;

            if (token >= walk.q1) {
                // No queries here: only keep up with the others.
#pragma unroll 1
                for (int remaining = walk.keys; remaining > 0; remaining -= 128) {
                    const u32 stage = step & 1, parity = (step >> 1) & 1;
                    waitFor(base + K_FULL + 8 * stage, parity);
                    release(base + K_EMPTY + 8 * stage, lane);
                    waitFor(base + V_FULL + 8 * stage, parity);
                    release(base + V_EMPTY + 8 * stage, lane);
                    ++step;
                }
                continue;
            }

            float o[64];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                o[i] = 0.0f;
            // Below every score, but finite.
            float m0 = -1e30f, m1 = -1e30f, l0 = 0.0f, l1 = 0.0f;

            waitFor(base + Q_FULL + 8 * member, use & 1);
            ++use;
            if (walk.keys <= 0)
                release(base + Q_EMPTY + 8 * member, lane);
            if (step == 0 && walk.keys > 0) {
                // The consumers start apart from each other, so that their softmaxes do not coincide.
                waitFor(base + K_FULL, 0);
                const u32 start = u32(clock()), pause = 1000u * u32(member);
                while (u32(clock()) - start < pause)
                    ;
                __syncwarp();
            }

#pragma unroll 1
            for (int remaining = walk.keys; remaining > 0; remaining -= 128) {
                float s[64];
                {
                    const u32 stage = step & 1;
                    waitFor(base + K_FULL + 8 * stage, (step >> 1) & 1);
                    productsBegin();
                    scores(s, qLow, lowWord(base + K_AT + stage * TILE, 1));
                    productsCommit();
                    productsWait<0>();
                    pin(s);
                    release(base + K_EMPTY + 8 * stage, lane);
                }
                // All scores are there: q's place is free.
                if (remaining <= 128)
                    release(base + Q_EMPTY + 8 * member, lane);

                if (remaining < 128) {
                    const float none = __int_as_float(0xff800000);
#pragma unroll
                    for (int j = 0; j < 16; ++j) {
                        const int column = 8 * j + 2 * int(lane & 3);
                        if (column >= remaining) {
                            s[4 * j] = none;
                            s[4 * j + 2] = none;
                        }
                        if (column + 1 >= remaining) {
                            s[4 * j + 1] = none;
                            s[4 * j + 3] = none;
                        }
                    }
                }

                u32 p[32];
                {
                    const float before0 = m0, before1 = m1;
                    largest(s, m0, m1);
                    const float scale0 = power((before0 - m0) * c), scale1 = power((before1 - m1) * c);
                    const float mc0 = m0 * c, mc1 = m1 * c;
                    l0 *= scale0;
                    l1 *= scale1;
#pragma unroll
                    for (int j = 0; j < 16; ++j) {
                        const float w0 = power(fmaf(s[4 * j], c, -mc0));
                        const float w1 = power(fmaf(s[4 * j + 1], c, -mc0));
                        const float w2 = power(fmaf(s[4 * j + 2], c, -mc1));
                        const float w3 = power(fmaf(s[4 * j + 3], c, -mc1));
                        o[4 * j] *= scale0;
                        o[4 * j + 1] *= scale0;
                        o[4 * j + 2] *= scale1;
                        o[4 * j + 3] *= scale1;
                        l0 += w0;
                        l1 += w2;
                        l0 += w1;
                        l1 += w3;
                        p[2 * j] = pack(w0, w1);
                        p[2 * j + 1] = pack(w2, w3);
                    }
                }

                {
                    const u32 stage = step & 1;
                    waitFor(base + V_FULL + 8 * stage, (step >> 1) & 1);
                    pin(o);
                    pin(p);
                    productsBegin();
                    weigh(o, p, lowWord(base + V_AT + stage * TILE, HALF >> 4));
                    productsCommit();
                    productsWait<0>();
                    pin(o);
                    pin(p);
                    release(base + V_EMPTY + 8 * stage, lane);
                }
                ++step;
            }

            l0 = quadSum(l0);
            l1 = quadSum(l1);
            const float inverse0 = l0 > 0.0f ? 1.0f / l0 : 0.0f, inverse1 = l1 > 0.0f ? 1.0f / l1 : 0.0f;

            // Four neighbouring lanes exchange words until each has 16 bytes side by side.
            const u32 warp = (threadIdx.x >> 5) & 3;
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
    }
}
