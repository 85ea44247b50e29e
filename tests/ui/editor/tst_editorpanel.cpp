// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/paths.h"
#include "tests/patience.h"
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"
#include "ui/editor/verdictstrip.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>
#include <QToolButton>

#include <fstream>

using namespace klineage;
using namespace klineage::ui;

class TestEditorPanel : public QObject
{
    Q_OBJECT

    QTemporaryDir m_folder;
    WorkspaceModel m_model;
    std::unique_ptr<Selection> m_selection;
    std::unique_ptr<EditorPanel> m_panel;
    const QString m_key = QStringLiteral("softmax/pocl");
    std::string m_text;

    CodeEdit *edit() const { return m_panel->edit(); }
    QLabel *checkLine() const { return m_panel->findChild<QLabel *>(QStringLiteral("planCheck")); }
    QTabBar *tabs() const { return m_panel->findChild<QTabBar *>(); }

    void makePanel()
    {
        m_panel = std::make_unique<EditorPanel>(
            &m_model, m_selection.get(),
            std::filesystem::path(m_folder.filePath(QStringLiteral("drafts")).toStdString()));
        m_panel->resize(900, 500);
        m_panel->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_panel.get()));
    }

    void open()
    {
        QVERIFY(m_panel->openRow(m_key, QStringLiteral("K00")));
        edit()->setFocus();
        QTRY_VERIFY(checkLine()->text().startsWith(u'✓'));
    }

private slots:
    void initTestCase()
    {
        auto workload = workload::readWorkload(std::filesystem::path(klineage::test::sourcePath())
                                               / "workloads" / "softmax");
        QVERIFY(workload.has_value());
        m_text = "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"toy\"\ngrid = [\""
                 + workload->axes.front()
                 + "\"]\nblock = [\"64\"]\nargs = []\n*/\n__kernel void toy()\n{\n    int a = f(1);\n}\n";
        std::ofstream(m_folder.filePath(QStringLiteral("K00.cl")).toStdString(), std::ios::binary) << m_text;
        lineage::Lineage lineage;
        lineage.workload = "softmax";
        lineage.platform = "pocl";
        lineage.directory = m_folder.path().toStdString();
        lineage.states.push_back({"K00", "K00.cl", "naive", ""});
        lineage.states.push_back({"K01", "missing.cl", "gone", ""});
        Workspace workspace;
        workspace.root = m_folder.path().toStdString();
        workspace.workloads.push_back(*workload);
        workspace.lineages.push_back(lineage);
        m_model.setWorkspace(std::move(workspace));
    }

    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin)")));
        m_selection = std::make_unique<Selection>();
        makePanel();
    }

    void cleanup()
    {
        while (m_panel->draftCount() > 0)
            m_panel->discardDraft();
        m_panel.reset();
        m_selection.reset();
    }

    void emptyStateSaysHowToBegin()
    {
        QPushButton *begin = nullptr;
        for (QPushButton *button : m_panel->findChildren<QPushButton *>()) {
            if (button->isVisible())
                begin = button;
        }
        QVERIFY(begin && !begin->isEnabled());
        m_selection->setLineage(m_key, QStringLiteral("K00"));
        QVERIFY(begin->isEnabled());
        QVERIFY(begin->text().contains(QStringLiteral("K00")));
        QTest::mouseClick(begin, Qt::LeftButton);
        QCOMPARE(m_panel->draftCount(), 1);
        QCOMPARE(edit()->toPlainText().toStdString(), m_text);
    }

    void missingFilesAreSaid()
    {
        QSignalSpy messages(m_panel.get(), &EditorPanel::message);
        QVERIFY(!m_panel->openRow(m_key, QStringLiteral("K01")));
        QCOMPARE(messages.size(), 1);
        QVERIFY(messages[0][0].toString().contains(QStringLiteral("missing.cl")));
        QCOMPARE(m_panel->draftCount(), 0);
    }

    void validationAsYouType()
    {
        open();
        QVERIFY(checkLine()->text().contains(QStringLiteral("toy")));
        QTextCursor cursor = edit()->document()->find(QStringLiteral("block"));
        edit()->setTextCursor(cursor);
        QTest::keyClicks(edit(), QStringLiteral("blok"));
        QTRY_VERIFY2(checkLine()->text().contains(QStringLiteral("7:1")), qPrintable(checkLine()->text()));
        QVERIFY(edit()->diagnosticsOfLine(7).contains(QStringLiteral("block")));
        QTest::keyClick(edit(), Qt::Key_Backspace);
        QTest::keyClicks(edit(), QStringLiteral("ck"));
        QTRY_VERIFY(checkLine()->text().startsWith(u'✓'));
        QVERIFY(edit()->diagnosticsOfLine(7).isEmpty());
    }

    void undoGoesAllTheWayBack()
    {
        open();
        edit()->moveCursor(QTextCursor::End);
        for (int i = 0; i < 300; ++i) {
            QTest::keyClick(edit(), Qt::Key_Return);
            QTest::keyClicks(edit(), QStringLiteral("x"));
        }
        QVERIFY(edit()->toPlainText().size() > qsizetype(m_text.size()) + 500);
        while (edit()->document()->isUndoAvailable())
            edit()->undo();
        QCOMPARE(edit()->toPlainText().toStdString(), m_text);
    }

    void indentation()
    {
        open();
        edit()->setTextCursor(edit()->document()->find(QStringLiteral("f(1);")));
        edit()->moveCursor(QTextCursor::EndOfLine);
        QTest::keyClick(edit(), Qt::Key_Return);
        QTest::keyClicks(edit(), QStringLiteral("if (a) {"));
        QTest::keyClick(edit(), Qt::Key_Return);
        QTest::keyClicks(edit(), QStringLiteral("b"));
        QCOMPARE(edit()->textCursor().block().text(), QStringLiteral("        b"));
        QTest::keyClick(edit(), Qt::Key_Backtab);
        QCOMPARE(edit()->textCursor().block().text(), QStringLiteral("    b"));
        QTest::keyClick(edit(), Qt::Key_Tab);
        QCOMPARE(edit()->textCursor().block().text(), QStringLiteral("    b   "));
    }

    void controlReturnAsksForTheGate()
    {
        open();
        QSignalSpy requests(m_panel.get(), &EditorPanel::gateRequested);
        gate::GateRequest request;
        connect(m_panel.get(), &EditorPanel::gateRequested, this,
                [&](const gate::GateRequest &wanted) { request = wanted; });
        edit()->moveCursor(QTextCursor::End);
        QTest::keyClicks(edit(), QStringLiteral("// mine"));
        QTest::keyClick(edit(), Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(requests.size(), 1);
        QCOMPARE(requests[0][1].toString(), m_key);
        QCOMPARE(requests[0][2].toString(), QStringLiteral("K00"));
        QCOMPARE(request.candidateText, m_text + "// mine");
        QCOMPARE(request.parentText, m_text);
        QVERIFY(request.workloadDirectory.filename() == "softmax");
        QVERIFY(!edit()->toPlainText().contains(QStringLiteral("mine\n"))); // no line was broken
    }

    void verdictsShowAndMarkLines()
    {
        open();
        auto *strip = m_panel->findChild<VerdictStrip *>();
        QVERIFY(!strip->isVisible());
        m_panel->requestGate();
        gate::Trial trial;
        trial.verdict.status = gate::VerdictStatus::CompileError;
        trial.verdict.stage = gate::Stage::Compile;
        trial.verdict.message = "The candidate does not compile.";
        trial.verdict.hint = "Declare f.";
        trial.verdict.evidence = {{"identifier", "f"}};
        trial.verdict.log = "K00-draft.cl:12:13: error: undeclared identifier 'f'\n";
        m_panel->showVerdict(trial);
        QVERIFY(strip->isVisible());
        QStringList shown;
        for (const QLabel *label : strip->findChildren<QLabel *>())
            shown << label->text();
        // One line; the rest is folded away, and said once.
        QVERIFY(shown.join(u'\n').contains(QLatin1String("does not compile")));
        auto *details = strip->findChild<QPlainTextEdit *>();
        QVERIFY(!details->isVisible());
        auto *more = strip->findChild<QToolButton *>(QStringLiteral("verdictDetails"));
        QVERIFY(more->isVisible());
        more->setFocus();
        QTest::keyClick(more, Qt::Key_Space);
        QVERIFY(details->isVisible());
        const QString words = details->toPlainText();
        for (const char *expected : {"identifier: f", "Declare f."})
            QVERIFY2(words.contains(QLatin1String(expected)), expected);
        QTRY_VERIFY(edit()->diagnosticsOfLine(12).contains(QStringLiteral("undeclared")));
        QTest::keyClicks(edit(), QStringLiteral(" ")); // the log's lines are no longer those of the text
        QTRY_VERIFY(edit()->diagnosticsOfLine(12).isEmpty());
        m_panel->grab();
    }

    void verdictsGoToTheDraftThatWasSent()
    {
        open();
        m_panel->requestGate();
        open(); // another draft is in front when the verdict comes
        auto *strip = m_panel->findChild<VerdictStrip *>();
        gate::Trial trial;
        trial.verdict.status = gate::VerdictStatus::Wrong;
        trial.verdict.message = "Element c[3] differs.";
        m_panel->showVerdict(trial);
        QVERIFY(!strip->isVisible());
        tabs()->setCurrentIndex(0);
        QVERIFY(strip->isVisible());
    }

    void draftsSurvive()
    {
        open();
        edit()->moveCursor(QTextCursor::End);
        QTest::keyClicks(edit(), QStringLiteral("// kept"));
        // Written while the panel lives: a crash now would lose nothing.
        DraftStore store(m_folder.filePath(QStringLiteral("drafts")).toStdString());
        QTRY_VERIFY(!store.readAll().empty()
                    && store.readAll().front().text.endsWith(QStringLiteral("// kept")));
        QTest::keyClicks(edit(), QStringLiteral(", too"));
        m_panel.reset();
        makePanel();
        QCOMPARE(m_panel->draftCount(), 1);
        QVERIFY(edit()->toPlainText().endsWith(QStringLiteral("// kept, too")));
        QVERIFY(tabs()->tabText(0).contains(QStringLiteral("K00")));
    }

    void draftsKeepTheirOwnHistory()
    {
        open();
        QTest::keyClicks(edit(), QStringLiteral("one"));
        open();
        QCOMPARE(m_panel->draftCount(), 2);
        QCOMPARE(edit()->toPlainText().toStdString(), m_text);
        QVERIFY(!edit()->document()->isUndoAvailable());
        tabs()->setCurrentIndex(0);
        QVERIFY(edit()->toPlainText().startsWith(QStringLiteral("one")));
        QTest::keyClick(edit(), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(edit()->toPlainText().toStdString(), m_text);
    }
};

QTEST_MAIN(TestEditorPanel)
#include "tst_editorpanel.moc"
