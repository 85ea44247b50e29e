// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/patience.h"
#include "tests/ui/common/contrast.h"
#include "tests/ui/common/uitest.h"
#include "ui/highlight/codepalette.h"
#include "ui/highlight/linehighlighter.h"
#include "ui/highlight/texthighlighter.h"
#include "ui/style/theme.h"

#include <QSignalSpy>
#include <QTest>
#include <QThread>

#include <atomic>

using namespace klineage::ui;

Q_DECLARE_METATYPE(klineage::ui::Language)

namespace {

/// The style of the first occurrence of `what`; checks that one run covers all of it.
TokenStyle styleOf(const TextLines &text, const std::vector<LineRuns> &runs, const QString &what)
{
    for (int i = 0; i < text.count(); ++i) {
        const int at = int(text.text(i).indexOf(what));
        if (at < 0)
            continue;
        for (const TokenRun &run : runs[std::size_t(i)]) {
            if (run.begin <= at && at + what.size() <= run.begin + run.length)
                return run.style;
        }
        return TokenStyle::Text;
    }
    qWarning() << what << "is not in the text";
    return TokenStyle::Error;
}

} // namespace

class TestHighlight : public UiTest
{
    Q_OBJECT

private slots:
    void tokens_data()
    {
        QTest::addColumn<Language>("language");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("token");
        QTest::addColumn<int>("style");
        const auto row = [](const char *name, Language language, const char *text, const char *token,
                            TokenStyle style) {
            QTest::newRow(name) << language << QString::fromUtf8(text) << QString::fromUtf8(token)
                                << int(style);
        };
        const char *plan =
            "/*klineage\nsurface = \"cuda\" # comment\n[[tunable]]\ndefault = 128\ncooperative = true\n*/\nint x = 7; // note\n";
        row("python keyword", Language::PythonKernels,
            "\"\"\"klineage\n\"\"\"\ndef rows(x):  # note\n    return 7\n", "def", TokenStyle::Keyword);
        row("python plan", Language::PythonKernels,
            "\"\"\"klineage\n[[launch]]\ngrid = [1]\n\"\"\"\nimport triton\n", "grid", TokenStyle::Key);
        row("python after the plan", Language::PythonKernels, "\"\"\"klineage\n[[launch]]\n\"\"\"\n# note\n",
            "# note", TokenStyle::Comment);
        row("python comment", Language::PythonKernels, "def rows(x):  # note\n", "# note",
            TokenStyle::Comment);
        row("plan section", Language::CudaCpp, plan, "[[tunable]]", TokenStyle::Label);
        row("plan key", Language::CudaCpp, plan, "default", TokenStyle::Key);
        row("plan string", Language::CudaCpp, plan, "\"cuda\"", TokenStyle::String);
        row("plan comment", Language::CudaCpp, plan, "# comment", TokenStyle::Comment);
        row("plan number", Language::CudaCpp, plan, "128", TokenStyle::Number);
        row("plan constant", Language::CudaCpp, plan, "true", TokenStyle::Number);
        row("code after the plan", Language::CudaCpp, plan, "int", TokenStyle::Type);
        row("comment after the plan", Language::CudaCpp, plan, "// note", TokenStyle::Comment);
        row("plan ends inside a TOML comment", Language::CudaCpp, "/*klineage\n# a */\nfloat f;\n", "float",
            TokenStyle::Type);
        row("an ordinary comment is no plan", Language::CudaCpp, "/* default = 1 */\n", "default",
            TokenStyle::Comment);
        row("after empty lines", Language::CudaCpp, "\n\nextern \"C\" __global__ void k()", "__global__",
            TokenStyle::Qualifier);
        row("qualifier", Language::CudaCpp, "extern \"C\" __global__ void k()", "__global__",
            TokenStyle::Qualifier);
        row("builtin variable", Language::CudaCpp, "int i = threadIdx.x;", "threadIdx", TokenStyle::Variable);
        row("intrinsic", Language::CudaCpp, "__syncthreads();", "__syncthreads", TokenStyle::Builtin);
        row("unknown intrinsic", Language::CudaCpp, "v = __future_thing(x);", "__future_thing",
            TokenStyle::Builtin);
        row("function", Language::CudaCpp, "store_row(out, v);", "store_row", TokenStyle::Function);
        row("control", Language::CudaCpp, "for (;;) {", "for", TokenStyle::Control);
        row("float", Language::CudaCpp, "x = 1.5e-3f;", "1.5e-3f", TokenStyle::Number);
        row("hexadecimal", Language::CudaCpp, "x = 0xFFu;", "0xFFu", TokenStyle::Number);
        row("preprocessor", Language::CudaCpp, "#pragma unroll 4", "pragma", TokenStyle::Preprocessor);
        row("include", Language::CudaCpp, "#include <cuda_bf16.h>", "<cuda_bf16.h>", TokenStyle::String);
        const char *inlinePtx =
            "asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16 {%0}, %1;\\n\" :: \"l\"(f(x)));\nreturn x;\n";
        row("instruction in asm", Language::CudaCpp, inlinePtx, "wgmma.mma_async.sync.aligned.m64n8k16",
            TokenStyle::Builtin);
        row("operand in asm", Language::CudaCpp, inlinePtx, "%1", TokenStyle::Variable);
        row("asm ends at its parenthesis", Language::CudaCpp, inlinePtx, "return", TokenStyle::Control);
        row("raw string", Language::CudaCpp, "auto s = R\"x(a\nint b)x\"; int c;\n", "int b",
            TokenStyle::String);
        row("OpenCL qualifier", Language::OpenClC, "__kernel void k(__global float *x)", "__kernel",
            TokenStyle::Qualifier);
        row("OpenCL vector", Language::OpenClC, "float16 acc;", "float16", TokenStyle::Type);
        row("OpenCL builtin", Language::OpenClC, "int i = get_global_id(0);", "get_global_id",
            TokenStyle::Builtin);
        row("PTX instruction", Language::Ptx, "  mad.lo.s32 %r1, %r2, 4, %r3;", "mad", TokenStyle::Keyword);
        row("PTX type", Language::Ptx, "  mad.lo.s32 %r1, %r2, 4, %r3;", ".s32", TokenStyle::Type);
        row("PTX register", Language::Ptx, "  mad.lo.s32 %r1, %r2, 4, %r3;", "%r2", TokenStyle::Variable);
        row("PTX special register", Language::Ptx, "mov.u32 %r1, %tid.x;", "%tid.x", TokenStyle::Builtin);
        row("PTX directive", Language::Ptx, ".visible .entry k(", ".entry", TokenStyle::Preprocessor);
        row("SASS instruction", Language::Sass, "  /*0010*/  IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;",
            "IMAD.MOV.U32", TokenStyle::Keyword);
        row("SASS address", Language::Sass, "  /*0010*/  IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;", "/*0010*/",
            TokenStyle::Comment);
        row("SASS tensor core", Language::Sass, "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4]",
            "HGMMA.64x256x16.F32.BF16", TokenStyle::Builtin);
        row("SASS guard", Language::Sass, "@!P0 BRA `(.L_x_1)", "@!P0", TokenStyle::Key);
        row("plan alone", Language::LaunchPlan, "grid = [\"ceil_div(N, BN)\"]", "\"ceil_div(N, BN)\"",
            TokenStyle::String);
        row("plain", Language::Plain, "int x;", "int", TokenStyle::Text);
    }

    void tokens()
    {
        QFETCH(Language, language);
        QFETCH(QString, text);
        QFETCH(QString, token);
        QFETCH(int, style);
        const TextLines lines(text.toStdString());
        QCOMPARE(int(styleOf(lines, highlightAll(lines, language), token)), style);
    }

    void languageByFileName()
    {
        QCOMPARE(languageOfFile(u"K03.cu"), Language::CudaCpp);
        QCOMPARE(languageOfFile(u"branches/0123456789ab.cl"), Language::OpenClC);
        QCOMPARE(languageOfFile(u"K03.py"), Language::PythonKernels);
        QCOMPARE(languageOfFile(u"notes"), Language::Plain);
    }

    void runsAreAscendingAndInsideTheLine()
    {
        const TextLines lines("a = \"x\\n\" + f(1.0f); /* é */ int y;\n\n#define A(x) \\\n  x + 1\n");
        const auto runs = highlightAll(lines, Language::CudaCpp);
        QCOMPARE(int(runs.size()), lines.count());
        for (int i = 0; i < lines.count(); ++i) {
            int end = 0;
            for (const TokenRun &run : runs[std::size_t(i)]) {
                QVERIFY(run.begin >= end && run.length > 0);
                end = run.begin + run.length;
            }
            QVERIFY(end <= lines.text(i).size());
        }
        QCOMPARE(styleOf(lines, runs, QStringLiteral("x + 1")), TokenStyle::Text); // still the macro's body
    }

    void stateTellsOpenComments()
    {
        LineHighlighter highlighter(Language::CudaCpp);
        LineRuns runs;
        const auto inside = highlighter.highlight(u"/* open", {}, runs);
        const auto plain = highlighter.highlight(u"int x;", highlighter.highlight(u"", {}, runs), runs);
        QVERIFY(!(inside == plain));
        const auto closed = highlighter.highlight(u"int */", inside, runs);
        QVERIFY(closed == plain);
        QCOMPARE(runs.front().style, TokenStyle::Comment);
    }

    void linesOfTexts()
    {
        const TextLines lines("one\n\ntwo\tx\r\nlast");
        QCOMPARE(lines.count(), 4);
        QCOMPARE(lines.text(0), QStringLiteral("one"));
        QCOMPARE(lines.text(1), QString());
        QCOMPARE(lines.text(2), QStringLiteral("two\tx\u240d"));
        QCOMPARE(lines.text(3), QStringLiteral("last"));
        QVERIFY(!lines.endsWithNewline());
        QCOMPARE(TextLines("a\n").count(), 1);
        QCOMPARE(TextLines("\n").count(), 1);
        QCOMPARE(TextLines("").count(), 0);
        QCOMPARE(unitOfByte("aé😀b", 7), 4); // one unit, one, two
    }

    void visibleLinesComeFirst()
    {
        std::string text;
        for (int i = 0; i < 20000; ++i)
            text += "float value = 1.0f; // line\n";
        TextHighlighter highlighter;
        std::vector<int> order;
        std::size_t lines = 0;
        connect(&highlighter, &TextHighlighter::chunkReady, this,
                [&](int first, const std::vector<LineRuns> &runs) {
                    QCOMPARE(QThread::currentThread(), thread());
                    order.push_back(first);
                    lines += runs.size();
                    QCOMPARE(runs.back().front().style, TokenStyle::Type);
                });
        QSignalSpy finished(&highlighter, &TextHighlighter::finished);
        highlighter.start(std::make_shared<TextLines>(text), Language::CudaCpp, 15000, 60);
        QVERIFY(finished.wait(patienceMs));
        QVERIFY(order.front() <= 15000 && order.front() > 14000);
        QCOMPARE(order.at(1), 0);
        QVERIFY(lines >= 20000);
    }

    void staleJobsSayNothing()
    {
        JobSlot slot;
        std::atomic<bool> running = false;
        std::atomic<bool> stopped = false;
        QString heard;
        slot.start(interactivePool(), [&](const std::stop_token &stop, const JobSlot::Post &post) {
            running = true;
            while (!stop.stop_requested())
                QThread::msleep(1);
            stopped = true;
            post([&] { heard += QLatin1String("old"); });
        });
        QTRY_VERIFY(running);
        slot.start(interactivePool(), [&](const std::stop_token &, const JobSlot::Post &post) {
            post([&] { heard += QLatin1String("new"); });
        });
        QTRY_COMPARE(heard, QStringLiteral("new"));
        QTRY_VERIFY(stopped);
        QCoreApplication::processEvents();
        QCOMPARE(heard, QStringLiteral("new"));
    }

    void everyTokenIsReadable_data()
    {
        QTest::addColumn<bool>("dark");
        QTest::newRow("dark") << true;
        QTest::newRow("light") << false;
    }

    void everyTokenIsReadable()
    {
        QFETCH(bool, dark);
        const CodePalette code = CodePalette::from(dark ? Theme::dark() : Theme::light());
        const QColor opaque(code.currentLine.red(), code.currentLine.green(), code.currentLine.blue());
        const auto asCurrent = [&](const QColor &line) {
            return blend(opaque, line, code.currentLine.alphaF());
        };
        for (const QColor &background :
             {code.background, code.added, code.removed, code.moved, code.addedWord, code.removedWord,
              code.match, code.selection, code.bracket, asCurrent(code.background), asCurrent(code.added),
              asCurrent(code.removed), asCurrent(code.moved)}) {
            for (std::size_t i = 0; i < tokenStyleCount; ++i) {
                const double ratio = contrast(code.tokens[i], background);
                QVERIFY2(ratio >= 4.5,
                         qPrintable(
                             QStringLiteral("token %1 on %2: %3").arg(i).arg(background.name()).arg(ratio)));
            }
        }
        for (const QColor &background :
             {code.background, code.added, code.removed, code.moved, code.fold, code.filler})
            QVERIFY2(contrast(code.muted, background) >= 4.5, qPrintable(background.name()));
        QVERIFY(contrast(code.text, code.heat) >= 4.5);
        for (const QColor &background : {code.background, code.added, code.removed, code.moved, code.fold})
            QVERIFY2(contrast(code.heatEdge, background) >= 3, qPrintable(background.name()));
    }
};

KLINEAGE_UI_TEST(TestHighlight)
#include "tst_highlight.moc"
