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
grid = ["ceil_div(T, 64)", "HV", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 64 * 68 * 4 + 1024"
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
// outputs, decays = exp(G[t]) and exp(G[63] - G[t]). pass_state() goes from chunk to chunk, on the tensor cores. It
// computes with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result of one product has the
// layout of the left operand of the next, so that no intermediate result leaves the registers. The four warps multiply together
// (wgmma): their 64 rows as left operand from registers, the tile on the right once from shared memory.
//
// The inverse is built from blocks: those of 16 × 16 on the diagonal by substitution, 16 steps long, then twice
//   [A 0; B C]⁻¹ = [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]
// on the tensor cores in tf32.
//
// In pass_state() a fifth warp has the copy engine fill a ring of chunks, ahead of the four that compute. Needs D == 128.

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

// Results of a product, 16 × 16 of them, as left operand of the next.
__device__ __forceinline__ void packOperand(unsigned (&to)[4], const float (&left)[4], const float (&right)[4])
{
    to[0] = pack(left[0], left[1]);
    to[1] = pack(left[2], left[3]);
    to[2] = pack(right[0], right[1]);
    to[3] = pack(right[2], right[3]);
}

// Products of four warps: begun once their operands in registers are ready, committed as groups, which end in order.
__device__ __forceinline__ void beginProducts()
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

// Keeps the compiler from computing these numbers later than here, or using them earlier.
__device__ __forceinline__ void settle(float (&x)[4])
{
    asm volatile("" : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) :: "memory");
}

__device__ __forceinline__ void settle(unsigned (&x)[4])
{
    asm volatile("" : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]) :: "memory");
}

template <typename Number, int N> __device__ __forceinline__ void settle(Number (&x)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; ++n)
        settle(x[n]);
}

// A tile in shared memory as right operand: 128 swizzled bytes a row, 8 rows after 1024 bytes; `leading` bytes from 64 columns
// to the next 64, where the columns of the tile are those of the result.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading)
{
    return (1ull << 62) | ((1024ull / 16) << 32) | ((unsigned long long)(leading / 16) << 16) | ((address & 0x3ffffu) / 16);
}

#define TILE(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])

// d = a · b or d += a · b, 64 × 16 times 16 × 64, by four warps; the rows of the tile are the columns of b.
__device__ __forceinline__ void multiplyTile(float (&d)[8][4], const unsigned (&a)[4], unsigned long long b,
                                             bool accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
                 "}"
                 : TILE(0), TILE(1), TILE(2), TILE(3), TILE(4), TILE(5), TILE(6), TILE(7)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(accumulate)));
}

// d += a · b, 64 × 16 times 16 × 128, by four warps; the rows of the tile are the rows of b.
__device__ __forceinline__ void multiplyRows(float (&d)[16][4], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}"
                 : TILE(0), TILE(1), TILE(2), TILE(3), TILE(4), TILE(5), TILE(6), TILE(7),
                   TILE(8), TILE(9), TILE(10), TILE(11), TILE(12), TILE(13), TILE(14), TILE(15)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

// A pair of numbers for each 8-wide tile of a result.
__device__ __forceinline__ void loadPairs(float2 (&to)[8], const float *from)
{
#pragma unroll
    for (int n = 0; n < 8; ++n)
        to[n] = *reinterpret_cast<const float2 *>(from + n * 8);
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
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
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

    float state[16][4];
#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            state[n][i] = initial_state[stateAt + (n * 8 + pair + i % 2) * D + i / 2 * 8];
    }

    // Rows of the values, whose rows are the columns of the result.
    const int alongRow = lane / 16 * 8 + lane % 8, alongChunk = lane / 8 % 2;

    // Written by products alone, the first of which overwrites.
    float updates[8][4] = {}, out[8][4] = {};

    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int valid = min(C, T - chunk * C);
        const size_t token = size_t(batch) * T + chunk * C;
        const int stage = chunk % STAGES;
        const unsigned ks = sharedAddress(ring) + stage * STAGE_BYTES + KS, vs = ks + VS;
        const unsigned long long keys = describe(ks, 16), queries = describe(ks + QS, 16);
        const unsigned long long solutions = describe(ks + SOLUTION, 16), scoress = describe(ks + SCORES, 16);
        const unsigned long long keysAcross = describe(ks, 8192);
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + DECAYS);
        waitPhase(full + 8 * stage, chunk / STAGES % 2);

        // Sᵀ as left operand: times kᵀ, then the first half of times qᵀ, which runs on while the rest is computed. A step of 16
        // columns is 32 bytes, 64 columns are 8192.
        unsigned left[8][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int step = 4 * half; step < 4 * half + 4; ++step) {
                packOperand(left[step], state[2 * step], state[2 * step + 1]);
                settle(left[step]);
            }
            beginProducts();
#pragma unroll
            for (int step = 4 * half; step < 4 * half + 4; ++step)
                multiplyTile(updates, left[step], keys + (half * 8192 + step % 4 * 32) / 16, step > 0);
        }
        commitProducts();
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyTile(out, left[step], queries + step * 32 / 16, step > 0);
        commitProducts();

        // Meanwhile the values arrive and Sᵀ decays.
        unsigned values[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], vs + place(n * 16 + alongRow, 2 * warp + alongChunk));
        float2 decay[8];
        loadPairs(decay, gates + pair);
        const float forget = gates[C - 1];
#pragma unroll
        for (int n = 0; n < 16; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                state[n][i] *= forget;
        }
        settle(state);
        waitProducts<1>();
        settle(updates);

        // What the state does not say about the values yet.
        unsigned rest[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            float r[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float(&u)[4] = updates[2 * n + i];
                r[i][0] = lowOf(values[n][2 * i]) - decay[2 * n + i].x * u[0];
                r[i][1] = highOf(values[n][2 * i]) - decay[2 * n + i].y * u[1];
                r[i][2] = lowOf(values[n][2 * i + 1]) - decay[2 * n + i].x * u[2];
                r[i][3] = highOf(values[n][2 * i + 1]) - decay[2 * n + i].y * u[3];
            }
            packOperand(rest[n], r[0], r[1]);
        }
        settle(rest);

        // Solve; both matrices of the chunk are zero above the diagonal. The other half of times qᵀ runs on while the updates are
        // packed.
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyTile(updates, rest[step], solutions + step * 32 / 16, step > 0);
        commitProducts();
#pragma unroll
        for (int step = 4; step < 8; ++step)
            multiplyTile(out, left[step], queries + (8192 + step % 4 * 32) / 16, true);
        commitProducts();
        loadPairs(decay, gates + C + pair);
        waitProducts<1>();
        settle(updates);

        // The updates as left operand: as they are, and decayed up to the end of the chunk.
        unsigned late[4][4];
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            float l[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float(&u)[4] = updates[2 * step + i];
                l[i][0] = u[0] * decay[2 * step + i].x;
                l[i][1] = u[1] * decay[2 * step + i].y;
                l[i][2] = u[2] * decay[2 * step + i].x;
                l[i][3] = u[3] * decay[2 * step + i].y;
            }
            packOperand(rest[step], updates[2 * step], updates[2 * step + 1]);
            packOperand(late[step], l[0], l[1]);
        }
        settle(rest);
        settle(late);

        // Their part of the outputs takes the place of the updates; then Sᵀ takes them up. A step of 16 tokens is 2048 bytes.
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyTile(updates, rest[step], scoress + step * 32 / 16, step > 0);
        commitProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyRows(state, late[step], keysAcross + step * 2048 / 16);
        commitProducts();
        loadPairs(decay, gates + pair);
        waitProducts<1>();
        settle(updates);
        settle(out);

#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int t = n * 8 + pair + i % 2;
                const float result = scale * (i % 2 ? decay[n].y : decay[n].x) * out[n][i] + updates[n][i];
                if (t < valid)
                    output[((token + t) * HV + head) * D + column + i / 2 * 8] = result;
            }
        }

        waitProducts<0>();
        settle(state);
        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
    }

#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            final_state[stateAt + (n * 8 + pair + i % 2) * D + i / 2 * 8] = state[n][i];
    }
}
