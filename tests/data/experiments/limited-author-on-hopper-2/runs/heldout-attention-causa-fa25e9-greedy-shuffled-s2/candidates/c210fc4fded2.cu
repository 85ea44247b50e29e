/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["H", "ceil_div(T, 128) + B"]
block = ["256"]
shared = "98336"
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
// Eight warps with 16 queries each, weights in registers, walk over keys and values, 64 at a time, in two buffers that
// TMA fills anew when the last warp is done with one, and mask only the tiles on the diagonal; the longest tiles of all heads of a
// sequence start first; still missing are any overlap of the softmax with the products, and more rows a warp for each fragment read.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 128; // queries a block
constexpr int BN = 64;  // keys a step
constexpr int THREADS = 256;
constexpr int LD = D; // halves a row of the tiles in shared memory: panels of 64 columns, their 16-byte chunks swizzled for wgmma
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
// Operands of asm: four registers, and the 64 x 64 accumulators c of a warpgroup; c = a (64 x 16) * b (16 x 64), plus c if `add`.
#define FOUR(kind, c) kind((c)[0]), kind((c)[1]), kind((c)[2]), kind((c)[3])
#define TILE(c) FOUR("+f", (c)[0]), FOUR("+f", (c)[1]), FOUR("+f", (c)[2]), FOUR("+f", (c)[3]), FOUR("+f", (c)[4]), FOUR("+f", (c)[5]), FOUR("+f", (c)[6]), FOUR("+f", (c)[7])
#define WGMMA(c, add, operands, ...) asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %32, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, " \
    "%28, %29, %30, %31}, " operands ";\n}\n" : TILE(c) : "r"(add), __VA_ARGS__)

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
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + (column / 64 * ROWS + row) * 64 + ((column / 8) ^ row) % 8 * 8));
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
    asm volatile("cp.async.wait_group 1;\nfence.proxy.async.shared::cta;\n" ::: "memory");
}

// The last of the eight warps that are done with a buffer has it filled, keys and values, with the BN rows from `row` on; `barrier` counts the bytes.
__device__ __forceinline__ void refill(const __half *keys, const TensorMap &k, const TensorMap &v, int head, int row, unsigned barrier)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(keys));
    unsigned before = 0; // the warps that came before, in the lane that asks
    if (threadIdx.x % 32 == 0)
        asm volatile("atom.acq_rel.cta.shared.inc.u32 %0, [%1 + 16], 7;\n" : "=r"(before) : "r"(barrier) : "memory");
    if (before == 7) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(BN * D * 4) : "memory");
        for (int i = 0; i < 4; ++i) // two panels of each; the values lie behind both buffers of keys
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to + i / 2 * (BN * D * 4) + i % 2 * (BN * 128)), "l"(i < 2 ? &k : &v), "r"(i % 2 * 64), "r"(head), "r"(row), "r"(barrier) : "memory");
    }
    __syncwarp();
}

__device__ __forceinline__ void waitFor(unsigned barrier, int parity) { asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}\n" ::"r"(barrier), "r"(parity) : "memory"); }

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

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __half *q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    __half *qs = reinterpret_cast<__half *>(memory);
    __half *ks = qs + BM * LD;     // two buffers
    __half *vs = ks + 2 * BN * LD; // two buffers

    const float negInf = __int_as_float(0xff800000);

    // Which sequence, and which 128 of its queries? The last ones, with the most keys, come first, for all heads.
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

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const float factor2 = scale * 1.4426950408889634f;

    // wgmma's descriptors of the tiles: 128-byte swizzle, 1024 bytes for each 8 rows, the address in units of 16 bytes.
    const unsigned long long tiles = 0x4000004000400000ull | (__cvta_generic_to_shared(memory) >> 4);
    const unsigned long long qTile = tiles + __shfl_sync(0xffffffffu, warp / 4, 0) * (64 * 8); // the 64 rows of this warpgroup

    const unsigned barriers = static_cast<unsigned>(__cvta_generic_to_shared(vs + 2 * BN * LD)); // one a buffer; 16 bytes behind each the count for refill
    if (threadIdx.x < 2)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nst.shared.u32 [%0 + 16], 0;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" ::"r"(barriers + 8 * threadIdx.x) : "memory");
    copyTile<BM>(qs, q, m - q0, stride);
    commit();
    __syncthreads();
    if (steps > 0) {
        for (int i = 0; i < min(steps, 2); ++i)
            refill(ks + i * BN * LD, k, v, head, firstK + i * BN, barriers + 8 * i);
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

        if (k0 < highest) { // else all rows of this warp lie before these keys
            const unsigned long long kTile = tiles + (BM + buffer * BN) * LD / 8, vTile = kTile + 2 * BN * LD / 8;
            waitFor(barriers + 8 * buffer, step / 2 % 2);

            float s[BN / 8][4] = {};
            asm volatile("wgmma.fence.sync.aligned;\n" : TILE(s) : : "memory");
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                WGMMA(s, d, "%33, %34, p, 1, 1, 0, 0", "l"(qTile + d / 4 * (BM * 8) + d % 4 * 2), "l"(kTile + d / 4 * (BN * 8) + d % 4 * 2));
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" : TILE(s) : : "memory");

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

#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                // Two accumulators side by side are just the A operand for their 16 keys.
                const unsigned a[4] = {pack(s[2 * i][0], s[2 * i][1]), pack(s[2 * i][2], s[2 * i][3]),
                                       pack(s[2 * i + 1][0], s[2 * i + 1][1]), pack(s[2 * i + 1][2], s[2 * i + 1][3])};
                asm volatile("wgmma.fence.sync.aligned;\n" : TILE(result), TILE(result + 8) : FOUR("r", a) : "memory");
#pragma unroll
                for (int j = 0; j < D / 64; ++j)
                    WGMMA(result + 8 * j, 1, "{%33, %34, %35, %36}, %37, p, 1, 1, 1", FOUR("r", a), "l"(vTile + i * 128 + j * (BN * 8)));
            }
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" : TILE(result), TILE(result + 8) : : "memory");
            if (step + 2 < steps)
                refill(ks + buffer * BN * LD, k, v, head, firstK + k0 + 2 * BN, barriers + 8 * buffer);
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
