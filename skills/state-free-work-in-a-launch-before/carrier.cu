// Workspaces: what the loop needs ready-made, one tile an iteration, in the type and the size in which the loop reads it.
//   scores  bf16 [batch][head][ceil_div(T, 64)][64][64]
//   factors f32  [batch][head][ceil_div(T, 64)][4][64]

// First launch, grid (key heads, ceil_div(T, 64), batch): all chunks at once, none waits for another.
prepare:
    copyTile(keys of the chunk); copyTile(queries of the chunk);
    for (int i = 0; i < headsOfAKeyHead; ++i) {
        sumGates(sums, factors + tileOf(head) * 4 * 64, g, beta, pitch, valid); // a warp for each of four heads
        if (i == 0)
            blocks = queries * transposed keys;                // once for all heads that share them, kept in registers
        scores[tileOf(head)] = mask(scale * exp2(sums[t] - sums[s]) * blocks); // rounded and masked here; 16-byte stores by
    }                                                          // way of shared memory

// Second launch, the sequential loop, with only what depends on the state:
 for (int chunk = 0; chunk < chunks; ++chunk) {
     copyTile<16>(ks, ...); copyTile<16>(qs, ...); copyTile<8>(vs, ...);
-    if (warp == 0)
-        sumGates(sums, factors, g + gate, beta + gate, HV, valid);
+    copyTile<8>(scoreTile, scores + tile * 64 * 64, 64, 64);   // comes with the copies that the loop waits for anyway
+    if (thread < 64)
+        copyAsync16(gates + 4 * thread, factors + tile * 4 * 64 + 4 * thread, true);
     commitCopies(); waitCopies<0>();
     __syncthreads();
-    blocks = queries * transposed keys; scoreTile = mask(exp2(...) * blocks);  // registers and time in the chain
     products with the state ...
-    __syncthreads(); // the scores are there
     products with scoreTile and gates ...
     __syncthreads(); // the next chunk overwrites the tiles
 }
// Adapt: tiles of a short last chunk are written whole, with zeros and neutral factors, so that the loop copies them without a guard.
