# SPDX-License-Identifier: GPL-3.0-or-later
"""What the built-in oracles compute, in torch and in double: for definitions of FlashInfer Trace that are written of workloads.

A definition gets the function that it needs and a run() that calls it, so each is whole without the others: two empty lines end it. Parameters
are the oracle's roles; `source` is the role "in". tests/core/interop/tst_traceset.cpp compares them with the oracles.
"""
import torch


def matmul_nn(a, b, bias=None):
    out = a.double() @ b.double()
    return out if bias is None else out + bias.double()


def matmul_nt(a, b, bias=None):
    out = a.double() @ b.double().transpose(-1, -2)
    return out if bias is None else out + bias.double()


def matmul_grouped_nn(a, b, offsets, bias=None):
    # Rows offsets[g] to offsets[g + 1] of a are multiplied by b[g].
    out = torch.zeros(a.shape[0], b.shape[2], dtype=torch.float64, device=a.device)
    ends = offsets.tolist()
    for group in range(len(ends) - 1):
        rows = slice(ends[group], ends[group + 1])
        out[rows] = a[rows].double() @ b[group].double()
    return out if bias is None else out + bias.double()


def softmax_rows(source):
    return torch.softmax(source.double(), dim=-1)


def silu(source):
    return source.double() * torch.sigmoid(source.double())


def layernorm_rows(source, gamma, beta):
    centered = source.double() - source.double().mean(dim=-1, keepdim=True)
    scale = (centered.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
    return centered * scale * gamma.double() + beta.double()


def rmsnorm_rows(source, gamma):
    rows = source.double()
    return rows * (rows.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt() * gamma.double()


def add_rmsnorm_rows(source, residual, gamma):
    rows = source.double() + residual.double()
    return rows, rows * (rows.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt() * gamma.double()


def conv2d_nhwc(data, weight):
    # Stride 1, zeros around the image; a row of weight is one tap of the window and one channel.
    channels = data.shape[3]
    window = 1
    while window * window * channels < weight.shape[0]:
        window += 2
    taps = weight.double().reshape(window, window, channels, weight.shape[1]).permute(3, 2, 0, 1)
    out = torch.nn.functional.conv2d(data.double().permute(0, 3, 1, 2), taps, padding=window // 2)
    return out.permute(0, 2, 3, 1)


def attention_varlen(q, k, v, cu_q, cu_k, causal=False):
    # Sequence s has the queries cu_q[s] to cu_q[s + 1] and the keys cu_k[s] to cu_k[s + 1]; causal: its last query sees its last key.
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    group = q.shape[1] // k.shape[1]
    queries, keys = cu_q.tolist(), cu_k.tolist()
    for s in range(len(queries) - 1):
        rows, columns = slice(queries[s], queries[s + 1]), slice(keys[s], keys[s + 1])
        a = q[rows].double().transpose(0, 1)
        b = k[columns].double().repeat_interleave(group, dim=1).transpose(0, 1)
        c = v[columns].double().repeat_interleave(group, dim=1).transpose(0, 1)
        scores = a @ b.transpose(1, 2) * q.shape[2] ** -0.5
        n, m = scores.shape[1], scores.shape[2]
        hidden = torch.zeros(n, m, dtype=torch.bool, device=q.device)
        if causal:
            hidden = torch.ones(n, m, dtype=torch.bool, device=q.device).triu(m - n + 1)
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=2).masked_fill(hidden, 0.0)
        out[rows] = (weights @ c).transpose(0, 1)
    return out


def gated_delta_rule(q, k, v, g, beta, initial_state):
    group = v.shape[2] // k.shape[2]
    q, k = q.double().repeat_interleave(group, dim=2), k.double().repeat_interleave(group, dim=2)
    v, decay, beta, state = v.double(), g.double().exp(), beta.double(), initial_state.double()
    out = torch.empty(v.shape, dtype=torch.float64, device=v.device)
    for t in range(v.shape[1]):
        key = k[:, t].unsqueeze(-1)
        state = state * decay[:, t, :, None, None]
        update = beta[:, t].unsqueeze(-1) * (v[:, t] - (key * state).sum(dim=2))
        state = state + key * update.unsqueeze(2)
        out[:, t] = (q[:, t].unsqueeze(-1) * state).sum(dim=2) * k.shape[3] ** -0.5
    return out, state


def sum_rows(source, keepdim=False):
    return source.double().sum(dim=-1, keepdim=keepdim)


def cumsum_rows(source):
    return source.double().cumsum(dim=-1)


def sort_rows(source):
    return source.double().sort(dim=-1).values


def topk_rows(source, k):
    values, indices = torch.topk(source.double(), k, dim=-1, sorted=True)
    return values, indices
