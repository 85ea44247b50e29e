/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3]

[[workspace]]
name = "scores"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", 64, 64]

[[workspace]]
name = "factors"
dtype = "f32"
shape = ["B", "HV", "ceil_div(T, 64)", 4, 64]

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
name = "tm_a"
tensor = "a"
dims = ["B", "T", "HV * 64"]
strides = ["T * HV * 64", "HV * 64"]
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
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 1024"
args = ["q", "k", "g", "beta", "scores", "factors", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "pass_state"
grid = [2, "HV", "B"]
block = ["160"]
shared = "STAGES * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 1024) + 1024"
args = ["tm_q", "tm_k", "tm_v", "tm_a", "tm_scores", "factors", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass on the tensor cores, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). prepare() computes what needs no state, for all chunks at once: the scores, whose product
// q · kᵀ the heads of a key head share, and the factors that follow from the gates. pass_state() goes from chunk to chunk. A block
// of it computes 64 columns of a head, with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result
// of one product has the layout of the left operand of the next, so that no intermediate result leaves the registers.
//
// In pass_state() a fifth warp has the copy engine fill a ring of chunks, ahead of the four that compute. These are one
// warpgroup: wgmma takes 64 rows of Sᵀ, R or the updates from registers, and the tiles from shared memory once for all of them.
// Only what the next state needs is waited for at once, kᵀ, the matrix and the update of Sᵀ; the products for the outputs fill the
// gaps between these, where the warps make the next left operand, and the rest of their work lies under products.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk

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

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The sums gc of a chunk's log gates, to base 2, and the factors that follow from them, 64 of each: beta, beta exp(gc),
// exp(gc_last - gc) and exp(gc); by one warp. Tokens after the last one neither decay nor update.
__device__ __forceinline__ void sumGates(float *sums, float *factors, const float *g, const float *beta, int pitch,
                                         int valid)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float toBase2 = 1.44269504f;
    const float even = t < valid ? toBase2 * g[size_t(t) * pitch] : 0.0f;
    float sum = even + (t + 1 < valid ? toBase2 * g[size_t(t + 1) * pitch] : 0.0f);
    const float weight = t < valid ? beta[size_t(t) * pitch] : 0.0f;
    const float nextWeight = t + 1 < valid ? beta[size_t(t + 1) * pitch] : 0.0f;
    const float own = sum;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = sum - own + even; // up to the even one
    const float decay = exp2Fast(before), nextDecay = exp2Fast(sum);
    *reinterpret_cast<float2 *>(sums + t) = make_float2(before, sum);
    *reinterpret_cast<float2 *>(factors + t) = make_float2(weight, nextWeight);
    *reinterpret_cast<float2 *>(factors + C + t) = make_float2(weight * decay, nextWeight * nextDecay);
    *reinterpret_cast<float2 *>(factors + 2 * C + t) = make_float2(exp2Fast(last - before), exp2Fast(last - sum));
    *reinterpret_cast<float2 *>(factors + 3 * C + t) = make_float2(decay, nextDecay);
}

extern "C" __global__ void __launch_bounds__(128)
    prepare(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g,
            const float *__restrict__ beta, __nv_bfloat16 *__restrict__ scores, float *__restrict__ factors, int T,
            int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    unsigned char *staged = tiles; // in place of k, when k is done with
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2;

    const int keyHead = blockIdx.x, keyHeads = gridDim.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / keyHeads; // heads of a key head
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, pair = lane % 4 * 2;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;
    const size_t row0 = (token * keyHeads + keyHead) * D;
    const auto tileOf = [&](int head) { return (size_t(batch) * HV + head) * gridDim.y + chunk; };

    copyTile<16>(ks, k + row0, size_t(keyHeads) * D, valid);
    copyTile<16>(qs, q + row0, size_t(keyHeads) * D, valid);
    commitCopies();

    float blocks[4][2][4] = {}; // 16 rows of q · kᵀ, up to the diagonal
    for (int i = 0; i < ratio; ++i) {
        if (i % 4 == 0) { // a warp for each of the next four heads
            const int own = keyHead * ratio + i + warp;
            __syncthreads(); // the sums before are done with
            if (i + warp < ratio)
                sumGates(sums[warp], factors + tileOf(own) * 4 * C, g + token * HV + own, beta + token * HV + own, HV,
                         valid);
            waitCopies<0>();
            __syncthreads();
        }
        if (i == 0) {
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                unsigned query[4];
                loadMatrices(query, qs + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    if (n > warp)
                        continue;
                    unsigned right[4];
                    loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
                    multiply(blocks[n][0], query, right[0], right[1]);
                    multiply(blocks[n][1], query, right[2], right[3]);
                }
            }
            __syncthreads(); // the tile of k becomes room for results
        }

        const float *sum = sums[i % 4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int t = warp * 16 + j / 2 * 8 + lane / 4, s = n * 16 + j % 2 * 8 + pair;
                const float *d = blocks[n][j % 2] + j / 2 * 2;
                const float low = s <= t ? scale * exp2Fast(sum[t] - sum[s]) * d[0] : 0.0f;
                const float high = s < t ? scale * exp2Fast(sum[t] - sum[s + 1]) * d[1] : 0.0f;
                *reinterpret_cast<unsigned *>(staged + place(t, s / 8) + lane % 4 * 4) = pack(low, high);
            }
        }
        __syncwarp(); // a warp stores the rows that it computed
        __nv_bfloat16 *to = scores + tileOf(keyHead * ratio + i) * C * C;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = warp * 16 + j * 4 + lane / 8;
            *reinterpret_cast<uint4 *>(to + row * C + lane % 8 * 8) =
                *reinterpret_cast<const uint4 *>(staged + place(row, lane % 8));
        }
        __syncwarp();
    }
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

// What R takes of the values, beta ∘ V, from pairs of values and the factors of the tokens.
__device__ __forceinline__ void weighValues(float (&to)[32], const unsigned (&values)[4][4], const float (&weights)[16])
{
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const unsigned both = values[i / 4][i % 4];
        to[2 * i] = weights[i / 2 * 2] * lowOf(both);
        to[2 * i + 1] = weights[i / 2 * 2 + 1] * highOf(both);
    }
}

// Two factors of each 8-wide tile.
__device__ __forceinline__ void loadFactors(float (&to)[16], const float *from)
{
#pragma unroll
    for (int n = 0; n < 8; ++n) {
        const float2 factor = *reinterpret_cast<const float2 *>(from + n * 8);
        to[2 * n] = factor.x;
        to[2 * n + 1] = factor.y;
    }
}

// Stores the outputs of a chunk, tokens of a thread's pairs, of which those below `valid` exist.
__device__ __forceinline__ void storeOutputs(float *to, const float (&out)[32], size_t pitch, int valid)
{
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int t = i / 4 * 8 + i % 2;
        if (t < valid)
            to[t * pitch + i % 4 / 2 * 8] = out[i];
    }
}

// Sᵀ times kᵀ, or times qᵀ, by 16 of the keys a step.
template <int FIRST, int LAST>
__device__ __forceinline__ void multiplyState(float (&to)[32], const unsigned (&left)[8][4], unsigned tile)
{
#pragma unroll
    for (int step = FIRST; step < LAST; ++step)
        multiplyAlong(to, left[step], ALONG + (tile + (step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
    commitProducts();
}

// A chunk in shared memory: tiles of 64 tokens, and the factors at the end.
constexpr unsigned KS = 0, QS = C * D * 2, VS = 2 * QS, MATRIX = VS + C * C * 2, SCORES = MATRIX + C * C * 2;
constexpr unsigned FACTORS = SCORES + C * C * 2, STAGE_BYTES = FACTORS + 4 * C * 4;

extern "C" __global__ void __launch_bounds__(160, 1)
    pass_state(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
               const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapMatrix,
               const __grid_constant__ TensorMap mapScores, const float *__restrict__ factors,
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
                expectBytes(barrier, STAGE_BYTES);
                for (int half = 0; half < 2; ++half) {
                    copyBox(to + KS + half * 8192, mapK, keyColumn + half * 64, row, batch, barrier);
                    copyBox(to + QS + half * 8192, mapQ, keyColumn + half * 64, row, batch, barrier);
                }
                copyBox(to + VS, mapV, head * D + blockIdx.x * 64, row, batch, barrier);
                copyBox(to + MATRIX, mapMatrix, head * C, row, batch, barrier);
                copyBox(to + SCORES, mapScores, 0, row, matrix, barrier);
                copyBulk(to + FACTORS, factors + (size_t(matrix) * chunks + chunk) * 4 * C, 4 * C * 4, barrier);
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

    // The same in all lanes, and known to be: descriptors live in uniform registers.
    const auto tilesOf = [&](int stage) {
        return __shfl_sync(~0u, (sharedAddress(ring) + stage * STAGE_BYTES & 0x3ffff) >> 4, 0);
    };
    const auto gatesOf = [&](int stage) {
        return reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS) + pair;
    };

    // The values of a chunk as they are, and as R takes them, with its factors.
    unsigned values[4][4];
    float weights[16], weighted[32], both[16];
    const auto loadValues = [&](int stage) {
        const unsigned vs = sharedAddress(ring) + stage * STAGE_BYTES + VS;
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], vs + place(n * 16 + valueRow, valueChunk));
        loadFactors(weights, gatesOf(stage));
        hold(weights);
    };

    // What a chunk begins with is under way when the loop comes to it: the product of Sᵀ with kᵀ has ended, and half of that with
    // qᵀ runs while R is computed.
    unsigned left[8][4], tiles = tilesOf(0);
    float updates[32], out[32];
    packOperands(left, state);
    waitPhase(full, 0);
    hold(left);
    fenceProducts();
    multiplyState<0, 8>(updates, left, tiles + KS / 16);
    loadValues(0);
    loadFactors(both, gatesOf(0) + C);
    hold(both);
    fenceProducts();
    multiplyState<0, 4>(out, left, tiles + QS / 16);
    weighValues(weighted, values, weights);
    hold(weighted);
    waitProducts<1>(); // for Sᵀ kᵀ
    hold(updates);

    float *to = output + ((size_t(batch) * T + pair) * HV + head) * D + column;
    const size_t pitch = size_t(HV) * D;
    int stage = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int next = stage + 1 < STAGES ? stage + 1 : 0;
        const float *gates = gatesOf(stage);
        unsigned rest[4][4], decayed[4][4];

        // R, the left operand of the product with a.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float *u = updates + 4 * n, *w = weighted + 4 * n, *b = both + 2 * n;
            rest[n / 2][n % 2 * 2] = pack(w[0] - b[0] * u[0], w[1] - b[1] * u[1]);
            rest[n / 2][n % 2 * 2 + 1] = pack(w[2] - b[0] * u[2], w[3] - b[1] * u[3]);
        }

        // The updates. Sᵀ decays meanwhile.
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], ALONG + (tiles + (MATRIX + step * 32) / 16), step > 0);
        commitProducts();
        float faded[16];
        loadFactors(faded, gates + 2 * C);
        const float forget = gates[4 * C - 1 - pair];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= forget;
        hold(faded);
        hold(state);

        // The other half of Sᵀ times qᵀ runs while the updates are packed.
        fenceProducts();
        multiplyState<4, 8>(out, left, tiles + QS / 16);
        waitProducts<1>(); // for the updates
        hold(updates);
        hold(rest);

        // Sᵀ takes up the updates.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float *u = updates + 4 * n, *f = faded + 2 * n;
            decayed[n / 2][n % 2 * 2] = pack(u[0] * f[0], u[1] * f[1]);
            decayed[n / 2][n % 2 * 2 + 1] = pack(u[2] * f[0], u[3] * f[1]);
        }
        hold(decayed);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, decayed[step], ACROSS + (tiles + (KS + step * 2048) / 16));
        commitProducts();

        // The outputs take them up, too, after Sᵀ; the values of the next chunk are loaded meanwhile.
        float decay[16];
        loadFactors(decay, gates + 3 * C);
        packOperands(rest, updates);
        if (chunk + 1 < chunks)
            waitPhase(full + 8 * next, (chunk + 1) / STAGES % 2);
        loadValues(next);
        waitProducts<1>(); // for Sᵀ qᵀ
        hold(out);
        hold(left);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            out[i] *= scale * decay[i / 4 * 2 + i % 2];
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES + step * 32) / 16), 1);
        commitProducts();
        tiles = tilesOf(next);
        waitProducts<1>(); // for Sᵀ
        hold(state);
        hold(decayed);

        // The next chunk begins while the outputs of this one end. Behind the last one is none: what a stage happens to hold is
        // multiplied there, and dropped.
        packOperands(left, state);
        hold(left);
        fenceProducts();
        multiplyState<0, 8>(updates, left, tiles + KS / 16);
        waitProducts<1>(); // for the outputs
        hold(out);
        hold(rest);
        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
        loadFactors(both, gatesOf(next) + C);
        hold(both);
        storeOutputs(to, out, pitch, T - chunk * C - pair);
        hold(out);
        fenceProducts();
        multiplyState<0, 4>(out, left, tiles + QS / 16);
        weighValues(weighted, values, weights);
        hold(weighted);
        waitProducts<1>(); // for Sᵀ kᵀ
        hold(updates);
        to += C * pitch;
        stage = next;
    }
    waitProducts<0>();
    hold(out);
    hold(left);

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8] = state[i];
}
