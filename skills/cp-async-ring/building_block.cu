// SPDX-License-Identifier: GPL-3.0-or-later
// From gemm/sm90/K05: copies in the background, 16 bytes at a time, in groups.

#include <cuda_bf16.h>

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// Copies 16 bytes in the background; a chunk outside the matrix is filled with zeros and not read.
__device__ __forceinline__ void copyAsync(Chunk *to, const __nv_bfloat16 *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}
