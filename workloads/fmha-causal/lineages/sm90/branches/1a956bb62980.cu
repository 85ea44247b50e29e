/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["128"]
shared = "(128 + 2 * 64) * 136 * 2"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros; D is 128.
//
// A block owns 128 queries of one head and takes 64 keys at a time: both products become products of tiles
// on the tensor cores, with operands of f16 and sums of f32. A warp owns 32 queries and all keys of a tile, so that a fragment of
// k or v that it reads from shared memory (ldmatrix) serves both its halves of 16 queries. Its 32 × 64 scores lie in registers
// as the fragments of mma.sync have them, and the weights, rounded to f16, are the left operand of the second product
// where they lie. The 4 threads of a row share its maximum and sum by shuffles.
// Every row is masked at its diagonal, and the tiles above it are multiplied for nothing.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 64, THREADS = 128;
constexpr int PITCH = D + 8; // halves a row: eight neighbouring rows begin in other banks, 16 bytes apart
constexpr int ROW_THREADS = D / 8, ROW_STEP = THREADS / ROW_THREADS, CHUNKS = BN / ROW_STEP; // of a tile of 64 rows

// A thread's part of a tile of 64 rows; rows from `rows` on are zeros.
__device__ __forceinline__ void fetchTile(uint4 (&chunk)[CHUNKS], const __half *from, int rows, int H, int thread)
{
    const int r = thread / ROW_THREADS, c = thread % ROW_THREADS;
    from += size_t(r) * H * D + c * 8;
    int step = ROW_STEP * H * D;
    asm volatile("" : "+r"(step)); // the offsets below are to be computed at each tile: kept, they would take registers
#pragma unroll
    for (int n = 0; n < CHUNKS; ++n) {
        chunk[n] = make_uint4(0, 0, 0, 0);
        if (r + n * ROW_STEP < rows)
            chunk[n] = *reinterpret_cast<const uint4 *>(from + n * step);
    }
}

__device__ __forceinline__ void storeTile(__half *to, const uint4 (&chunk)[CHUNKS], int thread)
{
    to += thread / ROW_THREADS * PITCH + thread % ROW_THREADS * 8;
#pragma unroll
    for (int n = 0; n < CHUNKS; ++n)
        *reinterpret_cast<uint4 *>(to + n * ROW_STEP * PITCH) = chunk[n];
}

// Four 8 × 8 matrices; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// c += a · b, 16 × 8 with 16 terms each.
__device__ __forceinline__ void multiplyAdd(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                            unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned packed(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

extern "C" __global__ __launch_bounds__(128, 2) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ uint4 tiles[];
    __half *queries = reinterpret_cast<__half *>(tiles), *keys = queries + BM * PITCH, *values = keys + BN * PITCH;

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
    const int tx = lane % 4, ty = 32 * warp + lane / 4; // the thread's rows are ty + 8 i, i from 0 to 3
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int last = cuK[sequence + 1];

#pragma unroll
    for (int part = 0; part < BM / BN; ++part) {
        uint4 chunk[CHUNKS];
        fetchTile(chunk, q + (size_t(row0 + part * BN) * H + head) * D, rows - part * BN, H, thread);
        storeTile(queries + part * BN * PITCH, chunk, thread);
    }

    // What the lane addresses for ldmatrix: of q and of v rows lane % 16, columns from 8 (lane / 16);
    // of k the halves of the columns come first, then those of the rows.
    const unsigned queriesAt = unsigned(__cvta_generic_to_shared(queries)) +
                               2u * ((32 * warp + lane % 16) * PITCH + lane / 16 * 8);
    const unsigned keysAt = unsigned(__cvta_generic_to_shared(keys)) +
                            2u * ((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8);
    const unsigned valuesAt = unsigned(__cvta_generic_to_shared(values)) + 2u * (lane % 16 * PITCH + lane / 16 * 8);

    float largest[4], sum[4], result[2][D / 8][4];
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < D / 8; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c)
                result[m][j][c] = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        largest[i] = -1e30f; // finite: a row may have met no key yet
        sum[i] = 0.0f;
    }
#pragma unroll 1
    for (int key0 = cuK[sequence]; key0 < last; key0 += BN) {
        {
            uint4 keyChunk[CHUNKS], valueChunk[CHUNKS];
            fetchTile(keyChunk, k + (size_t(key0) * H + head) * D, last - key0, H, thread);
            fetchTile(valueChunk, v + (size_t(key0) * H + head) * D, last - key0, H, thread);
            __syncthreads();
            storeTile(keys, keyChunk, thread);
            storeTile(values, valueChunk, thread);
            __syncthreads();
        }

        // score[m][j][2 i + c] is row ty + 16 m + 8 i, key 8 j + 2 tx + c.
        float score[2][BN / 8][4];
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    score[m][j][c] = 0.0f;
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
            unsigned a[2][4];
#pragma unroll
            for (int m = 0; m < 2; ++m)
                loadMatrices(a[m], queriesAt + 2u * (16 * m * PITCH + 16 * d));
#pragma unroll
            for (int j = 0; j < BN / 16; ++j) {
                unsigned b[4];
                loadMatrices(b, keysAt + 2u * (16 * j * PITCH + 16 * d));
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    multiplyAdd(score[m][2 * j], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
                    multiplyAdd(score[m][2 * j + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[2], b[3]);
                }
            }
        }

        float top[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            top[i] = largest[i];
            // The first key that the row does not attend to, counted from the thread's first key.
            const int limit = min(last - (rows - 1 - (ty + 8 * i)), last) - key0 - 2 * tx;
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    float &here = score[i / 2][j][2 * (i % 2) + c];
                    if (8 * j + c >= limit)
                        here = __int_as_float(0xff800000);
                    top[i] = fmaxf(top[i], here);
                }
        }
#pragma unroll
        for (int step = 1; step < 4; step *= 2)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                top[i] = fmaxf(top[i], __shfl_xor_sync(~0u, top[i], step));

        unsigned weights[BN / 8][4]; // pairs of neighbouring keys, rows ty + 8 i
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float shrink = expf((largest[i] - top[i]) * scale);
            largest[i] = top[i];
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < D / 8; ++j) {
                result[i / 2][j][2 * (i % 2)] *= shrink;
                result[i / 2][j][2 * (i % 2) + 1] *= shrink;
            }
#pragma unroll
            for (int j = 0; j < BN / 8; ++j) {
                const float low = expf((score[i / 2][j][2 * (i % 2)] - top[i]) * scale);
                const float high = expf((score[i / 2][j][2 * (i % 2) + 1] - top[i]) * scale);
                sum[i] += low;
                sum[i] += high;
                weights[j][i] = packed(low, high);
            }
        }

        // result[m][j][2 i + c] is row ty + 16 m + 8 i, column 8 j + 2 tx + c.
#pragma unroll
        for (int key = 0; key < BN / 16; ++key)
#pragma unroll
            for (int j = 0; j < D / 16; ++j) {
                unsigned b[4];
                loadMatricesTransposed(b, valuesAt + 2u * (16 * key * PITCH + 16 * j));
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    multiplyAdd(result[m][2 * j], weights[2 * key][2 * m], weights[2 * key][2 * m + 1],
                                weights[2 * key + 1][2 * m], weights[2 * key + 1][2 * m + 1], b[0], b[1]);
                    multiplyAdd(result[m][2 * j + 1], weights[2 * key][2 * m], weights[2 * key][2 * m + 1],
                                weights[2 * key + 1][2 * m], weights[2 * key + 1][2 * m + 1], b[2], b[3]);
                }
            }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int step = 1; step < 4; step *= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], step);
        if (ty + 8 * i < rows) {
            const float inverse = sum[i] > 0.0f ? 1.0f / sum[i] : 0.0f;
            __half *to = out + (size_t(row0 + ty + 8 * i) * H + head) * D + 2 * tx;
#pragma unroll
            for (int j = 0; j < D / 8; ++j)
                *reinterpret_cast<__half2 *>(to + 8 * j) = __floats2half2_rn(
                    result[i / 2][j][2 * (i % 2)] * inverse, result[i / 2][j][2 * (i % 2) + 1] * inverse);
        }
    }
}
