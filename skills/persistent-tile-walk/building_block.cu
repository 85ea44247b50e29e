// SPDX-License-Identifier: GPL-3.0-or-later
// From gemm/sm90/K10: which tile comes when. Each role walks `for (t = blockIdx.x; t < tiles; t += gridDim.x)`.

constexpr int BM = 128, BN = 256, GROUP = 16;

struct Tile {
    int row0, col0;
};

// Down GROUP rows of tiles, then to the next column; the last group may be lower.
__device__ __forceinline__ Tile locate(int tile, int tileRows, int tileCols)
{
    const int first = tile / (GROUP * tileCols) * GROUP;
    const int rows = min(GROUP, tileRows - first);
    const int step = tile % (GROUP * tileCols);
    return {(first + step % rows) * BM, step / rows * BN};
}
