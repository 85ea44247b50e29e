// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/uitest.h"
#include "ui/editor/brackets.h"
#include "ui/editor/diagnostics.h"
#include "ui/editor/draft.h"
#include "ui/highlight/documenthighlighter.h"
#include "ui/style/theme.h"

#include <QElapsedTimer>
#include <QPlainTextDocumentLayout>
#include <QRandomGenerator>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>
#include <QTextCursor>
#include <QTextDocument>

#include <fstream>
#include <random>

using namespace klineage;
using namespace klineage::ui;

namespace {

const std::string plan =
    "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"toy\"\ngrid = [\"ceil_div(N, 64)\"]\nblock = [\"64\"]\n"
    "args = [\"x\", \"y\"]\n*/\n__kernel void toy() {}\n";

std::string replaced(std::string text, const std::string &what, const std::string &with)
{
    return text.replace(text.find(what), what.size(), with);
}

Result<workload::Workload> toyWorkload()
{
    return workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads"
                                  / "softmax");
}

std::unique_ptr<QTextDocument> documentWith(const QString &text)
{
    auto document = std::make_unique<QTextDocument>();
    document->setDocumentLayout(new QPlainTextDocumentLayout(document.get()));
    document->setPlainText(text);
    return document;
}

/// The formats that all blocks have, for comparison.
QList<QList<QTextLayout::FormatRange>> formatsOf(const QTextDocument &document)
{
    QList<QList<QTextLayout::FormatRange>> all;
    for (QTextBlock block = document.begin(); block.isValid(); block = block.next())
        all << block.layout()->formats();
    return all;
}

} // namespace

class TestEditorParts : public UiTest
{
    Q_OBJECT

private slots:
    void aGoodPlanIsSummed()
    {
        const PlanCheck check = checkCandidate(plan, "toy.cl", nullptr);
        QVERIFY(check.diagnostics.empty());
        const auto workload = toyWorkload();
        QVERIFY(workload.has_value());
        const std::string fitting = replaced(plan, "ceil_div(N, 64)", workload->axes.front() + " * 2");
        const PlanCheck resolved = checkCandidate(fitting, "toy.cl", &*workload);
        QVERIFY2(resolved.diagnostics.empty(),
                 resolved.diagnostics.empty() ? "" : qPrintable(resolved.diagnostics.front().message));
        QVERIFY(resolved.summary.contains(QStringLiteral("toy")));
        QVERIFY(resolved.summary.contains(QStringLiteral("64")));
    }

    void aBadKeyHasItsPlace()
    {
        const PlanCheck check = checkCandidate(replaced(plan, "grid", "gird"), "toy.cl", nullptr);
        QCOMPARE(int(check.diagnostics.size()), 1);
        QCOMPARE(check.diagnostics.front().line, 6);
        QVERIFY(check.diagnostics.front().message.contains(QStringLiteral("grid"))); // the suggestion
    }

    void anUnknownNameIsFound()
    {
        const auto workload = toyWorkload();
        QVERIFY(workload.has_value());
        const PlanCheck check =
            checkCandidate(replaced(plan, "(N, 64)", "(NO_SUCH_AXIS, 64)"), "toy.cl", &*workload);
        QCOMPARE(int(check.diagnostics.size()), 1);
        QVERIFY(check.diagnostics.front().message.contains(QStringLiteral("NO_SUCH_AXIS")));
        QVERIFY(check.diagnostics.front().line > 0);
    }

    void compilerLogs()
    {
        const auto found = diagnosticsFromLog(
            QStringLiteral("K03.cu(12): error: identifier \"foo\" is undefined\n"
                           "  x = foo;\n"
                           "/tmp/pocl/a.cl:7:15: warning: unused variable\n"
                           "K03.cu(4): warning #177-D: variable \"y\" was declared but never referenced\n"
                           "<source>:9:1: fatal error: expected '}'\n"
                           "2 errors detected in the compilation of \"K03.cu\".\n"));
        QCOMPARE(int(found.size()), 4);
        QCOMPARE(found[0], (Diagnostic{Diagnostic::Severity::Error, 12, 0,
                                       QStringLiteral("identifier \"foo\" is undefined")}));
        QCOMPARE(found[1],
                 (Diagnostic{Diagnostic::Severity::Warning, 7, 15, QStringLiteral("unused variable")}));
        QCOMPARE(found[2].line, 4);
        QCOMPARE(found[3], (Diagnostic{Diagnostic::Severity::Error, 9, 1, QStringLiteral("expected '}'")}));
        QVERIFY(diagnosticsFromLog(QString()).empty());
    }

    void draftsRoundTrip()
    {
        QTemporaryDir folder;
        DraftStore store(folder.filePath(QStringLiteral("drafts")).toStdString());
        Draft draft = Draft::begin(QStringLiteral("toy/pocl"), QStringLiteral("K03"),
                                   QStringLiteral("K03.cl"), QStringLiteral("// é\n"));
        QCOMPARE(draft.fileName, QStringLiteral("K03-draft.cl"));
        draft.text += QStringLiteral("int x;\n");
        draft.cursor = 3;
        QVERIFY(store.save(draft, store.nextSequence()).has_value());
        const auto drafts = store.readAll();
        QCOMPARE(int(drafts.size()), 1);
        QCOMPARE(drafts[0].text, draft.text);
        QCOMPARE(drafts[0].parentText, draft.parentText);
        QCOMPARE(drafts[0].lineageKey, draft.lineageKey);
        QCOMPARE(drafts[0].cursor, 3);
        QVERIFY(store.remove(draft.id).has_value());
        QVERIFY(store.readAll().empty());
    }

    void lateSavesDoNothing()
    {
        QTemporaryDir folder;
        DraftStore store(folder.path().toStdString());
        Draft draft = Draft::begin(QStringLiteral("toy/pocl"), QStringLiteral("K03"),
                                   QStringLiteral("K03.cl"), QStringLiteral("old"));
        const quint64 first = store.nextSequence();
        const quint64 second = store.nextSequence();
        draft.text = QStringLiteral("new");
        QVERIFY(store.save(draft, second).has_value());
        draft.text = QStringLiteral("overtaken");
        QVERIFY(store.save(draft, first).has_value());
        QCOMPARE(store.readAll().at(0).text, QStringLiteral("new"));
        QVERIFY(store.remove(draft.id).has_value());
        QVERIFY(store.save(draft, store.nextSequence()).has_value()); // arrives after the draft was discarded
        QVERIFY(store.readAll().empty());
    }

    void damagedDraftsAreSaid()
    {
        QTemporaryDir folder;
        std::ofstream(folder.filePath(QStringLiteral("torn.json")).toStdString()) << "{\"version\": 1, \"te";
        std::ofstream(folder.filePath(QStringLiteral("future.json")).toStdString())
            << "{\"version\": 99, \"id\": \"x\"}";
        std::vector<QString> problems;
        QVERIFY(DraftStore(folder.path().toStdString()).readAll(&problems).empty());
        QCOMPARE(int(problems.size()), 2);
    }

    void brackets_data()
    {
        QTest::addColumn<QString>("text"); // | is the cursor
        QTest::addColumn<int>("first");
        QTest::addColumn<int>("second");
        QTest::addColumn<bool>("mismatched");
        QTest::newRow("after the opener") << QStringLiteral("f(|a, b)") << 1 << 6 << false;
        QTest::newRow("after the closer") << QStringLiteral("f(a, b)|") << 6 << 1 << false;
        QTest::newRow("before the opener") << QStringLiteral("f |(a)") << 2 << 4 << false;
        QTest::newRow("nested") << QStringLiteral("{|(a[1])}") << 0 << 7 << false;
        QTest::newRow("over lines") << QStringLiteral("{|\n  x;\n}") << 0 << 7 << false;
        QTest::newRow("mismatch") << QStringLiteral("(|a]") << 0 << 2 << true;
        QTest::newRow("none") << QStringLiteral("a| b") << -1 << -1 << false;
        QTest::newRow("open end") << QStringLiteral("(|a") << 0 << -1 << false;
        QTest::newRow("string") << QStringLiteral("f(|\")\")") << 1 << 5 << false;
        QTest::newRow("comment") << QStringLiteral("{| /* } */ }") << 0 << 10 << false;
    }

    void brackets()
    {
        QFETCH(QString, text);
        const int cursor = int(text.indexOf(u'|'));
        const auto document = documentWith(text.remove(cursor, 1));
        DocumentHighlighter highlighter(document.get(), Language::CudaCpp);
        highlighter.setPalette(CodePalette::from(Theme::light()));
        QTRY_VERIFY(!highlighter.isBusy());
        const BracketPair pair = bracketPairAt(*document, cursor);
        QTEST(pair.first, "first");
        QTEST(pair.second, "second");
        QTEST(pair.mismatched, "mismatched");
    }

    void incrementalHighlightingEqualsHighlightingAfresh()
    {
        static const QStringList pieces{QStringLiteral("/*"),   QStringLiteral("*/"),
                                        QStringLiteral("\n"),   QStringLiteral("int x = 1;"),
                                        QStringLiteral("\""),   QStringLiteral("// c"),
                                        QStringLiteral("f(a)"), QStringLiteral("#if 1\n")};
        std::mt19937 random(11);
        const CodePalette palette = CodePalette::from(Theme::light());
        const auto document = documentWith(QStringLiteral("int a;\nint b;\n/* c */\nint d;\n"));
        DocumentHighlighter highlighter(document.get(), Language::CudaCpp);
        highlighter.setPalette(palette);
        for (int round = 0; round < 120; ++round) {
            QTextCursor cursor(document.get());
            cursor.setPosition(int(random() % unsigned(document->characterCount())));
            if (random() % 3 == 0) {
                const int end =
                    std::min(document->characterCount() - 1, cursor.position() + int(random() % 12));
                cursor.setPosition(end, QTextCursor::KeepAnchor);
                cursor.removeSelectedText();
            } else {
                cursor.insertText(pieces.at(int(random() % unsigned(pieces.size()))));
            }
            QTRY_VERIFY(!highlighter.isBusy());
            const auto fresh = documentWith(document->toPlainText());
            DocumentHighlighter again(fresh.get(), Language::CudaCpp);
            again.setPalette(palette);
            QTRY_VERIFY(!again.isBusy());
            QVERIFY2(formatsOf(*document) == formatsOf(*fresh), qPrintable(document->toPlainText()));
        }
    }

    void highlightingNeverHoldsTheThreadForLong()
    {
        QString text;
        for (int i = 0; i < 20000; ++i)
            text += QStringLiteral("float value = load(a[%1], 1.0f); // line\n").arg(i);
        const auto document = documentWith(text);
        DocumentHighlighter highlighter(document.get(), Language::CudaCpp);
        QSignalSpy idle(&highlighter, &DocumentHighlighter::idle);
        highlighter.setPalette(CodePalette::from(Theme::light()));
        int slices = 0;
        while (idle.isEmpty() && slices < 100000) {
            QCoreApplication::processEvents();
            ++slices;
        }
        QCOMPARE(idle.size(), 1);
        QVERIFY2(slices > 5, qPrintable(QString::number(slices)));
        QVERIFY(!document->lastBlock().previous().layout()->formats().isEmpty());
    }

    void highlightingIsNoUndoStep()
    {
        const auto document = documentWith(QStringLiteral("int a;\n"));
        DocumentHighlighter highlighter(document.get(), Language::CudaCpp);
        highlighter.setPalette(CodePalette::from(Theme::light()));
        QTRY_VERIFY(!highlighter.isBusy());
        QVERIFY(!document->isUndoAvailable());
    }
};

KLINEAGE_UI_TEST(TestEditorParts)
#include "tst_editorparts.moc"
