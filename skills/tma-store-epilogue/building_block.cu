// SPDX-License-Identifier: GPL-3.0-or-later
// From gemm/sm90/K10, for sm_90a: 64 × BN sums of a warpgroup to y through two boxes of 64 × 64 in shared memory.

#include <cuda_bf16.h>

constexpr int BN = 256;
constexpr unsigned BOX_BYTES = 64 * 64 * 2;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Where the 128-byte swizzle keeps a 16-byte chunk of a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// Four 8 × 8 matrices of bf16; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void storeMatrices(unsigned row, const unsigned (&from)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(row), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// Starts the copy of one box from shared memory to y.
__device__ __forceinline__ void storeBox(const TensorMap &map, int col, int row, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(&map), "r"(col), "r"(row), "r"(from) : "memory");
}

// Waits until the copy engine has read all of this thread's boxes but the last PENDING.
template <int PENDING> __device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(PENDING) : "memory");
}

__device__ __forceinline__ void syncWarpgroup(int warpgroup)
{
    asm volatile("bar.sync %0, 128;" :: "r"(warpgroup + 1) : "memory");
}

// Sends the warpgroup's 64 × BN sums to y, from row0 and col0 on, through two boxes of shared memory.
__device__ __forceinline__ void storeSums(const float (&acc)[BN / 2], const TensorMap &mapY,
                                          int row0, int col0, unsigned boxes, int warpgroup)
{
    const int thread = threadIdx.x % 128, lane = thread % 32;
    // The four 8 × 8 matrices: rows 0-7 and 8-15 of the warp's 16, then the same of the next 8 columns.
    const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int col = 0; col < BN; col += 64) {
        const unsigned box = boxes + col / 64 % 2 * BOX_BYTES;
        if (thread == 0)
            waitStoresRead<1>(); // the last one is in the other box; the one before it has left this one
        syncWarpgroup(warpgroup);

#pragma unroll
        for (int chunk = 0; chunk < 8; chunk += 2) {
            const float *d = acc + col / 2 + 4 * chunk;
            const unsigned packed[4] = {pack(d[0], d[1]), pack(d[2], d[3]),
                                        pack(d[4], d[5]), pack(d[6], d[7])};
            storeMatrices(box + place(row, chunk + lane / 16), packed);
        }

        // The copy engine reads by another path: every writer makes its stores visible to that path first.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        syncWarpgroup(warpgroup);
        if (thread == 0)
            storeBox(mapY, col0 + col, row0, box);
    }
}
