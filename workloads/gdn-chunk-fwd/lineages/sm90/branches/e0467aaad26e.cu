/*klineage
surface = "cuda"

[[workspace]]
name = "scores"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", 64, 64]

[[workspace]]
name = "factors"
dtype = "f32"
shape = ["B", "HV", "ceil_div(T, 64)", 4, 64]

[[tensormap]]
name = "q_tiles"
tensor = "q"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "k_tiles"
tensor = "k"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "v_tiles"
tensor = "v"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

[[tensormap]]
name = "a_tiles"
tensor = "a"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "128B"
fill = "zero"

[[tensormap]]
name = "score_tiles"
tensor = "scores"
box = [1, 1, 1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "zero"

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
shared = "3 * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 4 * 64 * 4) + 1024"
args = ["q_tiles", "k_tiles", "v_tiles", "a_tiles", "score_tiles", "factors", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass on the tensor cores, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). prepare() computes what needs no state, for all chunks at once: the scores, whose product
// q · kᵀ the heads of a key head share, and the factors that follow from the gates. pass_state() goes from chunk to chunk. A block
// of it computes 64 columns of a head, with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result
// of one product has the layout of the left operand of the next, so that no intermediate result leaves the registers. A fifth warp
// fills a ring of chunks by TMA, ahead of the four that compute.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk

// The ring of pass_state(): in a slot lie the tiles of k, q, v, a and the scores of a chunk, and its factors.
constexpr int SLOTS = 3;
constexpr unsigned Q_AT = C * D * 2, V_AT = Q_AT + C * D * 2, A_AT = V_AT + C * C * 2, SCORES_AT = A_AT + C * C * 2;
constexpr unsigned FACTORS_AT = SCORES_AT + C * C * 2, SLOT_BYTES = FACTORS_AT + 4 * C * 4;
static_assert(SLOT_BYTES % 1024 == 0, "the pattern of the swizzle repeats every 1024 bytes");

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the chunk of 8 bf16 of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

// From the address of a lane's own place, in chunk 0 or 1, to the one `row` rows (a multiple of 8) and `chunk` chunks (even) further.
__device__ __forceinline__ unsigned beyond(unsigned own, int row, int chunk)
{
    return (own ^ chunk % 8 * 16) + (chunk / 8 * 8192 + row * 128);
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

// Until the phase of this parity is complete; the one before the first, of parity 1, is.
__device__ __forceinline__ void waitBarrier(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred complete;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, complete;\n"
                     "}\n"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// Whether it is complete, without waiting.
__device__ __forceinline__ bool isComplete(unsigned barrier, unsigned parity)
{
    unsigned done;
    asm volatile("{\n"
                 ".reg .pred complete;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, complete;\n"
                 "}\n"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    return done;
}

__device__ __forceinline__ void prefetchMap(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

// 64 tokens of 64 columns of a head, swizzled as place() has it, zeros after the last token of the sequence.
__device__ __forceinline__ void fetchTile(unsigned to, const TensorMap *map, unsigned barrier, int column, int head,
                                          int token, int batch)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(to), "l"(map), "r"(barrier), "r"(column), "r"(head), "r"(token), "r"(batch) : "memory");
}

// The scores of a chunk.
__device__ __forceinline__ void fetchScores(unsigned to, const TensorMap *map, unsigned barrier, int chunk, int head,
                                            int batch)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %3, %4, %5, %6}], [%2];"
                 :: "r"(to), "l"(map), "r"(barrier), "r"(0), "r"(chunk), "r"(head), "r"(batch) : "memory");
}

__device__ __forceinline__ void fetchBytes(unsigned to, const void *from, unsigned barrier, unsigned bytes)
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

extern "C" __global__ void __launch_bounds__(160)
    pass_state(const __grid_constant__ TensorMap qTiles, const __grid_constant__ TensorMap kTiles,
               const __grid_constant__ TensorMap vTiles, const __grid_constant__ TensorMap aTiles,
               const __grid_constant__ TensorMap scoreTiles, const float *__restrict__ factors,
               const float *__restrict__ initial_state, float *__restrict__ output, float *__restrict__ final_state,
               int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) unsigned long long barriers[2 * SLOTS];
    unsigned char *ring = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ringAt = sharedAddress(ring);
    const unsigned filled = sharedAddress(barriers), emptied = filled + 8 * SLOTS; // a barrier of each for every slot

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int chunks = (T + C - 1) / C;

    if (thread == 128) {
        prefetchMap(&kTiles);
        prefetchMap(&qTiles);
        prefetchMap(&vTiles);
        prefetchMap(&aTiles);
        prefetchMap(&scoreTiles);
        for (int i = 0; i < SLOTS; ++i) {
            initBarrier(filled + 8 * i, 1);
            initBarrier(emptied + 8 * i, 4); // the warps that compute
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads(); // the only one: from here on, the warps meet at the barriers of the slots

    if (warp == 4) { // fills the ring
        if (lane == 0) {
            const int keyHead = head / (HV / HQ);
            const float *from = factors + (size_t(batch) * HV + head) * chunks * 4 * C;
            int slot = 0;
            unsigned parity = 0;
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned to = ringAt + slot * SLOT_BYTES;
                const unsigned barrier = filled + 8 * slot;
                const int token = chunk * C;
                waitBarrier(emptied + 8 * slot, parity ^ 1);
                arriveExpecting(barrier, SLOT_BYTES);
                fetchTile(to, &kTiles, barrier, 0, keyHead, token, batch);
                fetchTile(to + C * C * 2, &kTiles, barrier, C, keyHead, token, batch);
                fetchTile(to + Q_AT, &qTiles, barrier, 0, keyHead, token, batch);
                fetchTile(to + Q_AT + C * C * 2, &qTiles, barrier, C, keyHead, token, batch);
                fetchTile(to + V_AT, &vTiles, barrier, blockIdx.x * 64, head, token, batch);
                fetchBytes(to + FACTORS_AT, from + size_t(chunk) * 4 * C, barrier, 4 * C * 4);
                fetchTile(to + A_AT, &aTiles, barrier, 0, head, token, batch);
                fetchScores(to + SCORES_AT, &scoreTiles, barrier, chunk, head, batch);
                if (++slot == SLOTS) {
                    slot = 0;
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
    // Where a lane begins to read in a slot: the other addresses are constants beyond, so that few registers hold them.
    const unsigned alongAt = place(alongRow, alongChunk), acrossAt = place(acrossRow, acrossChunk);
    const unsigned valuesAt = V_AT + place(alongRow, 2 * warp + alongChunk);

    int slot = 0;
    unsigned parity = 0;
    // The right operands that a chunk begins with, of k and of q, read while the chunk before it ends. `ready`: its slot was filled
    // by then; otherwise they count for nothing, and are read again.
    unsigned first[2][2][4];
    const auto readFirst = [&](unsigned from) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            loadMatrices(first[n][0], beyond(from + alongAt, n * 16, 0));
            loadMatrices(first[n][1], beyond(from + alongAt, n * 16, 0) + Q_AT);
        }
    };
    bool ready = false;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int valid = min(C, T - chunk * C);
        const size_t token = size_t(batch) * T + chunk * C;
        const unsigned from = ringAt + slot * SLOT_BYTES, along = from + alongAt, across = from + acrossAt;
        const float *gates = reinterpret_cast<const float *>(ring + slot * SLOT_BYTES + FACTORS_AT);
        if (!ready) {
            waitBarrier(filled + 8 * slot, parity);
            __syncwarp();
            readFirst(from);
        }
        const int nextSlot = slot + 1 < SLOTS ? slot + 1 : 0;
        const unsigned nextParity = parity ^ (nextSlot == 0);
        const bool nextComplete = isComplete(filled + 8 * nextSlot, nextParity);

        // Sᵀ as left operand: times kᵀ and qᵀ.
        float updates[8][4] = {}, out[8][4] = {};
#pragma unroll
        for (int step = 0; step < 8; ++step) {
            unsigned left[4];
            packOperand(left, state[2 * step], state[2 * step + 1]);
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                if (step == 0 && n < 2) {
                    multiply(updates[2 * n], left, first[n][0][0], first[n][0][1]);
                    multiply(updates[2 * n + 1], left, first[n][0][2], first[n][0][3]);
                    multiply(out[2 * n], left, first[n][1][0], first[n][1][1]);
                    multiply(out[2 * n + 1], left, first[n][1][2], first[n][1][3]);
                    continue;
                }
                unsigned right[4];
                loadMatrices(right, beyond(along, n * 16, 2 * step));
                multiply(updates[2 * n], left, right[0], right[1]);
                multiply(updates[2 * n + 1], left, right[2], right[3]);
                loadMatrices(right, beyond(along, n * 16, 2 * step) + Q_AT);
                multiply(out[2 * n], left, right[0], right[1]);
                multiply(out[2 * n + 1], left, right[2], right[3]);
            }
        }

        // R, the left operand of the product with a.
        unsigned rest[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned values[4];
            loadMatricesTransposed(values, beyond(from + valuesAt, n * 16, 0));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float(&u)[4] = updates[2 * n + i];
                float(&o)[4] = out[2 * n + i];
                const float *factor = gates + n * 16 + i * 8 + pair;
                const float2 weight = *reinterpret_cast<const float2 *>(factor);
                const float2 decayed = *reinterpret_cast<const float2 *>(factor + C);
                const float2 decay = *reinterpret_cast<const float2 *>(factor + 3 * C);
                u[0] = weight.x * lowOf(values[2 * i]) - decayed.x * u[0];
                u[1] = weight.y * highOf(values[2 * i]) - decayed.y * u[1];
                u[2] = weight.x * lowOf(values[2 * i + 1]) - decayed.x * u[2];
                u[3] = weight.y * highOf(values[2 * i + 1]) - decayed.y * u[3];
                o[0] *= scale * decay.x;
                o[1] *= scale * decay.y;
                o[2] *= scale * decay.x;
                o[3] *= scale * decay.y;
            }
            packOperand(rest[n], updates[2 * n], updates[2 * n + 1]);
        }

        // The updates. All of a counts, what is above its diagonal too.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                updates[n][i] = 0.0f;
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                unsigned right[4];
                loadMatrices(right, beyond(along, n * 16, 2 * step) + A_AT);
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
                loadMatrices(right, beyond(along, n * 16, 2 * step) + SCORES_AT);
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
        const float forget = gates[4 * C - 1];
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
                const float2 faded = *reinterpret_cast<const float2 *>(gates + 2 * C + step * 16 + i * 8 + pair);
                float(&u)[4] = updates[2 * step + i];
                u[0] *= faded.x;
                u[1] *= faded.y;
                u[2] *= faded.x;
                u[3] *= faded.y;
            }
            packOperand(rest[step], updates[2 * step], updates[2 * step + 1]);
            if (step == 3) {
                ready = __all_sync(~0u, nextComplete);
                readFirst(ringAt + nextSlot * SLOT_BYTES);
            }
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                unsigned right[4];
                loadMatricesTransposed(right, beyond(across, step * 16, 2 * n));
                multiply(state[2 * n], rest[step], right[0], right[1]);
                multiply(state[2 * n + 1], rest[step], right[2], right[3]);
            }
        }
        __syncwarp(); // all lanes have read the slot
        if (lane == 0)
            arrive(emptied + 8 * slot);
        slot = nextSlot;
        parity = nextParity;
    }

#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            final_state[stateAt + (n * 8 + pair + i % 2) * D + i / 2 * 8] = state[n][i];
    }
}
