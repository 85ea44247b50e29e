/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["H", "ceil_div(T, 128) + B"]
block = ["256"]
shared = "164864"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Eight warps with 16 queries each, queries and weights in registers, walk over keys and values, 64 at a time, in two buffers that
// cp.async fills while mma.sync works on the other, and mask only the tiles on the diagonal; still missing are TMA and wgmma, any overlap
// of the softmax with the products, more rows a warp for each fragment read from shared memory, and a balanced schedule of the blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 128; // keys a step
constexpr int THREADS = 256;
constexpr int LD = D; // halves a row of the tiles in shared memory, which lie in panels of 64 columns, swizzled

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
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + (column / 64 * ROWS + row) * 64 + ((column % 64) ^ (row % 8 * 8))));
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
    asm volatile("cp.async.wait_group 1;\nfence.proxy.async.shared::cta;\n" ::: "memory"); // wgmma sees them, too
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

__device__ __forceinline__ unsigned long long describe(const __half *p) { return (__cvta_generic_to_shared(p) & 0x3ffff) >> 4 | 64ull << 16 | 64ull << 32 | 1ull << 62; } // 128-byte swizzle, 1024 bytes for 8 rows
#define LIST(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define SUMS LIST(0), LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6), LIST(7)
#define WGMMA(one) "{\n.reg .pred p;\nsetp.ne.b32 p, " one ", 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
// c (64 x 64 of the warpgroup) += a (64 x 16, in shared memory or in registers) * b (16 x 64); `finish` before c is read
__device__ __forceinline__ void multiply(float (*c)[4], unsigned long long a, unsigned long long b) { asm volatile(WGMMA("%34") "%32, %33, p, 1, 1, 0, 0;\n}\n" : SUMS : "l"(a), "l"(b), "r"(1) : "memory"); }
__device__ __forceinline__ void multiply(float (*c)[4], const unsigned *a, unsigned long long b) { asm volatile(WGMMA("%37") "{%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}\n" : SUMS : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1) : "memory"); }
__device__ __forceinline__ void submit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void finish(float (*c)[4]) { asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(PENDING) : "memory"); asm volatile("" : SUMS : : "memory"); }
__device__ __forceinline__ unsigned pack(float x, float y)
{
    const __half2 pair = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ __launch_bounds__(256, 1) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __half *qs = reinterpret_cast<__half *>(memory + (-static_cast<unsigned>(__cvta_generic_to_shared(memory)) & 1023));
    __half *ks = qs + BM * LD;     // two buffers
    __half *vs = ks + 2 * BN * LD; // two buffers

    const float negInf = __int_as_float(0xff800000);

    // Which sequence, and which 128 of its queries? The last ones, with the most keys, come first, those of all heads (x, the
    // fastest) before the next: blocks start by falling length, and who had a short one gets a long one of the next sequence.
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
    q += (size_t(firstQ) + q0) * stride + size_t(head) * D;
    out += (size_t(firstQ) + q0) * stride + size_t(head) * D;
    k += size_t(firstK) * stride + size_t(head) * D;
    v += size_t(firstK) * stride + size_t(head) * D;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    // Where this lane points ldmatrix to: 16 x 16 of an A operand or of a transposed B operand, and 16 keys x 16 of a B operand.
    const int rowA = lane % 16, columnA = lane / 16 * 8;
    const int rowB = lane % 8 + lane / 16 * 8, columnB = lane / 8 % 2 * 8;

    copyTile<BM>(qs, q, m - q0, stride);
    if (steps > 0) {
        copyTile<BN>(ks, k, n, stride);
    }
    commit();

    const unsigned long long query = describe(qs + warp / 4 * 64 * 64);

    // Of each 16 x 8 accumulator a thread has columns quad * 2 and the next, of rows `group` (0, 1) and `group` + 8 (2, 3).
    float result[D / 8][4] = {};
    unsigned a[BN / 4] = {}; // weights of the step before: two accumulators side by side are just the A operand for their 16 keys
    float largest[2] = {negInf, negInf}, sum[2] = {0.0f, 0.0f};
    int limit[2]; // the keys before it are seen
#pragma unroll
    for (int h = 0; h < 2; ++h)
        limit[h] = min(n, q0 + warp * 16 + group + 8 * h + 1 + n - m);
    const int lowest = min(n, q0 + warp * 16 + 1 + n - m);   // of the warp's first row

    for (int step = 0; step < steps; ++step) {
        const int k0 = step * BN, buffer = step % 2;
        commit(); // an empty group: all before it have arrived, the keys of this step and the values of the one before
        waitAllButOne();
        __syncthreads();

        {

            float s[BN / 8][4] = {};
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                multiply(s, query + d / 4 * BM * 8 + d % 4 * 2, describe(ks + buffer * BN * LD) + d / 4 * BN * 8 + d % 4 * 2), multiply(s + 8, query + d / 4 * BM * 8 + d % 4 * 2, describe(ks + buffer * BN * LD) + 512 + d / 4 * BN * 8 + d % 4 * 2);
            submit();
#pragma unroll
            for (int i = 0; i < BN / 8; ++i) // of the step before; at first weights of zero, with any finite tile
                multiply(result + i % 2 * 8, a + i / 2 * 4, describe(step > 0 ? vs + (1 - buffer) * BN * LD : ks) + i / 2 * 128 + i % 2 * BN * 8);
            submit();
            if (step + 1 < steps) copyTile<BN>(ks + (1 - buffer) * BN * LD, k + size_t(k0 + BN) * stride, n - k0 - BN, stride);
            copyTile<BN>(vs + buffer * BN * LD, v + size_t(k0) * stride, n - k0, stride);
            commit();
            finish<1>(s), finish<1>(s + 8);

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

            float shrink[2];
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
                shrink[h] = exp2f((largest[h] - base) * factor2);
                largest[h] = next;
                float part = 0.0f;
#pragma unroll
                for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        float &x = s[j][2 * h + c];
                        x = exp2f((x - base) * factor2);
                        part += x;
                    }
                sum[h] = sum[h] * shrink[h] + part; // of this thread's keys only, until the end
            }
            finish<0>(s), finish<0>(s + 8), finish<0>(result), finish<0>(result + 8); // from here on `a` may be written, too
#pragma unroll
            for (int h = 0; h < 2; ++h) {
#pragma unroll
                for (int j = 0; j < D / 8; ++j) {
                    result[j][2 * h] *= shrink[h];
                    result[j][2 * h + 1] *= shrink[h];
                }
            }

#pragma unroll
            for (int i = 0; i < BN / 4; ++i)
                a[i] = pack(s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1]);
        }
    }
    commit(), waitAllButOne(); // the last values
    __syncthreads();
    {
        if (steps > 0) {
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
            for (int i = 0; i < BN / 8; ++i) // 16 keys, 64 columns
                multiply(result + i % 2 * 8, a + i / 2 * 4, describe(vs + (steps - 1) % 2 * BN * LD) + i / 2 * 128 + i % 2 * BN * 8);
            submit(), finish<0>(result), finish<0>(result + 8);
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
