/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "98432"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [128, 1, 64]
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
// Two warpgroups with 64 queries each walk over keys and values, 64 at a time, in two buffers that TMA fills while wgmma works on
// the other, and mask only the tiles on the diagonal; two blocks share an SM, so that one's softmax hides behind the other's products;
// still missing are any overlap of the softmax with the products within a warpgroup, and a balanced schedule of the blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 64;  // keys a step
constexpr int LD = D; // halves a row of the tiles in shared memory

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// Begins to copy ROWS rows of D halves to shared memory: two halves of 64 columns, 128 bytes a row, swizzled as wgmma has it.
template <int ROWS>
__device__ __forceinline__ void copyTile(__half *tile, const TensorMap &source, int head, int row, unsigned barrier)
{
#pragma unroll
    for (int column = 0; column < D; column += 64) {
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + column * ROWS));
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n"
                     ::"r"(to), "l"(&source), "r"(column), "r"(head), "r"(row), "r"(barrier) : "memory");
    }
}

// One thread begins to fill a buffer with BN keys and values; the barrier's phase ends with them and `more` bytes.
__device__ __forceinline__ void fill(__half *ks, __half *vs, const TensorMap &k, const TensorMap &v, int head, int row, unsigned barrier, int more)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(4 * BN * D + more) : "memory");
    copyTile<BN>(ks, k, head, row, barrier);
    copyTile<BN>(vs, v, head, row, barrier);
}

// Waits for the end of the barrier's phase of that parity.
__device__ __forceinline__ void waitFilled(unsigned barrier, int parity)
{
    int over;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}\n"
                     : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
    } while (!over);
}

// A tile for wgmma: swizzled by 128 bytes, 1024 bytes from 8 rows to the next 8, BN * 128 from 64 columns of values to the next 64.
__device__ __forceinline__ unsigned long long describe(const __half *p)
{
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(p));
    return (1ull << 62) | (64ull << 32) | ((BN * 8ull) << 16) | (address >> 4);
}

#define C4(c, j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define C32(c, j) C4(c, j), C4(c, j + 1), C4(c, j + 2), C4(c, j + 3), C4(c, j + 4), C4(c, j + 5), C4(c, j + 6), C4(c, j + 7)

// c (64 x 64) = a (64 x 16) * b (16 x 64), plus c if `add`; a and b are in shared memory
__device__ __forceinline__ void mma(float (&c)[8][4], unsigned long long a, unsigned long long b, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}\n"
                 : C32(c, 0)
                 : "l"(a), "l"(b), "r"(add));
}

// c (64 x 128) += a (64 x 16) * b (16 x 128); only b is in shared memory, row by row
__device__ __forceinline__ void mma(float (&c)[16][4], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, "
                 "%43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
                 : C32(c, 0), C32(c, 8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

__device__ __forceinline__ unsigned pack(float x, float y)
{
    const __half2 pair = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,
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

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    const unsigned long long qTile = describe(qs + warp / 4 * 64 * 64); // this warpgroup's 64 queries

    // Two mbarriers, whose phases end when the buffers are filled, and two counts of the warps that are done with them.
    const unsigned barriers = static_cast<unsigned>(__cvta_generic_to_shared(vs + 2 * BN * LD));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%0+8], 1;\n"
                     "st.shared.u32 [%0+16], %1;\nst.shared.u32 [%0+20], %1;\n"
                     "fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" ::"r"(barriers), "r"(0) : "memory");
        if (steps > 0) {
            fill(ks, vs, k, v, head, firstK, barriers, 2 * BM * D);
            copyTile<BM>(qs, q, head, firstQ + q0, barriers);
        }
        if (steps > 1)
            fill(ks + BN * LD, vs + BN * LD, k, v, head, firstK + BN, barriers + 8, 0);
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
    const int highest = min(n, q0 + warp / 4 * 64 + 64 + n - m); // of the warpgroup's last one

    for (int step = 0; step < steps; ++step) {
        const int k0 = step * BN, buffer = step % 2;
        waitFilled(barriers + buffer * 8, step / 2 % 2);
        __syncwarp();

        if (k0 < highest) { // else all rows of this warpgroup lie before these keys
            const unsigned long long kTile = describe(ks + buffer * BN * LD);
            const unsigned long long vTile = describe(vs + buffer * BN * LD);

            float s[BN / 8][4];
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                mma(s, qTile + (d / 4 * BM * 8 + d % 4 * 2), kTile + (d / 4 * BN * 8 + d % 4 * 2), d > 0);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" : C32(s, 0) : : "memory");

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

            unsigned a[BN / 16][4];
#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                // Two accumulators side by side are just the A operand for their 16 keys.
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    a[i][c] = pack(s[2 * i + c / 2][c % 2 * 2], s[2 * i + c / 2][c % 2 * 2 + 1]);
                    asm volatile("" : "+r"(a[i][c])); // it has to be there before the fence
                }
            }
            asm volatile("wgmma.fence.sync.aligned;\n" : C32(result, 0), C32(result, 8) : : "memory");
#pragma unroll
            for (int i = 0; i < BN / 16; ++i)
                mma(result, a[i], vTile + i * 128);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
                         : C32(result, 0), C32(result, 8) : : "memory");
        }
        if (step + 2 < steps && lane == 0) {
            unsigned before; // the last of the 8 warps that are done with this buffer has it filled again
            asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;\n" : "=r"(before) : "r"(barriers + 16 + buffer * 4) : "memory");
            if (before % 8 == 7)
                fill(ks + buffer * BN * LD, vs + buffer * BN * LD, k, v, head, firstK + k0 + 2 * BN, barriers + buffer * 8, 0);
        }
        __syncwarp();
    }

    out += (size_t(firstQ) + q0) * stride + size_t(head) * D;
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
