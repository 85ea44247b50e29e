/*klineage
surface = "cuda"

[[launch]]
kernel = "gated_delta"
grid = ["D / 64", "HV", "B"]
block = ["128"]
shared = "108 * 1024"
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens, on the tensor cores; a block of one warpgroup has 64 columns of values of a head. With G
// the running sum of g in a chunk:
//     (I + L) U = beta · (V - exp(G) · K S)           L[i][j] = beta[i] exp(G[i] - G[j]) k[i]·k[j], j < i
//     output = (exp(G) · Q S + P U) / √D              P[i][j] = exp(G[i] - G[j]) q[i]·k[j], j <= i
//     S = exp(G[63]) S + Kᵀ (exp(G[63] - G) · U)
// The state is transposed, columns by keys, in registers: it and the updates are accumulators of one product and the left
// operand of the next, and a warp's 16 columns need no other warp. The inputs are staged: while a block works on a chunk in shared
// memory, cp.async brings the next one. Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, COLUMNS = 64, TOKENS = 64, THREADS = 128, WARPS = THREADS / 32;
constexpr float LOG2E = 1.4426950408889634f;

// Rows of 128 bytes whose chunks of 16 bytes are swizzled: chunk c of row r lies at c ^ (r % 8).
struct alignas(1024) Stage {
    __nv_bfloat16 k[2][TOKENS][64], q[2][TOKENS][64], v[TOKENS][COLUMNS];
    float g[TOKENS], beta[TOKENS];
};

struct alignas(1024) Shared {
    Stage stages[2];
    __nv_bfloat16 p[TOKENS][TOKENS];          // P / √D, swizzled
    __nv_bfloat16 system[TOKENS][TOKENS + 8]; // -L; in its diagonal blocks of 16, what their inverse has below the diagonal
    float diagonal[WARPS][16][20];            // -L of a warp's diagonal block, transposed
    float sum[WARPS][TOKENS];                 // G · log2(e); these three once for each warp
    float enter[WARPS][TOKENS];               // exp(G)
    float leave[WARPS][TOKENS];               // exp(G[63] - G)
};
static_assert(sizeof(Shared) <= 107 * 1024, "the plan gives 108 KiB, one of them to align");

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory in the background; zeros when they are not valid.
__device__ __forceinline__ void copyAsync16(unsigned to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ void copyAsync4(unsigned to, const void *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to), "l"(from), "r"(valid ? 4 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// What this thread has written to shared memory is seen by wgmma (after a barrier, by that of other threads).
__device__ __forceinline__ void fenceProxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

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

// Keeps the compiler from moving reads and writes of these registers across this point.
template <int N> __device__ __forceinline__ void pin(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i]) :: "memory");
}

template <int N> __device__ __forceinline__ void pin(unsigned (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(x[i]) :: "memory");
}

// A swizzled tile in shared memory: 8 rows are 1024 bytes, halves of 64 elements lie 8192 bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned address)
{
    return 1ull << 62 | 64ull << 32 | 512ull << 16 | (unsigned long long)((address & 0x3ffffu) >> 4);
}

// What a descriptor advances by to 16 keys of a tile of tokens by keys.
__device__ __forceinline__ unsigned long long keysAt(int step)
{
    return (unsigned long long)((step / 4 * 8192 + step % 4 * 32) >> 4);
}

#define REGISTERS4(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3])
#define REGISTERS16(x, i) REGISTERS4(x, i), REGISTERS4(x, i + 4), REGISTERS4(x, i + 8), REGISTERS4(x, i + 12)

// 64 by 64 by 16, both operands in shared memory, rows along the inner dimension.
__device__ __forceinline__ void product64(float (&d)[32], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : REGISTERS16(d, 0), REGISTERS16(d, 16)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// 64 by 64 by 16, the left operand in registers.
template <int N>
__device__ __forceinline__ void product64(float (&d)[32], const unsigned (&a)[N], int step, unsigned long long b,
                                          int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
                 "}\n"
                 : REGISTERS16(d, 0), REGISTERS16(d, 16)
                 : "r"(a[4 * step]), "r"(a[4 * step + 1]), "r"(a[4 * step + 2]), "r"(a[4 * step + 3]), "l"(b),
                   "r"(accumulate));
}

// 64 by 128 by 16, the left operand in registers, the right one with rows along the outer dimension; adds to d.
template <int N>
__device__ __forceinline__ void product128(float (&d)[64], const unsigned (&a)[N], int step, unsigned long long b)
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
                 "}\n"
                 : REGISTERS16(d, 0), REGISTERS16(d, 16), REGISTERS16(d, 32), REGISTERS16(d, 48)
                 : "r"(a[4 * step]), "r"(a[4 * step + 1]), "r"(a[4 * step + 2]), "r"(a[4 * step + 3]), "l"(b), "r"(1));
}

// A warp's 16 by 8 by 16, added to d[at] to d[at + 3].
template <int N>
__device__ __forceinline__ void productOfWarp(float (&d)[32], int at, const unsigned (&a)[N], int step, unsigned b0,
                                              unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[at]), "+f"(d[at + 1]), "+f"(d[at + 2]), "+f"(d[at + 3])
                 : "r"(a[4 * step]), "r"(a[4 * step + 1]), "r"(a[4 * step + 2]), "r"(a[4 * step + 3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void readMatrices(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void readMatricesTransposed(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// Two numbers as bf16, the first in the low half.
__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float powerOf2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float2 readPair(const float *from)
{
    return *reinterpret_cast<const float2 *>(from);
}

extern "C" __global__ void __launch_bounds__(128)
    gated_delta(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                const __nv_bfloat16 *__restrict__ v, const float *__restrict__ g, const float *__restrict__ beta,
                const float *__restrict__ initial_state, float *__restrict__ output,
                float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char memory[];
    Shared &shared = *reinterpret_cast<Shared *>(memory + ((0u - sharedAddress(memory)) & 1023u));
    const int head = blockIdx.y, batch = blockIdx.z, thread = threadIdx.x;
    const int warp = thread / 32, lane = thread % 32, column0 = blockIdx.x * COLUMNS;
    // Of a tile of 8 columns of an accumulator a lane has columns pair and pair + 1 in rows row and row + 8 of its warp's 16.
    const int row = lane / 4, pair = lane % 4 * 2;
    const int headOfKeys = head / (HV / HQ);
    const size_t first = (size_t(batch) * HV + head) * D * D + column0 + warp * 16 + row;

    const auto load = [&](int t0) {
        Stage &stage = shared.stages[t0 / TOKENS % 2];
#pragma unroll
        for (int i = 0; i < TOKENS * 16 / THREADS; ++i) {
            const int t = thread / 16 + i * (THREADS / 16), chunk = thread % 16;
            const bool valid = t0 + t < T;
            const size_t token = size_t(batch) * T + (valid ? t0 + t : 0);
            const size_t from = (token * HQ + headOfKeys) * D + chunk * 8;
            const int swizzled = ((chunk % 8) ^ (t % 8)) * 8;
            copyAsync16(sharedAddress(&stage.k[chunk / 8][t][swizzled]), k + from, valid);
            copyAsync16(sharedAddress(&stage.q[chunk / 8][t][swizzled]), q + from, valid);
        }
#pragma unroll
        for (int i = 0; i < TOKENS * 8 / THREADS; ++i) {
            const int t = thread / 8 + i * (THREADS / 8), chunk = thread % 8;
            const bool valid = t0 + t < T;
            const size_t gate = (size_t(batch) * T + (valid ? t0 + t : 0)) * HV + head;
            copyAsync16(sharedAddress(&stage.v[t][(chunk ^ (t % 8)) * 8]), v + gate * D + column0 + chunk * 8, valid);
        }
        {
            const int t = thread % TOKENS;
            const bool valid = t0 + t < T;
            const size_t gate = (size_t(batch) * T + (valid ? t0 + t : 0)) * HV + head;
            copyAsync4(sharedAddress(thread < TOKENS ? &stage.g[t] : &stage.beta[t]),
                       (thread < TOKENS ? g : beta) + gate, valid);
        }
        commitCopies();
    };

    load(0);

    // Columns warp · 16 + row and 8 further, keys 8 · i + pair and the next one.
    float state[64];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const size_t at = first + (i * 8 + pair + e) * D;
            state[4 * i + e] = initial_state[at];
            state[4 * i + 2 + e] = initial_state[at + 8];
        }
    }

    float *const sum = shared.sum[warp], *const enter = shared.enter[warp], *const leave = shared.leave[warp];
    const unsigned long long matrixP = descriptor(sharedAddress(shared.p));
    // Where a lane points ldmatrix: at two blocks of 8 rows by two of 8 columns.
    const unsigned systemAddress = sharedAddress(&shared.system[lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);

    for (int t0 = 0; t0 < T; t0 += TOKENS) {
        waitCopies<0>();
        fenceProxy();
        __syncthreads(); // this chunk is there, and all are done with the one before

        const Stage &stage = shared.stages[t0 / TOKENS % 2];
        const unsigned keysAddress = sharedAddress(stage.k);
        const unsigned long long keys = descriptor(keysAddress), queries = descriptor(sharedAddress(stage.q));

        // Tokens by tokens: K Kᵀ and Q Kᵀ.
        float kk[32], qk[32];
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            product64(kk, keys + keysAt(step), keys + keysAt(step), step > 0);
        commitProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            product64(qk, queries + keysAt(step), keys + keysAt(step), step > 0);
        commitProducts();

        // The running sum of the gates, in each warp for itself. A gate below exp(-120) is 0 anyway.
        {
            const float2 gates = readPair(&stage.g[2 * lane]);
            const float x = fmaxf(gates.x, -120.f) * LOG2E, y = fmaxf(gates.y, -120.f) * LOG2E;
            float total = x + y;
#pragma unroll
            for (int i = 1; i < 32; i *= 2) {
                const float other = __shfl_up_sync(~0u, total, i);
                total += lane >= i ? other : 0.f;
            }
            const float last = __shfl_sync(~0u, total, 31), before = total - y;
            *reinterpret_cast<float2 *>(&sum[2 * lane]) = make_float2(before, total);
            *reinterpret_cast<float2 *>(&enter[2 * lane]) = make_float2(powerOf2(before), powerOf2(total));
            *reinterpret_cast<float2 *>(&leave[2 * lane]) = make_float2(powerOf2(last - before), powerOf2(last - total));
        }
        __syncwarp();

        load(t0 + TOKENS); // past the end, zeros that nobody reads

        // exp(G[i] - G[j]); what stands above the diagonal is not used.
        float decay[32];
        const float sumOfRow[2] = {sum[warp * 16 + row], sum[warp * 16 + row + 8]};
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 other = readPair(&sum[8 * n + pair]);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                decay[4 * n + 2 * h] = powerOf2(sumOfRow[h] - other.x);
                decay[4 * n + 2 * h + 1] = powerOf2(sumOfRow[h] - other.y);
            }
        }
        pin(decay);

        unsigned stateHalf[32];
#pragma unroll
        for (int i = 0; i < 32; ++i)
            stateHalf[i] = pack(state[2 * i], state[2 * i + 1]);
        pin(stateHalf);

        // -L, as bf16 below the diagonal blocks and in single precision in them.
        const float betaOfRow[2] = {-stage.beta[warp * 16 + row], -stage.beta[warp * 16 + row + 8]};
        waitProducts<1>();
        pin(kk);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float x = betaOfRow[h] * decay[4 * n + 2 * h] * kk[4 * n + 2 * h];
                const float y = betaOfRow[h] * decay[4 * n + 2 * h + 1] * kk[4 * n + 2 * h + 1];
                *reinterpret_cast<unsigned *>(&shared.system[warp * 16 + row + 8 * h][8 * n + pair]) = pack(x, y);
                if (n / 2 == warp) {
                    shared.diagonal[warp][n % 2 * 8 + pair][row + 8 * h] = x;
                    shared.diagonal[warp][n % 2 * 8 + pair + 1][row + 8 * h] = y;
                }
            }
        }
        __syncwarp();

        // Columns by tokens: Sᵀ Kᵀ.
        float predicted[32];
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            product64(predicted, stateHalf, step, keys + keysAt(step), step > 0);
        commitProducts();

        // P.
        waitProducts<1>();
        pin(qk);
        const int distance = warp * 16 + row - pair;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float x = decay[4 * n + 2 * h] * (qk[4 * n + 2 * h] * scale);
                const float y = decay[4 * n + 2 * h + 1] * (qk[4 * n + 2 * h + 1] * scale);
                *reinterpret_cast<unsigned *>(&shared.p[warp * 16 + row + 8 * h][(n ^ row) * 8 + pair])
                    = pack(distance + 8 * h - 8 * n >= 0 ? x : 0.f, distance + 8 * h - 8 * n >= 1 ? y : 0.f);
            }
        }
        fenceProxy();

        // Columns by tokens: Sᵀ Qᵀ.
        float answer[32];
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            product64(answer, stateHalf, step, queries + keysAt(step), step > 0);
        commitProducts();

        // The inverse of the warp's diagonal block of I + L, a column to a lane.
        {
            const int j = lane % 16;
            float inverse[16];
#pragma unroll
            for (int i = 0; i < 16; ++i)
                inverse[i] = i == j ? 1.f : 0.f;
#pragma unroll
            for (int m = 0; m < 15; ++m) {
#pragma unroll
                for (int four = (m + 1) / 4; four < 4; ++four) {
                    const float4 l = *reinterpret_cast<const float4 *>(&shared.diagonal[warp][m][four * 4]);
                    const float values[4] = {l.x, l.y, l.z, l.w};
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        if (four * 4 + e > m)
                            inverse[four * 4 + e] += values[e] * inverse[m];
                }
            }
            const int below = lane / 16 * 8;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float value = below ? inverse[i + 8] : inverse[i];
                shared.system[warp * 16 + i + below][warp * 16 + j] = __float2bfloat16(i + below == j ? 0.f : value);
            }
        }
        __syncthreads();

        // beta · (V - exp(G) · K S), columns by tokens.
        waitProducts<1>();
        pin(predicted);
        float update[32];
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            unsigned values[4];
            const int chunk = warp * 2 + lane / 8 % 2;
            readMatricesTransposed(values, sharedAddress(&stage.v[b * 16 + lane / 16 * 8 + lane % 8]
                                                                 [(chunk ^ (lane % 8)) * 8]));
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int token = b * 16 + i / 2 * 8 + pair, at = 8 * b + 2 * i;
                const float2 entering = readPair(&enter[token]), correction = readPair(&stage.beta[token]);
                update[at] = correction.x * (__uint_as_float(values[i] << 16) - entering.x * predicted[at]);
                update[at + 1]
                    = correction.y * (__uint_as_float(values[i] & 0xffff0000u) - entering.y * predicted[at + 1]);
            }
        }

        // The system, 16 tokens after 16: their own block, then what they are in those behind them.
        unsigned plain[16], leaving[16];
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            unsigned own[4], right[4];
            readMatrices(own, systemAddress + (b * 16 * (TOKENS + 8) + b * 16) * 2);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                right[i] = pack(update[8 * b + 2 * i], update[8 * b + 2 * i + 1]);
            productOfWarp(update, 8 * b, right, 0, own[0], own[1]);
            productOfWarp(update, 8 * b + 4, right, 0, own[2], own[3]);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                plain[4 * b + i] = pack(update[8 * b + 2 * i], update[8 * b + 2 * i + 1]);
#pragma unroll
            for (int m = b + 1; m < 4; ++m) {
                unsigned other[4];
                readMatrices(other, systemAddress + (m * 16 * (TOKENS + 8) + b * 16) * 2);
                productOfWarp(update, 8 * m, plain, b, other[0], other[1]);
                productOfWarp(update, 8 * m + 4, plain, b, other[2], other[3]);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float2 factor = readPair(&leave[b * 16 + i / 2 * 8 + pair]);
                leaving[4 * b + i] = pack(update[8 * b + 2 * i] * factor.x, update[8 * b + 2 * i + 1] * factor.y);
            }
        }

        const float decayOfChunk = enter[TOKENS - 1];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= decayOfChunk;

        waitProducts<0>();
        pin(answer);
        pin(stateHalf);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 entering = readPair(&enter[8 * n + pair]);
            const float x = entering.x * scale, y = entering.y * scale;
            answer[4 * n] *= x;
            answer[4 * n + 1] *= y;
            answer[4 * n + 2] *= x;
            answer[4 * n + 3] *= y;
        }

        // The output gets Uᵀ Pᵀ, the state (exp(G[63] - G) · U)ᵀ K.
        pin(answer);
        pin(plain);
        pin(leaving);
        pin(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            product64(answer, plain, step, matrixP + (unsigned long long)(step * 32 >> 4), 1);
        commitProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            product128(state, leaving, step, keys + (unsigned long long)(step * 2048 >> 4));
        commitProducts();

        waitProducts<1>();
        pin(answer);
        pin(plain);
        const size_t stride = size_t(HV) * D;
        float *const to
            = output + ((size_t(batch) * T + t0 + pair) * HV + head) * D + column0 + warp * 16 + row;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (t0 + 8 * n + pair + e < T) {
                    to[(8 * n + e) * stride] = answer[4 * n + e];
                    to[(8 * n + e) * stride + 8] = answer[4 * n + 2 + e];
                }
            }
        }

        waitProducts<0>();
        pin(state);
        pin(leaving);
    }

#pragma unroll
    for (int i = 0; i < 16; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const size_t at = first + (i * 8 + pair + e) * D;
            final_state[at] = state[4 * i + e];
            final_state[at + 8] = state[4 * i + 2 + e];
        }
    }
}
