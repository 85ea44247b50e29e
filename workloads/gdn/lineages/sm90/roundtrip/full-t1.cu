/*klineage
surface = "cuda"

[[launch]]
kernel = "prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "51200"
args = ["tm_q", "tm_k", "g", "beta", "tiles", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "walk"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_out", "tiles", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[workspace]]
name = "tiles"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64) * 8448"]
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
l2_promotion = "256B"

[[tensormap]]
name = "tm_out"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. Within a chunk, G[t] = g[0] + .. + g[t]; S is the state before it.
//   (I + L) U = diag(b) (V - diag(exp G) K S),   L[t][s] = b[t] exp(G[t] - G[s]) k[t] . k[s]   for s < t
//   out[t] = scale * (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T
// prepare: solution = (I + L)^-1 diag(b), scores and factors of every chunk and head. walk: from chunk to chunk.

#include <cuda_bf16.h>

constexpr int CHUNK = 64;
constexpr int PITCH = 68;                     // of the triangular system's rows, in floats
constexpr int TILE_ELEMENTS = 8448;           // solution 64 x 64, scores 64 x 64, 128 floats of factors
constexpr unsigned TILE_BYTES = 2 * TILE_ELEMENTS;

// A stage of the ring.
constexpr int STAGES = 3;
constexpr unsigned KEYS = 0, QUERIES = 16384, VALUES = 32768, SOLUTION = 40960, SCORES = 49152, FACTORS = 57344;
constexpr unsigned STAGE_COPIED = 16384 + 16384 + 8192 + TILE_BYTES;
constexpr unsigned STAGE_BYTES = 58368;
constexpr unsigned OUT_BYTES = 16384;         // 64 tokens x 64 columns of float, as two boxes of 32 columns

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// ---------------------------------------------------------------------------------------------- small things

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the 128-byte swizzle keeps a 16-byte chunk of a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return unsigned(row * 128 + (chunk ^ (row % 8)) * 16);
}

__device__ __forceinline__ float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

__device__ __forceinline__ float lowOf(unsigned both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float highOf(unsigned both) { return __uint_as_float(both & 0xffff0000u); }

// ---------------------------------------------------------------------------------------------- barriers, copies

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void fenceBarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
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

// Starts the copy of a box of 64 tokens of a head, from column `column` on.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int token, int batch,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(token), "r"(batch), "r"(barrier) : "memory");
}

__device__ __forceinline__ void copyLine(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap &map, int column, int head, int token, int batch,
                                         unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(&map), "r"(column), "r"(head), "r"(token), "r"(batch), "r"(from) : "memory");
}

// ---------------------------------------------------------------------------------------------- mma.sync

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

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

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

// ---------------------------------------------------------------------------------------------- the inverse

// Inverts the blocks of 16 x 16 on the diagonal (ones on it are implied), a thread for each column; by two warps.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 r = *reinterpret_cast<const float4 *>(&m[first + i][first + k]);
            sum -= r.x * x[k];
            if (k + 1 < i)
                sum -= r.y * x[k + 1];
            if (k + 2 < i)
                sum -= r.z * x[k + 2];
            if (k + 3 < i)
                sum -= r.w * x[k + 3];
        }
        x[i] = sum;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        m[first + i][first + column] = x[i];
}

// 16 x 16 of -C^-1 B A^-1, where A and C are SIZE x SIZE, A begins at `first`, and both are inverted already: the rows
// from `row` of C on, the columns from `column` of A on. By one warp.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], const float (*m)[PITCH], int first, int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, second = first + SIZE;
    float product[SIZE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        const float *left = &m[second + row + g][second + k + c];
        const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]), toTf32(left[8 * PITCH + 4])};
#pragma unroll
        for (int n = 0; n < SIZE; n += 8)
            multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                         toTf32(m[second + k + c + 4][first + n + g]));
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
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

// The running sums of a chunk's log gates (to base 2), the decay from its start to each step, and from each step to its
// end, and the betas; by one warp. Steps after the last one neither decay nor update.
__device__ __forceinline__ void prepareGates(float *sums, float *decays, float *betas, const float *gates,
                                             const float *beta, size_t pitch, int valid)
{
    constexpr float LOG2E = 1.4426950408889634f;
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float even = t < valid ? gates[t * pitch] * LOG2E : 0.0f;
    const float odd = t + 1 < valid ? gates[(t + 1) * pitch] * LOG2E : 0.0f;
    betas[t] = t < valid ? beta[t * pitch] : 0.0f;
    betas[t + 1] = t + 1 < valid ? beta[(t + 1) * pitch] : 0.0f;
    float sum = even + odd;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    float upTo = __shfl_up_sync(~0u, sum, 1);
    upTo = lane > 0 ? upTo : 0.0f;
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = upTo + even; // up to the even one
    sums[t] = before;
    sums[t + 1] = sum;
    decays[t] = power2(before);
    decays[t + 1] = power2(sum);
    decays[CHUNK + t] = power2(fminf(last - before, 0.0f));
    decays[CHUNK + t + 1] = power2(fminf(last - sum, 0.0f));
}

// ---------------------------------------------------------------------------------------------- launch 1

extern "C" __global__ void __launch_bounds__(128, 4)
prepare(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const float *gates,
        const float *beta, __nv_bfloat16 *tiles, int T, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][CHUNK];
    __shared__ __align__(16) float decays[4][2 * CHUNK];
    __shared__ __align__(16) float betas[4][CHUNK];
    __shared__ __align__(8) unsigned long long loaded;

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), lane = threadIdx.x % 32;
    const int thread = threadIdx.x, g = lane / 4, c = lane % 4;
    const int groups = gridDim.x, group = blockIdx.x, chunks = gridDim.y, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / groups;
    const int first = chunk * CHUNK, valid = min(T - first, CHUNK);

    const unsigned start = sharedAddress(dynamicShared), base = (start + 1023) & ~1023u;
    unsigned char *room = dynamicShared + (base - start);       // keys, queries; later the staged scores
    float(*m)[PITCH] = reinterpret_cast<float(*)[PITCH]>(room + 32768);
    const unsigned keys = base, queries = base + 16384, barrier = sharedAddress(&loaded);

    if (thread == 0) {
        initBarrier(barrier, 1);
        fenceBarriers();
        expectBytes(barrier, 32768);
        copyBox(keys, mapK, 0, group, first, batch, barrier);
        copyBox(queries, mapQ, 0, group, first, batch, barrier);
        copyBox(keys + 8192, mapK, 64, group, first, batch, barrier);
        copyBox(queries + 8192, mapQ, 64, group, first, batch, barrier);
    }
    __syncwarp();

    // The blocks beside the diagonal that the last merge reads are zero and stay so.
    for (int i = thread; i < 512; i += 128) {
        const int corner = i / 256 * 32;
        m[corner + i / 16 % 16][corner + 16 + i % 16] = 0.0f;
    }
    const size_t gate = (size_t(batch) * T + first) * HV + size_t(group) * ratio;
    if (warp < ratio)
        prepareGates(sums[warp], decays[warp], betas[warp], gates + gate + warp, beta + gate + warp, HV, valid);
    __syncthreads();
    waitPhase(barrier, 0);
    __syncwarp();

    // Row `warp` of the blocks of K K^T, and row 3 - warp of those of Q K^T, up to the diagonal.
    float blocks[5][2][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const unsigned slab = step / 4 * 8192;
        const int column = step % 4 * 2;
        unsigned left[4], other[4], right[4];
        loadMatrices(left, keys + slab + place(warp * 16 + lane % 16, column + lane / 16));
        loadMatrices(other, queries + slab + place((3 - warp) * 16 + lane % 16, column + lane / 16));
#pragma unroll
        for (int b = 0; b < 5; ++b) {
            const int n = b <= warp ? b : b - warp - 1;
            loadMatrices(right, keys + slab + place(n * 16 + lane / 16 * 8 + lane % 8, column + lane / 8 % 2));
            if (b <= warp) {
                multiply(blocks[b][0], left, right[0], right[1]);
                multiply(blocks[b][1], left, right[2], right[3]);
            } else {
                multiply(blocks[b][0], other, right[0], right[1]);
                multiply(blocks[b][1], other, right[2], right[3]);
            }
        }
    }
    __syncthreads(); // the room of the keys is free

#pragma unroll 1
    for (int member = 0; member < ratio; ++member) {
        if (member > 0 && member % 4 == 0) {
            if (member + warp < ratio)
                prepareGates(sums[warp], decays[warp], betas[warp], gates + gate + member + warp,
                             beta + gate + member + warp, HV, valid);
            __syncthreads();
        }
        const float *sum = sums[member % 4], *weight = betas[member % 4];
        const int head = group * ratio + member;
        __nv_bfloat16 *tile = tiles + ((size_t(batch) * HV + head) * chunks + chunk) * TILE_ELEMENTS;

        {
            const int rowA = warp * 16 + g, rowB = (3 - warp) * 16 + g;
            const float sumA0 = sum[rowA], sumA1 = sum[rowA + 8], sumB0 = sum[rowB], sumB1 = sum[rowB + 8];
            const float weight0 = weight[rowA], weight1 = weight[rowA + 8];
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                const bool ofFirst = b <= warp;
                const int n = ofFirst ? b : b - warp - 1;
                const int row = ofFirst ? rowA : rowB, end = ofFirst ? rowA : rowB + 1;
                const float sum0 = ofFirst ? sumA0 : sumB0, sum1 = ofFirst ? sumA1 : sumB1;
                const float by0 = ofFirst ? weight0 : scale, by1 = ofFirst ? weight1 : scale;
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int column = n * 16 + half * 8 + 2 * c;
                    const float2 at = *reinterpret_cast<const float2 *>(sum + column);
                    const float(&d)[4] = blocks[b][half];
                    const float v0 = column < end ? by0 * power2(sum0 - at.x) * d[0] : 0.0f;
                    const float v1 = column + 1 < end ? by0 * power2(sum0 - at.y) * d[1] : 0.0f;
                    const float v2 = column < end + 8 ? by1 * power2(sum1 - at.x) * d[2] : 0.0f;
                    const float v3 = column + 1 < end + 8 ? by1 * power2(sum1 - at.y) * d[3] : 0.0f;
                    if (ofFirst) {
                        *reinterpret_cast<float2 *>(&m[row][column]) = make_float2(v0, v1);
                        *reinterpret_cast<float2 *>(&m[row + 8][column]) = make_float2(v2, v3);
                    } else {
                        unsigned char *to = room + place(row, n * 2 + half) + 4 * c;
                        *reinterpret_cast<unsigned *>(to) = pack(v0, v1);
                        *reinterpret_cast<unsigned *>(to + 1024) = pack(v2, v3);
                    }
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
            // The scores, zeros above the diagonal, and the factors.
            uint4 *to = reinterpret_cast<uint4 *>(tile + 4096);
            const uint4 *staged = reinterpret_cast<const uint4 *>(room);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int j = thread - 64 + i * 64, row = j / 8, column = (j % 8) ^ (row % 8);
                uint4 value = make_uint4(0, 0, 0, 0);
                if (column / 2 <= row / 16)
                    value = staged[j];
                to[j] = value;
            }
            if (warp == 2)
                reinterpret_cast<float4 *>(tile + 8192)[lane] =
                    reinterpret_cast<const float4 *>(decays[member % 4])[lane];
        }
        __syncthreads();
        {
            float block[2][4] = {};
            mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16);
            __syncthreads();
            storeBlock(m, block, 32 + warp / 2 * 16, warp % 2 * 16);
        }
        __syncthreads();

        // The solution, as bf16.
        uint4 *to = reinterpret_cast<uint4 *>(tile);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = thread + i * 128, row = j / 8, column = (j % 8) ^ (row % 8);
            uint4 value = make_uint4(0, 0, 0, 0);
            if (column / 2 <= row / 16) {
                const float4 x = *reinterpret_cast<const float4 *>(&m[row][8 * column]);
                const float4 y = *reinterpret_cast<const float4 *>(&m[row][8 * column + 4]);
                const float4 bx = *reinterpret_cast<const float4 *>(weight + 8 * column);
                const float4 by = *reinterpret_cast<const float4 *>(weight + 8 * column + 4);
                value = make_uint4(pack(x.x * bx.x, x.y * bx.y), pack(x.z * bx.z, x.w * bx.w),
                                   pack(y.x * by.x, y.y * by.y), pack(y.z * by.z, y.w * by.w));
            }
            to[j] = value;
        }
        __syncthreads(); // the next member takes the room
    }
}

// ---------------------------------------------------------------------------------------------- wgmma

// Rows of 128 swizzled bytes, 1024 bytes from one group of 8 rows to the next; where they begin, in units of 16 bytes,
// is added. A right operand whose rows are the columns of the result;
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
// and one whose rows are summed over, 8192 bytes from 64 columns to the next 64.
constexpr unsigned long long ACROSS = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a * b^T, or d += it; 64 x 16 times 16 x 64.
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

// ---------------------------------------------------------------------------------------------- launch 2

// The outputs of a chunk, columns by tokens in registers, to two boxes of 64 tokens x 32 columns, without bank conflicts.
__device__ __forceinline__ void stageOutputs(const float (&out)[32], unsigned box, int warp, int lane)
{
    const int g = lane / 4, c = lane % 4;
    const unsigned own = box + warp / 2 * 8192 + g % 4 * 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const int token = 2 * c + odd, chunk = warp % 2 * 4 + half * 2 + g / 4;
            const unsigned to = own + place(token, chunk);
#pragma unroll
            for (int n = 0; n < 8; ++n)
                asm volatile("st.shared.f32 [%0], %1;"
                             :: "r"(to + n * 1024), "f"(out[4 * n + 2 * half + odd]) : "memory");
        }
    }
}

extern "C" __global__ void __launch_bounds__(160, 1)
walk(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
     const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapOut, const __nv_bfloat16 *tiles,
     const float *initial_state, float *final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];

    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), lane = threadIdx.x % 32;
    const int column0 = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + CHUNK - 1) / CHUNK;

    const unsigned start = sharedAddress(dynamicShared), base = (start + 1023) & ~1023u;
    const unsigned char *ring = dynamicShared + (base - start);
    const unsigned boxes = base + STAGES * STAGE_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        fenceBarriers();
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int group = head / (HV / HQ);
            const __nv_bfloat16 *tile = tiles + (size_t(batch) * HV + head) * chunks * TILE_ELEMENTS;
            int stage = 0;
            unsigned phase = 0;
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned to = base + stage * STAGE_BYTES, barrier = full + 8 * stage;
                if (chunk >= STAGES)
                    waitPhase(empty + 8 * stage, phase ^ 1);
                expectBytes(barrier, STAGE_COPIED);
                copyBox(to + KEYS, mapK, 0, group, chunk * CHUNK, batch, barrier);
                copyBox(to + KEYS + 8192, mapK, 64, group, chunk * CHUNK, batch, barrier);
                copyBox(to + QUERIES, mapQ, 0, group, chunk * CHUNK, batch, barrier);
                copyBox(to + QUERIES + 8192, mapQ, 64, group, chunk * CHUNK, batch, barrier);
                copyBox(to + VALUES, mapV, column0, head, chunk * CHUNK, batch, barrier);
                if (chunk == 0) { // the first launch has ended, and its tiles are visible
                    asm volatile("griddepcontrol.wait;" ::: "memory");
                    asm volatile("fence.proxy.async;" ::: "memory");
                }
                copyLine(to + SOLUTION, tile + size_t(chunk) * TILE_ELEMENTS, TILE_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
        return;
    }

    const int c = lane % 4;
    const size_t place0 = (size_t(batch) * HV + head) * 128 * 128 + column0 + warp * 16 + lane / 4 + size_t(2 * c) * 128;

    // S^T: number i of a thread is column lane / 4 + i % 4 / 2 * 8 of the warp's 16, key i / 4 * 8 + 2 c + i % 2.
    float state[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[place0 + (i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8];

    unsigned left[8][4], rest[4][4], update[4][4];
    float next[32], out[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        next[i] = out[i] = 0.0f;
    packOperands(left, state);

    // Where this lane's row of the four matrices of V begins.
    const unsigned valueRow = VALUES + place(lane / 16 * 8 + lane % 8, 2 * warp + lane / 8 % 2);

    int stage = 0;
    unsigned phase = 0;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned address = base + stage * STAGE_BYTES;
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS);
        waitPhase(full + 8 * stage, phase);
        const unsigned at = __shfl_sync(~0u, (address & 0x3ffff) >> 4, 0);

        // next = S^T K^T, on the way to the next state.
        hold(left);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(next, left[step], ALONG + (at + (KEYS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // In its shadow, the outputs of the chunk before leave. (The first time, zeros are staged and not stored.)
        {
            const unsigned box = boxes + (chunk & 1) * OUT_BYTES;
            stageOutputs(out, box, warp, lane);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            if (threadIdx.x == 0) // the other box is free
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            __syncwarp();
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (threadIdx.x == 0 && chunk > 0) {
                storeBox(mapOut, column0, head, (chunk - 1) * CHUNK, batch, box);
                storeBox(mapOut, column0 + 32, head, (chunk - 1) * CHUNK, batch, box + 8192);
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            }
            __syncwarp();
        }

        // out = S^T Q^T, in the shadow of vector work.
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (at + (QUERIES + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        unsigned values[4][4];
        float2 factor[8];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], address + valueRow + n * 2048);
#pragma unroll
        for (int n = 0; n < 8; ++n)
            factor[n] = *reinterpret_cast<const float2 *>(gates + 8 * n + 2 * c);
        waitProducts<1>();
        hold(next);

        // rest = V^T - exp(G) S^T K^T
#pragma unroll
        for (int i = 0; i < 16; ++i)
            rest[i / 4][i % 4] = pack(lowOf(values[i / 4][i % 4]) - factor[i / 2].x * next[2 * i],
                                      highOf(values[i / 4][i % 4]) - factor[i / 2].y * next[2 * i + 1]);

        // next = U^T
        hold(rest);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(next, rest[step], ALONG + (at + (SOLUTION + step * 32) / 16), step > 0);
        commitProducts();

        const float whole = gates[CHUNK - 1];
        float2 toEnd[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            toEnd[n] = *reinterpret_cast<const float2 *>(gates + CHUNK + 8 * n + 2 * c);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;
        hold(state);
        waitProducts<0>();
        hold(left);
        hold(out);
        hold(next);
        hold(rest);

        // state += (exp(G[63] - G) U)^T K
#pragma unroll
        for (int i = 0; i < 16; ++i)
            update[i / 4][i % 4] = pack(next[2 * i] * toEnd[i / 2].x, next[2 * i + 1] * toEnd[i / 2].y);
        hold(update);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, update[step], ACROSS + (at + (KEYS + step * 2048) / 16));
        commitProducts();

        // out = scale exp(G) out + U^T scores^T
        packOperands(rest, next);
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            out[2 * i] *= scale * factor[i / 2].x;
            out[2 * i + 1] *= scale * factor[i / 2].y;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (at + (SCORES + step * 32) / 16), 1);
        commitProducts();

        waitProducts<1>();
        hold(state);
        hold(update);
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
            phase ^= 1;
        }
    }

    // The outputs of the last chunk, and the state.
    {
        const unsigned box = boxes + (chunks & 1) * OUT_BYTES;
        stageOutputs(out, box, warp, lane);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (threadIdx.x == 0) {
            storeBox(mapOut, column0, head, (chunks - 1) * CHUNK, batch, box);
            storeBox(mapOut, column0 + 32, head, (chunks - 1) * CHUNK, batch, box + 8192);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncwarp();
    }
#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[place0 + (i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8] = state[i];
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
