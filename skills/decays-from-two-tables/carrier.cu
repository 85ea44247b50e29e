// exp(G[t] - G[s]) for all pairs t > s of a tile of 64, G falling: for pairs of different blocks of 16 take the first token r of the
// later block between them, s < r <= t:  exp(G[t] - G[s]) = exp(G[t] - G[r]) * exp(G[r] - G[s]), neither factor above 1.
// A warp fills the tables once: rows 64, columns 16 + 32 + 48 (for each later block, all tokens before it).
 for each entry (t, s) that this thread has of a product d, block by block, row and column the numbers of its block:
-    x = weight[t] * expf(sums[t] - sums[s]) * d;          // an exponential an entry
+    if (row != column) {                                  // uniform in the warp
+        const float2 decay = *reinterpret_cast<const float2 *>(own.columns + row * (row - 1) * 8 + s);
+        x0 = own.rows[t] * decay.x * d[0]; x1 = own.rows[t] * decay.y * d[1];
+    } else {                                              // within a block no token lies between: an exponential, to base 2, with the
+        const float2 sum = *reinterpret_cast<const float2 *>(own.sums + s);     // weight as a logarithm in the exponent
+        x0 = exp2Fast(own.weighted[t] - sum.x) * d[0]; x1 = exp2Fast(own.weighted[t] - sum.y) * d[1];
+    }                                                     // above the diagonal: not read, or set to zero
// Adapt: block and tile sides; without weights, weight = 1 and weighted = sums. Pairs of neighbouring s are read as float2.
