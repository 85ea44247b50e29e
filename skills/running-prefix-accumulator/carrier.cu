// One thread owns one independent sequence (a column, a row, a segment) and emits a value for each of its n positions.
// Adapt: the element type, the stride, the bounds of the segment, and what is done with each prefix (stored here).
+    float sum = 0.0f;                              // identity of the operation; declared per segment, OUTSIDE the position loop
     for (int i = 0; i < n; ++i) {                  // n: positions of this segment that are valid
-        float sum = 0.0f;
-        for (int j = 0; j <= i; ++j)               // prefix folded again from its start: n (n + 1) / 2 loads and additions
-            sum += src[base + size_t(j) * stride];
+        sum += src[base + size_t(i) * stride];     // each element loaded once, added once: n loads and additions
         dst[base + size_t(i) * stride] = sum;      // inclusive; for an exclusive prefix store before the addition
     }
// Suffixes (j from i to n - 1): walk i downwards and keep the same accumulator.
// A fold other than a sum: replace the identity and the operation (product, maximum, count).
// Same direction, same start value, same accumulator type: the operations on each prefix are the same as before, in the same order.
