// LEN: greatest length of a segment, PARTS: threads that share it, OWN = LEN / PARTS: neighbouring positions of one thread.
// block (32, PARTS): threadIdx.x = independent sequence, neighbours in memory; threadIdx.y = part. A warp is one part of 32
// sequences: loads and stores coalesce, totals[p][threadIdx.x] has no bank conflict, and the loop over p is uniform in a warp.
// Adapt: LEN, PARTS, element type, the identity, the operation (it must be associative), the strides.
-    if (seq >= sequences)                          // no thread may leave before the barrier
-        return;
-    const int valid = min(LEN, length - first);    // block (32): one thread a sequence, LEN dependent steps
+    __shared__ float totals[PARTS][32];
+    const int part = threadIdx.y, first = segment_first + part * OWN;
+    const int valid = seq < sequences ? min(OWN, length - first) : 0;   // may be negative: nothing is valid then
     const size_t at = size_t(first) * stride + seq;
+    float sums[OWN], sum = 0.0f;
+#pragma unroll
+    for (int t = 0; t < OWN; ++t)
+        sums[t] = t < valid ? src[at + size_t(t) * stride] : 0.0f;      // the identity where there is no element
+#pragma unroll
+    for (int t = 0; t < OWN; ++t)
+        sums[t] = sum += sums[t];                  // prefixes within the part
+    totals[part][threadIdx.x] = sum;
+    __syncthreads();
+    float before = 0.0f;                           // exclusive prefix over the totals of the parts before
+    for (int p = 0; p < part; ++p)
+        before += totals[p][threadIdx.x];
+#pragma unroll
+    for (int t = 0; t < OWN; ++t)
+        if (t < valid)
+            dst[at + size_t(t) * stride] = before + sums[t];
// Only the total is wanted: sum all parts of totals instead of those before.
// In a loop over segments: another __syncthreads() before totals is written again, or two arrays in turn.
