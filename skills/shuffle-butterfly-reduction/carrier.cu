// One such function for each operator. Every lane gets the result, without shared memory or a barrier.
// ADAPT: combine() is fmaxf for a maximum, + for a sum, ...; v comes in as the lane's own partial
// result, or the operator's identity where the lane had no element.
-__device__ float warpReduce(float v, volatile float *partial)
+__device__ float warpReduce(float v)
 {
-    partial[threadIdx.x] = v;
-    __syncwarp();
-    v = IDENTITY;
-    for (int i = 0; i < 32; ++i)
-        v = combine(v, partial[i]);
-    __syncwarp();
+    for (int mask = 16; mask > 0; mask /= 2)     // 5 steps for 32 lanes
+        v = combine(v, __shfl_xor_sync(0xffffffff, v, mask));
     return v;
 }

-    __shared__ float partial[ROWS][32];          // drop it when nothing else reads it
-    acc = warpReduce(acc, partial[threadIdx.y]);
+    acc = warpReduce(acc);                       // reached by all 32 lanes, outside of lane-dependent branches

// ADAPT: for an index with a value (argmax), shuffle both and break ties by the index.
// ADAPT: for types that __shfl_xor_sync does not take, convert, or shuffle word by word.
// ADAPT: where several warps share a reduction, this replaces the part within each warp only; one value
// a warp still goes through shared memory and __syncthreads().
