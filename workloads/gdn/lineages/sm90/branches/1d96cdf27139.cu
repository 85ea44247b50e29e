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
// The gated delta rule token by token, the state in registers. Eight lanes share one column of it, 16 keys
// each, and add their sums up by shuffles: 4 columns a warp, 16 a block, and no state in memory between tokens.
// The next 16 tokens come to shared memory by cp.async while these are worked on; lanes read them from there in
// chunks of 16 bytes, one token ahead.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, LANES = 8, KEYS = D / LANES, COLUMNS = 16, THREADS = LANES * COLUMNS;
constexpr int TOKENS = 16;       // tokens a stage
constexpr int CHUNK = 8;         // elements in 16 bytes
constexpr int CHUNKS = D / CHUNK; // chunks in a row of k or q

struct alignas(16) Stage {
    uint4 k[TOKENS * CHUNKS];
    uint4 q[TOKENS * CHUNKS];
    uint4 v[TOKENS * COLUMNS / CHUNK]; // only the block's columns
    float2 gates[TOKENS];              // g, beta
};

// What a lane needs of one token.
struct Token {
    unsigned key[KEYS / 2], query[KEYS / 2]; // pairs of bf16
    float2 gate;
    float value;
};

// The sum over the eight lanes of a column, in all of them.
__device__ __forceinline__ float sumOfLanes(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    x += __shfl_xor_sync(~0u, x, 2);
    x += __shfl_xor_sync(~0u, x, 4);
    return x;
}

// Start a copy to shared memory; zeros if it is not valid.
__device__ __forceinline__ void copy16(void *to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}

__device__ __forceinline__ void copy4(void *to, const void *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(valid ? 4 : 0)
                 : "memory");
}

// A lane's keys of a row: chunks part and part + 8 of it.
__device__ __forceinline__ void readRow(unsigned (&pairs)[KEYS / 2], const uint4 *row, int part)
{
    const uint4 low = row[part], high = row[LANES + part];
    pairs[0] = low.x;
    pairs[1] = low.y;
    pairs[2] = low.z;
    pairs[3] = low.w;
    pairs[4] = high.x;
    pairs[5] = high.y;
    pairs[6] = high.z;
    pairs[7] = high.w;
}

__device__ __forceinline__ void readToken(Token &token, const Stage &stage, int i, int part, int local)
{
    readRow(token.key, stage.k + i * CHUNKS, part);
    readRow(token.query, stage.q + i * CHUNKS, part);
    token.gate = stage.gates[i];
    token.value = __bfloat162float(reinterpret_cast<const __nv_bfloat16 *>(stage.v)[i * COLUMNS + local]);
}

// Element i of pairs of bf16.
__device__ __forceinline__ float element(const unsigned (&pairs)[KEYS / 2], int i)
{
    return __uint_as_float(i % 2 ? pairs[i / 2] & 0xffff0000u : pairs[i / 2] << 16);
}

// The key that is element i of a lane.
__device__ __forceinline__ int keyOf(int i, int part)
{
    return (i / CHUNK * LANES + part) * CHUNK + i % CHUNK;
}

extern "C" __global__ void __launch_bounds__(128)
    gated_delta(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                const __nv_bfloat16 *__restrict__ v, const float *__restrict__ g, const float *__restrict__ beta,
                const float *__restrict__ initial_state, float *__restrict__ output,
                float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    __shared__ Stage stages[2];

    const int thread = threadIdx.x;
    const int head = blockIdx.y, batch = blockIdx.z, group = head / (HV / HQ);
    const int part = thread % LANES, local = thread / LANES, column = blockIdx.x * COLUMNS + local;
    const size_t first = (size_t(batch) * HV + head) * D * D + column;
    const size_t start = size_t(batch) * T;

    // Start the copies of the tokens from t0 on.
    const auto fetch = [&](Stage &stage, int t0) {
#pragma unroll
        for (int j = 0; j < TOKENS * CHUNKS / THREADS; ++j) {
            const int slot = thread + j * THREADS, t = t0 + slot / CHUNKS;
            const bool valid = t < T;
            const size_t row = valid ? ((start + t) * HQ + group) * D : 0;
            copy16(&stage.k[slot], k + row + slot % CHUNKS * CHUNK, valid);
            copy16(&stage.q[slot], q + row + slot % CHUNKS * CHUNK, valid);
        }
        // Of v two chunks a token by the first warp, of g and beta one number each by the second.
        const int slot = thread % 32, t = t0 + slot / 2;
        const bool valid = t < T;
        const size_t gate = valid ? (start + t) * HV + head : 0;
        if (thread < 32)
            copy16(&stage.v[slot], v + gate * D + blockIdx.x * COLUMNS + slot % 2 * CHUNK, valid);
        else if (thread < 64)
            copy4(reinterpret_cast<float *>(stage.gates) + slot, (slot % 2 ? beta : g) + gate, valid);
    };

    if (T > 0)
        fetch(stages[0], 0);

    float state[KEYS]; // keys 8 part to 8 part + 7, and those 64 further on
#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        state[i] = initial_state[first + keyOf(i, part) * D];

    float *out = output + (start * HV + head) * D + column;
    const size_t stride = size_t(HV) * D;

    int current = 0;
    for (int t0 = 0; t0 < T; t0 += TOKENS, current ^= 1) {
        // This stage has arrived, and all are done with the other one.
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        if (t0 + TOKENS < T)
            fetch(stages[current ^ 1], t0 + TOKENS);

        const Stage &stage = stages[current];
        Token next;
        readToken(next, stage, 0, part, local);

#pragma unroll 4
        for (int n = 0; n < TOKENS; ++n) {
            const Token token = next;
            readToken(next, stage, (n + 1) % TOKENS, part, local); // after the last one, unused

            const float decay = expf(token.gate.x);

            float key[KEYS], predicted = 0.0f;
#pragma unroll
            for (int i = 0; i < KEYS; ++i) {
                key[i] = element(token.key, i);
                state[i] *= decay;
                predicted += state[i] * key[i];
            }
            const float update = token.gate.y * (token.value - sumOfLanes(predicted));

            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < KEYS; ++i) {
                state[i] += key[i] * update;
                sum += state[i] * element(token.query, i);
            }
            sum = sumOfLanes(sum);
            if (part == 0 && t0 + n < T)
                *out = sum * scale;
            out += stride;
        }
    }

#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        final_state[first + keyOf(i, part) * D] = state[i];
}
