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
// One block owns 64 queries of one head, a warp 16 of them, and makes one pass over the keys (online softmax), 64 at a time. Both
// products are mma.sync; the weights stay in registers: the sums of the first product, packed to f16, are the left operand of the
// second. Still missing: copies that overlap with the arithmetic, wgmma.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 64, KEYS = 64, THREADS = 128;
constexpr int CHUNKS = D / 8;                      // 16-byte chunks a row
constexpr int PER_THREAD = KEYS * CHUNKS / THREADS; // chunks of a tile that a thread copies

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

// Where a chunk of a tile lies: 8 neighbouring rows of the same chunk meet all banks.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// This thread's chunks of 64 rows of 128 halves; those of rows from `rows` on become zero. Rows are 256 bytes: aligned.
__device__ __forceinline__ void fetch(uint4 (&to)[PER_THREAD], const __half *from, size_t stride, int rows)
{
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const int row = threadIdx.x / CHUNKS + i * (THREADS / CHUNKS);
        to[i] = make_uint4(0, 0, 0, 0);
        if (row < rows)
            to[i] = *reinterpret_cast<const uint4 *>(from + row * stride + threadIdx.x % CHUNKS * 8);
    }
}

__device__ __forceinline__ void store(uint4 *to, const uint4 (&from)[PER_THREAD])
{
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i)
        to[place(threadIdx.x / CHUNKS + i * (THREADS / CHUNKS), threadIdx.x % CHUNKS)] = from[i];
}

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Four 8 x 8 matrices; lanes 8i to 8i + 7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], const uint4 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
}

// The same, each transposed.
__device__ __forceinline__ void loadTransposed(unsigned (&to)[4], const uint4 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
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

// Over the four lanes that share a row of the sums.
__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quadSum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

extern "C" __global__ __launch_bounds__(THREADS, 2) void attention(const __half *q, const __half *k, const __half *v,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, float scale)
{
    __shared__ __align__(128) uint4 keyTile[KEYS * CHUNKS];
    __shared__ __align__(128) uint4 valueTile[KEYS * CHUNKS];

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

    // This lane's queries are top and top + 8; of every 8 columns of a sum it holds pair and pair + 1.
    const int lane = threadIdx.x % 32;
    const int top = threadIdx.x / 32 * 16 + lane / 4;
    const int pair = lane % 4 * 2;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    unsigned query[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = top + i % 2 * 8;
            query[d][i] = 0;
            if (row < rows)
                query[d][i] = *reinterpret_cast<const unsigned *>(q + row * stride + 16 * d + i / 2 * 8 + pair);
        }

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f};

    for (int start = 0; start < keys; start += KEYS) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        {
            uint4 keyChunks[PER_THREAD], valueChunks[PER_THREAD];
            fetch(keyChunks, k + start * stride, stride, rest);
            fetch(valueChunks, v + start * stride, stride, rest);
            __syncthreads();
            store(keyTile, keyChunks);
            store(valueTile, valueChunks);
            __syncthreads();
        }

        float score[KEYS / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
#pragma unroll
            for (int j = 0; j < KEYS / 8; j += 2) {
                unsigned b[4];
                loadMatrices(b, keyTile + place(8 * j + lane / 16 * 8 + lane % 8, 2 * d + lane / 8 % 2));
                multiply(score[j], query[d], b[0], b[1]);
                multiply(score[j + 1], query[d], b[2], b[3]);
            }

        if (rest < KEYS) {
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (8 * j + pair + i % 2 >= rest)
                        score[j][i] = -infinity;
        }

#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float high = largest[r];
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j)
                high = fmaxf(high, fmaxf(score[j][2 * r], score[j][2 * r + 1]));
            high = quadMax(high);
            const float shrink = exp2f((largest[r] - high) * base2);
            largest[r] = high;
            sum[r] *= shrink;
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
                for (int i = 2 * r; i < 2 * r + 2; ++i) {
                    score[j][i] = exp2f((score[j][i] - high) * base2);
                    sum[r] += score[j][i];
                }
#pragma unroll
            for (int j = 0; j < D / 8; ++j) {
                result[j][2 * r] *= shrink;
                result[j][2 * r + 1] *= shrink;
            }
        }

#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
            const unsigned left[4] = {pack(score[2 * n][0], score[2 * n][1]), pack(score[2 * n][2], score[2 * n][3]),
                                      pack(score[2 * n + 1][0], score[2 * n + 1][1]),
                                      pack(score[2 * n + 1][2], score[2 * n + 1][3])};
#pragma unroll
            for (int j = 0; j < D / 8; j += 2) {
                unsigned b[4];
                loadTransposed(b, valueTile + place(16 * n + lane % 16, j + lane / 16));
                multiply(result[j], left, b[0], b[1]);
                multiply(result[j + 1], left, b[2], b[3]);
            }
        }
    }

#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const float total = quadSum(sum[r]);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = top + 8 * r;
        if (row < rows) {
#pragma unroll
            for (int j = 0; j < D / 8; ++j)
                *reinterpret_cast<__half2 *>(out + row * stride + 8 * j + pair) =
                    __floats2half2_rn(result[j][2 * r] * inverse, result[j][2 * r + 1] * inverse);
        }
    }
}
