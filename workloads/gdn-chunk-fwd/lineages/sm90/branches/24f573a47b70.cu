/*klineage
surface = "cuda"

[[workspace]]
name = "prepared"
dtype = "f32"
shape = ["B", "HV", "ceil_div(T, 64)", "1536"]

[[launch]]
kernel = "chunk_scores"
grid = ["ceil_div(T, 64)", "HQ", "B"]
block = ["128"]
args = ["q", "k", "g", "beta", "prepared", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "chunk_forward"
grid = [2, "HV", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 2 * 64 * 64 * 2 + 1536 * 4 + 1024"
args = ["q", "k", "v", "a", "prepared", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass on the tensor cores, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). A first launch computes for all chunks at once what does not depend on the state: the scores, with
// q · kᵀ once for all heads of a key head, and the factors that follow from the gates. In the second a block computes 64 columns of a
// head, and computes with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result of one product has the
// layout of the left operand of the next, so that R and the updates never leave the registers.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk

// What the first launch leaves for a chunk of a head, in numbers of 4 bytes: 4 factors a token, then the scores, the ten blocks of
// 16 × 16 up to the diagonal, row of blocks after row of blocks, each as the right operand that its 32 lanes hold, 16 bytes a lane.
constexpr int RECORD = 4 * C + 10 * 32 * 4;

__device__ __forceinline__ size_t recordAt(int batch, int head, int chunk, int T, int HV)
{
    return ((size_t(batch) * HV + head) * ((T + C - 1) / C) + chunk) * RECORD;
}

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

// What a lane holds of an operand that lies in shared memory as the lanes hold it.
__device__ __forceinline__ void loadOperand(unsigned (&to)[4], unsigned from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
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

// The records of a chunk, of all value heads of a key head.
extern "C" __global__ void __launch_bounds__(128, 6)
    chunk_scores(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g,
                 const float *__restrict__ beta, float *__restrict__ prepared, int T, int HQ, int HV, float scale)
{
    __shared__ __align__(128) unsigned char tiles[2 * C * D * 2];
    __shared__ __align__(16) float sums[4][C]; // of 4 heads at a time, one a warp
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2;

    const int chunk = blockIdx.x, keyHead = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, pair = lane % 4 * 2;
    const int heads = HV / HQ, firstHead = keyHead * heads;
    const int start = chunk * C, valid = min(C, T - start);
    const size_t token = size_t(batch) * T + start, gate = token * HV + firstHead;
    const size_t row0 = (token * HQ + keyHead) * D;

    copyTile<16>(ks, k + row0, size_t(HQ) * D, valid);
    copyTile<16>(qs, q + row0, size_t(HQ) * D, valid);
    commitCopies();
    if (warp < heads)
        sumGates(sums[warp], prepared + recordAt(batch, firstHead + warp, chunk, T, HV), g + gate + warp,
                 beta + gate + warp, HV, valid);
    waitCopies<0>();
    __syncthreads();

    // q · kᵀ up to the diagonal, 16 tokens a warp.
    const int alongRow = lane / 16 * 8 + lane % 8, alongChunk = lane / 8 % 2;
    float blocks[4][2][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned query[4];
        loadMatrices(query, qs + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            if (n > warp)
                continue;
            unsigned right[4];
            loadMatrices(right, ks + place(n * 16 + alongRow, 2 * step + alongChunk));
            multiply(blocks[n][0], query, right[0], right[1]);
            multiply(blocks[n][1], query, right[2], right[3]);
        }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            blocks[n][0][i] *= scale;
            blocks[n][1][i] *= scale;
        }
    }

    // The scores of each value head.
    const int row = warp * 16 + lane / 4;
    for (int first = 0;;) {
        const int end = min(first + 4, heads);
        for (int h = first; h < end; ++h) {
            const float *sum = sums[h - first];
            const float rowSums[2] = {sum[row], sum[row + 8]};
            uint4 *to = reinterpret_cast<uint4 *>(prepared + recordAt(batch, firstHead + h, chunk, T, HV) + 4 * C)
                        + warp * (warp + 1) / 2 * 32 + lane;
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                if (n > warp)
                    continue;
                const float2 columnSums[2] = {*reinterpret_cast<const float2 *>(sum + n * 16 + pair),
                                              *reinterpret_cast<const float2 *>(sum + n * 16 + 8 + pair)};
                unsigned operand[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int t = row + i / 2 * 8, s = n * 16 + i % 2 * 8 + pair;
                    const float *d = blocks[n][i % 2] + i / 2 * 2;
                    const float low = s <= t ? exp2Fast(rowSums[i / 2] - columnSums[i % 2].x) * d[0] : 0.0f;
                    const float high = s < t ? exp2Fast(rowSums[i / 2] - columnSums[i % 2].y) * d[1] : 0.0f;
                    operand[i] = pack(low, high);
                }
                to[n * 32] = make_uint4(operand[0], operand[1], operand[2], operand[3]);
            }
        }
        first += 4;
        if (first >= heads)
            break;
        __syncthreads(); // the next heads overwrite the sums
        if (first + warp < heads)
            sumGates(sums[warp], prepared + recordAt(batch, firstHead + first + warp, chunk, T, HV),
                     g + gate + first + warp, beta + gate + first + warp, HV, valid);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(128)
    chunk_forward(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                  const __nv_bfloat16 *__restrict__ v, const __nv_bfloat16 *__restrict__ a,
                  const float *__restrict__ prepared, const float *__restrict__ initial_state,
                  float *__restrict__ output, float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2, vs = qs + C * D * 2;
    const unsigned matrices = vs + C * C * 2, record = matrices + C * C * 2;
    const float *factors = reinterpret_cast<const float *>(tiles + (record - ks));

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const unsigned scores = record + 4 * C * 4 + lane * 16;
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

    for (int start = 0; start < T; start += C) {
        const int valid = min(C, T - start);
        const size_t token = size_t(batch) * T + start, gate = token * HV + head;
        const size_t row0 = (token * HQ + head / (HV / HQ)) * D;
        copyTile<16>(ks, k + row0, size_t(HQ) * D, valid);
        copyTile<16>(qs, q + row0, size_t(HQ) * D, valid);
        copyTile<8>(vs, v + gate * D + blockIdx.x * 64, size_t(HV) * D, valid);
        copyTile<8>(matrices, a + gate * C, size_t(HV) * C, valid);
        const float *chunkRecord = prepared + recordAt(batch, head, start / C, T, HV);
#pragma unroll
        for (int i = 0; i < RECORD / 4; i += 128)
            copyAsync16(record + (i + thread) * 16, chunkRecord + (i + thread) * 4, true);
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

        // R, the left operand of the product with a.
        unsigned rest[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned values[4];
            loadMatricesTransposed(values, vs + place(n * 16 + alongRow, 2 * warp + alongChunk));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float(&u)[4] = updates[2 * n + i];
                float(&o)[4] = out[2 * n + i];
                const float *factor = factors + n * 16 + i * 8 + pair;
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
                loadMatrices(right, matrices + place(n * 16 + alongRow, 2 * step + alongChunk));
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
                loadOperand(right, scores + (n * (n + 1) / 2 + step) * 512);
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
        const float forget = factors[4 * C - 1];
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
                const float2 faded = *reinterpret_cast<const float2 *>(factors + 2 * C + step * 16 + i * 8 + pair);
                float(&u)[4] = updates[2 * step + i];
                u[0] *= faded.x;
                u[1] *= faded.y;
                u[2] *= faded.x;
                u[3] *= faded.y;
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
