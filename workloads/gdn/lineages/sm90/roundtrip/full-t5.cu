/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_q"
tensor = "q"
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

[[workspace]]
name = "prep"
dtype = "f32"
shape = ["B * HV * ceil_div(T, 64) * 4224"]
init = "poison"

[[launch]]
kernel = "gdn_prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "52224"
args = ["tm_k", "tm_q", "g", "beta", "prep", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_walk"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_k", "tm_q", "tm_v", "tm_out", "prep", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule from chunk to chunk of 64 tokens. With G the running sums of a chunk's log gates and S the state before it:
//   (I + L) U = diag(beta) (V - diag(exp G) K S),  L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] for s < t
//   out[t]    = scale (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S         = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T

#include <cuda_bf16.h>

constexpr int CHUNK = 64;
constexpr int WIDTH = 128;               // D
constexpr int PITCH = 68;                // of the float matrix that is inverted

// The record of a chunk and head, as it lies in memory and in a stage: solution and scores, 64 rows of 128 swizzled
// bytes each, then exp(G) and exp(G[63] - G).
constexpr unsigned RECORD_SOLUTION = 0, RECORD_SCORES = 8192, RECORD_FACTORS = 16384, RECORD_BYTES = 16896;

// A stage of the walk.
constexpr int STAGES = 3;
constexpr unsigned K_TILE = 0, Q_TILE = 16384, V_TILE = 32768, RECORD = 40960;
constexpr unsigned SOLUTION_TILE = RECORD + RECORD_SOLUTION, SCORES_TILE = RECORD + RECORD_SCORES;
constexpr unsigned FACTORS = RECORD + RECORD_FACTORS;
constexpr unsigned STAGE_BYTES = 58368;  // 57 * 1024
constexpr unsigned STAGE_COPIED = RECORD + RECORD_BYTES;
constexpr unsigned OUTPUT_BYTES = 16384; // two boxes of 64 tokens by 32 columns

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

extern __shared__ __align__(1024) unsigned char dynamicShared[];

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// ---------------------------------------------------------------- barriers and copies

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void fenceBarrierInit()
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
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap &map, int column, int head, int token, int batch, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(&map), "r"(column), "r"(head), "r"(token), "r"(batch), "r"(from) : "memory");
}

__device__ __forceinline__ void storeBytes(void *to, unsigned from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commitStores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// All stores of this thread have read their shared memory.
__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// All stores of this thread are complete.
__device__ __forceinline__ void waitStores()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// What this thread wrote to shared memory becomes visible to the copy engine.
__device__ __forceinline__ void fenceAsync()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---------------------------------------------------------------- shared memory

__device__ __forceinline__ void storeWord(unsigned to, unsigned value)
{
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(to), "r"(value) : "memory");
}

__device__ __forceinline__ void storeFloat(unsigned to, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" :: "r"(to), "f"(value) : "memory");
}

__device__ __forceinline__ void storeZeros16(unsigned to)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(to), "r"(0) : "memory");
}

__device__ __forceinline__ float2 readPair(unsigned from)
{
    float2 value;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(value.x), "=f"(value.y) : "r"(from) : "memory");
    return value;
}

__device__ __forceinline__ float readFloat(unsigned from)
{
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
    return value;
}

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

// Where a 16-byte chunk, 0 to 15, of a row of 128 elements lies: two halves of 64 swizzled rows of 128 bytes.
__device__ __forceinline__ unsigned wide(int row, int chunk)
{
    return unsigned(chunk / 8 * 8192 + row * 128 + ((chunk % 8) ^ (row % 8)) * 16);
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// ---------------------------------------------------------------- products of a warp

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

// ---------------------------------------------------------------- the triangular system

// Inverts the blocks of 16 x 16 on the diagonal, a thread for each column; by the first two warps. Only what lies below
// the diagonal is used; the whole blocks are written.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
    for (int k = 0; k < 16; k += 4) {
        const float4 r1 = *reinterpret_cast<const float4 *>(&m[first + k + 1][first + k]);
        const float4 r2 = *reinterpret_cast<const float4 *>(&m[first + k + 2][first + k]);
        const float4 r3 = *reinterpret_cast<const float4 *>(&m[first + k + 3][first + k]);
        x[k + 1] -= r1.x * x[k];
        x[k + 2] -= r2.x * x[k];
        x[k + 3] -= r3.x * x[k];
        x[k + 2] -= r2.y * x[k + 1];
        x[k + 3] -= r3.y * x[k + 1];
        x[k + 3] -= r3.z * x[k + 2];
#pragma unroll
        for (int i = k + 4; i < 16; ++i) {
            const float4 r = *reinterpret_cast<const float4 *>(&m[first + i][first + k]);
            x[i] -= r.x * x[k];
            x[i] -= r.y * x[k + 1];
            x[i] -= r.z * x[k + 2];
            x[i] -= r.w * x[k + 3];
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        m[first + i][first + column] = x[i];
}

// 16 x 16 of -C^-1 B A^-1, where A and C are SIZE x SIZE, A begins at `first`, and both are inverted already: the rows
// from `row` of C on, the columns from `column` of A on. By one warp. Blocks above the diagonal are not read.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], float (*m)[PITCH], int first, int row, int column)
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
            for (int n = 0; n < SIZE; n += 8)
                if (n >= column)
                    multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                                 toTf32(m[second + k + c + 4][first + n + g]));
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

// The running sums of a chunk's log gates, the decays from its start and to its end, and the corrections; by one warp.
// Steps after the last one neither decay nor correct.
__device__ __forceinline__ void prepareFactors(float *sums, float *betas, float *decays, const float *gates,
                                               const float *corrections, size_t pitch, int valid)
{
    const int lane = threadIdx.x % 32;
    const bool hasEven = 2 * lane < valid, hasOdd = 2 * lane + 1 < valid;
    const size_t atEven = size_t(2 * lane) * pitch, atOdd = atEven + pitch;
    const float even = hasEven ? gates[atEven] : 0.0f;
    const float odd = hasOdd ? gates[atOdd] : 0.0f;
    const float betaEven = hasEven ? corrections[atEven] : 0.0f;
    const float betaOdd = hasOdd ? corrections[atOdd] : 0.0f;
    float sum = even + odd;
    const float own = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    // The sum up to the even one, from exactly the sum that the lane before has.
    const float upTo = __shfl_up_sync(~0u, sum, 1);
    const float before = (lane > 0 ? upTo : 0.0f) + even;
    const float last = __shfl_sync(~0u, sum, 31);
    (void)own;
    sums[2 * lane] = before;
    sums[2 * lane + 1] = sum;
    betas[2 * lane] = betaEven;
    betas[2 * lane + 1] = betaOdd;
    decays[2 * lane] = expf(before);
    decays[2 * lane + 1] = expf(sum);
    decays[CHUNK + 2 * lane] = expf(last - before);
    decays[CHUNK + 2 * lane + 1] = expf(last - sum);
}

// What needs no state: a block for a chunk and a head of keys, with all the heads of values that use it.
extern "C" __global__ void __launch_bounds__(128, 4)
gdn_prepare(const __grid_constant__ TensorMap tmK, const __grid_constant__ TensorMap tmQ, const float *gates,
            const float *corrections, float *prep, int T, int HQ, int HV, float scale)
{
    __shared__ unsigned long long barrierStorage;
    __shared__ __align__(16) float sums[4][CHUNK];
    __shared__ __align__(16) float betas[4][CHUNK];
    __shared__ __align__(16) float decays[4][2 * CHUNK];

    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const int row8 = lane / 4, c = lane % 4;
    const int group = blockIdx.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / HQ, chunks = gridDim.y;
    const int firstToken = chunk * CHUNK;
    const int valid = T - firstToken < CHUNK ? T - firstToken : CHUNK;

    const unsigned start = sharedAddress(dynamicShared);
    const unsigned rooms = (start + 1023) & ~1023u;
    const unsigned tileK = rooms, tileQ = rooms + 16384;
    float(*m)[PITCH] = reinterpret_cast<float(*)[PITCH]>(dynamicShared + (rooms - start) + 2 * RECORD_BYTES);
    const unsigned barrier = sharedAddress(&barrierStorage);

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    if (thread == 0) {
        initBarrier(barrier, 1);
        fenceBarrierInit();
        expectBytes(barrier, 32768);
        copyBox(tileK, tmK, 0, group, firstToken, batch, barrier);
        copyBox(tileQ, tmQ, 0, group, firstToken, batch, barrier);
        copyBox(tileK + 8192, tmK, 64, group, firstToken, batch, barrier);
        copyBox(tileQ + 8192, tmQ, 64, group, firstToken, batch, barrier);
    }
    __syncthreads();

    const size_t gateBase = (size_t(batch) * T + firstToken) * HV + size_t(group) * ratio;
    if (warp < ratio)
        prepareFactors(sums[warp], betas[warp], decays[warp], gates + gateBase + warp, corrections + gateBase + warp,
                       size_t(HV), valid);
    waitPhase(barrier, 0);
    __syncwarp();

    // Row `warp` of the blocks of K K^T and row 3 - warp of those of Q K^T, up to the diagonal: five for each warp.
    float blocks[5][2][4];
#pragma unroll
    for (int b = 0; b < 5; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                blocks[b][h][i] = 0.0f;
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned left[4], other[4], right[4];
        loadMatrices(left, tileK + wide(warp * 16 + lane % 16, 2 * step + lane / 16));
        loadMatrices(other, tileQ + wide((3 - warp) * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int b = 0; b < 5; ++b) {
            const int n = b <= warp ? b : b - warp - 1;
            loadMatrices(right, tileK + wide(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            if (b <= warp) {
                multiply(blocks[b][0], left, right[0], right[1]);
                multiply(blocks[b][1], left, right[2], right[3]);
            } else {
                multiply(blocks[b][0], other, right[0], right[1]);
                multiply(blocks[b][1], other, right[2], right[3]);
            }
        }
    }
    __syncthreads(); // the tiles become two rooms for records; the factors are there

    // Blocks above the diagonal are zero in both rooms for good.
    for (int j = thread; j < 512; j += 128) {
        const int row = j / 8, part = j % 8;
        if (part / 2 > row / 16) {
            const unsigned at = rooms + unsigned(row * 128 + (part ^ (row % 8)) * 16);
            storeZeros16(at + RECORD_SOLUTION);
            storeZeros16(at + RECORD_SCORES);
            storeZeros16(at + RECORD_BYTES + RECORD_SOLUTION);
            storeZeros16(at + RECORD_BYTES + RECORD_SCORES);
        }
    }

    for (int i = 0; i < ratio; ++i) {
        if (i > 0 && i % 4 == 0) {
            if (i + warp < ratio)
                prepareFactors(sums[warp], betas[warp], decays[warp], gates + gateBase + i + warp,
                               corrections + gateBase + i + warp, size_t(HV), valid);
            __syncthreads();
        }
        const float *sum = sums[i % 4], *beta = betas[i % 4], *decay = decays[i % 4];
        const unsigned room = rooms + unsigned(i % 2) * RECORD_BYTES;

        // The system, in float, and the scores.
        {
            const int systemRow = warp * 16 + row8, scoreRow = (3 - warp) * 16 + row8;
            const float g0 = sum[systemRow], g1 = sum[systemRow + 8];
            const float b0 = beta[systemRow], b1 = beta[systemRow + 8];
            const float p0 = sum[scoreRow], p1 = sum[scoreRow + 8];
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                const bool ofSystem = b <= warp;
                const int n = ofSystem ? b : b - warp - 1;
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int column = n * 16 + h * 8 + 2 * c;
                    const float2 s = *reinterpret_cast<const float2 *>(sum + column);
                    if (ofSystem) {
                        float2 up, down;
                        up.x = column < systemRow ? b0 * __expf(g0 - s.x) * blocks[b][h][0] : 0.0f;
                        up.y = column + 1 < systemRow ? b0 * __expf(g0 - s.y) * blocks[b][h][1] : 0.0f;
                        down.x = column < systemRow + 8 ? b1 * __expf(g1 - s.x) * blocks[b][h][2] : 0.0f;
                        down.y = column + 1 < systemRow + 8 ? b1 * __expf(g1 - s.y) * blocks[b][h][3] : 0.0f;
                        *reinterpret_cast<float2 *>(&m[systemRow][column]) = up;
                        *reinterpret_cast<float2 *>(&m[systemRow + 8][column]) = down;
                    } else {
                        const float u0 = column <= scoreRow ? scale * __expf(p0 - s.x) * blocks[b][h][0] : 0.0f;
                        const float u1 = column + 1 <= scoreRow ? scale * __expf(p0 - s.y) * blocks[b][h][1] : 0.0f;
                        const float d0 = column <= scoreRow + 8 ? scale * __expf(p1 - s.x) * blocks[b][h][2] : 0.0f;
                        const float d1 = column + 1 <= scoreRow + 8 ? scale * __expf(p1 - s.y) * blocks[b][h][3] : 0.0f;
                        const unsigned at = room + RECORD_SCORES
                                            + unsigned(scoreRow * 128 + ((2 * n + h) ^ row8) * 16 + 4 * c);
                        storeWord(at, pack(u0, u1));
                        storeWord(at + 1024, pack(d0, d1));
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
        }
        __syncthreads();

        // The last merge goes from registers to the record; the other blocks of the inverse follow from the matrix.
        {
            const int row = warp / 2 * 16, column = warp % 2 * 16;
            float block[2][4] = {};
            mergeBlocks<32>(block, m, 0, row, column);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const float2 b = *reinterpret_cast<const float2 *>(beta + column + n * 8 + 2 * c);
                const unsigned at = room + RECORD_SOLUTION
                                    + unsigned((32 + row + row8) * 128 + ((column / 8 + n) ^ row8) * 16 + 4 * c);
                storeWord(at, pack(block[n][0] * b.x, block[n][1] * b.y));
                storeWord(at + 1024, pack(block[n][2] * b.x, block[n][3] * b.y));
            }
#pragma unroll
            for (int j = 0; j < 3; ++j) { // 8 rows of one of the blocks (0, 0), (1, 0), (1, 1), (2, 2), (3, 2), (3, 3)
                const int index = warp * 3 + j, which = index / 2, part = which % 3, corner = which / 3 * 2;
                const int from = (corner + (part > 0 ? 1 : 0)) * 16 + index % 2 * 8 + row8;
                const int across = (corner + (part == 2 ? 1 : 0)) * 16;
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    const int at = across + n * 8 + 2 * c;
                    const float2 x = *reinterpret_cast<const float2 *>(&m[from][at]);
                    const float2 b = *reinterpret_cast<const float2 *>(beta + at);
                    storeWord(room + RECORD_SOLUTION
                                  + unsigned(from * 128 + ((across / 8 + n) ^ row8) * 16 + 4 * c),
                              pack(x.x * b.x, x.y * b.y));
                }
            }
            storeFloat(room + RECORD_FACTORS + 4 * unsigned(thread), decay[thread]);
        }
        fenceAsync();
        if (thread == 0)
            waitStoresRead(); // the other room is free for the next head
        __syncthreads();
        if (thread == 0) {
            const size_t record = (size_t(batch) * HV + size_t(group) * ratio + i) * chunks + chunk;
            storeBytes(prep + record * (RECORD_BYTES / 4), room, RECORD_BYTES);
            commitStores();
        }
    }
    if (thread == 0)
        waitStores();
}

// ---------------------------------------------------------------- products of a warpgroup

// Rows of 128 swizzled bytes, 1024 bytes from one group of 8 rows to the next; where they begin, in units of 16 bytes, is
// added. A right operand whose rows are the columns of the result;
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

// ---------------------------------------------------------------- the walk

__device__ __forceinline__ void fetchInputs(const TensorMap &tmK, const TensorMap &tmQ, const TensorMap &tmV, unsigned to,
                                            unsigned barrier, int keyHead, int head, int firstColumn, int token, int batch)
{
    copyBox(to + K_TILE, tmK, 0, keyHead, token, batch, barrier);
    copyBox(to + K_TILE + 8192, tmK, 64, keyHead, token, batch, barrier);
    copyBox(to + V_TILE, tmV, firstColumn, head, token, batch, barrier);
    copyBox(to + Q_TILE, tmQ, 0, keyHead, token, batch, barrier);
    copyBox(to + Q_TILE + 8192, tmQ, 64, keyHead, token, batch, barrier);
}

__device__ __forceinline__ void syncConsumers()
{
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

// Outputs, transposed, to two swizzled boxes of 64 tokens by 32 columns; all lanes in different banks.
__device__ __forceinline__ void stageOutputs(const float (&out)[32], const unsigned (&places)[4], unsigned boxes)
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        storeFloat(boxes + places[i % 4] + unsigned(i / 4) * 1024, out[i]);
}

// Four warps own 64 columns of a head's state, as rows of its transpose; a fifth asks for the copies.
extern "C" __global__ void __launch_bounds__(160, 1)
gdn_walk(const __grid_constant__ TensorMap tmK, const __grid_constant__ TensorMap tmQ,
         const __grid_constant__ TensorMap tmV, const __grid_constant__ TensorMap tmOut, const float *prep,
         const float *initial_state, float *final_state, int T, int HQ, int HV, float scale)
{
    __shared__ unsigned long long barriers[2 * STAGES];

    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const int firstColumn = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z;
    const int keyHead = head / (HV / HQ);
    const int chunks = (T + CHUNK - 1) / CHUNK;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned boxes = ring + STAGES * STAGE_BYTES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        fenceBarrierInit();
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const float *records = prep + (size_t(batch) * HV + head) * chunks * (RECORD_BYTES / 4);
            const int ahead = chunks < STAGES ? chunks : STAGES;
            for (int chunk = 0; chunk < ahead; ++chunk) {
                expectBytes(full + 8 * chunk, STAGE_COPIED);
                fetchInputs(tmK, tmQ, tmV, ring + chunk * STAGE_BYTES, full + 8 * chunk, keyHead, head, firstColumn,
                            chunk * CHUNK, batch);
            }
            asm volatile("griddepcontrol.wait;" ::: "memory"); // the records are there
            asm volatile("fence.proxy.async.global;" ::: "memory");
            for (int chunk = 0; chunk < ahead; ++chunk)
                copyBytes(ring + chunk * STAGE_BYTES + RECORD, records + size_t(chunk) * (RECORD_BYTES / 4), RECORD_BYTES,
                          full + 8 * chunk);
            int stage = 0;
            unsigned parity = 0;
            for (int chunk = ahead; chunk < chunks; ++chunk) {
                waitPhase(empty + 8 * stage, parity);
                const unsigned to = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
                expectBytes(barrier, STAGE_COPIED);
                fetchInputs(tmK, tmQ, tmV, to, barrier, keyHead, head, firstColumn, chunk * CHUNK, batch);
                copyBytes(to + RECORD, records + size_t(chunk) * (RECORD_BYTES / 4), RECORD_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    // Number i of a thread: column lane / 4 + i % 4 / 2 * 8 of the warp's 16, row i / 4 * 8 + lane % 4 * 2 + i % 2.
    const size_t stateBase = (size_t(batch) * HV + head) * WIDTH * WIDTH + firstColumn + warp * 16 + lane / 4
                             + size_t(lane % 4 * 2) * WIDTH;
    float state[64], updates[32], out[32];
    unsigned left[8][4];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[stateBase + (i / 4 * 8 + i % 2) * WIDTH + i % 4 / 2 * 8];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        updates[i] = 0.0f;
        out[i] = 0.0f;
    }
    packOperands(left, state);

    // Where this thread's outputs lie in the boxes: number 2 j + h is 8 j columns and h tokens on.
    unsigned places[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int token = lane % 4 * 2 + i % 2, part = warp % 2 * 4 + lane / 16 + i / 2 * 2;
        places[i] = unsigned(warp / 2 * 8192 + token * 128 + (part ^ token) * 16 + lane / 4 % 4 * 4);
    }
    const unsigned placeV = V_TILE + unsigned((lane / 16 * 8 + lane % 8) * 128
                                              + ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16);
    const unsigned placeFactors = FACTORS + unsigned(lane % 4) * 8;

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned base = ring + stage * STAGE_BYTES;
        waitPhase(full + 8 * stage, parity);
        const unsigned tiles = __shfl_sync(~0u, (base & 0x3ffff) >> 4, 0);

        // S^T K^T
        hold(left);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(updates, left[step], ALONG + (tiles + (K_TILE + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // In its shadow the outputs of the chunk before leave.
        {
            const unsigned box = boxes + unsigned((chunk + 1) & 1) * OUTPUT_BYTES;
            stageOutputs(out, places, box);
            fenceAsync();
            if (threadIdx.x == 0)
                waitStoresRead(); // the other boxes may be written after the barrier
            syncConsumers();
            if (threadIdx.x == 0 && chunk > 0) {
                storeBox(tmOut, firstColumn, head, (chunk - 1) * CHUNK, batch, box);
                storeBox(tmOut, firstColumn + 32, head, (chunk - 1) * CHUNK, batch, box + 8192);
                commitStores();
            }
            __syncwarp();
        }

        // S^T Q^T
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (Q_TILE + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        unsigned values[4][4];
#pragma unroll
        for (int p = 0; p < 4; ++p)
            loadMatricesTransposed(values[p], base + placeV + p * 2048);
        float2 fromStart[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            fromStart[n] = readPair(base + placeFactors + n * 32);
        const float whole = readFloat(base + FACTORS + 63 * 4);

        waitProducts<1>();
        hold(updates);

        // V^T - exp(G) S^T K^T
        unsigned rest[4][4];
#pragma unroll
        for (int p = 0; p < 4; ++p) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 e = fromStart[2 * p + j / 2];
                const float low = __uint_as_float(values[p][j] << 16) - e.x * updates[8 * p + 2 * j];
                const float high = __uint_as_float(values[p][j] & 0xffff0000u) - e.y * updates[8 * p + 2 * j + 1];
                rest[p][j] = pack(low, high);
            }
        }

        // U^T
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int p = 0; p < 4; ++p)
            multiplyAlong(updates, rest[p], ALONG + (tiles + (SOLUTION_TILE + p * 32) / 16), p > 0);
        commitProducts();

        float2 toEnd[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            toEnd[n] = readPair(base + placeFactors + 256 + n * 32);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;

        waitProducts<0>();
        hold(left);
        hold(out);
        hold(updates);
        hold(rest);

        // The next state.
        unsigned decayed[4][4];
#pragma unroll
        for (int p = 0; p < 4; ++p) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 f = toEnd[2 * p + j / 2];
                decayed[p][j] = pack(updates[8 * p + 2 * j] * f.x, updates[8 * p + 2 * j + 1] * f.y);
            }
        }
        hold(decayed);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int p = 0; p < 4; ++p)
            multiplyAcross(state, decayed[p], ACROSS + (tiles + (K_TILE + p * 2048) / 16));
        commitProducts();

        // The outputs.
        packOperands(rest, updates);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float first = scale * fromStart[n].x, second = scale * fromStart[n].y;
            out[4 * n] *= first;
            out[4 * n + 1] *= second;
            out[4 * n + 2] *= first;
            out[4 * n + 3] *= second;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int p = 0; p < 4; ++p)
            multiplyAlong(out, rest[p], ALONG + (tiles + (SCORES_TILE + p * 32) / 16), 1);
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

    // The outputs of the last chunk, and the state after it.
    {
        const unsigned box = boxes + unsigned((chunks + 1) & 1) * OUTPUT_BYTES;
        stageOutputs(out, places, box);
        fenceAsync();
        syncConsumers();
        if (threadIdx.x == 0) {
            storeBox(tmOut, firstColumn, head, (chunks - 1) * CHUNK, batch, box);
            storeBox(tmOut, firstColumn + 32, head, (chunks - 1) * CHUNK, batch, box + 8192);
            commitStores();
        }
        __syncwarp();
    }
#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateBase + (i / 4 * 8 + i % 2) * WIDTH + i % 4 / 2 * 8] = state[i];
    if (threadIdx.x == 0)
        waitStores();
}
