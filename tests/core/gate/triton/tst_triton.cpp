// SPDX-License-Identifier: GPL-3.0-or-later
//
// Triton as a surface: its plan, what its compiler is told and decides, and what a hostile source gets out of the compiler. What needs the
// package triton is skipped where the Python that the gate uses has none (KLINEAGE_PYTHON names another one).
#include "core/gate/triton/tritoncompiler.h"
#include "tests/core/gate/triton/languagefixture.h"

#include <nlohmann/json.hpp>

#include <elf.h>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::test;
using nlohmann::json;

namespace {

const std::filesystem::path corpusFolder = corpusOf("triton");

const char *const productPlan = R"plan("""klineage
surface = "triton"

[[tunable]]
name = "BM"
default = 64
values = [64, 128]

[[workspace]]
name = "part"
dtype = "f32"
shape = ["M", "N"]

[[tensormap]]
name = "rows"
tensor = "x"
box = ["BM", 32]

[[launch]]
kernel = "product"
grid = ["ceil_div(M, BM)"]
num_warps = "BM / 16"
num_stages = 2
multiples_of_16 = ["N"]
args = ["rows", "weight", "part", "int M", "long N", "float 0.5"]

[[launch]]
kernel = "rounds"
when = "M > 1"
grid = [1]
args = ["part", "y"]

[[launch]]
kernel = "rounds"
grid = [1]
args = ["y", "y"]
"""
import triton
)plan";

workload::Workload productWorkload()
{
    auto workload = workload::parseWorkload(R"(
name = "product"
title = "Product"
axes = ["M", "N"]
flops = "M * N"
bytes = "M * N"
[[tensor]]
name = "x"
role = "input"
dtype = "bf16"
shape = ["M", "N"]
[[tensor]]
name = "weight"
role = "input"
dtype = "f16"
shape = ["N"]
[[tensor]]
name = "y"
role = "output"
dtype = "bf16"
shape = ["M", "N"]
[[case]]
name = "timed"
axes = { M = 100, N = 48 }
[oracle]
name = "softmax_rows"
args = { in = "x", out = "y" }
)",
                                            "workload.toml");
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return std::move(*workload);
}

/// The compiler, if this machine has one; kept for all tests.
TritonCompiler *triton(std::string &why)
{
    static TritonCompiler compiler;
    static const std::string missing = [] {
        const auto version = compiler.version({});
        return version ? std::string() : version.error().error.message;
    }();
    why = missing;
    return missing.empty() ? &compiler : nullptr;
}

/// Rows with what stands in for their kernel's body and for the module's beginning.
std::string rowsText(const std::string &body, const std::string &head = {})
{
    return "\"\"\"klineage\nsurface = \"triton\"\n[[launch]]\nkernel = \"softmax\"\ngrid = [\"R\"]\nargs = [\"x\", \"y\", \"int C\"]\n"
           "\"\"\"\nimport triton\nimport triton.language as tl\n"
           + head + "\n\n@triton.jit\ndef softmax(x, y, C):\n    " + body + "\n";
}

} // namespace

#define KLINEAGE_NEEDS_TRITON(name) \
    std::string whyNoTriton; \
    TritonCompiler *const name = triton(whyNoTriton); \
    if (!name) \
    QSKIP(whyNoTriton.c_str())

class TestTriton : public QObject
{
    Q_OBJECT
private slots:
    void plansOfTriton()
    {
        const kernel::Candidate candidate = parsed(productPlan);
        QVERIFY(candidate.surface == kernel::Surface::Triton);
        QCOMPARE(candidate.launches.at(0).warps->text(), std::string("BM / 16"));
        QVERIFY(!candidate.launches.at(1).warps);
        QCOMPARE(std::string(kernel::codeOf(candidate)), std::string("import triton\n"));
        const std::string plan = kernel::writePlan(candidate);
        const kernel::Candidate again =
            parsed(kernel::joinCandidate(candidate.surface, plan, kernel::codeOf(candidate)));
        QCOMPARE(kernel::writePlan(again), plan);
        QCOMPARE(again.launches.at(0).multiplesOf16.size(), std::size_t{1});
        QVERIFY(kernel::surfaceOfFile("K00.py") == kernel::Surface::Triton);
    }

    void whatPlansCannotSay()
    {
        const std::string block = refusalOf(productPlan, "num_stages = 2", "block = [128]");
        QVERIFY2(block.find("'block' is for the compiler of the surface 'triton' to say")
                     != std::string::npos,
                 block.c_str());
        const std::string multiple = refusalOf(productPlan, "[\"N\"]\nargs", "[\"K\"]\nargs");
        QVERIFY2(multiple.find("which is the value of none of 'args'") != std::string::npos,
                 multiple.c_str());
        const std::string cuda =
            "/*klineage\nsurface = \"cuda\"\n[[launch]]\nkernel = \"k\"\ngrid = [1]\nblock = [32]\nnum_warps = 4\nargs = []\n*/\n";
        QVERIFY(!kernel::parseCandidate(cuda, "K00.cu"));
    }

    void multiplesAreHeldTo()
    {
        const kernel::Candidate candidate = parsed(productPlan);
        workload::Workload workload = productWorkload();
        for (const std::int64_t columns : {48, 40}) {
            workload.cases.front().axes["N"] = columns;
            kernel::Bindings bindings = workload.bindings(workload.cases.front());
            bindings.merge(candidate.defaultTunables());
            const auto plan =
                kernel::resolvePlan(candidate, *workload.buffersOf(workload.cases.front()), bindings);
            QCOMPARE(plan.has_value(), columns == 48);
            if (plan)
                QCOMPARE(plan->launches.front().block[0],
                         std::int64_t{128}); // four warps, until the compiler says more
            else
                QVERIFY(plan.error().message.find("'N' is said to be a multiple of 16, and is 40")
                        != std::string::npos);
        }
    }

    void whatTheCompilerIsTold()
    {
        const kernel::Candidate candidate = parsed(productPlan);
        const auto text = describeLaunches(candidate, productWorkload(), {{"BM", 128}});
        QVERIFY2(text.has_value(), text ? "" : text.error().message.c_str());
        const json launches = json::parse(*text);
        QCOMPARE(launches.size(), std::size_t{3});
        QCOMPARE(launches[0].at("num_warps").get<int>(), 8);
        QCOMPARE(launches[0].at("num_stages").get<int>(), 2);
        std::vector<std::string> types;
        for (const json &argument : launches[0].at("arguments"))
            types.push_back(argument.at("type").get<std::string>());
        const std::vector<std::string> expected = {
            "tensordesc<bf16[128,32]>", "*fp16", "*fp32", "i32", "i64", "fp32"};
        QVERIFY(types == expected);
        QVERIFY(!launches[0]["arguments"][3].at("multiple_of_16").get<bool>());
        QVERIFY(launches[0]["arguments"][4].at("multiple_of_16").get<bool>());
        // The same kernel with other types is another one.
        QCOMPARE(launches[1].at("entry").get<std::string>(), std::string("rounds"));
        QCOMPARE(launches[2].at("entry").get<std::string>(), std::string("rounds__2"));
    }

    void boxesAreOfTunables()
    {
        std::string text = productPlan;
        text.replace(text.find("[\"BM\", 32]"), 10, "[\"M\", 32]");
        const auto said = describeLaunches(parsed(text), productWorkload(), {{"BM", 64}});
        QVERIFY(!said);
        QVERIFY2(said.error().message.find("of tunables alone") != std::string::npos,
                 said.error().message.c_str());
    }

    void decisionsBecomeArguments()
    {
        const kernel::Candidate candidate = parsed(productPlan);
        const workload::Workload workload = productWorkload();
        kernel::Bindings bindings = workload.bindings(workload.cases.front());
        bindings.merge(candidate.defaultTunables());
        bindings["max_shared"] = std::int64_t{1000};
        auto plan = kernel::resolvePlan(candidate, *workload.buffersOf(workload.cases.front()), bindings);
        QVERIFY(plan.has_value());
        std::vector<CompiledLaunch> decisions = {
            {"product", 256, 1000, 0, 2, {{{64, 16}, kernel::Swizzle::B32}}},
            {"rounds", 128, 0, 0, 2, {}},
            {"rounds__2", 128, 0, 384, 2, {}}};
        QVERIFY(applyDecisions(decisions, {}, bindings, *plan).has_value());
        const kernel::ResolvedLaunch &launch = plan->launches.front();
        QCOMPARE(launch.block[0], std::int64_t{256});
        QCOMPARE(launch.sharedBytes, std::int64_t{1000});
        // the map, two extents, two strides; five more; two null pointers
        QCOMPARE(launch.args.size(), std::size_t{5 + 5 + 2});
        const auto &map = plan->tensorMaps.at(std::get<kernel::TensorMapValue>(launch.args[0]).index);
        QCOMPARE(map.box, (std::vector<std::int64_t>{64, 16}));
        QVERIFY(map.swizzle == kernel::Swizzle::B32);
        const auto extent = std::get<kernel::ScalarValue>(launch.args[2]);
        QCOMPARE(extent.size, std::size_t{4});
        QCOMPARE(std::to_integer<int>(extent.bytes[0]), 48);
        const auto stride = std::get<kernel::ScalarValue>(launch.args[3]);
        QCOMPARE(stride.size, std::size_t{8});
        QCOMPARE(std::to_integer<int>(stride.bytes[0]), 48);
        QCOMPARE(plan->launches.at(2).kernel, std::string("rounds__2"));
        // Memory that each of its blocks needs for itself is a workspace.
        QCOMPARE(std::get<kernel::PointerValue>(plan->launches.at(2).args.at(2)).buffer,
                 plan->workspaces.back().name);
        QCOMPARE(plan->workspaces.back().bytes(), std::int64_t{384});
        // What the device cannot give, and what was not said.
        decisions.front().sharedBytes = 1001;
        const auto large = applyDecisions(decisions, {}, bindings, *plan);
        QVERIFY(!large && large.error().message.find("1001 bytes of shared memory") != std::string::npos);
        QVERIFY(!applyDecisions({}, {}, bindings, *plan));
    }

    void withoutTriton()
    {
        TritonCompiler compiler;
        checkWithoutPython(compiler, corpusFolder, "Triton");
    }

    void kernelsBecomeOneModule()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
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
        QVERIFY(std::any_of(output->metrics.begin(), output->metrics.end(), [](const Metric &metric) {
            return metric.name == "registers" && metric.kernel == "rounds" && metric.value > 0;
        }));
        QVERIFY(output->compiler.starts_with("triton "));
    }

    void whatKernelsDefineIsTheirOwn()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
        // Constants of the mathematics, texts to print and functions that are not inlined have the same names in both modules.
        std::string text = "\"\"\"klineage\nsurface = \"triton\"\n";
        for (const std::string kernel : {"one", "two"})
            text += "[[launch]]\nkernel = \"" + kernel + "\"\ngrid = [1]\nargs = [\"x\", \"y\"]\n";
        text += "\"\"\"\nimport triton\nimport triton.language as tl\n"
                "\n\n@triton.jit(noinline=True)\ndef half(a):\n    return tl.rsqrt(a) * 0.5\n";
        for (const std::string kernel : {"one", "two"})
            text += "\n\n@triton.jit\ndef " + kernel + "(x, y):\n    tl.device_print(\"" + kernel
                    + "\", tl.load(x))\n    tl.store(y, half(tl.load(x)) + tl.rsqrt(tl.load(x + 1)))\n";
        const auto output = compiled(*compiler, text, corpusWorkload("small-softmax"));
        QVERIFY2(output.has_value(), output ? "" : output.error().error.message.c_str());
        QVERIFY2(output->ok, output->log.c_str());
        QCOMPARE(output->launches.size(), std::size_t{2});
    }

    void mapsAreCutByTheCompiler()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
        const auto output =
            compiled(*compiler, textOf(corpusFolder / "maps.py"), corpusWorkload("small-gemm"));
        QVERIFY2(output.has_value() && output->ok, output ? output->log.c_str() : "");
        QCOMPARE(output->launches.front().maps.size(), std::size_t{3});
        QVERIFY(output->launches.front().maps.front().swizzle == kernel::Swizzle::B128);
    }

    void mistakesHaveALine_data()
    {
        QTest::addColumn<QString>("body");
        QTest::addColumn<QString>("log");
        QTest::newRow("syntax") << "x +"
                                << "K00.py:14:8: error: invalid syntax";
        QTest::newRow("name") << "tl.store(y, missing)"
                              << "K00.py:14:17: error: softmax: missing is not defined";
        QTest::newRow("shape") << "tl.store(y + tl.arange(0, 3), 1.0)"
                               << "K00.py:14:18: error: softmax: arange's range must be a power of 2";
        QTest::newRow("no member") << "tl.sum.__globals__"
                                   << "K00.py:14:5: error: the name __globals__ is refused";
        QTest::newRow("module") << "tl.core.tensor"
                                << "K00.py:14:5: error: triton.language offers no core to candidates";
        QTest::newRow("assembly")
            << "tl.inline_asm_elementwise(\"no such;\", \"=r\", [], dtype=tl.int32, is_pure=False, pack=1)"
            << "error";
    }
    void mistakesHaveALine()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
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
        QTest::newRow("constants") << "A = 3\nB: tl.constexpr = tl.constexpr(2 * A + 1)\nC2 = -1.5" << true;
        QTest::newRow("libdevice") << "from triton.language.extra import libdevice" << true;
        QTest::newRow("another kernel")
            << "\n\n@triton.jit(noinline=True)\ndef other(a):\n    return a + 1" << true;
        QTest::newRow("a comment") << "# nothing" << true;
        QTest::newRow("import of the system's") << "import sys" << false;
        QTest::newRow("relative import") << "from . import secrets" << false;
        QTest::newRow("star") << "from triton.language import *" << false;
        QTest::newRow("knobs") << "import triton.knobs as k" << false;
        QTest::newRow("over a module") << "tl = 3" << false;
        QTest::newRow("into a module") << "tl.sum = tl.max" << false;
        QTest::newRow("subscript") << "A = {}\nA[0] = 1" << false;
        QTest::newRow("walrus") << "A = (B := 3)" << false;
        QTest::newRow("lambda") << "A = lambda: 3" << false;
        QTest::newRow("comprehension") << "A = tl.constexpr([i for i in (1, 2)])" << false;
        QTest::newRow("format") << "A = f\"{tl}\"" << false;
        QTest::newRow("text as often as") << "A = \"ab\" * 1000" << false;
        QTest::newRow("power") << "A = 2 ** 3" << false;
        QTest::newRow("shift") << "A = 1 << 99999999999" << false;
        QTest::newRow("class") << "class A:\n    pass" << false;
        QTest::newRow("loop") << "while True:\n    pass" << false;
        QTest::newRow("decorator") << "@triton.heuristics({})\n@triton.jit\ndef other(a):\n    pass" << false;
        QTest::newRow("decorator with code") << "@triton.jit(repr=print)\ndef other(a):\n    pass" << false;
        QTest::newRow("builtins") << "__builtins__ = 3" << false;
        QTest::newRow("nested function")
            << "@triton.jit\ndef other(a):\n    def inner():\n        pass" << false;
        QTest::newRow("async") << "async def other(a):\n    pass" << false;
    }
    void whatMayStandInAModule()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
        QFETCH(QString, head);
        QFETCH(bool, ok);
        const auto output =
            compiled(*compiler, rowsText("tl.store(y + tl.program_id(0), 1.0)", head.toStdString()),
                     corpusWorkload("small-softmax"));
        QVERIFY2(output.has_value(), output ? "" : output.error().error.message.c_str());
        QVERIFY2(output->ok == ok, output->log.c_str());
    }

    void theCorpusIsCompiledAsExpected_data() { corpusRows(corpusFolder); }
    void theCorpusIsCompiledAsExpected()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
        QFETCH(QString, file);
        checkCorpusEntry(*compiler, corpusFolder, file.toStdString());
    }

    void aProcessServesOneCandidate()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
        // Two after the other, the second while the first one's process is gone.
        const workload::Workload workload = corpusWorkload("small-softmax");
        for (int i = 0; i < 2; ++i) {
            const auto output = compiled(*compiler, rowsText("tl.store(y, 1.0)"), workload);
            QVERIFY(output && output->ok);
        }
    }

    void theVerdictSaysIt()
    {
        KLINEAGE_NEEDS_TRITON(compiler);
        const auto trial = supervisedTrial(corpusFolder, "reads-a-file.py");
        QVERIFY2(trial.has_value(), trial ? "" : trial.error().message.c_str());
        QCOMPARE(trial->verdict.status, VerdictStatus::CompileError);
        QVERIFY(trial->surface == kernel::Surface::Triton);
        QVERIFY2(trial->verdict.message.starts_with(
                     "The candidate does not compile: line 13: error: a constant is"),
                 trial->verdict.message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestTriton)
#include "tst_triton.moc"
