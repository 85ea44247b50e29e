/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "99328"
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
// Two warpgroups with 64 queries each walk over keys and values, 64 at a time, in two buffers that TMA fills while wgmma works on the
// other, and mask only the tiles on the diagonal; still missing are overlap within a warpgroup, and a balanced schedule of the blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 64;  // keys a step
constexpr int THREADS = 256;
constexpr int LD = D; // halves a row of the tiles in shared memory

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Begins to copy ROWS rows of D halves of a head to shared memory, zeros past the tensor's end; the barrier's phase ends when all are there.
// There the last 64 columns follow the first 64, and the c-th 16 bytes of a row of 64 lie at c ^ row % 8, as wgmma has it.
template <int ROWS>
__device__ __forceinline__ void copyTile(unsigned to, const TensorMap &map, int row, int head, unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(ROWS * D * 2) : "memory");
#pragma unroll
    for (int column = 0; column < D; column += 64)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to + column * ROWS * 2),
                     "l"(&map), "r"(column), "r"(head), "r"(row), "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, int parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}\n" ::"r"(barrier), "r"(parity) : "memory");
}

// This warp is done with the barrier's buffer. The last warp to say so, by the counter 40 bytes on, fills it again.
__device__ __forceinline__ void refill(unsigned to, const TensorMap &map, int row, int head, unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        unsigned before;
        asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;\n" : "=r"(before) : "r"(barrier + 40) : "memory");
        if (before % (THREADS / 32) == THREADS / 32 - 1)
            copyTile<BN>(to, map, row, head, barrier);
    }
    __syncwarp();
}

#define FOUR(kind, x) kind(x[0]), kind(x[1]), kind(x[2]), kind(x[3])
#define EIGHT(x, i) FOUR("+f", x[i]), FOUR("+f", x[i + 1]), FOUR("+f", x[i + 2]), FOUR("+f", x[i + 3]), \
                    FOUR("+f", x[i + 4]), FOUR("+f", x[i + 5]), FOUR("+f", x[i + 6]), FOUR("+f", x[i + 7])

// c (64 x 64) = (add: +=) a (64 x 16) * transposed b (64 x 16), both in shared memory
__device__ __forceinline__ void multiply(float (&c)[8][4], unsigned long long a, unsigned long long b, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
                 "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}\n"
                 : EIGHT(c, 0)
                 : "l"(a), "l"(b), "r"(add));
}

// c (64 x 128) += a (64 x 16), in registers, * b (16 x 128), in shared memory
__device__ __forceinline__ void multiply(float (&c)[16][4], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
                 "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
                 "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
                 : EIGHT(c, 0), EIGHT(c, 8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

__device__ __forceinline__ unsigned pack(float x, float y)
{
    const __half2 pair = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ unsigned long long barriers[10]; // of the queries, two buffers of keys, two of values; then a counter for each
    const unsigned barrier = static_cast<unsigned>(__cvta_generic_to_shared(barriers));
    const unsigned qs = (static_cast<unsigned>(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    const unsigned ks = qs + BM * LD * 2;     // two buffers
    const unsigned vs = ks + 2 * BN * LD * 2; // two buffers

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
    out += (size_t(firstQ) + q0) * stride + size_t(head) * D;

    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    // Descriptor of qs: address in units of 8 halves, 1024 bytes from 8 rows to the next 8, swizzled in rows of 128 bytes.
    const unsigned long long queries = qs >> 4 | 64ull << 32 | 1ull << 62;

    if (threadIdx.x == 0 && steps > 0) {
        for (int i = 0; i < 5; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier + 8 * i), "r"(1) : "memory");
            barriers[5 + i] = 0;
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        copyTile<BM>(qs, mapQ, firstQ + q0, head, barrier);
        for (int step = 0; step < min(steps, 2); ++step) {
            copyTile<BN>(ks + step * BN * LD * 2, mapK, firstK + step * BN, head, barrier + 8 + 8 * step);
            copyTile<BN>(vs + step * BN * LD * 2, mapV, firstK + step * BN, head, barrier + 24 + 8 * step);
        }
    }

    __syncthreads();
    if (steps > 0)
        waitPhase(barrier, 0);

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
        const unsigned full = barrier + 8 + 8 * buffer; // of the keys; 16 bytes on, of the values

        if (k0 < highest) { // else all rows of this warp lie before these keys
            const unsigned long long keys = queries + (BM + buffer * BN) * LD / 8;
            const unsigned long long values = keys + 2 * BN * LD / 8 + (512ull << 16); // 8192 bytes to the last 64 columns

            float s[BN / 8][4];
            waitPhase(full, step / 2 % 2);
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                multiply(s, queries + warp / 4 * 512 + d / 4 * (BM * 8) + d % 4 * 2, keys + d / 4 * (BN * 8) + d % 4 * 2, d);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" : EIGHT(s, 0) : : "memory");
            if (step + 2 < steps) // so no warpgroup skips this step
                refill(ks + buffer * BN * LD * 2, mapK, firstK + k0 + 2 * BN, head, full);

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

            unsigned weights[BN / 16][4];
#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                // Two accumulators side by side are just the A operand for their 16 keys.
                const unsigned a[4] = {pack(s[2 * i][0], s[2 * i][1]), pack(s[2 * i][2], s[2 * i][3]),
                                       pack(s[2 * i + 1][0], s[2 * i + 1][1]), pack(s[2 * i + 1][2], s[2 * i + 1][3])};
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    weights[i][c] = a[c];
            }
            waitPhase(full + 16, step / 2 % 2);
            asm volatile("wgmma.fence.sync.aligned;\n" : EIGHT(result, 0), EIGHT(result, 8), FOUR("+r", weights[0]),
                         FOUR("+r", weights[1]), FOUR("+r", weights[2]), FOUR("+r", weights[3]) : : "memory");
#pragma unroll
            for (int i = 0; i < BN / 16; ++i)
                multiply(result, weights[i], values + i * 128);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" : EIGHT(result, 0), EIGHT(result, 8) : : "memory");
            if (step + 2 < steps)
                refill(vs + buffer * BN * LD * 2, mapV, firstK + k0 + 2 * BN, head, full + 16);
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
