// before: the divisor does not change in the loop over the elements, yet each element is divided
-    sum = reduce(sum);
-    for (int c = lane; c < C; c += 32)
-        y[c] = f(x[c]) / sum;
// after: one division before the loop, one multiplication an element
+    const float scale = 1.0f / reduce(sum);
+    for (int c = lane; c < C; c += 32)
+        y[c] = f(x[c]) * scale;
// ADAPT: what is invariant. sqrtf(var + eps) as the divisor: scale = 1.0f / sqrtf(var + eps), or rsqrtf(var + eps)
// where its error is allowed. A mean: multiply by 1.0f / C, computed once.
// ADAPT: where a sum may be 0, keep what the old code gave there (0 / 0 is NaN, and so is 0 * (1 / 0)), or the guard it had.
// ADAPT: keep the reciprocal in the type of the computation (f32), not in a narrower one of storage.
