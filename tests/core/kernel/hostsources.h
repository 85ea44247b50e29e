// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

/// Sources as they come with host code: a program, an extension of PyTorch, a launcher in C, one with a template.
namespace klineage::tests {

inline const char *const programSource = R"CODE(#include <iostream>
#include <vector>
#include <cuda_runtime.h>
#define BLOCK 256

// One block a row.
__global__ void softmax_kernel(const float *in, float *out, int cols)
{
    extern __shared__ float smem[];
    const float *row = in + blockIdx.x * cols;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        m = std::max(m, row[i]);
    smem[threadIdx.x] = m;
    __syncthreads();
    out[blockIdx.x * cols + threadIdx.x] = smem[0];
}

int main(int argc, char **argv)
{
    const int rows = 4096, cols = 1024;
    std::vector<float> h(rows * cols, 1.0f);
    float *d_x, *d_y;
    cudaMalloc(&d_x, rows * cols * sizeof(float));
    cudaMalloc(&d_y, rows * cols * sizeof(float));
    dim3 block(BLOCK);
    size_t smem = block.x * sizeof(float);
    softmax_kernel<<<rows, block, smem>>>(d_x, d_y, cols);
    cudaDeviceSynchronize();
    std::cout << "done" << std::endl;
    return 0;
}
)CODE";

inline const char *const extensionSource = R"CODE(#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_fp16.h>

namespace {
constexpr int kThreads = 128;
inline int div_up(int a, int b) { return (a + b - 1) / b; }

template <typename scalar_t, int kBlock>
__global__ void __launch_bounds__(kBlock) silu_kernel(const scalar_t *__restrict__ x, scalar_t *__restrict__ y, int64_t n)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] / (1 + expf(-x[i]));
}
} // namespace

torch::Tensor silu(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    const int64_t n = x.numel();
    const int blocks = div_up(n, kThreads);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "silu", [&] {
        silu_kernel<scalar_t, kThreads><<<blocks, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
    });
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("silu", &silu);
}
)CODE";

inline const char *const launcherSource = R"CODE(#include "tile.cuh"
#include "tile.cuh"
#include <cstdio>

static __global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K);

__global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < K; k += TILE) {
        as[threadIdx.y][threadIdx.x] = row < M && k + threadIdx.x < K ? A[at(row, k + threadIdx.x, K)] : 0.f;
        bs[threadIdx.y][threadIdx.x] = col < N && k + threadIdx.y < K ? B[at(k + threadIdx.y, col, N)] : 0.f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[at(row, col, N)] = sum;
}

extern "C" void launch(float *A, float *B, float *C, int M, int N, int K, cudaStream_t stream)
{
    dim3 threads(TILE, TILE);
    dim3 blocks((N + TILE - 1) / TILE, (M + threads.y - 1) / threads.y);
    matmul<<<blocks, threads, 0, stream>>>(A, B, C, M, N, K);
}
)CODE";

inline const char *const templateSource = R"CODE(#include <stdio.h>
template <int THREADS>
__global__ void layernorm(float *out, const float *inp, const float *weight, const float *bias, int C, float eps)
{
    __shared__ float s[THREADS];
    s[threadIdx.x] = inp[blockIdx.x * C + threadIdx.x];
    out[blockIdx.x * C + threadIdx.x] = s[threadIdx.x] * weight[0] + bias[0] + eps;
}
void layernorm_forward(float *out, const float *inp, const float *weight, const float *bias, int B, int T, int C)
{
    const int block_size = 512;
    const int N = B * T;
    layernorm<block_size><<<N, block_size>>>(out, inp, weight, bias, C, 1e-5f);
    cudaCheck(cudaGetLastError());
}
)CODE";

inline const char *const siblingSource = R"CODE(#pragma once
#include <cstdint>
constexpr int TILE = 16;
__device__ __forceinline__ int64_t at(int r, int c, int ld) { return static_cast<int64_t>(r) * ld + c; }
)CODE";

} // namespace klineage::tests
