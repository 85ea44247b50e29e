/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = [128]
shared = "64 * 128 * 2 + 1024"
args = ["k", "g", "beta", "a", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L. A block has one chunk of 64 tokens of all heads of a key head:
// they differ in gates and weights alone, and share k · kᵀ, a product of matrices on the tensor cores.
// What lies above the diagonal is neither computed nor read, and the blocks on and below it are dealt out evenly among the warps.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in f16, for no entry exceeds 1: the matrix lies as f16 in a swizzled tile of 64 × 128 bytes. The blocks on the diagonal
// are in single precision, beside it, until they are inverted. Both take the room of the keys, of which only the products are needed then.
// Needs D == 128.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 24;      // of rows of a block on the diagonal: pairs from four rows lie in different banks
constexpr int BLOCK = 16 * PITCH + 16; // from one such block to the next: rows of neighbours lie in different banks
constexpr int TILE = C * C * 2;        // bytes of the matrix in f16; the blocks in single precision follow

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the chunk of 8 bf16 or f16 of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

__device__ __forceinline__ void copyAsync16(unsigned to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

__device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}

// 64 keys to shared memory, zeros after `valid` rows; by 128 threads.
__device__ __forceinline__ void copyKeys(unsigned to, const __nv_bfloat16 *from, size_t pitch, int valid)
{
    for (int i = threadIdx.x; i < C * 16; i += 128) {
        const int row = i / 16, chunk = i % 16;
        copyAsync16(to + place(row, chunk), from + (row < valid ? row * pitch : 0) + chunk * 8, row < valid);
    }
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// The same, each matrix transposed.
__device__ __forceinline__ void loadTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// The reverse of loadMatrices.
__device__ __forceinline__ void storeMatrices(unsigned row, const unsigned (&from)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(row), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}

// d += a · b, 16 × 16 times 16 × 8.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// The sums of a chunk's log gates, and the weights; by one warp. Tokens after the last one neither decay nor correct.
__device__ __forceinline__ void sumGates(float *sums, float *betas, const float *g, const float *beta, size_t pitch, int valid)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float even = t < valid ? g[t * pitch] : 0.0f, odd = t + 1 < valid ? g[(t + 1) * pitch] : 0.0f;
    betas[t] = t < valid ? beta[t * pitch] : 0.0f;
    betas[t + 1] = t + 1 < valid ? beta[(t + 1) * pitch] : 0.0f;
    float sum = even + odd;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    sums[t] = sum - odd;
    sums[t + 1] = sum;
}

// d += a · b, 16 × 16 times 16 × 8, in f16.
__device__ __forceinline__ void multiplyHalf(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned packHalf(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// Two f16 to two bf16.
__device__ __forceinline__ unsigned repack(unsigned halves)
{
    const float2 both = __half22float2(reinterpret_cast<const __half2 &>(halves));
    return pack(both.x, both.y);
}

// Where a block of 16 × 16 of the tile lies, from where the first one does; in either case the row that this lane names of it.
// Columns are multiples of 16, so that they only flip bits of the swizzled place.
__device__ __forceinline__ unsigned blockAt(unsigned tile, int row, int column)
{
    return (tile ^ unsigned(column * 2)) + row * 128;
}

// Inverts the blocks of 16 × 16 on the diagonal, a thread for each column, from single precision to the tile; by two warps.
__device__ __forceinline__ void invertDiagonal(unsigned tile, const float *diagonal)
{
    const int d = threadIdx.x / 16, column = threadIdx.x % 16;
    const float *m = diagonal + d * BLOCK;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 entries = *reinterpret_cast<const float4 *>(m + i * PITCH + k);
            sum -= entries.x * x[k];
            sum -= k + 1 < i ? entries.y * x[k + 1] : 0.0f;
            sum -= k + 2 < i ? entries.z * x[k + 2] : 0.0f;
            sum -= k + 3 < i ? entries.w * x[k + 3] : 0.0f;
        }
        x[i] = sum;
    }
    unsigned to = tile + d * 2048 + d * 32 + column * 2; // of row 0 of the block; the others are swizzled
    asm volatile("" : "+r"(to)); // their places are made here, not kept in registers throughout
#pragma unroll
    for (int i = 0; i < 16; ++i)
        asm volatile("st.shared.u16 [%0], %1;"
                     :: "r"((to ^ unsigned(i % 8 * 16)) + i * 128), "h"(__half_as_ushort(__float2half_rn(x[i]))) : "memory");
}

// 16 × 16 of -C⁻¹ B A⁻¹, where A and C are SIZE × SIZE, A begins at `m`, and both are inverted already: the rows from
// ROW of C on, the columns from COLUMN of A on. By one warp. What is zero in C⁻¹ and A⁻¹ is left out.
template <int SIZE, int ROW, int COLUMN>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], unsigned m)
{
    constexpr int INNER = ROW / 16 + 1, OUTER = (SIZE - COLUMN) / 16; // blocks of C⁻¹ in the rows, of A⁻¹ in the columns
    unsigned left[INNER][4];
#pragma unroll
    for (int k = 0; k < INNER; ++k)
        loadMatrices(left[k], blockAt(m, SIZE + ROW, SIZE + k * 16));
#pragma unroll
    for (int n = 0; n < OUTER; ++n) {
        unsigned middle[INNER][4], right[4];
#pragma unroll
        for (int k = 0; k < INNER; ++k)
            loadTransposed(middle[k], blockAt(m, SIZE + k * 16, COLUMN + n * 16));
        loadTransposed(right, blockAt(m, COLUMN + n * 16, COLUMN));
        float low[4] = {}, high[4] = {};
#pragma unroll
        for (int k = 0; k < INNER; ++k) {
            multiplyHalf(low, left[k], middle[k][0], middle[k][1]);
            multiplyHalf(high, left[k], middle[k][2], middle[k][3]);
        }
        // Sixteen columns of the product are a left operand as they lie in the registers.
        const unsigned product[4] = {packHalf(-low[0], -low[1]), packHalf(-low[2], -low[3]), packHalf(-high[0], -high[1]),
                                     packHalf(-high[2], -high[3])};
        multiplyHalf(to[0], product, right[0], right[1]);
        multiplyHalf(to[1], product, right[2], right[3]);
    }
}

__device__ __forceinline__ void storeBlock(unsigned at, const float (&from)[2][4])
{
    const unsigned halves[4] = {packHalf(from[0][0], from[0][1]), packHalf(from[0][2], from[0][3]),
                                packHalf(from[1][0], from[1][1]), packHalf(from[1][2], from[1][3])};
    storeMatrices(at, halves);
}

// A block on the diagonal, in single precision, to be inverted.
__device__ __forceinline__ void storeDiagonal(float *to, const float (&from)[2][4])
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            *reinterpret_cast<float2 *>(to + (g + i * 8) * PITCH + n * 8 + c * 2) = make_float2(from[n][i * 2], from[n][i * 2 + 1]);
    }
}

// Which blocks of 16 × 16 on and below the diagonal a warp computes, of ten in all: 2, 2, 3 and 3 of one row each, but for the
// second one of warp 0, the last on the diagonal.
__device__ __forceinline__ int blocksOf(int warp)
{
    return warp < 2 ? 2 : 3;
}

__device__ __forceinline__ int rowOf(int warp, int b)
{
    return warp == 0 && b == 1 ? 3 : warp;
}

__device__ __forceinline__ int columnOf(int warp, int b)
{
    return warp == 0 && b == 1 ? 3 : b;
}

extern "C" __global__ void __launch_bounds__(128, 8)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              __nv_bfloat16 *__restrict__ a, int T, int HV)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][C], betas[4][C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles);
    float *diagonal = reinterpret_cast<float *>(tiles + TILE);

    const int keyHead = blockIdx.x, keyHeads = gridDim.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / keyHeads; // heads of a key head
    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;

    copyKeys(ks, k + (token * keyHeads + keyHead) * D, size_t(keyHeads) * D, valid);
    commitCopies();

    // A warp for each of the next four heads.
    const auto sumNext = [&](int i) {
        const size_t at = token * HV + keyHead * ratio + i + warp;
        if (i + warp < ratio)
            sumGates(sums[warp], betas[warp], g + at, beta + at, HV, valid);
    };
    sumNext(0);
    waitCopies();
    __syncthreads();

    float products[3][2][4] = {}; // of k · kᵀ
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned left[4];
        loadMatrices(left, ks + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int b = 0; b < 3; ++b) {
            if (b >= blocksOf(warp))
                continue;
            if (warp == 0 && b == 1)
                loadMatrices(left, ks + place(48 + lane % 16, 2 * step + lane / 16));
            const int row = columnOf(warp, b) * 16 + lane / 16 * 8 + lane % 8;
            unsigned right[4];
            loadMatrices(right, ks + place(row, 2 * step + lane / 8 % 2));
            multiply(products[b][0], left, right[0], right[1]);
            multiply(products[b][1], left, right[2], right[3]);
        }
    }

    __syncthreads(); // the keys give way to the matrix

    const unsigned lanePlace = ks + place(lane % 16, lane / 16); // of this lane's row of the first block
    for (int i = 0; i < ratio; ++i) {
        const int head = keyHead * ratio + i;
        if (i > 0 && i % 4 == 0) {
            sumNext(i);
            __syncthreads();
        }

        const float *sum = sums[i % 4], *factor = betas[i % 4];
#pragma unroll
        for (int b = 0; b < 3; ++b) {
            if (b >= blocksOf(warp))
                continue;
            const int row = rowOf(warp, b), column = columnOf(warp, b);
            float entries[2][4];
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int t = row * 16 + j / 2 % 2 * 8 + lane / 4;
                const int s = column * 16 + j / 4 * 8 + lane % 4 * 2 + j % 2;
                entries[j / 4][j % 4] = factor[t] * expf(sum[t] - sum[s]) * products[b][j / 4][j % 4];
            }
            if (row == column) // the inversion does not use what is not below the diagonal
                storeDiagonal(diagonal + row * BLOCK, entries);
            else
                storeBlock(blockAt(lanePlace, row * 16, column * 16), entries);
        }
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(ks, diagonal);
            __syncwarp();
            float block[2][4] = {}; // this warp's two blocks become one
            const unsigned m = blockAt(lanePlace, warp * 32, warp * 32);
            mergeBlocks<16, 0, 0>(block, m);
            __syncwarp();
            storeBlock(blockAt(m, 16, 0), block);
        }
        __syncthreads();
        float block[2][4] = {};
        if (warp == 0)
            mergeBlocks<32, 0, 0>(block, lanePlace);
        else if (warp == 1)
            mergeBlocks<32, 0, 16>(block, lanePlace);
        else if (warp == 2)
            mergeBlocks<32, 16, 0>(block, lanePlace);
        else
            mergeBlocks<32, 16, 16>(block, lanePlace);
        // To the quarter above the diagonal, which is free, for others may not have read yet what this replaces.
        storeBlock(blockAt(lanePlace, warp / 2 * 16, 32 + warp % 2 * 16), block);
        __syncthreads();

        const int firstRow = thread / 8, part = thread % 8; // of 8 columns
        const unsigned upper = place(firstRow, part), lower = part < 4 ? (upper ^ 64) - 4096 : upper;
        __nv_bfloat16 *to = a + ((token + firstRow) * HV + head) * C + part * 8;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            uint4 halves = make_uint4(0u, 0u, 0u, 0u);
            if (part / 2 <= j)
                halves = *reinterpret_cast<const uint4 *>(tiles + int((j < 2 ? upper : lower) + j * 2048));
            if (firstRow + j * 16 < valid)
                *reinterpret_cast<uint4 *>(to + j * 16 * HV * C) =
                    make_uint4(repack(halves.x), repack(halves.y), repack(halves.z), repack(halves.w));
        }
        __syncthreads(); // before the next head takes the room
    }
}
