/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["128"]
shared = "2 * 64 * 136 * 2"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// A block owns 64 queries of one head and takes 64 keys at a time: both products become products of tiles
// in shared memory, on the tensor cores. A warp owns 16 rows: their scores for the 64 keys and their 128 columns
// of the output lie in its registers as the accumulators of m16n8k16 products. The four threads of a row share its
// maximum and sum by shuffles; the scores' accumulators, turned into weights and packed to f16, are already
// the left operand of the second product.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 64, BN = 64, THREADS = 128;
constexpr int PITCH = D + 8; // halves a row: eight neighbouring rows lie in different banks

// Rows of a tile; rows from `rows` on are zeros.
__device__ __forceinline__ void loadTile(__half *to, const __half *from, int rows, int H, int thread)
{
    constexpr int STEP = THREADS / (D / 8), CHUNKS = BM / STEP;
    const int r = thread / (D / 8), c = thread % (D / 8);
    from += size_t(r) * H * D + c * 8;
    to += r * PITCH + c * 8;
    const size_t stride = size_t(STEP) * H * D;
    uint4 chunks[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        chunks[i] = make_uint4(0, 0, 0, 0);
        if (r + i * STEP < rows)
            chunks[i] = *reinterpret_cast<const uint4 *>(from + i * stride);
    }
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i)
        *reinterpret_cast<uint4 *>(to + i * STEP * PITCH) = chunks[i];
}

// Four matrices of 8 × 8 halves; a lane passes the address of row lane % 8 of matrix lane / 8.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// c += a · b, 16 × 16 by 16 × 8.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

extern "C" __global__ __launch_bounds__(128, 3) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ uint4 tiles[];
    __half *queries = reinterpret_cast<__half *>(tiles), *operand = queries + BM * PITCH;

    // The block's tile: tiles of the sequences one after the other.
    int sequence = 0, index = blockIdx.x;
    for (; sequence < B; ++sequence) {
        const int tilesHere = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (index < tilesHere)
            break;
        index -= tilesHere;
    }
    if (sequence == B)
        return;
    const int head = blockIdx.y, thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int last = cuK[sequence + 1];

    // What a lane passes to ldmatrix: rows 16 by columns 16 of the queries and of the values (transposed there),
    // and 16 keys by 16 columns, where the columns' halves come first.
    const unsigned operandAt = unsigned(__cvta_generic_to_shared(operand));
    const unsigned queriesAt = unsigned(__cvta_generic_to_shared(queries)) +
                               ((16 * warp + lane % 16) * PITCH + lane / 16 * 8) * 2;
    const unsigned keysAt = operandAt + ((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8) * 2;
    const unsigned valuesAt = operandAt + (lane % 16 * PITCH + lane / 16 * 8) * 2;

    loadTile(queries, q + (size_t(row0) * H + head) * D, rows, H, thread);
    __syncthreads();
    unsigned query[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
        loadMatrices(query[d], queriesAt + d * 32);

    // Rows 16 warp + lane / 4 (elements 0 and 1 of an accumulator) and 8 further (2 and 3).
    float largest[2], sum[2] = {}, result[D / 8][4] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i)
        largest[i] = __int_as_float(0xff800000); // -infinity
    for (int key0 = cuK[sequence]; key0 < last; key0 += BN) {
        __syncthreads();
        loadTile(operand, k + (size_t(key0) * H + head) * D, last - key0, H, thread);
        __syncthreads();

        // Keys 8 j + 2 (lane % 4) and the next.
        float score[BN / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
#pragma unroll
            for (int j = 0; j < BN / 16; ++j) {
                unsigned b[4];
                loadMatrices(b, keysAt + (16 * j * PITCH + 16 * d) * 2);
                multiply(score[2 * j], query[d], b[0], b[1]);
                multiply(score[2 * j + 1], query[d], b[2], b[3]);
            }
        }

        const int left = last - key0 - lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float top = largest[i];
#pragma unroll
            for (int j = 0; j < BN / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (8 * j + e >= left)
                        score[j][2 * i + e] = __int_as_float(0xff800000);
                    top = fmaxf(top, score[j][2 * i + e]);
                }
            }
#pragma unroll
            for (int step = 1; step < 4; step *= 2)
                top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
            const float shrink = expf((largest[i] - top) * scale);
            largest[i] = top;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < D / 8; ++j) {
                result[j][2 * i] *= shrink;
                result[j][2 * i + 1] *= shrink;
            }
#pragma unroll
            for (int j = 0; j < BN / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const float weight = expf((score[j][2 * i + e] - top) * scale);
                    sum[i] += weight;
                    score[j][2 * i + e] = weight;
                }
            }
        }

        // Two neighbouring accumulators of the scores are a left operand of 16 keys.
        unsigned weights[BN / 16][4];
#pragma unroll
        for (int j = 0; j < BN / 16; ++j) {
            weights[j][0] = pack(score[2 * j][0], score[2 * j][1]);
            weights[j][1] = pack(score[2 * j][2], score[2 * j][3]);
            weights[j][2] = pack(score[2 * j + 1][0], score[2 * j + 1][1]);
            weights[j][3] = pack(score[2 * j + 1][2], score[2 * j + 1][3]);
        }
        __syncthreads();
        loadTile(operand, v + (size_t(key0) * H + head) * D, last - key0, H, thread);
        __syncthreads();

        // Columns 8 j + 2 (lane % 4) and the next.
#pragma unroll
        for (int key = 0; key < BN / 16; ++key) {
#pragma unroll
            for (int j = 0; j < D / 16; ++j) {
                unsigned b[4];
                loadMatricesTransposed(b, valuesAt + (16 * key * PITCH + 16 * j) * 2);
                multiply(result[2 * j], weights[key], b[0], b[1]);
                multiply(result[2 * j + 1], weights[key], b[2], b[3]);
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int step = 1; step < 4; step *= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], step);
        const int row = 16 * warp + lane / 4 + 8 * i;
        if (row < rows) {
            const float inverse = sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f;
            __half *to = out + (size_t(row0 + row) * H + head) * D + lane % 4 * 2;
#pragma unroll
            for (int j = 0; j < D / 8; ++j)
                *reinterpret_cast<__half2 *>(to + 8 * j) =
                    __floats2half2_rn(result[j][2 * i] * inverse, result[j][2 * i + 1] * inverse);
        }
    }
}
