// SPDX-License-Identifier: GPL-3.0-or-later
// Frames of the graphs: the story's, at every zoom, and the one beside the lineage's rows while it scrolls.
#include "bench.h"
#include "uirows.h"

#include "ui/graph/lineageview.h"
#include "ui/models/lineagemodel.h"
#include "ui/story/graph/graphbench.h"

#include <QApplication>
#include <QScrollBar>

#include <memory>

namespace klineage::bench {

namespace {

constexpr double goalMs = 16;
constexpr int frames = 200;

gate::Trial quickTrial(int i)
{
    gate::Trial trial;
    trial.id = std::to_string(i);
    trial.verdict.status = gate::VerdictStatus::Correct;
    trial.verdict.stage = gate::Stage::Profile;
    const double ns = 1e6 / (1 + 0.001 * i);
    trial.latencyNs = {ns, ns * 0.999, ns * 1.001};
    trial.verdict.comparisons.push_back({"parent", "", {1.001, 1.0, 1.002}, ns * 1.001, gate::Change::Gain});
    return trial;
}

/// Half of them states, half attempts from them.
lineage::Lineage branchedLineage(int nodes)
{
    lineage::Lineage made;
    made.workload = "many";
    made.platform = "pocl";
    for (int i = 0; i < nodes / 2; ++i) {
        const std::string id = "K" + std::to_string(i);
        if (i > 0)
            made.transitions.push_back({made.states.back().id, id, "tiling", "loop", "More.", ""});
        made.states.push_back({id, id + ".cu", "state", std::to_string(2 * i)});
        made.attempts.push_back({"R" + std::to_string(i), id, "r.cu", "tried", "tiling", "loop", "No.",
                                 std::to_string(2 * i + 1)});
        made.trials.push_back(quickTrial(2 * i));
        made.trials.push_back(quickTrial(2 * i + 1));
    }
    return made;
}

/// What is measured, and how it is moved: the widget that paints, and one step of a walk through all of it.
struct Graph {
    std::unique_ptr<ui::LineageModel> model;
    std::unique_ptr<ui::LineageView> view;

    [[nodiscard]] QWidget *canvas() const { return view->viewport(); }
    void move(int step) const
    {
        QScrollBar *bar = view->verticalScrollBar();
        bar->setValue(step % 2 == 0 ? (bar->value() + bar->pageStep()) % std::max(1, bar->maximum())
                                    : bar->value() + 1);
    }
};

Graph makeGraph(int nodes)
{
    Graph graph{std::make_unique<ui::LineageModel>(), nullptr};
    const lineage::Lineage lineage = branchedLineage(nodes);
    graph.model->refresh(&lineage, {}, ui::Direction::Backward);
    graph.view = std::make_unique<ui::LineageView>(graph.model.get());
    graph.view->resize(520, 900);
    graph.view->show();
    QApplication::processEvents();
    return graph;
}

std::vector<double> framesOf(const Graph &graph)
{
    QImage frame(graph.canvas()->size(), QImage::Format_ARGB32_Premultiplied);
    std::vector<double> samples;
    for (int i = 0; i < frames; ++i)
        samples.push_back(millisecondsOf([&] {
            graph.move(i);
            graph.canvas()->render(&frame);
        }));
    return samples;
}

} // namespace

void graphFrames(Reporter &reporter)
{
    const QString frame =
        QStringLiteral("a frame of the story's graph of %1 candidates, 1600 x 1000, at every zoom");
    reporter.samplesAtMost(QStringLiteral("graph.10k"), ui::graphFrameTimes(10'000), QStringLiteral("ms"),
                           goalMs, frame.arg(10'000));
    reporter.samplesInfo(QStringLiteral("graph.100k"), ui::graphFrameTimes(100'000), QStringLiteral("ms"),
                         frame.arg(100'000));
    reporter.info(QStringLiteral("graph.100k_made"), ui::graphLayoutTime(100'000), QStringLiteral("ms"),
                  QStringLiteral("its layout, once"));
    for (const auto &[name, nodes] : {std::pair("10k", 10'000), std::pair("100k", 100'000)}) {
        const QString row = QStringLiteral("graph.rows_%1").arg(QLatin1String(name));
        Graph graph;
        const double made = millisecondsOf([&] { graph = makeGraph(nodes); });
        reporter.samplesAtMost(
            row, framesOf(graph), QStringLiteral("ms"), goalMs,
            QStringLiteral("a frame while the lineage's rows scroll, %1 of them").arg(nodes));
        reporter.info(row + QStringLiteral("_made"), made, QStringLiteral("ms"),
                      QStringLiteral("the model and its view, once"));
    }
}

namespace {

const Group group("graph", "frames of the story's graph and of the lineage's rows", &graphFrames, true);

} // namespace

} // namespace klineage::bench
