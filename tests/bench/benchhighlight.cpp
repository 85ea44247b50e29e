// SPDX-License-Identifier: GPL-3.0-or-later
// Syntax highlighting: throughput, and how soon the visible lines of a long text have their colours.
#include "bench.h"
#include "tests/paths.h"
#include "uirows.h"

#include "ui/highlight/documenthighlighter.h"
#include "ui/highlight/texthighlighter.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QDirIterator>
#include <QElapsedTimer>
#include <QFile>
#include <QPlainTextDocumentLayout>
#include <QTextDocument>

#include <algorithm>

namespace klineage::bench {

namespace {

constexpr double leastRate = 75; ///< thousand lines a second, of one thread

/// The shipped candidates of a surface, over and over, up to a number of lines.
std::string candidates(const QString &pattern, int lines)
{
    std::string all;
    QDirIterator files(QString::fromStdString(klineage::test::sourcePath("/workloads")), {pattern},
                       QDir::Files, QDirIterator::Subdirectories);
    while (files.hasNext()) {
        QFile file(files.next());
        if (file.open(QIODevice::ReadOnly))
            all += file.readAll().toStdString();
    }
    std::string text;
    while (!all.empty() && std::count(text.begin(), text.end(), '\n') < lines)
        text += all;
    return text;
}

void throughput(Reporter &reporter, const QString &name, const QString &pattern, ui::Language language)
{
    const ui::TextLines text(candidates(pattern, 20000));
    if (text.count() == 0) {
        reporter.missing(name, QStringLiteral("no shipped file is a %1").arg(pattern));
        return;
    }
    std::vector<double> rates = millisecondsEach(7, [&] { (void)ui::highlightAll(text, language); });
    for (double &sample : rates)
        sample = text.count() / sample;
    reporter.samplesAtLeast(name, rates, QStringLiteral("klines/s"), leastRate,
                            QStringLiteral("shipped candidates, one thread"));
}

/// Milliseconds until the visible lines have their colours, and all have.
std::pair<double, double> highlightFrom(const std::shared_ptr<ui::TextLines> &text)
{
    ui::TextHighlighter highlighter;
    double first = -1;
    double last = -1;
    QElapsedTimer elapsed;
    QObject::connect(&highlighter, &ui::TextHighlighter::chunkReady, qApp,
                     [&](int line, const std::vector<ui::LineRuns> &runs) {
                         if (first < 0 && line <= 80000 && line + static_cast<int>(runs.size()) >= 80060)
                             first = static_cast<double>(elapsed.nsecsElapsed()) / 1e6;
                     });
    QObject::connect(&highlighter, &ui::TextHighlighter::finished, qApp,
                     [&] { last = static_cast<double>(elapsed.nsecsElapsed()) / 1e6; });
    elapsed.start();
    highlighter.start(text, ui::Language::CudaCpp, 80000, 60);
    workUntil([&] { return last >= 0 || elapsed.elapsed() >= 60000; });
    return {first, last};
}

void visibleFirst(Reporter &reporter)
{
    const auto text = std::make_shared<ui::TextLines>(candidates(QStringLiteral("*.cu"), 100000));
    std::vector<double> visible;
    std::vector<double> all;
    for (int i = 0; i < 5; ++i) {
        const auto [first, last] = highlightFrom(text);
        visible.push_back(first);
        all.push_back(last);
    }
    reporter.samplesAtMost(QStringLiteral("highlight.visible"), visible, QStringLiteral("ms"), 50,
                           QStringLiteral("60 lines in the middle of 100k have their colours"));
    reporter.samplesInfo(QStringLiteral("highlight.all"), all, QStringLiteral("ms"),
                         QStringLiteral("100k lines, in the background"));
}

void editorSlices(Reporter &reporter)
{
    QTextDocument document;
    document.setDocumentLayout(new QPlainTextDocumentLayout(&document));
    document.setPlainText(QString::fromStdString(candidates(QStringLiteral("*.cu"), 20000)));
    ui::DocumentHighlighter highlighter(&document, ui::Language::CudaCpp);
    highlighter.setPalette(ui::CodePalette::from(ui::Theme::current()));
    std::vector<double> slices;
    while (highlighter.isBusy())
        slices.push_back(millisecondsOf([] { QApplication::processEvents(QEventLoop::AllEvents); }));
    reporter.samplesAtMost(QStringLiteral("highlight.editor_slice"), slices, QStringLiteral("ms"), 5,
                           QStringLiteral("the longest that typing waits while 20k lines are highlighted"));
}

} // namespace

void highlighting(Reporter &reporter)
{
    throughput(reporter, QStringLiteral("highlight.cuda"), QStringLiteral("*.cu"), ui::Language::CudaCpp);
    throughput(reporter, QStringLiteral("highlight.opencl"), QStringLiteral("*.cl"), ui::Language::OpenClC);
    visibleFirst(reporter);
    editorSlices(reporter);
}

namespace {

const Group group("highlight", "syntax highlighting of candidates", &highlighting, true);

} // namespace

} // namespace klineage::bench
