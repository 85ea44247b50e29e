#include <cuda_bf16.h>

// Where the chunk of 8 16-bit elements of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
// Tiles begin at a multiple of 1024 bytes.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

__device__ __forceinline__ void copyAsync16(unsigned to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// 64 rows of CHUNKS * 8 numbers to shared memory, zeros after `valid` rows; by 128 threads.
template <int CHUNKS>
__device__ __forceinline__ void copyTile(unsigned to, const __nv_bfloat16 *from, size_t pitch, int valid)
{
    for (int i = threadIdx.x; i < 64 * CHUNKS; i += 128) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        copyAsync16(to + place(row, chunk), from + (row < valid ? row * pitch : 0) + chunk * 8, row < valid);
    }
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

// d += a * b, 16 x 16 times 16 x 8.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// Results of a product, 16 x 16 of them, as left operand of the next.
__device__ __forceinline__ void packOperand(unsigned (&to)[4], const float (&left)[4], const float (&right)[4])
{
    to[0] = pack(left[0], left[1]);
    to[1] = pack(left[2], left[3]);
    to[2] = pack(right[0], right[1]);
    to[3] = pack(right[2], right[3]);
}
