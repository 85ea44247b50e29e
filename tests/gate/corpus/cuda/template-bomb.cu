/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Instantiates templates without end.

template <int Left, int Right>
struct Bomb {
    static constexpr int value = Bomb<Left - 1, 2 * Right>::value + Bomb<Left - 1, 2 * Right + 1>::value;
};
template <int Right>
struct Bomb<0, Right> {
    static constexpr int value = Right;
};

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    c[row * N + col] = Bomb<26, 0>::value;
}
