// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/candidate.h"
#include "core/kernel/outline/hostcode.h"
#include "core/kernel/outline/outline.h"
#include "core/kernel/outline/siblings.h"
#include "tests/core/kernel/hostsources.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

using namespace klineage;
using namespace klineage::kernel;

namespace {

QString all(const std::vector<std::string> &lines)
{
    QString text;
    for (const std::string &line : lines)
        text += QString::fromStdString(line) + '\n';
    return text;
}

} // namespace

class TestHostCode : public QObject
{
    Q_OBJECT

private slots:
    void cutsAProgram()
    {
        const DeviceSource source = deviceSourceOf(tests::programSource, Surface::Cuda);
        const QString code = QString::fromStdString(source.code);
        for (const char *gone : {"main", "cudaMalloc", "iostream", "<vector>", "<<<"})
            QVERIFY2(!code.contains(gone), gone);
        for (const char *kept :
             {"extern \"C\" __global__ void softmax_kernel(", "#define BLOCK 256", "// One block a row."})
            QVERIFY2(code.contains(kept), kept);
        QCOMPARE(source.launches.size(), std::size_t{1});
        const HostLaunch &launch = source.launches[0];
        QCOMPARE(launch.kernel, std::string("softmax_kernel"));
        QCOMPARE(launch.grid, std::vector<std::string>{"rows"});
        QCOMPARE(launch.block, std::vector<std::string>{"BLOCK"});
        QCOMPARE(launch.shared, std::string("smem"));
        QCOMPARE(launch.args, (std::vector<std::string>{"d_x", "d_y", "cols"}));
        QCOMPARE(launch.values.at("smem"), std::string("block.x * sizeof(float)"));
        QCOMPARE(launch.values.at("block.x"), std::string("BLOCK"));
        QCOMPARE(launch.values.at("BLOCK"), std::string("256"));
        QVERIFY2(all(source.notices).contains("Host code was cut off in 1 place"),
                 qPrintable(all(source.notices)));
        QVERIFY(all(source.notices).contains("iostream, vector"));
    }

    void templatesGetAKernelThatCallsThem()
    {
        const DeviceSource source = deviceSourceOf(tests::extensionSource, Surface::Cuda);
        const QString code = QString::fromStdString(source.code);
        for (const char *gone : {"torch", "PYBIND11_MODULE", "<<<", "ATen"})
            QVERIFY2(!code.contains(gone), gone);
        QVERIFY2(code.contains("__device__ __forceinline__ void silu_kernel_body(const scalar_t *"),
                 qPrintable(code));
        QVERIFY2(
            code.contains(
                "extern \"C\" __global__ __launch_bounds__(128) void silu_kernel(const float *__restrict__ x, "
                "float *__restrict__ y, int64_t n)"),
            qPrintable(code));
        QVERIFY(code.contains("silu_kernel_body<float, 128>(x, y, n);"));
        QVERIFY(code.contains("inline int div_up")); // a helper that may be the device's
        QVERIFY(code.contains("inline namespace unnamed {"));
        const SourceOutline outline = outlineSource(source.code, Surface::Cuda);
        QCOMPARE(outline.kernels.size(), std::size_t{1});
        QCOMPARE(outline.kernels[0].problem, std::string());
        QCOMPARE(outline.kernels[0].block[0], 128);
    }

    void allDeclarationsOfAKernelAgree()
    {
        const DeviceSource source = deviceSourceOf(tests::launcherSource, Surface::Cuda);
        QCOMPARE(QString::fromStdString(source.code).count("extern \"C\" __global__ void matmul("), 2);
        QVERIFY(source.code.find("static") == std::string::npos);
        QCOMPARE(source.launches.size(), std::size_t{1});
        QCOMPARE(source.launches[0].grid,
                 (std::vector<std::string>{"(N + TILE - 1) / TILE", "(M + threads.y - 1) / threads.y"}));
    }

    void readsWaysOfLaunching_data()
    {
        QTest::addColumn<QString>("host");
        QTest::addColumn<QString>("grid");
        QTest::addColumn<QString>("block");
        QTest::addColumn<QString>("shared");
        QTest::newRow("numbers") << "k<<<1, 2>>>(x);"
                                 << "1"
                                 << "2"
                                 << "";
        QTest::newRow("made in place") << "k<<<dim3(a, b), dim3{c, 1, 2}, 4 * n>>>(x);"
                                       << "a|b"
                                       << "c|1|2"
                                       << "4 * n";
        QTest::newRow("several declared") << "dim3 g(a), b(c, d); k<<<g, b>>>(x);"
                                          << "a"
                                          << "c|d"
                                          << "";
        QTest::newRow("assigned") << "dim3 g = dim3(a, b); auto t = 64; k<<<g, t>>>(x);"
                                  << "a|b"
                                  << "t"
                                  << "";
        QTest::newRow("by member") << "dim3 g; g.x = a; g.y = b + 1; k<<<g, 32>>>(x);"
                                   << "a|b + 1"
                                   << "32"
                                   << "";
        QTest::newRow("a list") << "dim3 g = {a, b}; k<<<g, 32, 0, stream>>>(x);"
                                << "a|b"
                                << "32"
                                << "0";
        QTest::newRow("calls with commas") << "k<<<div(a, b), f(1, 2)>>>(x);"
                                           << "div(a, b)"
                                           << "f(1, 2)"
                                           << "";
        QTest::newRow("in a namespace") << "ns::k<float, 2><<<a, b>>>(x);"
                                        << "a"
                                        << "b"
                                        << "";
    }
    void readsWaysOfLaunching()
    {
        QFETCH(QString, host);
        const std::string text =
            "__global__ void k(float *x) {}\nvoid f(float *x, int n) { " + host.toStdString() + " }\n";
        const DeviceSource source = deviceSourceOf(text, Surface::Cuda);
        QCOMPARE(source.launches.size(), std::size_t{1});
        const auto list = [](const std::vector<std::string> &parts) {
            QStringList texts;
            for (const std::string &part : parts)
                texts << QString::fromStdString(part);
            return texts.join('|');
        };
        QCOMPARE(source.launches[0].kernel, std::string("k"));
        QTEST(list(source.launches[0].grid), "grid");
        QTEST(list(source.launches[0].block), "block");
        QTEST(QString::fromStdString(source.launches[0].shared), "shared");
        QCOMPARE(source.launches[0].args, std::vector<std::string>{"x"});
    }

    void deviceCodeStaysAsItIs_data()
    {
        QTest::addColumn<QString>("code");
        QTest::newRow("a kernel")
            << "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(float *x)\n{\n}\n";
        QTest::newRow("in a block of C")
            << "extern \"C\" {\n__device__ int f() { return 1; }\n__global__ void k(float *x) {}\n}\n";
        QTest::newRow("by a macro") << "#define KERNEL extern \"C\" __global__\nKERNEL void k(float *x) {}\n";
        QTest::newRow("helpers")
            << "constexpr int up(int a) { return a; }\nstruct Pair { int a; };\n__constant__ float vector[3] = {1, 2, 3};\n"
               "extern \"C\" __global__ void k(float *x) { if (x[0] < 1 << 2) x[0] = up(1); }\n";
        QTest::newRow("a template that nobody launches")
            << "template <int n> __global__ void k(float *x) {}\n";
        QTest::newRow("words of hosts elsewhere")
            << "// main() calls cudaMalloc\n__device__ const char *text = \"k<<<1, 2>>>(x)\";\n";
    }
    void deviceCodeStaysAsItIs()
    {
        QFETCH(QString, code);
        const DeviceSource source = deviceSourceOf(code.toStdString(), Surface::Cuda);
        QCOMPARE(QString::fromStdString(source.code), code);
        QVERIFY2(!source.isChanged(), qPrintable(all(source.notices)));
    }

    void otherLanguagesStayAsTheyAre()
    {
        const std::string code = "#include <vector>\nint main() {}\n";
        QCOMPARE(deviceSourceOf(code, Surface::OpenCl).code, code);
        QVERIFY(deviceSourceOf(code, Surface::Cuda).isChanged());
    }

    void everyBeginningIsRead()
    {
        // Unclosed signs at any place: no crash, and what is kept stands in the source, but for what is said.
        for (const char *text :
             {tests::programSource, tests::extensionSource, tests::launcherSource, tests::templateSource}) {
            const std::string_view whole(text);
            for (std::size_t size = 0; size < whole.size(); ++size) {
                const DeviceSource source = deviceSourceOf(whole.substr(0, size), Surface::Cuda);
                QVERIFY(source.isChanged() || source.code == whole.substr(0, size));
                QVERIFY(source.launches.size() <= maxHostLaunches);
            }
        }
    }

    void manyLaunchesAreCapped()
    {
        std::string text = "__global__ void k() {}\n";
        for (int i = 0; i < 2'000; ++i)
            text += "void f" + std::to_string(i) + "() { k<<<" + std::to_string(i) + ", 1>>>(); }\n";
        const DeviceSource source = deviceSourceOf(text, Surface::Cuda);
        QCOMPARE(source.launches.size(), maxHostLaunches);
        QVERIFY(source.code.size() < 100);
    }

    void siblingsArePutIn()
    {
        const QTemporaryDir folder;
        write(folder, "gemm.cu", tests::launcherSource);
        write(folder, "tile.cuh", tests::siblingSource);
        const auto whole = withSiblings(tests::launcherSource, folder.filePath("gemm.cu").toStdString());
        QVERIFY(whole);
        const QString text = QString::fromStdString(whole->text);
        QCOMPARE(text.count("constexpr int TILE = 16;"), 1); // it is included twice
        QVERIFY(text.startsWith("// tile.cuh {\n#include <cstdint>\n"));
        QVERIFY(!text.contains("#pragma once") && !text.contains("#include \"tile.cuh\""));
        QVERIFY(text.contains("// } tile.cuh\n#include <cstdio>\n"));
        QCOMPARE(whole->notices.size(), std::size_t{1});
    }

    void siblingsOfSiblingsToo()
    {
        const QTemporaryDir folder;
        QVERIFY(std::filesystem::create_directory(folder.filePath("in").toStdString()));
        write(folder, "in/a.h", "#include \"b.h\"\n#include \"../k.cu\"\nint a;");
        write(folder, "in/b.h", "#include \"a.h\"\nint b;\n");
        write(folder, "k.cu", "unused");
        const auto whole =
            withSiblings("#include \"in/a.h\"\nint k;\n", folder.filePath("k.cu").toStdString());
        QVERIFY(whole);
        QCOMPARE(QString::fromStdString(whole->text),
                 QString("// in/a.h {\n// in/b.h {\nint b;\n// } in/b.h\nint a;\n// } in/a.h\nint k;\n"));
    }

    void nothingElseIsRead_data()
    {
        QTest::addColumn<QString>("line");
        for (const char *line :
             {"#include \"../secret.h\"", "#include \"/etc/hostname\"", "#include \"link.h\"",
              "#include \"missing.h\"", "#include <beside.h>", "#include \"folder\"", "#include \"",
              "#include \"\"", "// #include \"beside.h\""})
            QTest::newRow(line) << line;
    }
    void nothingElseIsRead()
    {
        QFETCH(QString, line);
        const QTemporaryDir outside;
        const QString inner = outside.filePath("inner");
        QVERIFY(std::filesystem::create_directories((inner + "/folder").toStdString()));
        write(outside, "secret.h", "int secret;");
        write(outside, "inner/beside.h", "int beside;");
        QVERIFY(QFile::link(outside.filePath("secret.h"), inner + "/link.h"));
        const std::string text = line.toStdString() + "\nint k;\n";
        const auto whole = withSiblings(text, (inner + "/k.cu").toStdString());
        QVERIFY(whole);
        QCOMPARE(whole->text, text);
        QVERIFY(whole->notices.empty());
    }

    void tooMuchIsAnError()
    {
        const QTemporaryDir folder;
        write(folder, "big.h", std::string(maxCandidateBytes - 10, ' ') + "\n");
        const auto whole =
            withSiblings("#include \"big.h\"\nint more_than_ten;\n", folder.filePath("k.cu").toStdString());
        QVERIFY(!whole);
        QCOMPARE(whole.error().code, ErrorCode::InvalidInput);
        std::string many;
        for (int i = 0; i <= maxSiblings; ++i) {
            const std::string name = "f" + std::to_string(i) + ".h";
            write(folder, QString::fromStdString(name), "int x;\n");
            many += "#include \"" + name + "\"\n";
        }
        QVERIFY(!withSiblings(many, folder.filePath("k.cu").toStdString()));
    }

private:
    static void write(const QTemporaryDir &folder, const QString &name, const std::string &text)
    {
        QFile file(folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
        QCOMPARE(file.write(text.data(), static_cast<qint64>(text.size())), static_cast<qint64>(text.size()));
    }
};

QTEST_GUILESS_MAIN(TestHostCode)
#include "tst_hostcode.moc"
