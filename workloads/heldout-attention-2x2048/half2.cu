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
// One block of four warps owns 64 queries of one head and makes one pass over the keys, 64 at a time, with mma.sync for both products
// and queries, scores and weights in registers; still missing: copies that overlap with the arithmetic (they are synchronous, from
// one buffer), wide fragment loads of the keys, larger tiles, wgmma.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 64, KEYS = 64, THREADS = 128;
constexpr int ROW = D + 8; // halves a row of a tile in shared memory: 8 neighbouring rows meet all banks

// The tile'th tile of queries: its sequence and its first query. Tiles do not cross sequences.
__device__ __forceinline__ bool locate(const int *cuQ, int B, int tile, int &sequence, int &begin)
{
    for (int s = 0; s < B; ++s) {
        const int tiles = (cuQ[s + 1] - cuQ[s] + QUERIES - 1) / QUERIES;
        if (tile < tiles) {
            sequence = s;
            begin = cuQ[s] + tile * QUERIES;
            return true;
        }
        tile -= tiles;
    }
    return false;
}

// 64 rows of 128 halves to shared memory; those from `rows` on become zero. Rows are 256 bytes: 16-byte loads are aligned.
__device__ __forceinline__ void load(__half *to, const __half *from, size_t stride, int rows)
{
#pragma unroll
    for (int i = 0; i < KEYS * (D / 8) / THREADS; ++i) {
        const int chunk = threadIdx.x + i * THREADS;
        const int row = chunk / (D / 8), column = chunk % (D / 8) * 8;
        uint4 raw = make_uint4(0, 0, 0, 0);
        if (row < rows)
            raw = *reinterpret_cast<const uint4 *>(from + row * stride + column);
        *reinterpret_cast<uint4 *>(to + row * ROW + column) = raw;
    }
}

__device__ __forceinline__ unsigned two(const __half *from)
{
    return *reinterpret_cast<const unsigned *>(from);
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

// c += a · b, 16 x 8 x 16
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two 8 x 8 matrices, transposed; lanes 0 to 15 give the addresses of their rows.
__device__ __forceinline__ void transposed(unsigned &b0, unsigned &b1, const __half *row)
{
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(address) : "memory");
}

extern "C" __global__ __launch_bounds__(THREADS) void attention(const __half *q, const __half *k, const __half *v,
                                                                const int *cuQ, const int *cuK, __half *out,
                                                                int B, int H, float scale)
{
    __shared__ __align__(16) __half keyTile[KEYS * ROW];
    __shared__ __align__(16) __half valueTile[KEYS * ROW];

    int sequence, begin;
    if (!locate(cuQ, B, blockIdx.x, sequence, begin))
        return;
    const int rows = min(QUERIES, cuQ[sequence + 1] - begin);
    const int first = cuK[sequence];
    const int keys = cuK[sequence + 1] - first;
    const size_t stride = size_t(H) * D;
    const size_t head = size_t(blockIdx.y) * D;
    q += begin * stride + head;
    out += begin * stride + head;
    k += first * stride + head;
    v += first * stride + head;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const int upper = warp * 16 + group, lower = upper + 8; // this thread's two queries
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    // The queries of the warp, as the left operands of the first product
    unsigned query[D / 16][4];
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
        const int column = c * 16 + member * 2;
        query[c][0] = upper < rows ? two(q + upper * stride + column) : 0u;
        query[c][1] = lower < rows ? two(q + lower * stride + column) : 0u;
        query[c][2] = upper < rows ? two(q + upper * stride + column + 8) : 0u;
        query[c][3] = lower < rows ? two(q + lower * stride + column + 8) : 0u;
    }

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    for (int start = 0; start < keys; start += KEYS) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        __syncthreads();
        load(keyTile, k + start * stride, stride, rest);
        load(valueTile, v + start * stride, stride, rest);
        __syncthreads();

        float score[KEYS / 8][4] = {};
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n) {
                const __half *from = keyTile + (n * 8 + group) * ROW + c * 16 + member * 2;
                multiply(score[n], query[c], two(from), two(from + 8));
            }

        if (rest < KEYS) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (n * 8 + member * 2 + (e & 1) >= rest)
                        score[n][e] = -infinity;
        }

#pragma unroll
        for (int side = 0; side < 2; ++side) {
            float top = largest[side];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
                top = fmaxf(top, fmaxf(score[n][2 * side], score[n][2 * side + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float shrink = exp2f((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = exp2f((score[n][e] - top) * base2);
                    sum[side] += score[n][e];
                }
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                result[n][2 * side] *= shrink;
                result[n][2 * side + 1] *= shrink;
            }
        }

        // The scores of two neighbouring blocks of 8 keys lie as a left operand of 16 keys does.
#pragma unroll
        for (int c = 0; c < KEYS / 16; ++c) {
            const unsigned weight[4] = {pack(score[2 * c][0], score[2 * c][1]), pack(score[2 * c][2], score[2 * c][3]),
                                        pack(score[2 * c + 1][0], score[2 * c + 1][1]), pack(score[2 * c + 1][2], score[2 * c + 1][3])};
            const __half *row = valueTile + (c * 16 + lane % 16) * ROW;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                unsigned b0, b1;
                transposed(b0, b1, row + n * 8);
                multiply(result[n], weight, b0, b1);
            }
        }
    }

#pragma unroll
    for (int side = 0; side < 2; ++side) {
        float total = sum[side];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = side ? lower : upper;
        if (row < rows) {
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<__half2 *>(out + row * stride + n * 8 + member * 2) =
                    __floats2half2_rn(result[n][2 * side] * inverse, result[n][2 * side + 1] * inverse);
        }
    }
}
