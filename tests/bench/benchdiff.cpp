// SPDX-License-Identifier: GPL-3.0-or-later
// Diffs of 100,000 × 100,000 lines, 5 % changed.
#include "bench.h"
#include "uirows.h"

#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QApplication>
#include <QScrollBar>
#include <QTemporaryDir>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

namespace klineage::bench {

namespace {

constexpr int lineCount = 100000;

struct Texts {
    std::string left;
    std::string right;
};

Texts makeTexts(unsigned seed = 20240607)
{
    std::mt19937 random(seed);
    Texts texts;
    for (int i = 0; i < lineCount; ++i) {
        const std::string line = "    value_" + std::to_string(random() % 5000) + " = fma(a["
                                 + std::to_string(i) + "], b[k + " + std::to_string(random() % 64)
                                 + "], acc);\n";
        texts.left += line;
        if (random() % 20 != 0) {
            texts.right += line;
            continue;
        }
        switch (random() % 3) {
        case 0:
            texts.right += "    changed_" + std::to_string(random() % 100) + line.substr(4);
            break;
        case 1:
            texts.right += line + "    inserted(" + std::to_string(random()) + ");\n";
            break;
        default:
            break; // removed
        }
    }
    return texts;
}

/// Scrolls through the document in pages and half rows, painting every frame.
std::vector<double> scrollFrames(ui::DiffView &view, int pages = 200)
{
    QScrollBar *bar = view.verticalScrollBar();
    QImage frame(view.viewport()->size(), QImage::Format_ARGB32_Premultiplied);
    std::vector<double> samples;
    const auto step = [&](int pixels) {
        samples.push_back(millisecondsOf([&] {
            bar->setValue((bar->value() + pixels) % std::max(1, bar->maximum()));
            view.viewport()->render(&frame);
        }));
    };
    for (int i = 0; i < pages; ++i)
        step(bar->pageStep());
    for (int i = 0; i < 200; ++i)
        step(9);
    return samples;
}

/// As many lines as can have a share that is painted, at the beginning of both sides.
ui::HeatPtr hotBeginning()
{
    gate::Trial trial;
    for (int line = 1; line <= 190; ++line)
        trial.hotspots.push_back({"kernel", line, 100 + line % 2, {{"long_scoreboard", 60}, {"wait", 40}}});
    const ui::HeatSide side{gate::LineSamples(trial), QStringLiteral("K01"), QStringLiteral("device"), {}};
    return ui::makeHeat(side, side);
}

/// As a person has it: the row is selected, and the panel has read both files, compared them and painted the rows, headings, counts and
/// the overview. Each time other files, so that nothing is at hand.
std::vector<double> completeDiffs(int runs)
{
    const QTemporaryDir folder;
    const std::filesystem::path root = folder.path().toStdString();
    Workspace content;
    content.root = root;
    lineage::Lineage lineage;
    lineage.workload = "long";
    lineage.platform = "pocl";
    lineage.directory = root;
    for (int i = 0; i < 2 * runs; ++i) {
        const std::string id = "K" + std::to_string(i);
        if (i > 0)
            lineage.transitions.push_back({lineage.states.back().id, id, "tiling", "loop", "More.", ""});
        lineage.states.push_back({id, id + ".cu", "long", ""});
        if (i % 2 == 1) {
            const Texts texts = makeTexts(static_cast<unsigned>(i));
            std::ofstream(root / lineage.states[lineage.states.size() - 2].file) << texts.left;
            std::ofstream(root / lineage.states.back().file) << texts.right;
        }
    }
    content.lineages.push_back(lineage);
    ui::WorkspaceModel workspace;
    ui::Selection selection;
    workspace.setWorkspace(content);
    ui::DiffPanel panel(&workspace, &selection);
    panel.resize(1400, 800);
    panel.show();
    QApplication::processEvents();
    std::vector<double> samples;
    for (int i = 0; i < runs; ++i) {
        const QString row = QStringLiteral("K%1").arg(2 * i + 1);
        samples.push_back(millisecondsOf([&] {
            selection.setLineage(QStringLiteral("long/pocl"), row);
            workUntil([&] { return panel.isUpToDate() && panel.view()->document() != nullptr; });
            QApplication::processEvents();
            panel.repaint();
        }));
        selection.setLineage({}, {});
        QApplication::processEvents();
    }
    return samples;
}

} // namespace

void longDiff(Reporter &reporter)
{
    const Texts texts = makeTexts();
    diff::Diff result;
    reporter.samplesAtMost(QStringLiteral("diff.compare"),
                           millisecondsEach(9, [&] { result = diff::compare(texts.left, texts.right); }),
                           QStringLiteral("ms"), 250,
                           QStringLiteral("100k x 100k lines, 5 % changed: rows, hunks, pairs, moves"));

    ui::DiffView view;
    view.resize(1400, 800);
    view.show();
    QApplication::processEvents();
    QImage frame(view.viewport()->size(), QImage::Format_ARGB32_Premultiplied);
    // From two files in memory to pixels, on one thread: no share of a second core is counted in.
    const std::vector<double> firstPaint = millisecondsEach(9, [&] {
        const auto left = ui::makeSideText(texts.left, ui::Language::CudaCpp);
        const auto right = ui::makeSideText(texts.right, ui::Language::CudaCpp);
        view.setDocument(ui::makeDocument(left, right, {}), false);
        view.viewport()->render(&frame);
    });
    reporter.samplesAtMost(QStringLiteral("diff.first_paint"), firstPaint, QStringLiteral("ms"), 150,
                           QStringLiteral("both texts in memory to painted rows, compare included"));
    reporter.samplesAtMost(
        QStringLiteral("diff.complete"), completeDiffs(9), QStringLiteral("ms"), 250,
        QStringLiteral("from the selection of the row: two files read, compared, all of the panel painted"));

    const std::vector<double> folded = scrollFrames(view);
    reporter.samplesAtMost(QStringLiteral("diff.scroll"), folded, QStringLiteral("ms"), 8,
                           QStringLiteral("frame of 1400 x 800, folded"));
    view.setFolding(false);
    const std::vector<double> open = scrollFrames(view);
    reporter.samplesAtMost(QStringLiteral("diff.scroll_open"), open, QStringLiteral("ms"), 8,
                           QStringLiteral("frame of 1400 x 800, nothing folded"));

    view.setHeat(hotBeginning());
    view.verticalScrollBar()->setValue(0);
    const std::vector<double> hot = scrollFrames(view, 0);
    reporter.samplesAtMost(QStringLiteral("diff.scroll_heat"), hot, QStringLiteral("ms"), 8,
                           QStringLiteral("frame of 1400 x 800 with stall samples on every visible line"));

    int words = 0;
    const double all = medianMilliseconds(3, [&] {
        words = 0;
        for (const diff::Row &row : result.rows) {
            if (row.kind != diff::Row::Kind::Changed)
                continue;
            static const ui::TextLines left(texts.left);
            static const ui::TextLines right(texts.right);
            const auto changes = diff::compareLines(left.line(row.leftLine), right.line(row.rightLine));
            words += changes.left.empty() && changes.right.empty() ? 0 : 1;
        }
    });
    reporter.atMost(QStringLiteral("diff.words"), all * 1000 / std::max(1, words), QStringLiteral("us"), 50,
                    QStringLiteral("word-level changes of one line, mean of all changed lines"));
}

namespace {

const Group group("diff", "line and word diffs of 100k lines, painting and scrolling them", &longDiff, true);

} // namespace

} // namespace klineage::bench
