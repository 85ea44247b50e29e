// f16 has 10 bits behind the point, as tf32: for numbers known to be no larger than about 1, operands lose nothing but what is tiny.
-float m[64][PITCH];                            // padded rows; operands word by word, in tf32
+unsigned char *entries = ...;                  // 64 rows of 128 swizzled bytes, f16, begins at a multiple of 1024
 // Who writes the matrix writes pairs:
-m[t][s] = x0; m[t][s + 1] = x1;
+*reinterpret_cast<unsigned *>(entries + inBlock(held(lane), row, column)) = packHalf(x0, x1);
 // Products of 16 x 16:
-for (int k = 0; k < SIZE; k += 8) {
-    const float *left = &m[row + g][k + c];    // m16n8k8, four words left and two right a step
-    const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]), toTf32(left[8 * PITCH + 4])};
-    multiplyTf32(d, a, toTf32(m[k + c][n + g]), toTf32(m[k + c + 4][n + g]));
-}
+for (int k = 0; k < SIZE; k += 16) {           // m16n8k16: half the instructions
+    unsigned left[4], right[4];
+    loadMatrices(left, address + inBlock(named(lane), row, k));
+    loadMatricesTransposed(right, address + inBlock(named(lane), k, n)); // rows of the right operand are summed over
+    multiplyHalf(d[0], left, right[0], right[1]);
+    multiplyHalf(d[1], left, right[2], right[3]);
+}
 // The next product's left operand is packed in place:
+const unsigned next[4] = {packHalf(d[0][0], d[0][1]), packHalf(d[0][2], d[0][3]), packHalf(d[1][0], d[1][1]), packHalf(d[1][2], d[1][3])};
 // Adapt: what needs float, as the substitution on the diagonal, keeps a small float array of its own. Results in another 16-bit
 // type go to a second tile of the same layout, from which they leave as uint4, 16 bytes a lane.
