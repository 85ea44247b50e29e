/*klineage
surface = "cuda"

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

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["384"]
shared = "197760"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Persistent blocks of three warp groups. Group 0 loads by TMA; groups 1 and 2 own 64 queries each of a tile of
// 128 queries. Blocks of 128 keys are visited from the last to the first, so that only the first visited is masked.
// A group issues S = Q·Kᵀ of block n together with O += P·V of block n - 1 and computes softmax under the latter.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr unsigned TILE_BYTES = 32768, HALF_BYTES = 16384;
constexpr unsigned Q_AT = 0, K_AT = 65536, V_AT = 131072, BARRIERS_AT = 196608;
constexpr unsigned Q_FULL = 0, Q_EMPTY = 16, K_FULL = 32, K_EMPTY = 48, V_FULL = 64, V_EMPTY = 80;

// ---------------------------------------------------------------- barriers

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void awaitBarrier(unsigned barrier, unsigned parity)
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

__device__ __forceinline__ void arriveBarrier(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void turnWait(unsigned id)
{
    asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void turnGive(unsigned id)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}

// ---------------------------------------------------------------- loads

__device__ __forceinline__ void loadBox(unsigned to, const TensorMap *map, unsigned barrier, int column, int head, int row)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(head), "r"(row)
                 : "memory");
}

__device__ __forceinline__ void loadTile(unsigned to, const TensorMap *map, unsigned barrier, int head, int row)
{
    expectBytes(barrier, TILE_BYTES);
    loadBox(to, map, barrier, 0, head, row);
    loadBox(to + HALF_BYTES, map, barrier, 64, head, row);
}

// ---------------------------------------------------------------- wgmma

template <int N> __device__ __forceinline__ void pin(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i])::"memory");
}

template <int N> __device__ __forceinline__ void pin(unsigned (&x)[N])
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

// 128-byte swizzle, 1024 bytes between groups of eight rows.
__device__ __forceinline__ unsigned long long descriptor(unsigned low)
{
    return (static_cast<unsigned long long>(64u | (1u << 30)) << 32) | low;
}

#define ACC_OPERANDS                                                                                                   \
    "{%0, %1, %2, %3, %4, %5, %6, %7, "                                                                                \
    "%8, %9, %10, %11, %12, %13, %14, %15, "                                                                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, "                                                                         \
    "%24, %25, %26, %27, %28, %29, %30, %31, "                                                                         \
    "%32, %33, %34, %35, %36, %37, %38, %39, "                                                                         \
    "%40, %41, %42, %43, %44, %45, %46, %47, "                                                                         \
    "%48, %49, %50, %51, %52, %53, %54, %55, "                                                                         \
    "%56, %57, %58, %59, %60, %61, %62, %63}"

#define ACC_8(x, i)                                                                                                    \
    "+f"(x[(i)]), "+f"(x[(i) + 1]), "+f"(x[(i) + 2]), "+f"(x[(i) + 3]), "+f"(x[(i) + 4]), "+f"(x[(i) + 5]),            \
        "+f"(x[(i) + 6]), "+f"(x[(i) + 7])

#define ACC_64(x)                                                                                                      \
    ACC_8(x, 0), ACC_8(x, 8), ACC_8(x, 16), ACC_8(x, 24), ACC_8(x, 32), ACC_8(x, 40), ACC_8(x, 48), ACC_8(x, 56)

__device__ __forceinline__ void mmaShared(float (&d)[64], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_OPERANDS ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC_64(d)
                 : "l"(a), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void mmaRegisters(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                             unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_OPERANDS
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ACC_64(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

// S = Q · Kᵀ, 64 x 128 x 128.
__device__ __forceinline__ void issueScores(float (&s)[64], unsigned qLow, unsigned kLow)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const unsigned offset = (i >> 2) * (HALF_BYTES >> 4) + (i & 3) * 2;
        mmaShared(s, descriptor(qLow + offset), descriptor(kLow + offset), i != 0);
    }
}

// O += P · V, 64 x 128 x 128.
__device__ __forceinline__ void issueSum(float (&o)[64], const unsigned (&p)[32], unsigned vLow)
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        mmaRegisters(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], descriptor(vLow + i * 128), 1);
}

// ---------------------------------------------------------------- softmax

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
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

// The largest of each of the two rows, those given included.
__device__ __forceinline__ void largest(const float (&s)[64], float &m0, float &m1)
{
    float a0 = fmaxf(m0, s[0]), b0 = s[1], a1 = fmaxf(m1, s[2]), b1 = s[3];
#pragma unroll
    for (int j = 1; j < 16; ++j) {
        a0 = fmaxf(a0, s[4 * j]);
        b0 = fmaxf(b0, s[4 * j + 1]);
        a1 = fmaxf(a1, s[4 * j + 2]);
        b1 = fmaxf(b1, s[4 * j + 3]);
    }
    m0 = quadMax(fmaxf(a0, b0));
    m1 = quadMax(fmaxf(a1, b1));
}

// Scores become weights, which are added to the sums of this thread.
__device__ __forceinline__ void weigh(float (&s)[64], float scale2, float m0, float m1, float &l0, float &l1)
{
    const float n0 = -m0 * scale2, n1 = -m1 * scale2;
    float a0 = 0.0f, b0 = 0.0f, a1 = 0.0f, b1 = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        s[4 * j] = power(fmaf(s[4 * j], scale2, n0));
        s[4 * j + 1] = power(fmaf(s[4 * j + 1], scale2, n0));
        s[4 * j + 2] = power(fmaf(s[4 * j + 2], scale2, n1));
        s[4 * j + 3] = power(fmaf(s[4 * j + 3], scale2, n1));
        a0 += s[4 * j];
        b0 += s[4 * j + 1];
        a1 += s[4 * j + 2];
        b1 += s[4 * j + 3];
    }
    l0 += a0 + b0;
    l1 += a1 + b1;
}

// The first block of a tile: masked, and nothing was before it. limit: valid keys, less this thread's first column.
__device__ __forceinline__ void firstSoftmax(float (&s)[64], int limit, float scale2, float &m0, float &m1, float &l0,
                                             float &l1)
{
    const float nothing = __int_as_float(0xff800000); // -infinity
#pragma unroll
    for (int j = 0; j < 16; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            s[4 * j + e] = 8 * j + (e & 1) < limit ? s[4 * j + e] : nothing;
    }
    m0 = nothing;
    m1 = nothing;
    largest(s, m0, m1);
    m0 = m0 == nothing ? 0.0f : m0;
    m1 = m1 == nothing ? 0.0f : m1;
    l0 = 0.0f;
    l1 = 0.0f;
    weigh(s, scale2, m0, m1, l0, l1);
}

__device__ __forceinline__ void convert(unsigned (&p)[32], const float (&s)[64])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        p[i] = pack(s[2 * i], s[2 * i + 1]);
}

// Divides by the sums and writes this thread's parts of two rows: pairs of lanes exchange words, so that four lanes
// write a whole sector of 32 bytes.
__device__ __forceinline__ void finish(const float (&o)[64], float l0, float l1, __half *out, int row, int end, int head,
                                       int H, int lane)
{
    l0 = quadSum(l0);
    l1 = quadSum(l1);
    const float f0 = l0 > 0.0f ? 1.0f / l0 : 0.0f, f1 = l1 > 0.0f ? 1.0f / l1 : 0.0f;
    const bool odd = lane & 1;
    const int column = (lane & 1) * 8 + (lane & 2) * 2;
    __half *to0 = out + (size_t(row) * H + head) * 128 + column;
    __half *to1 = to0 + size_t(8) * H * 128;
    const bool write0 = row < end, write1 = row + 8 < end;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const unsigned a0 = pack(o[8 * j] * f0, o[8 * j + 1] * f0), b0 = pack(o[8 * j + 4] * f0, o[8 * j + 5] * f0);
        const unsigned a1 = pack(o[8 * j + 2] * f1, o[8 * j + 3] * f1), b1 = pack(o[8 * j + 6] * f1, o[8 * j + 7] * f1);
        const unsigned r0 = __shfl_xor_sync(0xffffffffu, odd ? a0 : b0, 1);
        const unsigned r1 = __shfl_xor_sync(0xffffffffu, odd ? a1 : b1, 1);
        const uint2 x0 = make_uint2(odd ? r0 : a0, odd ? b0 : r0);
        const uint2 x1 = make_uint2(odd ? r1 : a1, odd ? b1 : r1);
        if (write0)
            *reinterpret_cast<uint2 *>(to0 + 16 * j) = x0;
        if (write1)
            *reinterpret_cast<uint2 *>(to1 + 16 * j) = x1;
    }
}

// ---------------------------------------------------------------- tiles

struct Tile {
    int row, end, head; // first query, end of the sequence's queries
    int key, blocks;    // first key, blocks of 128 keys
    int valid;          // keys in the last block
};

// Tiles of a sequence are numbered queries first, then heads. sequence and before (tiles of the sequences before) only grow.
__device__ __forceinline__ bool findTile(int index, int &sequence, int &before, const int *__restrict__ cuQ,
                                         const int *__restrict__ cuK, int B, int H, Tile &tile)
{
    while (sequence < B) {
        const int first = __ldg(cuQ + sequence), last = __ldg(cuQ + sequence + 1);
        const int rows = (last - first + 127) >> 7, count = rows * H;
        if (index < before + count) {
            const int local = index - before;
            const int head = local / rows;
            tile.head = head;
            tile.row = first + (local - head * rows) * 128;
            tile.end = last;
            const int key = __ldg(cuK + sequence), length = __ldg(cuK + sequence + 1) - key;
            tile.key = key;
            tile.blocks = max(1, (length + 127) >> 7);
            tile.valid = length - (tile.blocks - 1) * 128;
            return true;
        }
        before += count;
        ++sequence;
    }
    return false;
}

// ---------------------------------------------------------------- kernel

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *__restrict__ cuQ,
                                                               const int *__restrict__ cuK, __half *out, int B, int H,
                                                               float scale)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned base = (static_cast<unsigned>(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    const unsigned bars = base + BARRIERS_AT;

    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < 2; ++i) {
            initBarrier(bars + Q_FULL + 8 * i, 1);
            initBarrier(bars + K_FULL + 8 * i, 1);
            initBarrier(bars + V_FULL + 8 * i, 1);
            initBarrier(bars + Q_EMPTY + 8 * i, 8);
            initBarrier(bars + K_EMPTY + 8 * i, 8);
            initBarrier(bars + V_EMPTY + 8 * i, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    const int role = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x >> 7), 0);
    int index = blockIdx.x, sequence = 0, before = 0;

    if (role == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            unsigned it = 0, count = 0;
            int lastRow = 0, lastHead = 0;
            Tile tile;
            for (; findTile(index, sequence, before, cuQ, cuK, B, H, tile); index += gridDim.x, ++count) {
                const unsigned slot = count & 1;
                awaitBarrier(bars + Q_EMPTY + 8 * slot, ((count >> 1) & 1) ^ 1);
                loadTile(base + Q_AT + slot * TILE_BYTES, &mapQ, bars + Q_FULL + 8 * slot, tile.head, tile.row);
                for (int block = tile.blocks - 1; block >= 0; --block) {
                    const int row = tile.key + block * 128;
                    const unsigned stage = it & 1;
                    awaitBarrier(bars + K_EMPTY + 8 * stage, ((it >> 1) & 1) ^ 1);
                    loadTile(base + K_AT + stage * TILE_BYTES, &mapK, bars + K_FULL + 8 * stage, tile.head, row);
                    if (it != 0) {
                        const unsigned vIt = it - 1, vStage = vIt & 1;
                        awaitBarrier(bars + V_EMPTY + 8 * vStage, ((vIt >> 1) & 1) ^ 1);
                        loadTile(base + V_AT + vStage * TILE_BYTES, &mapV, bars + V_FULL + 8 * vStage, lastHead, lastRow);
                    }
                    lastRow = row;
                    lastHead = tile.head;
                    ++it;
                }
            }
            if (it != 0) {
                const unsigned vIt = it - 1, vStage = vIt & 1;
                awaitBarrier(bars + V_EMPTY + 8 * vStage, ((vIt >> 1) & 1) ^ 1);
                loadTile(base + V_AT + vStage * TILE_BYTES, &mapV, bars + V_FULL + 8 * vStage, lastHead, lastRow);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int group = role - 1;
        const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
        const unsigned own = 1 + group, other = 2 - group;
        const float scale2 = scale * 1.4426950408889634f;
        const int columnOfLane = 2 * (lane & 3), rowOfLane = group * 64 + warp * 16 + (lane >> 2);

        // Low words of the descriptors; the leading offset counts for v only, between its halves of 64 columns.
        const unsigned qLow = ((base + Q_AT + group * 8192) >> 4) | (1u << 16);
        const unsigned kLow = ((base + K_AT) >> 4) | (1u << 16);
        const unsigned vLow = ((base + V_AT) >> 4) | ((HALF_BYTES >> 4) << 16);
        constexpr unsigned STEP = TILE_BYTES >> 4;

        if (group == 1)
            turnGive(1); // group 0 begins

        Tile tile;
        if (findTile(index, sequence, before, cuQ, cuK, B, H, tile)) {
            float s[64], o[64], m0, m1, l0, l1;
            unsigned p[32];
#pragma unroll
            for (int i = 0; i < 64; ++i) {
                s[i] = 0.0f;
                o[i] = 0.0f;
            }
            unsigned it = 1, count = 0;

            awaitBarrier(bars + Q_FULL, 0);
            awaitBarrier(bars + K_FULL, 0);
            pin(s);
            mmaFence();
            issueScores(s, qLow, kLow);
            mmaCommit();
            mmaWait<0>();
            pin(s);
            if (lane == 0)
                arriveBarrier(bars + K_EMPTY);
            firstSoftmax(s, tile.valid - columnOfLane, scale2, m0, m1, l0, l1);
            convert(p, s);

            for (;;) {
                Tile next;
                index += gridDim.x;
                const bool more = findTile(index, sequence, before, cuQ, cuK, B, H, next);

                for (int n = 1; n < tile.blocks; ++n, ++it) {
                    const unsigned kStage = it & 1, vIt = it - 1, vStage = vIt & 1;
                    awaitBarrier(bars + K_FULL + 8 * kStage, (it >> 1) & 1);
                    turnWait(own);
                    pin(s);
                    pin(o);
                    pin(p);
                    mmaFence();
                    issueScores(s, qLow + (count & 1) * STEP, kLow + kStage * STEP);
                    mmaCommit();
                    awaitBarrier(bars + V_FULL + 8 * vStage, (vIt >> 1) & 1);
                    mmaFence();
                    issueSum(o, p, vLow + vStage * STEP);
                    mmaCommit();
                    turnGive(other);

                    mmaWait<1>();
                    pin(s);
                    if (lane == 0)
                        arriveBarrier(bars + K_EMPTY + 8 * kStage);
                    float top0 = m0, top1 = m1;
                    largest(s, top0, top1);
                    const float fade0 = power((m0 - top0) * scale2), fade1 = power((m1 - top1) * scale2);
                    m0 = top0;
                    m1 = top1;
                    l0 *= fade0;
                    l1 *= fade1;
                    weigh(s, scale2, m0, m1, l0, l1);

                    mmaWait<0>();
                    pin(o);
                    if (lane == 0)
                        arriveBarrier(bars + V_EMPTY + 8 * vStage);
                    convert(p, s);
#pragma unroll
                    for (int j = 0; j < 16; ++j) {
                        o[4 * j] *= fade0;
                        o[4 * j + 1] *= fade0;
                        o[4 * j + 2] *= fade1;
                        o[4 * j + 3] *= fade1;
                    }
                }

                if (lane == 0)
                    arriveBarrier(bars + Q_EMPTY + 8 * (count & 1));
                if (!more)
                    break;
                ++count;

                // The next tile's first scores go with this tile's last sum.
                {
                    const unsigned kStage = it & 1, vIt = it - 1, vStage = vIt & 1;
                    awaitBarrier(bars + Q_FULL + 8 * (count & 1), (count >> 1) & 1);
                    awaitBarrier(bars + K_FULL + 8 * kStage, (it >> 1) & 1);
                    turnWait(own);
                    pin(s);
                    pin(o);
                    pin(p);
                    mmaFence();
                    issueScores(s, qLow + (count & 1) * STEP, kLow + kStage * STEP);
                    mmaCommit();
                    awaitBarrier(bars + V_FULL + 8 * vStage, (vIt >> 1) & 1);
                    mmaFence();
                    issueSum(o, p, vLow + vStage * STEP);
                    mmaCommit();
                    turnGive(other);

                    mmaWait<1>();
                    pin(s);
                    if (lane == 0)
                        arriveBarrier(bars + K_EMPTY + 8 * kStage);
                    float sum0, sum1;
                    firstSoftmax(s, next.valid - columnOfLane, scale2, m0, m1, sum0, sum1);

                    mmaWait<0>();
                    pin(o);
                    if (lane == 0)
                        arriveBarrier(bars + V_EMPTY + 8 * vStage);
                    convert(p, s);
                    finish(o, l0, l1, out, tile.row + rowOfLane, tile.end, tile.head, H, lane);
                    l0 = sum0;
                    l1 = sum1;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        o[i] = 0.0f;
                    tile = next;
                    ++it;
                }
            }

            // The last tile's last sum.
            const unsigned vIt = it - 1, vStage = vIt & 1;
            awaitBarrier(bars + V_FULL + 8 * vStage, (vIt >> 1) & 1);
            pin(o);
            pin(p);
            mmaFence();
            issueSum(o, p, vLow + vStage * STEP);
            mmaCommit();
            mmaWait<0>();
            pin(o);
            finish(o, l0, l1, out, tile.row + rowOfLane, tile.end, tile.head, H, lane);
        }

        if (group == 0)
            turnWait(own); // takes the turn that is left over
    }
}
