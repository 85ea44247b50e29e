// A is C x C (one chunk), X = K is C x Dk, Y = V is C x Dv, S is the state, Dk x Dv; b and e are factors of a row.
//   before: W = A (b e X), U = A (b Y), updates = U - W S      C*C*Dk + C*C*Dv + C*Dk*Dv multiply-adds
//   after:  R = b (Y - e (X S)), updates = A R                 C*Dk*Dv + C*C*Dv multiply-adds
// The product C*C*Dk, the buffer of W and the exchange of W between columns go away.
-for (int i = 0; i < rows; ++i) {
-    float fromKeys = 0.0f, fromValues = 0.0f;
-    for (int j = 0; j < rows; ++j) {
-        const float factor = A[i][j] * beta[j];
-        fromKeys += factor * expf(sums[j]) * K[j][column];
-        fromValues += factor * V[j][column];
-    }
-    w[i * D + column] = fromKeys;
-    updates[i * D + column] = fromValues;
-}
-__syncthreads(); // a column of the updates needed all columns of w
-for (int i = 0; i < rows; ++i) {
-    float sum = 0.0f;
-    for (int d = 0; d < D; ++d)
-        sum += w[i * D + d] * state[d * D];
-    updates[i * D + column] -= sum;
-}
+for (int j = 0; j < rows; ++j) { // what is left of the values; state is still that from before the chunk
+    float sum = 0.0f;
+    for (int d = 0; d < D; ++d)
+        sum += K[j][d] * state[d * D];
+    rest[j * D + column] = beta[j] * (V[j][column] - expf(sums[j]) * sum); // factors once a row, not once an entry of A
+}
+// Adapt: a barrier belongs here if the rows of a column of rest are computed by different threads; with a thread a column
+// none is needed.
+for (int i = 0; i < rows; ++i) { // the matrix last
+    float sum = 0.0f;
+    for (int j = 0; j < rows; ++j)
+        sum += A[i][j] * rest[j * D + column];
+    updates[i * D + column] = sum;
+}
// Adapt: keep a barrier behind it where something else needs one, as the scores that all threads wrote do here.
// Adapt: state points at this column; rest takes the buffer that w had. Other factors of a row (no decay, another gate) go to
// the same two places: those common to both terms outside the bracket, those of X alone inside it.
