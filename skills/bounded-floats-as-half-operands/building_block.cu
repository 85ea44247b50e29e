#include <cuda_fp16.h>

__device__ __forceinline__ unsigned packHalf(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// Four 8 x 8 matrices; lanes 8i ... 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// d += a * b, 16 x 16 times 16 x 8, in half precision.
__device__ __forceinline__ void multiplyHalf(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Where things lie in blocks of a tile with 128 swizzled bytes a row, from a number that depends on the lane alone. For ldmatrix,
// the row that a lane names, in blocks that begin at multiples of 8 rows and 8 columns;
__device__ __forceinline__ unsigned named(int lane)
{
    return lane % 16 * 128 + (lane / 16 ^ lane % 8) * 16;
}

// and the two numbers of the upper 8 rows that a lane has of a product.
__device__ __forceinline__ unsigned held(int lane)
{
    return lane / 4 * 144 + lane % 4 * 4;
}

__device__ __forceinline__ unsigned inBlock(unsigned ofLane, int row, int column)
{
    return row * 128 + (ofLane ^ column * 2);
}
