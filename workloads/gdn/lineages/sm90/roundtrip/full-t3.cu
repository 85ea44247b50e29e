/*klineage
surface = "cuda"

[[workspace]]
name = "tiles"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", "8448"]
init = "poison"

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_out"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "prepare_chunks"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "33792"
args = ["tm_q", "tm_k", "g", "beta", "tiles", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "walk_chunks"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_out", "tiles", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule from chunk to chunk of 64 steps. With G the running sums of a chunk's log gates and S the state
// before it:
//   (I + L) U = diag(b) (V - diag(exp G) K S),   L[t][s] = b[t] exp(G[t] - G[s]) k[t] . k[s]  for s < t
//   out[t]    = scale (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S         = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T
// The first launch prepares (I + L)^-1 diag(b), the scores and the decays of all chunks; the second walks the chunks.

#include <cuda_bf16.h>

constexpr int CHUNK = 64;
constexpr int TILE_ELEMENTS = 8448;        // of a chunk and head in the workspace: solution, scores, 128 floats
constexpr unsigned TILE_BYTES = 2 * TILE_ELEMENTS;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// ---------------------------------------------------------------------------------------------- copies and barriers

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// A box of 64 steps of one head, from column `column` on.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int step, int batch,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(step), "r"(batch), "r"(barrier) : "memory");
}

__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap &map, int column, int head, int step, int batch, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(&map), "r"(column), "r"(head), "r"(step), "r"(batch), "r"(from) : "memory");
}

// Where the 128-byte swizzle keeps a 16-byte chunk of a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// --------------------------------------------------------------------------------------------------------- products

__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// d += a * b, 16 x 16 times 16 x 8.
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

// Rows of 128 swizzled bytes, 1024 bytes from one group of 8 rows to the next; where they begin is added, in units of 16
// bytes. A right operand whose rows are the columns of the result;
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
// and one whose rows are summed over, 8192 bytes from 64 columns to the next 64.
constexpr unsigned long long ACROSS = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a * b^T, or d += it; 64 x 16 times 16 x 64, in the background, by a whole warpgroup.
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b,
                                              int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
        "}"
        : SUMS32(0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d += a * b, 64 x 16 times 16 x 128.
__device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(0), SUMS32(32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

// Keeps the compiler from moving anything that it does with these registers across this point.
template <int COUNT> __device__ __forceinline__ void hold(float (&r)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(r[i]) :: "memory");
}

template <int COUNT> __device__ __forceinline__ void hold(unsigned (&r)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        asm volatile("" : "+r"(r[i / 4][i % 4]) :: "memory");
}

// Results of products as left operands of the next.
template <int COUNT>
__device__ __forceinline__ void packOperands(unsigned (&to)[COUNT][4], const float (&from)[8 * COUNT])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// --------------------------------------------------------------------------------------- inverse of a triangular matrix

constexpr int PITCH = 68; // of rows in single precision: the 8 rows of a left operand lie in different banks

__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned toTf32(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// Inverts the blocks of 16 x 16 on the diagonal (ones on it are implied), a thread for each column; by warps 0 and 1.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
    for (int k = 0; k < 16; k += 2) {
        float2 two[16];
#pragma unroll
        for (int i = k + 1; i < 16; ++i)
            two[i] = *reinterpret_cast<const float2 *>(&m[first + i][first + k]);
#pragma unroll
        for (int i = k + 1; i < 16; ++i)
            x[i] -= two[i].x * x[k];
#pragma unroll
        for (int i = k + 2; i < 16; ++i)
            x[i] -= two[i].y * x[k + 1];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        m[first + i][first + column] = x[i];
}

// 16 x 16 of -C^-1 B A^-1, where A and C are SIZE x SIZE, A begins at `first`, and both are inverted already: the rows
// from `row` of C on, the columns from `column` of A on. What is above the diagonal is not read. By one warp.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], const float (*m)[PITCH], int first, int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, second = first + SIZE;
    float product[SIZE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k < row + 16) {
            const float *left = &m[second + row + g][second + k + c];
            const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]),
                                   toTf32(left[8 * PITCH + 4])};
#pragma unroll
            for (int n = 0; n < SIZE; n += 8) {
                if (n >= column)
                    multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                                 toTf32(m[second + k + c + 4][first + n + g]));
            }
        }
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k >= column) {
            // Columns 2c and 2c + 1 of the product are taken for numbers c and c + 4 of the sum, on both sides.
            const float(&d)[4] = product[k / 8];
            const unsigned a[4] = {toTf32(-d[0]), toTf32(-d[2]), toTf32(-d[1]), toTf32(-d[3])};
#pragma unroll
            for (int n = 0; n < 16; n += 8)
                multiplyTf32(to[n / 8], a, toTf32(m[first + k + 2 * c][first + column + n + g]),
                             toTf32(m[first + k + 2 * c + 1][first + column + n + g]));
        }
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

// ----------------------------------------------------------------------------------------------------- the first launch

constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float exponential2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// A block prepares one chunk of all value heads that share a head of queries and keys.
extern "C" __global__ void __launch_bounds__(128, 4)
prepare_chunks(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const float *gates,
               const float *betas, __nv_bfloat16 *tiles, int T, int HQ, int HV, float scale)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(16) float sums[4][CHUNK];  // running sums of the log gates, for powers of two
    __shared__ alignas(16) float rates[4][CHUNK]; // beta
    __shared__ alignas(8) unsigned long long barrierWord;

    const unsigned room = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    unsigned char *roomPointer = dynamicShared + (room - sharedAddress(dynamicShared));
    const unsigned tileK = room, tileQ = room + 16384;
    float (*m)[PITCH] = reinterpret_cast<float (*)[PITCH]>(roomPointer); // takes the place of the tiles
    unsigned char *staged = roomPointer + CHUNK * PITCH * 4;             // and so do the scores, 8192 bytes

    const int group = blockIdx.x, chunk = blockIdx.y, batch = blockIdx.z, chunks = gridDim.y;
    const int ratio = HV / HQ;
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int g = lane / 4, c = lane % 4;
    const unsigned barrier = sharedAddress(&barrierWord);

    if (threadIdx.x == 0) {
        initBarrier(barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expectBytes(barrier, 32768);
        copyBox(tileK, mapK, 0, group, chunk * CHUNK, batch, barrier);
        copyBox(tileK + 8192, mapK, 64, group, chunk * CHUNK, batch, barrier);
        copyBox(tileQ, mapQ, 0, group, chunk * CHUNK, batch, barrier);
        copyBox(tileQ + 8192, mapQ, 64, group, chunk * CHUNK, batch, barrier);
    }
    __syncthreads();

    // Row `warp` of the 4 x 4 blocks of K K^T, and row 3 - warp of those of Q K^T, up to the diagonal.
    float blocks[5][2][4] = {};

#pragma unroll 1
    for (int i = 0; i < ratio; ++i) {
        const int head = group * ratio + i;
        __nv_bfloat16 *tile = tiles + ((size_t(batch) * HV + head) * chunks + chunk) * TILE_ELEMENTS;

        if (i % 4 == 0) {
            if (i + warp < ratio) {
                const int own = head + warp, valid = T - chunk * CHUNK;
                const size_t at = (size_t(batch) * T + chunk * CHUNK + 2 * lane) * HV + own;
                float even = 0.0f, odd = 0.0f, evenRate = 0.0f, oddRate = 0.0f;
                if (2 * lane < valid) {
                    even = gates[at];
                    evenRate = betas[at];
                }
                if (2 * lane + 1 < valid) {
                    odd = gates[at + HV];
                    oddRate = betas[at + HV];
                }
                float sum = even + odd;
#pragma unroll
                for (int step = 1; step < 32; step *= 2) {
                    const float other = __shfl_up_sync(~0u, sum, step);
                    sum += lane >= step ? other : 0.0f;
                }
                const float preceding = __shfl_up_sync(~0u, sum, 1);
                const float before = (lane == 0 ? 0.0f : preceding) + even, after = before + odd;
                const float last = __shfl_sync(~0u, after, 31);
                *reinterpret_cast<float2 *>(&sums[warp][2 * lane]) = make_float2(before * LOG2E, after * LOG2E);
                *reinterpret_cast<float2 *>(&rates[warp][2 * lane]) = make_float2(evenRate, oddRate);
                float *factors = reinterpret_cast<float *>(
                    tiles + ((size_t(batch) * HV + own) * chunks + chunk) * TILE_ELEMENTS + 8192);
                *reinterpret_cast<float2 *>(factors + 2 * lane) = make_float2(expf(before), expf(after));
                *reinterpret_cast<float2 *>(factors + CHUNK + 2 * lane) =
                    make_float2(expf(last - before), expf(last - after));
            }
            if (i == 0)
                waitPhase(barrier, 0);
            __syncthreads();
        }

        if (i == 0) {
#pragma unroll 1
            for (int half = 0; half < 2; ++half) {
                const unsigned ks = tileK + half * 8192, qs = tileQ + half * 8192;
#pragma unroll
                for (int step = 0; step < 4; ++step) {
                    unsigned left[4], other[4], right[4];
                    loadMatrices(left, ks + place(warp * 16 + lane % 16, 2 * step + lane / 16));
                    loadMatrices(other, qs + place((3 - warp) * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
                    for (int b = 0; b < 5; ++b) {
                        const int n = b <= warp ? b : b - warp - 1;
                        loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
                        if (b <= warp) {
                            multiply(blocks[b][0], left, right[0], right[1]);
                            multiply(blocks[b][1], left, right[2], right[3]);
                        } else {
                            multiply(blocks[b][0], other, right[0], right[1]);
                            multiply(blocks[b][1], other, right[2], right[3]);
                        }
                    }
                }
            }
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                const float factor = b <= warp ? 1.0f : scale;
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    blocks[b][j / 4][j % 4] *= factor;
            }
            __syncthreads(); // the tiles become room for results

            // Above the diagonal, scores are zero, for all heads of the group.
#pragma unroll
            for (int part = 0; part < 4; ++part) {
                const int row = threadIdx.x / 8 + 16 * part, box = threadIdx.x % 8;
                if (box / 2 > part)
                    *reinterpret_cast<uint4 *>(staged + place(row, box)) = make_uint4(0, 0, 0, 0);
            }
        }

        const float *sum = sums[i % 4], *rate = rates[i % 4];
#pragma unroll
        for (int b = 0; b < 5; ++b) {
            const bool ofFirst = b <= warp;
            const int n = ofFirst ? b : b - warp - 1;
            const int row = (ofFirst ? warp : 3 - warp) * 16 + g;
            const float upper = sum[row], lower = sum[row + 8];
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                const int column = n * 16 + side * 8 + 2 * c;
                const float2 from = *reinterpret_cast<const float2 *>(sum + column);
                const float(&d)[4] = blocks[b][side];
                const float v0 = exponential2(upper - from.x) * d[0], v1 = exponential2(upper - from.y) * d[1];
                const float v2 = exponential2(lower - from.x) * d[2], v3 = exponential2(lower - from.y) * d[3];
                if (ofFirst) {
                    const float r0 = rate[row], r1 = rate[row + 8];
                    *reinterpret_cast<float2 *>(&m[row][column]) =
                        make_float2(column < row ? r0 * v0 : 0.0f, column + 1 < row ? r0 * v1 : 0.0f);
                    *reinterpret_cast<float2 *>(&m[row + 8][column]) =
                        make_float2(column < row + 8 ? r1 * v2 : 0.0f, column + 1 < row + 8 ? r1 * v3 : 0.0f);
                } else {
                    unsigned char *to = staged + place(row, n * 2 + side) + 4 * c;
                    *reinterpret_cast<unsigned *>(to) =
                        pack(column <= row ? v0 : 0.0f, column + 1 <= row ? v1 : 0.0f);
                    *reinterpret_cast<unsigned *>(to + 1024) =
                        pack(column <= row + 8 ? v2 : 0.0f, column + 1 <= row + 8 ? v3 : 0.0f);
                }
            }
        }
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(m);
            __syncwarp();
            float block[2][4] = {};
            mergeBlocks<16>(block, m, warp * 32, 0, 0);
            __syncwarp();
            storeBlock(m, block, warp * 32 + 16, warp * 32);
        } else {
            uint4 *to = reinterpret_cast<uint4 *>(tile + 4096);
            const uint4 *from = reinterpret_cast<const uint4 *>(staged);
#pragma unroll
            for (int part = 0; part < 8; ++part) {
                const int j = threadIdx.x - 64 + 64 * part;
                to[j] = from[j]; // swizzled as they are
            }
        }
        __syncthreads();

        {
            // The lower left quarter of the inverse goes to the upper right one, which nothing reads.
            float block[2][4] = {};
            mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16);
            storeBlock(m, block, warp / 2 * 16, 32 + warp % 2 * 16);
        }
        __syncthreads();

        {
            const int box = threadIdx.x % 8;
            const float4 low = *reinterpret_cast<const float4 *>(rate + 8 * box);
            const float4 high = *reinterpret_cast<const float4 *>(rate + 8 * box + 4);
#pragma unroll
            for (int part = 0; part < 4; ++part) {
                const int row = threadIdx.x / 8 + 16 * part;
                uint4 packed = make_uint4(0, 0, 0, 0);
                if (box / 2 <= part) {
                    const float *from = part >= 2 && box < 4 ? &m[row - 32][32 + 8 * box] : &m[row][8 * box];
                    const float4 x = *reinterpret_cast<const float4 *>(from);
                    const float4 y = *reinterpret_cast<const float4 *>(from + 4);
                    packed = make_uint4(pack(x.x * low.x, x.y * low.y), pack(x.z * low.z, x.w * low.w),
                                        pack(y.x * high.x, y.y * high.y), pack(y.z * high.z, y.w * high.w));
                }
                *reinterpret_cast<uint4 *>(tile + row * 64 + (box ^ (row % 8)) * 8) = packed;
            }
        }
        __syncthreads(); // before the next head takes the room
    }
}

// ---------------------------------------------------------------------------------------------------- the second launch

constexpr int STAGES = 3;
constexpr unsigned K_TILE = 0, Q_TILE = 16384, V_TILE = 32768, SOLUTION = 40960, SCORES = 49152, FACTORS = 57344;
constexpr unsigned STAGE_BYTES = SOLUTION + TILE_BYTES; // that are copied
constexpr unsigned STAGE = 58368;                       // a multiple of 1024
constexpr unsigned OUT_BOXES = STAGES * STAGE, OUT_BYTES = 16384;

// Puts the results of a chunk, whose rows are columns of the output, in two swizzled boxes of 64 steps by 32 columns.
__device__ __forceinline__ void stageOut(const float (&out)[32], unsigned to)
{
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const unsigned address = (to ^ (i % 2 * 144) ^ (i % 4 / 2 * 32)) + i / 4 * 1024;
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(address), "f"(out[i]) : "memory");
    }
    // The copy engine reads by another path.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    // What was sent before has left the other boxes; after the barrier all threads know that they are free.
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

// A block walks the chunks of 64 columns of one head's state: warps 0 to 3 compute, warp 4 copies.
extern "C" __global__ void __launch_bounds__(160, 1)
walk_chunks(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
            const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapOut,
            const __nv_bfloat16 *tiles, const float *initial_state, float *final_state, int T, int HQ, int HV,
            float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];

    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned char *ringPointer = dynamicShared + (ring - sharedAddress(dynamicShared));
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const int half = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int chunks = (T + CHUNK - 1) / CHUNK;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int headQ = head / (HV / HQ);
            const __nv_bfloat16 *tile = tiles + (size_t(batch) * HV + head) * chunks * TILE_ELEMENTS;
            int stage = 0;
            unsigned parity = 1; // the first round finds all stages empty
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned to = ring + stage * STAGE, barrier = full + 8 * stage;
                const int step = chunk * CHUNK;
                waitPhase(empty + 8 * stage, parity);
                expectBytes(barrier, STAGE_BYTES);
                copyBox(to + K_TILE, mapK, 0, headQ, step, batch, barrier);
                copyBox(to + K_TILE + 8192, mapK, 64, headQ, step, batch, barrier);
                copyBox(to + V_TILE, mapV, half * 64, head, step, batch, barrier);
                copyBox(to + Q_TILE, mapQ, 0, headQ, step, batch, barrier);
                copyBox(to + Q_TILE + 8192, mapQ, 64, headQ, step, batch, barrier);
                if (chunk == 0)
                    asm volatile("griddepcontrol.wait;" ::: "memory"); // the first launch has ended
                copyBytes(to + SOLUTION, tile + size_t(chunk) * TILE_ELEMENTS, TILE_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    const int g = lane / 4, c = lane % 4;

    // S^T: number i of a thread is at row (column of values) g + i % 4 / 2 * 8 of its warp's 16, and at column (key)
    // i / 4 * 8 + 2 c + i % 2. All results are laid out like this, with steps in place of keys.
    const size_t first = (size_t(batch) * HV + head) * 128 * 128 + half * 64 + warp * 16 + g;
    float state[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[first + (i / 4 * 8 + c * 2 + i % 2) * 128 + i % 4 / 2 * 8];

    unsigned left[8][4];
    packOperands(left, state);
    float updates[32] = {}, out[32] = {};

    // Where this lane names rows of V for ldmatrix, and where it puts its results.
    const unsigned placeV = V_TILE + (lane / 16 * 8 + lane % 8) * 128 + ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;
    const unsigned placeOut =
        ring + OUT_BOXES + warp / 2 * 8192 + c * 256 + ((warp % 2 * 4 + g / 4) ^ (2 * c)) * 16 + g % 4 * 4;

    int stage = 0;
    unsigned parity = 0;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        waitPhase(full + 8 * stage, parity);
        const unsigned at = ring + stage * STAGE;
        const unsigned base = __shfl_sync(~0u, (at & 0x3ffff) >> 4, 0);
        const float *factors = reinterpret_cast<const float *>(ringPointer + stage * STAGE + FACTORS);

        // What the state predicts: the critical product, first and alone.
        hold(left);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(updates, left[step], ALONG + (base + (K_TILE + step / 4 * 8192 + step % 4 * 32) / 16),
                          step > 0);
        commitProducts();

        // In its shadow: the other operands, and the output of the chunk before (of the first one, zeros that are not
        // sent).
        unsigned values[4][4];
#pragma unroll
        for (int p = 0; p < 4; ++p)
            loadMatricesTransposed(values[p], at + placeV + p * 2048);
        float2 decays[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            decays[n] = *reinterpret_cast<const float2 *>(factors + n * 8 + 2 * c);

        const unsigned buffer = chunk % 2 * OUT_BYTES;
        stageOut(out, placeOut + buffer);
        if (threadIdx.x == 0 && chunk > 0) {
            const unsigned from = ring + OUT_BOXES + buffer;
            storeBox(mapOut, half * 64, head, (chunk - 1) * CHUNK, batch, from);
            storeBox(mapOut, half * 64 + 32, head, (chunk - 1) * CHUNK, batch, from + 8192);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncwarp();

        // What the queries read from the state, needed later.
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (base + (Q_TILE + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        waitProducts<1>();
        hold(updates);
        unsigned rest[4][4];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const unsigned both = values[i / 4][i % 4];
            const float low = __uint_as_float(both << 16), high = __uint_as_float(both & 0xffff0000u);
            rest[i / 4][i % 4] = pack(low - decays[i / 2].x * updates[2 * i], high - decays[i / 2].y * updates[2 * i + 1]);
        }

        // The updates: the solution of the chunk's triangular system.
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], ALONG + (base + (SOLUTION + step * 32) / 16), step > 0);
        commitProducts();

        float2 remaining[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            remaining[n] = *reinterpret_cast<const float2 *>(factors + CHUNK + n * 8 + 2 * c);
        const float whole = factors[CHUNK - 1];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;
        hold(state);

        waitProducts<0>();
        hold(updates);
        hold(out);
        hold(left);
        hold(rest);

        // The next state, critical again.
        unsigned decayed[4][4];
#pragma unroll
        for (int i = 0; i < 16; ++i)
            decayed[i / 4][i % 4] = pack(updates[2 * i] * remaining[i / 2].x, updates[2 * i + 1] * remaining[i / 2].y);
        hold(decayed);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, decayed[step], ACROSS + (base + (K_TILE + step * 2048) / 16));
        commitProducts();

        // The output, in its shadow.
        packOperands(rest, updates);
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            out[2 * i] *= scale * decays[i / 2].x;
            out[2 * i + 1] *= scale * decays[i / 2].y;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (base + (SCORES + step * 32) / 16), 1);
        commitProducts();

        waitProducts<1>();
        hold(state);
        hold(decayed);
        packOperands(left, state);
        waitProducts<0>();
        hold(out);
        hold(rest);

        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
        __syncwarp();
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }

    const unsigned buffer = chunks % 2 * OUT_BYTES;
    stageOut(out, placeOut + buffer);
    if (threadIdx.x == 0) {
        const unsigned from = ring + OUT_BOXES + buffer;
        storeBox(mapOut, half * 64, head, (chunks - 1) * CHUNK, batch, from);
        storeBox(mapOut, half * 64 + 32, head, (chunks - 1) * CHUNK, batch, from + 8192);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[first + (i / 4 * 8 + c * 2 + i % 2) * 128 + i % 4 / 2 * 8] = state[i];

    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); // shared memory goes away with the block
}
