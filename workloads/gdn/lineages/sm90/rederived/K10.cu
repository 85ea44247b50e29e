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
dims = ["B", "T", "HQ * D"]
strides = ["T * HQ * D", "HQ * D"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_k"
tensor = "k"
dims = ["B", "T", "HQ * D"]
strides = ["T * HQ * D", "HQ * D"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_v"
tensor = "v"
dims = ["B", "T", "HV * D"]
strides = ["T * HV * D", "HV * D"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_solution"
tensor = "solution"
dims = ["B * HV", "ceil_div(T, 64) * 64", 64]
strides = ["ceil_div(T, 64) * 64 * 64", 64]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_scores"
tensor = "scores"
dims = ["B * HV", "ceil_div(T, 64) * 64", 64]
strides = ["ceil_div(T, 64) * 64 * 64", 64]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_output"
tensor = "output"
dims = ["B", "T", "HV * D"]
strides = ["T * HV * D", "HV * D"]
box = [1, 64, 16]
swizzle = "64B"

[[launch]]
kernel = "prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 64 * 68 * 4 + 1024"
args = ["q", "k", "g", "beta", "solution", "scores", "decays", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "pass_state"
grid = [2, "HV", "B"]
block = ["160"]
shared = "STAGES * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 1024) + 64 * 64 * 4 + 1024"
args = ["tm_q", "tm_k", "tm_v", "tm_solution", "tm_scores", "decays", "initial_state", "tm_output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
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
// layout of the left operand of the next, so that no intermediate result leaves the registers.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in tf32. A block does this for all heads of a key head: they differ in their gates alone, and share
// k · kᵀ and q · kᵀ.
//
// In pass_state() a fifth warp has the copy engine fill a ring of chunks, ahead of the four that compute. These are one
// warpgroup: wgmma takes 64 rows of Sᵀ, R or U from registers, and the tiles from shared memory once for all of them.
// Only the way from one state to the next is waited for: what the state says about the outputs is computed while the vector
// units work out R, and what the updates say about them while the next state is packed. What the vector units need from shared
// memory for the result of a product is loaded before the wait for it. The outputs leave through shared memory and
// the copy engine: their rows are the columns of the transposes, and stores straight from the registers touch four lines each.
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

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// The copy engine sees the barriers of this block, too.
__device__ __forceinline__ void fenceBarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one).
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

// Starts the copy of one box of 64 rows of 64 numbers.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int row, int outer,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(outer), "r"(barrier) : "memory");
}

// Starts the copy of consecutive bytes.
__device__ __forceinline__ void copyBulk(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// The sums of a chunk's log gates, what follows from them, and the factors of the updates; by one warp. Tokens after the last one
// neither decay nor update.
__device__ __forceinline__ void sumGates(float *sums, float *betas, float *decays, const float *g, const float *beta,
                                         int pitch, int valid)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float even = t < valid ? g[size_t(t) * pitch] : 0.0f;
    float sum = even + (t + 1 < valid ? g[size_t(t + 1) * pitch] : 0.0f);
    betas[t] = t < valid ? beta[size_t(t) * pitch] : 0.0f;
    betas[t + 1] = t + 1 < valid ? beta[size_t(t + 1) * pitch] : 0.0f;
    const float own = sum;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = sum - own + even; // up to the even one
    sums[t] = before;
    sums[t + 1] = sum;
    *reinterpret_cast<float2 *>(decays + t) = make_float2(__expf(before), __expf(sum));
    *reinterpret_cast<float2 *>(decays + C + t) = make_float2(__expf(last - before), __expf(last - sum));
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

// 64 × 64 numbers from a tile in shared memory, coalesced; by 128 threads.
__device__ __forceinline__ void storeTile(__nv_bfloat16 *to, const unsigned char *tile)
{
#pragma unroll
    for (int i = threadIdx.x; i < C * C / 8; i += 128)
        *reinterpret_cast<uint4 *>(to + 8 * i) = *reinterpret_cast<const uint4 *>(tile + place(i / 8, i % 8));
}

extern "C" __global__ void __launch_bounds__(128, 3)
    prepare(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g,
            const float *__restrict__ beta, __nv_bfloat16 *__restrict__ solution, __nv_bfloat16 *__restrict__ scores,
            float *__restrict__ decays, int T, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ float sums[4][C], betas[4][C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    unsigned char *staged = tiles; // in place of k, when k is done with
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2;
    float(*system)[PITCH] = reinterpret_cast<float(*)[PITCH]>(tiles + 2 * C * D * 2);

    const int keyHead = blockIdx.x, keyHeads = gridDim.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / keyHeads; // heads of a key head
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;
    const size_t row0 = (token * keyHeads + keyHead) * D;
    const auto tileOf = [&](int head) { return (size_t(batch) * HV + head) * gridDim.y + chunk; };

    copyTile<16>(ks, k + row0, size_t(keyHeads) * D, valid);
    copyTile<16>(qs, q + row0, size_t(keyHeads) * D, valid);
    commitCopies();

    float kk[8][4] = {}, qk[8][4] = {};
    for (int i = 0; i < ratio; ++i) {
        const int head = keyHead * ratio + i;
        if (i % 4 == 0) { // a warp for each of the next four heads
            const int own = head + warp;
            if (i + warp < ratio)
                sumGates(sums[warp], betas[warp], decays + tileOf(own) * 2 * C, g + token * HV + own,
                         beta + token * HV + own, HV, valid);
            waitCopies<0>();
            __syncthreads();
        }
        if (i == 0) {
            // A warp computes 16 rows of k · kᵀ and of q · kᵀ, up to the diagonal.
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                unsigned left[4], query[4];
                loadMatrices(left, ks + place(warp * 16 + lane % 16, 2 * step + lane / 16));
                loadMatrices(query, qs + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    if (n <= warp) {
                        unsigned right[4];
                        loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
                        multiply(kk[2 * n], left, right[0], right[1]);
                        multiply(kk[2 * n + 1], left, right[2], right[3]);
                        multiply(qk[2 * n], query, right[0], right[1]);
                        multiply(qk[2 * n + 1], query, right[2], right[3]);
                    }
                }
            }
            __syncthreads(); // the tiles become room for results
        }

        const float *sum = sums[i % 4], *factor = betas[i % 4];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int t = warp * 16 + half * 8 + lane / 4, s = n * 8 + lane % 4 * 2;
                float score[2] = {}, entry[2] = {};
                if (n / 2 <= warp) {
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const float decay = s + j <= t ? __expf(sum[t] - sum[s + j]) : 0.0f;
                        score[j] = scale * decay * qk[n][2 * half + j];
                        entry[j] = s + j < t ? factor[t] * decay * kk[n][2 * half + j] : 0.0f;
                    }
                }
                *reinterpret_cast<float2 *>(&system[t][s]) = make_float2(entry[0], entry[1]);
                *reinterpret_cast<unsigned *>(staged + place(t, n) + lane % 4 * 4) = pack(score[0], score[1]);
            }
        }
        __syncthreads();
        storeTile(scores + tileOf(head) * C * C, staged);

        invert(system);
        for (int j = thread; j < C * C / 8; j += 128) {
            const int t = j / 8, s = j % 8 * 8;
            unsigned packed[4];
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                const float2 entry = *reinterpret_cast<const float2 *>(&system[t][s + 2 * p]);
                packed[p] = pack(entry.x * factor[s + 2 * p], entry.y * factor[s + 2 * p + 1]);
            }
            *reinterpret_cast<uint4 *>(solution + tileOf(head) * C * C + 8 * j) =
                make_uint4(packed[0], packed[1], packed[2], packed[3]);
        }
        __syncthreads(); // before the next head takes the room
    }
}

// A descriptor for wgmma of rows of 128 swizzled bytes, 1024 bytes from one group of 8 rows to the next. The upper word is the
// same for all.
__device__ __forceinline__ unsigned long long describe(unsigned low)
{
    unsigned long long both;
    asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(low), "r"(1024u >> 4 | 1u << 30));
    return both;
}

// A right operand whose rows are the columns of the result, `offset` bytes after the address of which `word` is a 16th. Addresses
// in shared memory are below 2^18, so that the sum stays in its field.
__device__ __forceinline__ unsigned long long describeAlong(unsigned word, unsigned offset)
{
    return describe(word + ((offset >> 4) + (1u << 16)));
}

// One whose rows are summed over, 8192 bytes from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describeAcross(unsigned word, unsigned offset)
{
    return describe(word + ((offset >> 4) + (8192u >> 4 << 16)));
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a · bᵀ, or d += it; 64 × 16 times 16 × 64, in the background, by a whole warpgroup.
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

// d += a · b, 64 × 16 times 16 × 128.
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

// Orders what this thread did to registers before the products that follow.
__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all groups of products but the last PENDING have ended.
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
template <int COUNT> __device__ __forceinline__ void packOperands(unsigned (&to)[COUNT][4], const float (&from)[8 * COUNT])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// Starts the copy of 64 rows of 16 numbers from shared memory, rows after the last one left out.
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

// Makes this thread's writes to shared memory visible to the copy engine and the tensor cores.
__device__ __forceinline__ void fenceAsyncProxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A chunk in shared memory: tiles of 64 tokens, and 512 bytes of decays at the end.
constexpr unsigned KS = 0, QS = C * D * 2, VS = 2 * QS, SOLUTION = VS + C * C * 2, SCORES = SOLUTION + C * C * 2;
constexpr unsigned DECAYS = SCORES + C * C * 2, STAGE_BYTES = DECAYS + 1024, COPIED_BYTES = DECAYS + 2 * C * 4;

extern "C" __global__ void __launch_bounds__(160, 1)
    pass_state(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
               const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapSolution,
               const __grid_constant__ TensorMap mapScores, const float *__restrict__ decays,
               const float *__restrict__ initial_state, const __grid_constant__ TensorMap mapOutput,
               float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];
    unsigned char *ring = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int chunks = (T + C - 1) / C;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4); // the warps that compute
        }
        fenceBarriers();
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int keyColumn = head / (HV / HQ) * D;
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const int stage = chunk % STAGES, row = chunk * C, matrix = batch * HV + head;
                const unsigned to = sharedAddress(ring) + stage * STAGE_BYTES, barrier = full + 8 * stage;
                waitPhase(empty + 8 * stage, chunk / STAGES % 2 ^ 1); // passes at first
                expectBytes(barrier, COPIED_BYTES);
                for (int half = 0; half < 2; ++half) {
                    copyBox(to + KS + half * 8192, mapK, keyColumn + half * 64, row, batch, barrier);
                    copyBox(to + QS + half * 8192, mapQ, keyColumn + half * 64, row, batch, barrier);
                }
                copyBox(to + VS, mapV, head * D + blockIdx.x * 64, row, batch, barrier);
                copyBox(to + SOLUTION, mapSolution, 0, row, matrix, barrier);
                copyBox(to + SCORES, mapScores, 0, row, matrix, barrier);
                copyBulk(to + DECAYS, decays + (size_t(matrix) * chunks + chunk) * 2 * C, 2 * C * 4, barrier);
            }
        }
        return;
    }

    // The rows of Sᵀ in this thread: `column` and `column` + 8; its columns of 8-wide tiles: 2 · (lane % 4), and the next.
    const int column = blockIdx.x * 64 + warp * 16 + lane / 4, pair = lane % 4 * 2;
    const size_t stateAt = (size_t(batch) * HV + head) * D * D + column;

    float state[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8];

    float *boxOut = reinterpret_cast<float *>(ring + STAGES * STAGE_BYTES) + warp * C * 16;
    // Rows of 64 bytes, swizzled by the pair of rows: where this thread's two columns begin.
    float *outAt[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
        outAt[i] = boxOut + pair * 16 + ((lane / 16 + 2 * i) ^ lane % 4) * 4 + lane / 4 % 4;
    const int valueRow = lane / 16 * 8 + lane % 8, valueChunk = 2 * warp + lane / 8 % 2;

    unsigned left[8][4], rest[4][4], decayed[4][4];
    float updates[32], out[32];
    packOperands(left, state);

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned at = sharedAddress(ring) + stage * STAGE_BYTES;
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + DECAYS);
        // All descriptors of the chunk are this word and a constant; the compiler is to see that it is the same in all lanes.
        const unsigned word = __shfl_sync(~0u, at >> 4, 0);
        waitPhase(full + 8 * stage, parity);

        // Sᵀ times kᵀ, and in its shadow times qᵀ.
        hold(left);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(updates, left[step], describeAlong(word, KS + step / 4 * 8192 + step % 4 * 32), step > 0);
        commitProducts();

        // Loaded while the products run: the values, the gates up to each token, and that of the whole chunk.
        unsigned values[4][4];
        float2 gate[8];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], at + VS + place(n * 16 + valueRow, valueChunk));
#pragma unroll
        for (int n = 0; n < 8; ++n)
            gate[n] = *reinterpret_cast<const float2 *>(gates + n * 8 + pair);
        const float forget = gates[C - 1];

#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], describeAlong(word, QS + step / 4 * 8192 + step % 4 * 32), step > 0);
        commitProducts();

        // What the state does not say about the values yet.
        waitProducts<1>();
        hold(updates);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float *u = updates + 8 * n + 4 * i;
                const float2 decay = gate[2 * n + i];
                const unsigned upper = values[n][2 * i], lower = values[n][2 * i + 1];
                rest[n][2 * i] = pack(lowOf(upper) - decay.x * u[0], highOf(upper) - decay.y * u[1]);
                rest[n][2 * i + 1] = pack(lowOf(lower) - decay.x * u[2], highOf(lower) - decay.y * u[3]);
            }
        }

        // Solve.
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], describeAlong(word, SOLUTION + step * 32), step > 0);
        commitProducts();
        // In its shadow: the gates from each token to the end of the chunk, and what the state forgets.
        float2 gateToEnd[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            gateToEnd[n] = *reinterpret_cast<const float2 *>(gates + C + n * 8 + pair);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= forget;
        waitProducts<0>();
        hold(left);
        hold(out);
        hold(updates);
        hold(rest);

        // Sᵀ takes up the updates, and so do the outputs.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 decay = gateToEnd[n];
            decayed[n / 2][n % 2 * 2] = pack(updates[4 * n] * decay.x, updates[4 * n + 1] * decay.y);
            decayed[n / 2][n % 2 * 2 + 1] = pack(updates[4 * n + 2] * decay.x, updates[4 * n + 3] * decay.y);
        }
        hold(decayed);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, decayed[step], describeAcross(word, KS + step * 2048));
        commitProducts();
        // Where the next chunk will lie.
        const int nextStage = stage + 1 < STAGES ? stage + 1 : 0;
        const unsigned nextParity = nextStage == 0 ? parity ^ 1 : parity;
        packOperands(rest, updates);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 decay = gate[n];
            out[4 * n] *= scale * decay.x;
            out[4 * n + 1] *= scale * decay.y;
            out[4 * n + 2] *= scale * decay.x;
            out[4 * n + 3] *= scale * decay.y;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], describeAlong(word, SCORES + step * 32), 1);
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

        // Every warp's 16 columns leave by a copy of their own, which runs on while the next chunk is under way.
        if (lane == 0)
            waitStoresRead();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 32; ++i)
            outAt[i % 4 / 2][(i / 4 * 8 + i % 2) * 16] = out[i];
        fenceAsyncProxy();
        __syncwarp();
        if (lane == 0)
            storeBox(mapOutput, head * D + blockIdx.x * 64 + warp * 16, chunk * C, batch, sharedAddress(boxOut));
        stage = nextStage;
        parity = nextParity;
    }
    if (lane == 0)
        waitStoresRead(); // shared memory goes away with the block

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8] = state[i];
}
