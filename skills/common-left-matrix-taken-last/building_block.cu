#include <cuda_bf16.h>

// One column of A (beta (V - exp(sums) (K S))) for the rows of a chunk. values, state, rest and updates point at the column;
// rest and updates have rows of width floats.
__device__ inline void matrixTakenLast(const __nv_bfloat16 *matrix, size_t matrixPitch, const __nv_bfloat16 *keys,
                                       size_t keyPitch, const __nv_bfloat16 *values, size_t valuePitch,
                                       const float *beta, size_t betaPitch, const float *sums, const float *state,
                                       float *rest, float *updates, int rows, int width)
{
    for (int j = 0; j < rows; ++j) {
        float sum = 0.0f;
        for (int d = 0; d < width; ++d)
            sum += __bfloat162float(keys[j * keyPitch + d]) * state[d * width];
        rest[j * width] = beta[j * betaPitch] * (__bfloat162float(values[j * valuePitch]) - expf(sums[j]) * sum);
    }
    for (int i = 0; i < rows; ++i) {
        float sum = 0.0f;
        for (int j = 0; j < rows; ++j)
            sum += __bfloat162float(matrix[i * matrixPitch + j]) * rest[j * width];
        updates[i * width] = sum;
    }
}
