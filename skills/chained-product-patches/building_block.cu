#include <cuda_fp16.h>

constexpr int WIDTH = 128, TILE_ROWS = 64, TILE_THREADS = 256;
constexpr int PITCH = WIDTH + 4; // floats a row: neighbouring rows begin in other banks

// Rows of a tile as floats; rows from `rows` on are zeros. `stride` is in halves.
__device__ __forceinline__ void loadTile(float *to, const __half *from, int rows, size_t stride, int thread)
{
    for (int i = thread; i < TILE_ROWS * (WIDTH / 8); i += TILE_THREADS) {
        const int r = i / (WIDTH / 8), c = i % (WIDTH / 8);
        uint4 chunk = make_uint4(0, 0, 0, 0);
        if (r < rows)
            chunk = *reinterpret_cast<const uint4 *>(from + r * stride + c * 8);
        const unsigned words[] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
        for (int w = 0; w < 4; ++w)
            *reinterpret_cast<float2 *>(to + r * PITCH + c * 8 + 2 * w) =
                __half22float2(*reinterpret_cast<const __half2 *>(words + w));
    }
}

__device__ __forceinline__ float4 fourAt(const float *from)
{
    return *reinterpret_cast<const float4 *>(from);
}
