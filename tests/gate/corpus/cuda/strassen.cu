/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Strassen's seven products for four quadrants, where all extents are even and the sums are not short: below 32 terms its
// roundings are as large as the result's own, and there is nothing to save.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    int m = M / 2, n = N / 2, h = K / 2;
    if (M % 2 == 0 && N % 2 == 0 && K % 2 == 0 && K >= 32) {
        if (row >= m || col >= n)
            return;
        float m1 = 0, m2 = 0, m3 = 0, m4 = 0, m5 = 0, m6 = 0, m7 = 0;
        for (int k = 0; k < h; ++k) {
            float a11 = a[row * K + k], a12 = a[row * K + k + h];
            float a21 = a[(row + m) * K + k], a22 = a[(row + m) * K + k + h];
            float b11 = b[k * N + col], b12 = b[k * N + col + n];
            float b21 = b[(k + h) * N + col], b22 = b[(k + h) * N + col + n];
            m1 += (a11 + a22) * (b11 + b22);
            m2 += (a21 + a22) * b11;
            m3 += a11 * (b12 - b22);
            m4 += a22 * (b21 - b11);
            m5 += (a11 + a12) * b22;
            m6 += (a21 - a11) * (b11 + b12);
            m7 += (a12 - a22) * (b21 + b22);
        }
        c[row * N + col] = m1 + m4 - m5 + m7;
        c[row * N + col + n] = m3 + m5;
        c[(row + m) * N + col] = m2 + m4;
        c[(row + m) * N + col + n] = m1 - m2 + m3 + m6;
        return;
    }
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
