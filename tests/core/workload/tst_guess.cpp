// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/guess/guess.h"
#include "tests/core/kernel/hostsources.h"
#include "tests/paths.h"

#include <QTest>

#include <filesystem>

using namespace klineage;
using namespace klineage::workload;
using kernel::Surface;

namespace {

Workload shipped(const char *name)
{
    auto read = readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads" / name);
    if (!read)
        qFatal("%s", read.error().message.c_str());
    return std::move(*read);
}

PlanGuess guessOf(const char *code, Surface surface, const Workload &workload)
{
    const kernel::SourceOutline outline = kernel::outlineSource(code, surface);
    const kernel::KernelFunction *kernel = likelyKernel(outline);
    if (!kernel)
        qFatal("no kernel");
    return guessPlan(code, surface, *kernel, workload);
}

QString textOf(const std::vector<FieldProblem> &problems)
{
    QString text;
    for (const FieldProblem &problem : problems)
        text += QString::fromStdString(problem.field + ": " + problem.message + '\n');
    return text;
}

} // namespace

class TestGuess : public QObject
{
    Q_OBJECT

private slots:
    void proposes_data()
    {
        QTest::addColumn<QString>("workload");
        QTest::addColumn<bool>("isCuda");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("grid");
        QTest::addColumn<QString>("block");
        QTest::addColumn<QString>("args");
        QTest::newRow("by name") << "silu" << false
                                 << "__kernel void f(__global float *y, __global const float *x, int C)"
                                    "{ int c = get_global_id(0), r = get_global_id(1); }"
                                 << "ceil_div(C, 64), R"
                                 << "64"
                                 << "y, x, int C";
        QTest::newRow("by order, all elements")
            << "silu" << true
            << "extern \"C\" __global__ void f(const float *src, float *dst, int n)"
               "{ int i = blockIdx.x * blockDim.x + threadIdx.x; }"
            << "ceil_div(R * C, 256)"
            << "256"
            << "x, y, int R * C";
        QTest::newRow("a group a row")
            << "softmax" << false
            << "__kernel void f(__global float *in, __global float *out, int cols,"
               "__local float *s) { int r = get_group_id(0), l = get_local_id(0); }"
            << "R"
            << "64"
            << "x, y, int C, local 64 * 4";
        QTest::newRow("a thread a row")
            << "softmax" << false
            << "__kernel void f(__global const float *a, __global float *b, uint rows, uint cols)"
               "{ for (uint c = 0; c < cols; ++c) b[get_global_id(0) * cols + c] = 0; }"
            << "ceil_div(R, 64)"
            << "64"
            << "x, y, uint R, uint C";
        QTest::newRow("a block a row, bounds")
            << "layernorm" << true
            << "#define T 128\nextern \"C\" __global__ void __launch_bounds__(T) ln(float *y, const float *x, const "
               "float *gamma, const float *b, int C) { int r = blockIdx.x; }"
            << "R"
            << "128"
            << "y, x, gamma, beta, int C";
        QTest::newRow("a product")
            << "sgemm" << true
            << "extern \"C\" __global__ void mm(const float *A, const float *B, float *C, int "
               "M, int N, int K) { int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y "
               "* blockDim.y + threadIdx.y; }"
            << "ceil_div(N, 16), ceil_div(M, 16)"
            << "16, 16"
            << "a, b, c, int M, int N, int K";
    }
    void proposes()
    {
        QFETCH(const QString, workload);
        QFETCH(const bool, isCuda);
        QFETCH(const QString, code);
        const Workload of = shipped(qPrintable(workload));
        const PlanGuess guess = guessOf(qPrintable(code), isCuda ? Surface::Cuda : Surface::OpenCl, of);
        QTEST(QString::fromStdString(joinList(guess.draft.grid)), "grid");
        QTEST(QString::fromStdString(joinList(guess.draft.block)), "block");
        QTEST(QString::fromStdString(joinList(guess.draft.args)), "args");
        QCOMPARE(guess.why.size(), guess.draft.args.size());
        const auto problems = checkDraft(guess.draft, of);
        QVERIFY2(problems.empty(), qPrintable(textOf(problems)));
        // What it writes is a candidate, and reads back as the same draft.
        const auto candidate = kernel::parseCandidate(candidateText(guess.draft), "K00");
        QVERIFY2(candidate, candidate ? "" : candidate.error().message.c_str());
        const auto again = draftOf(*candidate);
        QVERIFY(again);
        QCOMPARE(again->args, guess.draft.args);
        QCOMPARE(again->grid, guess.draft.grid);
        QCOMPARE(again->code, guess.draft.code);
    }

    void readsTheHostsLaunch_data()
    {
        QTest::addColumn<QString>("workload");
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("plan"); // grid; block; shared; args
        QTest::addColumn<int>("notices");
        const auto row = [](const char *name, const char *workload, const QString &source, const char *plan,
                            int notices = 0) {
            QTest::newRow(name) << workload << source << plan << notices;
        };
        row("a program", "softmax", tests::programSource, "R; 256; 256 * 4; x, y, int C");
        row("an extension of PyTorch", "silu", tests::extensionSource,
            "ceil_div(R * C, 128); 128; ; x, y, long R * C");
        const QString launcher =
            QString(tests::launcherSource)
                .replace("#include \"tile.cuh\"\n#include \"tile.cuh\"", tests::siblingSource);
        row("a launcher", "sgemm", launcher,
            "ceil_div(N, 16), ceil_div(M, 16); 16, 16; ; a, b, c, int M, int N, int K");
        row("a template", "layernorm", tests::templateSource,
            "R; 512; ; y, x, gamma, beta, int C, float 1e-5", 1);
        const char *const kernel = "__global__ void f(const float *in, float *out, int n, float s) "
                                   "{ int i = blockIdx.x * blockDim.x + threadIdx.x; }\n";
        const auto with = [&](const char *host) { return QString(kernel) + host; };
        row("sizes of a tensor", "silu",
            with(
                "torch::Tensor g(torch::Tensor x) { int rows = x.size(0); auto y = at::empty_like(x);"
                "f<<<dim3(rows, cdiv(x.size(-1), 64)), 64, 64 * sizeof(double)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), 0.5f); }"),
            "R, ceil_div(C, 64); 64; 64 * 8; x, y, int R * C, float 0.5");
        row("ceil of a quotient", "silu",
            with("void g(float *d_x, float *d_y, int n) { int t = 1024; int b = (int)ceil((float)n / t);"
                 "f<<<b, t>>>(d_x, d_y, n, 1.0f / 3); }"),
            "ceil_div(R * C, 1024); 1024; ; x, y, int R * C, float 1.0 / 3");
        row("what cannot be told", "silu",
            with("void g(float *x, float *y, int n) { f<<<blocks(n), threads()>>>(x, y, n, s); }"),
            "ceil_div(R * C, 256); 256; ; x, y, int R * C, ", 2);
    }
    void readsTheHostsLaunch()
    {
        QFETCH(const QString, workload);
        QFETCH(const QString, source);
        const Workload of = shipped(qPrintable(workload));
        const kernel::DeviceSource device = kernel::deviceSourceOf(source.toStdString(), Surface::Cuda);
        const kernel::SourceOutline outline = kernel::outlineSource(device.code, Surface::Cuda);
        const kernel::KernelFunction *kernel = likelyKernel(outline, device.launches);
        QVERIFY(kernel);
        const PlanGuess guess = guessPlan(device.code, Surface::Cuda, *kernel, of, device.launches);
        const PlanDraft &draft = guess.draft;
        QTEST(QString::fromStdString(joinList(draft.grid) + "; " + joinList(draft.block) + "; " + draft.shared
                                     + "; " + joinList(draft.args)),
              "plan");
        const bool isWhole = std::string_view(QTest::currentDataTag()) != "what cannot be told";
        QTEST(static_cast<int>(guess.notices.size()), "notices");
        const auto problems = checkDraft(draft, of);
        QVERIFY2(problems.empty() == isWhole, qPrintable(textOf(problems)));
    }

    void saysWhatItCannotTell()
    {
        const Workload silu = shipped("silu");
        const PlanGuess guess =
            guessOf("__kernel void f(__global const double *x, __global float *y, float slope, short s) {}",
                    Surface::OpenCl, silu);
        QCOMPARE(guess.draft.args, (std::vector<std::string>{"", "y", "", ""}));
        QVERIFY(guess.why[0].find("Pass a tensor: 'x' or 'y'") != std::string::npos);
        QVERIFY(guess.why[2].find("float R") != std::string::npos);
        QVERIFY(guess.why[3].find("cannot pass 'short'") != std::string::npos);
        const QString problems = textOf(checkDraft(guess.draft, silu));
        for (const char *field : {"arg:0: ", "arg:2: ", "arg:3: "})
            QVERIFY2(problems.contains(QLatin1String(field)), qPrintable(problems));
    }

    void eachFieldIsChecked()
    {
        const Workload silu = shipped("silu");
        PlanDraft draft =
            guessOf("#define BM 64\n__kernel void f(__global const float *x, __global float *y, int C) {}",
                    Surface::OpenCl, silu)
                .draft;
        draft.grid = {"ceil_div(Q, 64)"};
        draft.block = {"64 +"};
        draft.args = {"y", "y", "uint C"};
        draft.tunables = {{"BM", 64, {32, 128}}};
        const QString problems = textOf(checkDraft(draft, silu));
        for (const char *part :
             {"grid: There is no axis, tunable or fact of the device called 'Q'",
              "block: ", "arg:0: The kernel only reads",
              "arg:2: The kernel takes 'int', which is passed as 'int', not as 'uint'", "tunables: BM is 64"})
            QVERIFY2(problems.contains(QLatin1String(part)), qPrintable(problems));

        draft.kernel = "g h";
        QVERIFY(textOf(checkDraft(draft, silu)).contains(QLatin1String("kernel: Say which kernel")));
    }

    void thePlanIsResolvedForEveryCase()
    {
        const Workload silu = shipped("silu");
        PlanDraft draft = guessOf("__kernel void f(__global const float *x, __global float *y, int C) {}",
                                  Surface::OpenCl, silu)
                              .draft;
        draft.grid = {"C / 64"}; // no group in the narrow cases
        const auto problems = checkDraft(draft, silu);
        QCOMPARE(problems.size(), std::size_t{1});
        QVERIFY2(problems[0].message.find("In the case 'one-row'") == 0, problems[0].message.c_str());
        draft.grid = {"1"};
        draft.block = {"4096"};
        QVERIFY(textOf(checkDraft(draft, silu)).contains(QLatin1String("In the case 'timed'")));
    }

    void tunablesTakeTheirDefinesPlace()
    {
        const Workload silu = shipped("silu");
        PlanDraft draft =
            guessOf("#define BM 64\n__kernel void f(__global const float *x, __global float *y, int C) {}",
                    Surface::OpenCl, silu)
                .draft;
        draft.tunables = {{"BM", 64, {32, 64}}};
        draft.block = {"BM"};
        draft.grid = {"ceil_div(R * C, BM)"};
        const auto problems = checkDraft(draft, silu);
        QVERIFY2(problems.empty(), qPrintable(textOf(problems)));
        QVERIFY(candidateText(draft).find("#ifndef BM\n#define BM 64\n#endif") != std::string::npos);
    }

    void whatADraftCannotHoldIsText()
    {
        const auto candidate = kernel::parseCandidate(
            "/*klineage\nsurface = \"cuda\"\n[[launch]]\nkernel = \"f\"\ngrid = [1]\nblock = [1]\ncluster = [1]\nargs = []\n*/\n",
            "f.cu");
        QVERIFY(candidate);
        QVERIFY(!draftOf(*candidate));
    }

    void findsTheWorkload()
    {
        const std::vector<Workload> all = {shipped("sgemm"), shipped("silu"), shipped("softmax")};
        const auto likely = [&](const char *code) {
            const Workload *found = likelyWorkload(kernel::outlineSource(code, Surface::OpenCl), all);
            return found ? found->name : std::string();
        };
        QCOMPARE(likely("__kernel void my_softmax(__global float *p) {}"), std::string("softmax"));
        QCOMPARE(likely("__kernel void f(__global float *a, __global float *b, int M) {}"),
                 std::string("sgemm"));
        QCOMPARE(likely("__kernel void f(__global float *p) {}"), std::string());
    }

    void splitsLists()
    {
        QCOMPARE(splitList(" ceil_div(C, 64) ,R"), (std::vector<std::string>{"ceil_div(C, 64)", "R"}));
        QCOMPARE(splitList("  "), std::vector<std::string>{});
        QCOMPARE(splitList("a,"), (std::vector<std::string>{"a", ""}));
        QCOMPARE(joinList({"a", "b(1, 2)"}), std::string("a, b(1, 2)"));
    }
};

QTEST_GUILESS_MAIN(TestGuess)
#include "tst_guess.moc"
