/*klineage
surface = "cuda"

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

[[launch]]
kernel = "prepare"
grid = ["ceil_div(T, 64)", "HV", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 64 * 68 * 4 + 1024"
args = ["q", "k", "g", "beta", "solution", "scores", "decays", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "pass_state"
grid = [2, "HV", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 1024"
args = ["q", "k", "v", "solution", "scores", "decays", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
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
// outputs, decays = exp(G[t]) and exp(G[63] - G[t]). It inverts I + L by blocks: those of 16 × 16 on the diagonal by
// substitution, then twice a pair of neighbours becomes one, as the inverse of (P 0; Q R) is (P⁻¹ 0; -R⁻¹ Q P⁻¹ R⁻¹), by
// products in tf32. pass_state() goes from chunk to chunk, on the tensor cores. It
// computes with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result of one product has the
// layout of the left operand of the next, so that no intermediate result leaves the registers.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int EDGE = 16;       // of the blocks of the triangular system
constexpr int PITCH = 68;      // of rows in single precision; 4 banks from row to row keep all loads of operands free of conflicts

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

// d += a · b, 16 × 8 times 8 × 8, in tf32.
__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned toTf32(float number)
{
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(number));
    return rounded;
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

// A block of 16 × 16 on the diagonal becomes its inverse: each half of a warp has a block, each lane a column of the inverse.
// Before, the block holds the transpose of L above its diagonal; what lies on and below the diagonal does not matter.
__device__ __forceinline__ void invertBlock(float *block)
{
    const int column = threadIdx.x % EDGE;
    float x[EDGE];
#pragma unroll
    for (int t = 0; t < EDGE; ++t)
        x[t] = t == column ? 1.0f : 0.0f;
#pragma unroll
    for (int s = 0; s < EDGE - 1; ++s) {
#pragma unroll
        for (int part = 0; part < EDGE / 4; ++part) {
            if (4 * part + 3 > s) {
                const float4 four = *reinterpret_cast<const float4 *>(block + s * PITCH + 4 * part);
                const float factors[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (4 * part + i > s)
                        x[4 * part + i] -= factors[i] * x[s];
                }
            }
        }
    }
    __syncwarp(); // all lanes have read the block
#pragma unroll
    for (int t = 0; t < EDGE; ++t)
        block[t * PITCH + column] = x[t];
}

// A block of 16 × 16 as left operands, 8 columns each.
__device__ __forceinline__ void loadLeft(unsigned (&to)[2][4], const float *block)
{
    const int lane = threadIdx.x % 32;
    const float *from = block + lane / 4 * PITCH + lane % 4;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
        to[step][0] = toTf32(from[step * 8]);
        to[step][1] = toTf32(from[step * 8 + 8 * PITCH]);
        to[step][2] = toTf32(from[step * 8 + 4]);
        to[step][3] = toTf32(from[step * 8 + 8 * PITCH + 4]);
    }
}

// d += left · blockᵀ, 16 × 16 each.
__device__ __forceinline__ void multiplyTransposed(float (&d)[2][4], const unsigned (&left)[2][4], const float *block)
{
    const int lane = threadIdx.x % 32;
    const float *from = block + lane / 4 * PITCH + lane % 4;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const float *at = from + n * 8 * PITCH + step * 8;
            multiplyTf32(d[n], left[step], toTf32(at[0]), toTf32(at[4]));
        }
    }
}

// Results of a product, negated, as left operands of multiplyPaired(). A thread has the columns 2i and 2i + 1 of 8 where a left
// operand has i and i + 4; the order of what is summed over does not matter as long as the right operand has the same.
__device__ __forceinline__ void packNegative(unsigned (&to)[2][4], const float (&d)[2][4])
{
#pragma unroll
    for (int step = 0; step < 2; ++step) {
        to[step][0] = toTf32(-d[step][0]);
        to[step][1] = toTf32(-d[step][2]);
        to[step][2] = toTf32(-d[step][1]);
        to[step][3] = toTf32(-d[step][3]);
    }
}

// d += left · block, 16 × 16 each, with the left operands of packNegative().
__device__ __forceinline__ void multiplyPaired(float (&d)[2][4], const unsigned (&left)[2][4], const float *block)
{
    const int lane = threadIdx.x % 32;
    const float *from = block + lane % 4 * 2 * PITCH + lane / 4;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const float *at = from + step * 8 * PITCH + n * 8;
            multiplyTf32(d[n], left[step], toTf32(at[0]), toTf32(at[PITCH]));
        }
    }
}

__device__ __forceinline__ void storeBlock(float *block, const float (&d)[2][4])
{
    const int lane = threadIdx.x % 32;
    float *to = block + lane / 4 * PITCH + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        *reinterpret_cast<float2 *>(to + n * 8) = make_float2(d[n][0], d[n][1]);
        *reinterpret_cast<float2 *>(to + n * 8 + 8 * PITCH) = make_float2(d[n][2], d[n][3]);
    }
}

extern "C" __global__ void __launch_bounds__(128, 4)
    prepare(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g,
            const float *__restrict__ beta, __nv_bfloat16 *__restrict__ solution, __nv_bfloat16 *__restrict__ scores,
            float *__restrict__ decays, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ float sums[C];
    __shared__ __align__(16) float betas[C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2;
    // The transpose of L above the diagonal; the inverse of I + L comes below it, and in the blocks on it.
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
                if (s + i < t)
                    system[s + i][t] = betas[t] * decay * kk[n][2 * half + i];
            }
            *reinterpret_cast<unsigned *>(scores + tile * C * C + t * C + s) = pack(score[0], score[1]);
        }
    }
    __syncthreads();

    // A warp inverts two neighbouring blocks on the diagonal and merges them.
    if (warp < 2) {
        const int top = warp * 2 * EDGE, low = top + EDGE;
        const int own = lane < EDGE ? top : low;
        invertBlock(&system[own][own]);
        __syncwarp();
        unsigned left[2][4];
        float between[2][4] = {}, merged[2][4] = {};
        loadLeft(left, &system[low][low]);
        multiplyTransposed(between, left, &system[top][low]);
        packNegative(left, between);
        multiplyPaired(merged, left, &system[top][top]);
        storeBlock(&system[low][top], merged);
    }
    __syncthreads();

    // The same with the two inverses of 32 × 32; each warp computes 16 × 16 numbers.
    {
        const int row = (2 + warp / 2) * EDGE, column = warp % 2 * EDGE;
        unsigned left[2][4];
        float between[2][2][4] = {}, merged[2][4] = {};
#pragma unroll
        for (int middle = 2 * EDGE; middle < C; middle += EDGE) {
            if (middle <= row) {
                loadLeft(left, &system[row][middle]);
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    multiplyTransposed(between[i], left, &system[i * EDGE][middle]);
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            if (i * EDGE >= column) {
                packNegative(left, between[i]);
                multiplyPaired(merged, left, &system[i * EDGE][column]);
            }
        }
        storeBlock(&system[row][column], merged);
    }
    __syncthreads();
    for (int i = thread; i < C * C / 8; i += 128) {
        const int t = i / (C / 8), s = i % (C / 8) * 8;
        uint4 eight = make_uint4(0, 0, 0, 0);
        if (s / EDGE <= t / EDGE) {
            const float4 a = *reinterpret_cast<const float4 *>(&system[t][s]);
            const float4 b = *reinterpret_cast<const float4 *>(&system[t][s + 4]);
            const float4 x = *reinterpret_cast<const float4 *>(&betas[s]);
            const float4 y = *reinterpret_cast<const float4 *>(&betas[s + 4]);
            eight.x = pack(a.x * x.x, a.y * x.y);
            eight.y = pack(a.z * x.z, a.w * x.w);
            eight.z = pack(b.x * y.x, b.y * y.y);
            eight.w = pack(b.z * y.z, b.w * y.w);
        }
        *reinterpret_cast<uint4 *>(solution + tile * C * C + 8 * i) = eight;
    }
}

extern "C" __global__ void __launch_bounds__(128)
    pass_state(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
               const __nv_bfloat16 *__restrict__ v, const __nv_bfloat16 *__restrict__ solution,
               const __nv_bfloat16 *__restrict__ scores, const float *__restrict__ decays,
               const float *__restrict__ initial_state, float *__restrict__ output, float *__restrict__ final_state,
               int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float gates[2 * C];
    const unsigned ks = (sharedAddress(dynamicShared) + 1023) & ~1023u, qs = ks + C * D * 2;
    const unsigned vs = qs + C * D * 2, solutions = vs + C * C * 2, scoress = solutions + C * C * 2;

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int chunks = (T + C - 1) / C;
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

    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int valid = min(C, T - chunk * C);
        const size_t token = size_t(batch) * T + chunk * C;
        const size_t tile = (size_t(batch) * HV + head) * chunks + chunk;
        const size_t row0 = (token * HQ + head / (HV / HQ)) * D;
        copyTile<16>(ks, k + row0, size_t(HQ) * D, valid);
        copyTile<16>(qs, q + row0, size_t(HQ) * D, valid);
        copyTile<8>(vs, v + (token * HV + head) * D + blockIdx.x * 64, size_t(HV) * D, valid);
        copyTile<8>(solutions, solution + tile * C * C, C, C);
        copyTile<8>(scoress, scores + tile * C * C, C, C);
        if (thread < 32)
            copyAsync16(sharedAddress(gates + 4 * thread), decays + tile * 2 * C + 4 * thread, true);
        commitCopies();
        waitCopies<0>();
        __syncthreads();

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
        __syncthreads(); // the next chunk overwrites the tiles
    }

#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            final_state[stateAt + (n * 8 + pair + i % 2) * D + i / 2 * 8] = state[n][i];
    }
}
