/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HV", "ceil_div(T, 64)", "B"]
block = [128]
shared = "64 * 128 * 2 + 10 * 16 * 16 * 4 + 1024"
args = ["k", "g", "beta", "a", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L by blocks of 16 × 16. A block of threads has one chunk of 64 tokens
// of one head. k · kᵀ is a product of matrices on the tensor cores, a warp 16 rows of it. Two warps invert the four blocks on the
// diagonal by forward substitution, half a warp a block. With A and B the triangles above and below, what stands left of B in the
// inverse is -inverse(B) · L · inverse(A): products in tf32, first for triangles of 16 rows, then of 32.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int BLOCK = 256;     // numbers of a block of 16 × 16

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the chunk of 8 bf16 of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
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

// x rounded to the nearest tf32, but for the 13 bits that the tensor cores leave out.
__device__ __forceinline__ unsigned roundTf32(float x)
{
    return __float_as_uint(x) + 0x1000;
}

// Of a block of 16 × 16 a lane holds, in rows lane / 4 and lane / 4 + 8, columns 2 i, 2 i + 1, 8 + 2 i and 9 + 2 i with i = lane % 4.
// It is what it gets of a product; it is as well what it must hold of a left operand and of the transpose of a right one, with the
// inner dimension in the order 0 2 4 6 1 3 5 7. So blocks go from product to product as they are.

// d += a · bᵀ in tf32, 16 × 16 times 16 × 16.
__device__ __forceinline__ void multiplyBlocks(float (&d)[8], const unsigned (&a)[8], const unsigned (&b)[8])
{
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
#pragma unroll
        for (int n = 0; n < 4; n += 2)
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[n]), "+f"(d[n + 1]), "+f"(d[n + 4]), "+f"(d[n + 5])
                : "r"(a[k]), "r"(a[k + 4]), "r"(a[k + 1]), "r"(a[k + 5]), "r"(b[2 * n + k]), "r"(b[2 * n + k + 1]));
    }
}

__device__ __forceinline__ void startProduct(float (&d)[8], const unsigned (&a)[8], const unsigned (&b)[8])
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        d[i] = 0.0f;
    multiplyBlocks(d, a, b);
}

__device__ __forceinline__ void roundBlock(unsigned (&to)[8], const float (&from)[8])
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        to[i] = roundTf32(from[i]);
}

// A lane's numbers of a block in shared memory; `at` is the place of the first four, those of row + 8 lie half a block further.
__device__ __forceinline__ void loadBlock(unsigned (&to)[8], const float *at)
{
    const uint4 upper = *reinterpret_cast<const uint4 *>(at), lower = *reinterpret_cast<const uint4 *>(at + BLOCK / 2);
    to[0] = upper.x, to[1] = upper.y, to[2] = upper.z, to[3] = upper.w;
    to[4] = lower.x, to[5] = lower.y, to[6] = lower.z, to[7] = lower.w;
}

__device__ __forceinline__ void storeBlock(float *at, const float (&x)[8])
{
    *reinterpret_cast<float4 *>(at) = make_float4(x[0], x[1], x[2], x[3]);
    *reinterpret_cast<float4 *>(at + BLOCK / 2) = make_float4(x[4], x[5], x[6], x[7]);
}

__device__ __forceinline__ void storeBlock(float *at, const unsigned (&x)[8])
{
    *reinterpret_cast<uint4 *>(at) = make_uint4(x[0], x[1], x[2], x[3]);
    *reinterpret_cast<uint4 *>(at + BLOCK / 2) = make_uint4(x[4], x[5], x[6], x[7]);
}

// Where row t, column s of a block on the diagonal of -L lies: swizzled for pairs of columns. Even and odd rows of `odd` blocks
// change places, so that two blocks beside each other lie in different banks.
__device__ __forceinline__ int diagonalPlace(int t, int s, int odd)
{
    return (t ^ odd) * 16 + (s / 4 ^ (t & 2)) * 4 + s % 4;
}

// A block of -L on the diagonal becomes the inverse of that of I + L, and the transpose of that, in tf32, goes to `transposed`, the
// chunks of 4 numbers swizzled. By half a warp, a lane a column; the other half has another block.
__device__ __forceinline__ void invertBlock(float *block, float *transposed, int odd)
{
    const int c = threadIdx.x % 16;
    float *const rows[2] = {block + odd * 16, block - odd * 16}; // for even and odd ones
    float column[16];
#pragma unroll
    for (int t = 0; t < 16; ++t)
        column[t] = t == c ? 1.0f : 0.0f;
#pragma unroll
    for (int s = 0; s < 16; s += 4) {
        // Entries s … s+3 become final in the first three rows; the rows after them do not depend on each other.
#pragma unroll
        for (int t = 1; t < 16; ++t) {
            if (t > s) {
                const float4 row = *reinterpret_cast<const float4 *>(rows[t % 2] + diagonalPlace(t, s, 0));
                column[t] += row.x * column[s];
                if (t > s + 1)
                    column[t] += row.y * column[s + 1];
                if (t > s + 2)
                    column[t] += row.z * column[s + 2];
                if (t > s + 3)
                    column[t] += row.w * column[s + 3];
            }
        }
    }
    __syncwarp();
    const int place = c % 8 / 2 * 4 + c / 8 * 2 + c % 2;
#pragma unroll
    for (int t = 0; t < 16; ++t)
        rows[t % 2][t * 16 + place] = column[t];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        *reinterpret_cast<uint4 *>(transposed + c * 16 + (i ^ c / 2 % 4) * 4) =
            make_uint4(roundTf32(column[2 * i]), roundTf32(column[2 * i + 1]), roundTf32(column[8 + 2 * i]),
                       roundTf32(column[9 + 2 * i]));
}

extern "C" __global__ void __launch_bounds__(128, 8)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              __nv_bfloat16 *__restrict__ a, int T, int HQ, int HV)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[C], betas[C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles);
    float *blocks = reinterpret_cast<float *>(tiles + C * D * 2); // of the inverse: (0, 0), (1, 0), (1, 1), (2, 0) …

    const int head = blockIdx.x, chunk = blockIdx.y, thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(blockIdx.z) * T + chunk * C;

    copyKeys(ks, k + (token * HQ + head / (HV / HQ)) * D, size_t(HQ) * D, valid);
    commitCopies();
    if (warp == 0)
        sumGates(sums, betas, g + token * HV + head, beta + token * HV + head, HV, valid);
    waitCopies();
    __syncthreads();

    // A warp computes 16 rows of k · kᵀ.
    float products[8][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned left[4];
        loadMatrices(left, ks + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned right[4];
            loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            multiply(products[2 * n], left, right[0], right[1]);
            multiply(products[2 * n + 1], left, right[2], right[3]);
        }
    }
    __syncwarp(); // keeps the compiler from moving exponentials up among the products, for which the registers would not suffice

    // -L: the blocks on the diagonal go to where their inverses will lie. Only what is below the diagonal will be used.
    const int row = warp * 16 + lane / 4, column = lane % 4 * 2, odd = warp % 2;
    const float upperSum = sums[row], lowerSum = sums[row + 8], upperBeta = -betas[row], lowerBeta = -betas[row + 8];
    {
        float mine[3][2]; // rows 0 … 7, then rows 8 … 15 of both halves
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                mine[0][i] = n == 0 || n == warp ? products[2 * n][i] : mine[0][i];
                mine[1][i] = n == 0 || n == warp ? products[2 * n][i + 2] : mine[1][i];
                mine[2][i] = n == 0 || n == warp ? products[2 * n + 1][i + 2] : mine[2][i];
            }
        }
        float *block = blocks + warp * (warp + 3) / 2 * BLOCK;
        const float2 left = *reinterpret_cast<const float2 *>(sums + warp * 16 + column);
        const float2 right = *reinterpret_cast<const float2 *>(sums + warp * 16 + 8 + column);
        *reinterpret_cast<float2 *>(block + diagonalPlace(lane / 4, column, odd)) =
            make_float2(upperBeta * expf(upperSum - left.x) * mine[0][0], upperBeta * expf(upperSum - left.y) * mine[0][1]);
        *reinterpret_cast<float2 *>(block + diagonalPlace(lane / 4 + 8, column, odd)) =
            make_float2(lowerBeta * expf(lowerSum - left.x) * mine[1][0], lowerBeta * expf(lowerSum - left.y) * mine[1][1]);
        *reinterpret_cast<float2 *>(block + diagonalPlace(lane / 4 + 8, column + 8, odd)) =
            make_float2(lowerBeta * expf(lowerSum - right.x) * mine[2][0], lowerBeta * expf(lowerSum - right.y) * mine[2][1]);
    }
    __syncthreads();

    // Warps 0 and 1 invert them. The transposes wait where blocks (2, 0), (2, 1), (3, 0) and (3, 1) will lie.
    if (warp < 2) {
        const int i = warp * 2 + lane / 16;
        invertBlock(blocks + i * (i + 3) / 2 * BLOCK, blocks + (3 + i + i / 2) * BLOCK, i % 2);
    }
    // The blocks of -L left of the diagonal stay with the warp of their rows, in tf32.
    unsigned system[3][8];
#pragma unroll
    for (int j = 0; j < 3; ++j) {
        if (j < warp) {
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const float2 sum = *reinterpret_cast<const float2 *>(sums + j * 16 + n * 8 + column);
                const float(&product)[4] = products[2 * j + n];
                system[j][2 * n] = roundTf32(upperBeta * expf(upperSum - sum.x) * product[0]);
                system[j][2 * n + 1] = roundTf32(upperBeta * expf(upperSum - sum.y) * product[1]);
                system[j][2 * n + 4] = roundTf32(lowerBeta * expf(lowerSum - sum.x) * product[2]);
                system[j][2 * n + 5] = roundTf32(lowerBeta * expf(lowerSum - sum.y) * product[3]);
            }
        }
    }
    __syncthreads();

    // Places of a lane in blocks of even and odd columns, and in the transposes.
    float *const even = blocks + lane * 4, *const uneven = blocks + (lane * 4 ^ 16);
    const float *const swizzled = blocks + lane / 4 * 16 + (lane % 4 ^ lane / 8) * 4;

    // First (1, 0) = inverse(1, 1) · -L(1, 0) · inverse(0, 0) and (3, 2) likewise, for triangles of 32 rows. The warps of rows 32 … 63
    // multiply their -L(·, 0) and -L(·, 1) by inverse(0, 0) and inverse(1, 1) meanwhile, transposed.
    unsigned own[8];                    // the inverse on the diagonal of this warp's rows
    float first[8];                     // block 0 of its -L · inverse, transposed
    float left[8], right[8], corner[8]; // blocks 0, 1 and, for the last warp, 2 of its rows of the inverse
    if (warp > 0) {
        unsigned factor[8], rounded[8];
        loadBlock(own, (odd ? uneven : even) + warp * (warp + 3) / 2 * BLOCK);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            own[i] = roundTf32(__uint_as_float(own[i]));
        if (warp == 3) {
            float second[8];
            loadBlock(factor, swizzled + 6 * BLOCK);
            startProduct(second, factor, system[2]);
            roundBlock(rounded, second);
            startProduct(corner, own, rounded);
        }
        loadBlock(factor, swizzled + 3 * BLOCK);
        startProduct(first, factor, system[0]);
        if (warp == 1) {
            float block[8];
            roundBlock(rounded, first);
            startProduct(block, own, rounded);
            storeBlock(even + 1 * BLOCK, block);
            startProduct(block, rounded, own);
            roundBlock(rounded, block);
            storeBlock(even + 8 * BLOCK, rounded); // (1, 0) transposed, until (3, 2) comes there
        } else {
            float second[8];
            loadBlock(factor, swizzled + 4 * BLOCK);
            startProduct(second, factor, system[1]);
            roundBlock(rounded, second);
            if (warp == 2)
                storeBlock(uneven + 7 * BLOCK, rounded); // for warp 3
            startProduct(right, own, rounded);
        }
    }
    __syncthreads();

    // Then the triangle of 64 rows out of two of 32: with (1, 0) block 0 of -L · inverse is complete, and rows 32 … 47 are final.
    if (warp >= 2) {
        unsigned factor[8], rounded[8];
        loadBlock(factor, even + 8 * BLOCK);
        multiplyBlocks(first, factor, system[1]);
        roundBlock(rounded, first);
        if (warp == 2)
            storeBlock(even + 6 * BLOCK, rounded); // for warp 3
        startProduct(left, own, rounded);
        if (warp == 2) {
            storeBlock(even + 3 * BLOCK, left);
            storeBlock(uneven + 4 * BLOCK, right);
        }
    }
    __syncthreads();

    // Rows 48 … 63 lack (3, 2) times rows 32 … 47 of -L · inverse.
    if (warp == 3) {
        unsigned factor[8], rounded[8];
        roundBlock(factor, corner);
        loadBlock(rounded, even + 6 * BLOCK);
        multiplyBlocks(left, factor, rounded);
        loadBlock(rounded, uneven + 7 * BLOCK);
        multiplyBlocks(right, factor, rounded);
        storeBlock(even + 6 * BLOCK, left);
        storeBlock(uneven + 7 * BLOCK, right);
        storeBlock(even + 8 * BLOCK, corner);
    }
    __syncthreads();
    // A warp stores a row at a time, a lane two columns; right of the blocks there are zeros.
    const float *pairs = blocks + lane / 8 * BLOCK + (warp ^ lane / 8 % 2) * 16 + lane % 4 * 4 + lane / 4 % 2 * 2;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int t = i * 4 + warp, s = lane * 2, block = i / 4 * (i / 4 + 1) / 2;
        float2 pair = make_float2(0.0f, 0.0f);
        if (lane / 8 <= i / 4)
            pair = *reinterpret_cast<const float2 *>(pairs + block * BLOCK + i % 4 * 64);
        if (t < valid)
            *reinterpret_cast<unsigned *>(a + ((token + t) * HV + head) * C + s) = pack(pair.x, pair.y);
    }
}
