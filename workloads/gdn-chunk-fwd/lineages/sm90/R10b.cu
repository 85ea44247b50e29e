/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [3, 4]

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
box = [1, 32, 64]
swizzle = "128B"
l2_promotion = "128B"

[[launch]]
kernel = "chunk_forward"
grid = [2, "HV", "B"]
block = ["384"]
cluster = ["2"]
shared = "STAGES * (2 * 64 * 128 * 2 + 2 * 64 * 64 * 2 + 1024) + (STAGES == 3 ? 2 : 1) * (64 * 128 * 2 + 64 * 64 * 2) + 1024"
args = ["tm_q", "tm_k", "tm_v", "tm_a", "g", "beta", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float 0 - 0.5 * log2(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass on the tensor cores, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). A block computes 64 columns of a head, from chunk to chunk, with four roles:
//   a warp that has the copy engine fill a ring of chunks,
//   a warp that works out what follows from the gates of a chunk,
//   the warpgroup of the chain, which does nothing but go from one state to the next,
//   and the warpgroup of the outputs, which follows it: the scores of a chunk, what the state says and what the updates say.
// The chain gives the other warpgroup its state and its updates in shared memory, as bf16, while its own products run.
//
// The chain computes with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result of one product has
// the layout of the left operand of the next. The update of the state is two products, 64 keys each: the first half meets the next
// chunk's keys while the second is still being added to. What a chunk's values give R is ready before the chunk begins.
// The outputs are computed as they are stored, a row a token, with scores that stay in registers.
//
// The two blocks of a head are a cluster: each copies half of the queries, the keys and the matrix into the shared memory of both, and
// a stage is free when both are done with it.
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
__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// The reverse without the transposition: fragments to rows.
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

// The same for the barrier at this place in one of the blocks of the cluster.
__device__ __forceinline__ void arriveIn(unsigned barrier, int block)
{
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" :: "r"(barrier), "r"(block) : "memory");
}

// Waits for all threads of the cluster, and sees what they wrote.
__device__ __forceinline__ void syncCluster()
{
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::: "memory");
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

// Starts the copy of one box of rows of 64 numbers.
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

// The same to this place in both blocks of the cluster, each with a barrier of its own.
__device__ __forceinline__ void copyBoxToBoth(unsigned to, const TensorMap &map, int column, int row, int outer,
                                              unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3, %4}], [%5], %6;"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(outer), "r"(barrier), "h"(static_cast<unsigned short>(3)) : "memory");
}

// What a lane takes from its two tokens. Tokens after the last one neither decay nor update.
struct Gates {
    float even, odd, weight, nextWeight;
};

__device__ __forceinline__ Gates loadGates(const float *g, const float *beta, int pitch, int valid)
{
    const int t = threadIdx.x % 32 * 2;
    const size_t at = size_t(t) * pitch;
    return {t < valid ? g[at] : 0.0f, t + 1 < valid ? g[at + pitch] : 0.0f, t < valid ? beta[at] : 0.0f,
            t + 1 < valid ? beta[at + pitch] : 0.0f};
}

// What follows from the gates, 64 numbers each: beta, beta exp(gc) and exp(gc_last - gc) in the order in which the chain reads them,
// and the sums gc of the log gates themselves, to base 2; by one warp.
__device__ __forceinline__ void writeFactors(float *factors, const Gates &gates)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const int at = lane / 8 * 16 + lane % 4 * 4 + lane / 4 % 2 * 2; // a thread of the chain reads four numbers of 16 at once
    const float toBase2 = 1.44269504f;
    const float own = toBase2 * gates.even + toBase2 * gates.odd;
    float sum = own;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = sum - own + toBase2 * gates.even; // up to the even one
    *reinterpret_cast<float2 *>(factors + at) = make_float2(gates.weight, gates.nextWeight);
    *reinterpret_cast<float2 *>(factors + C + at) =
        make_float2(gates.weight * exp2Fast(before), gates.nextWeight * exp2Fast(sum));
    *reinterpret_cast<float2 *>(factors + 2 * C + at) = make_float2(exp2Fast(last - before), exp2Fast(last - sum));
    *reinterpret_cast<float2 *>(factors + 3 * C + t) = make_float2(before, sum);
}

template <int COUNT> __device__ __forceinline__ void giveRegisters()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void takeRegisters()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}

// Describe rows of 128 swizzled bytes to wgmma, 1024 bytes from one group of 8 rows to the next; where they begin, in units
// of 16 bytes, is added. An operand whose rows are those or the columns of the result;
constexpr unsigned long long ROWS = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
// and one whose rows are summed over.
constexpr unsigned long long SUMMED = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a · b, or d += it; 64 × 16 times 16 × 64, in the background, by a whole warpgroup. The rows of b in shared memory are the
// columns of the result, or, if ACROSS, summed over.
template <int ACROSS>
__device__ __forceinline__ void multiply(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, accumulate, 1, 1, %38;\n"
        "}"
        : SUMS32(0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(ACROSS));
}

// The same with the left operand in shared memory, too.
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

__device__ __forceinline__ void hold(unsigned (&r)[4])
{
#pragma unroll
    for (int i = 0; i < 4; ++i)
        asm volatile("" : "+r"(r[i]) :: "memory");
}

template <int COUNT> __device__ __forceinline__ void hold(unsigned (&r)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        hold(r[i]);
}

// Eight results of a product, 16 columns, as left operand of the next.
__device__ __forceinline__ void packOperand(unsigned (&to)[4], const float *from)
{
#pragma unroll
    for (int i = 0; i < 4; ++i)
        to[i] = pack(from[2 * i], from[2 * i + 1]);
}

// Makes this thread's writes to shared memory visible to the copy engine and the tensor cores.
__device__ __forceinline__ void fenceAsyncProxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The factors of this thread's columns of tiles, four of every 16.
__device__ __forceinline__ void readFactors(float4 (&to)[4], const float *from)
{
#pragma unroll
    for (int m = 0; m < 4; ++m)
        to[m] = *reinterpret_cast<const float4 *>(from + m * 16 + threadIdx.x % 4 * 4);
}

// A chunk in shared memory: four tiles of 64 tokens that are copied, then the factors.
constexpr unsigned KS = 0, QS = C * D * 2, VS = 2 * QS, MATRIX = VS + C * C * 2, FACTORS = MATRIX + C * C * 2;
constexpr unsigned STAGE_BYTES = FACTORS + 4 * C * 4, COPIED_BYTES = FACTORS;
// Behind the ring, what the chain hands over: 64 rows of Sᵀ, and 64 of the updates' transpose.
constexpr int BUFFERS = STAGES == 3 ? 2 : 1;
constexpr unsigned HANDED = STAGES * STAGE_BYTES, STATE_BYTES = 64 * D * 2, HANDED_BYTES = STATE_BYTES + 64 * C * 2;

extern "C" __global__ void __launch_bounds__(384, 1)
    chunk_forward(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
                  const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapMatrix,
                  const float *__restrict__ g, const float *__restrict__ beta, const float *__restrict__ initial_state,
                  float *__restrict__ output, float *__restrict__ final_state, int T, int HQ, int HV, float scaleLog2)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[3 * STAGES + 4 * BUFFERS];
    unsigned char *ring = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned full = sharedAddress(barriers), gated = full + 8 * STAGES, empty = gated + 8 * STAGES;
    const unsigned stateReady = empty + 8 * STAGES, stateRead = stateReady + 8 * BUFFERS;
    const unsigned updatesReady = stateRead + 8 * BUFFERS, updatesRead = updatesReady + 8 * BUFFERS;
    const unsigned ringAt = sharedAddress(ring), handed = ringAt + HANDED;

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, pair = lane % 4 * 2;
    const int role = __shfl_sync(~0u, thread / 128, 0), warp = __shfl_sync(~0u, thread / 32 % 4, 0);
    const int chunks = (T + C - 1) / C;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(gated + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 16); // the warps of both warpgroups, in both blocks
        }
        for (int i = 0; i < 4 * BUFFERS; ++i)
            initBarrier(stateReady + 8 * i, 4); // the warps of one of them
        fenceBarriers();
    }
    syncCluster();

    if (role == 2) {
        giveRegisters<40>();
        if (warp == 0 && lane == 0) {
            const int keyColumn = head / (HV / HQ) * D, half = blockIdx.x; // what this block copies
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const int stage = chunk % STAGES, row = chunk * C;
                const unsigned to = ringAt + stage * STAGE_BYTES, barrier = full + 8 * stage;
                waitPhase(empty + 8 * stage, chunk / STAGES % 2 ^ 1); // passes at first
                expectBytes(barrier, COPIED_BYTES);
                copyBoxToBoth(to + KS + half * 8192, mapK, keyColumn + half * 64, row, batch, barrier);
                copyBox(to + VS, mapV, head * D + half * 64, row, batch, barrier);
                copyBoxToBoth(to + MATRIX + half * 4096, mapMatrix, head * C, row + half * 32, batch, barrier);
                copyBoxToBoth(to + QS + half * 8192, mapQ, keyColumn + half * 64, row, batch, barrier);
            }
        }
        if (warp == 1) {
            const auto load = [&](int chunk) {
                const size_t at = (size_t(batch) * T + chunk * C) * HV + head;
                return loadGates(g + at, beta + at, HV, T - chunk * C);
            };
            Gates gates = load(0);
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const int stage = chunk % STAGES;
                const Gates now = gates;
                if (chunk + 1 < chunks)
                    gates = load(chunk + 1);
                waitPhase(empty + 8 * stage, chunk / STAGES % 2 ^ 1);
                writeFactors(reinterpret_cast<float *>(ring + stage * STAGE_BYTES + FACTORS), now);
                __syncwarp();
                if (lane == 0)
                    arrive(gated + 8 * stage);
            }
        }
        __syncwarp();
        syncCluster();
        return;
    }

    // Where a chunk begins, as descriptors have it; the same in all lanes, and known to be: these live in uniform registers.
    const auto tilesOf = [&](int chunk) {
        return __shfl_sync(~0u, (ringAt + chunk % STAGES * STAGE_BYTES & 0x3ffff) >> 4, 0);
    };
    const auto handedIn = [&](int chunk) {
        return __shfl_sync(~0u, (handed + chunk % BUFFERS * HANDED_BYTES & 0x3ffff) >> 4, 0);
    };

    if (role == 1) {
        // The outputs of two tokens in this thread, t0 and t0 + 8, and of two columns of every 8.
        giveRegisters<160>();
        const int t0 = warp * 16 + lane / 4;
        float *to = output + ((size_t(batch) * T + t0) * HV + head) * D + blockIdx.x * 64 + pair;
        float products[32], out[32];
        unsigned scores[4][4];

        // Queries times keys, which needs no state; after the last chunk once more, for nothing.
        const auto startScores = [&](int chunk) {
            const unsigned tiles = tilesOf(chunk);
            if (chunk < chunks)
                waitPhase(full + 8 * (chunk % STAGES), chunk / STAGES % 2);
            hold(products);
            fenceProducts();
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                const unsigned offset = step / 4 * 8192 + step % 4 * 32;
                multiplyTiles(products, ROWS + (tiles + (QS + offset) / 16), ROWS + (tiles + (KS + offset) / 16), step > 0);
            }
            commitProducts();
        };

        startScores(0);
        waitProducts<0>();
        hold(products);
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const int stage = chunk % STAGES, buffer = chunk % BUFFERS, phase = chunk / BUFFERS % 2;
            const unsigned tiles = tilesOf(chunk), given = handedIn(chunk);
            const float *sums = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS) + 3 * C;
            waitPhase(gated + 8 * stage, chunk / STAGES % 2);
            const float now[2] = {sums[t0] + scaleLog2, sums[t0 + 8] + scaleLog2};
            float2 before[8];
#pragma unroll
            for (int n = 0; n < 8; ++n)
                before[n] = *reinterpret_cast<const float2 *>(sums + n * 8 + pair);

            // Queries times the state, in whose shadow the scores get their factors.
            waitPhase(stateReady + 8 * buffer, phase);
            hold(out);
            fenceProducts();
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                const unsigned offset = step / 4 * 8192 + step % 4 * 32;
                multiplyTiles(out, ROWS + (tiles + (QS + offset) / 16), ROWS + (given + offset / 16), step > 0);
            }
            commitProducts();
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const int s = n * 8 + pair;
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int t = t0 + half * 8;
                    const float *d = products + 4 * n + 2 * half;
                    const float low = s <= t ? exp2Fast(now[half] - before[n].x) * d[0] : 0.0f;
                    const float high = s < t ? exp2Fast(now[half] - before[n].y) * d[1] : 0.0f;
                    scores[n / 2][n % 2 * 2 + half] = pack(low, high);
                }
            }
            const float decay[2] = {exp2Fast(now[0]), exp2Fast(now[1])};
            hold(scores);
            waitProducts<0>();
            hold(out);
            __syncwarp();
            if (lane == 0)
                arrive(stateRead + 8 * buffer);
#pragma unroll
            for (int i = 0; i < 32; ++i)
                out[i] *= decay[i / 2 % 2];

            // Scores times updates, and the next chunk's scores in their wake.
            waitPhase(updatesReady + 8 * buffer, phase);
            hold(out);
            fenceProducts();
#pragma unroll
            for (int step = 0; step < 4; ++step)
                multiply<0>(out, scores[step], ROWS + (given + (STATE_BYTES + step * 32) / 16), 1);
            commitProducts();
            startScores(chunk + 1);
            waitProducts<1>();
            hold(scores);
            __syncwarp();
            if (lane == 0)
                arrive(updatesRead + 8 * buffer);
            if (lane < 2)
                arriveIn(empty + 8 * stage, lane);
            waitProducts<0>();
            hold(out);
            hold(products);
            const int valid = T - chunk * C;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (t0 + half * 8 < valid) {
#pragma unroll
                    for (int n = 0; n < 8; ++n)
                        __stcs(reinterpret_cast<float2 *>(to + size_t(half * 8) * HV * D + n * 8),
                               make_float2(out[4 * n + 2 * half], out[4 * n + 2 * half + 1]));
                }
            }
            to += size_t(C) * HV * D;
        }
        syncCluster();
        return;
    }

    takeRegisters<240>();
    // The rows of Sᵀ in this thread: `column` and `column` + 8; its columns of 8-wide tiles: `pair`, and the next.
    const int column = blockIdx.x * 64 + warp * 16 + lane / 4;
    const size_t stateAt = (size_t(batch) * HV + head) * D * D + column;

    float near[32], far[32]; // keys below 64, and the others
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const size_t at = stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8;
        near[i] = initial_state[at];
        far[i] = initial_state[at + 64 * D];
    }

    const int valueRow = lane / 16 * 8 + lane % 8, valueChunk = 2 * warp + lane / 8 % 2;
    const int handRow = warp * 16 + lane % 16, handChunk = lane / 16;

    unsigned left[8][4], rest[4][4], decayed[4][4];
    float products[32], updates[32], known[32];
    float4 both[4];

    // What R takes of a chunk's values, and what it takes of the product with the state. After the last chunk what is read is not
    // used.
    const auto prepareRest = [&](int chunk) {
        const int stage = chunk % STAGES;
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS);
        if (chunk < chunks) {
            waitPhase(full + 8 * stage, chunk / STAGES % 2);
            waitPhase(gated + 8 * stage, chunk / STAGES % 2);
        }
        unsigned values[4][4];
        float4 weight[4];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], ringAt + stage * STAGE_BYTES + VS + place(n * 16 + valueRow, valueChunk));
        readFactors(weight, gates);
        readFactors(both, gates + C);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                known[8 * n + 2 * i] = (i < 2 ? weight[n].x : weight[n].z) * lowOf(values[n][i]);
                known[8 * n + 2 * i + 1] = (i < 2 ? weight[n].y : weight[n].w) * highOf(values[n][i]);
            }
        }
        hold(known);
    };
    // Sᵀ times kᵀ, by halves of the keys' columns.
    const auto startNear = [&](unsigned tiles) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            packOperand(left[step], near + 8 * step);
            hold(left[step]);
        }
        hold(products);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiply<0>(products, left[step], ROWS + (tiles + (KS + step * 32) / 16), step > 0);
        commitProducts();
    };
    const auto startFar = [&](unsigned tiles) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            packOperand(left[4 + step], far + 8 * step);
            hold(left[4 + step]);
        }
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiply<0>(products, left[4 + step], ROWS + (tiles + (KS + 8192 + step * 32) / 16), 1);
        commitProducts();
    };

    // Both at once.
    const auto startFirst = [&](unsigned tiles) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            packOperand(left[step], near + 8 * step);
            packOperand(left[4 + step], far + 8 * step);
        }
        hold(left);
        hold(products);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiply<0>(products, left[step], ROWS + (tiles + (KS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();
    };

    prepareRest(0);
    startFirst(tilesOf(0));
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = chunk % STAGES, buffer = chunk % BUFFERS, phase = chunk / BUFFERS % 2;
        const unsigned tiles = tilesOf(chunk), next = tilesOf(chunk + 1);
        const unsigned give = handed + buffer * HANDED_BYTES;
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS);

        // Sᵀ times kᵀ is under way, and the state is handed over.
        float4 faded[4];
        readFactors(faded, gates + 2 * C);
        const float forget = exp2Fast(gates[4 * C - 1]);
        waitPhase(stateRead + 8 * buffer, phase ^ 1); // passes at first
#pragma unroll
        for (int step = 0; step < 8; ++step)
            storeMatrices(give + place(handRow, 2 * step + handChunk), left[step]);
        fenceAsyncProxy();
        __syncwarp();
        if (lane == 0)
            arrive(stateReady + 8 * buffer);
        waitProducts<0>();
        hold(products);
        hold(left);

        // R times the matrix; the state decays meanwhile.
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const float *u = products + 8 * n, *v = known + 8 * n;
            rest[n][0] = pack(v[0] - both[n].x * u[0], v[1] - both[n].y * u[1]);
            rest[n][1] = pack(v[2] - both[n].x * u[2], v[3] - both[n].y * u[3]);
            rest[n][2] = pack(v[4] - both[n].z * u[4], v[5] - both[n].w * u[5]);
            rest[n][3] = pack(v[6] - both[n].z * u[6], v[7] - both[n].w * u[7]);
        }
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int n = 0; n < 4; ++n)
            multiply<0>(updates, rest[n], ROWS + (tiles + (MATRIX + n * 32) / 16), n > 0);
        commitProducts();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            near[i] *= forget;
            far[i] *= forget;
        }
        hold(near);
        hold(far);
        waitProducts<0>();
        hold(updates);
        hold(rest);

        // Sᵀ takes the updates up.
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const float *u = updates + 8 * n;
            decayed[n][0] = pack(u[0] * faded[n].x, u[1] * faded[n].y);
            decayed[n][1] = pack(u[2] * faded[n].x, u[3] * faded[n].y);
            decayed[n][2] = pack(u[4] * faded[n].z, u[5] * faded[n].w);
            decayed[n][3] = pack(u[6] * faded[n].z, u[7] * faded[n].w);
        }
        hold(decayed);
        hold(near);
        hold(far);
        fenceProducts();
#pragma unroll
        for (int n = 0; n < 4; ++n)
            multiply<1>(near, decayed[n], SUMMED + (tiles + (KS + n * 2048) / 16), 1);
        commitProducts();
#pragma unroll
        for (int n = 0; n < 4; ++n)
            multiply<1>(far, decayed[n], SUMMED + (tiles + (KS + 8192 + n * 2048) / 16), 1);
        commitProducts();

        // The updates are handed over.
        __syncwarp();
        waitPhase(updatesRead + 8 * buffer, phase ^ 1);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            packOperand(rest[n], updates + 8 * n);
            storeMatrices(give + STATE_BYTES + place(handRow, 2 * n + handChunk), rest[n]);
        }
        fenceAsyncProxy();
        __syncwarp();
        if (lane == 0)
            arrive(updatesReady + 8 * buffer);

        // The next chunk's product starts with the half of the state that is there; after the last chunk for nothing.
        prepareRest(chunk + 1);
        waitProducts<1>();
        hold(near);
        startNear(next);
        waitProducts<1>();
        hold(far);
        hold(decayed);
        __syncwarp();
        if (lane < 2)
            arriveIn(empty + 8 * stage, lane);
        startFar(next);
    }
    waitProducts<0>();
    hold(products);
    hold(left);

#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const size_t at = stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8;
        final_state[at] = near[i];
        final_state[at + 64 * D] = far[i];
    }
    syncCluster(); // no barrier goes away before the other block has arrived at it
}
