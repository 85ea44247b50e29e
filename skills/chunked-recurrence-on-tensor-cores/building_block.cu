#include <cuda_bf16.h>

constexpr int CHUNK = 64; // steps a chunk: two a lane of the warp that sums the gates

// Four 8 x 8 matrices; lanes 8i to 8i + 7 name the rows of matrix i.
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

// The running sums of a chunk's log gates, the decay from its start to each step, and from each step to its end;
// by the first warp. Steps after the last one do not decay.
__device__ __forceinline__ void sumGates(float *sums, float *decays, const float *gates, size_t pitch, int valid)
{
    const int lane = threadIdx.x;
    const float even = 2 * lane < valid ? gates[2 * lane * pitch] : 0.0f;
    float sum = even + (2 * lane + 1 < valid ? gates[(2 * lane + 1) * pitch] : 0.0f);
    const float own = sum;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = sum - own + even; // up to the even one
    sums[2 * lane] = before;
    sums[2 * lane + 1] = sum;
    decays[2 * lane] = expf(before);
    decays[2 * lane + 1] = expf(sum);
    decays[CHUNK + 2 * lane] = expf(last - before);
    decays[CHUNK + 2 * lane + 1] = expf(last - sum);
}
