/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = [128]
shared = "64 * 128 * 2 + 64 * 68 * 4 + 1024"
args = ["k", "g", "beta", "a", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L. A block has one chunk of 64 tokens of all heads of a key head:
// they differ in gates and weights alone, and share k · kᵀ, a product of matrices on the tensor cores. Of its blocks of
// 16 × 16 only the ten on and below the diagonal are computed: warps 0 and 1, which also invert the diagonal, have two each
// of the lower left quarter, warps 2 and 3 the three of a triangle each.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in tf32.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 68;      // of rows in single precision: the 8 rows of a left operand lie in different banks

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

// d += left · rightᵀ, 16 × 16, where both are 16 rows of 16 in the order of a left operand.
__device__ __forceinline__ void multiplyRows(float (&d)[2][4], const unsigned (&left)[4], const unsigned (&right)[4])
{
    multiply(d[0], left, right[0], right[2]);
    multiply(d[1], left, right[1], right[3]);
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

// d += a · b, 16 × 8 times 8 × 8, in tf32.
__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The tensor cores cut what tf32 does not have.
__device__ __forceinline__ unsigned toTf32(float x)
{
    return __float_as_uint(x);
}

// A block of 16 × 16 of L from one of k · kᵀ, on the diagonal or below it; by one warp.
template <bool DIAGONAL>
__device__ __forceinline__ void weighBlock(float (*m)[PITCH], const float (&products)[2][4], const float *sum,
                                           const float *factor, int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int t = row + j / 2 * 8 + g, s = column + n * 8 + c * 2 + j % 2;
            const bool below = !DIAGONAL || n < j / 2 || (n == j / 2 && c * 2 + j % 2 < g); // s < t
            const float entry = factor[t] * expf(sum[t] - sum[s]) * products[n][j];
            m[t][s] = below ? entry : 0.0f;
        }
    }
}

// Inverts the blocks of 16 × 16 on the diagonal, a thread for each column; by two warps.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 entries = *reinterpret_cast<const float4 *>(&m[first + i][first + k]);
            sum -= entries.x * x[k];
            sum -= k + 1 < i ? entries.y * x[k + 1] : 0.0f;
            sum -= k + 2 < i ? entries.z * x[k + 2] : 0.0f;
            sum -= k + 3 < i ? entries.w * x[k + 3] : 0.0f;
        }
        x[i] = sum;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        m[first + i][first + column] = x[i];
}

// 16 × 16 of -C⁻¹ B A⁻¹, where A and C are SIZE × SIZE, A begins at `first`, and both are inverted already: the rows from
// `row` of C on, the columns from `column` of A on. By one warp.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], const float (*m)[PITCH], int first, int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, second = first + SIZE;
    float product[SIZE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k >= row + 16)
            continue; // C⁻¹ is zero there
        const float *left = &m[second + row + g][second + k + c];
        const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]), toTf32(left[8 * PITCH + 4])};
#pragma unroll
        for (int n = 0; n < SIZE; n += 8)
            multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                         toTf32(m[second + k + c + 4][first + n + g]));
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k < column)
            continue; // A⁻¹ is zero there
        // Columns 2c and 2c + 1 of the product are taken for numbers c and c + 4 of the sum, on both sides.
        const float(&d)[4] = product[k / 8];
        const unsigned a[4] = {toTf32(-d[0]), toTf32(-d[2]), toTf32(-d[1]), toTf32(-d[3])};
#pragma unroll
        for (int n = 0; n < 16; n += 8)
            multiplyTf32(to[n / 8], a, toTf32(m[first + k + 2 * c][first + column + n + g]),
                         toTf32(m[first + k + 2 * c + 1][first + column + n + g]));
    }
}

__device__ __forceinline__ void storeBlock(float (*m)[PITCH], const float (&from)[2][4], int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            m[row + g + i / 2 * 8][column + n * 8 + 2 * c + i % 2] = from[n][i];
    }
}

extern "C" __global__ void __launch_bounds__(128)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              __nv_bfloat16 *__restrict__ a, int T, int HV)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][C], betas[4][C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles);
    float(*system)[PITCH] = reinterpret_cast<float(*)[PITCH]>(tiles + C * D * 2);

    const int keyHead = blockIdx.x, keyHeads = gridDim.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / keyHeads; // heads of a key head
    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;

    copyKeys(ks, k + (token * keyHeads + keyHead) * D, size_t(keyHeads) * D, valid);
    commitCopies();

    // The blocks above the diagonal: zero for every head, as nothing else is written there.
    for (int i = thread; i < (C - 16) * 16; i += 128) {
        const int row = i / 16, column = i % 16 * 4;
        if (column / 16 > row / 16)
            *reinterpret_cast<float4 *>(&system[row][column]) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }

    // A warp for each of the next four heads.
    const auto sumNext = [&](int i) {
        const size_t at = token * HV + keyHead * ratio + i + warp;
        if (i + warp < ratio)
            sumGates(sums[warp], betas[warp], g + at, beta + at, HV, valid);
    };
    sumNext(0);
    waitCopies();
    __syncthreads();

    // This warp's blocks of k · kᵀ: those of 16 rows from `low` on and columns 0 and 16, or those of the triangle from
    // row and column `corner` on. The same registers serve as left and as right operand.
    const int low = 32 + warp * 16, corner = (warp - 2) * 32;
    float products[3][2][4] = {};
    const auto loadRows = [&](unsigned(&to)[4], int row, int step) {
        loadMatrices(to, ks + place(row + lane % 16, 2 * step + lane / 16));
    };
    if (warp < 2) {
#pragma unroll
        for (int step = 0; step < 8; ++step) {
            unsigned left[4], right[2][4];
            loadRows(left, low, step);
            loadRows(right[0], 0, step);
            loadRows(right[1], 16, step);
            multiplyRows(products[0], left, right[0]);
            multiplyRows(products[1], left, right[1]);
        }
    } else {
#pragma unroll
        for (int step = 0; step < 8; ++step) {
            unsigned upper[4], lower[4];
            loadRows(upper, corner, step);
            loadRows(lower, corner + 16, step);
            multiplyRows(products[0], upper, upper);
            multiplyRows(products[1], lower, upper);
            multiplyRows(products[2], lower, lower);
        }
    }

    for (int i = 0; i < ratio; ++i) {
        const int head = keyHead * ratio + i;
        if (i > 0 && i % 4 == 0) {
            sumNext(i);
            __syncthreads();
        }

        const float *sum = sums[i % 4], *factor = betas[i % 4];
        if (warp < 2) {
            weighBlock<false>(system, products[0], sum, factor, low, 0);
            weighBlock<false>(system, products[1], sum, factor, low, 16);
        } else {
            weighBlock<true>(system, products[0], sum, factor, corner, corner);
            weighBlock<false>(system, products[1], sum, factor, corner + 16, corner);
            weighBlock<true>(system, products[2], sum, factor, corner + 16, corner + 16);
        }
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(system);
            __syncwarp();
            float block[2][4] = {}; // this warp's two blocks become one
            mergeBlocks<16>(block, system, warp * 32, 0, 0);
            __syncwarp();
            storeBlock(system, block, warp * 32 + 16, warp * 32);
        }
        __syncthreads();
        float block[2][4] = {};
        mergeBlocks<32>(block, system, 0, warp / 2 * 16, warp % 2 * 16);
        __syncthreads(); // all have read what is replaced now
        storeBlock(system, block, 32 + warp / 2 * 16, warp % 2 * 16);
        __syncthreads();

        for (int j = thread; j < valid * C / 2; j += 128) {
            const int t = j / (C / 2), s = j % (C / 2) * 2;
            *reinterpret_cast<unsigned *>(a + ((token + t) * HV + head) * C + s) = pack(system[t][s], system[t][s + 1]);
        }
        __syncthreads(); // before the next head takes the room
    }
}
