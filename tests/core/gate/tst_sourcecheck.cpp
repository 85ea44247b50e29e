// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/sourcecheck.h"
#include "core/gate/supervisor/sourcetext.h"

#include <QTest>

using klineage::gate::refusedInOpenCl;

class TestSourceCheck : public QObject
{
    Q_OBJECT
private slots:
    void sources_data()
    {
        QTest::addColumn<QByteArray>("source");
        QTest::addColumn<int>("line"); // 0: nothing is refused
        const auto row = [](const char *name, const char *source, int line) {
            QTest::newRow(name) << QByteArray(source) << line;
        };
        row("kernel", "__kernel void k(__global int *x) { x[0] = 1; }", 0);
        row("own macros", "#define TILE 8\n#undef TILE\n#if TILE\n#endif\n#pragma unroll\n", 0);
        row("in a comment", "// #include <x>\n/* \n#include <x>\n*/ int a;", 0);
        row("in a string", "__constant char a[] = \"\\\n#include <x>\";\n", 0);
        row("quote in text that is not compiled", "#if 0\ndon't\n#endif\nint a;\n", 0);
        row("section as a name", "int section = 3;", 0);
        row("pragmas for loops",
            "#pragma unroll 4\n# pragma clang loop unroll(full)\n#pragma GCC unroll 2\n#pragma ivdep", 0);
        row("pragmas for arithmetic", "#pragma OPENCL FP_CONTRACT ON\n#pragma clang fp reassociate(on)", 0);
        row("extension", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable", 0);
        row("pointers to functions", "#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable", 1);
        row("pointers to functions, in a literal",
            "_Pragma(\"OPENCL EXTENSION __cl_clang_function_pointers : enable\")", 1);
        row("pragma in a macro", "#define U _Pragma(\"unroll\") _Pragma ( \"clang loop unroll(full)\" )\n",
            0);
        row("pasted names", "#define LOAD(n) vload##n\nint _x, a_P;", 0);
        row("a name that ends so", "#define my_Pragma(x) x\nmy_Pragma(\"clang section\")", 0);
        row("include", "int a;\n#include \"/etc/passwd\"", 2);
        row("spaced", " \t # \t include <x>", 1);
        row("after a comment", "/* a */ # /* b */ include <x>", 1);
        row("after a long comment", "/* a\n*/ #include <x>", 1);
        row("spliced", "#inc\\\nlude <x>", 1);
        row("spliced with a blank", "#inc\\ \nlude <x>", 1);
        row("digraph", "%:include <x>", 1);
        row("trigraph",
            "?"
            "?=include <x>",
            1);
        row("after an open quote", "#if 0\n'\n#endif\n#include <x>", 4);
        row("next", "#include_next <x>", 1);
        row("import", "#import <x>", 1);
        row("embed", "#embed \"x\"", 1);
        row("dependency", "#pragma GCC dependency \"x\"", 1);
        row("dependency as an operator", "_Pragma(\"GCC dependency \\\"x\\\"\")", 1);
        row("section by pragma", "int a;\n#pragma clang section rodata=\".bss.x\"", 2);
        row("section by digraph", "%:pragma clang section rodata=\".bss.x\"", 1);
        row("section by operator", "_Pragma(\"clang section rodata=\\\".bss.x\\\"\")", 1);
        row("section by an operator of a macro",
            "#define DO(x) _Pragma(#x)\nDO(clang section rodata=\".bss.x\")", 1);
        row("section by two operators", "_Pragma(\"unroll\") _Pragma(\"clang section rodata=\\\".b\\\"\")",
            1);
        row("an operator over two lines", "_Pragma(\n\"clang section rodata=\\\".b\\\"\")", 1);
        row("an operator with a prefix", "_Pragma(L\"clang section rodata=\\\".b\\\"\")", 1);
        row("an operator under another name", "#define P _Pragma\nP(\"clang section rodata=\\\".b\\\"\")", 1);
        row("an operator put together",
            "#define J(a, b) a##b\nJ(_Pra, gma)(\"clang section rodata=\\\".b\\\"\")", 2);
        row("put together by digraph",
            "#define J(a, b) a %:%: b\nJ(_, Pragma)(\"clang section bss=\\\".b\\\"\")", 2);
        row("attribute by pragma", "#pragma clang attribute push(__attribute__((used)), apply_to = function)",
            1);
        row("a diagnostic", "#pragma clang diagnostic ignored \"-Wunused-variable\"", 0);
        row("a diagnostic that stays", "int a;\n#pragma clang diagnostic ignored \"-Wgnu-label-as-value\"",
            2);
        row("a diagnostic by an operator", "_Pragma(\"clang diagnostic ignored \\\"-Wunused\\\"\")", 0);
        row("one that stays by an operator", "_Pragma(\"clang diagnostic ignored \\\"-Wgnu\\\"\")", 1);
        row("one in escapes", "#pragma clang diagnostic ignored \"-W\\x67nu\"", 1);
        row("one in escapes by an operator", "_Pragma(\"clang diagnostic ignored \\\"-W\\\\x67nu\\\"\")", 1);
        row("one in pieces", "#pragma clang diagnostic ignored \"-Wg\" \"nu\"", 1);
        row("a line directive", "#line 7\n#line 8 \"x\"", 0);
        row("a line marker", "int a;\n# 1 \"x\" 3", 2);
        row("a group of them", "#pragma GCC diagnostic warning \"-Wpedantic\"", 1);
        row("the time given back", "#undef __TIME__", 1);
        row("unknown pragma", "#pragma weak x", 1);
        row("module", "#pragma clang module import x", 1);
        // What the compiler reads otherwise than a reader of lines: one text is looked at and compiled.
        row("after a carriage return", "// a\r#include <x>", 2);
        row("pragma after a carriage return", "// a\r#pragma clang section bss=\".b\"", 2);
        row("behind a comment that a splice ends", "/* a *\\\n/\n#include <x>", 3);
        row("in a comment that a splice begins", "/\\\n/ #include <x>\nint a;", 0);
        row("behind a splice in a literal", "__constant char a[] = \"\\\\\\\n\";\n#include <x>", 3);
        row("behind a mark in a warning", "#warning /*\n#include <x>\n#warning */",
            0); // a comment, and compiled as one
        row("pragmas that are ignored", "#pragma omp simd\n#pragma region a\n#pragma endregion", 0);
        row("an underscore beside pasting", "#define J(a, b) a##b\nint J(x, _);", 0);
        row("segment base", "int __builtin_ia32_rdfsbase64;", 0); // the worker gives the word another meaning
        row("assembly given back", "int a;\n#undef asm", 2);
        row("assembly given itself", "#define __asm__ __asm__", 1);
        row("question given back", "#undef __has_include", 1);
        row("attribute given back", "# undef constructor", 1);
    }

    void theTextThatIsCompiled()
    {
        using klineage::gate::plainSource;
        QCOMPARE(plainSource("a /* b\nc */ d\ne"), std::string("a          d\n\ne"));
        QCOMPARE(plainSource("a // b \\\n c\nd"), std::string("a  \n\nd"));
        QCOMPARE(plainSource("a\r\nb\rc"), std::string("a\nb\nc"));
        QCOMPARE(plainSource("#def\\ \nine X\nY"), std::string("#define X\n\nY"));
        QCOMPARE(plainSource("\"// \\\" /*\" '\"' // x"), std::string("\"// \\\" /*\" '\"'  "));
        QCOMPARE(plainSource("don't /* a\nb"), std::string("don't /* a\nb"));
        QCOMPARE(plainSource("/* never ended\n"), std::string("              \n"));
        QCOMPARE(plainSource(""), std::string());
        QCOMPARE(plainSource("a\\"), std::string("a\\"));
    }

    void tunables()
    {
        const auto refused = [](const char *name) {
            const std::vector<klineage::kernel::Tunable> tunables{{name, 1, {1}}};
            return refusedInOpenCl("int a;", tunables).has_value();
        };
        QVERIFY(!refused("TILE"));
        QVERIFY(refused("asm"));
        QVERIFY(refused("extern"));
        QVERIFY(refused("alloca"));
    }

    void cuda_data()
    {
        QTest::addColumn<QByteArray>("source");
        QTest::addColumn<int>("line");
        QTest::newRow("nothing") << QByteArray("__global__ void k(float *x) { x[0] = clock64(); }") << 0;
        QTest::newRow("the time") << QByteArray("\nconstexpr char t[] = __TIME__;") << 2;
        QTest::newRow("the day") << QByteArray("const char *t = __DATE__;") << 1;
        QTest::newRow("over lines") << QByteArray("const char *t = __TI\\\nME__;") << 1;
        QTest::newRow("put together")
            << QByteArray("#define JOIN(a, b) a##b\nconst char *t = JOIN(__TI, ME__);") << 2;
        QTest::newRow("of three") << QByteArray("#define J(a, b) a %:%: b\nJ(__, J(DA,\nTE__))") << 3;
        QTest::newRow("apart") << QByteArray("int __TI, ME__;") << 0;
        QTest::newRow("pastes others") << QByteArray("#define JOIN(a, b) a##b\nint JOIN(name, __);") << 0;
        QTest::newRow("in a comment") << QByteArray("// __TIME__\nint a; /* __DATE__ */") << 0;
        QTest::newRow("behind a raw literal")
            << QByteArray("const char *a = R\\\n\"(\" /*)\";\nconst char *t = __TIME__; // */") << 3;
        QTest::newRow("behind a mark between digits")
            << QByteArray("int a = 1'000; /* '*/ int b = sizeof(__TIME__);") << 1;
    }

    void cuda()
    {
        QFETCH(QByteArray, source);
        QFETCH(int, line);
        const auto refused = klineage::gate::refusedInCuda(source.toStdString());
        QCOMPARE(refused.has_value(), line > 0);
        if (refused)
            QVERIFY2(refused->starts_with("<candidate>:" + std::to_string(line) + ":1: error: "),
                     refused->c_str());
    }

    void sources()
    {
        QFETCH(QByteArray, source);
        QFETCH(int, line);
        const auto refused = refusedInOpenCl(source.toStdString());
        QCOMPARE(refused.has_value(), line > 0);
        if (refused)
            QVERIFY2(refused->starts_with("<candidate>:" + std::to_string(line) + ":1: error: "),
                     refused->c_str());
    }
};

QTEST_GUILESS_MAIN(TestSourceCheck)
#include "tst_sourcecheck.moc"
