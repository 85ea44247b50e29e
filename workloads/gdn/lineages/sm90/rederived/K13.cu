/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3]

[[tunable]]
name = "PREPARE_BLOCKS"
default = 4
values = [3, 4]

[[workspace]]
name = "handover"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", "2 * 64 * 64 + 4 * 64"]

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
args = ["tm_q", "tm_k", "g", "beta", "handover", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "pass_state"
pdl = true
grid = [2, "HV", "B"]
block = ["160"]
shared = "STAGES * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 1024) + 64 * 64 * 4 + 1024"
args = ["tm_q", "tm_k", "tm_v", "handover", "initial_state", "tm_output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
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
// k · kᵀ and q · kᵀ. These are wgmma's, from tiles that the copy engine brings; a warp has 16 rows of both, and leaves what lies above
// the diagonal. The two warps with the short rows invert while the other two are at their scores.
//
// What pass_state() needs of a head and a chunk is a run of bytes: solution and scores as tiles, swizzled as they will lie in shared memory,
// and the decays. The tiles are put together where the keys and queries were, for two heads in turn, and a single copy stores them
// while the next head is under way; a single copy brings the run to pass_state().
//
// In pass_state() a fifth warp has the copy engine fill a ring of chunks, ahead of the four that compute. These are one
// warpgroup: wgmma takes 64 rows of Sᵀ, R or U from registers, and the tiles from shared memory once for all of them.
// Only the way from one state to the next is waited for: what the state says about the outputs is computed while the vector
// units work out R, and what the updates say about them while the next state is packed. The outputs leave through shared memory and
// the copy engine: their rows are the columns of the transposes, and stores straight from the registers touch four lines each.
//
// pass_state() is launched while prepare() ends: it reads its state and the tokens of its first chunks, and waits before it
// reads what prepare() wrote.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 68;      // of rows in single precision: the 8 rows of a left operand lie in different banks

// What prepare() hands over for a head and a chunk: tiles of the solution and the scores, and two rows of decays.
constexpr unsigned RUN_SCORES = C * C * 2, RUN_DECAYS = 2 * RUN_SCORES, RUN_BYTES = RUN_DECAYS + 2 * C * 4;

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the chunk of 8 bf16 of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
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

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The sums of a chunk's log gates (to base 2), what follows from them, and the factors of the updates; by one warp. Tokens after the last one
// neither decay nor update.
__device__ __forceinline__ void sumGates(float *sums, float *betas, float *decays, const float *g, const float *beta,
                                         int pitch, int valid)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float toBase2 = 1.44269504f;
    const float even = t < valid ? toBase2 * g[size_t(t) * pitch] : 0.0f;
    float sum = even + (t + 1 < valid ? toBase2 * g[size_t(t + 1) * pitch] : 0.0f);
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
    *reinterpret_cast<float2 *>(decays + t) = make_float2(exp2Fast(before), exp2Fast(sum));
    *reinterpret_cast<float2 *>(decays + C + t) = make_float2(exp2Fast(last - before), exp2Fast(last - sum));
}

// d += a · b, 16 × 8 times 8 × 8, in tf32.
__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The tensor cores cut what tf32 does not have.
__device__ __forceinline__ unsigned toTf32(float x)
{
    return __float_as_uint(x);
}

// Inverts the blocks of 16 × 16 on the diagonal, a thread for each column; by two warps.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 entries = *reinterpret_cast<const float4 *>(&m[first + i][first + k]);
            sum -= entries.x * x[k];
            sum -= k + 1 < i ? entries.y * x[k + 1] : 0.0f;
            sum -= k + 2 < i ? entries.z * x[k + 2] : 0.0f;
            sum -= k + 3 < i ? entries.w * x[k + 3] : 0.0f;
        }
        x[i] = sum;
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
        if (k >= row + 16)
            continue; // C⁻¹ is zero there
        const float *left = &m[second + row + g][second + k + c];
        const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]), toTf32(left[8 * PITCH + 4])};
#pragma unroll
        for (int n = 0; n < SIZE; n += 8)
            multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                         toTf32(m[second + k + c + 4][first + n + g]));
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k < column)
            continue; // A⁻¹ is zero there
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

// The inverse's diagonal blocks of 32 × 32, up to the diagonal, times the factors of the columns, to a tile; by 128 threads.
__device__ __forceinline__ void storeInverse(unsigned char *to, const float (*m)[PITCH], const float *factor)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int t = i * 32 + lane, chunk = i * 4 + warp, s = chunk * 8; // 8 lanes, 8 rows: all the banks
        if (s / 16 > t / 16)
            continue;
        unsigned packed[4];
#pragma unroll
        for (int p = 0; p < 8; p += 4) {
            const float4 entries = *reinterpret_cast<const float4 *>(&m[t][s + p]);
            const float4 factors = *reinterpret_cast<const float4 *>(factor + s + p);
            packed[p / 2] = pack(entries.x * factors.x, entries.y * factors.y);
            packed[p / 2 + 1] = pack(entries.z * factors.z, entries.w * factors.w);
        }
        *reinterpret_cast<uint4 *>(to + place(t, chunk)) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
    }
}

// Lets the next launch begin where there is room; this one's results are not there yet.
__device__ __forceinline__ void launchDependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the launch before this one has ended.
__device__ __forceinline__ void waitForParents()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Describe rows of 128 swizzled bytes to wgmma, 1024 bytes from one group of 8 rows to the next; where they begin, in units
// of 16 bytes, is added. A right operand whose rows are the columns of the result;
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
// and one whose rows are summed over, 8192 bytes from 64 columns to the next 64.
constexpr unsigned long long ACROSS = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a · bᵀ, or d += it; 64 × 16 times 16 × 64, both from shared memory, in the background, by a whole warpgroup.
__device__ __forceinline__ void multiplyTiles(float (&d)[32], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 0, 0;\n"
        "}"
        : SUMS32(0)
        : "l"(a), "l"(b), "r"(accumulate));
}

// The same, with 64 × 16 of the left operand in registers.
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

// Starts the copy of consecutive bytes from shared memory.
__device__ __forceinline__ void storeBulk(void *to, unsigned from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(to), "r"(from), "r"(bytes) : "memory");
}

// Waits until the copy engine has read what this thread told it to store.
__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Waits until what this thread told the copy engine to store is there.
__device__ __forceinline__ void waitStores()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Makes this thread's writes to shared memory visible to the copy engine and the tensor cores.
__device__ __forceinline__ void fenceAsyncProxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// This warp's 16 rows of a product times exp(G[t] - G[s]) and a factor of the row, up to the diagonal or, where `end` is 1, with it.
// The warp is among the first BLOCKS; `put` takes two neighbours of a row.
template <int BLOCKS, typename Put>
__device__ __forceinline__ void scaleRows(const float (&d)[32], const float *sum, float upperFactor, float lowerFactor,
                                          int warp, int end, Put put)
{
    const int lane = threadIdx.x % 32, t = warp * 16 + lane / 4;
    const float upper = sum[t], lower = sum[t + 8];
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        if (b > warp)
            continue;
#pragma unroll
        for (int n = 2 * b; n < 2 * b + 2; ++n) {
            const int s = n * 8 + lane % 4 * 2;
            const float2 before = *reinterpret_cast<const float2 *>(sum + s);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = t + half * 8;
                const float factor = half ? lowerFactor : upperFactor, now = half ? lower : upper;
                put(row, s, s < row + end ? factor * exp2Fast(now - before.x) * d[4 * n + 2 * half] : 0.0f,
                    s + 1 < row + end ? factor * exp2Fast(now - before.y) * d[4 * n + 2 * half + 1] : 0.0f);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(128, PREPARE_BLOCKS)
    prepare(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const float *__restrict__ g,
            const float *__restrict__ beta, unsigned char *__restrict__ handover, int T, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][C], betas[4][C];
    __shared__ unsigned long long barrier;
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2, full = sharedAddress(&barrier);
    float(*system)[PITCH] = reinterpret_cast<float(*)[PITCH]>(tiles + 2 * C * D * 2);

    const int keyHead = blockIdx.x, keyHeads = gridDim.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / keyHeads; // heads of a key head
    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;
    const auto runOf = [&](int head) {
        return handover + ((size_t(batch) * HV + head) * gridDim.y + chunk) * RUN_BYTES;
    };

    if (thread == 0) {
        initBarrier(full, 1);
        fenceBarriers();
        expectBytes(full, 2 * C * D * 2);
        for (int half = 0; half < 2; ++half) {
            copyBox(ks + half * 8192, mapK, keyHead * D + half * 64, chunk * C, batch, full);
            copyBox(qs + half * 8192, mapQ, keyHead * D + half * 64, chunk * C, batch, full);
        }
    }
    __syncwarp();
    launchDependents();

    // A warp for each of the next four heads.
    const auto sumNext = [&](int i) {
        const int own = keyHead * ratio + i + warp;
        if (i + warp < ratio)
            sumGates(sums[warp], betas[warp], reinterpret_cast<float *>(runOf(own) + RUN_DECAYS), g + token * HV + own,
                     beta + token * HV + own, HV, valid);
        __syncthreads();
    };
    sumNext(0);
    waitPhase(full, 0);

    // k · kᵀ and q · kᵀ.
    float keys[32], queries[32];
    fenceProducts();
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const unsigned at = step / 4 * 8192 + step % 4 * 32;
        const unsigned long long key = ALONG + ((ks + at & 0x3ffff) >> 4), query = ALONG + ((qs + at & 0x3ffff) >> 4);
        multiplyTiles(keys, key, key, step > 0);
        multiplyTiles(queries, query, key, step > 0);
    }
    commitProducts();
    waitProducts<0>();
    hold(keys);
    hold(queries);
    __syncthreads(); // the tiles become room for results, of two heads

    // Nothing else is ever written above the blocks on the diagonals.
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        if (thread % 8 / 2 > i) {
#pragma unroll
            for (int tile = 0; tile < 4; ++tile)
                *reinterpret_cast<uint4 *>(tiles + tile * C * C * 2 + place(i * 16 + thread / 8, thread % 8)) =
                    make_uint4(0, 0, 0, 0);
        }
    }

    for (int i = 0; i < ratio; ++i) {
        const int head = keyHead * ratio + i;
        if (i > 0 && i % 4 == 0)
            sumNext(i);

        const float *sum = sums[i % 4], *factor = betas[i % 4];
        unsigned char *staged = tiles + i % 2 * RUN_DECAYS;
        const auto putSystem = [&](int t, int s, float low, float high) {
            *reinterpret_cast<float2 *>(&system[t][s]) = make_float2(low, high);
        };
        const auto putScores = [&](int t, int s, float low, float high) {
            *reinterpret_cast<unsigned *>(staged + RUN_SCORES + place(t, s / 8) + lane % 4 * 4) = pack(low, high);
        };
        const int t = warp * 16 + lane / 4;
        scaleRows<4>(keys, sum, factor[t], factor[t + 8], warp, 0, putSystem);
        if (warp < 2)
            scaleRows<2>(queries, sum, scale, scale, warp, 1, putScores);
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(system);
            __syncwarp();
            float block[2][4] = {}; // this warp's two blocks become one
            mergeBlocks<16>(block, system, warp * 32, 0, 0);
            __syncwarp();
            storeBlock(system, block, warp * 32 + 16, warp * 32);
        } else {
            scaleRows<4>(queries, sum, scale, scale, warp, 1, putScores);
        }
        __syncthreads();

        // The last blocks are wanted by nobody here.
        const int row = warp / 2 * 16, column = warp % 2 * 16;
        float block[2][4] = {};
        mergeBlocks<32>(block, system, 0, row, column);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int s = column + n * 8 + lane % 4 * 2;
            unsigned char *at = staged + place(32 + row + lane / 4, s / 8) + lane % 4 * 4;
            *reinterpret_cast<unsigned *>(at) = pack(block[n][0] * factor[s], block[n][1] * factor[s + 1]);
            *reinterpret_cast<unsigned *>(at + 8 * 128) = pack(block[n][2] * factor[s], block[n][3] * factor[s + 1]);
        }
        storeInverse(staged, system, factor);
        fenceAsyncProxy();
        if (thread == 0)
            waitStoresRead(); // of the head before: the next one takes its room
        __syncthreads();
        if (thread == 0)
            storeBulk(runOf(head), sharedAddress(staged), RUN_DECAYS);
    }
    if (thread == 0)
        waitStores();
}

// The factors of this thread's columns, in pairs.
__device__ __forceinline__ void readGates(float2 (&to)[8], const float *from)
{
#pragma unroll
    for (int n = 0; n < 8; ++n)
        to[n] = *reinterpret_cast<const float2 *>(from + n * 8);
}

// A chunk in shared memory: tiles of 64 tokens, and what prepare() handed over at the end.
constexpr unsigned KS = 0, QS = C * D * 2, VS = 2 * QS, SOLUTION = VS + C * C * 2, SCORES = SOLUTION + RUN_SCORES;
constexpr unsigned DECAYS = SOLUTION + RUN_DECAYS, STAGE_BYTES = DECAYS + 1024, COPIED_BYTES = SOLUTION + RUN_BYTES;

extern "C" __global__ void __launch_bounds__(160, 1)
    pass_state(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
               const __grid_constant__ TensorMap mapV, const unsigned char *__restrict__ handover,
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
                if (chunk == 0)
                    waitForParents();
                copyBulk(to + SOLUTION, handover + (size_t(matrix) * chunks + chunk) * RUN_BYTES, RUN_BYTES, barrier);
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

    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = chunk % STAGES;
        const unsigned vs = sharedAddress(ring) + stage * STAGE_BYTES + VS;
        // The same in all lanes, and known to be: descriptors live in uniform registers.
        const unsigned tiles = __shfl_sync(~0u, (sharedAddress(ring) + stage * STAGE_BYTES & 0x3ffff) >> 4, 0);
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + DECAYS);
        waitPhase(full + 8 * stage, chunk / STAGES % 2);

        // Sᵀ times kᵀ, and in its shadow times qᵀ.
        hold(left);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(updates, left[step], ALONG + (tiles + (KS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (QS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // What the state does not say about the values yet.
        unsigned values[4][4];
        float2 decay[8];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], vs + place(n * 16 + valueRow, valueChunk));
        readGates(decay, gates + pair);
        waitProducts<1>();
        hold(updates);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float *u = updates + 4 * i;
            const unsigned upper = values[i / 2][i % 2 * 2], lower = values[i / 2][i % 2 * 2 + 1];
            rest[i / 2][i % 2 * 2] = pack(lowOf(upper) - decay[i].x * u[0], highOf(upper) - decay[i].y * u[1]);
            rest[i / 2][i % 2 * 2 + 1] = pack(lowOf(lower) - decay[i].x * u[2], highOf(lower) - decay[i].y * u[3]);
        }

        // Solve.
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], ALONG + (tiles + (SOLUTION + step * 32) / 16), step > 0);
        commitProducts();
        const float forget = gates[C - 1];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= forget;
        float2 faded[8];
        readGates(faded, gates + C + pair);
        waitProducts<0>();
        hold(left);
        hold(out);
        hold(updates);
        hold(rest);

        // Sᵀ takes up the updates, and so do the outputs.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float *u = updates + 4 * n;
            decayed[n / 2][n % 2 * 2] = pack(u[0] * faded[n].x, u[1] * faded[n].y);
            decayed[n / 2][n % 2 * 2 + 1] = pack(u[2] * faded[n].x, u[3] * faded[n].y);
        }
        hold(decayed);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, decayed[step], ACROSS + (tiles + (KS + step * 2048) / 16));
        commitProducts();
        packOperands(rest, updates);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 factor = make_float2(scale * decay[n].x, scale * decay[n].y);
            out[4 * n] *= factor.x;
            out[4 * n + 1] *= factor.y;
            out[4 * n + 2] *= factor.x;
            out[4 * n + 3] *= factor.y;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES + step * 32) / 16), 1);
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
    }
    if (lane == 0)
        waitStoresRead(); // shared memory goes away with the block

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8] = state[i];
}
