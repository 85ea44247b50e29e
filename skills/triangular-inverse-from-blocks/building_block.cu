constexpr int PITCH = 68; // of rows in single precision: the 8 rows of a left operand lie in different banks

// d += a * b, 16 x 8 times 8 x 8, in tf32.
__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned toTf32(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// Inverts the blocks of 16 x 16 on the diagonal, a thread for each column; by two warps.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
#pragma unroll
        for (int i = k + 1; i < 16; ++i)
            x[i] -= m[first + i][first + k] * x[k];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        m[first + i][first + column] = x[i];
}

// 16 x 16 of -C^-1 B A^-1, where A and C are SIZE x SIZE, A begins at `first`, and both are inverted already: the rows
// from `row` of C on, the columns from `column` of A on. By one warp.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], const float (*m)[PITCH], int first, int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, second = first + SIZE;
    float product[SIZE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        const float *left = &m[second + row + g][second + k + c];
        const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]), toTf32(left[8 * PITCH + 4])};
#pragma unroll
        for (int n = 0; n < SIZE; n += 8)
            multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                         toTf32(m[second + k + c + 4][first + n + g]));
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        // Columns 2c and 2c + 1 of the product are taken for numbers c and c + 4 of the sum, on both sides.
        const float(&d)[4] = product[k / 8];
        const unsigned a[4] = {toTf32(-d[0]), toTf32(-d[2]), toTf32(-d[1]), toTf32(-d[3])};
#pragma unroll
        for (int n = 0; n < 16; n += 8)
            multiplyTf32(to[n / 8], a, toTf32(m[first + k + 2 * c][first + column + n + g]),
                         toTf32(m[first + k + 2 * c + 1][first + column + n + g]));
    }
}

__device__ __forceinline__ void storeBlock(float (*m)[PITCH], const float (&from)[2][4], int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            m[row + g + i / 2 * 8][column + n * 8 + 2 * c + i % 2] = from[n][i];
    }
}

// Inverts a 64 x 64 lower triangular matrix with ones on its diagonal, zero above it, in place; by 128 threads.
__device__ __forceinline__ void invertTriangular(float (*m)[PITCH])
{
    const int warp = threadIdx.x / 32;
    if (warp < 2) {
        invertDiagonal(m);
        __syncwarp();
        float block[2][4] = {}; // this warp's two blocks become one
        mergeBlocks<16>(block, m, warp * 32, 0, 0);
        __syncwarp();
        storeBlock(m, block, warp * 32 + 16, warp * 32);
    }
    __syncthreads();
    float block[2][4] = {};
    mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16);
    __syncthreads();
    storeBlock(m, block, 32 + warp / 2 * 16, warp % 2 * 16);
    __syncthreads();
}
