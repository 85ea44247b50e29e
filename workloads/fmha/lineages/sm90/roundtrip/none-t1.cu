/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["384"]
shared = "230656"
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
// output = softmax(q . k^T . scale) . v, a sequence and a head at a time; D is 128.
//
// A block stays on its SM and walks over tiles of 128 queries of one head. Warpgroup 0 loads (one thread, TMA),
// warpgroups 1 and 2 compute 64 queries each. Tiles of k and v share one ring of slots, in the order in which
// they are used: k(0), k(1), v(0), k(2), v(1), ..., on through all tiles of the block.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

typedef unsigned long long u64;

constexpr int ROWS = 128, KEYS = 128, SLOTS = 5;
constexpr unsigned TILE = 32768, HALF = 16384; // bytes of 128 rows; of their first 64 columns
constexpr unsigned RING = 2 * TILE;            // after two buffers of queries
constexpr unsigned FULL = (2 + SLOTS) * TILE, EMPTY = FULL + 8 * SLOTS;
constexpr unsigned QFULL = EMPTY + 8 * SLOTS, QEMPTY = QFULL + 16;

// Descriptors of shared memory, 128 byte swizzle: 1024 bytes from eight rows to the next eight.
constexpr u64 KMAJOR = (1ull << 62) | (64ull << 32) | (1ull << 16);
constexpr u64 MNMAJOR = (1ull << 62) | (64ull << 32) | (u64(HALF >> 4) << 16);

// ---------------------------------------------------------------- barriers and copies

__device__ __forceinline__ void barrierInit(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void barrierWait(unsigned bar, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n" ::"r"(bar), "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void barrierExpect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// One arrival a warp.
__device__ __forceinline__ void release(unsigned bar, int lane)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.s32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}\n" ::"r"(bar), "r"(lane)
                 : "memory");
}

__device__ __forceinline__ void turnWait(unsigned id)
{
    asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void turnGive(unsigned id)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void loadBox(const TensorMap *map, unsigned to, unsigned bar, int column, int head, int token)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to), "l"(reinterpret_cast<u64>(map)), "r"(bar), "r"(column),
                 "r"(head), "r"(token)
                 : "memory");
}

__device__ __forceinline__ void loadTile(const TensorMap *map, unsigned to, unsigned bar, int head, int token)
{
    barrierExpect(bar, TILE);
    loadBox(map, to, bar, 0, head, token);
    loadBox(map, to + HALF, bar, 64, head, token);
}

// ---------------------------------------------------------------- tensor cores

template <int N> __device__ __forceinline__ void keep(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i])::"memory");
}

template <int N> __device__ __forceinline__ void keep(unsigned (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(x[i])::"memory");
}

__device__ __forceinline__ void mmaFence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mmaCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> __device__ __forceinline__ void mmaWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define ACC8(d, i)                                                                                                     \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),        \
        "+f"(d[i + 7])
#define ACC64(d)                                                                                                       \
    ACC8(d, 0), ACC8(d, 8), ACC8(d, 16), ACC8(d, 24), ACC8(d, 32), ACC8(d, 40), ACC8(d, 48), ACC8(d, 56)
#define LIST64                                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

__device__ __forceinline__ void mmaShared(float (&d)[64], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64 ", "
                 "%64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC64(d)
                 : "l"(a), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void mmaRegisters(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3, u64 b,
                                             int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " LIST64 ", "
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ACC64(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

// s = q . k^T
__device__ __forceinline__ void scores(float (&s)[64], unsigned q, unsigned k)
{
    const u64 a = KMAJOR | u64(q >> 4), b = KMAJOR | u64(k >> 4);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u64 step = (i / 4) * (HALF >> 4) + (i % 4) * 2;
        mmaShared(s, a + step, b + step, i != 0);
    }
}

// o += p . v
__device__ __forceinline__ void values(float (&o)[64], const unsigned (&p)[32], unsigned v)
{
    const u64 b = MNMAJOR | u64(v >> 4);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        mmaRegisters(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], b + u64(i * 128), 1);
}

// ---------------------------------------------------------------- softmax

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float inverse(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

// Keys from limit on do not exist.
__device__ __forceinline__ void hide(float (&s)[64], int limit)
{
    const float none = __int_as_float(0xff800000);
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        const bool first = 8 * j < limit, second = 8 * j + 1 < limit;
        s[4 * j] = first ? s[4 * j] : none;
        s[4 * j + 1] = second ? s[4 * j + 1] : none;
        s[4 * j + 2] = first ? s[4 * j + 2] : none;
        s[4 * j + 3] = second ? s[4 * j + 3] : none;
    }
}

__device__ __forceinline__ void largest(const float (&s)[64], float &first, float &second)
{
    float x[4], y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        x[j] = fmaxf(s[4 * j], s[4 * j + 1]);
        y[j] = fmaxf(s[4 * j + 2], s[4 * j + 3]);
    }
#pragma unroll
    for (int j = 4; j < 16; ++j) {
        x[j & 3] = fmaxf(x[j & 3], s[4 * j]);
        y[j & 3] = fmaxf(y[j & 3], s[4 * j + 2]);
        x[j & 3] = fmaxf(x[j & 3], s[4 * j + 1]);
        y[j & 3] = fmaxf(y[j & 3], s[4 * j + 3]);
    }
    float a = fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
    float b = fmaxf(fmaxf(y[0], y[1]), fmaxf(y[2], y[3]));
    a = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 1));
    b = fmaxf(b, __shfl_xor_sync(0xffffffffu, b, 1));
    first = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 2));
    second = fmaxf(b, __shfl_xor_sync(0xffffffffu, b, 2));
}

// Scores become weights; their sums are of this thread's columns only.
__device__ __forceinline__ void weights(float (&s)[64], float c, float m0, float m1, float &l0, float &l1)
{
    const float shift0 = m0 * c, shift1 = m1 * c;
    float a = 0.0f, b = 0.0f, x = 0.0f, y = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        s[4 * j] = power(fmaf(s[4 * j], c, -shift0));
        s[4 * j + 1] = power(fmaf(s[4 * j + 1], c, -shift0));
        s[4 * j + 2] = power(fmaf(s[4 * j + 2], c, -shift1));
        s[4 * j + 3] = power(fmaf(s[4 * j + 3], c, -shift1));
        a += s[4 * j];
        b += s[4 * j + 1];
        x += s[4 * j + 2];
        y += s[4 * j + 3];
    }
    l0 += a + b;
    l1 += x + y;
}

__device__ __forceinline__ void packAll(const float (&s)[64], unsigned (&p)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        p[i] = pack(s[2 * i], s[2 * i + 1]);
}

// Normalises and writes two rows a thread; four threads exchange, so that each writes 16 bytes in a row.
__device__ __forceinline__ void store(uint4 *out, size_t place, size_t eightRows, int left, int lane,
                                      const float (&o)[64], float l0, float l1)
{
    l0 += __shfl_xor_sync(0xffffffffu, l0, 1);
    l1 += __shfl_xor_sync(0xffffffffu, l1, 1);
    l0 += __shfl_xor_sync(0xffffffffu, l0, 2);
    l1 += __shfl_xor_sync(0xffffffffu, l1, 2);
    const float inverses[2] = {inverse(l0), inverse(l1)};
    const bool odd = (lane & 1) != 0, high = (lane & 2) != 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int g = 0; g < 4; ++g) {
            unsigned w[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                w[i] = pack(o[16 * g + 4 * i + 2 * r] * inverses[r], o[16 * g + 4 * i + 2 * r + 1] * inverses[r]);
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                const unsigned got = __shfl_xor_sync(0xffffffffu, odd ? w[i] : w[i + 1], 1);
                w[i] = odd ? got : w[i];
                w[i + 1] = odd ? w[i + 1] : got;
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const unsigned got = __shfl_xor_sync(0xffffffffu, high ? w[i] : w[i + 2], 2);
                w[i] = high ? got : w[i];
                w[i + 2] = high ? w[i + 2] : got;
            }
            if (left > 8 * r)
                out[place + r * eightRows + 4 * g] = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}

// ---------------------------------------------------------------- tiles

// Tiles are numbered by sequence, head and then rows.
struct Walk {
    const int *cuQ, *cuK;
    int B, H, sequence, base, tiles, q0, q1, k0, k1, head, row;

    __device__ __forceinline__ void look()
    {
        q0 = __ldg(cuQ + sequence);
        q1 = __ldg(cuQ + sequence + 1);
        k0 = __ldg(cuK + sequence);
        k1 = __ldg(cuK + sequence + 1);
        tiles = (q1 - q0 + ROWS - 1) / ROWS;
    }

    __device__ __forceinline__ Walk(const int *offsetsQ, const int *offsetsK, int sequences, int heads)
        : cuQ(offsetsQ), cuK(offsetsK), B(sequences), H(heads), sequence(0), base(0), head(0), row(0)
    {
        look();
    }

    // Numbers have to ascend.
    __device__ __forceinline__ bool find(int number)
    {
        while (number - base >= tiles * H) {
            base += tiles * H;
            if (++sequence >= B)
                return false;
            look();
        }
        const unsigned local = unsigned(number - base);
        head = int(local / unsigned(tiles));
        row = (int(local) - head * tiles) * ROWS;
        return true;
    }
};

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV, const int *cuQ,
                                                               const int *cuK, uint4 *out, int B, int H, float scale)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned base = (unsigned(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x >> 7), 0);

    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; ++i) {
            barrierInit(base + FULL + 8 * i, 1);
            barrierInit(base + EMPTY + 8 * i, 8);
        }
        for (int i = 0; i < 2; ++i) {
            barrierInit(base + QFULL + 8 * i, 1);
            barrierInit(base + QEMPTY + 8 * i, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            Walk walk(cuQ, cuK, B, H);
            unsigned slot = 0, phase = 0, count = 0;
            bool pending = false;
            int pendingHead = 0, pendingToken = 0;
            for (int tile = int(blockIdx.x); walk.find(tile); tile += int(gridDim.x), ++count) {
                const unsigned buffer = count & 1;
                barrierWait(base + QEMPTY + 8 * buffer, ((count >> 1) & 1) ^ 1);
                loadTile(&mapQ, base + buffer * TILE, base + QFULL + 8 * buffer, walk.head, walk.q0 + walk.row);
                for (int i = (walk.k1 - walk.k0 - 1) / KEYS; i >= 0; --i) {
                    const int token = walk.k0 + i * KEYS;
                    barrierWait(base + EMPTY + 8 * slot, phase ^ 1);
                    loadTile(&mapK, base + RING + slot * TILE, base + FULL + 8 * slot, walk.head, token);
                    if (++slot == SLOTS) {
                        slot = 0;
                        phase ^= 1;
                    }
                    if (pending) {
                        barrierWait(base + EMPTY + 8 * slot, phase ^ 1);
                        loadTile(&mapV, base + RING + slot * TILE, base + FULL + 8 * slot, pendingHead, pendingToken);
                        if (++slot == SLOTS) {
                            slot = 0;
                            phase ^= 1;
                        }
                    }
                    pending = true;
                    pendingHead = walk.head;
                    pendingToken = token;
                }
            }
            if (pending) {
                barrierWait(base + EMPTY + 8 * slot, phase ^ 1);
                loadTile(&mapV, base + RING + slot * TILE, base + FULL + 8 * slot, pendingHead, pendingToken);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const unsigned half = unsigned(group - 1), own = 1 + half, other = 2 - half;
        const unsigned queries = base + half * (64 * 128);
        const int lane = int(threadIdx.x & 31), column = 2 * (lane & 3);
        const int rowInTile = int(half) * 64 + int((threadIdx.x >> 5) & 3) * 16 + (lane >> 2);
        const size_t eightRows = size_t(H) * 128;
        const float c = scale * 1.4426950408889634f;

        Walk walk(cuQ, cuK, B, H);
        int tile = int(blockIdx.x);
        if (!walk.find(tile))
            return;
        if (half == 1)
            turnGive(1); // the first turn is the other's

        float s[64], o[64], m0, m1, l0 = 0.0f, l1 = 0.0f;
        unsigned p[32];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            s[i] = o[i] = 0.0f;

        // The first block of the first tile: nothing to do beside it.
        unsigned slot = 1, phase = 0, count = 0;
        int blocks = (walk.k1 - walk.k0 + KEYS - 1) / KEYS;
        barrierWait(base + QFULL, 0);
        barrierWait(base + FULL, 0);
        keep(s);
        mmaFence();
        scores(s, queries, base + RING);
        mmaCommit();
        mmaWait<0>();
        keep(s);
        release(base + EMPTY, lane);
        hide(s, walk.k1 - walk.k0 - (blocks - 1) * KEYS - column);
        largest(s, m0, m1);
        weights(s, c, m0, m1, l0, l1);
        packAll(s, p);

        while (true) {
            const unsigned q = queries + (count & 1) * TILE;
#pragma unroll 1
            for (int i = 1; i < blocks; ++i) {
                const unsigned slotK = slot, phaseK = phase;
                if (++slot == SLOTS) {
                    slot = 0;
                    phase ^= 1;
                }
                const unsigned slotV = slot, phaseV = phase;
                if (++slot == SLOTS) {
                    slot = 0;
                    phase ^= 1;
                }
                barrierWait(base + FULL + 8 * slotK, phaseK);
                barrierWait(base + FULL + 8 * slotV, phaseV);
                turnWait(own);
                keep(s);
                keep(o);
                keep(p);
                mmaFence();
                scores(s, q, base + RING + slotK * TILE);
                mmaCommit();
                values(o, p, base + RING + slotV * TILE);
                mmaCommit();
                turnGive(other);
                mmaWait<1>();
                keep(s);
                release(base + EMPTY + 8 * slotK, lane);

                float a, b;
                largest(s, a, b);
                a = fmaxf(a, m0);
                b = fmaxf(b, m1);
                const float scale0 = power((m0 - a) * c), scale1 = power((m1 - b) * c);
                m0 = a;
                m1 = b;
                l0 *= scale0;
                l1 *= scale1;
                weights(s, c, m0, m1, l0, l1);

                mmaWait<0>();
                keep(o);
                keep(s);
                release(base + EMPTY + 8 * slotV, lane);
#pragma unroll
                for (int j = 0; j < 32; ++j) {
                    o[2 * j] *= (j & 1) ? scale1 : scale0;
                    o[2 * j + 1] *= (j & 1) ? scale1 : scale0;
                }
                packAll(s, p);
            }
            release(base + QEMPTY + 8 * (count & 1), lane);

            const int row = walk.row + rowInTile, left = walk.q1 - walk.q0 - row;
            const size_t place = (size_t(walk.q0 + row) * H + walk.head) * 16 + (lane & 3);
            tile += int(gridDim.x);
            if (!walk.find(tile)) {
                // The last block of the last tile.
                barrierWait(base + FULL + 8 * slot, phase);
                keep(o);
                keep(p);
                mmaFence();
                values(o, p, base + RING + slot * TILE);
                mmaCommit();
                mmaWait<0>();
                keep(o);
                store(out, place, eightRows, left, lane, o, l0, l1);
                break;
            }

            // The last block of this tile beside the first block of the next.
            ++count;
            blocks = (walk.k1 - walk.k0 + KEYS - 1) / KEYS;
            const int limit = walk.k1 - walk.k0 - (blocks - 1) * KEYS - column;
            const unsigned slotK = slot, phaseK = phase;
            if (++slot == SLOTS) {
                slot = 0;
                phase ^= 1;
            }
            const unsigned slotV = slot, phaseV = phase;
            if (++slot == SLOTS) {
                slot = 0;
                phase ^= 1;
            }
            barrierWait(base + QFULL + 8 * (count & 1), (count >> 1) & 1);
            barrierWait(base + FULL + 8 * slotK, phaseK);
            barrierWait(base + FULL + 8 * slotV, phaseV);
            turnWait(own);
            keep(s);
            keep(o);
            keep(p);
            mmaFence();
            scores(s, queries + (count & 1) * TILE, base + RING + slotK * TILE);
            mmaCommit();
            values(o, p, base + RING + slotV * TILE);
            mmaCommit();
            turnGive(other);
            mmaWait<1>();
            keep(s);
            release(base + EMPTY + 8 * slotK, lane);

            const float sum0 = l0, sum1 = l1;
            l0 = 0.0f;
            l1 = 0.0f;
            hide(s, limit);
            largest(s, m0, m1);
            weights(s, c, m0, m1, l0, l1);

            mmaWait<0>();
            keep(o);
            keep(s);
            release(base + EMPTY + 8 * slotV, lane);
            packAll(s, p);
            store(out, place, eightRows, left, lane, o, sum0, sum1);
#pragma unroll
            for (int i = 0; i < 64; ++i)
                o[i] = 0.0f;
        }
    }
}
