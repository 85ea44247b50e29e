/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["128"]
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Four warps with 16 queries each walk over keys and values, 32 at a time in shared memory, with both products on tensor cores
// (mma.sync) and an online softmax between them; still missing are asynchronous copies, larger tiles, queries and weights that stay in
// registers (the weights pass through shared memory, the queries are read again at every step), and a path without a mask.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 64; // queries a block
constexpr int BN = 32; // keys a step
constexpr int THREADS = 128;
constexpr int LD = D + 8;   // halves a row of the tiles in shared memory
constexpr int LDP = BN + 8; // halves a row of the weights

// ROWS rows of D halves to shared memory, zeros from row `rows` on.
template <int ROWS>
__device__ __forceinline__ void loadTile(__half *tile, const __half *source, int rows, size_t stride)
{
#pragma unroll
    for (int i = 0; i < ROWS * (D / 8) / THREADS; ++i) {
        const int chunk = i * THREADS + threadIdx.x;
        const int row = chunk / (D / 8), column = chunk % (D / 8) * 8;
        uint4 x = make_uint4(0u, 0u, 0u, 0u);
        if (row < rows)
            x = *reinterpret_cast<const uint4 *>(source + row * stride + column);
        *reinterpret_cast<uint4 *>(tile + row * LD + column) = x;
    }
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

extern "C" __global__ __launch_bounds__(128) void attention(const __half *q, const __half *k, const __half *v,
                                                            const int *cuQ, const int *cuK, __half *out,
                                                            int B, int H, float scale)
{
    __shared__ __align__(16) __half qs[BM * LD];
    __shared__ __align__(16) __half ks[BN * LD];
    __shared__ __align__(16) __half vs[BN * LD];
    __shared__ __align__(16) __half ps[BM * LDP];

    const float negInf = __int_as_float(0xff800000);

    // Which sequence, and which 64 of its queries?
    int tile = blockIdx.x, sequence = 0;
    for (; sequence < B; ++sequence) {
        const int tiles = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (tile < tiles)
            break;
        tile -= tiles;
    }
    if (sequence == B)
        return;
    const int firstQ = cuQ[sequence], m = cuQ[sequence + 1] - firstQ;
    const int firstK = cuK[sequence], n = cuK[sequence + 1] - firstK;
    const int q0 = tile * BM;
    const int end = q0 + min(BM, m - q0) + n - m; // keys that the last query sees; may be negative, never more than n

    const int head = blockIdx.y;
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
    const __half *qWarp = qs + (warp * 16 + rowA) * LD + columnA;
    const __half *kLane = ks + rowB * LD + columnB;
    const __half *vLane = vs + rowA * LD + columnA;
    const __half *pWarp = ps + (warp * 16 + rowA) * LDP + columnA;

    // Of each 16 x 8 accumulator a thread has columns quad * 2 and the next, of rows `group` (0, 1) and `group` + 8 (2, 3).
    float result[D / 8][4] = {};
    float largest[2] = {negInf, negInf}, sum[2] = {0.0f, 0.0f};
    int limit[2]; // the keys before it are seen
#pragma unroll
    for (int h = 0; h < 2; ++h)
        limit[h] = min(n, q0 + warp * 16 + group + 8 * h + 1 + n - m);

    loadTile<BM>(qs, q, m - q0, stride);

    for (int k0 = 0; k0 < end; k0 += BN) {
        loadTile<BN>(ks, k + size_t(k0) * stride, n - k0, stride);
        loadTile<BN>(vs, v + size_t(k0) * stride, n - k0, stride);
        __syncthreads();

        float s[BN / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            unsigned a[4];
            ldmatrix(a, qWarp + d);
#pragma unroll
            for (int j = 0; j < BN / 16; ++j) {
                unsigned b[4];
                ldmatrix(b, kLane + j * 16 * LD + d);
                mma(s[2 * j], a, b[0], b[1]);
                mma(s[2 * j + 1], a, b[2], b[3]);
            }
        }

#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float top = negInf;
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const int key = k0 + j * 8 + quad * 2 + c;
                    float &x = s[j][2 * h + c];
                    x = key < limit[h] ? x * factor2 : negInf;
                    top = fmaxf(top, x);
                }
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float next = fmaxf(largest[h], top);
            const float base = next == negInf ? 0.0f : next;
            const float shrink = exp2f(largest[h] - base);
            largest[h] = next;
            float part = 0.0f;
#pragma unroll
            for (int j = 0; j < BN / 8; ++j) {
                const float x = exp2f(s[j][2 * h] - base), y = exp2f(s[j][2 * h + 1] - base);
                part += x + y;
                *reinterpret_cast<__half2 *>(ps + (warp * 16 + group + 8 * h) * LDP + j * 8 + quad * 2) =
                    __floats2half2_rn(x, y);
            }
            sum[h] = sum[h] * shrink + part; // of this thread's keys only, until the end
#pragma unroll
            for (int j = 0; j < D / 8; ++j) {
                result[j][2 * h] *= shrink;
                result[j][2 * h + 1] *= shrink;
            }
        }
        __syncwarp(); // a warp reads the weights of its own rows only

#pragma unroll
        for (int key = 0; key < BN; key += 16) {
            unsigned a[4];
            ldmatrix(a, pWarp + key);
#pragma unroll
            for (int j = 0; j < D / 16; ++j) {
                unsigned b[4];
                ldmatrixTransposed(b, vLane + key * LD + j * 16);
                mma(result[2 * j], a, b[0], b[1]);
                mma(result[2 * j + 1], a, b[2], b[3]);
            }
        }
        __syncthreads();
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
