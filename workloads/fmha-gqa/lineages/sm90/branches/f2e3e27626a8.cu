/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["128"]
shared = "2 * 64 * 136 * 2"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// A block owns 64 queries of one head and takes 64 keys at a time: both products become products of tiles
// on the tensor cores, f16 with sums in f32. A warp owns 16 whole rows: its queries stay in registers as fragments, it computes
// 16 × 64 scores and 16 × 128 numbers of the output, and k and v come from shared memory by ldmatrix. The four threads
// of a row share its maximum and sum by shuffles; the weights, rounded to f16, are where the second product wants
// its left operand and never leave the registers.
// Every row is masked at its diagonal, and the tiles above it are multiplied for nothing.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 64, BN = 64, THREADS = 128;
constexpr int PITCH = D + 8; // halves a row: eight neighbouring rows begin in other banks, 16 bytes each

static_assert(BM == BN && BM == 16 * (THREADS / 32), "a warp owns 16 rows, and all tiles are alike");

// Rows of a tile; rows from `rows` on are zeros.
__device__ __forceinline__ void loadTile(__half *to, const __half *from, int rows, int H, int thread)
{
    constexpr int BATCH = 4;
    const int c = thread % (D / 8), r0 = thread / (D / 8);
#pragma unroll
    for (int i = 0; i < BM * (D / 8) / THREADS; i += BATCH) {
        uint4 chunk[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            const int r = r0 + (i + j) * (THREADS / (D / 8));
            chunk[j] = make_uint4(0, 0, 0, 0);
            if (r < rows)
                chunk[j] = *reinterpret_cast<const uint4 *>(from + size_t(r) * H * D + c * 8);
        }
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            const int r = r0 + (i + j) * (THREADS / (D / 8));
            *reinterpret_cast<uint4 *>(to + r * PITCH + c * 8) = chunk[j];
        }
    }
}

// Four 8 × 8 matrices; lane l names row l % 8 of matrix l / 8, by its address in shared memory.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ __forceinline__ void loadTransposed(unsigned (&to)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// to += a · b, 16 × 8 += 16 × 16 · 16 × 8.
__device__ __forceinline__ void multiply(float (&to)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two numbers as f16, the first one in the low half.
__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

extern "C" __global__ __launch_bounds__(128, 3) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, int KV, float scale)
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
    const int head = blockIdx.y, group = H / KV, thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int tx = lane % 4, ty = 16 * warp + lane / 4; // the thread's rows are ty and ty + 8
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int last = cuK[sequence + 1];

    loadTile(queries, q + (size_t(row0) * H + head) * D, rows, H, thread);
    __syncthreads();

    // The warp's 16 queries, 16 of D at a time.
    unsigned query[D / 16][4];
    {
        const unsigned from =
            unsigned(__cvta_generic_to_shared(queries + (16 * warp + lane % 16) * PITCH + 8 * (lane / 16)));
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
            loadMatrices(query[d], from + 16 * d * 2);
    }
    // Of 16 keys × 16 of D: for k the matrices go along D first, for v along the keys first.
    const unsigned keysFrom = unsigned(
        __cvta_generic_to_shared(operand + (8 * (lane / 16) + lane % 8) * PITCH + 8 * (lane / 8 % 2)));
    const unsigned valuesFrom =
        unsigned(__cvta_generic_to_shared(operand + (lane % 16) * PITCH + 8 * (lane / 16)));

    // result[n][2 i + e]: row ty + 8 i, column 8 n + 2 tx + e.
    float largest[2], sum[2] = {}, result[D / 8][4] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i)
        largest[i] = -1e30f; // finite: a row may have met no key yet
#pragma unroll 1
    for (int key0 = cuK[sequence]; key0 < last; key0 += BN) {
        __syncthreads();
        loadTile(operand, k + (size_t(key0) * KV + head / group) * D, last - key0, KV, thread);
        __syncthreads();

        // score[n][2 i + e]: row ty + 8 i, key 8 n + 2 tx + e.
        float score[BN / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
#pragma unroll
            for (int n = 0; n < BN / 16; ++n) {
                unsigned b[4];
                loadMatrices(b, keysFrom + (16 * n * PITCH + 16 * d) * 2);
                multiply(score[2 * n], query[d], b[0], b[1]);
                multiply(score[2 * n + 1], query[d], b[2], b[3]);
            }

#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float top = largest[i];
            const int limit = last - (rows - 1 - (ty + 8 * i)); // the first key that the row does not attend to
            const int end = min(limit, last) - key0 - 2 * tx;
#pragma unroll
            for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (8 * n + e >= end)
                        score[n][2 * i + e] = __int_as_float(0xff800000);
                    top = fmaxf(top, score[n][2 * i + e]);
                }
#pragma unroll
            for (int step = 1; step < 4; step *= 2)
                top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
            const float shrink = expf((largest[i] - top) * scale);
            largest[i] = top;
            sum[i] *= shrink;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                result[n][2 * i] *= shrink;
                result[n][2 * i + 1] *= shrink;
            }
#pragma unroll
            for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const float weight = expf((score[n][2 * i + e] - top) * scale);
                    sum[i] += weight;
                    score[n][2 * i + e] = weight;
                }
        }

        // The weights as left operands, 16 keys each: what a thread holds of two neighbouring blocks of scores.
        unsigned weights[BN / 16][4];
#pragma unroll
        for (int n = 0; n < BN / 16; ++n) {
            weights[n][0] = pack(score[2 * n][0], score[2 * n][1]);
            weights[n][1] = pack(score[2 * n][2], score[2 * n][3]);
            weights[n][2] = pack(score[2 * n + 1][0], score[2 * n + 1][1]);
            weights[n][3] = pack(score[2 * n + 1][2], score[2 * n + 1][3]);
        }
        __syncthreads();
        loadTile(operand, v + (size_t(key0) * KV + head / group) * D, last - key0, KV, thread);
        __syncthreads();

#pragma unroll
        for (int key = 0; key < BN / 16; ++key)
#pragma unroll
            for (int n = 0; n < D / 16; ++n) {
                unsigned b[4];
                loadTransposed(b, valuesFrom + (16 * key * PITCH + 16 * n) * 2);
                multiply(result[2 * n], weights[key], b[0], b[1]);
                multiply(result[2 * n + 1], weights[key], b[2], b[3]);
            }
    }

#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int step = 1; step < 4; step *= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], step);
        if (ty + 8 * i < rows) {
            const float inverse = sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f;
            __half *to = out + (size_t(row0 + ty + 8 * i) * H + head) * D + 2 * tx;
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<__half2 *>(to + 8 * n) =
                    __floats2half2_rn(result[n][2 * i] * inverse, result[n][2 * i + 1] * inverse);
        }
    }
}
