/*klineage
surface = "opencl"

[[launch]]
kernel = "delta"
grid = ["B * HV"]
block = [16]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int B", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The gated delta rule, one work-item a column of a head, one token after another.

float widened(ushort x)
{
    return as_float((uint)x << 16);
}

void walk(global const ushort *q, global const ushort *k, global const ushort *v, global const float *g,
          global const float *beta, int batch, int head, int column, int begin, int end, int written, int T,
          int HQ, int HV, float *state, global float *out)
{
    for (int t = begin; t < end; ++t) {
        size_t tok = (size_t)batch * T + t;
        global const ushort *kk = k + (tok * HQ + head / (HV / HQ)) * 16,
                            *qq = q + (tok * HQ + head / (HV / HQ)) * 16;
        size_t gate = tok * HV + head;
        float decay = exp(g[gate]), seen = 0;
        for (int i = 0; i < 16; ++i)
            seen += widened(kk[i]) * state[i];
        float u = beta[gate] * (widened(v[gate * 16 + column]) - decay * seen), r = 0;
        for (int i = 0; i < 16; ++i) {
            state[i] = decay * state[i] + widened(kk[i]) * u;
            r += widened(qq[i]) * state[i];
        }
        if (t >= written)
            out[gate * 16 + column] = 0.25f * r;
    }
}
kernel void delta(global const ushort *q, global const ushort *k, global const ushort *v,
                  global const float *g, global const float *beta, global const float *initial,
                  global float *out, global float *final, int B, int T, int HQ, int HV)
{
    int column = get_local_id(0), id = get_group_id(0);
    float state[16];
    int batch = id / HV, head = id % HV;
    size_t at = (size_t)(batch * HV + head) * 256 + column;
    for (int i = 0; i < 16; ++i)
        state[i] = initial[at + i * 16];
    walk(q, k, v, g, beta, batch, head, column, 0, T, 0, T, HQ, HV, state, out);
    for (int i = 0; i < 16; ++i)
        final[at + i * 16] = state[i];
}
