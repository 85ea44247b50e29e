/*klineage
surface = "cuda"
tensormap = [{ name = "mapQ", tensor = "q", box = [64, 1, 64], swizzle = "128B" }, { name = "mapK", tensor = "k", box = [64, 1, 64], swizzle = "128B" }, { name = "mapV", tensor = "v", box = [64, 1, 64], swizzle = "128B" }]

[[launch]]
kernel = "attention"
grid = ["H", "ceil_div(T, 128) + B"]
block = ["256"]
shared = "104504"
args = ["mapQ", "mapK", "mapV", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Eight warps with 16 queries each, queries and weights in registers, walk over keys and values, 64 at a time, in two buffers that
// TMA fills while wgmma works on the other, and mask only the tiles on the diagonal. The two warpgroups take turns at the products,
// so that the softmax of one runs beside the products of the other; still missing are more rows a warp and a balanced schedule.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 64;  // keys a step
constexpr int THREADS = 256;
constexpr int LD = D + 8; // halves a row of the tiles in shared memory

// Begins to copy ROWS rows of D halves to shared memory, zeros from row `rows` (at least 1) on.
template <int ROWS>
__device__ __forceinline__ void copyTile(__half *tile, const __half *source, int rows, size_t stride)
{
#pragma unroll
    for (int i = 0; i < ROWS * (D / 8) / THREADS; ++i) {
        const int chunk = i * THREADS + threadIdx.x;
        const int row = chunk / (D / 8), column = chunk % (D / 8) * 8;
        const bool valid = row < rows;
        const __half *from = source + (valid ? row : 0) * stride + column;
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + row * LD + column));
        const int bytes = valid ? 16 : 0; // the rest of the 16 is filled with zeros
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    }
}

__device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// All groups but the latest have arrived.
__device__ __forceinline__ void waitAllButOne()
{
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
}

__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const __half *p)
{
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(p));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void ldmatrixTransposed(unsigned (&r)[4], const __half *p)
{
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(p));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// c (16 x 8) += a (16 x 16) * b (16 x 8)
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float x, float y)
{
    const __half2 pair = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&pair);
}

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define SUMS(d, j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define SUMS8(d, j) SUMS(d, j), SUMS(d, j + 1), SUMS(d, j + 2), SUMS(d, j + 3), SUMS(d, j + 4), SUMS(d, j + 5), SUMS(d, j + 6), SUMS(d, j + 7)
__device__ __forceinline__ float power(float x) { asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); return x; }
__device__ __forceinline__ void waitPhase(unsigned barrier, int parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}\n" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory"); }
// The two warpgroups take turns at the products: waits for this one's turn, and gives the turn to the other.
__device__ __forceinline__ void awaitTurn(int warpgroup) { asm volatile("bar.sync %0, 256;\n" ::"r"(1 + warpgroup) : "memory"); }
__device__ __forceinline__ void passTurn(int warpgroup) { asm volatile("bar.arrive %0, 256;\n" ::"r"(2 - warpgroup) : "memory"); }
// One thread has 64 rows of a head copied, as two swizzled slabs of 64 columns.
__device__ __forceinline__ void fetch(__half *to, const TensorMap &map, int head, int row, unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16384;\n" ::"r"(barrier) : "memory");
    for (int c = 0; c < D; c += 64)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to + c * 64))), "l"(&map), "r"(c), "r"(head), "r"(row), "r"(barrier) : "memory");
}
// To wgmma: rows of 128 swizzled bytes, 8 KiB from one slab to the next, 1 KiB from 8 rows to the next.
__device__ __forceinline__ unsigned long long describe(const __half *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)) >> 4 | 512ull << 16 | 64ull << 32 | 1ull << 62; }
// d (64 x 64) += queries (64 x 16) * keys (64 x 16) transposed, without what d was before if `add` is 0; by a warpgroup
__device__ __forceinline__ void multiplyKeys(float (&d)[BN / 8][4], const __half *queries, const __half *keys, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}\n"
                 : SUMS8(d, 0) : "l"(describe(queries)), "l"(describe(keys)), "r"(add));
}
// d (64 x 128) += a (64 x 16) * values (16 x 128); by a warpgroup
__device__ __forceinline__ void multiplyValues(float (&d)[D / 8][4], const unsigned (&a)[4], const __half *values)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
                 : SUMS8(d, 0), SUMS8(d, 8) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(describe(values)));
}

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    __half *qs = reinterpret_cast<__half *>(memory);
    __half *ks = qs + BM * LD;     // two buffers
    __half *vs = ks + 2 * BN * LD; // two buffers
    // Barriers, 8 bytes each: two buffers of keys are full, two of values are, the queries are there; two of what may be refilled.
    const unsigned bars = static_cast<unsigned>(__cvta_generic_to_shared(vs + 2 * BN * LD)), empty = bars + 40;

    const float negInf = __int_as_float(0xff800000);

    // Which sequence, and which 128 of its queries? The last ones, with the most keys, come first.
    int tile = blockIdx.y, sequence = 0;
    for (; sequence < B; ++sequence) {
        const int tiles = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (tile < tiles) {
            tile = tiles - 1 - tile;
            break;
        }
        tile -= tiles;
    }
    if (sequence == B)
        return;
    const int firstQ = cuQ[sequence], m = cuQ[sequence + 1] - firstQ;
    const int firstK = cuK[sequence], n = cuK[sequence + 1] - firstK;
    const int q0 = tile * BM;
    const int end = q0 + min(BM, m - q0) + n - m; // keys that the last query sees; may be negative, never more than n
    const int steps = end > 0 ? (end + BN - 1) / BN : 0;

    const int head = blockIdx.x;
    const size_t stride = size_t(H) * D;
    out += (size_t(firstQ) + q0) * stride + size_t(head) * D;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    // Where this lane points ldmatrix to: 16 x 16 of an A operand or of a transposed B operand, and 16 keys x 16 of a B operand.
    const int rowA = lane % 16, columnA = lane / 16 * 8;
    const int rowB = lane % 8 + lane / 16 * 8, columnB = lane / 8 % 2 * 8;

    if (threadIdx.x == 128 && steps > 0) {
        for (int i = 0; i < 7; ++i)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(bars + i * 8), "r"(i < 4 ? 1 : i == 4 ? 2 : 8) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        fetch(qs, mapQ, head, firstQ + q0, bars + 32);
        fetch(qs + 64 * LD, mapQ, head, firstQ + q0 + 64, bars + 32);
        fetch(ks, mapK, head, firstK, bars);
        fetch(vs, mapV, head, firstK, bars + 16);
        if (steps > 1) {
            fetch(ks + BN * LD, mapK, head, firstK + BN, bars + 8);
            fetch(vs + BN * LD, mapV, head, firstK + BN, bars + 24);
        }
    }

    __syncthreads();

    // Of each 16 x 8 accumulator a thread has columns quad * 2 and the next, of rows `group` (0, 1) and `group` + 8 (2, 3).
    float result[D / 8][4] = {};
    float largest[2] = {negInf, negInf}, sum[2] = {0.0f, 0.0f};
    int limit[2]; // the keys before it are seen
#pragma unroll
    for (int h = 0; h < 2; ++h)
        limit[h] = min(n, q0 + warp * 16 + group + 8 * h + 1 + n - m);
    const int lowest = min(n, q0 + warp * 16 + 1 + n - m);   // of the warp's first row
    const int highest = min(n, q0 + (warp | 3) * 16 + 16 + n - m); // of the last one of its warpgroup

    unsigned a[BN / 16][4] = {}; // the weights of the step before
    if (warp >= 4 && steps > 0)
        passTurn(1); // the first turn is the first warpgroup's

    // In each turn: the values' product of the step before, then the keys' product of this step.
    for (int step = 0; step <= steps && steps > 0; ++step) {
        const int k0 = step * BN, buffer = step % 2;
        awaitTurn(warp / 4);

        if (step > 0 && k0 - BN < highest) {
            const __half *values = vs + (1 - buffer) * BN * LD;
            waitPhase(bars + 24 - buffer * 8, (step - 1) / 2 % 2);
#pragma unroll
            for (int i = 0; i < BN / 16; ++i)
                multiplyValues(result, a[i], values + i * 1024);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" : SUMS8(result, 0), SUMS8(result, 8) : : "memory");
        }

        if (step < steps && k0 < highest) { // else all rows of this warpgroup lie before these keys
            const __half *queries = qs + warp / 4 * 64 * LD, *keys = ks + buffer * BN * LD;
            if (step == 0)
                waitPhase(bars + 32, 0);
            waitPhase(bars + buffer * 8, step / 2 % 2);

            float s[BN / 8][4];
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                multiplyKeys(s, queries + d / 4 * 4096 + d % 4 * 16, keys + d / 4 * 4096 + d % 4 * 16, d);
            asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
            passTurn(warp / 4);
            asm volatile("wgmma.wait_group.sync.aligned 0;\n" : SUMS8(s, 0) : : "memory");

            // These keys and the values of the step before are done with. Two warps of the second warpgroup, which trails, refill.
            if (lane == 0) {
                arrive(empty + buffer * 8);
                if (warp == 4 && step > 0 && step + 1 < steps) {
                    waitPhase(empty + buffer * 8, step / 2 % 2);
                    fetch(vs + (1 - buffer) * BN * LD, mapV, head, firstK + k0 + BN, bars + 24 - buffer * 8);
                }
                if (warp == 5 && step + 2 < steps) {
                    waitPhase(empty + buffer * 8, step / 2 % 2);
                    fetch(ks + buffer * BN * LD, mapK, head, firstK + k0 + 2 * BN, bars + buffer * 8);
                }
            }
            __syncwarp();

            if (k0 + BN > lowest) {
#pragma unroll
                for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        const int key = k0 + j * 8 + quad * 2 + c % 2;
                        if (key >= limit[c / 2])
                            s[j][c] = negInf;
                    }
            }

            float tops[2], shrinks[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float top = negInf;
#pragma unroll
                for (int j = 0; j < BN / 8; ++j)
                    top = fmaxf(top, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
                tops[h] = top;
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float top = tops[h];
                const float next = (top - largest[h]) * factor2 > 8.0f ? top : largest[h]; // late: weights may reach 2^8
                const float base = next == negInf ? 0.0f : next;
                const float shrink = exp2f((largest[h] - base) * factor2);
                largest[h] = next;
                float part = 0.0f;
#pragma unroll
                for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        float &x = s[j][2 * h + c];
                        x = power(fmaf(x, factor2, -base * factor2));
                        part += x;
                    }
                sum[h] = sum[h] * shrink + part; // of this thread's keys only, until the end
                shrinks[h] = shrink;
            }
            if (__any_sync(0xffffffffu, shrinks[0] != 1.0f || shrinks[1] != 1.0f)) {
#pragma unroll
                for (int j = 0; j < D / 8; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        result[j][c] *= shrinks[c / 2];
            }

#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                // Two accumulators side by side are just the A operand for their 16 keys.
                a[i][0] = pack(s[2 * i][0], s[2 * i][1]);
                a[i][1] = pack(s[2 * i][2], s[2 * i][3]);
                a[i][2] = pack(s[2 * i + 1][0], s[2 * i + 1][1]);
                a[i][3] = pack(s[2 * i + 1][2], s[2 * i + 1][3]);
            }
        } else {
            if (warp < 4 || step < steps) // no one waits for the last turn's end
                passTurn(warp / 4);
            if (lane == 0)
                arrive(empty + buffer * 8);
            __syncwarp();
        }
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float total = sum[h];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = warp * 16 + group + 8 * h;
        if (q0 + row < m) {
#pragma unroll
            for (int j = 0; j < D / 8; ++j)
                *reinterpret_cast<__half2 *>(out + row * stride + j * 8 + quad * 2) =
                    __floats2half2_rn(result[j][2 * h] * inverse, result[j][2 * h + 1] * inverse);
        }
    }
}
