/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3]

[[workspace]]
name = "solution"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", 64, 64]

[[workspace]]
name = "scores"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", 64, 64]

[[workspace]]
name = "decays"
dtype = "f32"
shape = ["B", "HV", "ceil_div(T, 64)", 2, 64]

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "128B"
fill = "zero"

[[tensormap]]
name = "tm_solution"
tensor = "solution"
box = [1, 1, 1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "tm_scores"
tensor = "scores"
box = [1, 1, 1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[launch]]
kernel = "prepare"
grid = ["ceil_div(T, 64)", "HV", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 64 * 68 * 4 + 1024"
args = ["q", "k", "g", "beta", "solution", "scores", "decays", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "pass_state"
grid = [2, "HV", "B"]
block = ["160"]
shared = "STAGES * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2) + 1024"
args = ["tm_q", "tm_k", "tm_v", "tm_solution", "tm_scores", "decays", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With G the sums of the log gates from the chunk's first token on and
// S the state before it, the updates U of all its tokens solve a triangular system,
//   (I + L) U = diag(beta) (V - diag(exp G) K S),   L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s]  below the diagonal,
// and everything else is a product of matrices:
//   outputs      exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s],  times 1/sqrt(D)
//   next state   exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]ᵀ
// prepare() does what needs no state, for all chunks at once: solution = (I + L)⁻¹ diag(beta), scores = the factors of U in the
// outputs, decays = exp(G[t]) and exp(G[63] - G[t]). pass_state() goes from chunk to chunk, on the tensor cores. It
// computes with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result of one product has the
// layout of the left operand of the next, so that no intermediate result leaves the registers. A warp of its own fills a
// ring of STAGES chunks by TMA, ahead of the four that compute.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in tf32. Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 68;      // of rows in single precision: the 8 rows of a left operand lie in different banks
constexpr int COMPUTING = 4;   // warps of pass_state() that compute; one more loads
constexpr unsigned STAGE_BYTES = 2 * C * D * 2 + 3 * C * C * 2; // the tiles of a chunk: k, q, v, solution, scores
constexpr unsigned DECAY_BYTES = 2 * C * 4;

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the chunk of 8 bf16 of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
// It is where TMA puts it, too, if the tile begins at a multiple of 1024 bytes.
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

template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// 64 rows of CHUNKS · 8 numbers to shared memory, zeros after `valid` rows; by 128 threads.
template <int CHUNKS>
__device__ __forceinline__ void copyTile(unsigned to, const __nv_bfloat16 *from, size_t pitch, int valid)
{
    for (int i = threadIdx.x; i < C * CHUNKS; i += 128) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        copyAsync16(to + place(row, chunk), from + (row < valid ? row * pitch : 0) + chunk * 8, row < valid);
    }
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void arriveExpecting(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

// Until the phase of this parity is over.
__device__ __forceinline__ void waitBarrier(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void prefetchMap(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

// 64 tokens by 64 columns of a head; zeros after the last token.
__device__ __forceinline__ void loadTokens(unsigned to, const TensorMap *map, unsigned barrier, int column, int head,
                                           int token, int batch)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(to), "l"(map), "r"(barrier), "r"(column), "r"(head), "r"(token), "r"(batch) : "memory");
}

// One of the matrices of 64 × 64 that prepare() left.
__device__ __forceinline__ void loadMatrix(unsigned to, const TensorMap *map, unsigned barrier, int chunk, int head,
                                           int batch)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
                 :: "r"(to), "l"(map), "r"(barrier), "r"(0), "r"(0), "r"(chunk), "r"(head), "r"(batch) : "memory");
}

__device__ __forceinline__ void loadBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
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

__device__ __forceinline__ float lowOf(unsigned pair)
{
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float highOf(unsigned pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

// Results of a product, 16 × 16 of them, as left operand of the next.
__device__ __forceinline__ void packOperand(unsigned (&to)[4], const float (&left)[4], const float (&right)[4])
{
    to[0] = pack(left[0], left[1]);
    to[1] = pack(left[2], left[3]);
    to[2] = pack(right[0], right[1]);
    to[3] = pack(right[2], right[3]);
}

// The sums of a chunk's log gates, and what follows from them; by one warp. Tokens after the last one do not decay.
__device__ __forceinline__ void sumGates(float *sums, float *decays, const float *g, size_t pitch, int valid)
{
    const int lane = threadIdx.x;
    const float even = 2 * lane < valid ? g[2 * lane * pitch] : 0.0f;
    float sum = even + (2 * lane + 1 < valid ? g[(2 * lane + 1) * pitch] : 0.0f);
    const float own = sum;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = sum - own + even; // up to the even one
    sums[2 * lane] = before;
    sums[2 * lane + 1] = sum;
    decays[2 * lane] = expf(before);
    decays[2 * lane + 1] = expf(sum);
    decays[C + 2 * lane] = expf(last - before);
    decays[C + 2 * lane + 1] = expf(last - sum);
}

// d += a · b, 16 × 8 times 8 × 8, in tf32.
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

// Inverts the blocks of 16 × 16 on the diagonal, a thread for each column; by two warps.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
#pragma unroll
        for (int i = k + 1; i < 16; ++i)
            x[i] -= m[first + i][first + k] * x[k];
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

// Inverts a lower triangular matrix with ones on its diagonal, in place; by 128 threads.
__device__ __forceinline__ void invert(float (*m)[PITCH])
{
    const int warp = threadIdx.x / 32;
    if (warp < 2) {
        invertDiagonal(m);
        __syncwarp();
        float block[2][4] = {}; // this warp's two blocks become one
        mergeBlocks<16>(block, m, warp * 32, 0, 0);
        __syncwarp();
        storeBlock(m, block, warp * 32 + 16, warp * 32);
    }
    __syncthreads();
    float block[2][4] = {};
    mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16);
    __syncthreads();
    storeBlock(m, block, 32 + warp / 2 * 16, warp % 2 * 16);
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128)
    prepare(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g,
            const float *__restrict__ beta, __nv_bfloat16 *__restrict__ solution, __nv_bfloat16 *__restrict__ scores,
            float *__restrict__ decays, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ float sums[C], betas[C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2;
    float(*system)[PITCH] = reinterpret_cast<float(*)[PITCH]>(tiles + 2 * C * D * 2);

    const int chunk = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;
    const size_t tile = (size_t(batch) * HV + head) * gridDim.x + chunk;
    const size_t row0 = (token * HQ + head / (HV / HQ)) * D;

    copyTile<16>(ks, k + row0, size_t(HQ) * D, valid);
    copyTile<16>(qs, q + row0, size_t(HQ) * D, valid);
    commitCopies();
    if (warp == 0)
        sumGates(sums, decays + tile * 2 * C, g + token * HV + head, HV, valid);
    if (thread < C)
        betas[thread] = thread < valid ? beta[(token + thread) * HV + head] : 0.0f;
    waitCopies<0>();
    __syncthreads();

    // A warp computes 16 rows of k · kᵀ and of q · kᵀ.
    float kk[8][4] = {}, qk[8][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned left[4], query[4];
        loadMatrices(left, ks + place(warp * 16 + lane % 16, 2 * step + lane / 16));
        loadMatrices(query, qs + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned right[4];
            loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            multiply(kk[2 * n], left, right[0], right[1]);
            multiply(kk[2 * n + 1], left, right[2], right[3]);
            multiply(qk[2 * n], query, right[0], right[1]);
            multiply(qk[2 * n + 1], query, right[2], right[3]);
        }
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int t = warp * 16 + half * 8 + lane / 4, s = n * 8 + lane % 4 * 2;
            float score[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float decay = s + i <= t ? expf(sums[t] - sums[s + i]) : 0.0f;
                score[i] = scale * decay * qk[n][2 * half + i];
                system[t][s + i] = s + i < t ? betas[t] * decay * kk[n][2 * half + i] : 0.0f;
            }
            *reinterpret_cast<unsigned *>(scores + tile * C * C + t * C + s) = pack(score[0], score[1]);
        }
    }
    __syncthreads();

    invert(system);
    for (int i = thread; i < C * C / 2; i += 128) {
        const int t = i / (C / 2), s = i % (C / 2) * 2;
        *reinterpret_cast<unsigned *>(solution + tile * C * C + 2 * i) =
            pack(system[t][s] * betas[s], system[t][s + 1] * betas[s + 1]);
    }
}

extern "C" __global__ void __launch_bounds__(160)
    pass_state(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k,
               const __grid_constant__ TensorMap tm_v, const __grid_constant__ TensorMap tm_solution,
               const __grid_constant__ TensorMap tm_scores, const float *__restrict__ decays,
               const float *__restrict__ initial_state, float *__restrict__ output, float *__restrict__ final_state,
               int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(128) float gateRing[STAGES][2 * C];
    // A stage is filled when its bytes have come, and emptied when every computing warp is through with it.
    __shared__ __align__(8) unsigned long long filledBarriers[STAGES], emptiedBarriers[STAGES];
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned filled = sharedAddress(filledBarriers), emptied = sharedAddress(emptiedBarriers);

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int chunks = (T + C - 1) / C;

    if (thread == COMPUTING * 32) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(filled + stage * 8, 1);
            initBarrier(emptied + stage * 8, COMPUTING);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        prefetchMap(&tm_k);
        prefetchMap(&tm_q);
        prefetchMap(&tm_v);
        prefetchMap(&tm_solution);
        prefetchMap(&tm_scores);
    }
    __syncthreads();

    // The loading warp: one of its lanes keeps the ring full.
    if (warp == COMPUTING) {
        if (lane == 0) {
            const int keyHead = head / (HV / HQ);
            const float *decay = decays + (size_t(batch) * HV + head) * chunks * (2 * C);
            int stage = 0;
            unsigned parity = 1; // nothing to wait for in the first round
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned barrier = filled + stage * 8;
                const unsigned ks = ring + stage * STAGE_BYTES, qs = ks + C * D * 2;
                const unsigned vs = qs + C * D * 2, solutions = vs + C * C * 2, scoress = solutions + C * C * 2;
                waitBarrier(emptied + stage * 8, parity);
                arriveExpecting(barrier, STAGE_BYTES + DECAY_BYTES);
                loadTokens(ks, &tm_k, barrier, 0, keyHead, chunk * C, batch);
                loadTokens(ks + C * 64 * 2, &tm_k, barrier, 64, keyHead, chunk * C, batch);
                loadTokens(qs, &tm_q, barrier, 0, keyHead, chunk * C, batch);
                loadTokens(qs + C * 64 * 2, &tm_q, barrier, 64, keyHead, chunk * C, batch);
                loadTokens(vs, &tm_v, barrier, blockIdx.x * 64, head, chunk * C, batch);
                loadMatrix(solutions, &tm_solution, barrier, chunk, head, batch);
                loadMatrix(scoress, &tm_scores, barrier, chunk, head, batch);
                loadBytes(sharedAddress(gateRing[stage]), decay + size_t(chunk) * (2 * C), DECAY_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    // The rows of Sᵀ in this thread: `column` and `column` + 8; its columns of 8-wide tiles: 2 · (lane % 4), and the next.
    const int column = blockIdx.x * 64 + warp * 16 + lane / 4, pair = lane % 4 * 2;
    const size_t stateAt = (size_t(batch) * HV + head) * D * D + column;

    float state[16][4];
#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            state[n][i] = initial_state[stateAt + (n * 8 + pair + i % 2) * D + i / 2 * 8];
    }

    // Rows of a right operand whose rows are the columns of the result; and of one whose rows are summed over.
    const int alongRow = lane / 16 * 8 + lane % 8, alongChunk = lane / 8 % 2;
    const int acrossRow = lane % 16, acrossChunk = lane / 16;

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int valid = min(C, T - chunk * C);
        const size_t token = size_t(batch) * T + chunk * C;
        const unsigned ks = ring + stage * STAGE_BYTES, qs = ks + C * D * 2;
        const unsigned vs = qs + C * D * 2, solutions = vs + C * C * 2, scoress = solutions + C * C * 2;
        const float *gates = gateRing[stage];
        waitBarrier(filled + stage * 8, parity);
        __syncwarp();

        // Sᵀ as left operand: times kᵀ and qᵀ.
        float updates[8][4] = {}, out[8][4] = {};
#pragma unroll
        for (int step = 0; step < 8; ++step) {
            unsigned left[4];
            packOperand(left, state[2 * step], state[2 * step + 1]);
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                unsigned right[4];
                loadMatrices(right, ks + place(n * 16 + alongRow, 2 * step + alongChunk));
                multiply(updates[2 * n], left, right[0], right[1]);
                multiply(updates[2 * n + 1], left, right[2], right[3]);
                loadMatrices(right, qs + place(n * 16 + alongRow, 2 * step + alongChunk));
                multiply(out[2 * n], left, right[0], right[1]);
                multiply(out[2 * n + 1], left, right[2], right[3]);
            }
        }

        // What the state does not say about the values yet.
        unsigned rest[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned values[4];
            loadMatricesTransposed(values, vs + place(n * 16 + alongRow, 2 * warp + alongChunk));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float(&u)[4] = updates[2 * n + i];
                float(&o)[4] = out[2 * n + i];
                const float2 decay = *reinterpret_cast<const float2 *>(gates + n * 16 + i * 8 + pair);
                u[0] = lowOf(values[2 * i]) - decay.x * u[0];
                u[1] = highOf(values[2 * i]) - decay.y * u[1];
                u[2] = lowOf(values[2 * i + 1]) - decay.x * u[2];
                u[3] = highOf(values[2 * i + 1]) - decay.y * u[3];
                o[0] *= scale * decay.x;
                o[1] *= scale * decay.y;
                o[2] *= scale * decay.x;
                o[3] *= scale * decay.y;
            }
            packOperand(rest[n], updates[2 * n], updates[2 * n + 1]);
        }

        // Solve; both matrices of the chunk are zero above the diagonal.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                updates[n][i] = 0.0f;
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int step = 0; step <= n; ++step) {
                unsigned right[4];
                loadMatrices(right, solutions + place(n * 16 + alongRow, 2 * step + alongChunk));
                multiply(updates[2 * n], rest[step], right[0], right[1]);
                multiply(updates[2 * n + 1], rest[step], right[2], right[3]);
            }
        }
#pragma unroll
        for (int n = 0; n < 4; ++n)
            packOperand(rest[n], updates[2 * n], updates[2 * n + 1]);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int step = 0; step <= n; ++step) {
                unsigned right[4];
                loadMatrices(right, scoress + place(n * 16 + alongRow, 2 * step + alongChunk));
                multiply(out[2 * n], rest[step], right[0], right[1]);
                multiply(out[2 * n + 1], rest[step], right[2], right[3]);
            }
        }
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int t = n * 8 + pair + i % 2;
                if (t < valid)
                    output[((token + t) * HV + head) * D + column + i / 2 * 8] = out[n][i];
            }
        }

        // Sᵀ decays and takes up the updates.
        const float forget = gates[C - 1];
#pragma unroll
        for (int n = 0; n < 16; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                state[n][i] *= forget;
        }
#pragma unroll
        for (int step = 0; step < 4; ++step) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float2 decay = *reinterpret_cast<const float2 *>(gates + C + step * 16 + i * 8 + pair);
                float(&u)[4] = updates[2 * step + i];
                u[0] *= decay.x;
                u[1] *= decay.y;
                u[2] *= decay.x;
                u[3] *= decay.y;
            }
            packOperand(rest[step], updates[2 * step], updates[2 * step + 1]);
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                unsigned right[4];
                loadMatricesTransposed(right, ks + place(step * 16 + acrossRow, 2 * n + acrossChunk));
                multiply(state[2 * n], rest[step], right[0], right[1]);
                multiply(state[2 * n + 1], rest[step], right[2], right[3]);
            }
        }

        // This warp is through with the stage; the loading warp may overwrite it.
        __syncwarp();
        if (lane == 0)
            arrive(emptied + stage * 8);
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }

#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            final_state[stateAt + (n * 8 + pair + i % 2) * D + i / 2 * 8] = state[n][i];
    }
}
