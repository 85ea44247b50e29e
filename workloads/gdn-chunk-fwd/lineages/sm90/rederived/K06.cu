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
// of one product has the layout of the left operand of the next, so that no intermediate result leaves the registers. The four
// warps multiply as a warpgroup, which reads the tiles, the right operands, from shared memory once.
//
// In pass_state() a fifth warp has the copy engine fill a ring of chunks, ahead of the four that compute. Needs D == 128.

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

// Results of a product, 16 × 16 of them, as left operand of the next.
__device__ __forceinline__ void packOperand(unsigned (&to)[4], const float (&left)[4], const float (&right)[4])
{
    to[0] = pack(left[0], left[1]);
    to[1] = pack(left[2], left[3]);
    to[2] = pack(right[0], right[1]);
    to[3] = pack(right[2], right[3]);
}

// A tile of rows of 128 swizzled bytes as right operand of a warpgroup: groups of 8 rows are 1024 bytes apart and halves of 64
// columns HALVES bytes, which counts only where rows are summed over.
template <unsigned HALVES> __device__ __forceinline__ unsigned long long describeTile(unsigned address)
{
    return (unsigned long long)(address >> 4) | (unsigned long long)(HALVES >> 4) << 16 | 64ull << 32 | 1ull << 62;
}

// How far into a description the step, 16 columns wide, of a tile is, whose rows are the columns of the result; and the step, 16
// rows high, of one whose rows are summed over.
__device__ __forceinline__ constexpr unsigned alongStep(int step)
{
    return (step / 4 * 8192 + step % 4 * 32) / 16;
}

__device__ __forceinline__ constexpr unsigned acrossStep(int step)
{
    return step * 16 * 128 / 16;
}

#define RESULTS(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])

// d = a · tileᵀ, added to d where `add`; 64 × 16 times 16 × 64, by four warps. Asynchronous.
__device__ __forceinline__ void multiplyTile(float (&d)[8][4], const unsigned (&a)[4], unsigned long long tile, bool add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
                 "}"
                 : RESULTS(d, 0), RESULTS(d, 1), RESULTS(d, 2), RESULTS(d, 3),
                   RESULTS(d, 4), RESULTS(d, 5), RESULTS(d, 6), RESULTS(d, 7)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile), "r"(int(add)));
}

// d += a · tile, 64 × 16 times 16 × 128, by four warps. Asynchronous.
__device__ __forceinline__ void multiplyTileAcross(float (&d)[16][4], const unsigned (&a)[4], unsigned long long tile)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}"
                 : RESULTS(d, 0), RESULTS(d, 1), RESULTS(d, 2), RESULTS(d, 3),
                   RESULTS(d, 4), RESULTS(d, 5), RESULTS(d, 6), RESULTS(d, 7),
                   RESULTS(d, 8), RESULTS(d, 9), RESULTS(d, 10), RESULTS(d, 11),
                   RESULTS(d, 12), RESULTS(d, 13), RESULTS(d, 14), RESULTS(d, 15)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile), "r"(1));
}

#undef RESULTS

// Registers written before are seen by the products that follow.
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

// Keeps the compiler from moving what computes or uses these registers past this point.
template <int N> __device__ __forceinline__ void settle(float (&x)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; ++n)
        asm volatile("" : "+f"(x[n][0]), "+f"(x[n][1]), "+f"(x[n][2]), "+f"(x[n][3]) :: "memory");
}

template <int N> __device__ __forceinline__ void settle(unsigned (&x)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; ++n)
        asm volatile("" : "+r"(x[n][0]), "+r"(x[n][1]), "+r"(x[n][2]), "+r"(x[n][3]) :: "memory");
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

    float state[16][4];
#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            state[n][i] = initial_state[stateAt + (n * 8 + pair + i % 2) * D + i / 2 * 8];
    }

    // Rows of the matrices of v that this lane names.
    const int alongRow = lane / 16 * 8 + lane % 8, alongChunk = lane / 8 % 2;

    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = chunk % STAGES, valid = min(C, T - chunk * C);
        const size_t token = size_t(batch) * T + chunk * C;
        const unsigned ks = sharedAddress(ring) + stage * STAGE_BYTES, vs = ks + VS;
        const unsigned long long keys = describeTile<16>(ks + KS), queries = describeTile<16>(ks + QS);
        const unsigned long long matrix = describeTile<16>(ks + MATRIX), scores = describeTile<16>(ks + SCORES);
        const unsigned long long keysAcross = describeTile<8192>(ks + KS);
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS);
        waitPhase(full + 8 * stage, chunk / STAGES % 2);

        // Sᵀ as left operand: times kᵀ and qᵀ.
        unsigned left[8][4];
#pragma unroll
        for (int step = 0; step < 8; ++step)
            packOperand(left[step], state[2 * step], state[2 * step + 1]);
        float updates[8][4], out[8][4]; // the first steps overwrite them
        settle(left);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyTile(updates, left[step], keys + alongStep(step), step > 0);
        commitProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyTile(out, left[step], queries + alongStep(step), step > 0);
        commitProducts();

        // Sᵀ decays, while its rounded copy is multiplied.
        const float forget = gates[4 * C - 1];
#pragma unroll
        for (int n = 0; n < 16; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                state[n][i] *= forget;
        }
        settle(state);

        // R, the left operand of the product with a, while that with qᵀ goes on.
        waitProducts<1>();
        settle(updates);
        unsigned rest[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned values[4];
            loadMatricesTransposed(values, vs + place(n * 16 + alongRow, 2 * warp + alongChunk));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float(&u)[4] = updates[2 * n + i];
                const float *factor = gates + n * 16 + i * 8 + pair;
                const float2 weight = *reinterpret_cast<const float2 *>(factor);
                const float2 decayed = *reinterpret_cast<const float2 *>(factor + C);
                u[0] = weight.x * lowOf(values[2 * i]) - decayed.x * u[0];
                u[1] = weight.y * highOf(values[2 * i]) - decayed.y * u[1];
                u[2] = weight.x * lowOf(values[2 * i + 1]) - decayed.x * u[2];
                u[3] = weight.y * highOf(values[2 * i + 1]) - decayed.y * u[3];
            }
            packOperand(rest[n], updates[2 * n], updates[2 * n + 1]);
        }

        // The updates. All of a counts, what is above its diagonal too.
        float fresh[8][4];
        settle(rest);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyTile(fresh, rest[step], matrix + alongStep(step), step > 0);
        commitProducts();

        waitProducts<1>(); // the product with qᵀ
        settle(out);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            float(&o)[4] = out[n];
            const float2 decay = *reinterpret_cast<const float2 *>(gates + 3 * C + n * 8 + pair);
            o[0] *= scale * decay.x;
            o[1] *= scale * decay.y;
            o[2] *= scale * decay.x;
            o[3] *= scale * decay.y;
        }
        settle(out);

        waitProducts<0>();
        settle(fresh);
        unsigned rounded[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            packOperand(rounded[n], fresh[2 * n], fresh[2 * n + 1]);
        settle(rounded);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step) // the scores above the diagonal are zeros
            multiplyTile(out, rounded[step], scores + alongStep(step), true);
        commitProducts();

        // Sᵀ takes up the updates.
        unsigned faded[4][4];
#pragma unroll
        for (int step = 0; step < 4; ++step) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float2 fading = *reinterpret_cast<const float2 *>(gates + 2 * C + step * 16 + i * 8 + pair);
                float(&u)[4] = fresh[2 * step + i];
                u[0] *= fading.x;
                u[1] *= fading.y;
                u[2] *= fading.x;
                u[3] *= fading.y;
            }
            packOperand(faded[step], fresh[2 * step], fresh[2 * step + 1]);
        }
        settle(faded);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyTileAcross(state, faded[step], keysAcross + acrossStep(step));
        commitProducts();

        waitProducts<1>(); // the product with the scores
        settle(out);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int t = n * 8 + pair + i % 2;
                if (t < valid)
                    output[((token + t) * HV + head) * D + column + i / 2 * 8] = out[n][i];
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
