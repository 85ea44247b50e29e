// SPDX-License-Identifier: GPL-3.0-or-later
//
// TileLang as a surface: its plan, what its compiler is told and decides, and what a hostile source gets out of the compiler. What needs the
// package tilelang or NVRTC is skipped where there is none (KLINEAGE_PYTHON names another Python).
#include "core/gate/triton/tilelangcompiler.h"
#include "tests/core/gate/triton/languagefixture.h"

#include <nlohmann/json.hpp>

#include <elf.h>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::test;
using nlohmann::json;

namespace {

const std::filesystem::path corpusFolder = corpusOf("tilelang");

const char *const productPlan = R"plan("""klineage
surface = "tilelang"

[[tunable]]
name = "BM"
default = 64
values = [64, 128]

[[workspace]]
name = "part"
dtype = "f32"
shape = ["M", "N"]

[[launch]]
kernel = "product"
grid = ["ceil_div(M, BM)"]
args = ["x", "weight", "part", "int M", "int N", "float 0.5"]

[[launch]]
kernel = "product"
grid = [1]
args = ["x", "weight", "part", "int M * 2", "int N", "float 0.5"]
"""
import tilelang.language as T
)plan";

/// NVRTC in this process, in the place of the compiler process.
class CudaHere : public LanguageProcess
{
public:
    [[nodiscard]] WorkerResult<std::string> version(const std::stop_token &) override
    {
        const auto probe = compileCuda("\n", "probe", {}, "sm_90a");
        if (!probe)
            return tl::unexpected(WorkerFailure{FailureKind::Unavailable, probe.error(), {}, {}, 0});
        return probe->compiler;
    }
    [[nodiscard]] WorkerResult<CompileOutput> compile(const CompileRequest &request, double,
                                                      const std::stop_token &) override
    {
        auto output =
            compileCuda(request.source, request.name, request.tunables, request.target, request.headers);
        if (!output)
            return tl::unexpected(WorkerFailure{FailureKind::Machine, output.error(), {}, {}, 0});
        return std::move(*output);
    }
};

/// The compiler, if this machine has one; kept for all tests.
TilelangCompiler *tilelang(std::string &why)
{
    static CudaHere cuda;
    static TilelangCompiler compiler(&cuda);
    static const std::string missing = [] {
        const auto version = compiler.version({});
        return version ? std::string() : version.error().error.message;
    }();
    why = missing;
    return missing.empty() ? &compiler : nullptr;
}

/// Rows with what stands in for their kernel's body and for the module's beginning. The body is in line 17.
std::string rowsText(const std::string &body, const std::string &head = {})
{
    return "\"\"\"klineage\nsurface = \"tilelang\"\n[[launch]]\nkernel = \"softmax\"\ngrid = [\"R\"]\n"
           "args = [\"x\", \"y\", \"int R\", \"int C\"]\n\"\"\"\nimport tilelang.language as T\n\nR = T.dynamic(\"R\")\nC = T.dynamic(\"C\")\n"
           + head
           + "\n\n@T.prim_func\ndef softmax(x: T.Tensor((R, C), T.float32), y: T.Tensor((R, C), T.float32)):\n"
             "    with T.Kernel(R, threads=64) as row:\n        "
           + body + "\n";
}

const char *const writes = "for i in T.Parallel(64):\n            y[row, i] = x[row, i]";

} // namespace

#define KLINEAGE_NEEDS_TILELANG(name) \
    std::string whyNoTilelang; \
    TilelangCompiler *const name = tilelang(whyNoTilelang); \
    if (!name) \
    QSKIP(whyNoTilelang.c_str())

class TestTilelang : public QObject
{
    Q_OBJECT
private slots:
    void plansOfTilelang()
    {
        const kernel::Candidate candidate = parsed(productPlan);
        QVERIFY(candidate.surface == kernel::Surface::Tilelang); // the plan's word, of a .py file
        QCOMPARE(std::string(kernel::codeOf(candidate)), std::string("import tilelang.language as T\n"));
        const std::string plan = kernel::writePlan(candidate);
        QCOMPARE(kernel::writePlan(
                     parsed(kernel::joinCandidate(candidate.surface, plan, kernel::codeOf(candidate)))),
                 plan);
    }

    void whatPlansCannotSay_data()
    {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("said");
        QTest::newRow("block")
            << "block = [128]"
            << "'block' is for the compiler of the surface 'tilelang' to say, by the source.";
        for (const char *key : {"num_warps", "num_stages"})
            QTest::newRow(key) << QString(key) + " = 4"
                               << "'" + QString(key) + "' is not for the surface 'tilelang'";
        QTest::newRow("multiples_of_16") << "multiples_of_16 = [\"N\"]"
                                         << "'multiples_of_16' is not for the surface 'tilelang'";
    }
    void whatPlansCannotSay()
    {
        QFETCH(QString, line);
        QFETCH(QString, said);
        const std::string refusal = refusalOf(productPlan, "grid = [1]", "grid = [1]\n" + line.toStdString());
        QVERIFY2(refusal.find(said.toStdString()) != std::string::npos, refusal.c_str());
    }

    void whatTheCompilerIsTold()
    {
        const auto text = describeLaunches(parsed(productPlan), corpusWorkload("small-gemm"), {{"BM", 128}});
        QVERIFY2(text.has_value(), text ? "" : text.error().message.c_str());
        const json launches = json::parse(*text);
        QCOMPARE(launches.size(), std::size_t{2});
        QCOMPARE(launches[0].at("arguments")[2].at("type").get<std::string>(), std::string("*fp32"));
        QCOMPARE(launches[1].at("arguments")[3].at("value").get<std::string>(), std::string("M * 2"));
        QCOMPARE(launches[1].at("entry").get<std::string>(),
                 std::string("product")); // it has types of its own
        QVERIFY(!launches[0].contains("num_warps"));
    }

    void decisionsBecomeArguments()
    {
        const kernel::Candidate candidate = parsed(productPlan);
        const workload::Workload workload = corpusWorkload("small-gemm");
        kernel::Bindings bindings = workload.bindings(workload.cases.front()); // 128 by 128 by 256
        bindings.merge(candidate.defaultTunables());
        const auto tensors = *workload.buffersOf(workload.cases.front());
        const auto plan = kernel::resolvePlan(candidate, tensors, bindings);
        QVERIFY2(plan.has_value(), plan ? "" : plan.error().message.c_str());
        CompiledLaunch::Map map{{64, 32}, kernel::Swizzle::B64, 0, {"(M)", "(K)"}, {"(K)"}};
        map.promotion = kernel::L2Promotion::B128;
        CompiledLaunch decided{"product", 384, 2048, 0, 0, {map}};
        decided.takes = std::vector<std::int64_t>{-1, 2, 4};
        kernel::ResolvedPlan applied = *plan;
        const auto status = applyDecisions({decided, decided}, tensors, bindings, applied);
        QVERIFY2(status.has_value(), status ? "" : status.error().message.c_str());
        const kernel::ResolvedLaunch &launch = applied.launches.front();
        QCOMPARE(launch.args.size(), std::size_t{3});
        QCOMPARE(launch.block[0], std::int64_t{384});
        const auto &made = applied.tensorMaps.at(std::get<kernel::TensorMapValue>(launch.args[0]).index);
        QCOMPARE(made.buffer, std::string("x"));
        QCOMPARE(made.dims, (std::vector<std::int64_t>{128, 256}));
        QCOMPARE(made.strideBytes, (std::vector<std::int64_t>{512}));
        QVERIFY(made.l2Promotion == kernel::L2Promotion::B128 && made.dtype == kernel::DType::BF16);
        QCOMPARE(std::get<kernel::PointerValue>(launch.args[1]).buffer, std::string("part"));
        QCOMPARE(std::to_integer<int>(std::get<kernel::ScalarValue>(launch.args[2]).bytes[0]), 128);

        // What it says is held to what there is, and to the hardware.
        const auto refused = [&](const std::function<void(CompiledLaunch &)> &change) {
            CompiledLaunch bad = decided;
            change(bad);
            kernel::ResolvedPlan copy = *plan;
            return !applyDecisions({bad, bad}, tensors, bindings, copy).has_value();
        };
        QVERIFY(!refused([](CompiledLaunch &) {}));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.takes->back() = 6; }));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.takes->back() = -2; }));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.maps.front().argument = 3; }));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.maps.front().argument = 9; }));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.maps.front().dims = {"(M)"}; }));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.maps.front().dims.front() = "M +"; }));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.maps.front().strides = {"7"}; }));
        QVERIFY(refused([](CompiledLaunch &bad) { bad.maps.front().box = {64, 300}; }));
    }

    void withoutTilelang()
    {
        TilelangCompiler compiler;
        checkWithoutPython(compiler, corpusFolder, "TileLang");
    }

    void kernelsBecomeOneModule()
    {
        KLINEAGE_NEEDS_TILELANG(compiler);
        const auto output =
            compiled(*compiler, textOf(corpusFolder / "split-with-atomics.py"), corpusWorkload("small-gemm"));
        QVERIFY2(output.has_value(), output ? "" : output.error().error.message.c_str());
        QVERIFY2(output->ok, output->log.c_str());
        QCOMPARE(std::memcmp(output->binary.data(), ELFMAG, SELFMAG), 0);
        const std::string image(reinterpret_cast<const char *>(output->binary.data()), output->binary.size());
        QVERIFY(image.find(".text.gemm") != std::string::npos);
        QVERIFY(image.find(".text.rounds") != std::string::npos);
        QVERIFY(image.find("K00.py") != std::string::npos); // of the line table
        QCOMPARE(output->launches.size(), std::size_t{2});
        QCOMPARE(output->launches.front().threads, std::int64_t{128});
        QVERIFY(output->launches.front().sharedBytes > 0);
        QCOMPARE(output->launches.back().threads, std::int64_t{256});
        QVERIFY(std::any_of(output->metrics.begin(), output->metrics.end(), [](const Metric &metric) {
            return metric.name == "registers" && metric.kernel == "rounds" && metric.value > 0;
        }));
        QVERIFY(output->compiler.starts_with("tilelang ")
                && output->compiler.find("nvrtc ") != std::string::npos);
    }

    void mapsAreMadeByTheCompiler()
    {
        KLINEAGE_NEEDS_TILELANG(compiler);
        const auto output =
            compiled(*compiler, textOf(corpusFolder / "tiles.py"), corpusWorkload("small-gemm"));
        QVERIFY2(output.has_value() && output->ok, output ? output->log.c_str() : "");
        const CompiledLaunch &launch = output->launches.front();
        QVERIFY(launch.takes.has_value());
        QCOMPARE(launch.maps.size(), std::size_t{3});
        QVERIFY(launch.maps.front().swizzle == kernel::Swizzle::B128);
        QCOMPARE(launch.maps.front().strides, std::vector<std::string>{"(K)"});
        QCOMPARE(launch.threads, std::int64_t{256}); // 128 of the source's, and those that bring tiles
    }

    void tunablesAreConstants()
    {
        KLINEAGE_NEEDS_TILELANG(compiler);
        std::string text = textOf(corpusFolder / "tiles.py");
        text.replace(text.find("default = 64"), 12, "default = 128");
        const auto output = compiled(*compiler, text, corpusWorkload("small-gemm"));
        QVERIFY2(output.has_value() && output->ok, output ? output->log.c_str() : "");
        const auto &maps = output->launches.front().maps;
        QVERIFY(std::any_of(maps.begin(), maps.end(), [](const auto &map) {
            return map.argument == std::size_t{0} && map.box.front() == 128;
        }));
    }

    void mistakesHaveALine_data()
    {
        QTest::addColumn<QString>("body");
        QTest::addColumn<QString>("log");
        QTest::newRow("syntax") << "x +"
                                << "K00.py:17:12: error: invalid syntax";
        QTest::newRow("name") << "y[row, 0] = missing"
                              << "K00.py:17:21: error: missing is neither of this module";
        QTest::newRow("shape") << "T.copy(x[row, 0], T.alloc_fragment((4, 4, 4), T.float32), 7, 8, 9)"
                               << "K00.py:17:1: error: ";
        QTest::newRow("no member") << "T.copy.__globals__"
                                   << "K00.py:17:9: error: the name __globals__ is refused";
        QTest::newRow("module")
            << "T.builtin.tvm"
            << "K00.py:17:9: error: tilelang.language.builtin offers no tvm to candidates";
        QTest::newRow("no such function")
            << "T.no_such()"
            << "K00.py:17:9: error: tilelang.language offers no no_such to candidates";
    }
    void mistakesHaveALine()
    {
        KLINEAGE_NEEDS_TILELANG(compiler);
        QFETCH(QString, body);
        QFETCH(QString, log);
        const auto output =
            compiled(*compiler, rowsText(body.toStdString()), corpusWorkload("small-softmax"));
        QVERIFY2(output.has_value(), output ? "" : output.error().error.message.c_str());
        QVERIFY(!output->ok);
        QVERIFY2(output->log.find(log.toStdString()) != std::string::npos, output->log.c_str());
    }

    void whatMayStandInAModule_data()
    {
        QTest::addColumn<QString>("head");
        QTest::addColumn<bool>("ok");
        QTest::newRow("constants") << "A = 3\nB = 2 * A + 1\nKIND = T.float16\nD = T.ceildiv(A, 2)" << true;
        QTest::newRow("macro") << "\n\n@T.macro\ndef other(a):\n    a[0, 0] = 1" << true;
        QTest::newRow("another kernel")
            << "\n\n@T.prim_func\ndef other(x: T.Tensor((R,), T.float32)):\n    with T.Kernel(R, threads=32) as i:\n        x[i] = 1"
            << true;
        QTest::newRow("a comment") << "# nothing" << true;
        QTest::newRow("import of the system's") << "import sys" << false;
        QTest::newRow("relative import") << "from . import secrets" << false;
        QTest::newRow("star") << "from tilelang.language import *" << false;
        QTest::newRow("of the compiler's") << "import tilelang.engine as e" << false;
        QTest::newRow("over a module") << "T = 3" << false;
        QTest::newRow("into a module") << "T.copy = T.fill" << false;
        QTest::newRow("variable of two names") << "P = T.dynamic(\"A, B\")" << false;
        QTest::newRow("variable that is code") << "P = T.dynamic(\"A;x\")" << false;
        QTest::newRow("subscript") << "A = {}\nA[0] = 1" << false;
        QTest::newRow("walrus") << "A = (B := 3)" << false;
        QTest::newRow("lambda") << "A = lambda: 3" << false;
        QTest::newRow("comprehension") << "A = tuple([i for i in (1, 2)])" << false;
        QTest::newRow("format") << "A = f\"{T}\"" << false;
        QTest::newRow("text as often as") << "A = \"ab\" * 1000" << false;
        QTest::newRow("power") << "A = 2 ** 3" << false;
        QTest::newRow("class") << "class A:\n    pass" << false;
        QTest::newRow("loop") << "while True:\n    pass" << false;
        QTest::newRow("function of Python's") << "def other(a):\n    return a" << false;
        QTest::newRow("builtin") << "A = print" << false;
        QTest::newRow("builtins") << "__builtins__ = 3" << false;
        QTest::newRow("nested function")
            << "@T.macro\ndef other(a):\n    def inner():\n        pass" << false;
        QTest::newRow("power in a function") << "@T.macro\ndef other(a):\n    a[0] = 9 ** 9" << false;
        QTest::newRow("decorator as a function") << "@T.macro\ndef other(a):\n    T.prim_func(a)" << false;
        QTest::newRow("parameter of no type") << "@T.prim_func\ndef other(a):\n    pass" << false;
    }
    void whatMayStandInAModule()
    {
        KLINEAGE_NEEDS_TILELANG(compiler);
        QFETCH(QString, head);
        QFETCH(bool, ok);
        const auto output =
            compiled(*compiler, rowsText(writes, head.toStdString()), corpusWorkload("small-softmax"));
        QVERIFY2(output.has_value(), output ? "" : output.error().error.message.c_str());
        QVERIFY2(output->ok == ok, output->log.c_str());
    }

    void theCorpusIsCompiledAsExpected_data() { corpusRows(corpusFolder); }
    void theCorpusIsCompiledAsExpected()
    {
        KLINEAGE_NEEDS_TILELANG(compiler);
        QFETCH(QString, file);
        checkCorpusEntry(*compiler, corpusFolder, file.toStdString());
    }

    void theVerdictSaysIt()
    {
        KLINEAGE_NEEDS_TILELANG(compiler);
        const auto trial = supervisedTrial(corpusFolder, "reads-a-file.py");
        QVERIFY2(trial.has_value(), trial ? "" : trial.error().message.c_str());
        QCOMPARE(trial->verdict.status, VerdictStatus::CompileError);
        QVERIFY(trial->surface == kernel::Surface::Tilelang);
        QVERIFY2(trial->verdict.message.starts_with(
                     "The candidate does not compile: line 15: error: a constant is"),
                 trial->verdict.message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestTilelang)
#include "tst_tilelang.moc"
