/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(H, 2)", "ceil_div(T, 128) + B", "2"]
block = ["256"]
shared = "98368"
args = ["q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Two warpgroups with 64 queries each, weights in registers, walk over keys and values, 64 at a time, in two swizzled buffers that
// TMA fills again when the last warp is done with one, and mask only the tiles on the diagonal; still missing are any overlap in a
// warpgroup of the softmax with the products, and more rows a warp for each fragment read from shared memory.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 64;  // keys a step
constexpr int THREADS = 256;
constexpr int LD = D; // halves a row of the tiles in shared memory, which lie there in swizzled boxes of 64 x 64

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
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + row / 64 * 64 * LD + column / 64 * 4096 + row % 64 * 64 + ((column / 8) ^ row) % 8 * 8));
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
    asm volatile("cp.async.wait_group 1;\nfence.proxy.async.shared::cta;\n" ::: "memory"); // wgmma reads through the other proxy
}

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// Has TMA bring 64 rows of a head, from `row` on, to a tile; `barrier` hears of their bytes.
__device__ __forceinline__ void fetch(__half *tile, const TensorMap &map, int row, int head, unsigned barrier)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(64 * D * 2) : "memory");
    for (int i = 0; i < 2; ++i)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to + i * 8192), "l"(&map), "r"(i * 64), "r"(head), "r"(row), "r"(barrier) : "memory");
}

// Waits until the barrier's phase of this parity has ended.
__device__ __forceinline__ void await(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}\n" ::"r"(barrier), "r"(parity) : "memory");
}

#define EXP2(y, x) asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x))
#define C32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define C64 C32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FOUR(X, r) X(r[0]), X(r[1]), X(r[2]), X(r[3])
#define SCORES(N, P) "add.s64 a, %32, " #N ";\nadd.s64 b, %33, " #N ";\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" C32 "}, a, b, " #P ", 1, 1, 0, 0;\n"
#define VALUES(N, A0, A1, A2, A3) "add.s64 b, %80, " #N ";\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" C64 "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, b, q, 1, 1, 1;\n"

// How wgmma finds a tile of 64 rows: swizzled by 128 bytes, 1024 from 8 rows to the next; `leading`, in 16 bytes, from box to box.
__device__ __forceinline__ unsigned long long descriptor(const __half *tile, unsigned long long leading)
{
    return (1ull << 62) | (64ull << 32) | (leading << 16) | (static_cast<unsigned long long>(__cvta_generic_to_shared(tile)) >> 4);
}

// c (64 x 64, of a warpgroup) = a (64 x D) * b (64 x D) transposed, both in shared memory
__device__ __forceinline__ void mmaScores(float (&c)[8][4], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n.reg .pred p, q;\n.reg .b64 a, b;\nsetp.ne.b32 p, %34, 0;\nsetp.eq.b32 q, %34, 0;\nwgmma.fence.sync.aligned;\n"
                 SCORES(0, p) SCORES(2, q) SCORES(4, q) SCORES(6, q) SCORES(512, q) SCORES(514, q) SCORES(516, q) SCORES(518, q)
                 "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}\n"
                 : FOUR("=f", c[0]), FOUR("=f", c[1]), FOUR("=f", c[2]), FOUR("=f", c[3]), FOUR("=f", c[4]), FOUR("=f", c[5]), FOUR("=f", c[6]), FOUR("=f", c[7])
                 : "l"(a), "l"(b), "r"(0)
                 : "memory");
}

// c (64 x D, of a warpgroup) += a (64 x 64, in registers) * b (64 x D, in shared memory)
__device__ __forceinline__ void mmaValues(float (&c)[16][4], const unsigned (&a)[4][4], unsigned long long b)
{
    asm volatile("{\n.reg .pred q;\n.reg .b64 b;\nsetp.eq.b32 q, %81, 0;\nwgmma.fence.sync.aligned;\n"
                 VALUES(0, 64, 65, 66, 67) VALUES(128, 68, 69, 70, 71) VALUES(256, 72, 73, 74, 75) VALUES(384, 76, 77, 78, 79)
                 "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}\n"
                 : FOUR("+f", c[0]), FOUR("+f", c[1]), FOUR("+f", c[2]), FOUR("+f", c[3]), FOUR("+f", c[4]), FOUR("+f", c[5]), FOUR("+f", c[6]), FOUR("+f", c[7]),
                   FOUR("+f", c[8]), FOUR("+f", c[9]), FOUR("+f", c[10]), FOUR("+f", c[11]), FOUR("+f", c[12]), FOUR("+f", c[13]), FOUR("+f", c[14]), FOUR("+f", c[15])
                 : FOUR("r", a[0]), FOUR("r", a[1]), FOUR("r", a[2]), FOUR("r", a[3]), "l"(b), "r"(0)
                 : "memory");
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
    const unsigned arrived = static_cast<unsigned>(__cvta_generic_to_shared(vs + 2 * BN * LD)); // barriers: two for keys, two for values
    unsigned *counts = reinterpret_cast<unsigned *>(vs + 2 * BN * LD) + 8;                      // how many warps were done with a buffer

    const float negInf = __int_as_float(0xff800000);

    // Which sequence, and which 128 of its queries? The last ones, with the most keys, come first, of all sequences while all have some.
    int least = 0x7fffffff;
    for (int i = 0; i < B; ++i)
        least = min(least, (cuQ[i + 1] - cuQ[i] + BM - 1) / BM);
    int tile = blockIdx.y, sequence = 0;
    if (tile < least * B) {
        sequence = tile % B;
        tile /= B;
        least = 0;
    } else {
        tile -= least * B;
    }
    for (; sequence < B; ++sequence) {
        const int tiles = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM - least;
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

    const int head = blockIdx.z * gridDim.x + blockIdx.x;
    if (head >= H)
        return;
    const size_t stride = size_t(H) * D;
    q += (size_t(firstQ) + q0) * stride + size_t(head) * D;
    out += (size_t(firstQ) + q0) * stride + size_t(head) * D;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    copyTile<BM>(qs, q, m - q0, stride);
    commit();
    if (threadIdx.x == 0) {
        counts[0] = counts[1] = 0;
        for (int i = 0; i < 4; ++i)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(arrived + 8 * i), "r"(1) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" ::: "memory");
        for (int i = 0; i < min(steps, 2); ++i) {
            fetch(ks + i * BN * LD, k, firstK + i * BN, head, arrived + 8 * i);
            fetch(vs + i * BN * LD, v, firstK + i * BN, head, arrived + 16 + 8 * i);
        }
    }
    commit();

    waitAllButOne();
    __syncthreads();

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

        if (k0 < highest) { // else all rows of this warpgroup lie before these keys
            float s[BN / 8][4] = {};
            await(arrived + 8 * buffer, step / 2 % 2);
            mmaScores(s, descriptor(qs + warp / 4 * 64 * LD, 1), descriptor(ks + buffer * BN * LD, 1));

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
                const float next = top * factor2 > largest[h] + 8.0f ? top * factor2 : largest[h]; // weights of up to 256 are as good
                const float base = next == negInf ? 0.0f : next;
                EXP2(shrink[h], largest[h] - base);
                largest[h] = next;
                float part = 0.0f;
#pragma unroll
                for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        float &x = s[j][2 * h + c];
                        EXP2(x, fmaf(x, factor2, -base));
                        part += x;
                    }
                sum[h] = sum[h] * shrink[h] + part; // of this thread's keys only, until the end
            }
            if (__any_sync(0xffffffffu, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
#pragma unroll
                for (int j = 0; j < D / 8; ++j) {
                    result[j][0] *= shrink[0];
                    result[j][1] *= shrink[0];
                    result[j][2] *= shrink[1];
                    result[j][3] *= shrink[1];
                }
            }

            unsigned a[BN / 16][4];
#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                // Two accumulators side by side are just the A operand for their 16 keys.
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    a[i][c] = pack(s[2 * i + c / 2][c % 2 * 2], s[2 * i + c / 2][c % 2 * 2 + 1]);
            }
            await(arrived + 16 + 8 * buffer, step / 2 % 2);
            mmaValues(result, a, descriptor(vs + buffer * BN * LD, BN * 8));
            if (step + 2 < steps && lane == 0 && atomicAdd(counts + buffer, 1u) % 8 == 7) { // the last of the 8 warps that all take this step
                fetch(ks + buffer * BN * LD, k, firstK + k0 + 2 * BN, head, arrived + 8 * buffer);
                fetch(vs + buffer * BN * LD, v, firstK + k0 + 2 * BN, head, arrived + 16 + 8 * buffer);
            }
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
