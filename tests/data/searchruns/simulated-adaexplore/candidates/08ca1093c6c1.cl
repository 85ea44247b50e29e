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
edit e02(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx);
edit e03(xxxxxx);
edit e10(xxxxxxxxxxxxxxxxxx);
edit e11(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx);
