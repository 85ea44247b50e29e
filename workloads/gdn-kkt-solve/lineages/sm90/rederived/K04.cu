/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = [256]
shared = "min(3, ceil_div(HV, HQ)) * 64 * 68 * 4 + 1024"
args = ["k", "g", "beta", "a", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L. A block has one chunk of 64 tokens of one key head, and all value
// heads that use it. k · kᵀ is a product of matrices on the tensor cores, computed once and kept in registers, two warps 16 rows of it.
// The systems of up to 3 heads at a time are written from it, where the keys were, and inverted side by side.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in tf32.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 68;      // of rows in single precision: the 8 rows of a left operand lie in different banks
constexpr int HEADS = 3;       // value heads at a time
constexpr int WARPS = 8, THREADS = WARPS * 32;
static_assert(2 * HEADS <= WARPS, "a warp inverts at most one half of a diagonal");
static_assert(C * PITCH * 4 >= C * D * 2, "the keys fit where the first system will lie");

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

// 64 keys to shared memory, zeros after `valid` rows; by all threads.
__device__ __forceinline__ void copyKeys(unsigned to, const __nv_bfloat16 *from, size_t pitch, int valid)
{
    for (int i = threadIdx.x; i < C * 16; i += THREADS) {
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

// Waits for the four warps of a group, 0 or 1.
__device__ __forceinline__ void syncGroup(int group)
{
    asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
}

// Inverts two blocks of 16 × 16 on the diagonal, from row `begin` on, a thread for each column; by one warp.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH], int begin)
{
    const int first = begin + threadIdx.x % 32 / 16 * 16, column = threadIdx.x % 16;
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

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              __nv_bfloat16 *__restrict__ a, int T, int HQ, int HV)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[HEADS][C], betas[HEADS][C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles);
    // In the place of the keys, once their products are known.
    float(*systems)[C][PITCH] = reinterpret_cast<float(*)[C][PITCH]>(tiles);

    const int keyHead = blockIdx.x, chunk = blockIdx.y, thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int sharing = HV / HQ; // heads with these keys
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(blockIdx.z) * T + chunk * C;

    copyKeys(ks, k + (token * HQ + keyHead) * D, size_t(HQ) * D, valid);
    commitCopies();
    if (warp < min(HEADS, sharing)) {
        const size_t from = token * HV + keyHead * sharing + warp;
        sumGates(sums[warp], betas[warp], g + from, beta + from, HV, valid);
    }
    waitCopies();
    __syncthreads();

    // Two warps compute 16 rows of k · kᵀ, in turns 16 columns of it.
    float products[4][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned left[4];
        loadMatrices(left, ks + place(warp / 2 * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            unsigned right[4];
            loadMatrices(right, ks + place(n * 32 + warp % 2 * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            multiply(products[2 * n], left, right[0], right[1]);
            multiply(products[2 * n + 1], left, right[2], right[3]);
        }
    }

#pragma unroll 1
    for (int done = 0; done < sharing; done += HEADS) {
        const int head = keyHead * sharing + done, heads = min(HEADS, sharing - done);
        if (done > 0 && warp < heads) {
            const size_t from = token * HV + head + warp;
            sumGates(sums[warp], betas[warp], g + from, beta + from, HV, valid);
        }
        __syncthreads(); // all have read the keys, or the inverses of the heads before, and the sums are there

#pragma unroll 1
        for (int h = 0; h < heads; ++h) {
            float(*system)[PITCH] = systems[h];
#pragma unroll
            for (int n = 0; n < 4; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int t = warp / 2 * 16 + i / 2 * 8 + lane / 4;
                    const int s = n / 2 * 32 + warp % 2 * 16 + n % 2 * 8 + lane % 4 * 2 + i % 2;
                    system[t][s] = s < t ? betas[h][t] * expf(sums[h][t] - sums[h][s]) * products[n][i] : 0.0f;
                }
            }
        }
        __syncthreads();

        if (warp < 2 * heads) { // two warps a head
            float(*system)[PITCH] = systems[warp / 2];
            const int begin = warp % 2 * 32;
            invertDiagonal(system, begin);
            __syncwarp();
            float block[2][4] = {}; // this warp's two blocks become one
            mergeBlocks<16>(block, system, begin, 0, 0);
            __syncwarp();
            storeBlock(system, block, begin + 16, begin);
        }
        __syncthreads();

#pragma unroll 1
        for (int h = warp / 4; h < heads; h += WARPS / 4) { // four warps a head
            float(*system)[PITCH] = systems[h];
            const int row = warp % 4 / 2 * 16, column = warp % 2 * 16;
            float block[2][4] = {};
            mergeBlocks<32>(block, system, 0, row, column);
            syncGroup(warp / 4); // the head's warps have read what is replaced now
            storeBlock(system, block, 32 + row, column);
        }
        __syncthreads();

#pragma unroll 1
        for (int h = 0; h < heads; ++h) {
            float(*system)[PITCH] = systems[h];
            for (int i = thread; i < valid * C / 2; i += THREADS) {
                const int t = i / (C / 2), s = i % (C / 2) * 2;
                *reinterpret_cast<unsigned *>(a + ((token + t) * HV + head + h) * C + s) = pack(system[t][s], system[t][s + 1]);
            }
        }
    }
}
