// N: greatest length of a segment, known at compile time. valid: positions that this segment really has, at most N.
// Adapt: N, element type, stride, the identity of the fold (0.0f for a sum), what is done at each step.
// Pointers: const T *__restrict__ src, T *__restrict__ dst -- only if they do not overlap.
// Launch: __launch_bounds__(THREADS) with the real block size, so that the array may have the registers that it needs.
-    float sum = 0.0f;
-    for (int i = 0; i < valid; ++i) {              // run-time bound: load, wait, add, store, and again
-        sum += src[base + size_t(i) * stride];
-        dst[base + size_t(i) * stride] = sum;
-    }
+    float values[N];
+#pragma unroll                                     // fully: each values[i] must be a register, indexed by a constant
+    for (int i = 0; i < N; ++i)
+        values[i] = i < valid ? src[base + size_t(i) * stride] : 0.0f;   // N independent loads, none waits for another
+    float sum = 0.0f;
+#pragma unroll
+    for (int i = 0; i < N; ++i) {
+        sum += values[i];                          // the dependent chain runs over registers only, in the same order
+        if (i < valid)                             // the guard is on the store; padded positions add the identity
+            dst[base + size_t(i) * stride] = sum;
+    }
// Segments longer than the registers allow: do this for one batch of N positions after another and carry sum from batch to batch.
