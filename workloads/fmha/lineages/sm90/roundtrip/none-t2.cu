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
shared = "230656"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// One block stays on each multiprocessor and walks over tiles of 128 queries of one sequence and head. Warpgroup 0
// loads (one thread, TMA), warpgroups 1 and 2 compute 64 queries each. The stream of key blocks goes on without a
// break from tile to tile: with the scores of one block the product of the block before it is issued, whichever
// tile they belong to. The blocks of a tile are taken last to first: only the last can be incomplete.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr unsigned TILE = 32768, PANEL = 16384; // 128 rows of 128 numbers; 128 rows of 64 numbers
constexpr unsigned OFF_Q = 0, OFF_K = 2 * TILE, OFF_V = 4 * TILE, OFF_O = 6 * TILE, OFF_BARS = 7 * TILE;
constexpr unsigned Q_FULL = 0, Q_EMPTY = 16, K_FULL = 32, K_EMPTY = 48, V_FULL = 64, V_EMPTY = 80, INFO = 128;
constexpr unsigned ALL = 0xffffffffu;

// ---------------------------------------------------------------------------------------------- barriers, copies

__device__ __forceinline__ void initBarrier(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void waitFor(unsigned bar, unsigned parity)
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

__device__ __forceinline__ void arrive(unsigned bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void loadPanel(unsigned to, const TensorMap *map, unsigned bar, int d, int head, int row)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                 "l"(reinterpret_cast<unsigned long long>(map)), "r"(bar), "r"(d), "r"(head), "r"(row)
                 : "memory");
}

__device__ __forceinline__ void loadTile(unsigned to, const TensorMap *map, unsigned bar, int head, int row)
{
    expectBytes(bar, TILE);
    loadPanel(to, map, bar, 0, head, row);
    loadPanel(to + PANEL, map, bar, 64, head, row);
}

__device__ __forceinline__ void turnWait(int id)
{
    asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void turnPass(int id)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}

// ------------------------------------------------------------------------------------------------------ products

#define R8(c, d, i)                                                                                                  \
    c(d[(i)]), c(d[(i) + 1]), c(d[(i) + 2]), c(d[(i) + 3]), c(d[(i) + 4]), c(d[(i) + 5]), c(d[(i) + 6]), c(d[(i) + 7])
#define R64(c, d)                                                                                                    \
    R8(c, d, 0), R8(c, d, 8), R8(c, d, 16), R8(c, d, 24), R8(c, d, 32), R8(c, d, 40), R8(c, d, 48), R8(c, d, 56)
#define REGS64                                                                                                       \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                        \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                               \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                               \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

__device__ __forceinline__ void productFence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void productCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> __device__ __forceinline__ void productWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void hold(float (&r)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

__device__ __forceinline__ void hold(unsigned (&r)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        asm volatile("" : "+r"(r[i])::"memory");
}

// d = a · b, both in shared memory
__device__ __forceinline__ void productNew(float (&d)[64], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGS64 ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : R64("=f", d)
                 : "l"(a), "l"(b), "r"(0));
}

// d += a · b, both in shared memory
__device__ __forceinline__ void productAdd(float (&d)[64], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGS64 ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : R64("+f", d)
                 : "l"(a), "l"(b), "r"(1));
}

// d = a · b (add == 0) or d += a · b; a in registers, b in shared memory with its columns side by side
__device__ __forceinline__ void productRegs(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                            unsigned long long b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGS64
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : R64("+f", d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(add));
}

__device__ __forceinline__ void scores(float (&s)[64], unsigned long long q, unsigned long long k)
{
    productNew(s, q, k);
#pragma unroll
    for (int i = 1; i < 8; ++i) {
        const unsigned long long step = (i >> 2) * (PANEL >> 4) + (i & 3) * 2;
        productAdd(s, q + step, k + step);
    }
}

__device__ __forceinline__ void values(float (&o)[64], const unsigned (&p)[32], unsigned long long v, int add)
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        productRegs(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], v + static_cast<unsigned long long>(i * 128),
                    i == 0 ? add : 1);
}

// ------------------------------------------------------------------------------------------------------- softmax

__device__ __forceinline__ float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(ALL, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL, x, 2));
}

__device__ __forceinline__ float quadSum(float x)
{
    x += __shfl_xor_sync(ALL, x, 1);
    return x + __shfl_xor_sync(ALL, x, 2);
}

__device__ __forceinline__ void mask(float (&s)[64], int valid, int lane)
{
    const int first = 2 * (lane & 3);
#pragma unroll
    for (int i = 0; i < 64; ++i)
        if (8 * (i >> 2) + (i & 1) + first >= valid)
            s[i] = __int_as_float(0xff800000); // -infinity
}

__device__ __forceinline__ void tops(const float (&s)[64], float &top0, float &top1)
{
    float x0 = s[0], y0 = s[1], x1 = s[2], y1 = s[3];
#pragma unroll
    for (int j = 1; j < 16; ++j) {
        x0 = fmaxf(x0, s[4 * j]);
        y0 = fmaxf(y0, s[4 * j + 1]);
        x1 = fmaxf(x1, s[4 * j + 2]);
        y1 = fmaxf(y1, s[4 * j + 3]);
    }
    top0 = fmaxf(x0, y0);
    top1 = fmaxf(x1, y1);
}

// Where a tile's maxima begin; zero for a row without any key.
__device__ __forceinline__ float begin(float top)
{
    top = quadMax(top);
    return top == __int_as_float(0xff800000) ? 0.0f : top;
}

__device__ __forceinline__ void weigh(float (&s)[64], float scale2, float m0, float m1, float &l0, float &l1)
{
    const float n0 = -m0 * scale2, n1 = -m1 * scale2;
    float x0 = 0.0f, y0 = 0.0f, x1 = 0.0f, y1 = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        s[4 * j] = power2(fmaf(s[4 * j], scale2, n0));
        s[4 * j + 1] = power2(fmaf(s[4 * j + 1], scale2, n0));
        s[4 * j + 2] = power2(fmaf(s[4 * j + 2], scale2, n1));
        s[4 * j + 3] = power2(fmaf(s[4 * j + 3], scale2, n1));
        x0 += s[4 * j];
        y0 += s[4 * j + 1];
        x1 += s[4 * j + 2];
        y1 += s[4 * j + 3];
    }
    l0 += x0 + y0;
    l1 += x1 + y1;
}

__device__ __forceinline__ void convert(unsigned (&p)[32], const float (&s)[64])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        p[i] = pack(s[2 * i], s[2 * i + 1]);
}

// A warp's 16 rows: through its own part of shared memory, then whole rows to the device's memory.
__device__ __forceinline__ void finish(const float (&o)[64], float l0, float l1, unsigned char *stage, uint4 *out,
                                       int token, int rows, int head, int H, int first, int lane)
{
    l0 = quadSum(l0);
    l1 = quadSum(l1);
    const float inverse0 = l0 > 0.0f ? reciprocal(l0) : 0.0f, inverse1 = l1 > 0.0f ? reciprocal(l1) : 0.0f;
    const int g = lane >> 2, c = lane & 3;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        unsigned char *at = stage + g * 256 + ((j ^ g) << 4) + 4 * c;
        *reinterpret_cast<unsigned *>(at) = pack(o[4 * j] * inverse0, o[4 * j + 1] * inverse0);
        *reinterpret_cast<unsigned *>(at + 8 * 256) = pack(o[4 * j + 2] * inverse1, o[4 * j + 3] * inverse1);
    }
    __syncwarp();
    const int chunk = lane & 15;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = 2 * i + (lane >> 4);
        const uint4 value = *reinterpret_cast<const uint4 *>(stage + row * 256 + ((chunk ^ (row & 7)) << 4));
        if (first + row < rows)
            out[(size_t(token + first + row) * H + head) * 16 + chunk] = value;
    }
}

// -------------------------------------------------------------------------------------------------------- kernel

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV, const int *cuQ,
                                                               const int *cuK, uint4 *out, int B, int H, float scale)
{
    extern __shared__ unsigned char raw[];
    const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(raw));
    const unsigned base = (start + 1023u) & ~1023u;
    unsigned char *const memory = raw + (base - start);
    const unsigned bars = base + OFF_BARS;
    int *const info = reinterpret_cast<int *>(memory + OFF_BARS + INFO); // two descriptions of tiles, 8 words each
    const int warp = __shfl_sync(ALL, static_cast<int>(threadIdx.x) / 32, 0), lane = threadIdx.x & 31;

    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            initBarrier(bars + Q_FULL + 8 * s, 1);
            initBarrier(bars + Q_EMPTY + 8 * s, 8);
            initBarrier(bars + K_FULL + 8 * s, 1);
            initBarrier(bars + K_EMPTY + 8 * s, 8);
            initBarrier(bars + V_FULL + 8 * s, 1);
            initBarrier(bars + V_EMPTY + 8 * s, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();

    if (warp < 4) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            unsigned tile = 0, ks = 0, vs = 0;
            int vRow = -1, vHead = 0; // the values that are still to be loaded
            for (int index = blockIdx.x;; index += gridDim.x, ++tile) {
                int rest = index, token = 0, rows = 0, head = 0, firstKey = 0, keys = 0, blocks = 0;
                for (int b = 0; b < B; ++b) {
                    const int from = cuQ[b], count = cuQ[b + 1] - from, parts = (count + 127) >> 7, all = parts * H;
                    if (rest < all) {
                        head = rest / parts;
                        const int part = rest - head * parts;
                        token = from + part * 128;
                        rows = min(128, count - part * 128);
                        firstKey = cuK[b];
                        keys = cuK[b + 1] - firstKey;
                        blocks = max(1, (keys + 127) >> 7);
                        break;
                    }
                    rest -= all;
                }

                const unsigned slot = tile & 1;
                waitFor(bars + Q_EMPTY + 8 * slot, ((tile >> 1) & 1) ^ 1);
                info[8 * slot] = token;
                info[8 * slot + 1] = rows;
                info[8 * slot + 2] = head;
                info[8 * slot + 3] = keys - (blocks - 1) * 128;
                info[8 * slot + 4] = blocks;
                if (blocks == 0) { // no more tiles
                    arrive(bars + Q_FULL + 8 * slot);
                    break;
                }
                loadTile(base + OFF_Q + slot * TILE, &mapQ, bars + Q_FULL + 8 * slot, head, token);

                for (int block = blocks - 1; block >= 0; --block) {
                    const int row = firstKey + block * 128;
                    const unsigned k = ks & 1;
                    waitFor(bars + K_EMPTY + 8 * k, ((ks >> 1) & 1) ^ 1);
                    loadTile(base + OFF_K + k * TILE, &mapK, bars + K_FULL + 8 * k, head, row);
                    ++ks;
                    if (vRow >= 0) {
                        const unsigned v = vs & 1;
                        waitFor(bars + V_EMPTY + 8 * v, ((vs >> 1) & 1) ^ 1);
                        loadTile(base + OFF_V + v * TILE, &mapV, bars + V_FULL + 8 * v, vHead, vRow);
                        ++vs;
                    }
                    vRow = row;
                    vHead = head;
                }
            }
            if (vRow >= 0) {
                const unsigned v = vs & 1;
                waitFor(bars + V_EMPTY + 8 * v, ((vs >> 1) & 1) ^ 1);
                loadTile(base + OFF_V + v * TILE, &mapV, bars + V_FULL + 8 * v, vHead, vRow);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int group = (warp >> 2) - 1;                    // 0 or 1
        const int first = group * 64 + (warp & 3) * 16;       // the warp's first row in the tile
        unsigned char *const stage = memory + OFF_O + (warp - 4) * 4096;
        const float scale2 = scale * 1.4426950408889634f, slack = __fdividef(8.0f, scale2);

        // 128-byte swizzle, 1024 bytes from 8 rows to the next; V: 16384 bytes from 64 columns to the next
        const unsigned long long along = (1ull << 62) | (64ull << 32) | (1ull << 16);
        const unsigned long long across = (1ull << 62) | (64ull << 32) | (1024ull << 16);
        const unsigned long long qBase = along + ((base + OFF_Q + group * 8192u) >> 4);
        const unsigned long long kBase = along + ((base + OFF_K) >> 4);
        const unsigned long long vBase = across + ((base + OFF_V) >> 4);

        if (group == 1)
            turnPass(1); // group 0 begins

        unsigned tile = 0, ks = 0, vs = 0;
        waitFor(bars + Q_FULL, 0);
        int4 now = *reinterpret_cast<const int4 *>(info); // token, rows, head, keys of the last block
        int left = __shfl_sync(ALL, info[4], 0);          // the tile's blocks whose scores are still to be computed
        if (left > 0) {
            float o[64], m0, m1, l0 = 0.0f, l1 = 0.0f;
            unsigned p[32];
            int add = 0;
#pragma unroll
            for (int i = 0; i < 64; ++i)
                o[i] = 0.0f;

            {
                float s[64];
                waitFor(bars + K_FULL, 0);
                productFence();
                scores(s, qBase, kBase);
                productCommit();
                productWait<0>();
                hold(s);
                --left;
                __syncwarp();
                if (lane == 0) {
                    arrive(bars + K_EMPTY);
                    if (left == 0)
                        arrive(bars + Q_EMPTY);
                }
                ks = 1;
                if (now.w < 128)
                    mask(s, now.w, lane);
                float top0, top1;
                tops(s, top0, top1);
                m0 = begin(top0);
                m1 = begin(top1);
                weigh(s, scale2, m0, m1, l0, l1);
                convert(p, s);
            }

            for (;;) {
                const bool fresh = left == 0; // the scores are the first ones of another tile
                int4 next = now;
                if (fresh) {
                    ++tile;
                    waitFor(bars + Q_FULL + 8 * (tile & 1), (tile >> 1) & 1);
                    const int *slot = info + 8 * (tile & 1);
                    next = *reinterpret_cast<const int4 *>(slot);
                    left = __shfl_sync(ALL, slot[4], 0);
                    if (left == 0)
                        break;
                }
                --left;

                float s[64];
                waitFor(bars + K_FULL + 8 * (ks & 1), (ks >> 1) & 1);
                turnWait(1 + group);
                hold(o);
                hold(p);
                productFence();
                scores(s, qBase + static_cast<unsigned long long>((tile & 1) * (TILE >> 4)),
                       kBase + static_cast<unsigned long long>((ks & 1) * (TILE >> 4)));
                productCommit();
                waitFor(bars + V_FULL + 8 * (vs & 1), (vs >> 1) & 1);
                productFence();
                values(o, p, vBase + static_cast<unsigned long long>((vs & 1) * (TILE >> 4)), add);
                productCommit();
                turnPass(2 - group);

                productWait<1>(); // the scores
                hold(s);
                if (left == 0)
                    __syncwarp(); // all lanes have read the tile's description
                if (lane == 0) {
                    arrive(bars + K_EMPTY + 8 * (ks & 1));
                    if (left == 0)
                        arrive(bars + Q_EMPTY + 8 * (tile & 1));
                }
                ++ks;

                const float done0 = l0, done1 = l1;
                float a0 = 1.0f, a1 = 1.0f, top0, top1;
                bool moved = false;
                if (fresh && next.w < 128)
                    mask(s, next.w, lane);
                tops(s, top0, top1);
                if (fresh) {
                    m0 = begin(top0);
                    m1 = begin(top1);
                    l0 = 0.0f;
                    l1 = 0.0f;
                } else {
                    moved = __any_sync(ALL, top0 > m0 + slack || top1 > m1 + slack) != 0;
                    if (moved) {
                        top0 = quadMax(top0);
                        top1 = quadMax(top1);
                        if (top0 > m0 + slack) {
                            a0 = power2((m0 - top0) * scale2);
                            m0 = top0;
                        }
                        if (top1 > m1 + slack) {
                            a1 = power2((m1 - top1) * scale2);
                            m1 = top1;
                        }
                        l0 *= a0;
                        l1 *= a1;
                    }
                }
                weigh(s, scale2, m0, m1, l0, l1);

                productWait<0>(); // the weighted values
                hold(o);
                hold(p);
                if (lane == 0)
                    arrive(bars + V_EMPTY + 8 * (vs & 1));
                ++vs;
                convert(p, s);
                if (fresh) {
                    finish(o, done0, done1, stage, out, now.x, now.y, now.z, H, first, lane);
                    now = next;
                } else if (moved) {
#pragma unroll
                    for (int j = 0; j < 16; ++j) {
                        o[4 * j] *= a0;
                        o[4 * j + 1] *= a0;
                        o[4 * j + 2] *= a1;
                        o[4 * j + 3] *= a1;
                    }
                }
                add = fresh ? 0 : 1;
            }

            waitFor(bars + V_FULL + 8 * (vs & 1), (vs >> 1) & 1);
            hold(o);
            hold(p);
            productFence();
            values(o, p, vBase + static_cast<unsigned long long>((vs & 1) * (TILE >> 4)), add);
            productCommit();
            productWait<0>();
            hold(o);
            finish(o, l0, l1, stage, out, now.x, now.y, now.z, H, first, lane);
        }

        if (group == 0)
            turnWait(1); // takes the turn that is left over
    }
}
