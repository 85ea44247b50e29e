// SPDX-License-Identifier: GPL-3.0-or-later
// Reports as files, with their figures; and through klineage-cli, which starts klineage for them.
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/report/pages.h"
#include "ui/report/reportfile.h"
#include "ui/story/chain/chain.h"

#include <QAbstractTextDocumentLayout>
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>
#include <QTextDocument>
#include <QXmlStreamReader>

#include <algorithm>
#include <vector>

using namespace klineage;
using namespace klineage::ui;

namespace {

const Workspace &shipped()
{
    static const Workspace workspace = openWorkspace(klineage::test::sourcePath()).value();
    return workspace;
}

QByteArray bytesOf(const QString &fileName)
{
    QFile file(fileName);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QList<QByteArray> svgsOf(const QByteArray &html)
{
    QList<QByteArray> svgs;
    for (qsizetype at = html.indexOf("<svg"); at >= 0; at = html.indexOf("<svg", at + 1))
        svgs << html.mid(at, html.indexOf("</svg>", at) + 6 - at);
    return svgs;
}

struct Outcome {
    int status = -1;
    QString err;
};

Outcome runCli(const QString &program, const QStringList &arguments)
{
    QProcess process;
    process.setWorkingDirectory(QString::fromStdString(klineage::test::sourcePath()));
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("PATH"), QStringLiteral("/nowhere"));
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    if (!process.waitForFinished(4 * patienceMs))
        return {};
    return {process.exitCode(), QString::fromUtf8(process.readAllStandardError())};
}

} // namespace

class TestReportFile : public UiTest
{
    Q_OBJECT

private slots:
    void chainHasWhatWasRecorded()
    {
        const Workspace workspace = sampleWorkspace();
        const Chain chain = chainOf(*workspace.findLineage("toy/pocl"));
        QCOMPARE(chain.points.size(), std::size_t{4});
        QCOMPARE(chain.points[0].ns, 800e3);
        QVERIFY(chain.points[0].step.isEmpty());
        QCOMPARE(chain.points[3].ns, 100e3);
        QCOMPARE(chain.points[3].step, "2.00×");
        QCOMPARE(chain.reference, "openblas");
        QCOMPARE(chain.attempts.size(), std::size_t{2});
        QCOMPARE(chain.attempts[0].place, 1.5);
        QVERIFY(chain.attempts[0].ns > 0);
        QCOMPARE(chain.attempts[1].ns, 0.0); // wrong: it has no latency, and none is made up
        const Chain notGated = chainOf(*workspace.findLineage("toy/sm90"));
        QCOMPARE(notGated.points.size(), std::size_t{2});
        QCOMPARE(notGated.points[0].ns, 0.0);
    }

    void htmlHasItsFiguresAsVectors_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("figures");
        const QString experiment =
            QString::fromStdString(klineage::test::sourcePath("/tests/data/experiments/cards-against-none"));
        QTest::newRow("lineage") << "gemm/sm90" << 4; // chain, roofline, roundtrip, trials
        QTest::newRow("no reference") << "softmax/sm90" << 3;
        QTest::newRow("run") << experiment + "/runs/conv2d-pocl-k00-klineage-s1" << 1;
        QTest::newRow("experiment") << experiment << 1;
    }

    void htmlHasItsFiguresAsVectors()
    {
        QFETCH(QString, name);
        QFETCH(int, figures);
        const QString file = m_folder.filePath("report.html");
        QCOMPARE(writeReportFile(shipped(), name.toStdString(), file), QString());
        const QByteArray html = bytesOf(file);
        QXmlStreamReader xml(html);
        while (!xml.atEnd())
            xml.readNext();
        QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
        QVERIFY(!html.contains("<image"));
        QVERIFY(!QString::fromUtf8(html).contains(
            QRegularExpression("src\\s*=|href\\s*=\\s*(?!\"data:text/csv)|url\\(|@import|<script|<link")));
        const QList<QByteArray> svgs = svgsOf(html);
        QCOMPARE(svgs.size(), figures);
        for (const QByteArray &svg : svgs) {
            QVERIFY(QSvgRenderer(svg).isValid());
            QVERIFY(svg.count("<text") > 5);
        }
    }

    void pdfHasPagesOfVectors()
    {
        const QString file = m_folder.filePath("report.pdf");
        QCOMPARE(writeReportFile(shipped(), "gemm/sm90", file), QString());
        const QByteArray pdf = bytesOf(file);
        QVERIFY(pdf.startsWith("%PDF-"));
        QVERIFY(QString::fromLatin1(pdf).count(QRegularExpression("/Type\\s*/Page\\b")) >= 2);
        QVERIFY(!QString::fromLatin1(pdf).contains(QRegularExpression("/Subtype\\s*/Image")));
        QVERIFY(pdf.contains("/ToUnicode")); // text that can be found and copied
    }

    void pagesCutNothing()
    {
        QString html = QStringLiteral("<p>Begin</p><table><thead><tr><th>Head</th></tr></thead><tbody>");
        for (int row = 0; row < 60; ++row)
            html += QStringLiteral("<tr><td>%1<br/>of two lines</td></tr>").arg(row);
        html += QStringLiteral("</tbody></table><h2>Heading</h2><p>What it leads</p>");
        QTextDocument text;
        text.setHtml(html);
        text.setTextWidth(300);
        constexpr double height = 200;
        const std::vector<Page> pages = pagesOf(text, height);
        QVERIFY(pages.size() > 5);
        QCOMPARE(pages.front().header.height(), 0.0);
        double end = pages.front().body.top;
        for (const Page &page : pages) {
            QCOMPARE(page.body.top, end); // nothing is left out, and nothing comes twice
            end = page.body.bottom;
            QVERIFY(page.header.height() + page.body.height() <= height);
            QVERIFY(page.body.height() > 0);
        }
        QVERIFY(end >= text.size().height());
        QVERIFY(pages[2].header.height() > 0); // the table goes on, and says of what
        for (QTextBlock block = text.begin(); block.isValid(); block = block.next()) {
            const QRectF rect = text.documentLayout()->blockBoundingRect(block);
            const auto holds = [&](const Page &page) {
                return page.body.top <= rect.top() + 0.5 && rect.bottom() <= page.body.bottom + 0.5;
            };
            QVERIFY2(std::any_of(pages.begin(), pages.end(), holds), qPrintable(block.text()));
            if (block.blockFormat().headingLevel() > 0) {
                const QRectF next = text.documentLayout()->blockBoundingRect(block.next());
                const auto page = std::find_if(pages.begin(), pages.end(), holds);
                QVERIFY(next.bottom() <= page->body.bottom + 0.5);
            }
        }
    }

    void whatIsHigherThanAPageIsCutAllTheSame()
    {
        QTextDocument text;
        text.setHtml(QStringLiteral("<table><tr><td>%1</td></tr></table>")
                         .arg(QStringLiteral("line<br/>").repeated(100)));
        text.setTextWidth(300);
        const std::vector<Page> pages = pagesOf(text, 200);
        QVERIFY(pages.size() > 3);
        for (const Page &page : pages)
            QVERIFY(page.header.height() + page.body.height() <= 200.0);
    }

    void emptyLineageHasNoFigure()
    {
        Workspace workspace = sampleWorkspace();
        for (lineage::Lineage &lineage : workspace.lineages) {
            lineage.states.clear();
            lineage.transitions.clear();
        }
        for (const char *ending : {"html", "pdf", "md"}) {
            const QString file = m_folder.filePath(QStringLiteral("empty.") + ending);
            QCOMPARE(writeReportFile(workspace, "toy/pocl", file), QString());
            QVERIFY(!bytesOf(file).isEmpty());
        }
        QVERIFY(svgsOf(bytesOf(m_folder.filePath("empty.html"))).isEmpty());
    }

    void whatCannotBeWrittenIsSaid()
    {
        QVERIFY(
            writeReportFile(shipped(), "gemm/sm90", "/nowhere/report.html").contains("/nowhere/report.html"));
        QVERIFY(writeReportFile(shipped(), "gemm/sm90", m_folder.filePath("a.docx")).contains(".pdf or .md"));
        QVERIFY(writeReportFile(shipped(), "gem/sm90", m_folder.filePath("a.md")).contains("'gemm/sm90'"));
    }

    void throughTheCommandLine()
    {
        const QString cli = QString::fromStdString(klineage::test::programPath("/klineage-cli"));
        const QString html = m_folder.filePath("cli.html");
        const Outcome outcome = runCli(cli, {"report", "gemm/sm90", "-o", html});
        QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
        QCOMPARE(svgsOf(bytesOf(html)).size(), 4);
        QCOMPARE(runCli(cli, {"report", "gemm/sm90", "-o", m_folder.filePath("cli.md")}).status, 0);
        QVERIFY(bytesOf(m_folder.filePath("cli.md")).contains("| K10 |"));

        const Outcome unknown = runCli(cli, {"report", "gem/sm90", "-o", html});
        QCOMPARE(unknown.status, 2);
        QVERIFY2(unknown.err.contains("did you mean 'gemm/sm90'"), qPrintable(unknown.err));
        QCOMPARE(runCli(cli, {"report", "gemm/sm90", "-o", "report.txt"}).status, 2);
        for (const char *file : {"/nowhere/a.html", "/nowhere/a.md"}) {
            const Outcome unwritable = runCli(cli, {"report", "gemm/sm90", "-o", file});
            QCOMPARE(unwritable.status, 3);
            QVERIFY2(unwritable.err.contains(file), qPrintable(unwritable.err));
        }
    }

    void withoutTheWindowProgram()
    {
        const QString alone = m_folder.filePath("klineage-cli");
        QVERIFY(QFile::copy(QString::fromStdString(klineage::test::programPath("/klineage-cli")), alone));
        const Outcome outcome = runCli(alone, {"report", "gemm/sm90", "-o", m_folder.filePath("b.pdf")});
        QCOMPARE(outcome.status, 3);
        QVERIFY2(outcome.err.contains("neither beside this program nor on PATH")
                     && outcome.err.contains("report.md"),
                 qPrintable(outcome.err));
        QCOMPARE(runCli(alone, {"report", "gemm/sm90", "-o", m_folder.filePath("b.md")}).status, 0);
    }

private:
    QTemporaryDir m_folder;
};

KLINEAGE_UI_TEST(TestReportFile)
#include "tst_reportfile.moc"
