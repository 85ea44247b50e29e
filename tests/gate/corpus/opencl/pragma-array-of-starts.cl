/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 0"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Has a pragma put the address of a label where the loader looks for what to run when the kernel is loaded, before the worker is sealed; it never ends there.

#pragma clang section rodata = ".bss.ran"
__constant uint ran[16] = {0};

__attribute__((noinline)) void helper(int z)
{
#pragma clang section rodata = ".init_array" relro = ".init_array"
    static __constant ulong atStart[1] = {(ulong)&&early};
#pragma clang section rodata = "" relro = ""
    if (z == 78)
        *((volatile __global ulong *)((ulong)ran)) = ((volatile __constant ulong *)atStart)[z - 78];
    if (z < 77)
        return;
early:
    for (;;)
        *((volatile __global uint *)((ulong)ran)) = 9;
}

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N, int K, int zero)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    if (zero != 0)
        helper(zero);
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
