/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3]

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
name = "tm_output"
tensor = "output"
dims = ["B", "T", "HV * D"]
strides = ["T * HV * D", "HV * D"]
box = [1, 64, 16]
swizzle = "64B"

[[launch]]
kernel = "pass_state"
grid = [2, "HV", "B"]
block = ["384"]
shared = "STAGES * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 1024) + 64 * 64 * 4 + 1024"
args = ["tm_q", "tm_k", "tm_v", "tm_a", "g", "beta", "initial_state", "tm_output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass on the tensor cores, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). pass_state() goes from chunk to chunk. A block
// of it computes 64 columns of a head, with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result
// of one product has the layout of the left operand of the next, so that no intermediate result leaves the registers.
//
// A block has three warpgroups. The first is the chain, from one state to the next: wgmma takes 64 rows of Sᵀ, R or the updates
// from registers, and the tiles from shared memory once for all of them.
// The second computes what needs no state, a chunk ahead of the chain and into the same stage of the ring: the scores, from the
// tiles of q and k that are there, and the factors that follow from the gates. Its products would hold up those of the chain, so
// that it issues them in two halves, when the chain says that it turns to its vector units.
// Of the third, a thread has the copy engine fill a ring of chunks, ahead of the others.
// Only the way from one state to the next is waited for: what the state says about the outputs is computed while the vector
// units work out R, and what the updates say about them while the next state is packed.
// The outputs leave through shared memory and the copy engine, since stores straight from the registers touch four lines each,
// and they do so one chunk later, while the first product with the next state is under way.
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

__device__ __forceinline__ void storeMatrices(unsigned row, const unsigned (&from)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(row), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
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

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The log gates and the betas of this lane's two tokens of a chunk; zeros after the last one, which neither decay nor update.
__device__ __forceinline__ void readGates(float2 &logs, float2 &weights, const float *g, const float *beta, int pitch,
                                          int valid)
{
    const int t = threadIdx.x % 32 * 2;
    logs = make_float2(0.0f, 0.0f);
    weights = make_float2(0.0f, 0.0f);
    if (t < valid) {
        logs.x = g[size_t(t) * pitch];
        weights.x = beta[size_t(t) * pitch];
    }
    if (t + 1 < valid) {
        logs.y = g[size_t(t + 1) * pitch];
        weights.y = beta[size_t(t + 1) * pitch];
    }
}

// The sums gc of a chunk's log gates, to base 2, and the factors that follow from them, 64 of each: beta, beta exp(gc),
// exp(gc_last - gc) and exp(gc); by one warp.
__device__ __forceinline__ void sumGates(float *sums, float *factors, float2 logs, float2 weights)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float toBase2 = 1.44269504f;
    const float even = toBase2 * logs.x;
    float sum = even + toBase2 * logs.y;
    const float own = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = sum - own + even; // up to the even one
    const float decay = exp2Fast(before), nextDecay = exp2Fast(sum);
    *reinterpret_cast<float2 *>(sums + t) = make_float2(before, sum);
    *reinterpret_cast<float2 *>(factors + t) = weights;
    *reinterpret_cast<float2 *>(factors + C + t) = make_float2(weights.x * decay, weights.y * nextDecay);
    *reinterpret_cast<float2 *>(factors + 2 * C + t) = make_float2(exp2Fast(last - before), exp2Fast(last - sum));
    *reinterpret_cast<float2 *>(factors + 3 * C + t) = make_float2(decay, nextDecay);
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

// Registers of a thread go from one warpgroup to another; by a whole warpgroup.
template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}

// The factors of this thread's columns, in pairs.
__device__ __forceinline__ void readFactors(float2 (&to)[8], const float *from)
{
#pragma unroll
    for (int n = 0; n < 8; ++n)
        to[n] = *reinterpret_cast<const float2 *>(from + n * 8);
}

// A chunk in shared memory: tiles of 64 tokens, and what the second warpgroup adds: the scores, and the factors at the end.
constexpr unsigned KS = 0, QS = C * D * 2, VS = 2 * QS, MATRIX = VS + C * C * 2, COPIED_BYTES = MATRIX + C * C * 2;
constexpr unsigned SCORES = COPIED_BYTES, FACTORS = SCORES + C * C * 2, STAGE_BYTES = FACTORS + 4 * C * 4;

extern "C" __global__ void __launch_bounds__(384, 1)
    pass_state(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
               const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapMatrix,
               const float *__restrict__ g, const float *__restrict__ beta,
               const float *__restrict__ initial_state, const __grid_constant__ TensorMap mapOutput,
               float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[6 * STAGES];
    __shared__ __align__(16) float sums[STAGES][C];
    unsigned char *ring = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    // The factors are there; the scores are; the chain turns to its vector units, twice a chunk.
    const unsigned gated = empty + 8 * STAGES, scored = gated + 8 * STAGES;
    const unsigned firstLull = scored + 8 * STAGES, secondLull = firstLull + 8 * STAGES;

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int chunks = (T + C - 1) / C;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4); // the warps of the chain
            initBarrier(gated + 8 * stage, 1);
            initBarrier(scored + 8 * stage, 4); // those of the second warpgroup
            initBarrier(firstLull + 8 * stage, 4);
            initBarrier(secondLull + 8 * stage, 4);
        }
        fenceBarriers();
    }
    __syncthreads();

    if (warp >= 8) {
        giveRegisters<56>();
        if (warp == 8 && lane == 0) {
            const int keyColumn = head / (HV / HQ) * D;
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const int stage = chunk % STAGES, row = chunk * C;
                const unsigned to = sharedAddress(ring) + stage * STAGE_BYTES, barrier = full + 8 * stage;
                waitPhase(empty + 8 * stage, chunk / STAGES % 2 ^ 1); // passes at first
                expectBytes(barrier, COPIED_BYTES);
                for (int half = 0; half < 2; ++half) {
                    copyBox(to + KS + half * 8192, mapK, keyColumn + half * 64, row, batch, barrier);
                    copyBox(to + QS + half * 8192, mapQ, keyColumn + half * 64, row, batch, barrier);
                }
                copyBox(to + VS, mapV, head * D + blockIdx.x * 64, row, batch, barrier);
                copyBox(to + MATRIX, mapMatrix, head * C, row, batch, barrier);
            }
        }
        return;
    }

    if (warp >= 4) {
        giveRegisters<152>();
        const int own = warp - 4, pair = lane % 4 * 2; // 16 rows of the scores a warp
        const float *gatesAt = g + size_t(batch) * T * HV + head, *betasAt = beta + size_t(batch) * T * HV + head;
        float2 logs = make_float2(0.0f, 0.0f), weights = logs;
        if (own == 0) // it has the fewest scores up to the diagonal
            readGates(logs, weights, gatesAt, betasAt, HV, min(C, T));

        unsigned query[8][4];
        float products[32], fading[32];
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const int stage = chunk % STAGES, stageBefore = (chunk + STAGES - 1) % STAGES;
            const unsigned parity = chunk / STAGES % 2, parityBefore = (chunk + STAGES - 1) / STAGES % 2 ^ 1;
            const unsigned at = sharedAddress(ring) + stage * STAGE_BYTES;
            const unsigned tiles = __shfl_sync(~0u, (at & 0x3ffff) >> 4, 0);
            // Full, so empty before: what was here of scores, factors and sums is done with.
            waitPhase(full + 8 * stage, parity);
#pragma unroll
            for (int step = 0; step < 8; ++step)
                loadMatrices(query[step], at + QS + place(own * 16 + lane % 16, 2 * step + lane / 16));

            if (own == 0) {
                const float2 theseLogs = logs, theseWeights = weights;
                if (chunk + 1 < chunks) { // those of the next chunk are under way meanwhile
                    const size_t ahead = size_t(chunk + 1) * C * HV;
                    readGates(logs, weights, gatesAt + ahead, betasAt + ahead, HV, min(C, T - (chunk + 1) * C));
                }
                sumGates(sums[stage], reinterpret_cast<float *>(ring + stage * STAGE_BYTES + FACTORS), theseLogs,
                         theseWeights);
                __syncwarp();
                if (lane == 0)
                    arrive(gated + 8 * stage);
            }
            waitPhase(gated + 8 * stage, parity);

            // How far each token fades until each, nothing right of the diagonal.
            const float *sum = sums[stage];
            const float until[2] = {sum[own * 16 + lane / 4], sum[own * 16 + lane / 4 + 8]};
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                if (n > own) {
#pragma unroll
                    for (int i = 0; i < 8; ++i)
                        fading[8 * n + i] = 0.0f;
                    continue;
                }
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int t = own * 16 + j % 2 * 8 + lane / 4, s = n * 16 + j / 2 * 8 + pair;
                    const float2 from = *reinterpret_cast<const float2 *>(sum + s);
                    fading[8 * n + 2 * j] = s <= t ? exp2Fast(until[j % 2] - from.x) : 0.0f;
                    fading[8 * n + 2 * j + 1] = s < t ? exp2Fast(until[j % 2] - from.y) : 0.0f;
                }
            }
            hold(fading);

            // q · kᵀ, half of it in each lull of the chain's chunk before.
            if (chunk > 0)
                waitPhase(firstLull + 8 * stageBefore, parityBefore);
            hold(query);
            hold(products);
            fenceProducts();
#pragma unroll
            for (int step = 0; step < 4; ++step)
                multiplyAlong(products, query[step], ALONG + (tiles + (KS + step * 32) / 16), step > 0);
            commitProducts();
            waitProducts<0>();
            hold(products);
            if (chunk > 0)
                waitPhase(secondLull + 8 * stageBefore, parityBefore);
            hold(query);
            hold(products);
            fenceProducts();
#pragma unroll
            for (int step = 0; step < 4; ++step)
                multiplyAlong(products, query[4 + step], ALONG + (tiles + (KS + 8192 + step * 32) / 16), 1);
            commitProducts();
            waitProducts<0>();
            hold(products);
            hold(query);

#pragma unroll
            for (int n = 0; n < 4; ++n) {
                unsigned packed[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int i = 8 * n + 2 * j;
                    packed[j] = pack(fading[i] * products[i], fading[i + 1] * products[i + 1]);
                }
                storeMatrices(at + SCORES + place(own * 16 + lane % 16, 2 * n + lane / 16), packed);
            }
            fenceAsyncProxy();
            __syncwarp();
            if (lane == 0)
                arrive(scored + 8 * stage);
        }
        return;
    }

    takeRegisters<248>();
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
    float updates[32], out[32], leaving[32] = {};
    packOperands(left, state);

    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = chunk % STAGES;
        const unsigned vs = sharedAddress(ring) + stage * STAGE_BYTES + VS;
        // The same in all lanes, and known to be: descriptors live in uniform registers.
        const unsigned tiles = __shfl_sync(~0u, (sharedAddress(ring) + stage * STAGE_BYTES & 0x3ffff) >> 4, 0);
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS);
        waitPhase(full + 8 * stage, chunk / STAGES % 2);

        // Sᵀ times kᵀ. In its shadow the outputs of the chunk before leave, every warp's 16 columns by a copy of their own.
        hold(left);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(updates, left[step], ALONG + (tiles + (KS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();
        if (lane == 0)
            waitStoresRead();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 32; ++i)
            outAt[i % 4 / 2][(i / 4 * 8 + i % 2) * 16] = leaving[i];
        fenceAsyncProxy();
        __syncwarp();
        if (lane == 0 && chunk > 0)
            storeBox(mapOutput, head * D + blockIdx.x * 64 + warp * 16, (chunk - 1) * C, batch, sharedAddress(boxOut));

        // Then times qᵀ.
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (QS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // R, the left operand of the product with a: what it takes of the values is ready before the product ends.
        unsigned values[4][4];
        float2 weight[8], both[8];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], vs + place(n * 16 + valueRow, valueChunk));
        waitPhase(gated + 8 * stage, chunk / STAGES % 2); // since the chunk before, as a rule
        readFactors(weight, gates + pair);
        readFactors(both, gates + C + pair);
        float known[32];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const unsigned upper = values[i / 2][i % 2 * 2], lower = values[i / 2][i % 2 * 2 + 1];
            known[4 * i] = weight[i].x * lowOf(upper);
            known[4 * i + 1] = weight[i].y * highOf(upper);
            known[4 * i + 2] = weight[i].x * lowOf(lower);
            known[4 * i + 3] = weight[i].y * highOf(lower);
        }
        hold(known);
        waitProducts<1>();
        hold(updates);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float *u = updates + 4 * i, *v = known + 4 * i;
            rest[i / 2][i % 2 * 2] = pack(v[0] - both[i].x * u[0], v[1] - both[i].y * u[1]);
            rest[i / 2][i % 2 * 2 + 1] = pack(v[2] - both[i].x * u[2], v[3] - both[i].y * u[3]);
        }

        // The updates; the state decays meanwhile.
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], ALONG + (tiles + (MATRIX + step * 32) / 16), step > 0);
        commitProducts();
        const float forget = gates[4 * C - 1];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= forget;
        float2 faded[8];
        readFactors(faded, gates + 2 * C + pair);
        waitProducts<0>();
        if (lane == 0)
            arrive(firstLull + 8 * stage);
        hold(left);
        hold(out);
        hold(updates);
        hold(rest);

        // Sᵀ takes them up, and so do the outputs.
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
        float2 decay[8];
        readFactors(decay, gates + 3 * C + pair);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            out[4 * n] *= decay[n].x;
            out[4 * n + 1] *= decay[n].y;
            out[4 * n + 2] *= decay[n].x;
            out[4 * n + 3] *= decay[n].y;
        }
        waitPhase(scored + 8 * stage, chunk / STAGES % 2); // for long, as a rule
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES + step * 32) / 16), 1);
        commitProducts();
        waitProducts<1>();
        if (lane == 0)
            arrive(secondLull + 8 * stage);
        hold(state);
        hold(decayed);
        packOperands(left, state);
        waitProducts<0>();
        hold(out);
        hold(rest);
        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
        // What leaves gets registers of its own: those of a product are out of reach while others run.
#pragma unroll
        for (int i = 0; i < 32; ++i)
            leaving[i] = scale * out[i];
    }
    if (lane == 0)
        waitStoresRead();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 32; ++i)
        outAt[i % 4 / 2][(i / 4 * 8 + i % 2) * 16] = leaving[i];
    fenceAsyncProxy();
    __syncwarp();
    if (lane == 0) {
        storeBox(mapOutput, head * D + blockIdx.x * 64 + warp * 16, (chunks - 1) * C, batch, sharedAddress(boxOut));
        waitStoresRead(); // shared memory goes away with the block
    }

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8] = state[i];
}
