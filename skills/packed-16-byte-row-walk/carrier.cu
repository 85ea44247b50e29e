// A thread walks along one or more contiguous rows of 16-bit elements and reduces them.
// Before: one element a load; lanes of a warp are on different rows, so each load touches a sector per lane for 2 bytes of it.
-    for (int k = 0; k < LENGTH; ++k)
-        sum += __bfloat162float(a[size_t(i) * LENGTH + k]) * __bfloat162float(b[size_t(j) * LENGTH + k]);

// After: one load takes 16 bytes, 8 elements of the row; the elements are taken apart in registers.
+struct alignas(16) Chunk {
+    unsigned words[4];                                    // two bf16 each, the first in the lower half
+};
+__device__ __forceinline__ float low_half(unsigned word)  { return __uint_as_float(word << 16); }
+__device__ __forceinline__ float high_half(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
+
+    // The kernel takes its inputs as const Chunk *; rows start at multiples of 16 bytes.
+    const Chunk *as = reinterpret_cast<const Chunk *>(a) + size_t(i) * (LENGTH / 8);
+    const Chunk *bs = reinterpret_cast<const Chunk *>(b) + size_t(j) * (LENGTH / 8);
+    for (int chunk = 0; chunk < LENGTH / 8; ++chunk) {    // LENGTH % 8 == 0, or add a scalar tail
+        const Chunk p = as[chunk], q = bs[chunk];         // whole structs, into registers
+#pragma unroll                                            // so that words[] is indexed by constants and stays in registers
+        for (int w = 0; w < 4; ++w) {                     // the order of the elements, and so of the sum, is kept
+            sum += low_half(p.words[w]) * low_half(q.words[w]);
+            sum += high_half(p.words[w]) * high_half(q.words[w]);
+        }
+    }
// Adapt: the body (product, difference, maximum); the unpacking holds for bf16 only, other 16-bit types need their own conversion.
