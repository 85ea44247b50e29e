/*klineage
surface = "cuda"

[[launch]]
kernel = "chunk_forward"
grid = ["D / 64", "HV", "B"]
block = ["128"]
shared = "112128"
args = ["q", "k", "v", "g", "beta", "a", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass with the state in registers, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). A block, one warpgroup, computes 64 columns of a head, all products transposed by wgmma:
//   (K S)ᵀ = Sᵀ Kᵀ,  Nᵀ = Rᵀ aᵀ,  outputᵀ = (Sᵀ Qᵀ) ∘ exp(gc) + Nᵀ Pᵀ,  Sᵀ = exp(last) Sᵀ + (N ∘ exp(last - gc))ᵀ K.
// Sᵀ, Rᵀ and Nᵀ are left operands in registers (an accumulator has the layout of a left operand); the right ones, K, Q, a and
// the scores P, lie in shared memory with the 128-byte swizzle, brought by cp.async a chunk ahead.
// Row x < 8 of the 16 rows of a warp is column 2x of its 16 columns, row x + 8 is column 2x + 1.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, COLUMNS = 64, C = 64; // C tokens a chunk

// Shared memory, in bytes. 64 rows of 128 bytes make a half; queries and keys have two, of 64 keys each.
constexpr int HALF = C * 128, QUERIES = 0, KEYS = 2 * HALF, MATRIX = 4 * HALF, VALUES = 5 * HALF, VALUE_PITCH = 144;
constexpr int STAGE = VALUES + C * VALUE_PITCH, SCORES = 2 * STAGE, GATES = SCORES + HALF;
static_assert(STAGE % 1024 == 0, "the swizzle needs tiles at multiples of 1024");

// Of each token of a chunk; those behind the end have a gate of 1 and a beta of 0.
struct Gates {
    float sums[C]; // of the log gates, in base 2
    float beta[C];
    float rise[C]; // exp(gc)
    float lift[C]; // exp(gc) / √D
    float fall[C]; // exp(gc_last - gc)
};
static_assert(GATES + 2 * sizeof(Gates) + 1024 == 112128, "the shared memory of the plan");

// Descriptors: 128-byte swizzle, 1024 bytes from eight rows to the next eight. STRAIGHT: the rows are n; CROSS: the rows are k.
constexpr unsigned long long STRAIGHT = (1ull << 62) | (64ull << 32) | (1ull << 16);
constexpr unsigned long long CROSS = (1ull << 62) | (64ull << 32) | (64ull << 16);

__device__ __forceinline__ float power(float x) // 2^x
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ void copy16(unsigned to, const void *from, bool real) // zeros where not real
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
}

// Registers of asynchronous products are neither read early, nor written late, nor given away before this.
__device__ __forceinline__ void hold(float (&x)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(x[i]));
}

template <int N> __device__ __forceinline__ void hold(unsigned (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            asm volatile("" : "+r"(x[i][j]));
    }
}

__device__ __forceinline__ void arrive()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void finish()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

#define ACCUMULATORS(d)                                                                                                \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),        \
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),         \
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),        \
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])

#define ACCUMULATOR_NAMES                                                                                              \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                          \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "

// d (+)= left · right, left 64 x 16 in registers, right 16 x 64 in shared memory; CROSSED: with k down the rows there.
template <int CROSSED>
__device__ __forceinline__ void multiply(float (&d)[32], const unsigned (&left)[4], unsigned long long right, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " ACCUMULATOR_NAMES
                 "{%32, %33, %34, %35}, %36, p, 1, 1, %38;\n"
                 "}\n"
                 : ACCUMULATORS(d)
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(add), "n"(CROSSED));
}

// The same with both in shared memory.
__device__ __forceinline__ void multiplyShared(float (&d)[32], unsigned long long left, unsigned long long right,
                                               int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " ACCUMULATOR_NAMES
                 "%32, %33, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACCUMULATORS(d)
                 : "l"(left), "l"(right), "r"(add));
}

// From the start of queries or keys to the 16 keys of a step, in 16 bytes.
__device__ __forceinline__ int along(int step)
{
    return step / 4 * (HALF / 16) + step % 4 * 2;
}

// The state as left operands.
__device__ __forceinline__ void narrow(unsigned (&to)[8][4], const float (&from)[2][32])
{
#pragma unroll
    for (int step = 0; step < 8; ++step) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            to[step][i] = pack(from[step / 4][step % 4 * 8 + 2 * i], from[step / 4][step % 4 * 8 + 2 * i + 1]);
    }
}

// Four of the eight column tiles of the scores: gated, masked and stored. `to` is the row's and the lane's place.
template <int FROM>
__device__ __forceinline__ void mark(const float (&scores)[32], const Gates &now, unsigned char *to, int row, int own,
                                     int quad, float upper, float lower)
{
#pragma unroll
    for (int n = FROM; n < FROM + 4; ++n) {
        const int j = 8 * n + 2 * quad;
        const float2 sums = *reinterpret_cast<const float2 *>(&now.sums[j]);
        const float x0 = scores[4 * n] * power(upper - sums.x), x1 = scores[4 * n + 1] * power(upper - sums.y);
        const float x2 = scores[4 * n + 2] * power(lower - sums.x), x3 = scores[4 * n + 3] * power(lower - sums.y);
        unsigned char *place = to + (n ^ own) * 16;
        *reinterpret_cast<unsigned *>(place) = pack(j <= row ? x0 : 0.0f, j + 1 <= row ? x1 : 0.0f);
        *reinterpret_cast<unsigned *>(place + 8 * 128) = pack(j <= row + 8 ? x2 : 0.0f, j + 1 <= row + 8 ? x3 : 0.0f);
    }
}

extern "C" __global__ void __launch_bounds__(128)
    chunk_forward(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                  const __nv_bfloat16 *__restrict__ v, const float *__restrict__ g, const float *__restrict__ beta,
                  const __nv_bfloat16 *__restrict__ a, const float *__restrict__ initial_state,
                  float *__restrict__ output, float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char memory[];
    unsigned address;
    asm volatile("{\n.reg .u64 t;\ncvta.to.shared.u64 t, %1;\ncvt.u32.u64 %0, t;\n}\n"
                 : "=r"(address)
                 : "l"(static_cast<const void *>(&memory[0]))
                 : "memory");
    const unsigned base = (address + 1023u) & ~1023u;
    unsigned char *shared = memory + (base - address);
    Gates *gates = reinterpret_cast<Gates *>(shared + GATES);

    const int head = blockIdx.y, batch = blockIdx.z, thread = threadIdx.x;
    const int warp = thread / 32, lane = thread % 32, own = lane / 4, quad = lane % 4;
    const int column = blockIdx.x * COLUMNS + warp * 16 + 2 * own; // and the next one
    const int row = warp * 16 + own;                               // of the scores, and that 8 below
    const size_t first = (size_t(batch) * HV + head) * D * D + size_t(2 * quad) * D + column;
    const size_t keyPitch = size_t(HQ) * D;
    const float logScale = log2f(scale);

    // Starts the copies of a chunk; rows behind the end become zeros (all of them where the chunk itself is behind it).
    const auto bring = [&](int start, int stage) {
        const int rows = min(C, T - start);
        const size_t token = size_t(batch) * T + start, gate = token * HV + head;
        const size_t row0 = token * keyPitch + head / (HV / HQ) * D;
        const unsigned tile = base + stage * STAGE;
        {
            const int part = thread % 16, line = thread / 16;
            const unsigned to = tile + part / 8 * HALF + line * 128 + ((part % 8) ^ line) * 16;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int r = i * 8 + line;
                const size_t from = row0 + size_t((long long)min(r, rows - 1)) * keyPitch + part * 8;
                copy16(to + KEYS + i * 8 * 128, k + from, r < rows);
                copy16(to + QUERIES + i * 8 * 128, q + from, r < rows);
            }
        }
        {
            const int part = thread % 8, line = thread / 8;
            const unsigned toMatrix = tile + MATRIX + line * 128 + (part ^ (line % 8)) * 16;
            const unsigned toValues = tile + VALUES + line * VALUE_PITCH + part * 16;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int r = i * 16 + line;
                const size_t from = gate + size_t((long long)min(r, rows - 1)) * HV;
                copy16(toValues + i * 16 * VALUE_PITCH, v + from * D + blockIdx.x * COLUMNS + part * 8, r < rows);
                copy16(toMatrix + i * 16 * 128, a + from * C + part * 8, r < rows && part * 8 < rows);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    // The gates and betas of two tokens a lane, in the first warp.
    const auto loadGates = [&](int start, float2 &logs, float2 &betas) {
        const int left = warp == 0 ? T - start : 0, t = 2 * lane;
        const size_t at = (size_t(batch) * T + start + t) * HV + head;
        logs.x = t < left ? g[at] : 0.0f;
        logs.y = t + 1 < left ? g[at + HV] : 0.0f;
        betas.x = t < left ? beta[at] : 0.0f;
        betas.y = t + 1 < left ? beta[at + HV] : 0.0f;
    };

    const auto addGates = [&](Gates &to, float2 logs, float2 betas) {
        const float log0 = logs.x * 1.4426950408889634f, log1 = logs.y * 1.4426950408889634f;
        float sum = log0 + log1;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const float below = __shfl_up_sync(~0u, sum, d);
            sum += lane >= d ? below : 0.0f;
        }
        const float below = __shfl_up_sync(~0u, sum, 1), last = __shfl_sync(~0u, sum, 31);
        const float sum0 = (lane > 0 ? below : 0.0f) + log0;
        const float rise0 = power(sum0), rise1 = power(sum), fall0 = power(last - sum0), fall1 = power(last - sum);
        if (warp == 0) {
            *reinterpret_cast<float2 *>(&to.sums[2 * lane]) = make_float2(sum0, sum);
            *reinterpret_cast<float2 *>(&to.beta[2 * lane]) = betas;
            *reinterpret_cast<float2 *>(&to.rise[2 * lane]) = make_float2(rise0, rise1);
            *reinterpret_cast<float2 *>(&to.lift[2 * lane]) = make_float2(rise0 * scale, rise1 * scale);
            *reinterpret_cast<float2 *>(&to.fall[2 * lane]) = make_float2(fall0, fall1);
        }
    };

    float2 logs, betas;
    loadGates(0, logs, betas);
    bring(0, 0);

    // Keys h * 64 + n * 8 + 2 * quad + e: [h][4 n + e] in the first column, [h][4 n + 2 + e] in the second.
    float state[2][32];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const float2 x =
                    *reinterpret_cast<const float2 *>(initial_state + first + size_t(h * 64 + n * 8 + e) * D);
                state[h][4 * n + e] = x.x;
                state[h][4 * n + 2 + e] = x.y;
            }
        }
    }
    unsigned states[8][4];
    narrow(states, state);
    addGates(gates[0], logs, betas);

    for (int start = 0, stage = 0; start < T; start += C, stage ^= 1) {
        const int rows = min(C, T - start);
        const size_t gate = (size_t(batch) * T + start) * HV + head;
        const Gates &now = gates[stage];
        const unsigned long long tile = (base + stage * STAGE) / 16;
        const unsigned long long queries = STRAIGHT + tile + QUERIES / 16, keys = STRAIGHT + tile + KEYS / 16;
        const unsigned long long matrix = STRAIGHT + tile + MATRIX / 16, across = CROSS + tile + KEYS / 16;
        const unsigned long long marks = STRAIGHT + (base + SCORES) / 16;

        loadGates(start + C, logs, betas);

        asm volatile("cp.async.wait_group 0;" ::: "memory");
        if (rows < C && thread % 8 == rows / 8) { // columns of the matrix that do not count, in what this thread brought
            for (int r = thread / 8; r < rows; r += 16) {
                for (int j = rows % 8; j < 8; ++j)
                    *reinterpret_cast<unsigned short *>(shared + stage * STAGE + MATRIX + r * 128 +
                                                        ((thread % 8) ^ (r % 8)) * 16 + 2 * j) = 0;
            }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads(); // the chunk is here, the one before is done with

        const float forget = now.rise[C - 1];
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            state[0][i] *= forget;
            state[1][i] *= forget;
        }

        // (K S)ᵀ and the scores.
        float known[32], scores[32];
        hold(state[0]);
        hold(state[1]);
        hold(states);
        arrive();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiply<0>(known, states[step], keys + along(step), step > 0);
        commit();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyShared(scores, queries + along(step), keys + along(step), step > 0);
        commit();

        bring(start + C, stage ^ 1);

        finish<1>();
        hold(known);

        // The rest; tokens n * 8 + 2 * quad + e, as with the keys above.
        unsigned rests[4][4];
        const unsigned char *values =
            shared + stage * STAGE + VALUES + 2 * quad * VALUE_PITCH + (warp * 16 + 2 * own) * 2;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 b = *reinterpret_cast<const float2 *>(&now.beta[8 * n + 2 * quad]);
            const float2 rise = *reinterpret_cast<const float2 *>(&now.rise[8 * n + 2 * quad]);
            const unsigned v0 = *reinterpret_cast<const unsigned *>(values + 8 * n * VALUE_PITCH);
            const unsigned v1 = *reinterpret_cast<const unsigned *>(values + (8 * n + 1) * VALUE_PITCH);
            rests[n / 2][n % 2 * 2] = pack(b.x * (__uint_as_float(v0 << 16) - rise.x * known[4 * n]),
                                           b.y * (__uint_as_float(v1 << 16) - rise.y * known[4 * n + 1]));
            rests[n / 2][n % 2 * 2 + 1] =
                pack(b.x * (__uint_as_float(v0 & 0xffff0000u) - rise.x * known[4 * n + 2]),
                     b.y * (__uint_as_float(v1 & 0xffff0000u) - rise.y * known[4 * n + 3]));
        }

        // The updates, and what the state gives to the outputs.
        float updates[32], outputs[32];
        hold(rests);
        arrive();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiply<0>(updates, rests[step], matrix + 2 * step, step > 0);
        commit();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiply<0>(outputs, states[step], queries + along(step), step > 0);
        commit();

        finish<2>();
        hold(scores);
        unsigned char *place = shared + SCORES + row * 128 + quad * 4;
        const float upper = now.sums[row] + logScale, lower = now.sums[row + 8] + logScale;
        mark<0>(scores, now, place, row, own, quad, upper, lower);

        finish<1>();
        hold(updates);
        hold(rests);

        unsigned news[4][4], tails[4][4];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 fall = *reinterpret_cast<const float2 *>(&now.fall[8 * n + 2 * quad]);
            news[n / 2][n % 2 * 2] = pack(updates[4 * n], updates[4 * n + 1]);
            news[n / 2][n % 2 * 2 + 1] = pack(updates[4 * n + 2], updates[4 * n + 3]);
            tails[n / 2][n % 2 * 2] = pack(updates[4 * n] * fall.x, updates[4 * n + 1] * fall.y);
            tails[n / 2][n % 2 * 2 + 1] = pack(updates[4 * n + 2] * fall.x, updates[4 * n + 3] * fall.y);
        }

        // The state, which has been scaled already.
        hold(tails);
        arrive();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            multiply<1>(state[0], tails[step], across + step * (16 * 128 / 16), 1);
            multiply<1>(state[1], tails[step], across + HALF / 16 + step * (16 * 128 / 16), 1);
        }
        commit();

        mark<4>(scores, now, place, row, own, quad, upper, lower);
        addGates(gates[stage ^ 1], logs, betas);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads(); // the scores are there

        // What the updates give to the outputs.
        float inner[32];
        hold(news);
        arrive();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiply<0>(inner, news[step], marks + 2 * step, step > 0);
        commit();

        finish<1>();
        hold(state[0]);
        hold(state[1]);
        hold(outputs);
        hold(states);
        hold(tails);
        narrow(states, state);

        finish<0>();
        hold(inner);
        hold(news);

        float *to = output + (gate + size_t(2 * quad) * HV) * D + column;
        const size_t pitch = size_t(HV) * D;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const int t = 8 * n + 2 * quad;
            const float2 lift = *reinterpret_cast<const float2 *>(&now.lift[t]);
            if (t < rows)
                *reinterpret_cast<float2 *>(to + 8 * n * pitch) =
                    make_float2(outputs[4 * n] * lift.x + inner[4 * n], outputs[4 * n + 2] * lift.x + inner[4 * n + 2]);
            if (t + 1 < rows)
                *reinterpret_cast<float2 *>(to + (8 * n + 1) * pitch) =
                    make_float2(outputs[4 * n + 1] * lift.y + inner[4 * n + 1],
                                outputs[4 * n + 3] * lift.y + inner[4 * n + 3]);
        }
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");

#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e)
                *reinterpret_cast<float2 *>(final_state + first + size_t(h * 64 + n * 8 + e) * D) =
                    make_float2(state[h][4 * n + e], state[h][4 * n + 2 + e]);
        }
    }
}
