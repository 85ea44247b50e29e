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
shared = "230528"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Persistent blocks of three warp-groups: a producer (TMA) and two consumers (wgmma), 64 queries each. A tile is
// 128 queries of one head of one sequence; keys come in blocks of 128, the last block first. All blocks of all tiles
// of a thread block form one stream: step g multiplies the weights of block g with its values while the scores of
// block g + 1, perhaps of the next tile, are computed and turned into weights.

#include <cuda_fp16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr unsigned Q_OFFSET = 0, K_OFFSET = 65536, V_OFFSET = 131072, O_OFFSET = 196608, BAR_OFFSET = 229376;
constexpr unsigned STAGE = 32768, HALF = 16384;
constexpr unsigned Q_FULL = 0, Q_EMPTY = 16, K_FULL = 32, K_EMPTY = 48, V_FULL = 64, V_EMPTY = 80;

typedef unsigned long long Descriptor;

// ---------------------------------------------------------------------------------------------- barriers, TMA

__device__ __forceinline__ void barrierInit(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void barrierExpect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// One arrival a warp, by its lane 0.
__device__ __forceinline__ void barrierRelease(unsigned bar, unsigned lane)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.u32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}\n" ::"r"(bar), "r"(lane) : "memory");
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
                 "}\n" ::"r"(bar), "r"(parity) : "memory");
}

__device__ __forceinline__ void loadBox(unsigned target, const TensorMap *map, unsigned bar, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(target),
                 "l"(reinterpret_cast<unsigned long long>(map)), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}

// 128 tokens of a head: two boxes of 64 columns.
__device__ __forceinline__ void loadTile(unsigned target, const TensorMap *map, unsigned bar, int head, int token)
{
    barrierExpect(bar, STAGE);
    loadBox(target, map, bar, 0, head, token);
    loadBox(target + HALF, map, bar, 64, head, token);
}

__device__ __forceinline__ void turnWait(int id)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(256) : "memory");
}

__device__ __forceinline__ void turnPass(int id)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(256) : "memory");
}

// ---------------------------------------------------------------------------------------------- wgmma

__device__ __forceinline__ Descriptor describe(unsigned address, unsigned leading, unsigned stride)
{
    return Descriptor((address & 0x3FFFFu) >> 4) | (Descriptor(leading >> 4) << 16) | (Descriptor(stride >> 4) << 32) |
           (Descriptor(1) << 62);
}

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

__device__ __forceinline__ void wgmmaFence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmmaCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> __device__ __forceinline__ void wgmmaWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define ACC4(d, i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(d, i) ACC4(d, (i)), ACC4(d, (i) + 4), ACC4(d, (i) + 8), ACC4(d, (i) + 12)
#define ACC64(d) ACC16(d, 0), ACC16(d, 16), ACC16(d, 32), ACC16(d, 48)

#define ACC_NAMES                                                                                                      \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                          \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                 \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// Both operands in shared memory, both K-major.
__device__ __forceinline__ void mmaShared(float (&d)[64], Descriptor a, Descriptor b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_NAMES ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC64(d)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// The first operand in registers, the second in shared memory, N-major.
__device__ __forceinline__ void mmaRegisters(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                             Descriptor b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_NAMES
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ACC64(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

// s = q · kᵀ, 64 queries by 128 keys.
__device__ __forceinline__ void issueScores(float (&s)[64], Descriptor q, Descriptor k)
{
    pin(s);
    wgmmaFence();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const Descriptor step = Descriptor((i >> 2) * (HALF >> 4) + (i & 3) * 2);
        mmaShared(s, q + step, k + step, i != 0 ? 1 : 0);
    }
    wgmmaCommit();
}

// o = p · v or o += p · v, 64 queries by 128 columns.
__device__ __forceinline__ void issueValues(float (&o)[64], unsigned (&p)[32], Descriptor v, int accumulate)
{
    pin(o);
    pin(p);
    wgmmaFence();
#pragma unroll
    for (int i = 0; i < 8; ++i)
        mmaRegisters(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], v + Descriptor(i * 128),
                     i != 0 ? 1 : accumulate);
    wgmmaCommit();
}

// ---------------------------------------------------------------------------------------------- softmax

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The largest scores of a thread's two rows, over all the keys of the block.
__device__ __forceinline__ void rowMax(const float (&s)[64], float &x, float &y)
{
    float x0 = fmaxf(s[0], s[1]), y0 = fmaxf(s[2], s[3]), x1 = fmaxf(s[4], s[5]), y1 = fmaxf(s[6], s[7]);
#pragma unroll
    for (int i = 8; i < 64; i += 8) {
        x0 = fmaxf(x0, s[i]);
        y0 = fmaxf(y0, s[i + 2]);
        x1 = fmaxf(x1, s[i + 4]);
        y1 = fmaxf(y1, s[i + 6]);
        x0 = fmaxf(x0, s[i + 1]);
        y0 = fmaxf(y0, s[i + 3]);
        x1 = fmaxf(x1, s[i + 5]);
        y1 = fmaxf(y1, s[i + 7]);
    }
    x = fmaxf(x0, x1);
    y = fmaxf(y0, y1);
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    y = fmaxf(y, __shfl_xor_sync(0xffffffffu, y, 1));
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
    y = fmaxf(y, __shfl_xor_sync(0xffffffffu, y, 2));
}

// Scores become weights, relative to the offsets; adds to the sums what this thread holds.
__device__ __forceinline__ void weigh(float (&s)[64], float factor, float offset0, float offset1, float &sum0,
                                      float &sum1)
{
    float x0 = 0.0f, x1 = 0.0f, y0 = 0.0f, y1 = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; i += 4) {
        s[i] = exp2Fast(fmaf(s[i], factor, -offset0));
        s[i + 1] = exp2Fast(fmaf(s[i + 1], factor, -offset0));
        s[i + 2] = exp2Fast(fmaf(s[i + 2], factor, -offset1));
        s[i + 3] = exp2Fast(fmaf(s[i + 3], factor, -offset1));
        x0 += s[i];
        x1 += s[i + 1];
        y0 += s[i + 2];
        y1 += s[i + 3];
    }
    sum0 += x0 + x1;
    sum1 += y0 + y1;
}

// The first block of a tile, the only one that may hold fewer than 128 keys.
__device__ __forceinline__ void firstSoftmax(float (&s)[64], float factor, int keys, unsigned lane, float &max0,
                                             float &max1, float &sum0, float &sum1)
{
    const float none = __int_as_float(0xff800000); // -infinity
    const int limit = keys - 2 * int(lane & 3);
#pragma unroll
    for (int i = 0; i < 64; ++i)
        s[i] = (8 * (i >> 2) + (i & 1)) < limit ? s[i] : none;
    rowMax(s, max0, max1);
    sum0 = 0.0f;
    sum1 = 0.0f;
    weigh(s, factor, max0 * factor, max1 * factor, sum0, sum1);
}

__device__ __forceinline__ void toWeights(const float (&s)[64], unsigned (&p)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        p[i] = pack(s[2 * i], s[2 * i + 1]);
}

// Divides by the sums and writes a warp's 16 rows, through the warp's own 4 KiB of shared memory.
__device__ __forceinline__ void writeRows(const float (&o)[64], float sum0, float sum1, unsigned stage, unsigned lane,
                                          int firstToken, int endToken, int head, int H, uint4 *out)
{
    sum0 += __shfl_xor_sync(0xffffffffu, sum0, 1);
    sum1 += __shfl_xor_sync(0xffffffffu, sum1, 1);
    sum0 += __shfl_xor_sync(0xffffffffu, sum0, 2);
    sum1 += __shfl_xor_sync(0xffffffffu, sum1, 2);
    const float inverse0 = 1.0f / sum0, inverse1 = 1.0f / sum1;

    __syncwarp();
    const unsigned row = lane >> 2, target = stage + row * 256 + (lane & 3) * 4;
#pragma unroll
    for (unsigned j = 0; j < 16; ++j) {
        const unsigned address = target + ((j ^ row) << 4);
        const unsigned upper = pack(o[4 * j] * inverse0, o[4 * j + 1] * inverse0);
        const unsigned lower = pack(o[4 * j + 2] * inverse1, o[4 * j + 3] * inverse1);
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(upper) : "memory");
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(address + 2048u), "r"(lower) : "memory");
    }
    __syncwarp();
    const unsigned chunk = lane & 15;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned line = 2 * i + (lane >> 4);
        const int token = firstToken + int(line);
        uint4 value;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(stage + line * 256 + ((chunk ^ (line & 7)) << 4))
                     : "memory");
        if (token < endToken)
            out[(size_t(token) * H + head) * 16 + chunk] = value;
    }
}

// ---------------------------------------------------------------------------------------------- tiles

// Tiles are numbered sequence by sequence, head by head, 128 queries by 128 queries.
struct Walk {
    int tile, sequence, base, rows, qBegin, qEnd, kBegin, kLength, row, head;
};

__device__ __forceinline__ void enter(Walk &w, const int *cuQ, const int *cuK)
{
    w.qBegin = __ldg(cuQ + w.sequence);
    w.qEnd = __ldg(cuQ + w.sequence + 1);
    w.kBegin = __ldg(cuK + w.sequence);
    w.kLength = __ldg(cuK + w.sequence + 1) - w.kBegin;
    w.rows = (w.qEnd - w.qBegin + 127) >> 7;
}

__device__ __forceinline__ bool locate(Walk &w, const int *cuQ, const int *cuK, int B, int H)
{
    while (w.tile >= w.base + w.rows * H) {
        w.base += w.rows * H;
        ++w.sequence;
        if (w.sequence >= B)
            return false;
        enter(w, cuQ, cuK);
    }
    const int rest = w.tile - w.base;
    w.head = rest / w.rows;
    w.row = w.qBegin + (rest - w.head * w.rows) * 128;
    return true;
}

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV, const int *cuQ,
                                                               const int *cuK, uint4 *out, int B, int H, float scale)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned base = (unsigned(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    const unsigned bars = base + BAR_OFFSET;
    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x >> 7), 0);

    if (threadIdx.x == 0) {
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
            barrierInit(bars + Q_FULL + 8 * i, 1);
            barrierInit(bars + Q_EMPTY + 8 * i, 8);
            barrierInit(bars + K_FULL + 8 * i, 1);
            barrierInit(bars + K_EMPTY + 8 * i, 8);
            barrierInit(bars + V_FULL + 8 * i, 1);
            barrierInit(bars + V_EMPTY + 8 * i, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();

    Walk walk;
    walk.tile = blockIdx.x;
    walk.sequence = 0;
    walk.base = 0;
    walk.row = 0;
    walk.head = 0;

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            enter(walk, cuQ, cuK);
            unsigned g = 0, n = 0;
            int vHead = 0, vToken = 0;
            while (locate(walk, cuQ, cuK, B, H)) {
                const unsigned qs = n & 1;
                barrierWait(bars + Q_EMPTY + 8 * qs, ((n >> 1) & 1) ^ 1);
                loadTile(base + Q_OFFSET + qs * STAGE, &mapQ, bars + Q_FULL + 8 * qs, walk.head, walk.row);
                ++n;
#pragma unroll 1
                for (int block = ((walk.kLength + 127) >> 7) - 1; block >= 0; --block) {
                    const unsigned ks = g & 1;
                    const int token = walk.kBegin + block * 128;
                    barrierWait(bars + K_EMPTY + 8 * ks, ((g >> 1) & 1) ^ 1);
                    loadTile(base + K_OFFSET + ks * STAGE, &mapK, bars + K_FULL + 8 * ks, walk.head, token);
                    if (g > 0) {
                        const unsigned before = g - 1, vs = before & 1;
                        barrierWait(bars + V_EMPTY + 8 * vs, ((before >> 1) & 1) ^ 1);
                        loadTile(base + V_OFFSET + vs * STAGE, &mapV, bars + V_FULL + 8 * vs, vHead, vToken);
                    }
                    vHead = walk.head;
                    vToken = token;
                    ++g;
                }
                walk.tile += int(gridDim.x);
            }
            if (g > 0) {
                const unsigned before = g - 1, vs = before & 1;
                barrierWait(bars + V_EMPTY + 8 * vs, ((before >> 1) & 1) ^ 1);
                loadTile(base + V_OFFSET + vs * STAGE, &mapV, bars + V_FULL + 8 * vs, vHead, vToken);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int w = group - 1;
        const unsigned lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
        const unsigned stage = base + O_OFFSET + (unsigned(w) * 4 + warp) * 4096;
        const int ownRow = w * 64 + int(warp) * 16;
        const float factor = scale * 1.4426950408889634f;

        const Descriptor descQ = describe(base + Q_OFFSET + unsigned(w) * 8192, 16, 1024);
        const Descriptor descK = describe(base + K_OFFSET, 16, 1024);
        const Descriptor descV = describe(base + V_OFFSET, HALF, 1024);

        enter(walk, cuQ, cuK);
        if (locate(walk, cuQ, cuK, B, H)) {
            float o[64], s[64];
            unsigned p[32];
            float max0, max1, sum0, sum1;
            unsigned g = 0, n = 0;
            int blocks = (walk.kLength + 127) >> 7;

            if (w == 1)
                turnPass(1);

            // The scores of the first block of all.
            barrierWait(bars + Q_FULL, 0);
            barrierWait(bars + K_FULL, 0);
            issueScores(s, descQ, descK);
            wgmmaWait<0>();
            pin(s);
            barrierRelease(bars + K_EMPTY, lane);
            firstSoftmax(s, factor, walk.kLength - (blocks - 1) * 128, lane, max0, max1, sum0, sum1);
            toWeights(s, p);
            pin(p);

            int row, end, head;
            while (true) {
                const Descriptor q = descQ + Descriptor((n & 1) * (STAGE >> 4));
#pragma unroll 1
                for (int j = 1; j < blocks; ++j) {
                    const unsigned ks = (g + 1) & 1, vs = g & 1;
                    barrierWait(bars + K_FULL + 8 * ks, ((g + 1) >> 1) & 1);
                    barrierWait(bars + V_FULL + 8 * vs, (g >> 1) & 1);
                    turnWait(1 + w);
                    issueScores(s, q, descK + Descriptor(ks * (STAGE >> 4)));
                    issueValues(o, p, descV + Descriptor(vs * (STAGE >> 4)), j > 1 ? 1 : 0);
                    turnPass(2 - w);
                    wgmmaWait<1>();
                    pin(s);
                    barrierRelease(bars + K_EMPTY + 8 * ks, lane);

                    // The reference of a row follows its maximum only where weights would exceed 2^8.
                    float x, y;
                    rowMax(s, x, y);
                    const bool up0 = (x - max0) * factor > 8.0f, up1 = (y - max1) * factor > 8.0f;
                    const float new0 = up0 ? x : max0, new1 = up1 ? y : max1;
                    const float by0 = exp2Fast((max0 - new0) * factor), by1 = exp2Fast((max1 - new1) * factor);
                    const int rescale = __any_sync(0xffffffffu, up0 || up1);
                    max0 = new0;
                    max1 = new1;
                    sum0 *= by0;
                    sum1 *= by1;
                    weigh(s, factor, max0 * factor, max1 * factor, sum0, sum1);
                    pin(s);

                    wgmmaWait<0>();
                    pin(o);
                    pin(s);
                    barrierRelease(bars + V_EMPTY + 8 * vs, lane);
                    if (rescale) {
#pragma unroll
                        for (int i = 0; i < 64; i += 4) {
                            o[i] *= by0;
                            o[i + 1] *= by0;
                            o[i + 2] *= by1;
                            o[i + 3] *= by1;
                        }
                    }
                    toWeights(s, p);
                    pin(p);
                    pin(o);
                    ++g;
                }

                // All scores of this tile are computed.
                barrierRelease(bars + Q_EMPTY + 8 * (n & 1), lane);
                row = walk.row;
                end = walk.qEnd;
                head = walk.head;
                const int accumulate = blocks > 1 ? 1 : 0;
                walk.tile += int(gridDim.x);
                if (!locate(walk, cuQ, cuK, B, H))
                    break;

                // The last values of this tile, and the first scores of the next.
                ++n;
                blocks = (walk.kLength + 127) >> 7;
                const unsigned ks = (g + 1) & 1, vs = g & 1;
                barrierWait(bars + Q_FULL + 8 * (n & 1), (n >> 1) & 1);
                barrierWait(bars + K_FULL + 8 * ks, ((g + 1) >> 1) & 1);
                barrierWait(bars + V_FULL + 8 * vs, (g >> 1) & 1);
                turnWait(1 + w);
                issueScores(s, descQ + Descriptor((n & 1) * (STAGE >> 4)), descK + Descriptor(ks * (STAGE >> 4)));
                issueValues(o, p, descV + Descriptor(vs * (STAGE >> 4)), accumulate);
                turnPass(2 - w);
                wgmmaWait<1>();
                pin(s);
                barrierRelease(bars + K_EMPTY + 8 * ks, lane);
                const float last0 = sum0, last1 = sum1;
                firstSoftmax(s, factor, walk.kLength - (blocks - 1) * 128, lane, max0, max1, sum0, sum1);
                pin(s);

                wgmmaWait<0>();
                pin(o);
                pin(s);
                barrierRelease(bars + V_EMPTY + 8 * vs, lane);
                toWeights(s, p);
                pin(p);
                writeRows(o, last0, last1, stage, lane, row + ownRow, end, head, H, out);
                ++g;
            }

            // The last values of all.
            const unsigned vs = g & 1;
            barrierWait(bars + V_FULL + 8 * vs, (g >> 1) & 1);
            issueValues(o, p, descV + Descriptor(vs * (STAGE >> 4)), blocks > 1 ? 1 : 0);
            wgmmaWait<0>();
            pin(o);
            writeRows(o, sum0, sum1, stage, lane, row + ownRow, end, head, H, out);

            // The turn that the other group has passed on last.
            if (w == 0)
                turnWait(1);
        }
    }
}
