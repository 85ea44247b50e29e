/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["384"]
shared = "230528"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, causal, a sequence and a head at a time; D is 128.
//
// Persistent blocks of three warp groups: the first copies tiles of 128 tokens into swizzled shared memory, the other two own 64
// queries each and walk over the blocks of 128 keys from the diagonal down, with an online softmax.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 PANEL = 16384;      // 128 rows of 64 elements, 128 bytes each
constexpr u32 TILE = 2 * PANEL;   // 128 rows of 128 elements
constexpr u32 Q_OFF = 0;          // 2 stages
constexpr u32 K_OFF = 2 * TILE;   // 2 stages
constexpr u32 V_OFF = 4 * TILE;   // 3 stages
constexpr u32 BAR_OFF = 7 * TILE;
constexpr u32 Q_FULL = BAR_OFF, Q_EMPTY = BAR_OFF + 16, K_FULL = BAR_OFF + 32, K_EMPTY = BAR_OFF + 48, V_FULL = BAR_OFF + 64,
              V_EMPTY = BAR_OFF + 88;

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

// Arrives when all copies that this thread has begun are there.
__device__ __forceinline__ void barrierArriveCopies(u32 bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
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

__device__ __forceinline__ void namedSync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void namedArrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void proxyFence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
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

__device__ __forceinline__ void wgmmaScores128(float (&d)[64], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST64 "}, %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : R16(d, 0), R16(d, 16), R16(d, 32), R16(d, 48)
                 : "l"(a), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void wgmmaScores64(float (&d)[64], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LIST32 "}, %32, %33, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : R16(d, 0), R16(d, 16)
                 : "l"(a), "l"(b), "r"(accumulate));
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

// ------------------------------------------------------------------------------------------------------------------- tiles

struct Tile {
    int q0;     // token of the first row
    int rows;   // rows from there to the end of the sequence, maybe more than 128
    int head;
    int k0;     // token of the sequence's first key
    int keys;   // of the sequence
    int limit;  // keys that the first row attends to; none if it is not positive; each further row: one more
    int blocks; // blocks of 128 keys that some row attends to
};

// An item of work is a pair of tiles of one head, the i-th from the end and the i-th from the beginning of the sequence.
struct Walker {
    const int *cuQ, *cuK;
    int B, H, item, seq, base, qBegin, qLength, kBegin, kLength, tiles, pairs, pair, head;
    bool second;

    __device__ __forceinline__ void load()
    {
        if (seq < B) {
            qBegin = __ldg(cuQ + seq);
            qLength = __ldg(cuQ + seq + 1) - qBegin;
            kBegin = __ldg(cuK + seq);
            kLength = __ldg(cuK + seq + 1) - kBegin;
            tiles = (qLength + 127) >> 7;
            pairs = (tiles + 1) >> 1;
        }
    }

    __device__ __forceinline__ void start(const int *cuQ_, const int *cuK_, int B_, int H_)
    {
        cuQ = cuQ_;
        cuK = cuK_;
        B = B_;
        H = H_;
        item = int(blockIdx.x);
        seq = base = 0;
        qBegin = qLength = kBegin = kLength = tiles = pairs = pair = head = 0;
        second = false;
        load();
    }

    __device__ __forceinline__ bool next(Tile &t)
    {
        int m;
        if (second) {
            second = false;
            m = pair;
        } else {
            while (seq < B && item >= base + pairs * H) {
                base += pairs * H;
                ++seq;
                load();
            }
            if (seq >= B)
                return false;
            const int local = item - base;
            head = local / pairs;
            pair = local - head * pairs;
            m = tiles - 1 - pair;
            second = m != pair;
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

// ---------------------------------------------------------------------------------------------------------------- producer

// A thread copies 16 bytes of each eighth row; rows that are not there become zeros.
__device__ __forceinline__ void copyTile(u32 destination, const char *tensor, u64 offset, u64 step, int left, int row0)
{
    if (left >= 128) {
        const char *source = tensor + offset;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(destination + i * 1024), "l"(source) : "memory");
            source += step;
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < 16; ++i) {
            const bool there = row0 + 8 * i < left;
            const char *source = there ? tensor + offset : tensor;
            const int bytes = there ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination + i * 1024), "l"(source), "r"(bytes)
                         : "memory");
            offset += step;
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------- consumer

struct Consumer {
    float o[64], s[64];
    u32 p[32];
    float m0, m1, l0, l1; // largest score and this thread's part of the sum, of its two rows
    float scale;          // times log2(e)
    u32 base;
    int wg, warp, lane;
    int row; // of the tile: this thread's first; the second is 8 further
    u32 kStage, kPhase, vStage, vPhase, qCount;

    // S = Q · Kᵀ of 64 rows and N keys
    template <int N>
    __device__ __forceinline__ void scores(u32 qStage)
    {
        const u64 a = descriptor(base + Q_OFF + qStage * TILE + wg * 8192, 1, 64);
        const u64 b = descriptor(base + K_OFF + kStage * TILE, 1, 64);
        wgmmaFence();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const u64 offset = (i >> 2) * (PANEL >> 4) + (i & 3) * 2;
            if (N == 128)
                wgmmaScores128(s, a + offset, b + offset, i != 0);
            else
                wgmmaScores64(s, a + offset, b + offset, i != 0);
        }
        wgmmaCommit();
    }

    // O += P · V of the first N keys of the block
    template <int N>
    __device__ __forceinline__ void values()
    {
        const u64 b = descriptor(base + V_OFF + vStage * TILE, PANEL >> 4, 64);
        wgmmaFence();
#pragma unroll
        for (int i = 0; i < N / 16; ++i)
            wgmmaValues(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], b + i * 128);
        wgmmaCommit();
    }

    __device__ __forceinline__ void waitK()
    {
        barrierWait(base + K_FULL + 8 * kStage, kPhase);
    }

    __device__ __forceinline__ void waitV()
    {
        barrierWait(base + V_FULL + 8 * vStage, vPhase);
    }

    __device__ __forceinline__ void waitQ(u32 count)
    {
        barrierWait(base + Q_FULL + 8 * (count & 1), (count >> 1) & 1);
    }

    __device__ __forceinline__ void releaseK()
    {
        if (lane == 0)
            barrierArrive(base + K_EMPTY + 8 * kStage);
        kStage ^= 1;
        if (kStage == 0)
            kPhase ^= 1;
    }

    __device__ __forceinline__ void releaseV()
    {
        if (lane == 0)
            barrierArrive(base + V_EMPTY + 8 * vStage);
        if (++vStage == 3) {
            vStage = 0;
            vPhase ^= 1;
        }
    }

    __device__ __forceinline__ void releaseQ()
    {
        if (lane == 0)
            barrierArrive(base + Q_EMPTY + 8 * (qCount & 1));
        ++qCount;
    }

    // Scores to weights; a0 and a1: what the earlier results are to be multiplied by.
    template <bool Mask, int N>
    __device__ __forceinline__ void softmax(int limit, int block, float &a0, float &a1)
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
        float c0 = x0 * scale, c1 = x1 * scale;
        if (Mask) {
            c0 = x0 == NEGATIVE_INFINITY ? 0.0f : c0;
            c1 = x1 == NEGATIVE_INFINITY ? 0.0f : c1;
        }
        a0 = exp2Fast(fmaf(m0, scale, -c0));
        a1 = exp2Fast(fmaf(m1, scale, -c1));
        m0 = x0;
        m1 = x1;
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
        l0 = fmaf(l0, a0, t0 + u0);
        l1 = fmaf(l1, a1, t1 + u1);
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
        waitK();
        namedSync(1 + wg, 256);
        proxyFence();
        scores<128>(qCount & 1);
        waitV();
        proxyFence();
        values<N>();
        namedArrive(2 - wg, 256);
        wgmmaWait<1>();
        pin<64>(s);
        releaseK();
        float a0, a1;
        softmax<Mask, 128>(limit, block, a0, a1);
        wgmmaWait<0>();
        pin<64>(o);
        pin(p);
        releaseV();
        convert<128>();
        rescale(a0, a1);
    }

    // The same, but the next block is the first one of the next tile, of which N keys matter to these 64 rows.
    template <int N>
    __device__ __forceinline__ void boundary(int limit, int block)
    {
        waitQ(qCount + 1);
        waitK();
        namedSync(1 + wg, 256);
        proxyFence();
        scores<N>((qCount + 1) & 1);
        waitV();
        proxyFence();
        values<128>();
        namedArrive(2 - wg, 256);
        wgmmaWait<1>();
        pin<N / 2>(s);
        releaseK();
        m0 = m1 = NEGATIVE_INFINITY;
        l0 = l1 = 0.0f;
        float a0, a1;
        softmax<true, N>(limit, block, a0, a1);
        wgmmaWait<0>();
        pin<64>(o);
        pin(p);
        releaseV();
        convert<N>();
    }

    // Writes the results of a tile, by way of the shared memory that its queries were in, and gives that back.
    __device__ __forceinline__ void epilogue(__half *out, int H, const Tile &t, float sum0, float sum1)
    {
        sum0 += __shfl_xor_sync(0xffffffffu, sum0, 1);
        sum1 += __shfl_xor_sync(0xffffffffu, sum1, 1);
        sum0 += __shfl_xor_sync(0xffffffffu, sum0, 2);
        sum1 += __shfl_xor_sync(0xffffffffu, sum1, 2);
        const float i0 = sum0 > 0.0f ? 1.0f / sum0 : 0.0f;
        const float i1 = sum1 > 0.0f ? 1.0f / sum1 : 0.0f;
        namedSync(3 + wg, 128);
        const u32 stage = base + Q_OFF + (qCount & 1) * TILE + wg * 8192 + warp * 2048; // this warp's 16 rows
        const u32 matrix = u32(lane) >> 3, r = (lane & 7) + (matrix & 1) * 8, high = matrix >> 1;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const u32 chunk = 2 * (j & 3) + high;
            const u32 address = stage + (j >> 2) * PANEL + r * 128 + ((chunk ^ (lane & 7)) << 4);
            const u32 w0 = pack(o[8 * j] * i0, o[8 * j + 1] * i0);
            const u32 w1 = pack(o[8 * j + 2] * i1, o[8 * j + 3] * i1);
            const u32 w2 = pack(o[8 * j + 4] * i0, o[8 * j + 5] * i0);
            const u32 w3 = pack(o[8 * j + 6] * i1, o[8 * j + 7] * i1);
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(w0), "r"(w1), "r"(w2),
                         "r"(w3)
                         : "memory");
        }
        __syncwarp();
        const u32 chunk = lane & 15;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const u32 line = 2 * i + (u32(lane) >> 4);
            const u32 address = stage + (chunk >> 3) * PANEL + line * 128 + (((chunk & 7) ^ (line & 7)) << 4);
            uint4 w;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                         : "r"(address)
                         : "memory");
            const int at = wg * 64 + warp * 16 + int(line);
            if (at < t.rows)
                *reinterpret_cast<uint4 *>(out + (size_t(t.q0 + at) * H + t.head) * 128 + chunk * 8) = w;
        }
        __syncwarp();
        releaseQ();
    }

    // A tile whose rows attend to nothing
    __device__ __forceinline__ void zeros(__half *out, int H, const Tile &t)
    {
#pragma unroll 1
        for (int i = 0; i < 8; ++i) {
            const int at = wg * 64 + warp * 16 + 2 * i + (lane >> 4);
            if (at < t.rows)
                *reinterpret_cast<uint4 *>(out + (size_t(t.q0 + at) * H + t.head) * 128 + (lane & 15) * 8) = make_uint4(0, 0, 0, 0);
        }
        __syncwarp();
    }

    __device__ __forceinline__ bool fetch(Walker &walker, Tile &t, __half *out, int H)
    {
        while (walker.next(t)) {
            if (t.blocks > 0)
                return true;
            zeros(out, H, t);
        }
        return false;
    }
};

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __half *q, const __half *k, const __half *v, const int *cuQ,
                                                               const int *cuK, __half *out, int B, int H, float scale)
{
    extern __shared__ unsigned char raw[];
    const u32 base = (u32(__cvta_generic_to_shared(raw)) + 1023u) & ~1023u;

    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            barrierInit(base + Q_FULL + 8 * i, 128);
            barrierInit(base + Q_EMPTY + 8 * i, 8);
            barrierInit(base + K_FULL + 8 * i, 128);
            barrierInit(base + K_EMPTY + 8 * i, 8);
        }
        for (int i = 0; i < 3; ++i) {
            barrierInit(base + V_FULL + 8 * i, 128);
            barrierInit(base + V_EMPTY + 8 * i, 8);
        }
    }
    __syncthreads();

    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x >> 7), 0);

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        const int chunk = threadIdx.x & 15, row0 = threadIdx.x >> 4;
        const u32 mine = base + (chunk >> 3) * PANEL + row0 * 128 + (((chunk & 7) ^ row0) << 4);
        const u64 rowBytes = u64(H) * 256, step = rowBytes * 8;
        const char *qBytes = reinterpret_cast<const char *>(q);
        const char *kBytes = reinterpret_cast<const char *>(k);
        const char *vBytes = reinterpret_cast<const char *>(v);

        Walker walker;
        walker.start(cuQ, cuK, B, H);
        Tile t;
        u32 qCount = 0, kStage = 0, kPhase = 1, vStage = 0, vPhase = 1;
        bool pending = false; // V of the block before
        u64 vOffset = 0;
        int vLeft = 0;
        while (walker.next(t)) {
            if (t.blocks == 0)
                continue;
            const u64 column = u64(t.head) * 256 + chunk * 16;
            barrierWait(base + Q_EMPTY + 8 * (qCount & 1), ((qCount >> 1) & 1) ^ 1);
            copyTile(mine + Q_OFF + (qCount & 1) * TILE, qBytes, u64(t.q0 + row0) * rowBytes + column, step, t.rows, row0);
            barrierArriveCopies(base + Q_FULL + 8 * (qCount & 1));
            ++qCount;
#pragma unroll 1
            for (int block = t.blocks - 1; block >= 0; --block) {
                const u64 offset = u64(t.k0 + block * 128 + row0) * rowBytes + column;
                const int left = t.keys - block * 128;
                barrierWait(base + K_EMPTY + 8 * kStage, kPhase);
                copyTile(mine + K_OFF + kStage * TILE, kBytes, offset, step, left, row0);
                barrierArriveCopies(base + K_FULL + 8 * kStage);
                kStage ^= 1;
                if (kStage == 0)
                    kPhase ^= 1;
                if (pending) {
                    barrierWait(base + V_EMPTY + 8 * vStage, vPhase);
                    copyTile(mine + V_OFF + vStage * TILE, vBytes, vOffset, step, vLeft, row0);
                    barrierArriveCopies(base + V_FULL + 8 * vStage);
                    if (++vStage == 3) {
                        vStage = 0;
                        vPhase ^= 1;
                    }
                }
                pending = true;
                vOffset = offset;
                vLeft = left;
            }
        }
        if (pending) {
            barrierWait(base + V_EMPTY + 8 * vStage, vPhase);
            copyTile(mine + V_OFF + vStage * TILE, vBytes, vOffset, step, vLeft, row0);
            barrierArriveCopies(base + V_FULL + 8 * vStage);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        Consumer c;
        c.base = base;
        c.scale = scale * 1.4426950408889634f;
        c.wg = group - 1;
        c.warp = __shfl_sync(0xffffffffu, int(threadIdx.x >> 5) & 3, 0);
        c.lane = threadIdx.x & 31;
        c.row = c.wg * 64 + c.warp * 16 + (c.lane >> 2);
        c.kStage = c.kPhase = c.vStage = c.vPhase = c.qCount = 0;

        // The first group may begin.
        if (c.wg == 1)
            namedArrive(1, 256);

        Walker walker;
        walker.start(cuQ, cuK, B, H);
        Tile tile;
        if (c.fetch(walker, tile, out, H)) {
            c.m0 = c.m1 = NEGATIVE_INFINITY;
            c.l0 = c.l1 = 0.0f;
            c.clear();
            c.waitQ(0);
            c.waitK();
            proxyFence();
            c.scores<128>(0);
            wgmmaWait<0>();
            pin<64>(c.s);
            c.releaseK();
            {
                float a0, a1;
                c.softmax<true, 128>(tile.limit, tile.blocks - 1, a0, a1);
            }
            c.convert<128>();
            bool half = false; // only the first 64 weights of the present block are not zero

            while (true) {
                int block = tile.blocks - 1;                                 // the one whose weights are at hand
                const int whole = max(0, (tile.limit + 64 * c.wg) / 128);    // blocks that all of the 64 rows see entirely
                if (half && block > 0 && block - 1 < whole) {
                    --block;
                    c.step<false, 64>(tile.limit, block);
                }
#pragma unroll 1
                while (block > whole) {
                    --block;
                    c.step<true, 128>(tile.limit, block);
                }
#pragma unroll 1
                while (block > 0) {
                    --block;
                    c.step<false, 128>(tile.limit, block);
                }

                Tile next;
                if (!c.fetch(walker, next, out, H))
                    break;
                const float sum0 = c.l0, sum1 = c.l1;
                const int last = next.blocks - 1;
                half = next.limit + 64 * c.wg + 63 <= last * 128 + 64;
                if (half)
                    c.boundary<64>(next.limit, last);
                else
                    c.boundary<128>(next.limit, last);
                c.epilogue(out, H, tile, sum0, sum1);
                c.clear();
                tile = next;
            }

            c.waitV();
            proxyFence();
            c.values<128>();
            wgmmaWait<0>();
            pin<64>(c.o);
            pin(c.p);
            c.epilogue(out, H, tile, c.l0, c.l1);
        }

        if (c.wg == 0)
            namedSync(1, 256);
    }
}
