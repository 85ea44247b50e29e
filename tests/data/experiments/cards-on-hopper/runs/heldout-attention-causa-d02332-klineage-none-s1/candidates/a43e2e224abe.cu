/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["384"]
shared = "230592"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, causal, a sequence and a head at a time; D is 128.
//
// Persistent blocks of three warp groups: of the first, three warps copy tiles of 128 tokens into swizzled shared memory and one
// fetches what comes later into L2; the other two own 64 queries each, keep them in registers and walk over the blocks of 128 keys
// from the diagonal down, with an online softmax.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 PANEL = 16384;      // 128 rows of 64 elements, 128 bytes each
constexpr u32 TILE = 2 * PANEL;   // 128 rows of 128 elements
constexpr u32 STAGES = 6;
constexpr u32 Q_OFF = 0;
constexpr u32 RING_OFF = TILE;    // K and V, in the order in which they are used
constexpr u32 BAR_OFF = 7 * TILE;
constexpr u32 FULL = BAR_OFF, EMPTY = BAR_OFF + 48, Q_FULL = BAR_OFF + 96, Q_EMPTY = BAR_OFF + 104;
constexpr u32 INFO = BAR_OFF + 112; // 4 entries of 16 bytes: limit, blocks, first row of q and output, rows

#define NEGATIVE_INFINITY __int_as_float(0xff800000)

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void barrierInit(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void barrierArrive(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void barrierWait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

__device__ __forceinline__ bool barrierTest(u32 bar, u32 parity)
{
    u32 done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

__device__ __forceinline__ void namedSync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void namedArrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ------------------------------------------------------------------------------------------------------------------- wgmma

__device__ __forceinline__ void wgmmaFence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmmaCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void wgmmaWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// 128-byte swizzle; the offsets in units of 16 bytes.
__device__ __forceinline__ u64 descriptor(u32 address, u32 leading, u32 stride)
{
    return (u64(1) << 62) | (u64(stride) << 32) | (u64(leading) << 16) | u64((address & 0x3ffffu) >> 4);
}

#define R4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(d, i) R4(d, i), R4(d, i + 4), R4(d, i + 8), R4(d, i + 12)

#define LIST32                                                                                                                   \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                     \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST64                                                                                                                   \
    LIST32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                  \
           "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

__device__ __forceinline__ void wgmmaScores128(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST64 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 0;\n"
                 "}\n"
                 : R16(d, 0), R16(d, 16), R16(d, 32), R16(d, 48)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void wgmmaScores64(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LIST32 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
                 "}\n"
                 : R16(d, 0), R16(d, 16)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void wgmmaValues(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST64 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : R16(d, 0), R16(d, 16), R16(d, 32), R16(d, 48)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(1));
}

template <int N>
__device__ __forceinline__ void pin(float (&r)[64])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

__device__ __forceinline__ void pin(u32 (&r)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        asm volatile("" : "+r"(r[i])::"memory");
}

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

// Of four lanes in a row, the i-th gets the i-th words of all four.
__device__ __forceinline__ void transpose(u32 (&w)[4], bool odd, bool high)
{
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const u32 got = __shfl_xor_sync(0xffffffffu, odd ? w[i] : w[i + 1], 1);
        w[i] = odd ? got : w[i];
        w[i + 1] = odd ? w[i + 1] : got;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const u32 got = __shfl_xor_sync(0xffffffffu, high ? w[i] : w[i + 2], 2);
        w[i] = high ? got : w[i];
        w[i + 2] = high ? w[i + 2] : got;
    }
}

// ------------------------------------------------------------------------------------------------------------------- tiles

struct Tile {
    int q0;     // token of the first row
    int rows;   // rows from there to the end of the sequence, maybe more than 128
    int head;
    int k0;     // token of the sequence's first key
    int keys;   // of the sequence
    int limit;  // keys that the first row attends to; none if it is not positive; each further row: one more
    int blocks; // blocks of 128 keys that some row attends to
    bool first; // of its item
};

// An item of work is a pair of tiles of one head, the i-th from the end and the i-th from the beginning of the sequence.
struct Walker {
    const int *cuQ, *cuK;
    int B, H, item, seq, base, qBegin, qLength, kBegin, kLength, pair, head;
    bool second;

    __device__ __forceinline__ void load()
    {
        if (seq < B) {
            qBegin = __ldg(cuQ + seq);
            qLength = __ldg(cuQ + seq + 1) - qBegin;
            kBegin = __ldg(cuK + seq);
            kLength = __ldg(cuK + seq + 1) - kBegin;
        }
    }

    __device__ __forceinline__ int tiles() const
    {
        return (qLength + 127) >> 7;
    }

    __device__ __forceinline__ int pairs() const
    {
        return (tiles() + 1) >> 1;
    }

    __device__ __forceinline__ void start(const int *cuQ_, const int *cuK_, int B_, int H_)
    {
        cuQ = cuQ_;
        cuK = cuK_;
        B = B_;
        H = H_;
        item = int(blockIdx.x);
        seq = base = 0;
        qBegin = qLength = kBegin = kLength = pair = head = 0;
        second = false;
        load();
    }

    __device__ __forceinline__ bool next(Tile &t)
    {
        int m;
        if (second) {
            second = false;
            t.first = false;
            m = pair;
        } else {
            while (seq < B && item >= base + pairs() * H) {
                base += pairs() * H;
                ++seq;
                load();
            }
            if (seq >= B)
                return false;
            const int local = item - base;
            head = local / pairs();
            pair = local - head * pairs();
            m = tiles() - 1 - pair;
            second = m != pair;
            t.first = true;
            item += int(gridDim.x);
        }
        t.q0 = qBegin + m * 128;
        t.rows = qLength - m * 128;
        t.head = head;
        t.k0 = kBegin;
        t.keys = kLength;
        t.limit = m * 128 + 1 + kLength - qLength;
        const int reach = t.limit + min(t.rows, 128) - 1; // of the last row
        t.blocks = reach > 0 ? (reach + 127) >> 7 : 0;
        return true;
    }
};

// ---------------------------------------------------------------------------------------------------------------- producers

// A warp copies a tile, two rows at a time and 16 bytes a lane; rows that are not there become zeros. `row`: the first one in the
// tensor, as a row of 256 bytes; `lane`: what a lane adds to that, in bytes; `step`: bytes of two rows.
__device__ __forceinline__ void copyTile(u32 destination, const char *tensor, int row, u32 lane, u32 step, int left, int high)
{
    const char *source = tensor + u64(u32(row)) * 256 + lane;
    if (left >= 128) {
#pragma unroll 2
        for (int i = 0; i < 16; ++i) {
#pragma unroll
            for (u32 e = 0; e < 4; ++e) {
                asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"((destination ^ (e << 5)) + e * 256),
                             "l"(source)
                             : "memory");
                source += step;
            }
            destination += 1024;
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < 64; ++i) {
            const bool there = 2 * i + high < left;
            const char *from = there ? source : tensor;
            const int bytes = there ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((destination ^ ((u32(i) & 3) << 5)) + u32(i) * 256),
                         "l"(from), "r"(bytes)
                         : "memory");
            source += step;
        }
    }
}

// What this thread copied is there: wgmma may read it.
__device__ __forceinline__ void announce(u32 bar)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    barrierArrive(bar);
}

// Before copies: waits until their place is free, and not with finished copies unannounced. `waiting`: the barrier of those, or 0.
__device__ __forceinline__ void beginCopies(u32 &waiting, u32 bar, u32 parity)
{
    if (waiting != 0) {
        const bool ready = barrierTest(bar, parity);
        if (!__all_sync(0xffffffffu, ready)) {
            asm volatile("cp.async.wait_all;" ::: "memory");
            announce(waiting);
            waiting = 0;
        }
    }
    barrierWait(bar, parity);
    __syncwarp();
}

// After copies: announces those before them.
__device__ __forceinline__ void endCopies(u32 &waiting, u32 bar)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (waiting != 0) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        announce(waiting);
    }
    waiting = bar;
}

__device__ __forceinline__ void storeInfo(u32 address, int limit, int blocks, int row, int rows)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(limit), "r"(blocks), "r"(row), "r"(rows)
                 : "memory");
}

__device__ __forceinline__ void prefetchRow(const char *tensor, int row)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(tensor + u64(u32(row)) * 256), "r"(256) : "memory");
}

// The next tile with work in it; writes those whose rows attend to nothing.
__device__ __forceinline__ bool fetchTile(Walker &walker, Tile &t, __half *out, int H, int lane)
{
    while (walker.next(t)) {
        if (t.blocks > 0)
            return true;
        const int rows = min(t.rows, 128);
#pragma unroll 1
        for (int at = lane >> 4; at < rows; at += 2)
            *reinterpret_cast<uint4 *>(out + (size_t(t.q0 + at) * H + t.head) * 128 + (lane & 15) * 8) = make_uint4(0, 0, 0, 0);
        __syncwarp();
    }
    return false;
}

// ---------------------------------------------------------------------------------------------------------------- consumer

struct Consumer {
    float o[64], s[64];
    u32 p[32], q[32];
    float m0, m1, l0, l1; // what the weights' exponents refer to and this thread's part of the sum, of its two rows
    float scale;          // times log2(e)
    u32 base;
    int wg, warp, lane;
    int row; // of the tile: this thread's first; the second is 8 further
    u32 slot, phase;

    __device__ __forceinline__ void advance()
    {
        if (++slot == STAGES) {
            slot = 0;
            phase ^= 1;
        }
    }

    __device__ __forceinline__ void waitSlot()
    {
        barrierWait(base + FULL + 8 * slot, phase);
    }

    __device__ __forceinline__ void release(u32 which)
    {
        if (lane == 0)
            barrierArrive(base + EMPTY + 8 * which);
    }

    // Waits for the queries of a tile; blocks is 0 if there is no such tile.
    __device__ __forceinline__ void waitTile(u32 tile, int &limit, int &blocks)
    {
        barrierWait(base + Q_FULL, tile & 1);
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(limit), "=r"(blocks) : "r"(base + INFO + (tile & 3) * 16) : "memory");
    }

    // The queries into registers, 16 rows a warp
    __device__ __forceinline__ void loadQueries()
    {
        const u32 r = u32(wg * 64 + warp * 16) + (u32(lane) & 15);
        const u32 start = base + Q_OFF + r * 128, high = u32(lane) >> 4, key = u32(lane) & 7;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            const u32 address = start + (i >> 2) * PANEL + (((2 * (i & 3) + high) ^ key) << 4);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(q[4 * i]), "=r"(q[4 * i + 1]), "=r"(q[4 * i + 2]), "=r"(q[4 * i + 3])
                         : "r"(address)
                         : "memory");
        }
        __syncwarp();
        if (lane == 0)
            barrierArrive(base + Q_EMPTY);
    }

    // S = Q · Kᵀ of 64 rows and N keys
    template <int N>
    __device__ __forceinline__ void scores(u32 which)
    {
        const u64 b = descriptor(base + RING_OFF + which * TILE, 1, 64);
        wgmmaFence();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const u64 offset = (i >> 2) * (PANEL >> 4) + (i & 3) * 2;
            if (N == 128)
                wgmmaScores128(s, q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3], b + offset, i != 0);
            else
                wgmmaScores64(s, q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3], b + offset, i != 0);
        }
        wgmmaCommit();
    }

    // O += P · V of the first N keys of the block
    template <int N>
    __device__ __forceinline__ void values(u32 which)
    {
        const u64 b = descriptor(base + RING_OFF + which * TILE, PANEL >> 4, 64);
        wgmmaFence();
#pragma unroll
        for (int i = 0; i < N / 16; ++i)
            wgmmaValues(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], b + i * 128);
        wgmmaCommit();
    }

    // Scores to weights. The exponents go on referring to an earlier maximum while no row of the warp exceeds it by more than a
    // factor of 2^8; if one does, the answer is true, and a0 and a1 are what the earlier results are to be multiplied by.
    template <bool Mask, int N>
    __device__ __forceinline__ bool softmax(int limit, int block, float &a0, float &a1)
    {
        if (Mask) {
            const int first = limit + row - block * 128 - 2 * (lane & 3), second = first + 8;
#pragma unroll
            for (int j = 0; j < N / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (8 * j + e >= first)
                        s[4 * j + e] = NEGATIVE_INFINITY;
                    if (8 * j + e >= second)
                        s[4 * j + 2 + e] = NEGATIVE_INFINITY;
                }
            }
        }
        float x0 = fmaxf(s[0], s[1]), x1 = fmaxf(s[2], s[3]), y0 = fmaxf(s[4], s[5]), y1 = fmaxf(s[6], s[7]);
#pragma unroll
        for (int j = 2; j < N / 8; j += 2) {
            x0 = fmaxf(x0, fmaxf(s[4 * j], s[4 * j + 1]));
            x1 = fmaxf(x1, fmaxf(s[4 * j + 2], s[4 * j + 3]));
            y0 = fmaxf(y0, fmaxf(s[4 * j + 4], s[4 * j + 5]));
            y1 = fmaxf(y1, fmaxf(s[4 * j + 6], s[4 * j + 7]));
        }
        x0 = fmaxf(x0, y0);
        x1 = fmaxf(x1, y1);
        x0 = fmaxf(x0, __shfl_xor_sync(0xffffffffu, x0, 1));
        x1 = fmaxf(x1, __shfl_xor_sync(0xffffffffu, x1, 1));
        x0 = fmaxf(x0, __shfl_xor_sync(0xffffffffu, x0, 2));
        x1 = fmaxf(x1, __shfl_xor_sync(0xffffffffu, x1, 2));
        x0 = fmaxf(x0, m0);
        x1 = fmaxf(x1, m1);
        a0 = a1 = 1.0f;
        // Nothing seen before: infinity; nothing seen yet: NaN, which is not greater.
        const bool greater = (x0 - m0) * scale > 8.0f || (x1 - m1) * scale > 8.0f;
        const bool grown = __any_sync(0xffffffffu, greater);
        if (grown) {
            float n0 = x0 * scale, n1 = x1 * scale;
            if (Mask) {
                n0 = x0 == NEGATIVE_INFINITY ? 0.0f : n0;
                n1 = x1 == NEGATIVE_INFINITY ? 0.0f : n1;
            }
            a0 = exp2Fast(fmaf(m0, scale, -n0));
            a1 = exp2Fast(fmaf(m1, scale, -n1));
            l0 *= a0;
            l1 *= a1;
            m0 = x0;
            m1 = x1;
        }
        float c0 = m0 * scale, c1 = m1 * scale;
        if (Mask) {
            c0 = m0 == NEGATIVE_INFINITY ? 0.0f : c0;
            c1 = m1 == NEGATIVE_INFINITY ? 0.0f : c1;
        }
        float t0 = 0.0f, t1 = 0.0f, u0 = 0.0f, u1 = 0.0f;
#pragma unroll
        for (int j = 0; j < N / 8; ++j) {
            s[4 * j] = exp2Fast(fmaf(s[4 * j], scale, -c0));
            s[4 * j + 1] = exp2Fast(fmaf(s[4 * j + 1], scale, -c0));
            s[4 * j + 2] = exp2Fast(fmaf(s[4 * j + 2], scale, -c1));
            s[4 * j + 3] = exp2Fast(fmaf(s[4 * j + 3], scale, -c1));
            t0 += s[4 * j];
            u0 += s[4 * j + 1];
            t1 += s[4 * j + 2];
            u1 += s[4 * j + 3];
        }
        l0 += t0 + u0;
        l1 += t1 + u1;
        return grown;
    }

    template <int N>
    __device__ __forceinline__ void convert()
    {
#pragma unroll
        for (int i = 0; i < 32; ++i)
            p[i] = i < N / 4 ? pack(s[2 * i], s[2 * i + 1]) : 0u;
    }

    __device__ __forceinline__ void rescale(float a0, float a1)
    {
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            o[4 * j] *= a0;
            o[4 * j + 1] *= a0;
            o[4 * j + 2] *= a1;
            o[4 * j + 3] *= a1;
        }
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < 64; ++i)
            o[i] = 0.0f;
    }

    // The weights of the present block (its first N keys) times V, and the scores and weights of the next block of the same tile.
    template <bool Mask, int N>
    __device__ __forceinline__ void step(int limit, int block)
    {
        const u32 kSlot = slot;
        waitSlot();
        advance();
        namedSync(1 + wg, 256);
        scores<128>(kSlot);
        const u32 vSlot = slot;
        waitSlot();
        advance();
        values<N>(vSlot);
        namedArrive(2 - wg, 256);
        wgmmaWait<1>();
        pin<64>(s);
        release(kSlot);
        float a0, a1;
        const bool grown = softmax<Mask, 128>(limit, block, a0, a1);
        wgmmaWait<0>();
        pin<64>(o);
        pin(p);
        release(vSlot);
        convert<128>();
        if (grown)
            rescale(a0, a1);
    }

    // The same, but the next block is the first one of the next tile, whose queries are loaded, and of which N keys matter to these
    // 64 rows.
    template <int N>
    __device__ __forceinline__ void boundary(int limit, int block)
    {
        const u32 kSlot = slot;
        waitSlot();
        advance();
        namedSync(1 + wg, 256);
        scores<N>(kSlot);
        const u32 vSlot = slot;
        waitSlot();
        advance();
        values<128>(vSlot);
        namedArrive(2 - wg, 256);
        wgmmaWait<1>();
        pin<N / 2>(s);
        release(kSlot);
        m0 = m1 = NEGATIVE_INFINITY;
        l0 = l1 = 0.0f;
        float a0, a1;
        softmax<true, N>(limit, block, a0, a1);
        wgmmaWait<0>();
        pin<64>(o);
        pin(p);
        release(vSlot);
        convert<N>();
    }

    // Writes the results of a tile: 64 bytes of each of 8 rows at a time.
    __device__ __forceinline__ void epilogue(__half *out, int H, u32 tile, float sum0, float sum1)
    {
        sum0 += __shfl_xor_sync(0xffffffffu, sum0, 1);
        sum1 += __shfl_xor_sync(0xffffffffu, sum1, 1);
        sum0 += __shfl_xor_sync(0xffffffffu, sum0, 2);
        sum1 += __shfl_xor_sync(0xffffffffu, sum1, 2);
        const float i0 = sum0 > 0.0f ? 1.0f / sum0 : 0.0f;
        const float i1 = sum1 > 0.0f ? 1.0f / sum1 : 0.0f;
        int start, rows;
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(start), "=r"(rows) : "r"(base + INFO + (tile & 3) * 16 + 8) : "memory");
        const bool odd = (lane & 1) != 0, high = (lane & 2) != 0;
        __half *first = out + (size_t(start) + size_t(row) * H) * 128 + (lane & 3) * 8;
        __half *second = first + size_t(H) * 1024;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            u32 w[4], x[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int n = 4 * (4 * k + i);
                w[i] = pack(o[n] * i0, o[n + 1] * i0);
                x[i] = pack(o[n + 2] * i1, o[n + 3] * i1);
            }
            transpose(w, odd, high);
            transpose(x, odd, high);
            if (row < rows)
                *reinterpret_cast<uint4 *>(first + 32 * k) = make_uint4(w[0], w[1], w[2], w[3]);
            if (row + 8 < rows)
                *reinterpret_cast<uint4 *>(second + 32 * k) = make_uint4(x[0], x[1], x[2], x[3]);
        }
        __syncwarp();
    }
};

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __half *q, const __half *k, const __half *v, const int *cuQ,
                                                               const int *cuK, __half *out, int B, int H, float scale)
{
    extern __shared__ unsigned char raw[];
    const u32 base = (u32(__cvta_generic_to_shared(raw)) + 1023u) & ~1023u;

    if (threadIdx.x == 0) {
        for (u32 i = 0; i < STAGES; ++i) {
            barrierInit(base + FULL + 8 * i, 32);
            barrierInit(base + EMPTY + 8 * i, 8);
        }
        barrierInit(base + Q_FULL, 32);
        barrierInit(base + Q_EMPTY, 9); // the consumers' warps and the one that fetches ahead
    }
    __syncthreads();

    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x >> 7), 0);
    const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x >> 5) & 3, 0);
    const int lane = threadIdx.x & 31;

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        const char *qBytes = reinterpret_cast<const char *>(q);
        const char *kBytes = reinterpret_cast<const char *>(k);
        const char *vBytes = reinterpret_cast<const char *>(v);
        Walker walker;
        walker.start(cuQ, cuK, B, H);
        Tile t;

        if (warp == 3) {
            // When the queries of a tile have come, which is about when the tile before it begins, this fetches those of the next
            // one into L2, and the first keys and values if that one begins a pair.
            bool more = fetchTile(walker, t, out, H, lane);
#pragma unroll 1
            for (u32 count = 0; more; ++count) {
                more = fetchTile(walker, t, out, H, lane);
                barrierWait(base + Q_FULL, count & 1);
                __syncwarp();
                if (lane == 0)
                    barrierArrive(base + Q_EMPTY);
                if (more) {
#pragma unroll 1
                    for (int r = lane; r < 128; r += 32) {
                        if (r < t.rows)
                            prefetchRow(qBytes, (t.q0 + r) * H + t.head);
                        const int key = (t.blocks - 1) * 128 + r;
                        if (t.first && key < t.keys) {
                            prefetchRow(kBytes, (t.k0 + key) * H + t.head);
                            prefetchRow(vBytes, (t.k0 + key) * H + t.head);
                        }
                    }
                    __syncwarp();
                }
            }
        } else {
            const int high = lane >> 4;
            const u32 chunk = lane & 7;
            const u32 mine = base + ((u32(lane) >> 3) & 1) * PANEL + u32(high) * 128 + ((chunk ^ u32(high)) << 4);
            const u32 laneBytes = u32(high) * u32(H) * 256 + (u32(lane) & 15) * 16;
            const u32 step = u32(H) * 512;

            // The three warps walk over the same copies, and each does every third.
            int turn = 0;
            u32 waiting = 0, count = 0, slot = 0, phase = 1;
            bool pending = false; // V of the block before
            int vRow = 0, vLeft = 0;
            while (walker.next(t)) {
                if (t.blocks == 0)
                    continue;
                if (turn == warp) {
                    beginCopies(waiting, base + Q_EMPTY, (count & 1) ^ 1);
                    if (lane == 0)
                        storeInfo(base + INFO + (count & 3) * 16, t.limit, t.blocks, t.q0 * H + t.head, t.rows);
                    __syncwarp();
                    copyTile(mine + Q_OFF, qBytes, t.q0 * H + t.head, laneBytes, step, t.rows, high);
                    endCopies(waiting, base + Q_FULL);
                }
                turn = turn == 2 ? 0 : turn + 1;
                ++count;
#pragma unroll 1
                for (int block = t.blocks - 1; block >= 0; --block) {
                    const int row = (t.k0 + block * 128) * H + t.head;
                    const int left = t.keys - block * 128;
                    if (turn == warp) {
                        beginCopies(waiting, base + EMPTY + 8 * slot, phase);
                        copyTile(mine + RING_OFF + slot * TILE, kBytes, row, laneBytes, step, left, high);
                        endCopies(waiting, base + FULL + 8 * slot);
                    }
                    turn = turn == 2 ? 0 : turn + 1;
                    if (++slot == STAGES) {
                        slot = 0;
                        phase ^= 1;
                    }
                    if (pending) {
                        if (turn == warp) {
                            beginCopies(waiting, base + EMPTY + 8 * slot, phase);
                            copyTile(mine + RING_OFF + slot * TILE, vBytes, vRow, laneBytes, step, vLeft, high);
                            endCopies(waiting, base + FULL + 8 * slot);
                        }
                        turn = turn == 2 ? 0 : turn + 1;
                        if (++slot == STAGES) {
                            slot = 0;
                            phase ^= 1;
                        }
                    }
                    pending = true;
                    vRow = row;
                    vLeft = left;
                }
            }
            if (pending) {
                if (turn == warp) {
                    beginCopies(waiting, base + EMPTY + 8 * slot, phase);
                    copyTile(mine + RING_OFF + slot * TILE, vBytes, vRow, laneBytes, step, vLeft, high);
                    endCopies(waiting, base + FULL + 8 * slot);
                }
                turn = turn == 2 ? 0 : turn + 1;
            }
            // No further tile
            if (turn == warp) {
                beginCopies(waiting, base + Q_EMPTY, (count & 1) ^ 1);
                if (lane == 0)
                    storeInfo(base + INFO + (count & 3) * 16, 0, 0, 0, 0);
                __syncwarp();
                endCopies(waiting, base + Q_FULL);
            }
            asm volatile("cp.async.wait_all;" ::: "memory");
            if (waiting != 0)
                announce(waiting);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        Consumer c;
        c.base = base;
        c.scale = scale * 1.4426950408889634f;
        c.wg = group - 1;
        c.warp = warp;
        c.lane = lane;
        c.row = c.wg * 64 + c.warp * 16 + (c.lane >> 2);
        c.slot = c.phase = 0;

        // The first group may begin.
        if (c.wg == 1)
            namedArrive(1, 256);

        u32 tile = 0;
        int limit, blocks;
        c.waitTile(tile, limit, blocks);
        if (blocks > 0) {
            c.loadQueries();
            c.m0 = c.m1 = NEGATIVE_INFINITY;
            c.l0 = c.l1 = 0.0f;
            c.clear();
            c.waitSlot();
            c.scores<128>(c.slot);
            wgmmaWait<0>();
            pin<64>(c.s);
            c.release(c.slot);
            c.advance();
            {
                float a0, a1;
                c.softmax<true, 128>(limit, blocks - 1, a0, a1);
            }
            c.convert<128>();
            bool half = false; // only the first 64 weights of the present block are not zero

            while (true) {
                int block = blocks - 1;                              // the one whose weights are at hand
                const int whole = max(0, (limit + 64 * c.wg) / 128); // blocks that all of the 64 rows see entirely
                if (half && block > 0 && block - 1 < whole) {
                    --block;
                    c.step<false, 64>(limit, block);
                }
#pragma unroll 1
                while (block > whole) {
                    --block;
                    c.step<true, 128>(limit, block);
                }
#pragma unroll 1
                while (block > 0) {
                    --block;
                    c.step<false, 128>(limit, block);
                }

                int nextLimit, nextBlocks;
                c.waitTile(tile + 1, nextLimit, nextBlocks);
                if (nextBlocks == 0)
                    break;
                c.loadQueries();
                const float sum0 = c.l0, sum1 = c.l1;
                const int last = nextBlocks - 1;
                half = nextLimit + 64 * c.wg + 63 <= last * 128 + 64;
                if (half)
                    c.boundary<64>(nextLimit, last);
                else
                    c.boundary<128>(nextLimit, last);
                c.epilogue(out, H, tile, sum0, sum1);
                c.clear();
                ++tile;
                limit = nextLimit;
                blocks = nextBlocks;
            }

            c.waitSlot();
            c.values<128>(c.slot);
            wgmmaWait<0>();
            pin<64>(c.o);
            pin(c.p);
            c.epilogue(out, H, tile, c.l0, c.l1);
        }

        if (c.wg == 0)
            namedSync(1, 256);
    }
}
