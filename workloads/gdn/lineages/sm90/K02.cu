/*klineage
surface = "cuda"

[[launch]]
kernel = "gated_delta"
grid = ["D / 16", "HV", "B"]
block = ["128"]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule token by token, the state in registers, the inputs staged: while a block works on 16
// tokens in shared memory, cp.async brings the next 16. A token then waits for shared memory alone, which it reads in
// chunks of 16 bytes. Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, LANES = 8, KEYS = D / LANES, COLUMNS = 16, TOKENS = 16;

struct Stage {
    __nv_bfloat16 k[TOKENS][D], q[TOKENS][D], v[TOKENS][COLUMNS];
    float g[TOKENS], beta[TOKENS];
};

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

// The sum over the eight lanes of a column, in all of them.
__device__ __forceinline__ float sumOfLanes(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    x += __shfl_xor_sync(~0u, x, 2);
    x += __shfl_xor_sync(~0u, x, 4);
    return x;
}

// A lane's 16 numbers of a row: chunks of 8 at 8·part and 64 + 8·part.
__device__ __forceinline__ void readRow(float (&to)[KEYS], const __nv_bfloat16 *row, int part)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint4 chunk = *reinterpret_cast<const uint4 *>(row + half * 64 + part * 8);
        const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            to[half * 8 + 2 * i] = __uint_as_float(words[i] << 16);
            to[half * 8 + 2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128)
    gated_delta(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                const __nv_bfloat16 *__restrict__ v, const float *__restrict__ g, const float *__restrict__ beta,
                const float *__restrict__ initial_state, float *__restrict__ output,
                float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    __shared__ __align__(16) Stage stages[2];
    const int head = blockIdx.y, batch = blockIdx.z, thread = threadIdx.x;
    const int part = thread % LANES, local = thread / LANES, column0 = blockIdx.x * COLUMNS;
    const size_t first = (size_t(batch) * HV + head) * D * D + column0 + local;

    const auto load = [&](int t0) {
        Stage &stage = stages[t0 / TOKENS % 2];
        for (int i = thread; i < TOKENS * 16; i += 128) {
            const int t = i / 16, chunk = i % 16;
            const bool valid = t0 + t < T;
            const size_t token = size_t(batch) * T + (valid ? t0 + t : 0);
            const size_t from = (token * HQ + head / (HV / HQ)) * D + chunk * 8;
            copyAsync16(sharedAddress(&stage.k[t][chunk * 8]), k + from, valid);
            copyAsync16(sharedAddress(&stage.q[t][chunk * 8]), q + from, valid);
        }
        if (thread < 4 * TOKENS) {
            const int t = thread % TOKENS, what = thread / TOKENS;
            const bool valid = t0 + t < T;
            const size_t gate = (size_t(batch) * T + (valid ? t0 + t : 0)) * HV + head;
            if (what < 2)
                copyAsync16(sharedAddress(&stage.v[t][what * 8]), v + gate * D + column0 + what * 8, valid);
            else
                copyAsync4(sharedAddress(what == 2 ? &stage.g[t] : &stage.beta[t]), (what == 2 ? g : beta) + gate,
                           valid);
        }
        commitCopies();
    };

    float state[KEYS];
#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        state[i] = initial_state[first + (i / 8 * 64 + part * 8 + i % 8) * D];

    load(0);
    for (int t0 = 0; t0 < T; t0 += TOKENS) {
        if (t0 + TOKENS < T)
            load(t0 + TOKENS);
        else
            commitCopies(); // an empty group in its place
        waitCopies<1>();
        __syncthreads();

        const Stage &stage = stages[t0 / TOKENS % 2];
        const int count = min(TOKENS, T - t0);
        for (int t = 0; t < count; ++t) {
            const size_t gate = (size_t(batch) * T + t0 + t) * HV + head;
            const float decay = expf(stage.g[t]);
            float key[KEYS], query[KEYS], predicted[2] = {};
            readRow(key, stage.k[t], part);
            readRow(query, stage.q[t], part);
#pragma unroll
            for (int i = 0; i < KEYS; ++i) {
                state[i] *= decay;
                predicted[i % 2] += state[i] * key[i];
            }
            const float update = stage.beta[t]
                                 * (__bfloat162float(stage.v[t][local]) - sumOfLanes(predicted[0] + predicted[1]));

            float sum[2] = {};
#pragma unroll
            for (int i = 0; i < KEYS; ++i) {
                state[i] += key[i] * update;
                sum[i % 2] += state[i] * query[i];
            }
            const float total = sumOfLanes(sum[0] + sum[1]);
            if (part == 0)
                output[gate * D + column0 + local] = total * scale;
        }
        __syncthreads(); // the next copies overwrite this stage
    }

#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        final_state[first + (i / 8 * 64 + part * 8 + i % 8) * D] = state[i];
}
