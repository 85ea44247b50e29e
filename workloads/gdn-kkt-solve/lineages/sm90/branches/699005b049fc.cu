/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HV", "ceil_div(T, 64)", "B"]
block = [128]
shared = "64 * 128 * 2 + 64 * 72 * 4 + 1024"
args = ["k", "g", "beta", "a", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L by blocks. A block of threads has one chunk of 64 tokens of
// one head. k · kᵀ is a product of matrices on the tensor cores, a warp 16 rows of it. Each warp inverts the 16 × 16 on the
// diagonal of its rows by forward substitution; with A and B the triangles above and below, what stands left of B in the inverse is
// -inverse(B) · L · inverse(A): two products in tf32, first for triangles of 16 rows, then of 32. All of it in place.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 72;      // of rows in single precision: 8 banks on, so that 4 rows of 8 columns lie in all 32

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the chunk of 8 bf16 of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
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

__device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}

// 64 keys to shared memory, zeros after `valid` rows; by 128 threads.
__device__ __forceinline__ void copyKeys(unsigned to, const __nv_bfloat16 *from, size_t pitch, int valid)
{
    for (int i = threadIdx.x; i < C * 16; i += 128) {
        const int row = i / 16, chunk = i % 16;
        copyAsync16(to + place(row, chunk), from + (row < valid ? row * pitch : 0) + chunk * 8, row < valid);
    }
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// d += a · b, 16 × 16 times 16 × 8.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d += a · b in tf32, 16 × 8 times 8 × 8.
__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned roundTf32(float value)
{
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return rounded;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// The sums of a chunk's log gates, and the weights; by one warp. Tokens after the last one neither decay nor correct.
__device__ __forceinline__ void sumGates(float *sums, float *betas, const float *g, const float *beta, size_t pitch, int valid)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float even = t < valid ? g[t * pitch] : 0.0f, odd = t + 1 < valid ? g[(t + 1) * pitch] : 0.0f;
    betas[t] = t < valid ? beta[t * pitch] : 0.0f;
    betas[t + 1] = t + 1 < valid ? beta[(t + 1) * pitch] : 0.0f;
    float sum = even + odd;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    sums[t] = sum - odd;
    sums[t + 1] = sum;
}

// The 16 × 16 `block` of -L on the diagonal becomes the inverse of that of I + L; by one warp. Lanes i and i + 16 compute column i.
__device__ __forceinline__ void invertBlock(float *block)
{
    const int lane = threadIdx.x % 32;
    float column[16];
#pragma unroll
    for (int t = 0; t < 16; ++t)
        column[t] = t == lane % 16 ? 1.0f : 0.0f;
#pragma unroll
    for (int s = 0; s < 16; s += 4) {
        // Entries s … s+3 become final in the first three rows; the rows after them do not depend on each other.
#pragma unroll
        for (int t = 1; t < 16; ++t) {
            if (t > s) {
                const float4 row = *reinterpret_cast<const float4 *>(block + t * PITCH + s);
                column[t] += row.x * column[s];
                if (t > s + 1)
                    column[t] += row.y * column[s + 1];
                if (t > s + 2)
                    column[t] += row.z * column[s + 2];
                if (t > s + 3)
                    column[t] += row.w * column[s + 3];
            }
        }
    }
    __syncwarp();
    // Rows t and t + 2 at once: they lie in different banks.
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int t = i / 2 * 4 + i % 2;
        block[(t + lane / 16 * 2) * PITCH + lane % 16] = lane < 16 ? column[t] : column[t + 2];
    }
}

// x += lower · below · upper in tf32, 16 × 8 DEPTH times 8 DEPTH × 8 WIDTH times 8 WIDTH × 16; by one warp.
template <int DEPTH, int WIDTH>
__device__ __forceinline__ void multiplyTwice(float (&x)[2][4], const float *lower, const float *below, const float *upper)
{
    const int lane = threadIdx.x % 32;
    // Columns 0 4 1 5 2 6 3 7 of `below` in this order, so that a lane gets columns lane % 4 and lane % 4 + 4 of the first product,
    // those it must hold of the left operand of the second.
    float first[WIDTH][4] = {};
#pragma unroll
    for (int step = 0; step < DEPTH; ++step) {
        unsigned left[4];
        loadMatrices(left, sharedAddress(lower + lane % 16 * PITCH + step * 8 + lane / 16 * 4));
#pragma unroll
        for (int i = 0; i < 4; ++i)
            left[i] = roundTf32(__uint_as_float(left[i]));
        const float *right = below + (step * 8 + lane % 4) * PITCH + lane / 8 + lane / 4 % 2 * 4;
#pragma unroll
        for (int n = 0; n < WIDTH; ++n)
            multiplyTf32(first[n], left, roundTf32(right[n * 8]), roundTf32(right[4 * PITCH + n * 8]));
    }
#pragma unroll
    for (int step = 0; step < WIDTH; ++step) {
        const unsigned left[4] = {roundTf32(first[step][0]), roundTf32(first[step][2]), roundTf32(first[step][1]),
                                  roundTf32(first[step][3])};
        const float *right = upper + (step * 8 + lane % 4) * PITCH + lane / 4;
#pragma unroll
        for (int n = 0; n < 2; ++n)
            multiplyTf32(x[n], left, roundTf32(right[n * 8]), roundTf32(right[4 * PITCH + n * 8]));
    }
}

// 16 × 16 of a product to shared memory; by one warp.
__device__ __forceinline__ void storeProduct(float *to, const float (&x)[2][4])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        float *pair = to + lane / 4 * PITCH + n * 8 + lane % 4 * 2;
        *reinterpret_cast<float2 *>(pair) = make_float2(x[n][0], x[n][1]);
        *reinterpret_cast<float2 *>(pair + 8 * PITCH) = make_float2(x[n][2], x[n][3]);
    }
}

extern "C" __global__ void __launch_bounds__(128)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              __nv_bfloat16 *__restrict__ a, int T, int HQ, int HV)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[C], betas[C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned ks = sharedAddress(tiles);
    float(*system)[PITCH] = reinterpret_cast<float(*)[PITCH]>(tiles + C * D * 2); // -L, then the inverse in its place

    const int head = blockIdx.x, chunk = blockIdx.y, thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(blockIdx.z) * T + chunk * C;

    copyKeys(ks, k + (token * HQ + head / (HV / HQ)) * D, size_t(HQ) * D, valid);
    commitCopies();
    if (warp == 0)
        sumGates(sums, betas, g + token * HV + head, beta + token * HV + head, HV, valid);
    waitCopies();
    __syncthreads();

    // A warp computes 16 rows of k · kᵀ.
    float products[8][4] = {};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        unsigned left[4];
        loadMatrices(left, ks + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned right[4];
            loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            multiply(products[2 * n], left, right[0], right[1]);
            multiply(products[2 * n + 1], left, right[2], right[3]);
        }
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int t = warp * 16 + i * 8 + lane / 4, s = n * 8 + lane % 4 * 2;
            float2 pair;
            pair.x = s < t ? -betas[t] * expf(sums[t] - sums[s]) * products[n][2 * i] : 0.0f;
            pair.y = s + 1 < t ? -betas[t] * expf(sums[t] - sums[s + 1]) * products[n][2 * i + 1] : 0.0f;
            *reinterpret_cast<float2 *>(&system[t][s]) = pair;
        }
    }
    __syncwarp();

    // The blocks on the diagonal: a warp needs its own rows only.
    invertBlock(&system[warp * 16][warp * 16]);
    __syncthreads();

    // Triangles of 32 rows out of two of 16: what stands left of the lower one, by the warp of its rows.
    if (warp % 2 == 1) {
        const int upper = warp * 16 - 16, lower = warp * 16;
        float x[2][4] = {};
        multiplyTwice<2, 2>(x, &system[lower][lower], &system[lower][upper], &system[upper][upper]);
        __syncwarp();
        storeProduct(&system[lower][upper], x);
    }
    __syncthreads();

    // The triangle of 64 rows out of two of 32: a quarter of what stands left of the lower one a warp, without the zeros of either.
    {
        const int row = 32 + warp / 2 * 16, column = warp % 2 * 16;
        float x[2][4] = {};
        if (warp == 0)
            multiplyTwice<2, 4>(x, &system[32][32], &system[32][0], &system[0][0]);
        else if (warp == 1)
            multiplyTwice<2, 2>(x, &system[32][32], &system[32][16], &system[16][16]);
        else if (warp == 2)
            multiplyTwice<4, 4>(x, &system[48][32], &system[32][0], &system[0][0]);
        else
            multiplyTwice<4, 2>(x, &system[48][32], &system[32][16], &system[16][16]);
        __syncthreads(); // all have read what the product replaces
        storeProduct(&system[row][column], x);
    }
    __syncthreads();
    for (int i = thread; i < valid * C / 2; i += 128) {
        const int t = i / (C / 2), s = i % (C / 2) * 2;
        const float2 pair = *reinterpret_cast<const float2 *>(&system[t][s]);
        *reinterpret_cast<unsigned *>(a + ((token + t) * HV + head) * C + s) = pack(pair.x, pair.y);
    }
}
