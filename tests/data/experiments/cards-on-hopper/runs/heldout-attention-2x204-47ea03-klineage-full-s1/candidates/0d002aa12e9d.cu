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
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Persistent blocks of three warpgroups. Warpgroup 0 copies: Q tiles of 128 queries, K and V tiles of 128 keys, three stages
// each. Warpgroups 1 and 2 own 64 queries each and use wgmma: S = Q Kᵀ from shared memory, O += P V with P in registers.
// A tile of 128 rows of 128 halves lies in shared memory as two halves of 64 columns, each row 128 bytes, swizzled by 128 bytes.

#include <cuda_fp16.h>

typedef unsigned long long u64;

constexpr int BM = 128;
constexpr int BN = 128;
constexpr int STAGES = 3;
constexpr unsigned TILE_BYTES = 128 * 128 * 2;
constexpr unsigned TILE_DESC = TILE_BYTES >> 4;
constexpr unsigned HALF_DESC = (128 * 128) >> 4; // from the first 64 columns of a tile to the other 64

constexpr unsigned Q_OFFSET = 0;
constexpr unsigned K_OFFSET = TILE_BYTES;
constexpr unsigned V_OFFSET = K_OFFSET + STAGES * TILE_BYTES;
constexpr unsigned BARRIERS = V_OFFSET + STAGES * TILE_BYTES;
constexpr unsigned K_FULL = BARRIERS;
constexpr unsigned K_EMPTY = K_FULL + 8 * STAGES;
constexpr unsigned V_FULL = K_EMPTY + 8 * STAGES;
constexpr unsigned V_EMPTY = V_FULL + 8 * STAGES;
constexpr unsigned Q_FULL = V_EMPTY + 8 * STAGES;
constexpr unsigned Q_EMPTY = Q_FULL + 8;

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void barrierInit(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void barrierArrive(unsigned bar)
{
    asm volatile("{\n"
                 ".reg .b64 st;\n"
                 "mbarrier.arrive.shared::cta.b64 st, [%0];\n"
                 "}\n" ::"r"(bar)
                 : "memory");
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
                 "}\n" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void turnSync(int id)
{
    asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void turnArrive(int id)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void advance(unsigned &stage, unsigned &phase)
{
    if (++stage == STAGES) {
        stage = 0;
        phase ^= 1u;
    }
}

// ------------------------------------------------------------------------------------------------------------------- wgmma

#define ACC_LIST                                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, "                                                                                  \
    "%8, %9, %10, %11, %12, %13, %14, %15, "                                                                             \
    "%16, %17, %18, %19, %20, %21, %22, %23, "                                                                           \
    "%24, %25, %26, %27, %28, %29, %30, %31, "                                                                           \
    "%32, %33, %34, %35, %36, %37, %38, %39, "                                                                           \
    "%40, %41, %42, %43, %44, %45, %46, %47, "                                                                           \
    "%48, %49, %50, %51, %52, %53, %54, %55, "                                                                           \
    "%56, %57, %58, %59, %60, %61, %62, %63}"

#define ACC_EIGHT(d, i)                                                                                                  \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),          \
        "+f"(d[i + 7])

#define ACC_OPERANDS(d)                                                                                                  \
    ACC_EIGHT(d, 0), ACC_EIGHT(d, 8), ACC_EIGHT(d, 16), ACC_EIGHT(d, 24), ACC_EIGHT(d, 32), ACC_EIGHT(d, 40),            \
        ACC_EIGHT(d, 48), ACC_EIGHT(d, 56)

// Both operands from shared memory, both with the inner dimension contiguous.
__device__ __forceinline__ void mmaShared(float (&d)[64], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_LIST ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC_OPERANDS(d)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// The first operand from registers, the second from shared memory with its outer dimension contiguous.
__device__ __forceinline__ void mmaRegisters(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3, u64 b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_LIST
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ACC_OPERANDS(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(1));
}

__device__ __forceinline__ void mmaFence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mmaCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void mmaWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving other uses of these registers over the fences and waits.
template <int N> __device__ __forceinline__ void pin(float (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

template <int N> __device__ __forceinline__ void pin(unsigned (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(r[i])::"memory");
}

__device__ __forceinline__ u64 descriptor(unsigned address, unsigned leading, unsigned stride)
{
    return u64((address & 0x3FFFFu) >> 4) | (u64(leading) << 16) | (u64(stride) << 32) | (u64(1) << 62);
}

__device__ __forceinline__ void scores(float (&s)[64], u64 qDesc, u64 kDesc)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u64 step = u64((i >> 2) * HALF_DESC + (i & 3) * 2);
        mmaShared(s, qDesc + step, kDesc + step, i != 0 ? 1 : 0);
    }
}

__device__ __forceinline__ void values(float (&o)[64], unsigned (&p)[32], u64 vDesc)
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        mmaRegisters(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], vDesc + u64(i * 128));
}

// ----------------------------------------------------------------------------------------------------------------- softmax

__device__ __forceinline__ float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

// Raises m0 and m1 to the largest scores of this thread's two rows.
__device__ __forceinline__ void rowMax(const float (&s)[64], float &m0, float &m1)
{
    float a = fmaxf(s[0], s[1]), b = fmaxf(s[2], s[3]);
    float c = fmaxf(s[4], s[5]), d = fmaxf(s[6], s[7]);
#pragma unroll
    for (int j = 2; j < 16; j += 2) {
        a = fmaxf(fmaxf(a, s[4 * j]), s[4 * j + 1]);
        b = fmaxf(fmaxf(b, s[4 * j + 2]), s[4 * j + 3]);
        c = fmaxf(fmaxf(c, s[4 * j + 4]), s[4 * j + 5]);
        d = fmaxf(fmaxf(d, s[4 * j + 6]), s[4 * j + 7]);
    }
    a = fmaxf(a, c);
    b = fmaxf(b, d);
    a = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 1));
    b = fmaxf(b, __shfl_xor_sync(0xffffffffu, b, 1));
    a = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 2));
    b = fmaxf(b, __shfl_xor_sync(0xffffffffu, b, 2));
    m0 = fmaxf(m0, a);
    m1 = fmaxf(m1, b);
}

// Scores become weights; their sums, of this thread's columns only, are added to l0 and l1.
__device__ __forceinline__ void weigh(float (&s)[64], float factor, float m0, float m1, float &l0, float &l1)
{
    const float k0 = m0 * factor, k1 = m1 * factor;
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        s[4 * j] = ex2(fmaf(s[4 * j], factor, -k0));
        s[4 * j + 1] = ex2(fmaf(s[4 * j + 1], factor, -k0));
        s[4 * j + 2] = ex2(fmaf(s[4 * j + 2], factor, -k1));
        s[4 * j + 3] = ex2(fmaf(s[4 * j + 3], factor, -k1));
        a += s[4 * j];
        b += s[4 * j + 1];
        c += s[4 * j + 2];
        d += s[4 * j + 3];
    }
    l0 += a + b;
    l1 += c + d;
}

__device__ __forceinline__ void packWeights(const float (&s)[64], unsigned (&p)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        p[i] = pack(s[2 * i], s[2 * i + 1]);
}

// Four lanes with four words each: lane i gives its word j to lane j as word i.
__device__ __forceinline__ void transpose(unsigned (&v)[4], bool odd, bool high)
{
    unsigned r;
    r = __shfl_xor_sync(0xffffffffu, odd ? v[0] : v[1], 1);
    v[0] = odd ? r : v[0];
    v[1] = odd ? v[1] : r;
    r = __shfl_xor_sync(0xffffffffu, odd ? v[2] : v[3], 1);
    v[2] = odd ? r : v[2];
    v[3] = odd ? v[3] : r;
    r = __shfl_xor_sync(0xffffffffu, high ? v[0] : v[2], 2);
    v[0] = high ? r : v[0];
    v[2] = high ? v[2] : r;
    r = __shfl_xor_sync(0xffffffffu, high ? v[1] : v[3], 2);
    v[1] = high ? r : v[1];
    v[3] = high ? v[3] : r;
}

// ------------------------------------------------------------------------------------------------------------------ copies

__device__ __forceinline__ void copy16(unsigned to, const char *from, unsigned bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Copies a tile of 128 rows; rows beyond the given number become zeros. The source is this thread's chunk of row 0.
__device__ __forceinline__ void copyTile(unsigned to, const char *from, size_t rowBytes, int row0, int rows)
{
    if (rows >= 128) {
        const char *source = from + size_t(row0) * rowBytes;
        const size_t step = rowBytes * 8;
#pragma unroll 4
        for (int i = 0; i < 16; ++i) {
            copy16(to + i * 1024, source, 16u);
            source += step;
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < 16; ++i) {
            const int row = row0 + 8 * i;
            const bool inside = row < rows;
            copy16(to + i * 1024, inside ? from + size_t(row) * rowBytes : from, inside ? 16u : 0u);
        }
    }
}

// Ends a group of copies, and announces the group before it, which has arrived by then or is waited for.
__device__ __forceinline__ void announce(unsigned &pending, unsigned full, int lane)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (pending != 0u) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0)
            barrierArrive(pending);
    }
    pending = full;
}

// ---------------------------------------------------------------------------------------------------------------- schedule

struct Work {
    int head;
    int query; // token of the tile's first query
    int rows;  // queries from there to the end of the sequence
    int key;   // token of the sequence's first key
    int keys;
};

__device__ __forceinline__ bool locate(int tile, const int *cuQ, const int *cuK, int B, int H, Work &work)
{
    int begin = __ldg(cuQ);
    for (int b = 0; b < B; ++b) {
        const int end = __ldg(cuQ + b + 1);
        const int blocks = (end - begin + BM - 1) / BM;
        const int count = blocks * H;
        if (tile < count) {
            const int head = tile / blocks;
            const int block = tile - head * blocks;
            work.head = head;
            work.query = begin + block * BM;
            work.rows = end - work.query;
            work.key = __ldg(cuK + b);
            work.keys = __ldg(cuK + b + 1) - work.key;
            return true;
        }
        tile -= count;
        begin = end;
    }
    return false;
}

// ------------------------------------------------------------------------------------------------------------------ kernel

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out, int B, int H,
                                                               float scale)
{
    extern __shared__ char memory[];
    const unsigned base = (unsigned(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrierInit(base + K_FULL + 8 * i, 4);
            barrierInit(base + K_EMPTY + 8 * i, 8);
            barrierInit(base + V_FULL + 8 * i, 4);
            barrierInit(base + V_EMPTY + 8 * i, 8);
        }
        barrierInit(base + Q_FULL, 4);
        barrierInit(base + Q_EMPTY, 8);
    }
    __syncthreads();

    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x) / 128, 0);
    const int lane = threadIdx.x & 31;

    unsigned kStage = 0, kPhase = 0, vStage = 0, vPhase = 0, qPhase = 0;
    Work work;

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");

        const int thread = threadIdx.x;
        const int chunk = thread & 15;
        const int row0 = thread >> 4;
        const unsigned place =
            base + unsigned(chunk >> 3) * 16384u + unsigned(row0) * 128u + unsigned((chunk & 7) ^ row0) * 16u;
        const size_t rowBytes = size_t(H) * 256;
        unsigned pending = 0;

        for (int tile = blockIdx.x; locate(tile, cuQ, cuK, B, H, work); tile += gridDim.x) {
            const int blocks = (work.keys + BN - 1) / BN;
            if (blocks <= 0)
                continue;
            const size_t inside = size_t(work.head) * 256 + size_t(chunk) * 16;
            const char *qSource = reinterpret_cast<const char *>(q) + size_t(work.query) * rowBytes + inside;
            const char *kSource = reinterpret_cast<const char *>(k) + size_t(work.key) * rowBytes + inside;
            const char *vSource = reinterpret_cast<const char *>(v) + size_t(work.key) * rowBytes + inside;

            int n = blocks - 1;
            barrierWait(base + K_EMPTY + 8 * kStage, kPhase ^ 1u);
            copyTile(place + K_OFFSET + kStage * TILE_BYTES, kSource + size_t(n) * BN * rowBytes, rowBytes, row0,
                     work.keys - n * BN);
            announce(pending, base + K_FULL + 8 * kStage, lane);
            advance(kStage, kPhase);

            barrierWait(base + Q_EMPTY, qPhase ^ 1u);
            copyTile(place + Q_OFFSET, qSource, rowBytes, row0, work.rows);
            announce(pending, base + Q_FULL, lane);
            qPhase ^= 1u;

#pragma unroll 1
            for (; n >= 0; --n) {
                if (n > 0) {
                    barrierWait(base + K_EMPTY + 8 * kStage, kPhase ^ 1u);
                    copyTile(place + K_OFFSET + kStage * TILE_BYTES, kSource + size_t(n - 1) * BN * rowBytes, rowBytes, row0,
                             work.keys - (n - 1) * BN);
                    announce(pending, base + K_FULL + 8 * kStage, lane);
                    advance(kStage, kPhase);
                }
                barrierWait(base + V_EMPTY + 8 * vStage, vPhase ^ 1u);
                copyTile(place + V_OFFSET + vStage * TILE_BYTES, vSource + size_t(n) * BN * rowBytes, rowBytes, row0,
                         work.keys - n * BN);
                announce(pending, base + V_FULL + 8 * vStage, lane);
                advance(vStage, vPhase);
            }
        }

        if (pending != 0u) {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (lane == 0)
                barrierArrive(pending);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");

        const int consumer = group - 1;
        const int warp = (threadIdx.x >> 5) & 3;
        const int quad = lane & 3;
        const int ownTurn = 1 + consumer;
        const int otherTurn = 2 - consumer;
        const float factor = scale * 1.4426950408889634f;
        const float lowest = __int_as_float(0xff800000);

        const u64 qDesc = descriptor(base + Q_OFFSET + unsigned(consumer) * 8192u, 1, 64);
        const u64 kDesc = descriptor(base + K_OFFSET, 1, 64);
        const u64 vDesc = descriptor(base + V_OFFSET, HALF_DESC, 64);

        if (consumer == 1)
            turnArrive(otherTurn); // the first turn is consumer 0's

        for (int tile = blockIdx.x; locate(tile, cuQ, cuK, B, H, work); tile += gridDim.x) {
            const int blocks = (work.keys + BN - 1) / BN;
            float o[64];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                o[i] = 0.0f;
            float m0 = lowest, m1 = lowest, l0 = 0.0f, l1 = 0.0f;

            if (blocks > 0) {
                float s[64];
                unsigned p[32];
#pragma unroll
                for (int i = 0; i < 64; ++i)
                    s[i] = 0.0f;

                // The last block of keys comes first: it alone may need a mask.
                barrierWait(base + K_FULL + 8 * kStage, kPhase);
                barrierWait(base + Q_FULL, qPhase);
                qPhase ^= 1u;
                pin(s);
                mmaFence();
                scores(s, qDesc, kDesc + u64(kStage * TILE_DESC));
                mmaCommit();
                mmaWait<0>();
                pin(s);
                if (lane == 0) {
                    barrierArrive(base + K_EMPTY + 8 * kStage);
                    if (blocks == 1)
                        barrierArrive(base + Q_EMPTY);
                }
                __syncwarp();
                advance(kStage, kPhase);

                const int valid = work.keys - (blocks - 1) * BN;
                if (valid < BN) {
#pragma unroll
                    for (int j = 0; j < 16; ++j) {
                        const int column = j * 8 + quad * 2;
                        if (column >= valid) {
                            s[4 * j] = lowest;
                            s[4 * j + 2] = lowest;
                        }
                        if (column + 1 >= valid) {
                            s[4 * j + 1] = lowest;
                            s[4 * j + 3] = lowest;
                        }
                    }
                }
                rowMax(s, m0, m1);
                weigh(s, factor, m0, m1, l0, l1);
                packWeights(s, p);

#pragma unroll 1
                for (int n = blocks - 2; n >= 0; --n) {
                    barrierWait(base + K_FULL + 8 * kStage, kPhase);
                    turnSync(ownTurn);
                    pin(s);
                    pin(o);
                    pin(p);
                    mmaFence();
                    scores(s, qDesc, kDesc + u64(kStage * TILE_DESC));
                    mmaCommit();
                    barrierWait(base + V_FULL + 8 * vStage, vPhase);
                    values(o, p, vDesc + u64(vStage * TILE_DESC));
                    mmaCommit();
                    turnArrive(otherTurn);

                    mmaWait<1>();
                    pin(s);
                    if (lane == 0) {
                        barrierArrive(base + K_EMPTY + 8 * kStage);
                        if (n == 0)
                            barrierArrive(base + Q_EMPTY);
                    }
                    __syncwarp();
                    advance(kStage, kPhase);

                    // A maximum that grew by no more than 2^8 is left as it is: the weights stay far below the largest half,
                    // and every sum keeps the same reference.
                    float n0 = m0, n1 = m1;
                    rowMax(s, n0, n1);
                    const bool grown = (n0 - m0) * factor > 8.0f || (n1 - m1) * factor > 8.0f;
                    const bool rescale = __any_sync(0xffffffffu, grown) != 0;
                    float r0 = 1.0f, r1 = 1.0f;
                    if (rescale) {
                        r0 = ex2((m0 - n0) * factor);
                        r1 = ex2((m1 - n1) * factor);
                        m0 = n0;
                        m1 = n1;
                        l0 *= r0;
                        l1 *= r1;
                    }
                    weigh(s, factor, m0, m1, l0, l1);

                    mmaWait<0>();
                    pin(o);
                    if (lane == 0)
                        barrierArrive(base + V_EMPTY + 8 * vStage);
                    __syncwarp();
                    advance(vStage, vPhase);

                    packWeights(s, p);
                    if (rescale) {
#pragma unroll
                        for (int j = 0; j < 16; ++j) {
                            o[4 * j] *= r0;
                            o[4 * j + 1] *= r0;
                            o[4 * j + 2] *= r1;
                            o[4 * j + 3] *= r1;
                        }
                    }
                }

                barrierWait(base + V_FULL + 8 * vStage, vPhase);
                pin(o);
                pin(p);
                mmaFence();
                values(o, p, vDesc + u64(vStage * TILE_DESC));
                mmaCommit();
                mmaWait<0>();
                pin(o);
                if (lane == 0)
                    barrierArrive(base + V_EMPTY + 8 * vStage);
                __syncwarp();
                advance(vStage, vPhase);
            }

            l0 += __shfl_xor_sync(0xffffffffu, l0, 1);
            l1 += __shfl_xor_sync(0xffffffffu, l1, 1);
            l0 += __shfl_xor_sync(0xffffffffu, l0, 2);
            l1 += __shfl_xor_sync(0xffffffffu, l1, 2);
            const float i0 = l0 > 0.0f ? 1.0f / l0 : 0.0f;
            const float i1 = l1 > 0.0f ? 1.0f / l1 : 0.0f;

            const int row = consumer * 64 + warp * 16 + (lane >> 2);
            const bool odd = (quad & 1) != 0, high = (quad & 2) != 0;
            __half *target = out + (size_t(work.query + row) * H + work.head) * 128 + quad * 8;
            __half *target8 = target + size_t(8) * H * 128;
#pragma unroll
            for (int g = 0; g < 4; ++g) {
                unsigned a[4], b[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int j = 4 * g + i;
                    a[i] = pack(o[4 * j] * i0, o[4 * j + 1] * i0);
                    b[i] = pack(o[4 * j + 2] * i1, o[4 * j + 3] * i1);
                }
                transpose(a, odd, high);
                transpose(b, odd, high);
                if (row < work.rows)
                    *reinterpret_cast<uint4 *>(target + g * 32) = make_uint4(a[0], a[1], a[2], a[3]);
                if (row + 8 < work.rows)
                    *reinterpret_cast<uint4 *>(target8 + g * 32) = make_uint4(b[0], b[1], b[2], b[3]);
            }
            __syncwarp();
        }

        if (consumer == 0)
            turnSync(ownTurn); // takes the turn that nobody needs any more
    }
}
