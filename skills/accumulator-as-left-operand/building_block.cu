#include <cuda_fp16.h>

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Four 8 x 8 matrices, each transposed; lanes 8i to 8i + 7 name the rows of matrix i.
__device__ __forceinline__ void loadTransposed(unsigned (&to)[4], const uint4 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

// The sums of two neighbouring groups of 8 columns as a left operand of 16 columns.
__device__ __forceinline__ void leftOperand(unsigned (&to)[4], const float (&low)[4], const float (&high)[4])
{
    to[0] = pack(low[0], low[1]);
    to[1] = pack(low[2], low[3]);
    to[2] = pack(high[0], high[1]);
    to[3] = pack(high[2], high[3]);
}

// Over the four lanes that share a row of the sums.
__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
