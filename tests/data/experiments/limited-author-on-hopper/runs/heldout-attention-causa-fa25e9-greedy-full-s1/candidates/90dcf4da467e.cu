/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "104448"
args = ["q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
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
// Eight warps with 16 queries each, queries in shared memory so that two blocks fit, weights in registers, walk over keys and values, 64 at a time, in two buffers that
// cp.async fills while mma.sync works on the other, and mask only the tiles on the diagonal; still missing are TMA and wgmma, any overlap
// of the softmax with the products, more rows a warp for each fragment read from shared memory, and a balanced schedule of the blocks.

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
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + column / 64 * (ROWS * 64) + row * 64 + ((column / 8 % 8) ^ (row % 8)) * 8));
        const int bytes = valid ? 16 : 0; // the rest of the 16 is filled with zeros
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    }
}

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ void arrive(unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory"); }
__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity) // for the end of the phase with this parity
{
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}\n" ::"r"(barrier), "r"(parity) : "memory");
}
// One thread has TMA fill a tile with BN rows of D halves, once all warps have left it (barrier full + 32, phase `parity`).
__device__ __forceinline__ void fetch(__half *tile, const TensorMap &map, int head, int row, unsigned full, unsigned parity)
{
    waitPhase(full + 32, parity);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(full), "r"(BN * D * 2) : "memory");
    for (int column = 0; column < D; column += 64)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(tile + column * BN))), "l"(&map), "r"(column), "r"(head), "r"(row), "r"(full) : "memory");
}
__device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// All groups but the latest have arrived.
__device__ __forceinline__ void waitAllButOne()
{
    asm volatile("cp.async.wait_group 1;\nfence.proxy.async.shared::cta;\n" ::: "memory");
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

#define SUMS4(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
// c (64 x 64) += a (64 x 16, registers) * b (16 x 64, halves of rows of 128 swizzled bytes, 8 every 1024 bytes); by a warpgroup.
template <int TRANSPOSED> __device__ __forceinline__ void wgmma(float (*c)[4], const unsigned (&a)[4], const __half *b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                 "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, %37;\n}\n"
                 : SUMS4(0), SUMS4(1), SUMS4(2), SUMS4(3), SUMS4(4), SUMS4(5), SUMS4(6), SUMS4(7)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"((__cvta_generic_to_shared(b) & 0x3ffff) >> 4 | 64ull << 16 | 64ull << 32 | 1ull << 62), "n"(TRANSPOSED));
}
__device__ __forceinline__ unsigned long long describe(const __half *p)
{
    return (__cvta_generic_to_shared(p) & 0x3ffff) >> 4 | 64ull << 16 | 64ull << 32 | 1ull << 62;
}
// The same with a (64 x 16) in shared memory too, both with rows along the summed dimension.
__device__ __forceinline__ void wgmmaShared(float (*c)[4], const __half *a, const __half *b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                 "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}\n"
                 : SUMS4(0), SUMS4(1), SUMS4(2), SUMS4(3), SUMS4(4), SUMS4(5), SUMS4(6), SUMS4(7)
                 : "l"(describe(a)), "l"(describe(b)));
}
template <int N> __device__ __forceinline__ void settle(float (&c)[N][4]) // waits for all products and pins their sums
{
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : SUMS4(i)::"memory");
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ __forceinline__ unsigned pack(float x, float y)
{
    const __half2 pair = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __half *q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    __half *qs = reinterpret_cast<__half *>(memory);
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

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    copyTile<BM>(qs, q, m - q0, stride);
    commit();
    const unsigned bars = static_cast<unsigned>(__cvta_generic_to_shared(qs + BM * D)); // in the padding: full keys, full values, empty keys, empty values; 2 each
    if (threadIdx.x == 0) {
        for (int i = 0; i < 8; ++i)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(bars + 8 * i), "r"(i < 4 ? 1 : 8) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" ::: "memory");
        for (int i = 0; i < 2 && i < steps; ++i) {
            fetch(ks + i * BN * LD, k, head, firstK + i * BN, bars + 8 * i, 1);
            fetch(vs + i * BN * LD, v, head, firstK + i * BN, bars + 16 + 8 * i, 1);
        }
    }
    commit();

    waitAllButOne();
    __syncthreads();
    const __half *query = qs + warp / 4 * (64 * 64); // the 64 rows of this warpgroup

    // Of each 16 x 8 accumulator a thread has columns quad * 2 and the next, of rows `group` (0, 1) and `group` + 8 (2, 3).
    float result[D / 8][4] = {};
    float largest[2] = {negInf, negInf}, sum[2] = {0.0f, 0.0f};
    int limit[2]; // the keys before it are seen
#pragma unroll
    for (int h = 0; h < 2; ++h)
        limit[h] = min(n, q0 + warp * 16 + group + 8 * h + 1 + n - m);
    const int lowest = min(n, q0 + warp * 16 + 1 + n - m);   // of the warp's first row
    const int highest = min(n, q0 + warp / 4 * 64 + 64 + n - m); // of its warpgroup's last one

    for (int step = 0; step < steps; ++step) {
        const int k0 = step * BN, buffer = step % 2;

        if (k0 < highest) { // else all rows of this warp lie before these keys

            float s[BN / 8][4] = {};
            waitPhase(bars + 8 * buffer, step / 2 % 2);
            settle(s);
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                wgmmaShared(s, query + d / 4 * (BM * 64) + d % 4 * 16, ks + buffer * BN * LD + d / 4 * (BN * 64) + d % 4 * 16);
            settle(s);
            if (lane == 0) arrive(bars + 32 + 8 * buffer);

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
                        x = exp2f((x - base) * factor2);
                        part += x;
                    }
                sum[h] = sum[h] * shrink + part; // of this thread's keys only, until the end
#pragma unroll
                for (int j = 0; j < D / 8; ++j) {
                    result[j][2 * h] *= shrink;
                    result[j][2 * h + 1] *= shrink;
                }
            }

            if (threadIdx.x == 0 && step > 0 && step + 1 < steps)
                fetch(vs + (1 - buffer) * BN * LD, v, head, firstK + k0 + BN, bars + 24 - 8 * buffer, (step - 1) / 2 % 2);
            if (threadIdx.x == 0 && step + 2 < steps)
                fetch(ks + buffer * BN * LD, k, head, firstK + k0 + 2 * BN, bars + 8 * buffer, step / 2 % 2);
            __syncwarp();
            unsigned a[BN / 16][4];
#pragma unroll
            for (int i = 0; i < BN / 4; ++i) // two accumulators side by side are just the A operand for their 16 keys
                a[i / 4][i % 4] = pack(s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1]);
            waitPhase(bars + 16 + 8 * buffer, step / 2 % 2);
            settle(result);
#pragma unroll
            for (int i = 0; i < BN / 8; ++i)
                wgmma<1>(result + i % 2 * 8, a[i / 2], vs + buffer * BN * LD + i % 2 * (BN * 64) + i / 2 * 1024);
            settle(result);
        }
        if (lane == 0) arrive(bars + 48 + 8 * buffer); // this warp has left the values
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
