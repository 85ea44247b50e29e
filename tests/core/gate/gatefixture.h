// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/supervisor.h"

#include <stdexcept>
#include <string>

namespace klineage::test {

/// A matrix product small enough for a test: 64³ timed, an odd case, and one of zeros and ones.
inline const char *const smallMatmul = R"toml(
name = "tiny"
title = "Tiny GEMM"
axes = ["M", "N", "K"]
flops = "2 * M * N * K"
bytes = "4 * (M * K + K * N + M * N)"
[[tensor]]
name = "a"
role = "input"
dtype = "f32"
shape = ["M", "K"]
[[tensor]]
name = "b"
role = "input"
dtype = "f32"
shape = ["K", "N"]
[[tensor]]
name = "c"
role = "output"
dtype = "f32"
shape = ["M", "N"]
[[case]]
name = "timed"
axes = { M = 64, N = 64, K = 64 }
[[case]]
name = "odd"
axes = { M = 17, N = 9, K = 5 }
[[case]]
name = "bits"
axes = { M = 8, N = 24, K = 40 }
distributions = { a = { kind = "bits" }, b = { kind = "bits" } }
[oracle]
name = "matmul_nn"
args = { a = "a", b = "b", out = "c" }
[tolerance]
rel_l2 = 1e-5
rtol = 1.3e-6
atol = 1e-5
reduction = "K"
[[reference]]
surface = "opencl"
provider = "openblas"
op = "sgemm_nn"
args = { a = "a", b = "b", out = "c", m = "M", n = "N", k = "K" }
)toml";

inline const char *const smallSoftmax = R"toml(
name = "tinysoftmax"
title = "Tiny softmax"
axes = ["R", "C"]
flops = "5 * R * C"
bytes = "8 * R * C"
[[tensor]]
name = "x"
role = "input"
dtype = "f32"
shape = ["R", "C"]
[[tensor]]
name = "y"
role = "output"
dtype = "f32"
shape = ["R", "C"]
[[case]]
name = "timed"
axes = { R = 64, C = 100 }
[[case]]
name = "masked"
axes = { R = 9, C = 33 }
distributions = { x = { kind = "neg_infinity", fraction = 0.5 } }
[oracle]
name = "softmax_rows"
args = { in = "x", out = "y" }
[tolerance]
rel_l2 = 1e-5
rtol = 1e-5
atol = 1e-5
row_sum = 1e-4
reason = "Small rows, for tests."
)toml";

inline workload::Workload parsed(const char *text)
{
    auto workload = workload::parseWorkload(text, "test.toml");
    if (!workload)
        throw std::runtime_error(workload.error().message);
    return std::move(*workload);
}

/// The naive product; statement replaces its store, body is what precedes the sum.
inline std::string naive(const std::string &store = "c[row * N + col] = sum;", const std::string &body = {},
                         const std::string &aQualifier = "const ")
{
    return "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"tiny\"\n"
           "grid = [\"ceil_div(N, 8)\", \"ceil_div(M, 8)\"]\nblock = [\"8\", \"8\"]\n"
           "args = [\"a\", \"b\", \"c\", \"int M\", \"int N\", \"int K\"]\n*/\n"
           "__kernel void tiny(__global "
           + aQualifier
           + "float *a, __global const float *b, __global float *c, int M, int N, int K)\n"
             "{\n    int col = get_global_id(0);\n    int row = get_global_id(1);\n"
             "    if (row >= M || col >= N)\n        return;\n    float sum = 0.0f;\n    "
           + body + "\n    for (int k = 0; k < K; ++k)\n        sum += a[row * K + k] * b[k * N + col];\n    "
           + store + "\n}\n";
}

inline gate::GateJob quickJob(const std::string &candidate, const char *workloadText = smallMatmul)
{
    gate::GateJob job;
    job.workload = parsed(workloadText);
    job.request.candidateText = candidate;
    job.request.candidateName = "test.cl";
    job.request.profileSeconds = 0.3;
    job.request.minRounds = 10;
    job.request.deadlineSeconds = 60;
    return job;
}

} // namespace klineage::test
