/*klineage
surface = "cuda"

[[workspace]]
name = "records"
dtype = "f32"
shape = ["B", "HV", "ceil_div(T, 64)", "4224"]
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
name = "tm_o"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "gated_delta_prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "2 * 16384 + 1024"
args = ["tm_q", "tm_k", "g", "beta", "records", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gated_delta_walk"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "3 * 58368 + 2 * 16384 + 1024"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_o", "records", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. Within a chunk, G[t] = g[0] + .. + g[t], and S is the state before it:
//   (I + L) U = diag(b) (V - diag(exp G) K S),   L[t][s] = b[t] exp(G[t] - G[s]) k[t] . k[s]   for s < t
//   out[t]    = scale * (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S         = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T
// The first launch makes a record of every chunk and value head: the scores, the inverse of I + L times diag(b), and the
// decays. The second walks from chunk to chunk; a block has 64 columns of the state of a head, transposed, in registers.

#include <cuda_bf16.h>

constexpr int CHUNK = 64;
constexpr int DIM = 128;
constexpr int PITCH = 68;                // of the rows of the system, in floats
constexpr unsigned TILE = 8192;          // 64 rows of 128 bytes

// A record: scores, solution, decays from the start, decays to the end.
constexpr int RECORD_FLOATS = 4224;
constexpr unsigned RECORD_BYTES = RECORD_FLOATS * 4;

// A stage of the ring.
constexpr int STAGES = 3;
constexpr unsigned K_AT = 0, Q_AT = 2 * TILE, V_AT = 4 * TILE, RECORD_AT = 5 * TILE;
constexpr unsigned SCORES_AT = RECORD_AT, SOLUTION_AT = RECORD_AT + TILE, FACTORS_AT = RECORD_AT + 2 * TILE;
constexpr unsigned STAGE_BYTES = 58368;
constexpr unsigned STAGE_COPIED = 5 * TILE + RECORD_BYTES;
constexpr unsigned OUT_BYTES = 2 * TILE; // 64 tokens x 64 columns in single precision, as two boxes

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

extern __shared__ __align__(16) unsigned char dynamicShared[];

// ---------------------------------------------------------------------------------------------- common pieces

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void fenceBarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
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

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int token, int batch,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(token), "r"(batch), "r"(barrier) : "memory");
}

__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap &map, int column, int head, int token, int batch, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(&map), "r"(column), "r"(head), "r"(token), "r"(batch), "r"(from) : "memory");
}

__device__ __forceinline__ void commitStores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// ---------------------------------------------------------------------------------------------- the first launch

__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
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

// The running sums of a chunk's log gates, as logarithms to base 2, and its betas; the decays go to the record. By one
// warp. Steps after the last one neither decay nor update.
__device__ __forceinline__ void prepareGates(float *sums, float *betas, float *factors, const float *gates,
                                             const float *beta, size_t pitch, int valid)
{
    constexpr float LOG2E = 1.4426950408889634f;
    const int lane = threadIdx.x % 32;
    const bool first = 2 * lane < valid, second = 2 * lane + 1 < valid;
    const size_t at = size_t(2 * lane) * pitch;
    const float even = first ? gates[at] * LOG2E : 0.0f;
    const float odd = second ? gates[at + pitch] * LOG2E : 0.0f;
    const float evenBeta = first ? beta[at] : 0.0f;
    const float oddBeta = second ? beta[at + pitch] : 0.0f;

    float sum = even + odd;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float previous = __shfl_up_sync(~0u, sum, 1);
    const float before = (lane > 0 ? previous : 0.0f) + even;

    *reinterpret_cast<float2 *>(sums + 2 * lane) = make_float2(before, sum);
    *reinterpret_cast<float2 *>(betas + 2 * lane) = make_float2(evenBeta, oddBeta);
    *reinterpret_cast<float2 *>(factors + 2 * lane) = make_float2(exp2Fast(before), exp2Fast(sum));
    *reinterpret_cast<float2 *>(factors + CHUNK + 2 * lane) =
        make_float2(exp2Fast(last - before), exp2Fast(last - sum));
}

// Inverts the blocks of 16 x 16 on the diagonal, a thread for each column; by two warps. What is on or above the
// diagonal is not used before, and ones and zeros after.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 row = *reinterpret_cast<const float4 *>(&m[first + i][first + k]);
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
        m[first + i][first + column] = x[i];
}

// 16 x 16 of -C^-1 B A^-1, where A and C are SIZE x SIZE, A begins at `first`, and both are inverted already: the rows
// from `row` of C on, the columns from `column` of A on. By one warp. Steps with zeros of the triangles are left out.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], const float (*m)[PITCH], int first, int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, second = first + SIZE;
    float product[SIZE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k >= row + 16)
            continue;
        const float *left = &m[second + row + g][second + k + c];
        const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]), toTf32(left[8 * PITCH + 4])};
#pragma unroll
        for (int n = 0; n < SIZE; n += 8) {
            if (n < column)
                continue;
            multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                         toTf32(m[second + k + c + 4][first + n + g]));
        }
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k < column)
            continue;
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
        *reinterpret_cast<float2 *>(&m[row + g][column + n * 8 + 2 * c]) = make_float2(from[n][0], from[n][1]);
        *reinterpret_cast<float2 *>(&m[row + g + 8][column + n * 8 + 2 * c]) = make_float2(from[n][2], from[n][3]);
    }
}

extern "C" __global__ void __launch_bounds__(128, 4)
gated_delta_prepare(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
                    const float *gates, const float *beta, float *records, int T, int HQ, int HV, float scale)
{
    __shared__ alignas(16) float sums[4][CHUNK];
    __shared__ alignas(16) float betas[4][CHUNK];
    __shared__ alignas(8) unsigned long long barrier[1];

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    const int thread = threadIdx.x, lane = thread % 32, g = lane / 4, c = lane % 4;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int group = blockIdx.x, batch = blockIdx.z, chunks = gridDim.y;
    const int chunk = chunks - 1 - int(blockIdx.y); // the first chunks last, since they are read first
    const int ratio = HV / HQ, start = chunk * CHUNK;
    const int valid = T - start < CHUNK ? T - start : CHUNK;

    const unsigned raw = sharedAddress(dynamicShared);
    const unsigned keys = (raw + 1023) & ~1023u, queries = keys + 2 * TILE;
    unsigned char *const room = dynamicShared + (keys - raw);
    const unsigned full = sharedAddress(barrier);

    if (thread == 0) {
        initBarrier(full, 1);
        fenceBarriers();
        expectBytes(full, 4 * TILE);
        copyBox(keys, mapK, 0, group, start, batch, full);
        copyBox(keys + TILE, mapK, 64, group, start, batch, full);
        copyBox(queries, mapQ, 0, group, start, batch, full);
        copyBox(queries + TILE, mapQ, 64, group, start, batch, full);
    }
    __syncwarp();

    // What takes the place of the tiles once the products are done.
    float(*const m)[PITCH] = reinterpret_cast<float(*)[PITCH]>(room);
    unsigned char *const staged = room + CHUNK * PITCH * 4;

    // Blocks of 16 x 16: row `warp` of the keys' products, then row 3 - `warp` of the queries' with the keys.
    float blocks[5][2][4] = {};

    for (int i = 0; i < ratio; ++i) {
        const int member = group * ratio + i;
        float *const record = records + ((size_t(batch) * HV + member) * chunks + chunk) * RECORD_FLOATS;

        if (i % 4 == 0) {
            if (i + warp < ratio) {
                const size_t at = (size_t(batch) * T + start) * HV + member + warp;
                prepareGates(sums[warp], betas[warp], record + size_t(warp) * chunks * RECORD_FLOATS + 4096,
                             gates + at, beta + at, size_t(HV), valid);
            }
            __syncthreads();
        }

        if (i == 0) {
            waitPhase(full, 0);
            __syncwarp();
            const unsigned leftAt = keys + (warp * 16 + lane % 16) * 128 + ((lane / 16) ^ (lane % 8)) * 16;
            const unsigned otherAt = queries + ((3 - warp) * 16 + lane % 16) * 128 + ((lane / 16) ^ (lane % 8)) * 16;
            const unsigned rightAt = keys + (lane / 16 * 8 + lane % 8) * 128 + ((lane / 8 % 2) ^ (lane % 8)) * 16;
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                const unsigned turn = step % 4 * 32, box = step / 4 * TILE;
                unsigned left[4], other[4], right[4];
                loadMatrices(left, (leftAt ^ turn) + box);
                loadMatrices(other, (otherAt ^ turn) + box);
#pragma unroll
                for (int b = 0; b < 5; ++b) {
                    const int n = b <= warp ? b : b - warp - 1;
                    loadMatrices(right, (rightAt ^ turn) + box + n * 2048);
                    if (b <= warp) {
                        multiply(blocks[b][0], left, right[0], right[1]);
                        multiply(blocks[b][1], left, right[2], right[3]);
                    } else {
                        multiply(blocks[b][0], other, right[0], right[1]);
                        multiply(blocks[b][1], other, right[2], right[3]);
                    }
                }
            }
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                const float factor = b <= warp ? 1.0f : scale;
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    blocks[b][e / 4][e % 4] *= factor;
            }
            __syncthreads(); // the tiles have been read

            // The two blocks above the diagonal that the merges read.
            for (int j = thread; j < 512; j += 128)
                m[j / 256 * 32 + j % 256 / 16][j / 256 * 32 + 16 + j % 16] = 0.0f;
        }

        // The system and the scores.
        const float *const sum = sums[i % 4];
        const float *const betaOf = betas[i % 4];
        {
            const int rowX = warp * 16 + g, rowY = (3 - warp) * 16 + g;
            const float sumX0 = sum[rowX], sumX1 = sum[rowX + 8], sumY0 = sum[rowY], sumY1 = sum[rowY + 8];
            const float betaX0 = betaOf[rowX], betaX1 = betaOf[rowX + 8];
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                const int n = b <= warp ? b : b - warp - 1;
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const float(&d)[4] = blocks[b][h];
                    const int column = n * 16 + h * 8 + 2 * c;
                    const float2 of = *reinterpret_cast<const float2 *>(sum + column);
                    if (b <= warp) {
                        // On and above the diagonal anything may stand: the inversion does not use it.
                        *reinterpret_cast<float2 *>(&m[rowX][column]) =
                            make_float2(betaX0 * exp2Fast(sumX0 - of.x) * d[0], betaX0 * exp2Fast(sumX0 - of.y) * d[1]);
                        *reinterpret_cast<float2 *>(&m[rowX + 8][column]) =
                            make_float2(betaX1 * exp2Fast(sumX1 - of.x) * d[2], betaX1 * exp2Fast(sumX1 - of.y) * d[3]);
                    } else {
                        float r[4] = {exp2Fast(sumY0 - of.x) * d[0], exp2Fast(sumY0 - of.y) * d[1],
                                      exp2Fast(sumY1 - of.x) * d[2], exp2Fast(sumY1 - of.y) * d[3]};
                        if (b == 4) { // the block on the diagonal
                            r[0] = column <= rowY ? r[0] : 0.0f;
                            r[1] = column + 1 <= rowY ? r[1] : 0.0f;
                            r[2] = column <= rowY + 8 ? r[2] : 0.0f;
                            r[3] = column + 1 <= rowY + 8 ? r[3] : 0.0f;
                        }
                        unsigned char *const at = staged + rowY * 128 + (((2 * n + h) ^ g) * 16) + 4 * c;
                        *reinterpret_cast<unsigned *>(at) = pack(r[0], r[1]);
                        *reinterpret_cast<unsigned *>(at + 8 * 128) = pack(r[2], r[3]);
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
            uint4 *const to = reinterpret_cast<uint4 *>(record);
#pragma unroll
            for (int j = thread - 64; j < 512; j += 64) {
                const int row = j / 8, part = (j % 8) ^ (row % 8);
                uint4 value = make_uint4(0, 0, 0, 0);
                if (part / 2 <= row / 16)
                    value = *reinterpret_cast<const uint4 *>(staged + j * 16);
                to[j] = value;
            }
        }
        __syncthreads();

        {
            // The result goes above the diagonal, where nobody reads, so that nothing has to be waited for.
            float block[2][4] = {};
            mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16);
            storeBlock(m, block, warp / 2 * 16, 32 + warp % 2 * 16);
        }
        __syncthreads();

        {
            uint4 *const to = reinterpret_cast<uint4 *>(record + 2048);
#pragma unroll
            for (int j = thread; j < 512; j += 128) {
                const int row = j / 8, part = (j % 8) ^ (row % 8), column = part * 8;
                uint4 value = make_uint4(0, 0, 0, 0);
                if (part / 2 <= row / 16) {
                    const float *const from = row >= 32 && part < 4 ? &m[row - 32][column + 32] : &m[row][column];
                    const float4 x = *reinterpret_cast<const float4 *>(from);
                    const float4 y = *reinterpret_cast<const float4 *>(from + 4);
                    const float4 bx = *reinterpret_cast<const float4 *>(betaOf + column);
                    const float4 by = *reinterpret_cast<const float4 *>(betaOf + column + 4);
                    value = make_uint4(pack(x.x * bx.x, x.y * bx.y), pack(x.z * bx.z, x.w * bx.w),
                                       pack(y.x * by.x, y.y * by.y), pack(y.z * by.z, y.w * by.w));
                }
                to[j] = value;
            }
        }
        __syncthreads(); // before the next member takes the room
    }
}

// ---------------------------------------------------------------------------------------------- the second launch

// Rows of 128 swizzled bytes, 1024 bytes from one group of 8 rows to the next; the address, in units of 16 bytes, is
// added. A right operand whose rows are the columns of the result, and one whose rows are summed over.
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
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

template <int COUNT>
__device__ __forceinline__ void packOperands(unsigned (&to)[COUNT][4], const float (&from)[8 * COUNT])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

__device__ __forceinline__ void readFactors(float2 (&to)[8], const float *from)
{
#pragma unroll
    for (int n = 0; n < 8; ++n)
        to[n] = *reinterpret_cast<const float2 *>(from + n * 8);
}

// A thread's sums of a chunk to the swizzled boxes, token by token; `to` is where the first one belongs.
__device__ __forceinline__ void stageSums(unsigned to, const float (&d)[32])
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned at = (to ^ (i / 2 * 32 + i % 2 * 16)) + i % 2 * 128;
#pragma unroll
        for (int n = 0; n < 8; ++n)
            asm volatile("st.shared.f32 [%0], %1;" :: "r"(at + n * 1024), "f"(d[4 * n + i]) : "memory");
    }
}

__device__ __forceinline__ void fenceStaged()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void syncConsumers()
{
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(160, 1)
gated_delta_walk(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
                 const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapO,
                 const float *records, const float *initial_state, float *final_state,
                 int T, int HQ, int HV, float scale)
{
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];

    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int firstColumn = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + CHUNK - 1) / CHUNK;

    const unsigned raw = sharedAddress(dynamicShared);
    const unsigned ring = (raw + 1023) & ~1023u;
    const unsigned char *const ringPointer = dynamicShared + (ring - raw);
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        fenceBarriers();
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int keyHead = head / (HV / HQ);
            const float *const from = records + (size_t(batch) * HV + head) * chunks * RECORD_FLOATS;
            const auto copyInputs = [&](int chunk) {
                const unsigned to = ring + chunk % STAGES * STAGE_BYTES, barrier = full + chunk % STAGES * 8;
                const int token = chunk * CHUNK;
                expectBytes(barrier, STAGE_COPIED);
                copyBox(to + K_AT, mapK, 0, keyHead, token, batch, barrier);
                copyBox(to + K_AT + TILE, mapK, 64, keyHead, token, batch, barrier);
                copyBox(to + V_AT, mapV, firstColumn, head, token, batch, barrier);
                copyBox(to + Q_AT, mapQ, 0, keyHead, token, batch, barrier);
                copyBox(to + Q_AT + TILE, mapQ, 64, keyHead, token, batch, barrier);
            };
            const auto copyRecord = [&](int chunk) {
                copyBytes(ring + chunk % STAGES * STAGE_BYTES + RECORD_AT, from + size_t(chunk) * RECORD_FLOATS,
                          RECORD_BYTES, full + chunk % STAGES * 8);
            };
            const int early = chunks < STAGES ? chunks : STAGES;
            for (int chunk = 0; chunk < early; ++chunk)
                copyInputs(chunk);
            // The first launch has ended, and its records are visible.
            asm volatile("griddepcontrol.wait;" ::: "memory");
            asm volatile("fence.proxy.async;" ::: "memory"); // to the copy engine, too
            for (int chunk = 0; chunk < early; ++chunk)
                copyRecord(chunk);
            for (int chunk = early; chunk < chunks; ++chunk) {
                waitPhase(empty + chunk % STAGES * 8, (chunk / STAGES - 1) & 1);
                copyInputs(chunk);
                copyRecord(chunk);
            }
        }
        return;
    }

    const int g = lane / 4, c = lane % 4;

    // The state, transposed: a row of the products is a column of the state.
    const size_t stateAt = (size_t(batch) * HV + head) * DIM * DIM + firstColumn + warp * 16 + g;
    float state[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[stateAt + (i / 4 * 8 + 2 * c + i % 2) * DIM + i % 4 / 2 * 8];

    float next[32], out[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        next[i] = 0.0f;
        out[i] = 0.0f;
    }
    unsigned left[8][4], rest[4][4], update[4][4];
    packOperands(left, state);

    // This thread's row of V's matrices, and its place in the outputs' boxes.
    const unsigned valuesAt = V_AT + (lane / 16 * 8 + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ (lane % 8)) * 16;
    const unsigned boxes = ring + STAGES * STAGE_BYTES;
    const unsigned sumsAt =
        warp / 2 * TILE + 2 * c * 128 + ((warp % 2 * 4 + g / 4) ^ (2 * c)) * 16 + g % 4 * 4;

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        waitPhase(full + 8 * stage, parity);
        __syncwarp();
        const unsigned base = ring + stage * STAGE_BYTES;
        const unsigned tiles = __shfl_sync(~0u, (base & 0x3ffff) >> 4, 0);
        const float *const factors = reinterpret_cast<const float *>(ringPointer + stage * STAGE_BYTES + FACTORS_AT);

        // What the state predicts of the keys.
        hold(left);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(next, left[step], ALONG + (tiles + (K_AT + step / 4 * TILE + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // Beside it, the outputs of the chunk before leave their registers; at first there are none.
        const unsigned box = boxes + (chunk + 1) % 2 * OUT_BYTES;
        stageSums(box + sumsAt, out);

        // What the state gives to the queries.
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (Q_AT + step / 4 * TILE + step % 4 * 32) / 16), step > 0);
        commitProducts();

        fenceStaged();
        if (thread == 0)
            waitStoresRead(); // the other box, which the next chunk writes to, has been read
        syncConsumers();
        if (thread == 0 && chunk > 0) {
            storeBox(mapO, firstColumn, head, (chunk - 1) * CHUNK, batch, box);
            storeBox(mapO, firstColumn + 32, head, (chunk - 1) * CHUNK, batch, box + TILE);
            commitStores();
        }
        __syncwarp();

        unsigned values[4][4];
        float2 factor[8];
#pragma unroll
        for (int p = 0; p < 4; ++p)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(values[p][0]), "=r"(values[p][1]), "=r"(values[p][2]), "=r"(values[p][3])
                         : "r"(base + valuesAt + p * 2048) : "memory");
        readFactors(factor, factors + 2 * c);
        const float whole = factors[CHUNK - 1];

        waitProducts<1>();
        hold(next);
#pragma unroll
        for (int p = 0; p < 4; ++p) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float low = __uint_as_float(values[p][e] << 16);
                const float high = __uint_as_float(values[p][e] & 0xffff0000u);
                rest[p][e] = pack(low - factor[2 * p + e / 2].x * next[8 * p + 2 * e],
                                  high - factor[2 * p + e / 2].y * next[8 * p + 2 * e + 1]);
            }
        }

        // The updates, by the solution of the triangular system.
        hold(rest);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(next, rest[step], ALONG + (tiles + (SOLUTION_AT + step * 32) / 16), step > 0);
        commitProducts();

        float2 toEnd[8];
        readFactors(toEnd, factors + CHUNK + 2 * c);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;

        waitProducts<0>();
        hold(out);
        hold(next);
        hold(left);
        hold(rest);

        // The next state.
#pragma unroll
        for (int p = 0; p < 4; ++p) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                update[p][e] = pack(toEnd[2 * p + e / 2].x * next[8 * p + 2 * e],
                                    toEnd[2 * p + e / 2].y * next[8 * p + 2 * e + 1]);
        }
        hold(update);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, update[step], ACROSS + (tiles + (K_AT + step * 2048) / 16));
        commitProducts();

        // In its shadow, what the updates give to the queries.
        packOperands(rest, next);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float even = scale * factor[n].x, odd = scale * factor[n].y;
            out[4 * n] *= even;
            out[4 * n + 1] *= odd;
            out[4 * n + 2] *= even;
            out[4 * n + 3] *= odd;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES_AT + step * 32) / 16), 1);
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
            parity ^= 1;
        }
    }

    // The outputs of the last chunk.
    const unsigned box = boxes + (chunks + 1) % 2 * OUT_BYTES;
    stageSums(box + sumsAt, out);
    fenceStaged();
    syncConsumers();
    if (thread == 0) {
        storeBox(mapO, firstColumn, head, (chunks - 1) * CHUNK, batch, box);
        storeBox(mapO, firstColumn + 32, head, (chunks - 1) * CHUNK, batch, box + TILE);
        commitStores();
    }
    __syncwarp();

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateAt + (i / 4 * 8 + 2 * c + i % 2) * DIM + i % 4 / 2 * 8] = state[i];

    if (thread == 0)
        waitStoresRead(); // shared memory goes away with the block
}
