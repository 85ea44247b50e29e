// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/candidate.h"
#include "tests/paths.h"

#include <QTest>

using namespace klineage;
using namespace klineage::kernel;

namespace {

const char *const everything = R"KL(/*klineage
surface = "cuda"

[[tunable]]
name = "BM"
default = 128
values = [64, 128, 256]

[[workspace]]
name = "partial"
dtype = "f32"
shape = [2, "M", "N"]
init = "zero"

[[tensormap]]
name = "tm_x"
tensor = "x"
dims = ["M", "K"]
strides = ["K"]
box = ["BM", 64]
swizzle = "128B"
l2_promotion = "256B"
fill = "nan"
interleave = "none"

[[launch]]
kernel = "gemm"
when = "K % 8 == 0"
grid = [4, "ceil_div(M, BM)"]
block = ["256"]
cluster = ["2"]
shared = "3 * BM * 64 * 2"
cooperative = true
pdl = true
args = ["tm_x", "weight", "partial", "int M", "float rsqrt(K)", "ulong M * N"]
*/
extern "C" __global__ void gemm() {}
)KL";

QString messageOf(const Result<Candidate> &candidate)
{
    return candidate ? QString("no error") : QString::fromStdString(candidate.error().message);
}

} // namespace

class TestCandidate : public QObject
{
    Q_OBJECT

private slots:
    void everyKeyIsRead();
    void writingAndReadingAgree();
    void openClArguments();
    void codeBegins_data();
    void codeBegins();
    void messages_data();
    void messages();
    void fileProblems_data();
    void fileProblems();
    void shippedCandidatesRoundTrip_data();
    void shippedCandidatesRoundTrip();
};

void TestCandidate::everyKeyIsRead()
{
    const Result<Candidate> candidate = parseCandidate(everything, "k.cu");
    QVERIFY2(candidate, qPrintable(messageOf(candidate)));
    QCOMPARE(candidate->surface, Surface::Cuda);
    QCOMPARE(candidate->source, std::string(everything));
    QCOMPARE(candidate->tunables.at(0).values, (std::vector<std::int64_t>{64, 128, 256}));
    QCOMPARE(std::get<std::int64_t>(candidate->defaultTunables().at("BM")), std::int64_t{128});
    const Workspace &workspace = candidate->workspaces.at(0);
    QCOMPARE(workspace.init, WorkspaceInit::Zero);
    QCOMPARE(workspace.shape.at(0).text(), std::string("2"));
    const TensorMap &map = candidate->tensorMaps.at(0);
    QCOMPARE(map.tensor, std::string("x"));
    QCOMPARE(map.strides.size(), std::size_t{1});
    QCOMPARE(map.swizzle, Swizzle::B128);
    QCOMPARE(map.l2Promotion, L2Promotion::B256);
    QCOMPARE(map.fill, TensorMapFill::Nan);
    const Launch &launch = candidate->launches.at(0);
    QCOMPARE(launch.line, 26);
    QCOMPARE(launch.when->text(), std::string("K % 8 == 0"));
    QCOMPARE(launch.grid.at(0).text(), std::string("4"));
    QCOMPARE(launch.cluster.size(), std::size_t{1});
    QCOMPARE(launch.sharedBytes.text(), std::string("3 * BM * 64 * 2"));
    QVERIFY(launch.cooperative && launch.programmaticDependent);
    QCOMPARE(launch.args.size(), std::size_t{6});
    QCOMPARE(std::get<TensorMapArg>(launch.args[0]).name, std::string("tm_x"));
    QCOMPARE(std::get<TensorArg>(launch.args[2]).name, std::string("partial"));
    QCOMPARE(std::get<ScalarArg>(launch.args[4]).type, ScalarType::Float32);
    QCOMPARE(std::get<ScalarArg>(launch.args[4]).value.text(), std::string("rsqrt(K)"));
    QCOMPARE(std::get<ScalarArg>(launch.args[5]).type, ScalarType::UInt64);
}

void TestCandidate::writingAndReadingAgree()
{
    const Candidate candidate = parseCandidate(everything, "k.cu").value();
    const std::string code(codeOf(candidate));
    QCOMPARE(code, std::string("extern \"C\" __global__ void gemm() {}\n"));
    const std::string written = joinCandidate(candidate.surface, writePlan(candidate), code);
    const Result<Candidate> again = parseCandidate(written, "again.cu");
    QVERIFY2(again, qPrintable(messageOf(again)));
    QCOMPARE(writePlan(*again), writePlan(candidate));
    QCOMPARE(std::string(codeOf(*again)), code);
    QCOMPARE(joinCandidate(again->surface, writePlan(*again), codeOf(*again)), written);
    for (const char *part :
         {"[2, \"M\", \"N\"]", "shared = \"3 * BM * 64 * 2\"", "\"ulong M * N\"", "fill = \"nan\""})
        QVERIFY2(written.find(part) != std::string::npos, part);
    QVERIFY2(written.find("interleave") == std::string::npos, "defaults are left out");
}

void TestCandidate::openClArguments()
{
    const Candidate candidate =
        parseCandidate("/*klineage\nsurface = 'opencl'\n[[launch]]\nkernel = 'k'\ngrid = [1]\nblock = [64]\n"
                       "args = ['x', 'local 64 * 4', 'double 0.5']\n*/\n",
                       "k.cl")
            .value();
    QCOMPARE(std::get<LocalArg>(candidate.launches[0].args[1]).bytes.text(), std::string("64 * 4"));
    QCOMPARE(std::get<ScalarArg>(candidate.launches[0].args[2]).type, ScalarType::Float64);
    QVERIFY(!candidate.launches[0].when);
    QCOMPARE(writePlan(
                 parseCandidate(joinCandidate(candidate.surface, writePlan(candidate), ""), "again").value()),
             writePlan(candidate));
}

void TestCandidate::codeBegins_data()
{
    QTest::addColumn<QString>("end");
    QTest::addColumn<QString>("code");
    QTest::addColumn<int>("line");
    QTest::newRow("next line") << "*/\ncode\n"
                               << "code\n"
                               << 8;
    QTest::newRow("blank line") << "*/\n\ncode"
                                << "\ncode" << 8;
    QTest::newRow("same line") << "*/ code"
                               << " code" << 7;
    QTest::newRow("CRLF") << "*/\r\ncode"
                          << "code" << 8;
    QTest::newRow("nothing") << "*/"
                             << "" << 7;
    QTest::newRow("second comment") << "*/\n/* a */ b"
                                    << "/* a */ b" << 8;
}

void TestCandidate::codeBegins()
{
    QFETCH(QString, end);
    QFETCH(QString, code);
    QFETCH(int, line);
    const QString plan =
        "/*klineage\nsurface = 'opencl'\n[[launch]]\nkernel = 'k'\ngrid = [1]\nblock = [1]\nargs = [] ";
    const Result<Candidate> candidate = parseCandidate((plan + end).toStdString(), "k.cl");
    QVERIFY2(candidate, qPrintable(messageOf(candidate)));
    QCOMPARE(QString::fromStdString(std::string(codeOf(*candidate))), code);
    QCOMPARE(candidate->codeLine, line);
}

void TestCandidate::messages_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("message");
    const auto row = [](const char *name, const char *from, const char *to, const char *message) {
        QTest::newRow(name) << from << to << message;
    };
    row("surface", "\"cuda\"", "\"cuba\"",
        "k.cu:2:11: 'surface' is 'cuba'; expected one of 'cuda', 'opencl', 'triton' or 'tilelang'; did you mean 'cuda'?");
    row("no surface", "surface = \"cuda\"", "", "k.cu:1:1: the key 'surface' is missing.");
    row("unknown key", "grid =", "gird =", "k.cu:29:1: the key 'gird' is unknown; did you mean 'grid'?");
    row("unknown table", "[[workspace]]", "[[workspaces]]",
        "k.cu:9:3: the key 'workspaces' is unknown; did you mean 'workspace'?");
    row("default", "default = 128", "default = 96", "k.cu:6:11: 'default' is 96; expected one of 'values'.");
    row("values twice", "[64, 128, 256]", "[64, 128, 64]", "k.cu:7:10: 'values' has 64 twice.");
    row("tunable name", "\"BM\"\ndefault", "\"B M\"\ndefault",
        "k.cu:5:8: 'name' is 'B M'; expected a C identifier of at most 64 characters.");
    row("device fact", "\"BM\"\ndefault", "\"sm_count\"\ndefault",
        "k.cu:5:8: the name 'sm_count' is taken by a fact of the device.");
    row("a name of the compiler's", "\"BM\"\ndefault", "\"__asm__\"\ndefault",
        "k.cu:5:8: the tunable's name '__asm__' has two underscores beside each other, as the compiler's own names.");
    row("name twice", "name = \"partial\"", "name = \"BM\"",
        "k.cu:10:8: the name 'BM' is used twice; tunables, workspaces and tensor maps share one space.");
    row("dtype", "\"f32\"", "\"float\"",
        "k.cu:11:9: 'float' is no element type; expected one of 'f64', 'f32', 'tf32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2', "
        "'i64', 'i32', 'i16', 'i8', 'u32' or 'u8'.");
    row("init", "\"zero\"", "\"one\"", "k.cu:13:8: 'init' is 'one'; expected one of 'poison' or 'zero'.");
    row("box rank", "box = [\"BM\", 64]", "box = [64]",
        "k.cu:20:7: 'box' has 1 entries; expected 2, one for each of 'dims'.");
    row("strides rank", "strides = [\"K\"]", "strides = [\"K\", 1]",
        "k.cu:19:11: 'strides' has 2 entries; expected 1: the innermost one is left out.");
    row("swizzle", "\"128B\"", "\"128\"",
        "k.cu:21:11: 'swizzle' is '128'; expected one of 'none', '32B', '64B' or '128B'; did you mean '128B'?");
    row("interleave", "interleave = \"none\"", "interleave = \"16B\"",
        "k.cu:24:14: 'interleave' is '16B'; expected 'none'.");
    row("kernel", "\"gemm\"", "\"gemm<3>\"",
        "k.cu:27:10: 'kernel' is 'gemm<3>'; expected the name of a kernel function.");
    row("expression", "ceil_div(M, BM)", "ceil_div(M BM)",
        "k.cu:29:12: column 12 of 'ceil_div(M BM)': unexpected 'B'; expected ',' or ')'.");
    row("number for a guard", "when = \"K % 8 == 0\"", "when = 1.5",
        "k.cu:28:8: 'when' is a number with a fraction; expected a string or an integer.");
    row("grid size", "[4, \"ceil_div(M, BM)\"]", "[1, 2, 3, 4]",
        "k.cu:29:8: 'grid' has 4 entries; expected 1 to 3.");
    row("empty block", "[\"256\"]", "[]", "k.cu:30:9: 'block' has 0 entries; expected 1 to 3.");
    row("boolean", "cooperative = true", "cooperative = 1",
        "k.cu:33:15: 'cooperative' is an integer; expected true or false.");
    row("argument type", "\"int M\"", "\"itn M\"",
        "k.cu:35:38: the argument 'itn M' is neither a name nor a type and an expression (\"int M\"); did you mean 'int'?");
    row("argument expression", "\"int M\"", "\"int M +\"",
        "k.cu:35:38: column 4 of 'M +': unexpected end; expected a number, a name or '('.");
    row("local in CUDA", "\"int M\"", "\"local 64\"",
        "k.cu:35:38: 'local' is for the surface 'opencl' only; CUDA has the key 'shared'.");
    row("no arguments",
        "args = [\"tm_x\", \"weight\", \"partial\", \"int M\", \"float rsqrt(K)\", \"ulong M * N\"]", "",
        "k.cu:26:1: the key 'args' is missing.");
    row("cuda only", "surface = \"cuda\"", "surface = \"opencl\"",
        "k.cu:15:1: tensor maps are for the surface 'cuda', 'triton' or 'tilelang' only.");
    row("no TOML", "surface =", "surface", "k.cu:2:9: not TOML, *");
}

void TestCandidate::messages()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, message);
    QString text = everything;
    QVERIFY(text.contains(from));
    text.replace(text.indexOf(from), from.size(), to);
    const Result<Candidate> candidate = parseCandidate(text.toStdString(), "k.cu");
    QVERIFY(!candidate);
    QCOMPARE(candidate.error().code, ErrorCode::InvalidInput);
    if (message.endsWith('*')) // the rest is in the words of the TOML library's release
        QVERIFY2(messageOf(candidate).startsWith(message.chopped(1)), qPrintable(messageOf(candidate)));
    else
        QCOMPARE(messageOf(candidate), message);
}

void TestCandidate::fileProblems_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("message");
    const QByteArray head = "/*klineage\nsurface = 'cuda'\n";
    const QByteArray launch = "[[launch]]\nkernel = 'k'\ngrid = [1]\nblock = [1]\nargs = []\n";
    QTest::newRow("empty")
        << QByteArray()
        << "k.cu:1:1: the launch plan is missing; expected the file to begin with '/*klineage' or '\"\"\"klineage'.";
    QTest::newRow("plain code")
        << QByteArray("int x;")
        << "k.cu:1:1: the launch plan is missing; expected the file to begin with '/*klineage' or '\"\"\"klineage'.";
    QTest::newRow("no end") << head + launch << "k.cu:1:1: the launch plan never ends; expected '*/'.";
    QTest::newRow("opening runs on") << QByteArray("/*klineages\n*/")
                                     << "k.cu:1:11: expected a line break after '/*klineage'.";
    QTest::newRow("no launch") << head + "*/"
                               << "k.cu:1:1: the key 'launch' is missing.";
    QTest::newRow("launch is no list")
        << head + "[launch]\n*/"
        << "k.cu:3:1: 'launch' is a table; expected a list of tables, written [[launch]].";
    QTest::newRow("NUL") << head + launch + QByteArray("*/ \0", 4)
                         << "k.cu: the file contains a NUL byte; expected text.";
    QTest::newRow("too large") << head + launch + "*/" + QByteArray(4 << 20, ' ')
                               << "k.cu: the file is larger than the limit of 4194304 bytes.";
    QTest::newRow("too many launches") << head + launch.repeated(257) + "*/"
                                       << "k.cu:1283:1: there are more than 256 [[launch]] entries.";
}

void TestCandidate::fileProblems()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, message);
    QCOMPARE(messageOf(parseCandidate(text.toStdString(), "k.cu")), message);
}

void TestCandidate::shippedCandidatesRoundTrip_data()
{
    QTest::addColumn<QString>("path");
    const std::filesystem::path root = std::filesystem::path(klineage::test::sourcePath()) / "workloads";
    for (const auto &entry : std::filesystem::recursive_directory_iterator(root)) {
        const std::string extension = entry.path().extension().string();
        if (extension == ".cu" || extension == ".cl")
            QTest::newRow(entry.path().lexically_relative(root).c_str())
                << QString::fromStdString(entry.path().string());
    }
}

void TestCandidate::shippedCandidatesRoundTrip()
{
    QFETCH(QString, path);
    const Result<Candidate> candidate = readCandidate(path.toStdString());
    QVERIFY2(candidate, qPrintable(messageOf(candidate)));
    QCOMPARE(candidate->surface, path.endsWith(".cu") ? Surface::Cuda : Surface::OpenCl);
    const std::string written = joinCandidate(candidate->surface, writePlan(*candidate), codeOf(*candidate));
    const Result<Candidate> again = parseCandidate(written, "again");
    QVERIFY2(again, qPrintable(messageOf(again)));
    QCOMPARE(writePlan(*again), writePlan(*candidate));
    QVERIFY(codeOf(*again) == codeOf(*candidate));
}

QTEST_GUILESS_MAIN(TestCandidate)
#include "tst_candidate.moc"
