// One tile a block → one block a multiprocessor, many tiles each. Adapt: GROUP, tile sides, resident blocks.

- grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
+ grid = ["min(sm_count, ceil_div(M, 128) * ceil_div(N, 256))"]
+ [[tunable]]  name = "GROUP"  default = 16  values = [4, 8, 16, 32]

+ // Down GROUP rows of tiles, then to the next column: what is in flight is a compact patch of y.
+ __device__ Tile locate(int tile, int tileRows, int tileCols)
+ {
+     const int first = tile / (GROUP * tileCols) * GROUP;
+     const int rows = min(GROUP, tileRows - first);                   // the last group may be lower
+     const int step = tile % (GROUP * tileCols);
+     return {(first + step % rows) * BM, step / rows * BN};
+ }

  // producer
- for (int slab = 0; slab < slabs; ++slab) { … slab % STAGES … slab / STAGES % 2 ^ 1 … }
+ int turn = 0;                                                        // slabs so far, over all tiles
+ for (int t = blockIdx.x; t < tileRows * tileCols; t += gridDim.x) {
+     const Tile tile = locate(t, tileRows, tileCols);
+     for (int slab = 0; slab < slabs; ++slab, ++turn)
+         … stage turn % STAGES, parity turn / STAGES % 2 ^ 1, k from slab, rows from tile …
+ }                                                                    // no stop between tiles

  // consumers: the same tiles in the same order, a turn of their own that counts alike
+ for (int t = blockIdx.x; …; t += gridDim.x) {
+     float acc[128] = {};
+     for (int slab = 0; slab < slabs; ++slab, ++turn) { … turn % STAGES, turn / STAGES % 2 … }
+     storeSums(…);                                                    // in memory of its own: the ring is filling already
+ }
+ wait once, after the last tile, for the engine to have read the last boxes
