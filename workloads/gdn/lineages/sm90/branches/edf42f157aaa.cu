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

[[launch]]
kernel = "prepare"
grid = ["ceil_div(T, 64)", "HQ * ceil_div(ceil_div(HV, HQ), 4)", "B"]
block = ["256"]
shared = "max(2 * 64 * 128 * 2, min(ceil_div(HV, HQ), 4) * 64 * 68 * 4) + 1024"
args = ["q", "k", "g", "beta", "solution", "scores", "decays", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "pass_state"
grid = [2, "HV", "B"]
block = ["160"]
shared = "STAGES * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 1024) + 1024"
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
// outputs, decays = exp(G[t]) and exp(G[63] - G[t]). A block takes all value heads of a key head, up to four: the products of
// their keys and queries are the same, and only the gates and betas differ. pass_state() goes from chunk to chunk, on the
// tensor cores. It computes with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result of
// one product has the layout of the left operand of the next, so that no intermediate result leaves the registers.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in tf32.
//
// In pass_state() a fifth warp has the copy engine fill a ring of chunks, ahead of the four that compute. These are one
// warpgroup: wgmma takes 64 rows of Sᵀ, R or U from registers, and the tiles from shared memory once for all of them.
// Only the way from one state to the next is waited for: what the state says about the outputs is computed while the vector
// units work out R, and what the updates say about them while the next state is packed.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 68;      // of rows in single precision: the 8 rows of a left operand lie in different banks
constexpr int HEADS = 4;       // value heads that a block of prepare() takes at most
constexpr int PREPARERS = 256; // its threads: two warps for each head

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

// 64 rows of CHUNKS · 8 numbers to shared memory, zeros after `valid` rows; by the threads of prepare().
template <int CHUNKS>
__device__ __forceinline__ void copyTile(unsigned to, const __nv_bfloat16 *from, size_t pitch, int valid)
{
    for (int i = threadIdx.x; i < C * CHUNKS; i += PREPARERS) {
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

// The sums of a chunk's log gates, and what follows from them; by one warp. Tokens after the last one do not decay.
__device__ __forceinline__ void sumGates(float *sums, float *decays, const float *g, size_t pitch, int valid)
{
    const int lane = threadIdx.x % 32;
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

// Inverts two blocks of 16 × 16 on the diagonal, from row `begin` on, a thread for each column; by one warp.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH], int begin)
{
    const int first = begin + threadIdx.x % 32 / 16 * 16, column = threadIdx.x % 16;
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

// Inverts up to HEADS lower triangular matrices with ones on their diagonals, in place; by all threads of prepare().
__device__ __forceinline__ void invert(float (*m)[C][PITCH], int count)
{
    const int warp = threadIdx.x / 32;
    if (warp < 2 * count) { // two warps for each matrix
        float(*own)[PITCH] = m[warp / 2];
        const int first = warp % 2 * 32;
        invertDiagonal(own, first);
        __syncwarp();
        float block[2][4] = {}; // this warp's two blocks become one
        mergeBlocks<16>(block, own, first, 0, 0);
        __syncwarp();
        storeBlock(own, block, first + 16, first);
    }
    __syncthreads();
    const int row = warp % 4 / 2 * 16, column = warp % 2 * 16;
#pragma unroll 1
    for (int i = 0; i < count; i += 2) { // two matrices at a time, four warps for each
        const int matrix = i + warp / 4;
        float block[2][4] = {};
        if (matrix < count)
            mergeBlocks<32>(block, m[matrix], 0, row, column);
        __syncthreads();
        if (matrix < count)
            storeBlock(m[matrix], block, 32 + row, column);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(PREPARERS, 4)
    prepare(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g,
            const float *__restrict__ beta, __nv_bfloat16 *__restrict__ solution, __nv_bfloat16 *__restrict__ scores,
            float *__restrict__ decays, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ float sums[HEADS][C], betas[HEADS][C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2;
    // The systems of the heads take the place of the tiles.
    float(*systems)[C][PITCH] = reinterpret_cast<float(*)[C][PITCH]>(tiles);

    // Key heads with more than HEADS value heads have several blocks.
    const int group = HV / HQ, parts = (group + HEADS - 1) / HEADS;
    const int keyHead = blockIdx.y / parts, part = blockIdx.y % parts;
    const int head = keyHead * group + part * HEADS, count = min(HEADS, group - part * HEADS);
    const int chunk = blockIdx.x, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;
    const size_t tile = (size_t(batch) * HV + head) * gridDim.x + chunk; // of the first head, gridDim.x before the next
    const size_t row0 = (token * HQ + keyHead) * D;

    copyTile<16>(ks, k + row0, size_t(HQ) * D, valid);
    copyTile<16>(qs, q + row0, size_t(HQ) * D, valid);
    commitCopies();
    const float correction =
        thread < count * C && thread % C < valid ? beta[(token + thread % C) * HV + head + thread / C] : 0.0f;
    if (warp < count)
        sumGates(sums[warp], decays + (tile + size_t(warp) * gridDim.x) * 2 * C, g + token * HV + head + warp, HV, valid);
    if (thread < count * C)
        betas[thread / C][thread % C] = correction;
    waitCopies<0>();
    __syncthreads();

    // A warp computes 16 rows and 32 columns of k · kᵀ and of q · kᵀ, for all heads.
    const int firstRow = warp % 4 * 16, firstColumn = warp / 4 * 32;
    float kk[4][4] = {}, qk[4][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned left[4], query[4];
        loadMatrices(left, ks + place(firstRow + lane % 16, 2 * step + lane / 16));
        loadMatrices(query, qs + place(firstRow + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            unsigned right[4];
            loadMatrices(right, ks + place(firstColumn + n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            multiply(kk[2 * n], left, right[0], right[1]);
            multiply(kk[2 * n + 1], left, right[2], right[3]);
            multiply(qk[2 * n], query, right[0], right[1]);
            multiply(qk[2 * n + 1], query, right[2], right[3]);
        }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int t = firstRow + i / 2 * 8 + lane / 4, s = firstColumn + n * 8 + lane % 4 * 2 + i % 2;
            kk[n][i] = s < t ? kk[n][i] : 0.0f;
            qk[n][i] = s <= t ? scale * qk[n][i] : 0.0f;
        }
    }
    __syncthreads(); // nobody needs the tiles any more

#pragma unroll 1
    for (int h = 0; h < count; ++h) {
        float(*system)[PITCH] = systems[h];
        __nv_bfloat16 *to = scores + (tile + size_t(h) * gridDim.x) * C * C;
        const int row = firstRow + lane / 4;
        const float rowSums[2] = {sums[h][row], sums[h][row + 8]};
        const float rowBetas[2] = {betas[h][row], betas[h][row + 8]};
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const int s = firstColumn + n * 8 + lane % 4 * 2;
            const float columnSums[2] = {sums[h][s], sums[h][s + 1]};
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int t = row + half * 8;
                float score[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    // Above the diagonal the products are 0 and the differences positive: these must not overflow.
                    const float decay = expf(fminf(rowSums[half] - columnSums[i], 0.0f));
                    score[i] = decay * qk[n][2 * half + i];
                    system[t][s + i] = rowBetas[half] * decay * kk[n][2 * half + i];
                }
                *reinterpret_cast<unsigned *>(to + t * C + s) = pack(score[0], score[1]);
            }
        }
    }
    __syncthreads();

    invert(systems, count);
#pragma unroll 1
    for (int h = 0; h < count; ++h) {
        const float(*system)[PITCH] = systems[h];
        __nv_bfloat16 *to = solution + (tile + size_t(h) * gridDim.x) * C * C;
        for (int i = thread; i < C * C / 2; i += PREPARERS) {
            const int t = i / (C / 2), s = i % (C / 2) * 2;
            *reinterpret_cast<unsigned *>(to + 2 * i) =
                pack(system[t][s] * betas[h][s], system[t][s + 1] * betas[h][s + 1]);
        }
    }
}

// Describes rows of 128 swizzled bytes to wgmma, 1024 bytes from one group of 8 rows to the next: a right operand whose rows
// are the columns of the result.
__device__ __forceinline__ unsigned long long describeAlong(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

// One whose rows are summed over, 8192 bytes from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describeAcross(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;
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

// A chunk in shared memory: tiles of 64 tokens, and 512 bytes of decays at the end.
constexpr unsigned KS = 0, QS = C * D * 2, VS = 2 * QS, SOLUTION = VS + C * C * 2, SCORES = SOLUTION + C * C * 2;
constexpr unsigned DECAYS = SCORES + C * C * 2, STAGE_BYTES = DECAYS + 1024, COPIED_BYTES = DECAYS + 2 * C * 4;

extern "C" __global__ void __launch_bounds__(160, 1)
    pass_state(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
               const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapSolution,
               const __grid_constant__ TensorMap mapScores, const float *__restrict__ decays,
               const float *__restrict__ initial_state, float *__restrict__ output, float *__restrict__ final_state,
               int T, int HQ, int HV, float scale)
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

    const int valueRow = lane / 16 * 8 + lane % 8, valueChunk = 2 * warp + lane / 8 % 2;

    unsigned left[8][4], rest[4][4], decayed[4][4];
    float updates[32], out[32];
    packOperands(left, state);

    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = chunk % STAGES;
        const unsigned ks = sharedAddress(ring) + stage * STAGE_BYTES + KS, qs = ks + QS, vs = ks + VS;
        const unsigned solutions = ks + SOLUTION, scoress = ks + SCORES;
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + DECAYS);
        waitPhase(full + 8 * stage, chunk / STAGES % 2);

        // Sᵀ times kᵀ, and in its shadow times qᵀ.
        hold(left);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(updates, left[step], describeAlong(ks + step / 4 * 8192 + step % 4 * 32), step > 0);
        commitProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], describeAlong(qs + step / 4 * 8192 + step % 4 * 32), step > 0);
        commitProducts();

        // What the state does not say about the values yet.
        waitProducts<1>();
        hold(updates);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned values[4];
            loadMatricesTransposed(values, vs + place(n * 16 + valueRow, valueChunk));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float *u = updates + 8 * n + 4 * i;
                const float2 decay = *reinterpret_cast<const float2 *>(gates + n * 16 + i * 8 + pair);
                rest[n][2 * i] = pack(lowOf(values[2 * i]) - decay.x * u[0], highOf(values[2 * i]) - decay.y * u[1]);
                rest[n][2 * i + 1] =
                    pack(lowOf(values[2 * i + 1]) - decay.x * u[2], highOf(values[2 * i + 1]) - decay.y * u[3]);
            }
        }

        // Solve.
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], describeAlong(solutions + step * 32), step > 0);
        commitProducts();
        const float forget = gates[C - 1];
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
            const float2 decay = *reinterpret_cast<const float2 *>(gates + C + n * 8 + pair);
            decayed[n / 2][n % 2 * 2] = pack(updates[4 * n] * decay.x, updates[4 * n + 1] * decay.y);
            decayed[n / 2][n % 2 * 2 + 1] = pack(updates[4 * n + 2] * decay.x, updates[4 * n + 3] * decay.y);
        }
        hold(decayed);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, decayed[step], describeAcross(ks + step * 2048));
        commitProducts();
        packOperands(rest, updates);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 decay = *reinterpret_cast<const float2 *>(gates + n * 8 + pair);
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
            multiplyAlong(out, rest[step], describeAlong(scoress + step * 32), 1);
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

        const int valid = T - chunk * C;
        float *to = output + ((size_t(batch) * T + chunk * C) * HV + head) * D + column;
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            const int t = i / 4 * 8 + pair + i % 2;
            if (t < valid)
                to[size_t(t) * HV * D + i % 4 / 2 * 8] = out[i];
        }
    }

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8] = state[i];
}
