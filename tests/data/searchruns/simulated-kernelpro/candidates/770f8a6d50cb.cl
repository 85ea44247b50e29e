/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["R"]
block = [1]
args = ["x", "y", "int C"]
*/
kernel of the simulated world;
edit e01(xxxx);
slip compile x671;
