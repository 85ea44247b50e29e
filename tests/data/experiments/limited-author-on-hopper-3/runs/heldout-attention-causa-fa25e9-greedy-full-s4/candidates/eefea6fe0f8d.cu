/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "99328"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Two warpgroups with 64 queries each, weights in registers, walk over keys and values, 64 at a time, in two buffers that cp.async fills
// while wgmma works on the other, and mask only the tiles on the diagonal; of two blocks a multiprocessor one has its softmax while the
// other has its products; still missing are TMA, any overlap of the two in one warpgroup, and a balanced schedule of the blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 64;  // keys a step
constexpr int THREADS = 256;
constexpr int LD = D; // halves a row of the tiles in shared memory, which are two slabs of 64 columns, with rows of 128 swizzled bytes

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
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + column / 64 * (ROWS * 64) + row * 64 + ((column % 64) ^ (row % 8 * 8))));
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
    asm volatile("cp.async.wait_group 1;\nfence.proxy.async.shared::cta;\n" ::: "memory"); // wgmma sees them after the next barrier
}

// Rows of 128 swizzled bytes, 8 of them every 1024 bytes; for the values, the second slab of 64 columns lies BN rows after the first.
__device__ __forceinline__ unsigned long long describe(const __half *tile)
{
    return (__cvta_generic_to_shared(tile) & 0x3ffffull) >> 4 | (BN * 128ull >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// Waits for all products, and lets others begin: no use of the sums moves over it.
template <int COUNT>
__device__ __forceinline__ void settle(float (&d)[COUNT][4])
{
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < COUNT * 4; ++i)
        asm volatile("" : "+f"(d[i / 4][i % 4])::"memory");
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

#define SUMS(d, i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define SUMS4(d, i) SUMS(d, i), SUMS(d, i + 1), SUMS(d, i + 2), SUMS(d, i + 3)
// s (64 x 64) = queries (64 x 16) * keys (64 x 16) transposed, or += if `add`, by a warpgroup, in the background
__device__ __forceinline__ void score(float (&s)[BN / 8][4], unsigned long long queries, unsigned long long keys, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}\n"
                 : SUMS4(s, 0), SUMS4(s, 4) : "l"(queries), "l"(keys), "r"(add));
}

// result (64 x 128) += weights a (64 x 16) * values (16 x 128), likewise
__device__ __forceinline__ void weigh(float (&result)[D / 8][4], const unsigned (&a)[4], unsigned long long values)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
                 : SUMS4(result, 0), SUMS4(result, 4), SUMS4(result, 8), SUMS4(result, 12)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(values), "r"(1));
}

__device__ __forceinline__ unsigned pack(float x, float y)
{
    const __half2 pair = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __half *qs = reinterpret_cast<__half *>(memory + (-__cvta_generic_to_shared(memory) & 1023)); // as the swizzle wants it
    __half *ks = qs + BM * LD;     // two buffers
    __half *vs = ks + 2 * BN * LD; // two buffers

    const float negInf = __int_as_float(0xff800000);

    // Which sequence, and which 128 of its queries? The last ones, with the most keys, come first.
    int tile = blockIdx.x, sequence = 0;
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

    const int head = blockIdx.y;
    const size_t stride = size_t(H) * D;
    q += (size_t(firstQ) + q0) * stride + size_t(head) * D;
    out += (size_t(firstQ) + q0) * stride + size_t(head) * D;
    k += size_t(firstK) * stride + size_t(head) * D;
    v += size_t(firstK) * stride + size_t(head) * D;

    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    copyTile<BM>(qs, q, m - q0, stride);
    commit();
    if (steps > 0) {
        copyTile<BN>(ks, k, n, stride);
        copyTile<BN>(vs, v, n, stride);
    }
    commit();

    waitAllButOne();

    // Of each 16 x 8 accumulator a thread has columns quad * 2 and the next, of rows `group` (0, 1) and `group` + 8 (2, 3).
    float result[D / 8][4] = {};
    float largest[2] = {negInf, negInf}, sum[2] = {0.0f, 0.0f};
    int limit[2]; // the keys before it are seen
#pragma unroll
    for (int h = 0; h < 2; ++h)
        limit[h] = min(n, q0 + warp * 16 + group + 8 * h + 1 + n - m);
    const int lowest = min(n, q0 + warp * 16 + 1 + n - m);   // of the warp's first row
    const int highest = min(n, q0 + warp / 4 * 64 + 64 + n - m); // of the last one of its warpgroup, which multiplies as one

    for (int step = 0; step < steps; ++step) {
        const int k0 = step * BN, buffer = step % 2;
        if (step + 1 < steps) {
            const int k1 = k0 + BN;
            copyTile<BN>(ks + (1 - buffer) * BN * LD, k + size_t(k1) * stride, n - k1, stride);
            copyTile<BN>(vs + (1 - buffer) * BN * LD, v + size_t(k1) * stride, n - k1, stride);
        }
        commit();
        waitAllButOne();
        __syncthreads();

        if (k0 < highest) { // else all rows of this warp lie before these keys
            const unsigned long long queries = describe(qs + warp / 4 * (64 * 64));
            const unsigned long long keys = describe(ks + buffer * BN * LD), values = describe(vs + buffer * BN * LD);

            float s[BN / 8][4];
            settle(s);
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                score(s, queries + d / 4 * (BM * 8) + d % 4 * 2, keys + d / 4 * (BN * 8) + d % 4 * 2, d);
            settle(s);

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
                for (int c = 0; c < 4; ++c) {
                    a[i][c] = pack(s[2 * i + c / 2][c % 2 * 2], s[2 * i + c / 2][c % 2 * 2 + 1]);
                    asm volatile("" : "+r"(a[i][c])::"memory"); // before the fence
                }
            }
            settle(result);
#pragma unroll
            for (int i = 0; i < BN / 16; ++i)
                weigh(result, a[i], values + i * 128);
            settle(result);
        }
        __syncthreads(); // before this buffer is filled again
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
