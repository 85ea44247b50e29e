/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "(128 + 2 * 64) * 128 * 2"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "int KV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time, causal: the last query of a sequence attends to all keys,
// each one before it to one key fewer, and one that attends to none gives zeros. H / KV heads of q share one of
// k and v; D is 128.
//
// Both products move to the tensor cores (mma.sync, f16 in, f32 sums): a warp owns 16 of 128 queries and
// keeps them, its scores and its results in registers. The layout of the scores of the first product is the
// one of the left operand of the second: the weights never leave their registers. Rows in shared memory are
// f16 in 16-byte chunks, swizzled, so that ldmatrix reads eight rows without bank conflicts; v is transposed on
// the way (ldmatrix.trans).
//
// A tile walks the keys up to the last one that its last query attends to; only blocks that the diagonal goes
// through are masked.

#include <cuda_fp16.h>

constexpr int D = 128, BM = 128, BN = 64;
constexpr int CHUNKS = D / 8; // of 16 bytes, a row

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Row r keeps chunk c at place c ^ (r % 8): eight neighbouring rows cover all 32 banks.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// Rows from `rows` on are zeros.
template <int ROWS>
__device__ __forceinline__ void loadTile(uint4 *to, const __half *from, int rows, int H, int thread)
{
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / 256; ++i) {
        const int r = (thread + 256 * i) / CHUNKS, c = thread % CHUNKS;
        to[place(r, c)] = r < rows ? *reinterpret_cast<const uint4 *>(from + size_t(r) * H * D + c * 8)
                                   : make_uint4(0, 0, 0, 0);
    }
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], const uint4 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
}

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

__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quadSum(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

extern "C" __global__ __launch_bounds__(256, 1) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, int KV, float scale)
{
    extern __shared__ uint4 tiles[];
    uint4 *queries = tiles, *keys = queries + BM * CHUNKS, *values = keys + BN * CHUNKS;

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
    const int head = blockIdx.y, group = H / KV, thread = threadIdx.x, lane = thread % 32, warpRow = thread / 32 * 16;
    const int row0 = cuQ[sequence] + index * BM, rows = cuQ[sequence + 1] - row0;
    const int last = cuK[sequence + 1];
    // Where the keys end that the tile's last query attends to; before the sequence's first key, if it attends to none.
    const int end = last - max(rows - BM, 0);
    // The same for the warp's first row: blocks that end by there are attended to by all of the warp's rows.
    const int whole = last - (rows - 1 - warpRow);

    loadTile<BM>(queries, q + (size_t(row0) * H + head) * D, rows, H, thread);
    __syncthreads();
    unsigned query[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
        loadMatrices(query[d], queries + place(warpRow + lane % 16, 2 * d + lane / 16));

    // A lane holds two neighbouring columns of every 8: of row lane / 4 (0, 1) and of the row 8 below (2, 3).
    float result[D / 8][4] = {};
    float largest[2], sum[2] = {};
    largest[0] = largest[1] = -1e30f; // finite: a row may have met no key yet
    for (int key0 = cuK[sequence]; key0 < end; key0 += BN) {
        __syncthreads();
        loadTile<BN>(keys, k + (size_t(key0) * KV + head / group) * D, end - key0, KV, thread);
        loadTile<BN>(values, v + (size_t(key0) * KV + head / group) * D, end - key0, KV, thread);
        __syncthreads();

        float score[BN / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
#pragma unroll
            for (int j = 0; j < BN / 8; j += 2) {
                unsigned b[4];
                loadMatrices(b, keys + place(8 * j + lane / 16 * 8 + lane % 8, 2 * d + lane / 8 % 2));
                multiply(score[j], query[d], b[0], b[1]);
                multiply(score[j + 1], query[d], b[2], b[3]);
            }

        // The diagonal goes through this block, or the block lies beyond it: the same for all lanes of a warp.
        if (key0 + BN > whole) {
            // How many keys from this block on the lane's first row attends to; its other row, to 8 more.
            const int limit = whole + lane / 4 - key0;
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (8 * j + lane % 4 * 2 + i % 2 >= limit + i / 2 * 8)
                        score[j][i] = __int_as_float(0xff800000);
        }

        float shrink[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float top = largest[half];
#pragma unroll
            for (int j = 0; j < BN / 8; ++j)
                top = fmaxf(top, fmaxf(score[j][2 * half], score[j][2 * half + 1]));
            top = quadMax(top);
            shrink[half] = __expf((largest[half] - top) * scale);
            largest[half] = top;
            sum[half] *= shrink[half];
        }
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                score[j][i] = __expf((score[j][i] - largest[i / 2]) * scale);
                sum[i / 2] += score[j][i];
            }
#pragma unroll
        for (int j = 0; j < D / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                result[j][i] *= shrink[i / 2];

#pragma unroll
        for (int key = 0; key < BN / 16; ++key) {
            const unsigned weights[4] = {pack(score[2 * key][0], score[2 * key][1]),
                                         pack(score[2 * key][2], score[2 * key][3]),
                                         pack(score[2 * key + 1][0], score[2 * key + 1][1]),
                                         pack(score[2 * key + 1][2], score[2 * key + 1][3])};
#pragma unroll
            for (int j = 0; j < D / 8; j += 2) {
                unsigned b[4];
                loadTransposed(b, values + place(16 * key + lane % 16, j + lane / 16));
                multiply(result[j], weights, b[0], b[1]);
                multiply(result[j + 1], weights, b[2], b[3]);
            }
        }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = warpRow + 8 * half + lane / 4;
        const float total = quadSum(sum[half]), inverse = total > 0.0f ? 1.0f / total : 0.0f;
        __half *to = out + (size_t(row0 + row) * H + head) * D + lane % 4 * 2;
        if (row < rows)
#pragma unroll
            for (int j = 0; j < D / 8; ++j)
                *reinterpret_cast<unsigned *>(to + 8 * j) =
                    pack(result[j][2 * half] * inverse, result[j][2 * half + 1] * inverse);
    }
}
