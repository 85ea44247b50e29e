/*klineage
surface = "cuda"

[[tunable]]
name = "BLOCKS"
default = 8
values = [4, 6, 8]

[[tensormap]]
name = "tm_a"
tensor = "a"
dims = ["B", "T", "HV * 64"]
strides = ["T * HV * 64", "HV * 64"]
box = [1, 64, 64]
swizzle = "128B"

[[launch]]
kernel = "kkt_solve"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = [128]
shared = "64 * 128 * 2 + 1024"
args = ["k", "g", "beta", "tm_a", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L. A block has one chunk of 64 tokens of all heads of a key head:
// they differ in gates and weights alone, and share k · kᵀ, a product of matrices on the tensor cores.
// What lies above the diagonal is neither computed nor read, and the blocks on and below it are dealt out evenly among the warps.
//
// A decay between two blocks of 16 tokens is the product of two factors from a table, to the later block's first token and from there,
// neither above 1; within a block it is a power of two, the weight being part of the exponent.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in half precision: a key of unit length corrects by no more than what is there, so all entries lie within ±1,
// where f16 has as many bits as tf32, takes half the room and half the instructions, and comes by ldmatrix.
//
// The matrices take the room of the keys, which are done with by then, and a thread has 64 registers: eight blocks fit a
// multiprocessor, so that 1024 of them (4096 tokens, 16 key heads) run at once on 132.
//
// An inverse leaves by the copy engine, while the next head's begins; the zeros above the diagonal blocks are written once.
// Needs D == 128.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 20;      // of rows of the blocks on the diagonal, in single precision
constexpr int BLOCK_PITCH = 16 * PITCH + 16;

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

// 2^x, 0 for -inf.
__device__ __forceinline__ float powerOfTwo(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The binary logarithm, -inf for 0.
__device__ __forceinline__ float binaryLog(float x)
{
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The decays of a head's chunk. With p the first token of t's block of 16, and G in binary logarithms:
struct alignas(16) Decays {
    float since[C];    // G[t] - G[p]
    float weighted[C]; // G[t] - G[p] + log2(beta[t])
    float from[C];     // beta[t] 2^(G[t] - G[p])
    float to[96];      // 2^(G[p] - G[s]) of the tokens s before p, for p = 16, 32 and 48
};

// Where the decays to the first token of a block begin in `to`.
__device__ __forceinline__ int decaysTo(int block)
{
    return 8 * block * (block - 1);
}

// The decays of a chunk, from its log gates and weights; by one warp. Tokens after the last one neither decay nor correct.
__device__ __forceinline__ void sumGates(Decays &decays, const float *g, const float *beta, size_t pitch, int valid)
{
    constexpr float LOG2_E = 1.4426950408889634f;
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float even = t < valid ? g[t * pitch] * LOG2_E : 0.0f, odd = t + 1 < valid ? g[(t + 1) * pitch] * LOG2_E : 0.0f;
    const float evenBeta = t < valid ? beta[t * pitch] : 0.0f, oddBeta = t + 1 < valid ? beta[(t + 1) * pitch] : 0.0f;
    float sum = even + odd;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float evenSum = sum - odd;
    const float first = __shfl_sync(~0u, evenSum, lane / 8 * 8); // of the block's first token
    const float evenSince = evenSum - first, oddSince = sum - first;
    *reinterpret_cast<float2 *>(decays.since + t) = make_float2(evenSince, oddSince);
    *reinterpret_cast<float2 *>(decays.weighted + t) = make_float2(evenSince + binaryLog(evenBeta), oddSince + binaryLog(oddBeta));
    *reinterpret_cast<float2 *>(decays.from + t) = make_float2(evenBeta * powerOfTwo(evenSince), oddBeta * powerOfTwo(oddSince));
#pragma unroll
    for (int block = 1; block < 4; ++block) {
        const float later = __shfl_sync(~0u, evenSum, block * 8);
        if (lane < block * 8)
            *reinterpret_cast<float2 *>(decays.to + decaysTo(block) + t) = make_float2(powerOfTwo(later - evenSum), powerOfTwo(later - sum));
    }
}

__device__ __forceinline__ unsigned packHalf(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// d += a · b, 16 × 16 times 16 × 8, in half precision.
__device__ __forceinline__ void multiplyHalf(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same number, which the compiler does not know for the same: what follows from it is worked out where it is used, not kept.
__device__ __forceinline__ int again(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

// Where things lie in blocks of a tile with 128 swizzled bytes a row, which begin at multiples of 16 rows and 8 columns; from a number
// that depends on the lane alone. For ldmatrix, the row that a lane names;
__device__ __forceinline__ unsigned named(int lane)
{
    return lane % 16 * 128 + (lane / 16 ^ lane % 8) * 16;
}

// and the two numbers of the upper 8 rows that a lane has of a product.
__device__ __forceinline__ unsigned held(int lane)
{
    return lane / 4 * 144 + lane % 4 * 4;
}

__device__ __forceinline__ unsigned inBlock(unsigned ofLane, int row, int column)
{
    return row * 128 + (ofLane ^ column * 2);
}

// Inverts the blocks of 16 × 16 on the diagonal, a thread for each column, into both tiles; by two warps.
__device__ __forceinline__ void invertDiagonal(const float *diagonal, unsigned char *entries, unsigned char *result, int thread)
{
    const int block = thread / 16, column = thread % 16;
    const float *m = diagonal + block * BLOCK_PITCH;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 row = *reinterpret_cast<const float4 *>(m + i * PITCH + k);
            sum -= row.x * x[k];
            sum -= k + 1 < i ? row.y * x[k + 1] : 0.0f;
            sum -= k + 2 < i ? row.z * x[k + 2] : 0.0f;
            sum -= k + 3 < i ? row.w * x[k + 3] : 0.0f;
        }
        x[i] = sum;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const unsigned at = block * 2048 + i * 128 + ((block * 32 + column * 2) ^ i % 8 * 16);
        *reinterpret_cast<__half *>(entries + at) = __float2half_rn(x[i]);
        *reinterpret_cast<__nv_bfloat16 *>(result + at) = __float2bfloat16_rn(x[i]);
    }
}

// 16 × 16 of -C⁻¹ B A⁻¹, where A and C are SIZE × SIZE, A begins at `first`, and both are inverted already: the rows from
// `row` of C on, the columns from `column` of A on. By one warp.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], unsigned entries, int first, int row, int column, int lane)
{
    const int second = first + SIZE;
    const unsigned at = named(lane);
    float product[SIZE / 16][2][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 16) {
        if (k > row)
            continue; // C⁻¹ is zero there
        unsigned left[4];
        loadMatrices(left, entries + inBlock(at, second + row, second + k));
#pragma unroll
        for (int n = 0; n < SIZE; n += 16) {
            unsigned right[4];
            loadMatricesTransposed(right, entries + inBlock(at, second + k, first + n));
            multiplyHalf(product[n / 16][0], left, right[0], right[1]);
            multiplyHalf(product[n / 16][1], left, right[2], right[3]);
        }
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 16) {
        if (k < column)
            continue; // A⁻¹ is zero there
        const float(&d)[2][4] = product[k / 16];
        const unsigned left[4] = {packHalf(-d[0][0], -d[0][1]), packHalf(-d[0][2], -d[0][3]),
                                  packHalf(-d[1][0], -d[1][1]), packHalf(-d[1][2], -d[1][3])};
        unsigned right[4];
        loadMatricesTransposed(right, entries + inBlock(at, first + k, first + column));
        multiplyHalf(to[0], left, right[0], right[1]);
        multiplyHalf(to[1], left, right[2], right[3]);
    }
}

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Starts the copy of 64 rows of 64 numbers from shared memory, rows after the last one left out.
__device__ __forceinline__ void storeBox(const TensorMap &map, int column, int row, int outer, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(&map), "r"(column), "r"(row), "r"(outer), "r"(from) : "memory");
}

// Waits until the copy engine has read what this thread told it to store.
__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Makes this thread's writes to shared memory visible to the copy engine.
__device__ __forceinline__ void fenceAsyncProxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
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

extern "C" __global__ void __launch_bounds__(128, BLOCKS)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              const __grid_constant__ TensorMap mapA, int T, int HV)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float diagonal[4 * BLOCK_PITCH];
    __shared__ Decays decays[4];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles);
    unsigned char *entries = tiles, *result = tiles + C * C * 2; // f16, and bf16: in place of k, when k is done with

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
            sumGates(decays[warp], g + at, beta + at, HV, valid);
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
    __syncthreads(); // the keys become room for matrices
    // The blocks above the diagonal: 16 rows at a time, the chunks after their block on the diagonal.
#pragma unroll
    for (int row = 0; row < 48; row += 16)
        if (thread % 8 / 2 > row / 16)
            *reinterpret_cast<uint4 *>(result + place(row + thread / 8, thread % 8)) = make_uint4(0, 0, 0, 0);

    for (int i = 0; i < ratio; ++i) {
        const int head = keyHead * ratio + i;
        const int thread = again(threadIdx.x), lane = thread % 32;
        if (i > 0 && i % 4 == 0) {
            sumNext(i);
            __syncthreads();
        }

        const Decays &decay = decays[i % 4];
#pragma unroll
        for (int b = 0; b < 3; ++b) {
            if (b >= blocksOf(warp))
                continue;
            const int row = rowOf(warp, b), column = columnOf(warp, b);
            const int firstRow = row * 16 + lane / 4, firstColumn = column * 16 + lane % 4 * 2; // of this lane
            if (row == column) { // what is above the diagonal is never read
                const float exponents[2] = {decay.weighted[firstRow], decay.weighted[firstRow + 8]};
                const float2 since[2] = {*reinterpret_cast<const float2 *>(decay.since + firstColumn),
                                         *reinterpret_cast<const float2 *>(decay.since + firstColumn + 8)};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int half = j % 2;
                    const float *d = products[b][j / 2] + 2 * half;
                    *reinterpret_cast<float2 *>(diagonal + row * BLOCK_PITCH + (half * 8 + lane / 4) * PITCH + j / 2 * 8 + lane % 4 * 2) =
                        make_float2(powerOfTwo(exponents[half] - since[j / 2].x) * d[0], powerOfTwo(exponents[half] - since[j / 2].y) * d[1]);
                }
            } else {
                const float *before = decay.to + decaysTo(row) + firstColumn;
                const float from[2] = {decay.from[firstRow], decay.from[firstRow + 8]};
                const float2 to[2] = {*reinterpret_cast<const float2 *>(before), *reinterpret_cast<const float2 *>(before + 8)};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int half = j % 2;
                    const float *d = products[b][j / 2] + 2 * half;
                    *reinterpret_cast<unsigned *>(entries + inBlock(held(lane), row * 16 + half * 8, column * 16 + j / 2 * 8)) =
                        packHalf(from[half] * to[j / 2].x * d[0], from[half] * to[j / 2].y * d[1]);
                }
            }
        }
        if (thread == 0)
            waitStoresRead();
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(diagonal, entries, result, thread);
            __syncwarp();
            float block[2][4] = {}; // this warp's two blocks become one
            mergeBlocks<16>(block, sharedAddress(entries), warp * 32, 0, 0, lane);
            __syncwarp();
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float *d = block[j / 2] + j % 2 * 2;
                const unsigned at = inBlock(held(lane), warp * 32 + 16 + j % 2 * 8, warp * 32 + j / 2 * 8);
                *reinterpret_cast<unsigned *>(entries + at) = packHalf(d[0], d[1]);
                *reinterpret_cast<unsigned *>(result + at) = pack(d[0], d[1]);
            }
        }
        __syncthreads();

        float block[2][4] = {};
        mergeBlocks<32>(block, sharedAddress(entries), 0, warp / 2 * 16, warp % 2 * 16, lane);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float *d = block[j / 2] + j % 2 * 2;
            const unsigned at = inBlock(held(lane), 32 + warp / 2 * 16 + j % 2 * 8, warp % 2 * 16 + j / 2 * 8);
            *reinterpret_cast<unsigned *>(result + at) = pack(d[0], d[1]);
        }
        fenceAsyncProxy();
        __syncthreads();
        if (thread == 0)
            storeBox(mapA, head * C, chunk * C, batch, sharedAddress(result));
    }
    if (thread == 0)
        waitStoresRead(); // shared memory goes away with the block
}
