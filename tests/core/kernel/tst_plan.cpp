// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/plan.h"

#include <QTest>

#include <cmath>
#include <cstring>

using namespace klineage;
using namespace klineage::kernel;

namespace {

const std::vector<ResolvedBuffer> tensors = {{"x", DType::BF16, {100, 64}}, {"y", DType::F32, {100, 48}}};
const Bindings names = {{"M", std::int64_t{100}},
                        {"N", std::int64_t{48}},
                        {"K", std::int64_t{64}},
                        {"sm_count", std::int64_t{4}},
                        {"max_shared", std::int64_t{65536}},
                        {"huge", std::int64_t{5'000'000'000}}};

/// A CUDA candidate with one launch of `keys`, after the tables of `head`.
Result<ResolvedPlan> resolve(const QString &keys, const QString &head = {}, const Bindings &bindings = names)
{
    const QString text = "/*klineage\nsurface = 'cuda'\n" + head + "\n[[launch]]\nkernel = 'k'\n"
                         + (keys.contains("grid") ? "" : "grid = [1]\n")
                         + (keys.contains("block") ? "" : "block = [32]\n")
                         + (keys.contains("args") ? "" : "args = []\n") + keys + "\n*/\n";
    const Result<Candidate> candidate = parseCandidate(text.toStdString(), "k.cu");
    if (!candidate)
        return tl::unexpected(candidate.error());
    return resolvePlan(*candidate, tensors, bindings);
}

QString messageOf(const Result<ResolvedPlan> &plan)
{
    return plan ? QString("no error") : QString::fromStdString(plan.error().message);
}

template <typename T>
T scalar(const ResolvedArg &arg)
{
    const auto &value = std::get<ScalarValue>(arg);
    T result{};
    if (value.size == sizeof(T))
        std::memcpy(&result, value.bytes.data(), sizeof(T));
    return result;
}

} // namespace

class TestPlan : public QObject
{
    Q_OBJECT

private slots:
    void dimensionsAndMemory();
    void scalarsHaveTheTargetsBytes();
    void guardsDropLaunches();
    void workspacesAreResolvedOnce();
    void tensorMapsTakeTheTensorsShape();
    void tensorMapsOfDroppedLaunchesAreLeftAlone();
    void messages_data();
    void messages();
    void openClHasItsOwnRules();
};

void TestPlan::dimensionsAndMemory()
{
    const auto plan = resolve(
        "grid = ['ceil_div(M, 32)', 'N', 'sm_count']\nblock = [32, 4]\ncluster = [2, 1, 2]\nshared = 'K * 16'\n"
        "pdl = true\nargs = ['x', 'y']");
    QVERIFY2(plan, qPrintable(messageOf(plan)));
    const ResolvedLaunch &launch = plan->launches.at(0);
    QCOMPARE(launch.grid, (std::array<std::int64_t, 3>{4, 48, 4}));
    QCOMPARE(launch.block, (std::array<std::int64_t, 3>{32, 4, 1}));
    QCOMPARE(launch.cluster, (std::array<std::int64_t, 3>{2, 1, 2}));
    QCOMPARE(launch.sharedBytes, std::int64_t{1024});
    QVERIFY(launch.programmaticDependent && !launch.cooperative);
    QCOMPARE(std::get<PointerValue>(launch.args[1]).buffer, std::string("y"));
    QVERIFY(plan->workspaces.empty() && plan->tensorMaps.empty());
}

void TestPlan::scalarsHaveTheTargetsBytes()
{
    const auto plan = resolve(
        "args = ['int -M', 'uint 4294967295', 'long huge', 'ulong huge', 'float rsqrt(K)', 'double M / 3.0',"
        " 'int -2147483648', 'float K']");
    QVERIFY2(plan, qPrintable(messageOf(plan)));
    const auto &args = plan->launches.at(0).args;
    QCOMPARE(scalar<std::int32_t>(args[0]), -100);
    QCOMPARE(scalar<std::uint32_t>(args[1]), 4294967295u);
    QCOMPARE(scalar<std::int64_t>(args[2]), std::int64_t{5'000'000'000});
    QCOMPARE(scalar<std::uint64_t>(args[3]), std::uint64_t{5'000'000'000});
    QCOMPARE(scalar<float>(args[4]), 0.125f);
    QCOMPARE(scalar<double>(args[5]), 100 / 3.0);
    QCOMPARE(scalar<std::int32_t>(args[6]), std::numeric_limits<std::int32_t>::min());
    QCOMPARE(scalar<float>(args[7]), 64.0f);
}

void TestPlan::guardsDropLaunches()
{
    const QString second =
        "\n[[launch]]\nkernel = 'other'\nwhen = 'K % 8 != 0'\ngrid = ['K % 8']\nblock = [1]\nargs = []";
    const auto plan = resolve("grid = [1]\nblock = [32]\nargs = []\nwhen = 'K % 8 == 0'" + second);
    QVERIFY2(plan, qPrintable(messageOf(plan)));
    QCOMPARE(plan->launches.size(), std::size_t{1});
    QCOMPARE(plan->launches[0].kernel, std::string("k"));
    QCOMPARE(messageOf(resolve("when = 0")),
             QString("Cannot resolve the plan: no launch is left, because every 'when' is false for "
                     "this case. Add a launch that covers it."));
}

void TestPlan::workspacesAreResolvedOnce()
{
    const auto plan = resolve("args = ['w', 'x', 'w']",
                              "[[workspace]]\nname = 'w'\ndtype = 'f16'\nshape = [2, 'M']\ninit = 'zero'\n"
                              "[[workspace]]\nname = 'unused'\ndtype = 'f32'\nshape = [0]\n");
    QVERIFY2(plan, qPrintable(messageOf(plan)));
    QCOMPARE(plan->workspaces.size(), std::size_t{1});
    QCOMPARE(plan->workspaces[0].shape, (std::vector<std::int64_t>{2, 100}));
    QCOMPARE(plan->workspaces[0].bytes(), std::int64_t{400});
    QCOMPARE(plan->workspaces[0].init, WorkspaceInit::Zero);
}

void TestPlan::tensorMapsTakeTheTensorsShape()
{
    const QString head =
        "[[tensormap]]\nname = 'a'\ntensor = 'x'\nbox = [64, 'K']\nswizzle = '128B'\n"
        "[[tensormap]]\nname = 'b'\ntensor = 'x'\ndims = [50, 2, 'K']\nstrides = ['2 * K', 'K']\nbox = [8, 1, 8]\n";
    const auto plan = resolve("args = ['b', 'a', 'b']", head);
    QVERIFY2(plan, qPrintable(messageOf(plan)));
    QCOMPARE(plan->tensorMaps.size(), std::size_t{2});
    QCOMPARE(std::get<TensorMapValue>(plan->launches[0].args[1]).index, std::size_t{1});
    QCOMPARE(std::get<TensorMapValue>(plan->launches[0].args[2]).index, std::size_t{0});
    const ResolvedTensorMap &given = plan->tensorMaps[0];
    QCOMPARE(given.dims, (std::vector<std::int64_t>{50, 2, 64}));
    QCOMPARE(given.strideBytes, (std::vector<std::int64_t>{256, 128}));
    const ResolvedTensorMap &own = plan->tensorMaps[1];
    QCOMPARE(own.buffer, std::string("x"));
    QCOMPARE(own.dtype, DType::BF16);
    QCOMPARE(own.dims, (std::vector<std::int64_t>{100, 64}));
    QCOMPARE(own.strideBytes, (std::vector<std::int64_t>{128}));
    QCOMPARE(own.box, (std::vector<std::int64_t>{64, 64}));
}

void TestPlan::tensorMapsOfDroppedLaunchesAreLeftAlone()
{
    // Rows of 65 bf16 elements have no tensor map; the guarded launch that would need one is dropped.
    const std::vector<ResolvedBuffer> odd = {{"x", DType::BF16, {100, 65}}};
    const Bindings bindings = {{"K", std::int64_t{65}}};
    const auto candidate = parseCandidate(
        "/*klineage\nsurface = 'cuda'\n[[tensormap]]\nname = 'a'\ntensor = 'x'\nbox = [8, 8]\n"
        "[[launch]]\nkernel = 'fast'\nwhen = 'K % 8 == 0'\ngrid = [1]\nblock = [1]\nargs = ['a']\n"
        "[[launch]]\nkernel = 'general'\nwhen = 'K % 8 != 0'\ngrid = [1]\nblock = [1]\nargs = ['x']\n*/",
        "k.cu");
    QVERIFY(candidate);
    const auto plan = resolvePlan(*candidate, odd, bindings);
    QVERIFY2(plan, qPrintable(messageOf(plan)));
    QCOMPARE(plan->launches.at(0).kernel, std::string("general"));
    QVERIFY(plan->tensorMaps.empty());
}

void TestPlan::messages_data()
{
    QTest::addColumn<QString>("keys");
    QTest::addColumn<QString>("head");
    QTest::addColumn<QString>("message");
    const auto row = [](const char *name, const QString &keys, const QString &head, const QString &message) {
        QTest::newRow(name) << keys << head << message;
    };
    row("unknown name", "grid = ['ceil_div(M, BM)']", "",
        "grid[0], column 13 of 'ceil_div(M, BM)': the name 'BM' is unknown; did you mean 'M'?");
    row("zero blocks", "grid = ['M - 100']", "", "grid[0] = 'M - 100' is 0; expected 1 to 2^31 - 1.");
    row("too many blocks", "grid = ['huge']", "", "grid[0] = 'huge' is 5000000000; expected 1 to 2^31 - 1.");
    row("no whole number", "grid = ['M / 8.0']", "",
        "grid[0], column 1 of 'M / 8.0': the value 12.500000 is not a whole number of 64 bits.");
    row("grid y", "grid = [1, 65536]", "",
        "grid[1] is 65536; CUDA allows at most 65535 there. Put the larger extent first.");
    row("threads", "block = [32, 33]", "", "the block has more than 1024 threads (32 x 33 x 1).");
    row("threads, overflowing", "block = [2147483647, 2147483647, 2147483647]", "",
        "the block has more than 1024 threads (2147483647 x 2147483647 x 2147483647).");
    row("cluster", "grid = [6]\ncluster = [4]", "",
        "grid[0] is 6, which is no multiple of the cluster's 4. Use round_up().");
    row("cluster size", "grid = [64]\ncluster = [32]", "", "the cluster has more than 16 blocks.");
    row("shared", "shared = 'K * 1025'", "",
        "shared: 65600 bytes, more than the 65536 that the device gives a block.");
    row("negative shared", "shared = -1", "", "shared = '-1' is -1 bytes; expected 0 to 2^31 - 1.");
    row("guard", "when = 'M / (K - 64)'", "", "when, column 3 of 'M / (K - 64)': division by zero.");
    row("int overflow", "args = ['x', 'int huge']", "",
        "argument 2, 'huge' is 5000000000, which does not fit in 'int'.");
    row("uint negative", "args = ['uint -M']", "", "argument 1, '-M' is -100, which does not fit in 'uint'.");
    row("float overflow", "args = ['float 1e300']", "", QString());
    row("fraction for int", "args = ['int 0.5']", "",
        "argument 1, column 1 of '0.5': the value 0.500000 is not a whole number of 64 bits.");
    row("unknown tensor", "args = ['weigth']", "[[workspace]]\nname = 'weight'\ndtype = 'f32'\nshape = [1]\n",
        "argument 1, 'weigth' is neither a tensor nor a workspace; did you mean 'weight'?");
    row("axis without a type", "args = ['M']", "",
        "argument 1, 'M' is a number, not a buffer; a scalar needs its type, as in \"int M\".");
    row("workspace hides a tensor", "args = ['x']", "[[workspace]]\nname = 'x'\ndtype = 'f32'\nshape = [1]\n",
        "argument 1, the workspace 'x' has the name of a tensor of the workload; give it another one.");
    row("workspace extent", "args = ['w']", "[[workspace]]\nname = 'w'\ndtype = 'f32'\nshape = ['M - 101']\n",
        "argument 1, workspace 'w': the extent 'M - 101' is -1; expected 1 to 2^31 - 1.");
    row("workspace size", "args = ['w']",
        "[[workspace]]\nname = 'w'\ndtype = 'f64'\nshape = [2147483647, 2147483647, 2147483647]\n",
        "argument 1, the workspaces need more than 16 GiB.");
    const QString map = "[[tensormap]]\nname = 't'\ntensor = '%1'\nbox = [%2]\n";
    row("map of nothing", "args = ['t']", map.arg("z", "8, 8"),
        "argument 1, tensor map 't': 'z' is neither a tensor nor a workspace; did you mean 'x'?");
    row("map rank", "args = ['t']", map.arg("x", "8"),
        "argument 1, tensor map 't': the box has 1 extents and 'x' 2; expected the same number, 1 to 5.");
    row("map box", "args = ['t']", map.arg("x", "257, 8"),
        "argument 1, tensor map 't': a box extent is 257; expected 1 to 256.");
    row("map bytes", "args = ['t']", map.arg("x", "8, 4"),
        "argument 1, tensor map 't': the innermost box extent is 8 bytes; expected a multiple of 16.");
    row("map swizzle", "args = ['t']", map.arg("x", "8, 64") + "swizzle = '64B'\n",
        "argument 1, tensor map 't': the innermost box extent is 128 bytes; the swizzle allows at most 64.");
    row("map stride", "args = ['t']", map.arg("x", "8, 8") + "dims = [4, 'K']\nstrides = ['K + 1']\n",
        "argument 1, tensor map 't': stride 0 is 130 bytes; expected a multiple of 16 below 2^40. Guard the launch with 'when', "
        "and give other shapes a launch without tensor maps.");
}

void TestPlan::messages()
{
    QFETCH(QString, keys);
    QFETCH(QString, head);
    QFETCH(QString, message);
    const auto plan = resolve(keys, head);
    QVERIFY(!plan);
    QCOMPARE(plan.error().code, ErrorCode::InvalidInput);
    const int line = 4 + static_cast<int>(head.count('\n'));
    const QString prefix = QString("Cannot resolve launch 1 ('k', line %1): ").arg(line);
    QVERIFY2(messageOf(plan).startsWith(prefix), qPrintable(messageOf(plan)));
    if (!message.isEmpty())
        QCOMPARE(messageOf(plan).mid(prefix.size()), message);
}

void TestPlan::openClHasItsOwnRules()
{
    const auto resolveCl = [](const char *grid, const char *arg) {
        const std::string text =
            std::string("/*klineage\nsurface = 'opencl'\n[[launch]]\nkernel = 'k'\ngrid = [") + grid
            + "]\nblock = [64]\nargs = ['x', '" + arg + "', 'local 1024']\n*/";
        return resolvePlan(parseCandidate(text, "k.cl").value(), tensors, names);
    };
    const auto plan = resolveCl("1, 100000", "local K * 4");
    QVERIFY2(plan, qPrintable(messageOf(plan)));
    QCOMPARE(std::get<LocalValue>(plan->launches[0].args[1]).bytes, std::int64_t{256});
    QVERIFY(messageOf(resolveCl("1", "local 0"))
                .contains("argument 2, local = '0' is 0 bytes; expected at least 1."));
    QVERIFY(messageOf(resolveCl("1", "local 64 * 1024")).contains("the local buffers together: 66560 bytes"));
}

QTEST_GUILESS_MAIN(TestPlan)
#include "tst_plan.moc"
