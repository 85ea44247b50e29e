/*klineage
surface = "cuda"

[[launch]]
kernel = "delta"
grid = ["B * HV", 1]
block = [32]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int B", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps the decay beside the state, and puts it into the state before it gets too small for that.

#include <cuda_bf16.h>

constexpr int D = 16;
struct Given {
    const __nv_bfloat16 *q, *k, *v;
    const float *g, *beta, *initial;
    int T, HQ, HV;
};
struct Token {
    uint4 key[2], query[2];
    float value, gate, weight;
};
__device__ __forceinline__ Token tokenAt(const Given &in, int token, int head, int column)
{
    Token one;
    const size_t shared = (size_t(token) * in.HQ + head / (in.HV / in.HQ)) * D, own = size_t(token) * in.HV + head;
    one.key[0] = reinterpret_cast<const uint4 *>(in.k + shared)[0];
    one.key[1] = reinterpret_cast<const uint4 *>(in.k + shared)[1];
    one.query[0] = reinterpret_cast<const uint4 *>(in.q + shared)[0];
    one.query[1] = reinterpret_cast<const uint4 *>(in.q + shared)[1];
    one.value = __bfloat162float(in.v[own * D + column]);
    one.gate = in.g[own];
    one.weight = in.beta[own];
    return one;
}
__device__ __forceinline__ void widen(const uint4 (&from)[2], float (&to)[D])
{
    const unsigned *words = reinterpret_cast<const unsigned *>(from);
#pragma unroll
    for (int i = 0; i < D / 2; ++i) {
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}
// Tokens [from, end) of a batch, outputs from `begin` on; a thread has a column of the state.
__device__ void walk(const Given &in, int batch, int head, int column, int from, int begin, int end, float (&state)[D], float *out)
{
    Token next = tokenAt(in, batch * in.T + from, head, column);
    float faded = 0; // the state is the power of that times what is kept
    for (int t = from; t < end; ++t) {
        const Token now = next;
        if (t + 1 < end)
            next = tokenAt(in, batch * in.T + t + 1, head, column);
        float key[D], query[D];
        widen(now.key, key);
        widen(now.query, query);
        faded += now.gate;
        if (faded < -40.0f) {
            const float decayed = expf(faded);
#pragma unroll
            for (float &element : state)
                element *= decayed;
            faded = 0;
        }
        const float decay = expf(faded);
        float seen = 0, result = 0;
#pragma unroll
        for (int i = 0; i < D; ++i)
            seen = fmaf(key[i], state[i], seen);
        const float update = now.weight * (now.value - decay * seen) * expf(-faded);
#pragma unroll
        for (int i = 0; i < D; ++i) {
            state[i] = fmaf(key[i], update, state[i]);
            result = fmaf(query[i], state[i], result);
        }
        if (t >= begin)
            out[((size_t(batch) * in.T + t) * in.HV + head) * D + column] = 0.25f * decay * result;
    }
    for (float &element : state)
        element *= expf(faded);
}
extern "C" __global__ __launch_bounds__(32) void delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, const float *initial, float *out, float *final, int B, int T, int HQ, int HV)
{
    const Given in = {q, k, v, g, beta, initial, T, HQ, HV};
    const int batch = blockIdx.x / HV, head = blockIdx.x % HV, lane = threadIdx.x;
    if (lane >= D)
        return;
    const size_t at = (size_t(batch) * HV + head) * D * D + lane;
    float state[D];
#pragma unroll
    for (int i = 0; i < D; ++i)
        state[i] = initial[at + i * D];
    walk(in, batch, head, lane, 0, 0, T, state, out);
    for (int i = 0; i < D; ++i)
        final[at + i * D] = state[i];
}
