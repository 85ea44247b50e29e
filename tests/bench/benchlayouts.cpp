// SPDX-License-Identifier: GPL-3.0-or-later
// From one layout of the main window to another, on the shipped workspace: from the call to all panels painted.
#include "bench.h"
#include "tests/paths.h"
#include "uirows.h"

#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/docks/layouts.h"
#include "ui/shell/mainwindow.h"

#include <QApplication>
#include <QTest>

namespace klineage::bench {

namespace {

constexpr double goalMs = 100;
constexpr int rounds = 5;

double switchTo(ui::MainWindow &window, const ui::WindowLayout &layout)
{
    return millisecondsOf([&] {
        window.applyLayout(layout.id);
        for (int i = 0; i < 4; ++i) { // what is put off to the next round, and the paints of that
            QApplication::sendPostedEvents();
            QApplication::processEvents();
        }
    });
}

} // namespace

void layoutSwitches(Reporter &reporter)
{
    const QString name = QStringLiteral("layout.first");
    const Result<Workspace> content = openWorkspace(klineage::test::sourcePath());
    if (!content) {
        reporter.missing(name, QStringLiteral("the shipped workspace is not there"));
        return;
    }
    ui::MainWindow window;
    window.resize(1600, 1000);
    window.show();
    window.workspace()->setWorkspace(*content);
    window.selection()->setLineage(QStringLiteral("gemm/sm90"), QStringLiteral("K05"));
    const auto settle = [&window] {
        return QTest::qWaitFor([&window] { return window.isSettled(); }, 30'000);
    };
    if (!QTest::qWaitForWindowActive(&window, 30'000) || !settle()) {
        reporter.missing(name, QStringLiteral("the window did not come to rest"));
        return;
    }
    const auto &layouts = ui::windowLayouts();
    std::vector<double> first;
    for (std::size_t i = 1; i < layouts.size(); ++i) {
        first.push_back(switchTo(window, layouts[i]));
        (void)settle();
    }
    std::vector<double> scaled; ///< text has another size
    std::vector<double> others;
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t from = 0; from < layouts.size(); ++from) {
            for (std::size_t to = 0; to < layouts.size(); ++to) {
                if (from == to)
                    continue;
                (void)switchTo(window, layouts[from]);
                (void)settle();
                const bool isScaled = layouts[from].textScale != layouts[to].textScale;
                (isScaled ? scaled : others).push_back(switchTo(window, layouts[to]));
                (void)settle();
            }
        }
    }
    reporter.samplesAtMost(name, first, QStringLiteral("ms"), goalMs,
                           QStringLiteral("each layout when it is first chosen"));
    reporter.samplesAtMost(QStringLiteral("layout.again"), others, QStringLiteral("ms"), goalMs,
                           QStringLiteral("between layouts that have been shown"));
    reporter.samplesAtMost(QStringLiteral("layout.scaled"), scaled, QStringLiteral("ms"), goalMs,
                           QStringLiteral("the same where text becomes larger or smaller: Demo"));
}

namespace {

const Group group("layouts", "from one layout of the window to another", &layoutSwitches, true);

} // namespace

} // namespace klineage::bench
