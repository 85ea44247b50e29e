/*klineage
surface = "cuda"

[[workspace]]
name = "records"
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
kernel = "prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "33792"
args = ["tm_q", "tm_k", "g", "beta", "records", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "walk"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_out", "records", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With G the sums of the log gates within a chunk and S the state before it,
//   (I + L) U = diag(beta) (V - diag(exp G) K S),   L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s]   for s < t
//   out[t]    = scale (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S         = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T
// prepare: (I + L)^-1 diag(beta), the scores, exp(G[t]) and exp(G[63] - G[t]) of all chunks. walk: the rest, in order.

#include <cuda_bf16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// A record: the solution, 64 rows of 128 bytes whose 16-byte chunk c lies at c ^ (row % 8); the scores likewise; two
// times 64 floats of decays.
constexpr int TILE_BYTES = 8192, RECORD_BYTES = 2 * TILE_BYTES + 512;

__device__ __forceinline__ unsigned sharedAddress(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
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
                     ".reg .pred complete;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, complete;\n"
                     "}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (done == 0);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int d, int head, int token, int batch, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(map)), "r"(d), "r"(head), "r"(token), "r"(batch), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap *map, int d, int head, int token, int batch, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(reinterpret_cast<unsigned long long>(map)), "r"(d), "r"(head), "r"(token), "r"(batch), "r"(from) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float roundTf32(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

__device__ __forceinline__ void loadMatrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void loadTransposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ float2 loadPair(unsigned address)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
    return v;
}

// ---------------------------------------------------------------------------------------------------------------------
// prepare: a block of four warps takes the value heads that share q and k, for one chunk.

constexpr int PITCH = 68;                                  // floats a row of the system

// d (16 x 8) += a (16 x 16) * b (16 x 8), bf16
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d (16 x 8) += a (16 x 8) * b (8 x 8), tf32
__device__ __forceinline__ void multiplyTf32(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
                   "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// A tile of 64 rows of 128 bf16 lies as two boxes of 64 columns.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + ((chunk % 8) ^ (row % 8)) * 16;
}

// The inverses of the 16 x 16 blocks of the diagonal in place, two blocks a warp, a lane a column.
__device__ __forceinline__ void invertDiagonal(float *m, int warp, int lane)
{
    const int column = lane % 16;
    float *block = m + (warp * 2 + lane / 16) * 16 * (PITCH + 1);
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 row = *reinterpret_cast<const float4 *>(block + i * PITCH + k);
            sum -= row.x * x[k];
            if (k + 1 < i)
                sum -= row.y * x[k + 1];
            if (k + 2 < i)
                sum -= row.z * x[k + 2];
            if (k + 3 < i)
                sum -= row.w * x[k + 3];
        }
        x[i] = sum;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        block[i * PITCH + column] = roundTf32(x[i]);
}

// [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1]: 16 x 16 of -C^-1 B A^-1, at (row, column), where A^-1, B and C^-1 have SIDE
// rows and lie in m already. Blocks that are zero are not read. The numbers of a sum are taken in the order 2c, 2c + 1.
template <int SIDE>
__device__ __forceinline__ void mergeBlocks(float (&r)[2][4], const float *m, int row, int column, int lane)
{
    const int g = lane / 4, c = lane % 4;
    const float *lower = m + SIDE * PITCH;                 // B, and SIDE columns further C^-1
    float p[SIDE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIDE / 8; ++k)
        if (8 * k < row + 16) {
            const float2 top = *reinterpret_cast<const float2 *>(lower + SIDE + (row + g) * PITCH + 8 * k + 2 * c);
            const float2 bottom = *reinterpret_cast<const float2 *>(lower + SIDE + (row + g + 8) * PITCH + 8 * k + 2 * c);
            const float *b = lower + (8 * k + 2 * c) * PITCH + g;
#pragma unroll
            for (int n = 0; n < SIDE / 8; ++n)
                if (8 * n >= column)
                    multiplyTf32(p[n], top.x, bottom.x, top.y, bottom.y, b[8 * n], b[8 * n + PITCH]);
        }
#pragma unroll
    for (int k = 0; k < SIDE / 8; ++k)
        if (8 * k >= column) {
            const float a0 = roundTf32(-p[k][0]), a1 = roundTf32(-p[k][2]), a2 = roundTf32(-p[k][1]), a3 = roundTf32(-p[k][3]);
            const float *b = m + (8 * k + 2 * c) * PITCH + column + g;
#pragma unroll
            for (int n = 0; n < 2; ++n)
                multiplyTf32(r[n], a0, a1, a2, a3, b[8 * n], b[8 * n + PITCH]);
        }
}

__device__ __forceinline__ void storeBlock(float *to, const float (&r)[2][4], int lane)
{
    const int g = lane / 4, c = lane % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        *reinterpret_cast<float2 *>(to + g * PITCH + 8 * n + 2 * c) = make_float2(roundTf32(r[n][0]), roundTf32(r[n][1]));
        *reinterpret_cast<float2 *>(to + (g + 8) * PITCH + 8 * n + 2 * c) = make_float2(roundTf32(r[n][2]), roundTf32(r[n][3]));
    }
}

// Element (row, column) of the system, from beta * (k . k) and the difference of the sums of the log gates.
__device__ __forceinline__ float systemElement(int row, int column, float difference, float x)
{
    const float v = roundTf32(power(difference) * x);
    return column < row ? v : column == row ? 1.0f : 0.0f;
}

__device__ __forceinline__ float scoreElement(int row, int column, float difference, float x)
{
    const float v = power(difference) * x;
    return column <= row ? v : 0.0f;
}

extern "C" __global__ void __launch_bounds__(128, 5)
prepare(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const float *g, const float *beta,
        unsigned char *records, int T, int HV, float scale)
{
    extern __shared__ __align__(1024) unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][64];            // of the log gates, for exponentials of base 2; four heads
    __shared__ __align__(16) float betas[4][64];
    __shared__ __align__(8) unsigned long long barrierStorage;

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int rowOf = lane / 4, columnOf = lane % 4 * 2;
    const int group = blockIdx.x, groups = gridDim.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / groups, token0 = chunk * 64;

    const unsigned base = sharedAddress(dynamicShared), aligned = (base + 1023) & ~1023u;
    unsigned char *region = dynamicShared + (aligned - base);
    const unsigned keys = aligned, queries = aligned + 16384, barrier = sharedAddress(&barrierStorage);
    float *m = reinterpret_cast<float *>(region);          // 64 rows of PITCH floats, in place of the keys
    unsigned char *staged = region + 64 * PITCH * 4;       // scores, in the layout of the record

    if (thread == 0) {
        initBarrier(barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expectBytes(barrier, 32768);
        copyBox(keys, &tm_k, 0, group, token0, batch, barrier);
        copyBox(keys + 8192, &tm_k, 64, group, token0, batch, barrier);
        copyBox(queries, &tm_q, 0, group, token0, batch, barrier);
        copyBox(queries + 8192, &tm_q, 64, group, token0, batch, barrier);
    }
    __syncwarp();

    // Warp w takes row w of the 4 x 4 blocks of k k^T and row 3 - w of q k^T, up to the diagonal: five blocks.
    float blocks[5][2][4] = {};
    const int firstRow = warp * 16 + rowOf, otherRow = (3 - warp) * 16 + rowOf;

    for (int member = 0; member < ratio; ++member) {
        const int head = group * ratio + member, slot = member % 4;
        if (slot == 0) {
            if (member + warp < ratio) {
                const int t = token0 + 2 * lane;
                const size_t at = (size_t(batch) * T + t) * HV + head + warp;
                const float g0 = t < T ? g[at] : 0.0f, g1 = t + 1 < T ? g[at + HV] : 0.0f;
                const float b0 = t < T ? beta[at] : 0.0f, b1 = t + 1 < T ? beta[at + HV] : 0.0f;
                float sum = g0 + g1;
#pragma unroll
                for (int offset = 1; offset < 32; offset *= 2) {
                    const float other = __shfl_up_sync(~0u, sum, offset);
                    if (lane >= offset)
                        sum += other;
                }
                float before = __shfl_up_sync(~0u, sum, 1);
                if (lane == 0)
                    before = 0.0f;
                constexpr float LOG2E = 1.4426950408889634f;
                *reinterpret_cast<float2 *>(&sums[warp][2 * lane]) = make_float2((before + g0) * LOG2E, sum * LOG2E);
                *reinterpret_cast<float2 *>(&betas[warp][2 * lane]) = make_float2(b0, b1);
            }
            __syncthreads();
        }
        if (member == 0) {
            waitPhase(barrier, 0);
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                unsigned left[4], other[4];
                loadMatrices(left, keys + place(warp * 16 + lane % 16, 2 * step + lane / 16));
                loadMatrices(other, queries + place((3 - warp) * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
                for (int b = 0; b < 5; ++b) {
                    const int n = b <= warp ? b : b - warp - 1;
                    unsigned right[4];
                    loadMatrices(right, keys + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
                    if (b <= warp) {
                        multiply(blocks[b][0], left, right[0], right[1]);
                        multiply(blocks[b][1], left, right[2], right[3]);
                    } else {
                        multiply(blocks[b][0], other, right[0], right[1]);
                        multiply(blocks[b][1], other, right[2], right[3]);
                    }
                }
            }
            __syncthreads();                               // the tiles become room for results
        }

        const float *sum = sums[slot], *factor = betas[slot];
        {
            const float first0 = sum[firstRow], first1 = sum[firstRow + 8], other0 = sum[otherRow], other1 = sum[otherRow + 8];
            const float beta0 = factor[firstRow], beta1 = factor[firstRow + 8];
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                if (b <= warp) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const int column = b * 16 + half * 8 + columnOf;
                        const float2 from = *reinterpret_cast<const float2 *>(sum + column);
                        const float *x = blocks[b][half];
                        *reinterpret_cast<float2 *>(m + firstRow * PITCH + column) =
                            make_float2(systemElement(firstRow, column, first0 - from.x, beta0 * x[0]),
                                        systemElement(firstRow, column + 1, first0 - from.y, beta0 * x[1]));
                        *reinterpret_cast<float2 *>(m + (firstRow + 8) * PITCH + column) =
                            make_float2(systemElement(firstRow + 8, column, first1 - from.x, beta1 * x[2]),
                                        systemElement(firstRow + 8, column + 1, first1 - from.y, beta1 * x[3]));
                    }
                } else {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const int column = (b - warp - 1) * 16 + half * 8 + columnOf;
                        const float2 from = *reinterpret_cast<const float2 *>(sum + column);
                        const float *x = blocks[b][half];
                        *reinterpret_cast<unsigned *>(staged + place(otherRow, column / 8) + columnOf * 2) =
                            pack(scoreElement(otherRow, column, other0 - from.x, scale * x[0]),
                                 scoreElement(otherRow, column + 1, other0 - from.y, scale * x[1]));
                        *reinterpret_cast<unsigned *>(staged + place(otherRow + 8, column / 8) + columnOf * 2) =
                            pack(scoreElement(otherRow + 8, column, other1 - from.x, scale * x[2]),
                                 scoreElement(otherRow + 8, column + 1, other1 - from.y, scale * x[3]));
                    }
                }
            }
        }
        __syncthreads();

        unsigned char *record = records + ((size_t(batch) * HV + head) * gridDim.y + chunk) * RECORD_BYTES;
        if (warp < 2) {
            invertDiagonal(m, warp, lane);
            __syncwarp();
            float r[2][4] = {};
            mergeBlocks<16>(r, m + warp * 32 * (PITCH + 1), 0, 0, lane);
            __syncwarp();                                  // all lanes have read B
            storeBlock(m + (warp * 32 + 16) * PITCH + warp * 32, r, lane);
        } else {
            const int t = thread - 64;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int j = i * 64 + t, row = j / 8, from = ((j % 8) ^ (row % 8)) * 8;
                uint4 v = make_uint4(0, 0, 0, 0);
                if (from <= row)
                    v = *reinterpret_cast<const uint4 *>(staged + j * 16);
                *reinterpret_cast<uint4 *>(record + TILE_BYTES + j * 16) = v;
            }
            float *decays = reinterpret_cast<float *>(record + 2 * TILE_BYTES);
            decays[t] = power(sum[t]);
            decays[64 + t] = power(sum[63] - sum[t]);
        }
        __syncthreads();
        {
            float r[2][4] = {};
            mergeBlocks<32>(r, m, warp / 2 * 16, warp % 2 * 16, lane);
            __syncthreads();                               // all warps have read B
            storeBlock(m + (32 + warp / 2 * 16) * PITCH + warp % 2 * 16, r, lane);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = i * 128 + thread, row = j / 8, column = ((j % 8) ^ (row % 8)) * 8;
            uint4 v = make_uint4(0, 0, 0, 0);
            if (column <= row) {
                const float4 x0 = *reinterpret_cast<const float4 *>(m + row * PITCH + column);
                const float4 x1 = *reinterpret_cast<const float4 *>(m + row * PITCH + column + 4);
                const float4 b0 = *reinterpret_cast<const float4 *>(factor + column);
                const float4 b1 = *reinterpret_cast<const float4 *>(factor + column + 4);
                v = make_uint4(pack(x0.x * b0.x, x0.y * b0.y), pack(x0.z * b0.z, x0.w * b0.w),
                               pack(x1.x * b1.x, x1.y * b1.y), pack(x1.z * b1.z, x1.w * b1.w));
            }
            *reinterpret_cast<uint4 *>(record + j * 16) = v;
        }
        __syncthreads();                                   // the next head takes the room
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// walk: a block takes 64 columns of the values of a head, from chunk to chunk. Four warps are a warpgroup that keeps the
// state transposed, 64 columns of values by 128 keys, as the result of wgmma; the fifth warp asks for the copies.

constexpr int STAGES = 3;
constexpr int KEYS = 0, QUERIES = 16384, VALUES = 32768, RECORD = 40960;            // a stage; tiles at multiples of 1024
constexpr int SOLUTION = RECORD, SCORES = RECORD + TILE_BYTES, DECAYS = RECORD + 2 * TILE_BYTES;
constexpr int STAGE_BYTES = 58368, COPIED_BYTES = RECORD + RECORD_BYTES;
constexpr int OUTPUTS = STAGES * STAGE_BYTES, OUTPUT_BYTES = 16384;                 // two buffers of two boxes of 32 columns

// Descriptors without the address: 128-byte swizzle, 1024 bytes from eight rows to the next. Across: rows are summed
// over, and 8192 bytes lead from 64 columns to the next 64.
constexpr unsigned long long ALONG = 1ull << 16 | 64ull << 32 | 1ull << 62;
constexpr unsigned long long ACROSS = 512ull << 16 | 64ull << 32 | 1ull << 62;

#define SUMS8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(d, i) SUMS8(d, i), SUMS8(d, i + 8), SUMS8(d, i + 16), SUMS8(d, i + 24)

// d (64 x 64) = or += a (64 x 16) * b^T, the rows of b are the columns of d.
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
        "}"
        : SUMS32(d, 0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d (64 x 128) += a (64 x 16) * b, the 16 rows of b are summed over.
__device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(d, 0), SUMS32(d, 32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

__device__ __forceinline__ void beginProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

// The compiler may not move what it does to these registers to the other side.
template <int N>
__device__ __forceinline__ void hold(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i]) :: "memory");
}

template <int N>
__device__ __forceinline__ void hold(unsigned (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            asm volatile("" : "+r"(x[i][j]) :: "memory");
}

__device__ __forceinline__ void writeOutputs(unsigned buffer, unsigned even, unsigned odd, const float (&out)[32])
{
#pragma unroll
    for (int n = 0; n < 8; ++n) {                          // the second row of a fragment is 8 columns further: chunk ^ 2
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + even + n * 1024), "f"(out[4 * n]) : "memory");
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + odd + n * 1024), "f"(out[4 * n + 1]) : "memory");
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + (even ^ 32) + n * 1024), "f"(out[4 * n + 2]) : "memory");
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + (odd ^ 32) + n * 1024), "f"(out[4 * n + 3]) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(160, 1)
walk(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const __grid_constant__ TensorMap tm_v,
     const __grid_constant__ TensorMap tm_out, const unsigned char *records, const float *initial_state, float *final_state,
     int T, int HQ, int HV, float scale)
{
    extern __shared__ __align__(1024) unsigned char dynamicShared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];

    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int column0 = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z, chunks = (T + 63) / 64;
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);             // a lane of each of the four warps
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int group = head / (HV / HQ);
            const unsigned char *record = records + (size_t(batch) * HV + head) * chunks * RECORD_BYTES;
            int stage = 0;
            unsigned parity = 1;                           // of the phase before: the stages are free at first
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned at = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
                if (chunk >= STAGES)
                    waitPhase(empty + 8 * stage, parity);
                expectBytes(barrier, COPIED_BYTES);
                copyBox(at + KEYS, &tm_k, 0, group, chunk * 64, batch, barrier);
                copyBox(at + KEYS + 8192, &tm_k, 64, group, chunk * 64, batch, barrier);
                copyBox(at + VALUES, &tm_v, column0, head, chunk * 64, batch, barrier);
                copyBox(at + QUERIES, &tm_q, 0, group, chunk * 64, batch, barrier);
                copyBox(at + QUERIES + 8192, &tm_q, 64, group, chunk * 64, batch, barrier);
                if (chunk == 0) {                          // prepare has ended, its records are visible, to the engine too
                    asm volatile("griddepcontrol.wait;" ::: "memory");
                    asm volatile("fence.proxy.async;" ::: "memory");
                }
                copyBytes(at + RECORD, record + size_t(chunk) * RECORD_BYTES, RECORD_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    const int g = lane / 4, c = lane % 4;
    const size_t first = (size_t(batch) * HV + head) * 128 * 128 + column0 + warp * 16 + g;

    // Number i of a thread: column g + i % 4 / 2 * 8 of the warp's 16, key (or token) i / 4 * 8 + 2 * c + i % 2.
    float state[64], d[32], out[32];
    unsigned left[8][4], rest[4][4], update[4][4];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[first + (i / 4 * 8 + 2 * c + i % 2) * 128 + i % 4 / 2 * 8];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);
        d[i] = 0.0f;
        out[i] = 0.0f;
    }

    // Offsets of this thread: in a box of outputs for tokens 2 c and 2 c + 1, and of its row of the values for ldmatrix.
    const int outChunk = warp % 2 * 4 + g / 4;
    const unsigned even = warp / 2 * 8192 + 2 * c * 128 + (outChunk ^ (2 * c)) * 16 + g % 4 * 4;
    const unsigned odd = warp / 2 * 8192 + (2 * c + 1) * 128 + (outChunk ^ (2 * c + 1)) * 16 + g % 4 * 4;
    const unsigned valueRow = VALUES + (lane / 16 * 8 + lane % 8) * 128 + ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned at = ring + stage * STAGE_BYTES;
        waitPhase(full + 8 * stage, parity);
        const unsigned tiles = __shfl_sync(~0u, (at & 0x3ffff) >> 4, 0);

        // d = S^T K^T
        hold(left);
        hold(d);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(d, left[step], ALONG + (tiles + (KEYS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // In its shadow: the outputs of the chunk before leave. Two buffers take turns; the barrier says that the tile is
        // written, and that the engine has read the other buffer.
        const unsigned buffer = ring + OUTPUTS + chunk % 2 * OUTPUT_BYTES;
        writeOutputs(buffer, even, odd, out);
        if (thread == 0)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        __syncwarp();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (thread == 0 && chunk > 0) {
            storeBox(&tm_out, column0, head, (chunk - 1) * 64, batch, buffer);
            storeBox(&tm_out, column0 + 32, head, (chunk - 1) * 64, batch, buffer + 8192);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncwarp();

        // out = S^T Q^T
        hold(out);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (QUERIES + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        unsigned values[4][4];
        float2 decay[8];                                   // exp(G[t])
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadTransposed(values[n], at + valueRow + n * 2048);
#pragma unroll
        for (int n = 0; n < 8; ++n)
            decay[n] = loadPair(at + DECAYS + (n * 8 + 2 * c) * 4);
        const float whole = loadPair(at + DECAYS + 62 * 4).y;

        waitProducts<1>();
        hold(d);
#pragma unroll
        for (int i = 0; i < 16; ++i) {                     // V^T - exp(G) S^T K^T
            const unsigned v = values[i / 4][i % 4];
            rest[i / 4][i % 4] = pack(__uint_as_float(v << 16) - decay[i / 2].x * d[2 * i],
                                      __uint_as_float(v & 0xffff0000u) - decay[i / 2].y * d[2 * i + 1]);
        }

        // d = U^T
        hold(rest);
        hold(d);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(d, rest[step], ALONG + (tiles + (SOLUTION + step * 32) / 16), step > 0);
        commitProducts();

        float2 remaining[8];                               // exp(G[63] - G[t])
#pragma unroll
        for (int n = 0; n < 8; ++n)
            remaining[n] = loadPair(at + DECAYS + 256 + (n * 8 + 2 * c) * 4);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;

        waitProducts<0>();
        hold(left);
        hold(rest);
        hold(out);
        hold(d);
#pragma unroll
        for (int i = 0; i < 16; ++i)
            update[i / 4][i % 4] = pack(d[2 * i] * remaining[i / 2].x, d[2 * i + 1] * remaining[i / 2].y);

        // S^T = exp(G[63]) S^T + (exp(G[63] - G) U)^T K
        hold(update);
        hold(state);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, update[step], ACROSS + (tiles + (KEYS + step * 2048) / 16));
        commitProducts();

#pragma unroll
        for (int i = 0; i < 16; ++i) {
            rest[i / 4][i % 4] = pack(d[2 * i], d[2 * i + 1]);
            out[2 * i] *= decay[i / 2].x * scale;
            out[2 * i + 1] *= decay[i / 2].y * scale;
        }

        // out = scale exp(G) S^T Q^T + U^T scores^T
        hold(rest);
        hold(out);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES + step * 32) / 16), 1);
        commitProducts();

        waitProducts<1>();
        hold(state);
        hold(update);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);
        waitProducts<0>();
        hold(rest);
        hold(out);

        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
        __syncwarp();
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }

    // The outputs of the last chunk: the buffer whose turn it is was read before the last barrier.
    const unsigned buffer = ring + OUTPUTS + chunks % 2 * OUTPUT_BYTES;
    writeOutputs(buffer, even, odd, out);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (thread == 0) {
        storeBox(&tm_out, column0, head, (chunks - 1) * 64, batch, buffer);
        storeBox(&tm_out, column0 + 32, head, (chunks - 1) * 64, batch, buffer + 8192);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[first + (i / 4 * 8 + 2 * c + i % 2) * 128 + i % 4 / 2 * 8] = state[i];

    if (thread == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
