/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["128"]
shared = "52224"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of 4 warps owns 64 queries of one sequence and head, 16 a warp, and walks once over its keys, 64 at a time in shared memory,
// with an online softmax. Both products run on the tensor cores by mma.sync; the weights go from the sums of the first product to the
// left operand of the second one in registers. Still missing are any overlap of copies with arithmetic, and a cheaper path for tiles
// that need no mask.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 64; // queries a block
constexpr int BN = 64; // keys a step
constexpr int THREADS = 128;
constexpr int LD = D + 8; // halves a row of the tiles in shared memory; 17 chunks of 16 bytes, so ldmatrix meets no bank conflict

// 64 rows of D halves to shared memory, zeros from row `rows` on.
__device__ __forceinline__ void loadTile(__half *tile, const __half *source, int rows, size_t stride)
{
    const int first = threadIdx.x / (D / 8), column = threadIdx.x % (D / 8) * 8;
#pragma unroll
    for (int i = 0; i < 64 * (D / 8) / THREADS; ++i) {
        const int row = first + i * (THREADS / (D / 8));
        uint4 x = make_uint4(0u, 0u, 0u, 0u);
        if (row < rows)
            x = *reinterpret_cast<const uint4 *>(source + row * stride + column);
        *reinterpret_cast<uint4 *>(tile + row * LD + column) = x;
    }
}

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Four 8 x 8 matrices; lanes 8i to 8i + 7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], const __half *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(sharedAddress(row))
                 : "memory");
}

// The same, each matrix transposed.
__device__ __forceinline__ void loadTransposed(unsigned (&to)[4], const __half *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(sharedAddress(row))
                 : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

extern "C" __global__ __launch_bounds__(128, 3) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __half *qs = reinterpret_cast<__half *>(memory);
    __half *ks = qs + BM * LD;
    __half *vs = ks + BN * LD;

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

    // A warp owns 16 rows. A lane has rows row0 and row0 + 8, and of every 8 columns those at `pair` and pair + 1.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row0 = warp * 16 + lane / 4;
    const int pair = lane % 4 * 2;
    const float factor2 = scale * 1.4426950408889634f;

    float result[D / 8][4] = {};
    float largest[2] = {negInf, negInf};
    float sum[2] = {0.0f, 0.0f};

    // The queries are the left operand of the first product, in registers from here on.
    loadTile(qs, q, m - q0, stride);
    __syncthreads();
    unsigned rowsOperand[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
        loadMatrices(rowsOperand[d], qs + (warp * 16 + lane % 16) * LD + d * 16 + lane / 16 * 8);

    const __half *keyRow = ks + (lane / 16 * 8 + lane % 8) * LD + lane / 8 % 2 * 8;
    const __half *valueRow = vs + lane % 16 * LD + lane / 16 * 8;

    for (int k0 = 0; k0 < end; k0 += BN) {
        loadTile(ks, k + size_t(k0) * stride, n - k0, stride);
        loadTile(vs, v + size_t(k0) * stride, n - k0, stride);
        __syncthreads();

        float score[BN / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
#pragma unroll
            for (int j = 0; j < BN / 8; j += 2) {
                unsigned b[4];
                loadMatrices(b, keyRow + 8 * j * LD + 16 * d);
                multiply(score[j], rowsOperand[d], b[0], b[1]);
                multiply(score[j + 1], rowsOperand[d], b[2], b[3]);
            }

        // In place: mask, running maximum, weights. Sums 0 and 1 are of row row0, sums 2 and 3 of the row 8 below.
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int limit = min(n, q0 + row0 + 8 * i + 1 + n - m); // this query sees the keys before it
            float top = negInf;
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const int key = k0 + 8 * j + pair + c;
                    const float x = key < limit ? score[j][2 * i + c] * factor2 : negInf;
                    score[j][2 * i + c] = x;
                    top = fmaxf(top, x);
                }
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float next = fmaxf(largest[i], top);
            const float base = next == negInf ? 0.0f : next;
            const float shrink = exp2f(largest[i] - base);
            largest[i] = next;
            float part = 0.0f;
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const float weight = exp2f(score[j][2 * i + c] - base);
                    part += weight;
                    score[j][2 * i + c] = weight;
                }
            sum[i] = sum[i] * shrink + part; // of this lane's keys only, until the end
#pragma unroll
            for (int j = 0; j < D / 8; ++j) {
                result[j][2 * i] *= shrink;
                result[j][2 * i + 1] *= shrink;
            }
        }

        // Two neighbouring groups of 8 keys, packed, are one left operand of 16 x 16.
#pragma unroll
        for (int step = 0; step < BN / 16; ++step) {
            const unsigned left[4] = {pack(score[2 * step][0], score[2 * step][1]),
                                      pack(score[2 * step][2], score[2 * step][3]),
                                      pack(score[2 * step + 1][0], score[2 * step + 1][1]),
                                      pack(score[2 * step + 1][2], score[2 * step + 1][3])};
#pragma unroll
            for (int j = 0; j < D / 8; j += 2) {
                unsigned b[4];
                loadTransposed(b, valueRow + 16 * step * LD + 8 * j);
                multiply(result[j], left, b[0], b[1]);
                multiply(result[j + 1], left, b[2], b[3]);
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float total = sum[i];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = row0 + 8 * i;
        if (q0 + row < m) {
#pragma unroll
            for (int j = 0; j < D / 8; ++j)
                *reinterpret_cast<__half2 *>(out + row * stride + 8 * j + pair) =
                    __floats2half2_rn(result[j][2 * i] * inverse, result[j][2 * i + 1] * inverse);
        }
    }
}
