/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["128"]
block = ["384"]
shared = "197696"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
[[tensormap]]
name = "tm_q"
tensor = "q"
box = [64, 1, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_k"
tensor = "k"
box = [64, 1, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_v"
tensor = "v"
box = [64, 1, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Persistent blocks: two warpgroups with 64 queries each, weights in registers, walk over keys and values, 128 at a time, in two slots that
// a third one fills by TMA, also for the next tile; they take turns, so that one multiplies during the other's softmax. A slot has a block's
// keys and the values of the one before it. Still missing are a softmax beside the warpgroup's own products and half blocks on the diagonal.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 128; // keys a step
constexpr int THREADS = 256;
constexpr int LD = D + 8; // halves a row of the tiles in shared memory
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define LIST32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST64 LIST32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define C4(c, j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define C32(c, j) C4(c, j), C4(c, j + 1), C4(c, j + 2), C4(c, j + 3), C4(c, j + 4), C4(c, j + 5), C4(c, j + 6), C4(c, j + 7)
#define A4(i) "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])

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

__device__ __forceinline__ void awaitPhase(unsigned barrier, unsigned parity) { asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}\n" ::"r"(barrier), "r"(parity) : "memory"); }
__device__ __forceinline__ void release(unsigned barrier) { if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory"); }

// Begins to copy 64 rows of `one`, then of `other`, in halves of 64 columns; the barrier is told to await `bytes`, if any.
__device__ __forceinline__ void copyRows(unsigned to, const TensorMap *one, int rowOne, const TensorMap *other, int rowOther, int head, unsigned barrier, int bytes)
{
    if (bytes > 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to + i * 8192), "l"(i % 2 == 0 ? one : other), "r"(i / 2 * 64), "r"(head), "r"(i % 2 == 0 ? rowOne : rowOther), "r"(barrier) : "memory");
}

extern "C" __global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const unsigned qs = (static_cast<unsigned>(__cvta_generic_to_shared(memory)) + 1023) / 1024 * 1024, kv = qs + 2 * BM * D * 2, full = kv + 4 * BN * D * 2; // two of queries, two slots, two barriers for full ones, two for empty ones

    const float negInf = __int_as_float(0xff800000);

    int firstQ, m, firstK, n, q0, steps, head; // of the tile at hand
    // Which sequence, and which 128 of its queries? The last ones, with the most keys, come first.
    auto find = [&](int item) {
    int tile = item / H, sequence = 0;
    for (; sequence < B; ++sequence) {
        const int tiles = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (tile < tiles) {
            tile = tiles - 1 - tile;
            break;
        }
        tile -= tiles;
    }
    if (sequence == B)
        return false;
    firstQ = cuQ[sequence], m = cuQ[sequence + 1] - firstQ;
    firstK = cuK[sequence], n = cuK[sequence + 1] - firstK;
    q0 = tile * BM;
    const int end = q0 + min(BM, m - q0) + n - m; // keys that the last query sees; may be negative, never more than n
    steps = end > 0 ? (end + BN - 1) / BN : 0;

    head = item % H;
    return true;
    };
    const size_t stride = size_t(H) * D;

    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;


    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%0 + 8], 1;\nmbarrier.init.shared::cta.b64 [%0 + 16], 8;\nmbarrier.init.shared::cta.b64 [%0 + 24], 8;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" ::"r"(full) : "memory");

    __syncthreads();

    unsigned count = 0, walks = 0; // slots and tiles so far
    if (warp >= 8) { // only copies
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        for (int item = blockIdx.x, gap = 2 * (gridDim.x - blockIdx.x) - 1; threadIdx.x == 256 && find(item); item += gap, gap = 2 * gridDim.x - gap, ++walks)
            for (int step = 0; step <= steps; ++step, ++count) {
                const unsigned slot = kv + count % 2 * 65536, barrier = full + count % 2 * 8;
                const int row = firstK + step * BN, bytes = step < steps ? 65536 : 32768;
                awaitPhase(barrier + 16, (count / 2 + 1) & 1);
                if (step > 0)
                    copyRows(slot + 32768, &v, row - BN, &v, row - BN + 64, head, barrier, bytes);
                else
                    copyRows(qs + walks % 2 * 32768, &q, firstQ + q0, &q, firstQ + q0 + 64, head, barrier, bytes);
                if (step < steps)
                    copyRows(slot, &k, row, &k, row + 64, head, barrier, 0);
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
    if (warp >= 4)
        asm volatile("bar.arrive 1, 256;\n" ::: "memory"); // the first warpgroup's turn to multiply
    for (int item = blockIdx.x, gap = 2 * (gridDim.x - blockIdx.x) - 1; find(item); item += gap, gap = 2 * gridDim.x - gap, ++walks) {
    // Of each 16 x 8 accumulator a thread has columns quad * 2 and the next, of rows `group` (0, 1) and `group` + 8 (2, 3).
    float result[D / 8][4] = {};
    float largest[2] = {negInf, negInf}, sum[2] = {0.0f, 0.0f};
    int limit[2]; // the keys before it are seen
#pragma unroll
    for (int h = 0; h < 2; ++h)
        limit[h] = min(n, q0 + warp * 16 + group + 8 * h + 1 + n - m);
    const int lowest = min(n, q0 + warp * 16 + 1 + n - m);   // of the warp's first row

    awaitPhase(full + count % 2 * 8, count / 2 & 1); // the queries and the first keys
    asm volatile("bar.sync %0, 256;\n" ::"r"(1 + warp / 4) : "memory");
    for (int step = 0; step < steps; ++step) {
            const int k0 = step * BN;
            const unsigned long long descriptor = 1ull << 62 | 64ull << 32 | 1024ull << 16; // 128B swizzle, 1024 bytes each 8 rows, 16384 each 64 columns
            const unsigned long long dq = descriptor | (qs + walks % 2 * 32768 + warp / 4 * 8192) / 16, dk = descriptor | (kv + count % 2 * 65536) / 16;

            float s[BN / 8][4];
            asm volatile("wgmma.fence.sync.aligned;\n" : C32(s, 0), C32(s, 8)::"memory");
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST64 "}, %64, %65, p, 1, 1, 0, 0;\n}\n"
                             : C32(s, 0), C32(s, 8) : "l"(dq + (d / 4 * 1024 + d % 4 * 2)), "l"(dk + (d / 4 * 1024 + d % 4 * 2)), "r"(d));
            asm volatile("wgmma.commit_group.sync.aligned;\nbar.arrive %0, 256;\n" ::"r"(2 - warp / 4) : "memory"); // the other warpgroup's turn
            asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory"); // also for the second product of the block before
            asm volatile("" : C32(s, 0), C32(s, 8), C32(result, 0), C32(result, 8)::"memory");
            release(full + 16 + count++ % 2 * 8);

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

#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float top = negInf;
#pragma unroll
                for (int j = 0; j < BN / 8; ++j)
                    top = fmaxf(top, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
                const float next = fmaxf(largest[h], top);
                const float base = next == negInf ? 0.0f : next;
                const float shrink = exp2f((largest[h] - base) * factor2);
                largest[h] = next;
                float part = 0.0f;
#pragma unroll
                for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        float &x = s[j][2 * h + c];
                        asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(x) : "f"(fmaf(x, factor2, -base * factor2)));
                        part += x;
                    }
                sum[h] = sum[h] * shrink + part; // of this thread's keys only, until the end
#pragma unroll
                for (int j = 0; j < D / 8; ++j) {
                    result[j][2 * h] *= shrink;
                    result[j][2 * h + 1] *= shrink;
                }
            }

            unsigned a[BN / 16][4];
#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                // Two accumulators side by side are just the A operand for their 16 keys.
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    a[i][j] = pack(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1]);
            }
            awaitPhase(full + count % 2 * 8, count / 2 & 1); // the values, and the next keys
            asm volatile("bar.sync %0, 256;\n" ::"r"(1 + warp / 4) : "memory");
            asm volatile("wgmma.fence.sync.aligned;\n" : C32(result, 0), C32(result, 8), A4(0), A4(1), A4(2), A4(3), A4(4), A4(5), A4(6), A4(7)::"memory");
#pragma unroll
            for (int i = 0; i < BN / 16; ++i)
                asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST32
                             ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
                             : C32(result, 0), C32(result, 8) : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "l"((descriptor | (kv + count % 2 * 65536 + 32768) / 16) + i * 128), "r"(1));
            asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
    }
    asm volatile("bar.arrive %0, 256;\nwgmma.wait_group.sync.aligned 0;\n" ::"r"(2 - warp / 4) : "memory");
    asm volatile("" : C32(result, 0), C32(result, 8)::"memory");
    release(full + 16 + count++ % 2 * 8);

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
                *reinterpret_cast<__half2 *>(out + (size_t(firstQ) + q0 + row) * stride + size_t(head) * D + j * 8 + quad * 2) =
                    __floats2half2_rn(result[j][2 * h] * inverse, result[j][2 * h + 1] * inverse);
        }
    }
    }
}
