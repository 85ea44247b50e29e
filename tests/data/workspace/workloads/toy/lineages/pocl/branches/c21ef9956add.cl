/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["ceil_div(R, 8)"]
block = ["8"]
args = ["x", "y", "int R", "int C"]
*/
// a branch
__kernel void toy(__global const float *x, __global float *y, int R, int C)
{
}
